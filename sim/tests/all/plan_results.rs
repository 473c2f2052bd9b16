//! `results/plan/`: verl's fully asynchronous recipe on 32, 64 and 128 GPUs, as committed.

use std::{env, fs};

use headway_shared::config::Table;
use headway_sim::plan::results::PlanResults;
use headway_sim::plan::split::splits;
use headway_sim::plan::{Task, plan};
use headway_sim::report::csv::Csv;
use headway_sim::report::plot;
use headway_sim::run::{RunOptions, simulate};
use headway_sim::scenario::Scenario;
use headway_sim::sweep::{Axis, over, replicate};

use super::committed;
use super::world_support::{Silent, load_shipped};

const GPUS: [u32; 3] = [32, 64, 128];
const EXHAUSTIVE: &str = "128-exhaustive";
const TRIED: &str = "policy_training.staleness_threshold";

/// Shorter than the scenario as it ships: three sync periods, the first of them dropped.
fn scenario() -> (Scenario, Vec<Axis>) {
    let (scenario, _) = load_shipped("verl-fully-async");
    let set = ["scenario.steps=12", "scenario.warmup_steps=4"].map(str::to_owned);
    let (scenario, _) = scenario.with_sets(&set).unwrap();
    let axes = over::parse(&scenario.plan.over, Table::EMPTY, &[]).unwrap();
    (scenario, axes)
}

fn table(name: &str) -> Csv {
    let path = committed::root().join(format!("results/plan/verl-fully-async-{name}.csv"));
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Csv::parse(&bytes).unwrap()
}

/// Plans and writes the files.
fn bless(name: &str, gpus: u32, exhaustive: bool) {
    let (scenario, axes) = scenario();
    let task = Task {
        scenario: &scenario,
        gpus,
        axes: &axes,
        constraints: &[],
        replications: 2,
        exhaustive,
        jobs: 0,
    };
    let results = PlanResults::of(&plan(&task, &Silent).unwrap(), &task);
    let write = |kind: &str, bytes: &[u8]| {
        let folder = committed::root().join("results/plan");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("verl-fully-async-{name}{kind}")), bytes).unwrap();
    };
    write(".csv", &results.points.to_bytes().unwrap());
    if exhaustive {
        return;
    }
    write("-marginal.csv", &results.marginal.to_bytes().unwrap());
    write(".txt", (results.meta.verdict.join("\n") + "\n").as_bytes());
    for picture in plot::draw_plan(&results).unwrap() {
        write(&format!("-{}.svg", picture.name), picture.svg.as_bytes());
    }
}

fn made() {
    if env::var_os("HEADWAY_BLESS").is_some() {
        GPUS.iter().for_each(|&gpus| bless(&gpus.to_string(), gpus, false));
        bless(EXHAUSTIVE, 128, true);
    }
}

fn rate(table: &Csv, row: usize) -> f64 {
    table.value(row, "effective_samples_per_hour").unwrap()
}

/// Splits and what was tried at them, from the fastest to the slowest.
fn ranking(table: &Csv) -> Vec<(String, String)> {
    let mut rows: Vec<usize> = (0..table.rows.len()).collect();
    rows.sort_by(|&one, &other| rate(table, other).total_cmp(&rate(table, one)));
    let cell = |row: usize, name: &str| table.text(row, name).to_owned();
    rows.into_iter().map(|row| (cell(row, "split"), cell(row, TRIED))).collect()
}

fn chosen(table: &Csv) -> usize {
    (0..table.rows.len()).find(|&row| table.text(row, "chosen") == "yes").unwrap()
}

/// Blessing, ranking and running again are one test, since the first makes what the others read.
#[test]
fn the_committed_plans_rank_as_every_split_does_and_their_choices_run_as_they_did() {
    made();
    let (searched, every) = (table("128"), table(EXHAUSTIVE));
    assert!(searched.rows.len() < every.rows.len());
    let cell = |table: &Csv, name: &str| table.text(chosen(table), name).to_owned();
    for name in ["split", TRIED, "effective_samples_per_hour"] {
        assert_eq!(cell(&searched, name), cell(&every, name));
    }
    let (searched, every) = (ranking(&searched), ranking(&every));
    assert_eq!(searched[..5], every[..5], "the best are the best");
    let both: Vec<_> = every.into_iter().filter(|point| searched.contains(point)).collect();
    assert_eq!(searched, both, "what both simulated, both rank alike");
    run_again();
}

/// Replication 0 of each choice decides as committed.
fn run_again() {
    let (scenario, axes) = scenario();
    let point = |&gpus: &u32| {
        let table = table(&gpus.to_string());
        let row = chosen(&table);
        let label = table.text(row, "split").to_owned();
        let all = splits(&scenario, gpus);
        let split = all.into_iter().find(|split| split.label() == label).unwrap();
        let mut set = split.set(&scenario);
        for axis in &axes {
            let value = table.text(row, &axis.key);
            let choice = axis.choices.iter().find(|choice| choice.label == value);
            set.extend(choice.into_iter().flat_map(|choice| choice.set.iter().cloned()));
        }
        (scenario.with_sets(&set).unwrap().0, table.text(row, "digest").to_owned())
    };
    let points: Vec<_> = GPUS.iter().map(point).collect();
    let work = |point: usize, replication| {
        simulate(&points[point].0, replication, RunOptions::default()).unwrap().digest.to_string()
    };
    let digests = replicate(points.len(), 0..1, 0, work, || ()).unwrap();
    for ((gpus, (_, committed)), digest) in GPUS.iter().zip(&points).zip(digests) {
        let again = "has changed; if it should: HEADWAY_BLESS=1";
        assert_eq!(digest, [committed.as_str()], "the choice on {gpus} GPUs {again}");
    }
}
