//! The nine runs of `make live-results`, as they are committed.

use std::fs;
use std::path::Path;

use headway_sim::report::csv::Csv;

fn run(eta: u32, seed: u32) -> Csv {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/live");
    let path = folder.join(format!("steps-eta-{eta}-seed-{seed}.csv"));
    Csv::parse(&fs::read(&path).unwrap()).unwrap()
}

fn column(csv: &Csv, name: &str) -> Vec<f64> {
    (0..csv.rows.len()).map(|row| csv.value(row, name).unwrap()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn all() -> impl Iterator<Item = (u32, u32)> {
    [0, 2, 8].into_iter().flat_map(|eta| (1..=3).map(move |seed| (eta, seed)))
}

#[test]
fn reward_rises_from_chance_to_four_fifths_at_every_bound_and_seed() {
    for (eta, seed) in all() {
        let reward = column(&run(eta, seed), "reward_mean");
        let (first, last) = (mean(&reward[..5]), mean(&reward[reward.len() - 20..]));
        assert!(first < 0.15, "eta {eta}, seed {seed}: {first}");
        assert!(last >= 0.8, "eta {eta}, seed {seed}: {last}");
    }
}

#[test]
fn on_policy_samples_have_the_ratio_one() {
    for seed in 1..=3 {
        let run = run(0, seed);
        assert!(column(&run, "staleness_max").iter().all(|staleness| *staleness == 0.0));
        assert!(column(&run, "ratio_max").iter().all(|ratio| (ratio - 1.0).abs() < 1e-4));
        assert!(column(&run, "ratio_p50").iter().all(|ratio| (ratio - 1.0).abs() < 1e-4));
        assert!(column(&run, "logprob_abs_diff").iter().all(|diff| *diff < 1e-4));
    }
}

#[test]
fn staleness_keeps_its_bound_and_the_spread_grows_with_staleness() {
    let over_seeds = |eta: u32, name: &str| {
        mean(&(1..=3).map(|seed| mean(&column(&run(eta, seed), name))).collect::<Vec<_>>())
    };
    for (eta, seed) in all() {
        // The bound is aggregate: a straggler may be older.
        let run = run(eta, seed);
        let (oldest, bound) = (column(&run, "staleness_p95"), f64::from(eta));
        assert!(mean(&oldest) <= bound, "eta {eta}, seed {seed}: {oldest:?}");
        let oldest = column(&run, "staleness_max").into_iter().fold(0.0, f64::max);
        assert!(oldest <= bound + 1.0, "eta {eta}, seed {seed}: {oldest}");
    }
    for name in ["staleness_mean", "ratio_p99", "logprob_abs_diff"] {
        let values = [0, 2, 8].map(|eta| over_seeds(eta, name));
        assert!(values[0] < values[1] && values[1] < values[2], "{name}: {values:?}");
    }
}
