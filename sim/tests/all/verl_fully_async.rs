//! One world for a published table: verl's fully asynchronous recipe on 64 and 128 GPUs.
//!
//! Four numbers of three rows fix the world's train steps and its tail of lengths (the scenario says
//! which); the other rows, and how the rows lie to each other, are predicted.

use headway_sim::report::number;
use headway_sim::run::{RunOptions, simulate};
use headway_sim::scenario::Scenario;
use headway_sim::stats::estimate;
use headway_sim::sweep::replicate;

use super::committed;
use super::world_support::load_shipped;

/// Prompts of a published step: those of a sync period.
const PROMPTS: f64 = 512.0;
/// Published steps that are measured, and those before them.
const MEASURED: u32 = 6;
const WARM_UP: u32 = 2;
const REPLICATIONS: u32 = 2;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    case: &'static str,
    /// Seconds of a step.
    step: f64,
    /// Seconds in which the trainer does not train.
    wait: f64,
    /// Some of the row's numbers were fitted.
    fitted: bool,
}

const PUBLISHED: [Row; 7] = [
    Row { case: "sync-64", step: 365.28, wait: 150.72, fitted: true },
    Row { case: "async-32-32-0.5", step: 189.26, wait: 28.46, fitted: true },
    Row { case: "sync-128", step: 356.30, wait: 177.85, fitted: false },
    Row { case: "async-64-64-0.5", step: 150.63, wait: 33.14, fitted: true },
    Row { case: "async-64-64-0", step: 231.34, wait: 128.47, fitted: false },
    Row { case: "async-64-64-0.1", step: 171.30, wait: 58.17, fitted: false },
    Row { case: "async-64-64-0.3", step: 146.11, wait: 38.88, fitted: false },
];

/// Train steps of a case that make a published step.
fn steps_per_published(scenario: &Scenario) -> u32 {
    let batch = scenario.config.policy_training.batch_size;
    assert_eq!(512 % batch, 0, "a published step is whole train steps");
    512 / batch
}

/// Seconds per published step, and those of them in which the trainer does not train.
fn measure(scenario: &Scenario, replication: u32) -> (f64, f64) {
    let result = simulate(scenario, replication, RunOptions::default()).unwrap();
    let get = |metric: &str| result.summary.get(metric).unwrap();
    let prompts = get("steps_per_hour") * f64::from(scenario.config.policy_training.batch_size);
    let step = 3600.0 * PROMPTS / prompts;
    (step, step * get("trainer_idle_share"))
}

#[test]
fn the_published_table_comes_out_of_one_world() {
    let (scenario, _) = load_shipped("verl-fully-async");
    let cases: Vec<Scenario> = scenario
        .cases
        .iter()
        .zip(PUBLISHED)
        .map(|(case, row)| {
            assert_eq!(case.name, row.case);
            let (case, _) = scenario.with_sets(&case.set).unwrap();
            let steps = steps_per_published(&case);
            let run = [
                format!("scenario.steps={}", (MEASURED + WARM_UP) * steps),
                format!("scenario.warmup_steps={}", WARM_UP * steps),
            ];
            case.with_sets(&run).unwrap().0
        })
        .collect();
    let work = |case: usize, replication| measure(&cases[case], replication);
    let measured = replicate(cases.len(), 0..REPLICATIONS, 0, work, || ()).unwrap();
    let mut table =
        "case,fitted,published_step_sec,step_sec,error,published_wait_sec,wait_sec\n".to_owned();
    let mut steps = Vec::new();
    for (row, runs) in PUBLISHED.iter().zip(&measured) {
        let mean = |of: fn(&(f64, f64)) -> f64| {
            estimate(&runs.iter().map(of).collect::<Vec<_>>()).unwrap().mean
        };
        let (step, wait) = (mean(|run| run.0), mean(|run| run.1));
        let error = step / row.step - 1.0;
        let fitted = if row.fitted { "in part" } else { "no" };
        let line = format!(
            "{},{fitted},{},{step:.1},{error:+.3},{},{wait:.1}\n",
            row.case,
            number::text(row.step),
            number::text(row.wait)
        );
        print!("{line}");
        table += &line;
        steps.push(step);
    }
    committed::check("results/verl_fully_async.csv", &table);
    for (row, step) in PUBLISHED.iter().zip(&steps) {
        let error = step / row.step - 1.0;
        assert!(error.abs() <= 0.20, "{row:?}: {step:.1} s");
    }
    let [sync_64, async_64, sync_128, s50, s0, s10, s30] = steps[..] else { panic!("{steps:?}") };
    assert!(sync_64 / async_64 > 1.5, "half of the GPUs each, and faster: published 1.93");
    assert!(sync_128 / s50 > 1.9, "published 2.37");
    assert!(sync_128 / s0 > 1.3, "streaming alone: published 1.54");
    assert!(s0 > 1.15 * s10 && s10 > s30, "a little staleness buys most of it");
    assert!((s30 / s50 - 1.0).abs() < 0.1, "beyond 0.3 nothing is gained");
}

#[test]
fn the_rows_are_those_of_the_published_file() {
    let Some(published) = committed::beside("validation/verl_fully_async_7b.csv") else { return };
    let rows = published.lines().filter(|line| !line.starts_with('#')).skip(1);
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), PUBLISHED.len());
    for (row, cells) in PUBLISHED.iter().zip(&rows) {
        let [mode, rollout, train, threshold, step, wait, ..] = cells[..] else {
            panic!("{cells:?}")
        };
        assert_eq!([step, wait].map(|cell| cell.parse::<f64>().unwrap()), [row.step, row.wait]);
        let (scenario, _) = load_shipped("verl-fully-async");
        let case = scenario.cases.iter().find(|case| case.name == row.case).unwrap();
        let (case, _) = scenario.with_sets(&case.set).unwrap();
        assert_eq!(4 * case.world.serving.replicas, rollout.parse::<u32>().unwrap(), "{row:?}");
        match mode {
            "sync" => assert!(row.case.ends_with(train), "{row:?}"),
            _ => assert_eq!(
                case.config.policy_training.staleness_threshold,
                (threshold.parse::<f64>().unwrap() * 1e6) as u32,
                "{row:?}"
            ),
        }
    }
}
