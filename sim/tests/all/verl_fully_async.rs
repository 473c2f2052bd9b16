//! One world for a published table: verl's fully asynchronous recipe on 64 and 128 GPUs.
//!
//! What training takes is a row's own, as published. Two numbers, the scale of the decode times and
//! the time without serving at each weight sync, were fitted to the steps of the rows 64:64 with
//! thresholds 0 and 0.5; every other step time follows.

use std::sync::LazyLock;

use headway_sim::run::{RunOptions, simulate};
use headway_sim::scenario::Scenario;
use headway_sim::stats::estimate;
use headway_sim::sweep::replicate;
use headway_sim::world::settings::StepTime;

use super::committed;
use super::validation::{Role, Row};
use super::world_support::load_shipped;

pub(crate) const SOURCE: &str = "verl";
/// Prompts of a published step: those of a sync period.
const PROMPTS: u32 = 512;
/// Published steps that are measured, and those before them.
const MEASURED: u32 = 4;
const WARM_UP: u32 = 2;
const REPLICATIONS: u32 = 4;
/// Seconds of a published step that are neither waiting nor training.
const REST: f64 = 4.0;
/// A prediction should be as near as this share of what was published.
const TOLERANCE: f64 = 0.10;

const FITTED: &str =
    "scale of the decode times and time without serving per sync were fitted to both such rows";
const PREDICTED: &str =
    "nothing was fitted to it, but the second fitted number was chosen with it in sight";

/// A row of the table, in seconds per step.
#[derive(Clone, Copy, Debug)]
struct Published {
    case: &'static str,
    name: &'static str,
    step: f64,
    /// The trainer waits for samples (synchronous: generation).
    wait: f64,
    /// Old log-probabilities and update.
    train: f64,
    role: Role,
    /// Whether the prediction is held to the tolerance.
    held: bool,
    note: &'static str,
}

const PUBLISHED: [Published; 7] = [
    Published {
        case: "sync-64",
        name: "sync 64",
        step: 365.28,
        wait: 150.72,
        train: 70.26 + 133.41,
        role: Role::Predicted,
        held: false,
        note: "generation was faster on 64 GPUs than on 128, so its lengths were others",
    },
    Published {
        case: "async-32-32-0.5",
        name: "32:32 s 0.5",
        step: 189.26,
        wait: 28.46,
        train: 156.98,
        role: Role::Predicted,
        held: false,
        note: "by half of the replicas",
    },
    Published {
        case: "sync-128",
        name: "sync 128",
        step: 356.30,
        wait: 177.85,
        train: 53.92 + 113.81,
        role: Role::Predicted,
        held: false,
        note: "generation was slower on 128 GPUs than on 64, so its lengths were others",
    },
    Published {
        case: "async-64-64-0.5",
        name: "64:64 s 0.5",
        step: 150.63,
        wait: 33.14,
        train: 113.16,
        role: Role::Fitted,
        held: true,
        note: FITTED,
    },
    Published {
        case: "async-64-64-0",
        name: "64:64 s 0",
        step: 231.34,
        wait: 128.47,
        train: 98.77,
        role: Role::Fitted,
        held: true,
        note: FITTED,
    },
    Published {
        case: "async-64-64-0.1",
        name: "64:64 s 0.1",
        step: 171.30,
        wait: 58.17,
        train: 109.12,
        role: Role::Predicted,
        held: true,
        note: PREDICTED,
    },
    Published {
        case: "async-64-64-0.3",
        name: "64:64 s 0.3",
        step: 146.11,
        wait: 38.88,
        train: 103.22,
        role: Role::Predicted,
        held: true,
        note: PREDICTED,
    },
];

/// What the simulated row gives, in seconds per step.
#[derive(Clone, Copy, Debug)]
struct Simulated {
    step: f64,
    /// The trainer waits for samples.
    wait: f64,
    train: f64,
}

/// Train steps of a case that make a published step.
fn steps_per_published(scenario: &Scenario) -> u32 {
    let batch = scenario.config.policy_training.batch_size;
    assert_eq!(PROMPTS % batch, 0, "a published step is whole train steps");
    PROMPTS / batch
}

fn measure(scenario: &Scenario, replication: u32) -> Simulated {
    let result = simulate(scenario, replication, RunOptions::default()).unwrap();
    let get = |metric: &str| result.summary.get(metric).unwrap();
    let steps = f64::from(steps_per_published(scenario));
    let step = steps * 3600.0 / get("steps_per_hour");
    let idle = step * get("trainer_idle_share");
    Simulated { step, wait: idle - REST, train: step - idle }
}

/// A case of the scenario, shorter.
fn case(name: &str) -> Scenario {
    let (scenario, _) = load_shipped("verl-fully-async");
    let case = scenario.cases.iter().find(|case| case.name == name).unwrap();
    let (case, _) = scenario.with_sets(&case.set).unwrap();
    let steps = steps_per_published(&case);
    let run = [
        format!("scenario.steps={}", (MEASURED + WARM_UP) * steps),
        format!("scenario.warmup_steps={}", WARM_UP * steps),
    ];
    case.with_sets(&run).unwrap().0
}

/// The same with a trainer that takes so long per published step.
fn with_training(scenario: &Scenario, published: f64, seconds: f64) -> Scenario {
    let StepTime::Tokens { base_sec, .. } = scenario.world.trainer.step else { panic!("a law") };
    let more = (seconds - published) / f64::from(steps_per_published(scenario));
    scenario.with_sets(&[format!("world.trainer.base_sec={}", base_sec + more)]).unwrap().0
}

