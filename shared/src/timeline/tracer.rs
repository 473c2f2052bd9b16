//! Watches a run and tells what was under way, from when to when.

use std::collections::{BTreeMap, BTreeSet};

use super::lanes::Lanes;
use super::{Counter, Flow, Lane, Sink, Slice, UNDER_WAY, WHOLE, What};
use crate::action::Action;
use crate::core::{Gauges, Scheduler};
use crate::id::{ReplicaId, SampleId, SessionId};
use crate::input::{EnvironmentOutcome, Finish, Input, Segment, VoteOutcome, WeightsEvent};
use crate::time::Time;
use crate::work::Work;

/// What a slice needs beside its [`Work`].
#[derive(Clone, Debug)]
enum Of {
    Turn {
        sample: Option<SampleId>,
        session: Option<SessionId>,
        version: u32,
        swaps: Vec<(Time, u32)>,
    },
    Environment,
    /// `None`: it had begun before the timeline did.
    Vote(Option<SampleId>),
    Step {
        learner: u32,
        batch: Vec<SampleId>,
    },
    Export(u32),
    Load {
        version: u32,
        transferred: Option<Time>,
    },
}

/// Work that is under way.
#[derive(Clone, Debug)]
struct Open {
    lane: Lane,
    since: Time,
    of: Of,
    cancelled: bool,
}

/// Follows a run and tells a [`Sink`] its timeline.
///
/// [`observe`](Self::observe) follows every [`Scheduler::handle`] whose actions are drained;
/// [`finish`](Self::finish) tells what was still under way at the end.
#[derive(Clone, Debug)]
pub struct Tracer {
    now: Time,
    lanes: Lanes,
    open: BTreeMap<Work, Open>,
    /// Since when new requests are answered with 503, and whether for a weight sync.
    window: Option<(Time, bool)>,
    /// Samples whose flow has begun and not ended, with the start of the slice that it begins in.
    flowing: BTreeMap<SampleId, Time>,
    counters: BTreeMap<Counter, u32>,
    /// What is in force, and not yet told.
    levels: (Gauges, u32),
    told: (Gauges, u32),
    /// Replicas that hold something else than was told.
    changed: BTreeSet<ReplicaId>,
    deploys: BTreeMap<ReplicaId, u32>,
}

impl Tracer {
    /// The timeline begins here: what this core has under way has begun by now.
    #[must_use]
    pub fn new(core: &Scheduler) -> Self {
        let mut tracer = Self {
            now: core.now(),
            lanes: Lanes::default(),
            open: BTreeMap::new(),
            window: None,
            flowing: BTreeMap::new(),
            counters: BTreeMap::new(),
            levels: Default::default(),
            told: Default::default(),
            changed: BTreeSet::new(),
            deploys: BTreeMap::new(),
        };
        let state = core.state();
        for replica in &state.replicas {
            tracer.holds(replica.replica, core);
        }
        tracer.levels = (core.gauges(), core.learner().number());
        let published = state.publication.map_or(0, |publication| publication.version.number());
        for (work, replica) in core.works() {
            let of = match work {
                Work::Generation { .. } => {
                    let version = version_on(core, replica.unwrap_or_default());
                    Of::Turn { sample: None, session: None, version, swaps: Vec::new() }
                }
                Work::Environment { .. } => Of::Environment,
                Work::Vote(_) => Of::Vote(None),
                Work::Step(_) => {
                    let batch = core.batch().map(|sample| sample.id).collect();
                    Of::Step { learner: core.learner().number(), batch }
                }
                Work::Save(_) => Of::Export(published),
                Work::Load { .. } => Of::Load { version: published, transferred: None },
            };
            tracer.start(work, replica, of);
        }
        tracer
    }

    /// `core` has handled `input` at `now`, and gave `actions`, all that it had.
    pub fn observe(
        &mut self,
        now: Time,
        input: &Input,
        actions: &[Action],
        core: &Scheduler,
        sink: &mut dyn Sink,
    ) {
        if now > self.now {
            self.tell_counters(sink);
            self.now = now;
        }
        self.input(input, core, sink);
        for action in actions {
            self.action(action, core, sink);
        }
        for resolved in core.resolved() {
            self.flowing.remove(&resolved.sample.id);
        }
        self.levels = (core.gauges(), core.learner().number());
        self.watch_window(core, sink);
    }

