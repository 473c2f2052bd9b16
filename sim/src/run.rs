//! One simulated run: the core and the world, until the scenario ends.

use std::io::Write;

use headway_shared::action::{Action, RunError};
use headway_shared::core::{Fate, Gauges, Resolved, Scheduler, Stall};
use headway_shared::digest::Digest;
use headway_shared::guard::{self, Guard, Verdict};
use headway_shared::input::{Input, Operator};
use headway_shared::metrics::{Observer, Summary};
use headway_shared::planted::{Plant, Planted};
use headway_shared::record::{Decisions, Header, Writer};
use headway_shared::time::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::drift::{self, Drift};
use crate::kernel::random::Key;
use crate::scenario::Scenario;
use crate::world::World;

/// The core's timers may go on when nothing else does: after so many that led to nothing, while
/// nothing was due in the world, nothing will happen any more.
const IDLE_TICKS: u32 = 1000;

/// An instant with more inputs than this will never end: something is asked and refused for ever
/// in no time.
const INPUTS_PER_INSTANT: u64 = 10_000_000;

/// Inputs between two times at which its progress is told: some milliseconds.
const TOLD_EVERY: u64 = 4096;

/// After fewer steps a long time without one may be chance.
const FEW_STEPS: u64 = 4;

/// What a run is asked for, beside its scenario.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// Where the run's record goes.
    pub record: Option<&'a mut (dyn Write + 'a)>,
    /// Time between two rows of the series; zero: no series.
    pub series_interval: Span,
    /// The run ends after so many inputs at the latest; zero: no such limit.
    pub max_inputs: u64,
    /// After so many inputs nothing breaks any more, and no new session comes; zero: never.
    pub calm_after: u64,
    /// Sees what the observer of the metrics sees: each input with its time, the actions that it
    /// caused, and the core after it.
    pub watch: Option<&'a mut Watch<'a>>,
    /// Is told by how many thousandths the run is further, now and then.
    pub progress: Option<&'a (dyn Fn(i32) + 'a)>,
    /// Where the core is left when the run is over.
    pub core: Option<&'a mut Option<Scheduler>>,
    /// A bug, where tests can plant one.
    pub plant: Plant,
}

/// Who else watches a run.
pub type Watch<'a> = dyn FnMut(Time, &Input, &[Action], &Scheduler) + 'a;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ended {
    /// Its time was over.
    Duration,
    /// It had made its train steps.
    Steps,
    /// All that its clients had to ask was done.
    Exhausted,
    /// Nothing could happen any more, though clients waited for something; or one instant never
    /// ended.
    Stalled(Stall),
    /// The core could not go on.
    Failed(RunError),
    /// It had handled `max_inputs`.
    MaxInputs,
}

/// A run that goes on and trains no more: requests keep coming, so that it never stalls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Silence {
    /// When its last train step ended.
    pub since: Time,
    /// The loop that blocked at its end.
    pub end: Stall,
}

/// How a run went, train step by train step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Mean head staleness of the samples of each step that made a version, in versions.
    pub staleness: Vec<f64>,
    /// How many of them the warm-up dropped.
    pub dropped: usize,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Its metrics, from the end of the warm-up on.
    pub summary: Summary,
    /// The digest of all decisions and their times.
    pub digest: Digest,
    /// Facts that the core was told.
    pub inputs: u64,
    /// Decisions that the core took.
    pub actions: u64,
    /// Things that were due in the world, stale wakes included.
    pub world_events: u64,
    /// Samples trained, in the warm-up too.
    pub trained: u64,
    /// When it ended.
    pub end: Time,
    /// The warm-up was over before the run was.
    pub warm: bool,
    /// Its train steps, those of the warm-up included.
    pub course: Course,
    /// What `[world.drift]` predicts of ratios, where the scenario has it.
    pub drift: Option<Drift>,
    /// It had trained, and then went on for more than half of its time without.
    pub silence: Option<Silence>,
    /// What its guard found, where the scenario has one.
    pub guard: Option<guard::Found>,
    /// Why it ended.
    pub ended: Ended,
}

