//! Staleness without a bound, against what others measured, their closed form, and where that does
//! not hold against a derivation of our own (`docs/accuracy.md`).
//!
//! The cases of `scenarios/applied-compute.toml` are simulated as the scenario says, and the
//! staleness of a group is read off every train step: version at its start minus version at which
//! the group's first member started.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use headway_shared::action::Action;
use headway_shared::core::Scheduler;
use headway_shared::digest::Digest;
use headway_shared::input::Input;
use headway_sim::kernel::random::{Component, Key, Stream};
use headway_sim::kernel::sampler::Distribution;
use headway_sim::scenario::Scenario;
use headway_sim::stats::estimate;
use headway_sim::sweep::replicate;
use headway_sim::world::World;
use headway_sim::world::settings::{ClientKind, StepTime};

use super::committed;
use super::validation::{Role, Row};
use super::world_support::load_shipped;

pub(crate) const SOURCE: &str = "Applied Compute";
const FORMULA: &str = "Applied Compute's closed form";
const DERIVED: &str = "derivation";
const QUANTITY: &str = "mean staleness";
const UNIT: &str = "versions";

/// M and the measured staleness of the published cases, the scenario's first, in its order.
const PUBLISHED: [(f64, f64); 6] =
    [(1.42, 1.26), (1.43, 3.59), (1.44, 3.09), (1.42, 3.40), (1.42, 1.92), (1.45, 2.01)];
/// Seconds that a turn of mean length takes.
const MEAN_TURN: f64 = 100.0;
/// Members of a group.
const GROUP: usize = 8;
/// Draws behind an expectation.
const DRAWS: usize = 20_000;

/// A case, in the words of the closed form.
#[derive(Clone, Copy, Debug)]
struct Setting {
    slots: f64,
    batch: f64,
    queue: f64,
    rho: f64,
}

/// A case of the scenario.
struct Case {
    name: String,
    setting: Setting,
    /// M and what was measured, where it was.
    published: Option<(f64, f64)>,
    scenario: Scenario,
}

impl Setting {
    /// Read off what is simulated.
    fn of(scenario: &Scenario) -> Self {
        let ClientKind::Slots(slots) = &scenario.world.clients.kind else { panic!("no slots") };
        let StepTime::Time(step) = &scenario.world.trainer.step else { panic!("no step time") };
        let (slots, batch) = (f64::from(slots.slots), scenario.config.samples_per_batch() as f64);
        let queue = f64::from(scenario.config.queue.output.max_size) / batch;
        Self { slots, batch, queue, rho: step.mean() * slots / MEAN_TURN / batch }
    }

    /// M is the mean of the longest of a group over the mean length.
    fn closed_form(self, longest: f64) -> f64 {
        let Self { slots, batch, queue, rho } = self;
        if rho < 1.0 {
            slots * longest / batch + rho
        } else {
            slots * longest / (rho * batch) + (2.0 * queue + rho - 1.0) / (2.0 * rho)
        }
    }

    /// Seconds of a train step.
    fn step(self) -> f64 {
        self.rho * self.batch * MEAN_TURN / self.slots
    }

    /// Groups of a batch.
    fn groups(self) -> u32 {
        self.batch as u32 / GROUP as u32
    }

    fn derived(self, lengths: &Lengths<'_>) -> f64 {
        match (self.slots > 1.0, self.rho < 1.0) {
            (true, true) => {
                lengths.mean(|draw| draw.spread(self.slots)) / self.step() * self.rho + self.rho
            }
            (true, false) => 1.0 + lengths.mean(|draw| self.behind_a_full_queue(draw)),
            (false, true) => lengths.mean(|draw| self.one_slot_waits(draw)),
            (false, false) => 1.0 + lengths.mean(|draw| self.one_slot_overflows(draw)),
        }
    }

    /// Steps that end between a group's start and the one that takes it, which it does not count:
    /// behind a full queue the oldest batch is q - 1 to q batches of arrivals old.
    fn behind_a_full_queue(self, draw: &mut Draw<'_>) -> f64 {
        let waits = (self.queue - draw.stream.uniform()) * self.step() / self.rho;
        libm::floor((waits + draw.spread(self.slots)) / self.step())
    }