    /// The timeline ends: whatever is under way ends with it.
    pub fn finish(mut self, sink: &mut dyn Sink) {
        self.tell_counters(sink);
        for (work, open) in std::mem::take(&mut self.open) {
            self.tell(work, open, 0, UNDER_WAY, None, sink);
        }
        if let Some((since, sync)) = self.window.take() {
            sink.slice(&Self::window_slice(since, self.now, sync, UNDER_WAY));
        }
    }

    fn input(&mut self, input: &Input, core: &Scheduler, sink: &mut dyn Sink) {
        match input {
            Input::Weights { event: WeightsEvent::Transferred(replica), publication } => {
                let work = Work::Load { publication: *publication, replica: *replica };
                if let Some(Open { of: Of::Load { transferred, .. }, .. }) =
                    self.open.get_mut(&work)
                {
                    *transferred = Some(self.now);
                }
            }
            Input::Weights { event: WeightsEvent::Loaded(replica), .. } => {
                self.swap(*replica, core);
            }
            Input::ReplicaUp { replica, .. } => self.holds(*replica, core),
            Input::ReplicaDown { replica } => self.lose(*replica, core, sink),
            _ => {}
        }
        let Some(work) = Work::ended_by(input) else { return };
        let Some(open) = self.open.remove(&work) else { return };
        let (tokens, ended) = end_of(input);
        let ended = if open.cancelled { "cancelled" } else { ended };
        self.tell(work, open, tokens, ended, Some(core), sink);
    }

    fn action(&mut self, action: &Action, core: &Scheduler, sink: &mut dyn Sink) {
        match *action {
            Action::CancelVote { vote } => self.cancel(Work::Vote(vote)),
            Action::CancelEnvironment { session, attempt } => {
                self.cancel(Work::Environment { session, attempt });
            }
            // Whether these end, and when, nobody waits for.
            Action::CancelLoad { publication, replica } => {
                self.give_up(Work::Load { publication, replica }, core, sink);
            }
            Action::CancelStep { step } => self.give_up(Work::Step(step), core, sink),
            _ => {}
        }
        let Some(work) = Work::started_by(action) else { return };
        let (replica, of) = match *action {
            Action::StartGeneration { replica, sample, .. } => {
                let session = sample.and_then(|sample| Some(core.sample(sample)?.session));
                let version = version_on(core, replica);
                (Some(replica), Of::Turn { sample, session, version, swaps: Vec::new() })
            }
            Action::StartVote { sample, .. } => (None, Of::Vote(Some(sample))),
            Action::StartStep { learner, .. } => {
                let batch = core.batch().map(|sample| sample.id).collect();
                (None, Of::Step { learner: learner.number(), batch })
            }
            Action::Publish { version, .. } => (None, Of::Export(version.number())),
            Action::Load { replica, version, .. } => {
                (Some(replica), Of::Load { version: version.number(), transferred: None })
            }
            _ => (None, Of::Environment),
        };
        self.free_lane(&work, replica, core, sink);
        self.start(work, replica, of);
    }

    /// Of what a lane for one thing at a time is still at work on, nobody waits for the end: the next
    /// thing replaces it.
    fn free_lane(
        &mut self,
        next: &Work,
        replica: Option<ReplicaId>,
        core: &Scheduler,
        sink: &mut dyn Sink,
    ) {
        let lane = match next {
            Work::Step(_) => Lane::Trainer,
            Work::Save(_) => Lane::Export,
            Work::Load { .. } => Lane::Weights { replica: replica.unwrap_or_default() },
            _ => return,
        };
        let before = self.open.iter().find(|(_, open)| open.lane == lane).map(|(work, _)| *work);
        if let Some(work) = before
            && let Some(open) = self.open.remove(&work)
        {
            self.tell(work, open, 0, "given up", Some(core), sink);
        }
    }