/// Why a run gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum RunFailure {
    /// The core could not go on.
    #[error("the run could not go on at {at}: {error}")]
    Core {
        /// When.
        at: Time,
        /// Why.
        error: RunError,
        /// What it had given until then.
        result: Box<RunResult>,
    },
    /// The record could not be written.
    #[error("the record could not be written: {0}")]
    Record(#[from] std::io::Error),
}

impl Ended {
    /// Every [word](Self::word).
    pub const WORDS: [&'static str; 6] =
        ["duration", "steps", "exhausted", "stalled", "failed", "max_inputs"];

    /// It in a word, as results have it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Duration => "duration",
            Self::Steps => "steps",
            Self::Exhausted => "exhausted",
            Self::Stalled(_) => "stalled",
            Self::Failed(_) => "failed",
            Self::MaxInputs => "max_inputs",
        }
    }
}

impl Silence {
    /// Whether it would have lasted for ever: nothing serves any more.
    #[must_use]
    pub const fn is_for_good(&self) -> bool {
        matches!(self.end, Stall::NoReplica)
    }
}

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "trained nothing after {}: {}", self.since, self.end)
    }
}

/// Runs one replication of a scenario.
///
/// Equal scenario, seed and replication give equal results, byte by byte. Two scenarios at one
/// seed and replication see the same lengths and times wherever their worlds agree.
///
/// # Errors
/// If the core ends the run, or the record cannot be written.
pub fn simulate<'a>(
    scenario: &'a Scenario,
    replication: u32,
    options: RunOptions<'a>,
) -> Result<RunResult, RunFailure> {
    let RunOptions { record, series_interval, max_inputs, mut calm_after, plant, .. } = options;
    let mut run = Run::new(scenario, replication, series_interval, record)?;
    (run.watch, run.left, run.plant) = (options.watch, options.core, plant);
    let mut gauge = Gauge::new(options.progress);
    run.core.plant(plant);
    let end = Time::ZERO + scenario.duration;
    let mut idle_ticks = 0;
    let ended = loop {
        if run.steps_done() {
            break Ended::Steps;
        }
        gauge.tell(&run);
        if run.instant.1 > INPUTS_PER_INSTANT {
            break Ended::Stalled(run.core.stall());
        }
        if max_inputs > 0 && run.decisions.inputs >= max_inputs {
            break Ended::MaxInputs;
        }
        if calm_after > 0 && run.decisions.inputs >= calm_after {
            run.world.calm();
            calm_after = 0;
        }
        if let Some(error) = run.failed {
            break Ended::Failed(error);
        }
        if let Some(input) = run.world.next_input() {
            run.handle(&input)?;
            run.world.recycle(input);
            continue;
        }
        match (run.world.next_time(), run.tick()) {
            (None, None) => break run.nothing_left(),
            (Some(event), tick) if tick.is_none_or(|tick| event <= tick) => {
                if event > end {
                    break Ended::Duration;
                }
                run.world.advance();
            }
            (event, Some(tick)) => {
                if idle_ticks > IDLE_TICKS || (tick > end && idle_ticks > 0) {
                    break run.nothing_left();
                }
                if tick > end {
                    break Ended::Duration;
                }
                run.world.pass_until(tick);
                run.handle(&Input::Tick)?;
                let idle = event.is_none() && run.actions.is_empty();
                idle_ticks = if idle { idle_ticks + 1 } else { 0 };
            }
            // The first arm of this pattern takes what is left.
            (Some(_), None) => break Ended::Duration,
        }
    };
    if ended == Ended::Duration {
        run.world.pass_until(end);
    }
    run.finish(ended)
}

/// Tells how far a run is.
struct Gauge<'a> {
    progress: Option<&'a (dyn Fn(i32) + 'a)>,
    told: i32,
    /// The number of inputs at which it is told again.
    next: u64,
}

