//! Runs of a known world, recorded and calibrated: 90% intervals hold what is true in 86% to 94% of
//! all pairs of a run and a parameter. `--nocapture` prints the table.

use headway_sim::calibrate::measured::measure;
use headway_sim::calibrate::{Options, calibrate};
use headway_sim::scenario::Scenario;
use rayon::prelude::*;

use super::world_support::{recorded, try_load};

/// Small, and with each kind of number: laws of times and of counts, shares, a rate, the decode law.
const WORLD: &str = r#"
[scenario]
name = "known"
duration_sec = 1000000
steps = 60

[policy_serving]
sync_mode = "in_flight"
kv_on_sync = "keep"

[reward_judging]
judge_concurrency = 256

[policy_training]
batch_size = 8
max_head_off_policyness = 8

[queue]
max_size = 4096

[world.serving]
decode_base_sec = 0.02
decode_per_sequence_sec = 0.002

[world.clients]
kind = "sessions"
arrivals = { kind = "poisson", per_hour = 400 }
turns = { kind = "constant", value = 3 }
prompt_tokens = { kind = "lognormal", median = 500, sigma = 0.5 }
growth_tokens = { kind = "exponential", mean = 80 }
output_tokens = { kind = "gamma", shape = 2, mean = 120 }
think = { kind = "exponential", mean_sec = 10 }
done_share = 0.7
side_share = 0.1

[world.judge]
vote = { kind = "lognormal", median_sec = 3, sigma = 0.6 }
invalid_share = 0.05
failed_share = 0.03
positive_share = 0.5
negative_share = 0.2

[world.trainer]
step = { kind = "uniform", min_sec = 10, max_sec = 20 }

[world.weights]
transfer = { kind = "uniform", min_sec = 0.2, max_sec = 0.6 }
load = { kind = "pareto", min_sec = 0.4, alpha = 4 }
"#;

/// What is true of it.
const TRUTHS: [(&str, f64); 18] = [
    ("world.clients.arrivals.per_hour", 400.0),
    ("world.clients.prompt_tokens.median", 500.0),
    ("world.clients.prompt_tokens.sigma", 0.5),
    ("world.clients.growth_tokens.mean", 80.0),
    ("world.clients.output_tokens.shape", 2.0),
    ("world.clients.output_tokens.mean", 120.0),
    ("world.clients.think.mean_sec", 10.0),
    ("world.clients.done_share", 0.7),
    ("world.clients.side_share", 0.1),
    ("world.judge.vote.median_sec", 3.0),
    ("world.judge.vote.sigma", 0.6),
    ("world.judge.invalid_share", 0.05),
    ("world.judge.failed_share", 0.03),
    ("world.judge.positive_share", 0.5),
    ("world.judge.negative_share", 0.2),
    ("world.trainer.step.min_sec", 10.0),
    ("world.trainer.step.max_sec", 20.0),
    ("world.weights.load.alpha", 4.0),
];
/// What there is no chance in: a simulated decode step takes exactly so long. In most runs the interval
/// is no wider than rounding, so the numbers themselves are compared: they are
/// within 2%.
const EXACT: [(&str, f64); 2] =
    [("world.serving.decode_base_sec", 0.02), ("world.serving.decode_per_sequence_sec", 0.002)];
const RUNS: u64 = 400;

/// Which intervals hold the truth in the run of this seed. A parameter that was not found, as another
/// family was taken, does not.
fn held(scenario: &Scenario, seed: u64) -> [bool; TRUTHS.len()] {
    let (scenario, _) = scenario.with_set(&format!("scenario.seed={seed}")).unwrap();
    let (run, _) = recorded(&scenario, "run.record");
    let options = Options { name: "known".to_owned(), ..Options::default() };
    let found = calibrate(Some(("run.record", &measure(&run).unwrap())), &options).unwrap();
    let parameter = |path: &str| {
        let mut all = found.items.iter().flat_map(|item| &item.parameters);
        all.find(|(name, _)| name == path).map(|(_, found)| *found)
    };
    for (path, truth) in EXACT {
        let found = parameter(path).unwrap().value;
        assert!((found / truth - 1.0).abs() < 0.02, "{path}, seed {seed}: {found}");
    }
    TRUTHS.map(|(path, truth)| parameter(path).is_some_and(|found| found.holds(truth)))
}

#[test]
fn intervals_of_calibrated_runs_hold_what_is_true_of_their_world() {
    let scenario = try_load(WORLD, &[]).unwrap().0;
    let runs: Vec<_> = (1..=RUNS).into_par_iter().map(|seed| held(&scenario, seed)).collect();
    let share = |at: usize| runs.iter().filter(|run| run[at]).count() as f64 / RUNS as f64;
    let shares: Vec<f64> = (0..TRUTHS.len()).map(share).collect();
    for ((path, _), share) in TRUTHS.iter().zip(&shares) {
        println!("{path}: {:.1}%", 100.0 * share);
    }
    let all = shares.iter().fold(0.0, |sum, share| sum + share) / shares.len() as f64;
    println!("all: {:.1}%", 100.0 * all);
    assert!((0.86..=0.94).contains(&all), "{all}");
    let wide: Vec<_> =
        TRUTHS.iter().zip(&shares).filter(|(_, share)| !(0.80..=0.97).contains(*share)).collect();
    assert!(wide.is_empty(), "outside 80% to 97%: {wide:?}");
}