/// The predicted rows once more, as if nothing of them had been published: with the mean training
/// time of the rows that were fitted to.
fn unknown_training() -> impl Iterator<Item = (&'static Published, Scenario)> {
    let fitted = PUBLISHED.iter().filter(|row| row.role == Role::Fitted).map(|row| row.train);
    let mean = fitted.sum::<f64>() / 2.0;
    let predicted = PUBLISHED.iter().filter(|row| row.held && row.role == Role::Predicted);
    predicted.map(move |row| (row, with_training(&case(row.case), row.train, mean)))
}

/// Every case, those with unknown training last.
fn runs() -> &'static [Vec<Simulated>] {
    static RUNS: LazyLock<Vec<Vec<Simulated>>> = LazyLock::new(|| {
        let cases = PUBLISHED.iter().map(|row| case(row.case));
        let cases: Vec<Scenario> = cases.chain(unknown_training().map(|(_, case)| case)).collect();
        let work = |case: usize, replication| measure(&cases[case], replication);
        replicate(cases.len(), 0..REPLICATIONS, 0, work, || ()).unwrap()
    });
    &RUNS
}

/// The rows of this source, simulated once for all tests.
pub(crate) fn rows() -> &'static [Row] {
    static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
        let known = || PUBLISHED.iter().zip(runs());
        let unknown = unknown_training().map(|(row, _)| row).zip(&runs()[PUBLISHED.len()..]);
        let steps = known().map(|(published, runs)| row(published, runs, "step"));
        let waits = known().map(|(published, runs)| row(published, runs, "wait for samples"));
        let unknown = unknown.map(|(published, runs)| Row {
            quantity: "step, training time not given",
            note: "training takes the mean of the two fitted rows",
            ..row(published, runs, "step")
        });
        steps.chain(waits).chain(unknown).collect()
    });
    &ROWS
}

fn row(published: &Published, runs: &[Simulated], quantity: &'static str) -> Row {
    let (value, of): (f64, fn(&Simulated) -> f64) = match quantity {
        "step" => (published.step, |run| run.step),
        _ => (published.wait, |run| run.wait),
    };
    let step = quantity == "step";
    let values: Vec<f64> = runs.iter().map(of).collect();
    Row {
        source: SOURCE,
        case: published.name.to_owned(),
        quantity,
        unit: "s",
        published: value,
        predicted: estimate(&values).unwrap(),
        tolerance: (step && published.held).then_some(TOLERANCE * value),
        role: published.role,
        note: if step { published.note } else { "" },
    }
}

#[test]
fn the_published_steps_come_out_of_one_world() {
    for row in rows() {
        println!("{} {}: {:.1} for {}", row.case, row.quantity, row.predicted.mean, row.published);
    }
    for row in rows().iter().filter(|row| row.tolerance.is_some()) {
        assert_eq!(row.inside(), Some(true), "{row:?}");
    }
    let steps: Vec<f64> =
        rows().iter().filter(|row| row.quantity == "step").map(|row| row.predicted.mean).collect();
    let [sync_64, async_64, sync_128, s50, s0, s10, s30] = steps[..] else { panic!("{steps:?}") };
    assert!(sync_64 / async_64 > 1.5, "half of the GPUs each, and faster: published 1.93");
    assert!(sync_128 / s50 > 1.9, "published 2.37");
    assert!(sync_128 / s0 > 1.3, "streaming alone: published 1.54");
    assert!(s0 > 1.15 * s10 && s10 > s30, "a little staleness buys most of it");
    assert!((s30 / s50 - 1.0).abs() < 0.1, "beyond 0.3 nothing is gained");
}

#[test]
fn training_takes_as_long_as_in_the_row() {
    for (published, runs) in PUBLISHED.iter().zip(runs()) {
        let train = runs.iter().map(|run| run.train).sum::<f64>() / f64::from(REPLICATIONS);
        // A synchronous step has a constant beside it that is part of its training here.
        let rest = published.step - published.wait - published.train;
        let given = published.train + if rest > 8.0 { rest - 4.0 } else { 0.0 };
        assert!((train / given - 1.0).abs() < 0.02, "{published:?}: {train}");
    }
}

#[test]
fn the_rows_are_those_of_the_published_file() {
    let Some(published) = committed::beside("validation/verl_fully_async_7b.csv") else { return };
    let rows = published.lines().filter(|line| !line.starts_with('#')).skip(1);
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), PUBLISHED.len());
    for (row, cells) in PUBLISHED.iter().zip(&rows) {
        let [mode, rollout, train, threshold, step, wait, old, update, _] = cells[..] else {
            panic!("{cells:?}")
        };
        let number = |cell: &str| if cell.is_empty() { 0.0 } else { cell.parse::<f64>().unwrap() };
        assert_eq!([step, wait].map(number), [row.step, row.wait]);
        assert!((number(old) + number(update) - row.train).abs() < 1e-9, "{row:?}");
        let case = case(row.case);
        assert_eq!(4 * case.world.serving.replicas, rollout.parse::<u32>().unwrap(), "{row:?}");
        match mode {
            "sync" => assert!(row.case.ends_with(train), "{row:?}"),
            _ => assert_eq!(
                case.config.policy_training.staleness_threshold,
                (number(threshold) * 1e6) as u32,
                "{row:?}"
            ),
        }
    }
}