impl<'a> Gauge<'a> {
    const fn new(progress: Option<&'a (dyn Fn(i32) + 'a)>) -> Self {
        Self { progress, told: 0, next: TOLD_EVERY }
    }

    fn tell(&mut self, run: &Run<'_>) {
        let inputs = run.decisions.inputs;
        if let Some(progress) = self.progress.filter(|_| inputs >= self.next) {
            self.next = inputs + TOLD_EVERY;
            let done = run.thousandths();
            progress(done - self.told);
            self.told = done;
        }
    }
}

struct Run<'a> {
    scenario: &'a Scenario,
    core: Scheduler,
    world: World,
    observer: Observer,
    drift: Option<drift::Observer>,
    warm: bool,
    /// Train steps so far, and when the last one ended.
    steps: (u64, Time),
    course: Course,
    failed: Option<RunError>,
    /// The present instant, and its inputs so far.
    instant: (Time, u64),
    /// Actions that the world was told.
    applied: u64,
    /// An input was handled since `tick` was asked for.
    handled: bool,
    tick: Option<Time>,
    actions: Vec<Action>,
    decisions: Decisions,
    record: Option<Writer<&'a mut (dyn Write + 'a)>>,
    watch: Option<&'a mut Watch<'a>>,
    left: Option<&'a mut Option<Scheduler>>,
    plant: Plant,
    guard: Option<Guard>,
}

