//! What was generated, and what became of its tokens.
//!
//! The core counts turns; tokens are counted here, attempt by attempt, because an attempt that is
//! resumed reports the tokens of those before it again, and one that starts again from nothing
//! loses them. A sample's tokens are summed over its turns, which can be many, so that a discarded
//! trajectory wastes all that it had.

use super::histogram::Histogram;
use super::idtable::IdTable;
use crate::action::{Action, Reply};
use crate::config::SampleUnit;
use crate::core::{Fate, Resolved, Scheduler};
use crate::id::{ReplicaId, RequestId, SampleId};
use crate::input::{Finish, Input, Segments};

/// A turn whose generation has started and is not over.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// The sample it began for.
    sample: Option<SampleId>,
    /// This attempt is for a sample.
    trains: bool,
    replica: ReplicaId,
    attempt: u32,
    /// Tokens that are counted, and that a resumed attempt will report again.
    counted: u64,
    /// Its terminal input has not come.
    running: bool,
    /// Its client has its answer or is gone; only the terminal input is awaited.
    over: bool,
}

/// Sums since the last reset.
#[derive(Clone, Debug, Default)]
pub(super) struct Generated {
    /// Tokens generated, side turns included.
    pub(super) tokens: u64,
    /// Tokens of turns for training that will never be trained.
    pub(super) wasted: u64,
    /// Lengths of samples whose generation ended whole.
    pub(super) lengths: Histogram,
    /// Turns for training that ended whole.
    pub(super) turns: u64,
    /// Sum over them of the serving skew.
    pub(super) skew: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    turns: IdTable<Turn>,
    /// Tokens of each sample, those of lost attempts left out. What a turn generates for a sample
    /// that is not here any more is wasted: it goes on for a client that reads along.
    samples: IdTable<u64>,
    pub(super) since_reset: Generated,
}

impl Turns {
    pub(super) fn reset(&mut self) {
        let sums = &mut self.since_reset;
        (sums.tokens, sums.wasted) = (0, 0);
        (sums.turns, sums.skew) = (0, 0);
        sums.lengths.clear();
    }

    pub(super) fn observe(&mut self, input: &Input, actions: &[Action], scheduler: &Scheduler) {
        let ended = self.count(input);
        self.resolve(scheduler);
        match input {
            Input::GenerationEnded { finish, segments, .. } => {
                self.finished(ended, *finish, segments, actions, scheduler);
            }
            Input::ClientLeft { request } => self.leave(request.0),
            Input::ReplicaDown { replica } => self.replica_down(*replica),
            _ => {}
        }
        for action in actions {
            match *action {
                Action::Reply { request, .. } => self.leave(request.0),
                Action::StartGeneration { request, attempt, replica, sample, resume } => {
                    let turn = Turn { sample, replica, attempt, ..Turn::default() };
                    self.started(request.0, turn, resume);
                }
                _ => {}
            }
        }
    }

    /// Counts the tokens of an attempt that those before it had not. The turn that ended, if it is one
    /// in flight.
    fn count(&mut self, input: &Input) -> Option<(RequestId, Turn)> {
        let Input::GenerationEnded { request, attempt, segments, .. } = input else { return None };
        let turn = self.turns.get(request.0).filter(|turn| turn.attempt == *attempt)?;
        let tokens = tokens_of(segments);
        let new = tokens.saturating_sub(turn.counted);
        self.since_reset.tokens += new;
        if let Some(sample) = turn.sample {
            match self.samples.get(sample.0) {
                Some(of_sample) => *of_sample += new,
                None => self.since_reset.wasted += new,
            }
        }
        turn.counted = turn.counted.max(tokens);
        turn.running = false;
        Some((*request, *turn))
    }

    /// What was generated of a discarded sample is wasted; what its turns still in flight will add
    /// follows when they end.
    fn resolve(&mut self, scheduler: &Scheduler) {
        let trajectories = scheduler.config().policy_training.sample_unit == SampleUnit::Session;
        for Resolved { sample, fate } in scheduler.resolved() {
            let tokens = self.samples.remove(sample.id.0).unwrap_or(u64::from(sample.tokens));
            if matches!(fate, Fate::Discarded(_)) {
                self.since_reset.wasted += tokens;
            }
            // How long a trajectory is, is known when its session has ended.
            if trajectories && sample.is_whole() {
                self.since_reset.lengths.add(u64::from(sample.tokens));
            }
        }
    }

    fn finished(
        &mut self,
        ended: Option<(RequestId, Turn)>,
        finish: Finish,
        segments: &Segments,
        actions: &[Action],
        scheduler: &Scheduler,
    ) {
        let Some((request, turn)) = ended else { return };
        let kept = Action::Reply { request, reply: Reply::Partial };
        let whole = match finish {
            Finish::Stop | Finish::Length => true,
            // `aborted = "keep_as_final"`: what there is counts as the whole turn.
            Finish::Aborted => actions.contains(&kept),
            Finish::Failed => false,
        };
        if whole && turn.trains && turn.counted > 0 {
            if scheduler.config().policy_training.sample_unit == SampleUnit::Turn {
                self.since_reset.lengths.add(turn.counted);
            }
            self.since_reset.turns += 1;
            let deploy = scheduler.replica(turn.replica).map(|replica| replica.deploy);
            let head = segments.first().map(|segment| segment.version);
            let skew = deploy.zip(head).and_then(|(deploy, head)| deploy.skew_of(head));
            self.since_reset.skew += u64::from(skew.unwrap_or(0));
        }
        if turn.over || finish != Finish::Aborted {
            self.turns.remove(request.0);
        }
    }