    /// One slot and a trainer that waits: the share of a batch's groups that start before the step
    /// that began with the batch before has ended.
    fn one_slot_waits(self, draw: &mut Draw<'_>) -> f64 {
        let mut started = 0.0;
        let early = (0..self.groups()).filter(|_| {
            let early = started < self.step();
            started += draw.in_turn();
            early
        });
        early.count() as f64 / f64::from(self.groups())
    }

    /// One slot and a queue that overflows: steps that end between the starts of the oldest groups
    /// of the queue and the one that takes them. The group under way began before, and longer ones
    /// are met more often.
    fn one_slot_overflows(self, draw: &mut Draw<'_>) -> f64 {
        let under_way = draw.in_turn();
        let met = under_way / (GROUP as f64 * MEAN_TURN);
        let mut age = under_way * draw.stream.uniform();
        let kept = (self.queue * f64::from(self.groups())) as u32;
        let mut ends = 0.0;
        for place in 0..kept {
            age += draw.in_turn();
            if place + self.groups() >= kept {
                ends += libm::floor(age / self.step());
            }
        }
        met * ends / f64::from(self.groups())
    }
}

/// What the lengths of a case give a group.
struct Lengths<'a>(&'a Distribution);

struct Draw<'a> {
    lengths: &'a Distribution,
    stream: Stream,
}

impl Lengths<'_> {
    fn mean(&self, value: impl Fn(&mut Draw<'_>) -> f64) -> f64 {
        let stream = Key::new(1, Digest::new(), 0).stream(Component::Request, 0);
        let mut draw = Draw { lengths: self.0, stream };
        (0..DRAWS).map(|_| value(&mut draw)).sum::<f64>() / DRAWS as f64
    }
}

impl Draw<'_> {
    /// Seconds of a turn.
    fn turn(&mut self) -> f64 {
        self.lengths.sample(&mut self.stream, 0) / self.lengths.mean() * MEAN_TURN
    }

    /// Seconds of a group whose members start as many slots become free.
    fn spread(&mut self, slots: f64) -> f64 {
        let end = |member: usize| member as f64 * MEAN_TURN / slots + self.turn();
        (0..GROUP).map(end).fold(0.0, f64::max)
    }

    /// Seconds of a group whose members follow each other.
    fn in_turn(&mut self) -> f64 {
        (0..GROUP).map(|_| self.turn()).sum()
    }
}

/// Mean staleness of the groups that one run trains after its warm-up.
fn staleness(scenario: &Scenario, replication: u32) -> f64 {
    let mut core = Scheduler::new(scenario.config.clone());
    let key = Key::new(scenario.seed, Digest::new(), replication);
    let mut world = World::new(&scenario.world, &scenario.config, key);
    let (mut sum, mut groups) = (0.0, 0.0);
    while core.ledger().steps < u64::from(scenario.steps.unwrap()) {
        let input = match world.next_input() {
            Some(input) => input,
            None => match (world.next_time(), core.poll_timeout()) {
                (Some(event), tick) if tick.is_none_or(|tick| event <= tick) => {
                    world.advance();
                    continue;
                }
                (_, tick) => {
                    // A closed loop never ends.
                    world.pass_until(tick.unwrap());
                    Input::Tick
                }
            },
        };
        core.handle(world.now(), &input);
        while let Some(action) = core.poll_action() {
            let warm = core.ledger().steps >= u64::from(scenario.warmup.steps);
            if warm && matches!(action, Action::StartStep { .. }) {
                let oldest = oldest_of_groups(&core);
                groups += oldest.len() as f64;
                sum += oldest.into_iter().map(f64::from).sum::<f64>();
            }
            world.apply(action, &core);
        }
        world.forget(core.resolved());
    }
    sum / groups
}

/// The staleness of the first member of each group of the step that starts.
fn oldest_of_groups(core: &Scheduler) -> Vec<u32> {
    let mut groups = BTreeMap::new();
    for sample in core.batch() {
        let oldest = groups.entry(sample.group).or_insert(0_u32);
        *oldest = sample.staleness_head().max(*oldest);
    }
    groups.into_values().collect()
}