impl<'a> Run<'a> {
    fn new(
        scenario: &'a Scenario,
        replication: u32,
        series_interval: Span,
        record: Option<&'a mut (dyn Write + 'a)>,
    ) -> Result<Self, RunFailure> {
        let Scenario { name, seed, config, world, drift, guard, .. } = scenario;
        // The scenario is no part of the key: two scenarios at one seed can be compared in pairs.
        let key = Key::new(*seed, Digest::new(), replication);
        let header = Header::new(name, scenario.digest(), *seed, replication, config);
        let core = Scheduler::new(config.clone());
        let guard = guard.clone().map(|guard| Guard::new(guard, Time::ZERO, &core));
        Ok(Self {
            scenario,
            guard,
            core,
            world: World::new(world, config, key),
            observer: Observer::new(config, series_interval),
            drift: drift
                .as_ref()
                .map(|model| drift::Observer::new(model, key, world.replicas_ever())),
            warm: scenario.warmup == Default::default(),
            steps: (0, Time::ZERO),
            course: Course::default(),
            failed: None,
            instant: (Time::ZERO, 0),
            applied: 0,
            handled: true,
            tick: None,
            actions: Vec::new(),
            decisions: Decisions::default(),
            record: record.map(|out| Writer::new(out, &header)).transpose()?,
            watch: None,
            left: None,
            plant: Plant::default(),
        })
    }

    /// When the core wants to be called. Only handling an input changes it.
    fn tick(&mut self) -> Option<Time> {
        if self.handled {
            self.handled = false;
            self.tick = self.core.poll_timeout();
        }
        self.tick
    }

    fn handle(&mut self, input: &Input) -> Result<(), RunFailure> {
        let now = self.world.now();
        self.handled = true;
        let before = if self.instant.0 == now { self.instant.1 } else { 0 };
        self.instant = (now, before + 1);
        self.core.handle(now, input);
        self.actions.clear();
        while let Some(action) = self.core.poll_action() {
            self.actions.push(action);
        }
        self.decisions.add(now, &self.actions);
        if let Some(record) = &mut self.record {
            record.input(now, input, &self.actions)?;
        }
        self.observer.observe(now, input, &self.actions, &self.core);
        if let Some(watch) = &mut self.watch {
            watch(now, input, &self.actions, &self.core);
        }
        if let Some(drift) = &mut self.drift {
            let world = &self.world;
            drift.observe(input, &self.actions, &self.core, |sample| world.entity(sample));
            if let Input::StepEnded { step, .. } = *input
                && let Some(signals) = drift.take_signals()
            {
                self.world.tell(Input::Measured(signals.of(step)));
            }
        }
        for &action in &self.actions {
            if let Action::Fail { error } = action {
                self.failed = Some(error);
            }
            self.applied += 1;
            if !(self.plant.is(Planted::ActionDropped) && self.applied.is_multiple_of(100)) {
                self.world.apply(action, &self.core);
            }
        }
        if let Some(guard) = &mut self.guard
            && let Some(report) = guard.observe(now, input, &self.actions, &self.core)
            && report.verdict == Verdict::RollBack
            && let Some(previous) = guard.previous()
        {
            self.world.operate(Operator::Reconfigure(Box::new(previous.clone())));
        }
        self.world.forget(self.core.resolved());
        let steps = self.core.ledger().steps;
        if steps > self.steps.0 {
            self.steps = (steps, now);
            self.course.staleness.extend(trained_staleness(self.core.resolved()));
        }
        if !self.warm {
            self.warm_up(now);
        }
        Ok(())
    }

    /// Drops the metrics so far when the warm-up is over.
    fn warm_up(&mut self, now: Time) {
        let warmup = self.scenario.warmup;
        if self.core.ledger().steps >= u64::from(warmup.steps)
            && now.since(Time::ZERO) >= warmup.time
        {
            self.warm = true;
            self.course.dropped = self.course.staleness.len();
            self.observer.reset(now, &self.core);
            if let Some(drift) = &mut self.drift {
                drift.reset();
            }
        }
    }

    /// How much of the run is over, by its time or its train steps, whichever ends it first.
    fn thousandths(&self) -> i32 {
        let share = |done: u64, all: u64| u128::from(done) * 1000 / u128::from(all.max(1));
        let time = share(self.world.now().as_nanos(), self.scenario.duration.as_nanos());
        let steps = self.scenario.steps.map_or(0, |all| share(self.steps.0, all.into()));
        time.max(steps).min(1000) as i32
    }

    fn steps_done(&self) -> bool {
        self.scenario.steps.is_some_and(|steps| self.core.ledger().steps >= u64::from(steps))
    }

    /// Nothing will happen any more: all is done, or something blocks.
    fn nothing_left(&self) -> Ended {
        let Gauges { held, running, rollout_queue, votes, training, .. } = self.core.gauges();
        let waiting = held + running + rollout_queue + votes;
        // What is ready and too little for a batch is no sign of trouble at the end.
        if self.world.is_exhausted() && waiting == 0 && !training {
            return Ended::Exhausted;
        }
        Ended::Stalled(self.core.stall())
    }

    fn silence(&self, end: Time) -> Option<Silence> {
        let (steps, since) = self.steps;
        let late = end.since(since) > since.since(Time::ZERO);
        let silent = steps >= FEW_STEPS && late && !self.core.gauges().training;
        silent.then(|| Silence { since, end: self.core.stall() })
    }

    fn finish(self, ended: Ended) -> Result<RunResult, RunFailure> {
        let end = self.world.now();
        let silence = if ended == Ended::Duration { self.silence(end) } else { None };
        if let Some(record) = self.record {
            record.finish()?;
        }
        let summary = self.observer.summary(end, &self.core);
        let (summary, drift) = match &self.drift {
            Some(drift) => {
                let (summary, drift) = drift.finish(summary);
                (summary, Some(drift))
            }
            None => (summary, None),
        };
        let result = RunResult {
            summary,
            drift,
            digest: self.decisions.digest,
            inputs: self.decisions.inputs,
            actions: self.decisions.actions,
            world_events: self.world.events(),
            trained: self.core.ledger().trained,
            end,
            warm: self.warm,
            course: self.course,
            silence,
            guard: self.guard.map(|guard| guard.found().clone()),
            ended,
        };
        if let Some(left) = self.left {
            *left = Some(self.core);
        }
        match ended {
            Ended::Failed(error) => {
                Err(RunFailure::Core { at: end, error, result: Box::new(result) })
            }
            _ => Ok(result),
        }
    }
}

/// Mean head staleness of the samples that were trained.
fn trained_staleness(resolved: &[Resolved]) -> Option<f64> {
    let trained = resolved.iter().filter(|resolved| resolved.fate == Fate::Trained);
    let (count, sum) = trained.fold((0_u32, 0_u64), |(count, sum), resolved| {
        (count + 1, sum + u64::from(resolved.sample.staleness_head()))
    });
    (count > 0).then(|| sum as f64 / f64::from(count))
}
