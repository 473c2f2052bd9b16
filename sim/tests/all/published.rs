//! Shapes that others published come out of the shipped scenarios.
//!
//! Each test runs the scenario as shipped, but for fewer steps.

use headway_sim::run::{RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;

use super::committed;
use super::world_support::load_shipped;

fn run(name: &str, case: &str, sets: &[String]) -> RunResult {
    let (scenario, _) = load_shipped(name);
    let mut set = match case {
        "" => Vec::new(),
        _ => named(&scenario, case),
    };
    set.extend_from_slice(sets);
    let (scenario, _) = scenario.with_sets(&set).unwrap();
    simulate(&scenario, 0, RunOptions::default()).unwrap()
}

fn named(scenario: &Scenario, case: &str) -> Vec<String> {
    let found = scenario.cases.iter().find(|other| other.name == case);
    found.unwrap_or_else(|| panic!("{case} is no case")).set.clone()
}

fn steps(total: u32, warm_up: u32) -> [String; 2] {
    [format!("scenario.steps={total}"), format!("scenario.warmup_steps={warm_up}")]
}

/// A metric; one of nothing counts as 0.
fn get(result: &RunResult, metric: &str) -> f64 {
    result.summary.get(metric).unwrap_or(0.0)
}

/// Seconds per train step.
fn step_sec(result: &RunResult) -> f64 {
    3600.0 / get(result, "steps_per_hour")
}

fn eta(bound: u32) -> String {
    format!("policy_training.max_head_off_policyness={bound}")
}

/// AReaL's figure: thousands of tokens/s by η.
const AREAL: [(u32, f64); 6] =
    [(0, 128.7), (1, 269.3), (2, 356.6), (4, 356.6), (8, 371.7), (16, 382.4)];

#[test]
fn throughput_under_areals_gate_saturates_in_the_bound_as_published() {
    // A quarter of everything: the same ratios at a quarter of the cost.
    let quarter = [
        "policy_training.batch_size=128",
        "policy_serving.max_concurrent_rollouts=2048",
        "world.clients.slots=2048",
        "world.serving.replicas=3",
        "world.trainer.gpus=4",
    ];
    let throughput = AREAL.map(|(bound, _)| {
        let mut sets = quarter.map(str::to_owned).to_vec();
        sets.extend(steps(12, 4));
        sets.push(eta(bound));
        get(&run("areal-math", "", &sets), "trained_tokens_per_second")
    });
    // The split of GPUs is not published, so shares of the value at 8 are compared.
    for ((bound, published), ours) in AREAL.iter().zip(throughput) {
        let (ours, published) = (ours / throughput[4], published / AREAL[4].1);
        assert!((ours - published).abs() < 0.08, "at {bound}: {ours:.3}, published {published:.3}");
    }
    let [synchronous, one, two, four, .., sixteen] = throughput;
    assert!(one > 1.5 * synchronous && two > 2.0 * synchronous, "steep at first");
    assert!(sixteen < 1.05 * four, "flat beyond 4");
    if let Some(file) = committed::beside("validation/areal_throughput.csv") {
        for (bound, published) in AREAL {
            let row = format!("{bound},{published}");
            assert!(file.lines().any(|line| line == row), "{row}");
        }
    }
}

#[test]
fn staleness_sits_at_the_bound_where_sampling_is_faster_than_training() {
    for bound in [0, 1, 2, 4, 8] {
        let mut sets = steps(40, 20).to_vec();
        sets.push(eta(bound));
        let result = run("tinker-cookbook", "", &sets);
        let mean = get(&result, "staleness_head_mean");
        assert!(
            mean > 0.85 * f64::from(bound) && mean <= f64::from(bound) + 0.1,
            "{bound}: {mean}"
        );
        if bound > 0 {
            assert!(get(&result, "trainer_idle_share") < 0.01, "{bound}: sampling is no limit");
        }
    }
}

#[test]
fn a_longer_cap_wastes_a_third_of_the_tokens_under_a_bound_of_one() {
    let [short, long] = ["cap-2048", "cap-4096"].map(|cap| {
        let result = run("marin-length-cap", cap, &[]);
        assert!(get(&result, "staleness_head_max") <= 1.0);
        (get(&result, "wasted_token_share"), step_sec(&result))
    });
    // Published: 1.4% and 32.9% of the tokens, 36.6 s and 48.1 s an update.
    assert!(short.0 < 0.04, "{short:?}");
    assert!((long.0 - 0.329).abs() < 0.08, "{long:?}");
    assert!(long.1 > 1.15 * short.1, "{short:?} {long:?}");
}

#[test]
fn a_split_pays_on_sixteen_gpus_and_costs_on_four() {
    let step = |case: &str| step_sec(&run("one-step-off", case, &steps(5, 2)));
    let (shared, split) = (step("fsdp2-16-shared"), step("fsdp2-4+12"));
    // Published: 749 s and 520 s.
    assert!((shared / 749.0 - 1.0).abs() < 0.1, "{shared}");
    assert!((split / 520.0 - 1.0).abs() < 0.12, "{split}");
    let (shared, split) = (step("fsdp2-4-shared"), step("fsdp2-2+2"));
    assert!(split > 1.1 * shared, "{split} s split, {shared} s shared");
}

#[test]
fn one_step_off_is_one_version_off() {
    let result = run("one-step-off", "fsdp2-4+12", &steps(4, 1));
    assert_eq!(get(&result, "staleness_head_mean"), 1.0);
    assert_eq!(get(&result, "staleness_head_max"), 1.0);
}

#[test]
fn staleness_of_slimes_pipeline_is_one_at_an_interval_of_one_and_at_most_the_interval() {
    for (case, interval) in [("k1", 1.0), ("k2", 2.0), ("k4", 4.0)] {
        let result = run("slime-train-async", case, &steps(24, 8));
        let [mean, max] = ["staleness_head_mean", "staleness_head_max"].map(|m| get(&result, m));
        assert_eq!(max, interval, "{case}");
        // 1 to K, each as often.
        assert!((mean - (1.0 + interval) / 2.0).abs() < 1e-9, "{case}: {mean}");
    }
    let [sync, pipeline] =
        ["sync", "k1"].map(|case| step_sec(&run("slime-train-async", case, &steps(16, 4))));
    // Published: 178 s and 104 s.
    assert!((sync / 178.3 - 1.0).abs() < 0.1 && (pipeline / 104.0 - 1.0).abs() < 0.1);
}

#[test]
fn what_is_too_old_for_prime_rl_is_long_and_a_wider_bound_starves_less() {
    let ratio = |bound: u32| {
        let mut sets = steps(50, 20).to_vec();
        sets.push(eta(bound));
        let result = run("prime-rl", "", &sets);
        assert!(get(&result, "staleness_head_max") <= f64::from(bound), "{bound}");
        get(&result, "length_ratio")
    };
    let [narrow, wide] = [4, 16].map(ratio);
    assert!(narrow < 0.85, "{narrow}");
    assert!(wide > narrow + 0.1, "{narrow} {wide}");
}

#[test]
fn nothing_older_than_its_window_is_trained_by_nemo_rl() {
    for (case, window) in [("on-policy", 0.0), ("age-1", 1.0), ("age-4", 4.0)] {
        let result = run("nemo-rl", case, &steps(16, 4));
        assert!(get(&result, "staleness_head_max") <= window, "{case}");
        assert!(get(&result, "trained_samples_per_hour") > 0.0, "{case}");
    }
    let [on_policy, one] =
        ["on-policy", "age-1"].map(|case| step_sec(&run("nemo-rl", case, &steps(16, 4))));
    // Published: 97.7 s and 74.6 s.
    assert!((on_policy / 97.7 - 1.0).abs() < 0.1, "{on_policy}");
    assert!((one / 74.6 - 1.0).abs() < 0.1, "{one}");
}