    fn start(&mut self, work: Work, replica: Option<ReplicaId>, of: Of) {
        let replica = replica.unwrap_or_default();
        let lane = match work {
            Work::Generation { .. } => self.lanes.turn(replica),
            Work::Environment { .. } => self.lanes.environment(),
            Work::Vote(_) => self.lanes.vote(),
            Work::Step(_) => Lane::Trainer,
            Work::Save(_) => Lane::Export,
            Work::Load { .. } => Lane::Weights { replica },
        };
        self.open.insert(work, Open { lane, since: self.now, of, cancelled: false });
    }

    fn cancel(&mut self, work: Work) {
        if let Some(open) = self.open.get_mut(&work) {
            open.cancelled = true;
        }
    }

    fn give_up(&mut self, work: Work, core: &Scheduler, sink: &mut dyn Sink) {
        if let Some(open) = self.open.remove(&work) {
            self.tell(work, open, 0, "cancelled", Some(core), sink);
        }
    }

    /// A replica is gone, and what ran on it.
    fn lose(&mut self, replica: ReplicaId, core: &Scheduler, sink: &mut dyn Sink) {
        let runs_on = |open: &Open| match open.lane {
            Lane::Turn { replica: on, .. } | Lane::Weights { replica: on } => on == replica,
            _ => false,
        };
        let lost = self.open.iter().filter(|(_, open)| runs_on(open));
        let lost: Vec<Work> = lost.map(|(work, _)| *work).collect();
        for work in lost {
            if let Some(open) = self.open.remove(&work) {
                self.tell(work, open, 0, "replica lost", Some(core), sink);
            }
        }
    }

    /// A replica generates with other weights from here on.
    fn swap(&mut self, replica: ReplicaId, core: &Scheduler) {
        self.holds(replica, core);
        let (now, version) = (self.now, version_on(core, replica));
        for open in self.open.values_mut() {
            if matches!(open.lane, Lane::Turn { replica: on, .. } if on == replica)
                && let Of::Turn { swaps, .. } = &mut open.of
            {
                swaps.push((now, version));
            }
        }
    }

    fn holds(&mut self, replica: ReplicaId, core: &Scheduler) {
        self.deploys.insert(replica, version_on(core, replica));
        self.changed.insert(replica);
    }

    /// `core`: as it is after the input that ended it; `None`: the timeline ended it.
    fn tell(
        &mut self,
        work: Work,
        open: Open,
        tokens: u32,
        ended: &'static str,
        core: Option<&Scheduler>,
        sink: &mut dyn Sink,
    ) {
        let Open { lane, since: start, of, .. } = open;
        self.lanes.give_back(lane);
        let flows = core.map_or_else(Vec::new, |core| self.flows(&of, start, ended, core));
        let what = match (work, &of) {
            (
                Work::Generation { request, attempt },
                Of::Turn { sample, session, version, swaps },
            ) => {
                let (sample, session, version) = (*sample, *session, *version);
                What::Turn { request, attempt, sample, session, tokens, version, swaps }
            }
            (Work::Environment { session, attempt }, _) => What::Environment { session, attempt },
            (Work::Vote(vote), Of::Vote(sample)) => What::Vote { vote, sample: *sample },
            (Work::Step(step), Of::Step { learner, batch }) => {
                What::Step { step, learner: *learner, samples: batch.len() as u32 }
            }
            (Work::Save(publication), Of::Export(version)) => {
                What::Export { publication, version: *version }
            }
            (Work::Load { publication, .. }, Of::Load { version, transferred }) => {
                let (version, transferred) = (*version, *transferred);
                What::Load { publication, version, transferred }
            }
            // `start` pairs them.
            _ => return,
        };
        sink.slice(&Slice { lane, start, end: self.now, what, ended, flows: &flows });
    }

