//! Staleness without a bound, against a closed form and against what others measured.
//!
//! The six cases of `scenarios/applied-compute.toml` are simulated as the scenario says, and the
//! staleness of a group is read off every train step: version at its start minus version at which
//! the group's first member started.

use std::collections::BTreeMap;

use headway_shared::action::Action;
use headway_shared::core::Scheduler;
use headway_shared::digest::Digest;
use headway_shared::input::Input;
use headway_sim::kernel::random::{Component, Key};
use headway_sim::kernel::sampler::Distribution;
use headway_sim::report::number;
use headway_sim::scenario::Scenario;
use headway_sim::stats::{Estimate, estimate};
use headway_sim::sweep::replicate;
use headway_sim::world::World;
use headway_sim::world::settings::{ClientKind, StepTime};

use super::committed;
use super::world_support::load_shipped;

/// M and the measured staleness of the published cases, in the scenario's order.
const PUBLISHED: [(f64, f64); 6] =
    [(1.42, 1.26), (1.43, 3.59), (1.44, 3.09), (1.42, 3.40), (1.42, 1.92), (1.45, 2.01)];
/// Seconds that a turn of mean length takes.
const MEAN_TURN: f64 = 100.0;

/// A case, in the words of the closed form.
#[derive(Clone, Copy, Debug)]
struct Setting {
    slots: f64,
    batch: f64,
    queue: f64,
    rho: f64,
    longest: f64,
}

impl Setting {
    /// Read off what is simulated; `longest` is what the case's lengths must give.
    fn of(scenario: &Scenario, longest: f64) -> Self {
        let ClientKind::Slots(slots) = &scenario.world.clients.kind else { panic!("no slots") };
        let StepTime::Time(step) = &scenario.world.trainer.step else { panic!("no step time") };
        let (slots, batch) = (f64::from(slots.slots), scenario.config.samples_per_batch() as f64);
        let queue = f64::from(scenario.config.queue.output.max_size) / batch;
        Self { slots, batch, queue, rho: step.mean() * slots / MEAN_TURN / batch, longest }
    }

    fn closed_form(self) -> f64 {
        let Self { slots, batch, queue, rho, longest } = self;
        if rho < 1.0 {
            slots * longest / batch + rho
        } else {
            slots * longest / (rho * batch) + (2.0 * queue + rho - 1.0) / (2.0 * rho)
        }
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

fn cases() -> Vec<(Setting, f64, Scenario)> {
    let (scenario, _) = load_shipped("applied-compute");
    assert_eq!(scenario.cases.len(), PUBLISHED.len());
    let case = |(case, (longest, measured)): (&headway_sim::scenario::Case, (f64, f64))| {
        let (scenario, _) = scenario.with_sets(&case.set).unwrap();
        (Setting::of(&scenario, longest), measured, scenario)
    };
    scenario.cases.iter().zip(PUBLISHED).map(case).collect()
}

#[test]
fn staleness_agrees_with_the_closed_form_and_with_measurements() {
    let cases = cases();
    let replications = 0..cases[0].2.replications;
    let work = |case: usize, replication| staleness(&cases[case].2, replication);
    let simulated = replicate(cases.len(), replications, 0, work, || ()).unwrap();
    let mut table = "C,B,q,rho,M,closed_form,measured,simulated,simulated_ci\n".to_owned();
    for ((setting, measured, _), simulated) in cases.iter().zip(&simulated) {
        let Setting { slots, batch, queue, rho, longest } = *setting;
        let Estimate { mean, half_width, .. } = estimate(simulated).unwrap();
        let closed_form = setting.closed_form();
        let row = [slots, batch, queue].map(number::text).join(",");
        let row = format!("{row},{rho:.2},{longest:.2},{closed_form:.2},{measured:.2}");
        assert!((mean - closed_form).abs() <= 0.03 * closed_form + 0.05, "{row}: {mean}");
        assert!((mean - measured).abs() <= 0.40, "{row}: {mean}");
        table += &format!("{row},{mean:.3},{:.3}\n", half_width.unwrap());
    }
    committed::check("results/applied_compute.csv", &table);
    if let Some(published) = committed::beside("validation/applied_compute.csv") {
        let published = published.lines().filter(|line| !line.starts_with('#'));
        for (ours, theirs) in table.lines().zip(published) {
            assert!(ours.starts_with(theirs), "{ours} is not about {theirs}");
        }
    }
}

#[test]
fn the_lengths_of_each_case_have_its_ratio_of_longest_to_mean() {
    const GROUPS: u64 = 40_000;
    for (setting, _, scenario) in cases() {
        let lengths: &Distribution = &scenario.world.clients.output_tokens;
        let mut stream = Key::new(1, Digest::new(), 0).stream(Component::Request, 0);
        let longest = (0..GROUPS).map(|_| {
            let members = (0..8).map(|_| lengths.sample(&mut stream, 0));
            members.fold(0.0, f64::max)
        });
        let ratio = longest.sum::<f64>() / GROUPS as f64 / lengths.mean();
        assert!((ratio - setting.longest).abs() < 0.005, "{ratio} instead of {setting:?}");
    }
}
