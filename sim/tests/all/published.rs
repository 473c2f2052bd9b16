//! Shapes that others published come out of the shipped scenarios.
//!
//! Each test runs the scenario as shipped, but for fewer steps.

use headway_sim::run::{RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;

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

#[test]
fn staleness_sits_at_the_bound_where_sampling_is_faster_than_training() {
    for bound in [0, 1, 2, 4, 8] {
        let mut sets = steps(40, 20).to_vec();
        sets.push(eta(bound));
        let result = run("tinker-cookbook", "", &sets);
        let mean = get(&result, "staleness_head_mean");
        assert!(
            mean >= 0.85 * f64::from(bound) && mean <= f64::from(bound) + 0.1,
            "{bound}: {mean}"
        );
        if bound > 1 {
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
fn a_split_pays_on_sixteen_gpus_and_halves_of_few_are_slower_than_sharing_them() {
    let step = |case: &str| step_sec(&run("one-step-off", case, &steps(5, 2)));
    let (shared, split) = (step("fsdp2-16-shared"), step("fsdp2-4+12"));
    // Published: 749 s and 520 s.
    assert!((shared / 749.0 - 1.0).abs() < 0.1, "{shared}");
    assert!((split / 520.0 - 1.0).abs() < 0.12, "{split}");
    // On two GPUs there is no other split.
    for (shared, split) in [("fsdp2-4-shared", "fsdp2-2+2"), ("fsdp2-2-shared", "fsdp2-1+1")] {
        let (shared, split) = (step(shared), step(split));
        assert!(split > 1.1 * shared, "{split} s split, {shared} s shared");
    }
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
    // Cancelled samples have no length, so that `length_ratio` cannot tell.
    let trained_length = |bound: u32| {
        let mut sets = steps(30, 12).to_vec();
        sets.push(eta(bound));
        let result = run("prime-rl", "", &sets);
        assert!(get(&result, "staleness_head_max") <= f64::from(bound), "{bound}");
        let seconds_per_sample = 3600.0 / get(&result, "trained_samples_per_hour");
        get(&result, "trained_tokens_per_second") * seconds_per_sample
    };
    let [narrow, default, wide] = [4, 8, 32].map(trained_length);
    assert!(narrow < 0.8 * wide, "{narrow} {wide}");
    assert!(narrow < default && default < wide, "{narrow} {default} {wide}");
}

#[test]
fn nothing_older_than_its_window_is_trained_by_nemo_rl() {
    for (case, window) in
        [("on-policy", 0.0), ("age-1", 1.0), ("age-4", 4.0), ("age-1-buffer-4", 1.0)]
    {
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

#[test]
fn agents_of_half_an_hour_need_a_loose_bound_and_none_starves() {
    let runs = [1, 2, 4, 8].map(|bound| {
        let mut sets = steps(14, 4).to_vec();
        sets.push(eta(bound));
        let result = run("heavy-tail-agents", "", &sets);
        let mean = get(&result, "staleness_head_mean");
        assert!(mean > 0.6 * f64::from(bound) && mean < 1.1 * f64::from(bound), "{bound}: {mean}");
        assert!(get(&result, "length_ratio") > 0.85, "{bound}: long trajectories starve");
        (get(&result, "trained_samples_per_hour"), get(&result, "trainer_idle_share"))
    });
    for pair in runs.windows(2) {
        assert!(pair[1].0 > 1.25 * pair[0].0, "a looser bound trains more: {runs:?}");
    }
    let [tight, .., loose] = runs;
    assert!(tight.1 > 0.6, "the trainer waits for trajectories: {runs:?}");
    assert!(loose.1 < 0.2, "the trainer is busy: {runs:?}");
}
