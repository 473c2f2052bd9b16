//! `results/plan/`: verl's fully asynchronous recipe on 32, 64 and 128 GPUs, as committed.
//! `scripts/plan_results.sh` makes it anew.

use std::fs;

use headway_sim::report::csv::Csv;
use headway_sim::run::{RunOptions, simulate};
use headway_sim::sweep::{over, replicate};

use super::committed;
use super::world_support::load_shipped;
use headway_sim::plan::split::splits;

const GPUS: [u32; 3] = [32, 64, 128];

fn table(name: &str) -> Csv {
    let path = committed::root().join(format!("results/plan/verl-fully-async-{name}.csv"));
    Csv::parse(&fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .unwrap()
}

fn chosen(table: &Csv) -> usize {
    (0..table.rows.len()).find(|&row| table.text(row, "chosen") == "yes").unwrap()
}

/// Splits and what was tried at them, from the fastest to the slowest.
fn ranking(table: &Csv) -> Vec<(String, String)> {
    let mut rows: Vec<usize> = (0..table.rows.len()).collect();
    let rate = |row: usize| table.value(row, "effective_samples_per_hour").unwrap();
    rows.sort_by(|&one, &other| rate(other).total_cmp(&rate(one)));
    let cell = |row: usize, name: &str| table.text(row, name).to_owned();
    let tried = "policy_training.staleness_threshold";
    rows.into_iter().map(|row| (cell(row, "split"), cell(row, tried))).collect()
}

#[test]
fn the_search_on_128_gpus_ranks_as_every_split_simulated_does() {
    let (searched, every) = (table("128"), table("128-exhaustive"));
    assert!(searched.rows.len() < every.rows.len());
    let (searched, every) = (ranking(&searched), ranking(&every));
    // The best are the best, and those that were left out do not come between them.
    assert_eq!(searched[..10], every[..10]);
    let both: Vec<_> = every.into_iter().filter(|point| searched.contains(point)).collect();
    assert_eq!(searched, both);
}

#[test]
fn the_committed_choices_run_as_they_did() {
    let (scenario, _) = load_shipped("verl-fully-async");
    let points: Vec<_> = GPUS
        .iter()
        .map(|&gpus| {
            let table = table(&gpus.to_string());
            let row = chosen(&table);
            let label = table.text(row, "split").to_owned();
            let split = splits(&scenario, gpus).into_iter().find(|split| split.label() == label);
            let split = split.expect("the split is still one");
            let tried = over::parse(&scenario.plan.over, headway_shared::config::Table::EMPTY, &[]);
            let mut set = split.set(&scenario);
            for axis in tried.unwrap() {
                let value = table.text(row, &axis.key).to_owned();
                let choice = axis.choices.iter().find(|choice| choice.label == value);
                set.extend(choice.into_iter().flat_map(|choice| choice.set.iter().cloned()));
            }
            (scenario.with_sets(&set).unwrap().0, table.text(row, "digest").to_owned())
        })
        .collect();
    let work = |point: usize, replication| {
        let run = simulate(&points[point].0, replication, RunOptions::default()).unwrap();
        run.digest.to_string()
    };
    let digests = replicate(points.len(), 0..1, 0, work, || ()).unwrap();
    for ((gpus, (_, committed)), digest) in GPUS.iter().zip(&points).zip(digests) {
        let again = "has changed; if it should: scripts/plan_results.sh";
        assert_eq!(digest, [committed.as_str()], "the choice on {gpus} GPUs {again}");
    }
}