    fn started(&mut self, request: u64, mut turn: Turn, resume: bool) {
        (turn.running, turn.trains) = (true, turn.sample.is_some());
        let Some(before) = self.turns.get(request) else {
            if let Some(sample) = turn.sample {
                self.samples.add(sample.0, 0);
            }
            return self.turns.set(request, turn);
        };
        turn.sample = turn.sample.or(before.sample);
        if resume {
            turn.counted = before.counted;
        } else if let Some(sample) = before.sample
            && let Some(of_sample) = self.samples.get(sample.0)
        {
            *of_sample -= before.counted.min(*of_sample);
            self.since_reset.wasted += before.counted;
        }
        *before = turn;
    }

    /// Nobody waits for the turn any more; it stays until its terminal input.
    fn leave(&mut self, request: u64) {
        if let Some(turn) = self.turns.get(request) {
            turn.over = true;
            if !turn.running {
                self.turns.remove(request);
            }
        }
    }

    /// The terminal input of all that ran there; what it had generated there is never reported.
    fn replica_down(&mut self, replica: ReplicaId) {
        self.turns.retain(|turn| {
            if turn.replica != replica {
                return true;
            }
            turn.running = false;
            !turn.over
        });
    }
}

fn tokens_of(segments: &Segments) -> u64 {
    segments.iter().map(|segment| u64::from(segment.tokens)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::input::Segment;
    use crate::version::RolloutVersion;

    const REQUEST: RequestId = RequestId(1);

    struct Run {
        turns: Turns,
        scheduler: Scheduler,
    }

    impl Run {
        fn new() -> Self {
            Self { turns: Turns::default(), scheduler: Scheduler::new(Config::default()) }
        }

        fn see(&mut self, input: &Input, actions: &[Action]) {
            self.turns.observe(input, actions, &self.scheduler);
        }

        fn ended(&mut self, attempt: u32, finish: Finish, tokens: u32, actions: &[Action]) {
            let segment = Segment { version: RolloutVersion::new(0), tokens };
            let segments = std::iter::once(segment).collect();
            let input = Input::GenerationEnded {
                request: REQUEST,
                attempt,
                finish,
                first_token: None,
                segments,
            };
            self.see(&input, actions);
        }

        /// Tokens generated, wasted, and the number of whole turns; nothing is in flight.
        fn over(&mut self) -> (u64, u64, u64) {
            assert!(self.turns.turns.get(REQUEST.0).is_none(), "the turn is forgotten");
            let sums = &self.turns.since_reset;
            (sums.tokens, sums.wasted, sums.turns)
        }
    }

    fn start(attempt: u32, resume: bool) -> Action {
        let (replica, sample) = (ReplicaId(0), Some(SampleId(0)));
        Action::StartGeneration { request: REQUEST, attempt, replica, sample, resume }
    }

    fn reply(reply: Reply) -> Action {
        Action::Reply { request: REQUEST, reply }
    }

    #[test]
    fn tokens_of_a_resumed_turn_count_once() {
        let mut run = Run::new();
        run.see(&Input::Tick, &[start(1, false)]);
        run.ended(1, Finish::Aborted, 30, &[]);
        run.see(&Input::Tick, &[start(2, true)]);
        run.ended(2, Finish::Stop, 100, &[reply(Reply::Complete)]);
        assert_eq!(run.over(), (100, 0, 1));
    }

    #[test]
    fn tokens_before_a_restart_are_wasted() {
        let mut run = Run::new();
        run.see(&Input::Tick, &[start(1, false)]);
        run.ended(1, Finish::Aborted, 30, &[start(2, false)]);
        run.ended(2, Finish::Stop, 100, &[reply(Reply::Complete)]);
        assert_eq!(run.over(), (130, 30, 1));
    }

    #[test]
    fn a_partial_turn_that_is_kept_counts_as_whole() {
        let mut run = Run::new();
        run.see(&Input::Tick, &[start(1, false)]);
        run.ended(1, Finish::Aborted, 30, &[reply(Reply::Partial)]);
        assert_eq!(run.over(), (30, 0, 1));
    }

    #[test]
    fn a_completion_that_comes_twice_or_late_counts_once() {
        let mut run = Run::new();
        run.see(&Input::Tick, &[start(1, false)]);
        run.ended(1, Finish::Aborted, 30, &[start(2, false)]);
        run.ended(1, Finish::Aborted, 30, &[]);
        run.ended(2, Finish::Stop, 100, &[reply(Reply::Complete)]);
        run.ended(2, Finish::Stop, 100, &[]);
        assert_eq!(run.over(), (130, 30, 1));
    }

    #[test]
    fn a_turn_whose_client_left_is_awaited_until_its_abort_is_done() {
        let mut run = Run::new();
        run.see(&Input::Tick, &[start(1, false)]);
        run.see(&Input::ClientLeft { request: REQUEST }, &[]);
        run.ended(1, Finish::Aborted, 30, &[]);
        assert_eq!(run.over(), (30, 0, 0), "only its discard would make them wasted");
    }

    #[test]
    fn a_turn_that_is_lost_with_its_replica_is_forgotten() {
        let mut run = Run::new();
        run.see(&Input::Tick, &[start(1, false)]);
        let down = Input::ReplicaDown { replica: ReplicaId(0) };
        run.see(&down, &[reply(Reply::Failed)]);
        assert_eq!(run.over(), (0, 0, 0));
    }
}