fn cases() -> Vec<Case> {
    let (scenario, _) = load_shipped("applied-compute");
    let published = PUBLISHED.map(Some).into_iter().chain(std::iter::repeat(None));
    let case = |(case, published): (&headway_sim::scenario::Case, _)| {
        let (scenario, _) = scenario.with_sets(&case.set).unwrap();
        Case { name: case.name.clone(), setting: Setting::of(&scenario), published, scenario }
    };
    scenario.cases.iter().zip(published).map(case).collect()
}

/// The rows of this source, simulated once for all tests.
pub(crate) fn rows() -> &'static [Row] {
    static ROWS: LazyLock<Vec<Row>> = LazyLock::new(simulated);
    &ROWS
}

fn simulated() -> Vec<Row> {
    let cases = cases();
    let replications = 0..cases[0].scenario.replications;
    let work = |case: usize, replication| staleness(&cases[case].scenario, replication);
    let runs = replicate(cases.len(), replications, 0, work, || ()).unwrap();
    let predicted: Vec<_> = runs.iter().map(|runs| estimate(runs).unwrap()).collect();
    let row = |at: usize, source, published: f64, tolerance, note| Row {
        source,
        case: cases[at].name.clone(),
        quantity: QUANTITY,
        unit: UNIT,
        published,
        predicted: predicted[at],
        tolerance: Some(tolerance),
        role: Role::Predicted,
        note,
    };
    let hundredths = |value: f64| (value * 100.0).round() / 100.0;
    let measured = |(at, case): (usize, &Case)| {
        Some(row(at, SOURCE, case.published?.1, 0.40, "measured on Qwen3-8B"))
    };
    let formula = |(at, case): (usize, &Case)| {
        let value = hundredths(case.setting.closed_form(case.published?.0));
        Some(row(at, FORMULA, value, 0.03 * value + 0.05, ""))
    };
    let derived = |(at, case): (usize, &Case)| {
        let value = case.setting.derived(&Lengths(&case.scenario.world.clients.output_tokens));
        let value = (value * 1000.0).round() / 1000.0;
        row(at, DERIVED, value, 0.03 * value + 0.02, "")
    };
    let all = || cases.iter().enumerate();
    let rows = all().filter_map(measured).chain(all().filter_map(formula));
    rows.chain(all().map(derived)).collect()
}

#[test]
fn staleness_agrees_with_measurements_the_closed_form_and_the_derivation() {
    for row in rows() {
        assert_eq!(row.inside(), Some(true), "{row:?}");
    }
}

#[test]
fn the_closed_form_misses_the_edges_and_the_derivation_does_not() {
    let cases = cases();
    let edges = cases.iter().filter(|case| case.published.is_none());
    let far = edges.filter(|case| {
        let row = rows().iter().find(|row| row.source == DERIVED && row.case == case.name).unwrap();
        let longest = Lengths(&case.scenario.world.clients.output_tokens)
            .mean(|draw| (0..GROUP).map(|_| draw.turn()).fold(0.0, f64::max));
        let formula = case.setting.closed_form(longest / MEAN_TURN);
        println!(
            "{}: formula {formula:.3}, derived {}, simulated {:.3}",
            case.name, row.published, row.predicted.mean
        );
        row.error().abs() < (row.predicted.mean - formula).abs()
    });
    assert!(far.count() >= 4);
}

#[test]
fn the_rows_are_those_of_the_published_file() {
    let Some(published) = committed::beside("validation/applied_compute.csv") else { return };
    let published = published.lines().filter(|line| !line.starts_with('#')).skip(1);
    let cases = cases();
    let ours = cases.iter().filter_map(|case| {
        let Setting { slots, batch, queue, rho } = case.setting;
        let (longest, measured) = case.published?;
        let formula = case.setting.closed_form(longest);
        Some(format!("{slots},{batch},{queue},{rho:.2},{longest:.2},{formula:.2},{measured:.2}"))
    });
    assert!(ours.eq(published.map(str::to_owned)));
}

#[test]
fn the_lengths_of_each_case_have_its_ratio_of_longest_to_mean() {
    for case in cases() {
        let Some((longest, _)) = case.published else { continue };
        let lengths = Lengths(&case.scenario.world.clients.output_tokens);
        let ratio = lengths.mean(|draw| (0..GROUP).map(|_| draw.turn()).fold(0.0, f64::max));
        let ratio = ratio / MEAN_TURN;
        assert!((ratio - longest).abs() < 0.005, "{ratio} instead of {longest}: {}", case.name);
    }
}