    /// The samples that pass a slice. A flow begins with a turn, so that each has where it begins.
    fn flows(
        &mut self,
        of: &Of,
        start: Time,
        ended: &'static str,
        core: &Scheduler,
    ) -> Vec<(SampleId, Flow)> {
        match of {
            // A turn may go on when its sample is gone: nothing follows it.
            Of::Turn { sample: Some(sample), .. } if is_there(*sample, core) => {
                match self.flowing.get(sample) {
                    None => {
                        self.flowing.insert(*sample, start);
                        vec![(*sample, Flow::Begin)]
                    }
                    Some(begin) if *begin <= start => vec![(*sample, Flow::Step)],
                    // An attempt that was given up, and ended after the one that followed it.
                    Some(_) => Vec::new(),
                }
            }
            Of::Vote(Some(sample)) if ended != "cancelled" && self.flowing.contains_key(sample) => {
                vec![(*sample, Flow::Step)]
            }
            Of::Step { batch, .. } => {
                let how = if ended == WHOLE { Flow::End } else { Flow::Step };
                let flowing = batch.iter().filter(|sample| self.flowing.contains_key(sample));
                flowing.map(|sample| (*sample, how)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn watch_window(&mut self, core: &Scheduler, sink: &mut dyn Sink) {
        let sync = core.in_sync_window();
        match (self.window, self.levels.0.closed) {
            (None, true) => self.window = Some((self.now, sync)),
            (Some((since, was_sync)), true) => self.window = Some((since, was_sync || sync)),
            (Some((since, sync)), false) => {
                sink.slice(&Self::window_slice(since, self.now, sync, WHOLE));
                self.window = None;
            }
            (None, false) => {}
        }
    }

    fn window_slice(start: Time, end: Time, sync: bool, ended: &'static str) -> Slice<'static> {
        Slice { lane: Lane::Window, start, end, what: What::Window { sync }, ended, flows: &[] }
    }

    /// Tells what has changed since it was last told, once for each instant.
    fn tell_counters(&mut self, sink: &mut dyn Sink) {
        for replica in std::mem::take(&mut self.changed) {
            let version = self.deploys.get(&replica).copied().unwrap_or(0);
            self.tell_counter(Counter::Deploy(replica), version, sink);
        }
        if self.levels == self.told {
            return;
        }
        self.told = self.levels;
        let (gauges, learner) = self.levels;
        for (counter, value) in [
            (Counter::RolloutQueue, gauges.rollout_queue),
            (Counter::OutputQueue, gauges.output_queue),
            (Counter::Outstanding, gauges.outstanding),
            (Counter::Parked, gauges.parked),
            (Counter::Running, gauges.running),
            (Counter::Held, gauges.held),
            (Counter::Votes, gauges.votes),
            (Counter::Bound, gauges.bound),
            (Counter::Learner, learner),
        ] {
            self.tell_counter(counter, value, sink);
        }
    }

    fn tell_counter(&mut self, counter: Counter, value: u32, sink: &mut dyn Sink) {
        let told = self.counters.insert(counter, value);
        // The first value of what can be told from nothing, a replica's first version, is told too.
        let silent = if matches!(counter, Counter::Deploy(_)) { None } else { Some(0) };
        if told.or(silent) != Some(value) {
            sink.counter(self.now, counter, value);
        }
    }
}

/// The sample is in the ledger, or left it with the last input.
fn is_there(sample: SampleId, core: &Scheduler) -> bool {
    core.sample(sample).is_some()
        || core.resolved().iter().any(|resolved| resolved.sample.id == sample)
}

fn version_on(core: &Scheduler, replica: ReplicaId) -> u32 {
    core.replica(replica).map_or(0, |replica| replica.deploy.number())
}

/// What an input says of the end of something: tokens, and how it ended.
fn end_of(input: &Input) -> (u32, &'static str) {
    let word = match input {
        Input::GenerationEnded { finish, segments, .. } => {
            let tokens = segments
                .iter()
                .fold(0, |sum: u32, Segment { tokens, .. }| sum.saturating_add(*tokens));
            return (
                tokens,
                match finish {
                    Finish::Stop => WHOLE,
                    Finish::Length => "token limit",
                    Finish::Aborted => "aborted",
                    Finish::Failed => "failed",
                },
            );
        }
        Input::EnvironmentEnded { outcome: EnvironmentOutcome::Failed, .. }
        | Input::VoteEnded { outcome: VoteOutcome::Failed, .. }
        | Input::StepEnded { ok: false, .. } => "failed",
        Input::VoteEnded { outcome: VoteOutcome::Invalid, .. } => "invalid",
        Input::Weights {
            event:
                WeightsEvent::SaveFailed
                | WeightsEvent::TransferFailed(_)
                | WeightsEvent::LoadFailed { .. },
            ..
        } => "failed",
        _ => WHOLE,
    };
    (0, word)
}
