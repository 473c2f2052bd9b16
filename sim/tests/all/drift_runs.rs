//! Runs with `[world.drift]`: what they predict, and what they leave alone.

use headway_shared::metrics::METRICS;
use headway_sim::drift;
use headway_sim::kernel::math::normal_quantile;
use headway_sim::report::number;
use headway_sim::run::{RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;
use headway_sim::stats::variance;

use super::committed;
use super::world_support::{SESSIONS, SLOTS, load, load_shipped, problems};

/// Every token is of the policy that trains, and log-ratios are normal with s = 0.2.
const FLOOR: [&str; 7] = [
    "world.drift.sigma0=0.2",
    "world.drift.a=0",
    "world.drift.p=1",
    "world.drift.tail=0",
    "world.drift.sampled_tokens=100",
    "max_head_off_policyness=0",
    "scenario.steps=400",
];

fn run(scenario: &Scenario) -> RunResult {
    simulate(scenario, 0, RunOptions::default()).unwrap()
}

fn with(more: &[&str]) -> RunResult {
    run(&load(SLOTS, &[&FLOOR[..], more].concat()))
}

fn get(result: &RunResult, name: &str) -> f64 {
    result.summary.get(name).unwrap_or_else(|| panic!("{name} is undefined"))
}

fn normal_above(z: f64) -> f64 {
    0.5 * libm::erfc(z / std::f64::consts::SQRT_2)
}

/// The share of ratios above a bound: the logarithm has mean -s²/2.
fn above(bound: f64) -> f64 {
    normal_above((libm::log(bound) + 0.02) / 0.2)
}

#[track_caller]
fn near(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() < within, "{found} is not {expected}");
}

#[test]
fn a_scenario_without_drift_has_no_ratios_and_drift_decides_nothing() {
    for text in [SLOTS, SESSIONS] {
        let without = load(text, &[]);
        let drift = ["world.drift.sigma0=0.1", "world.drift.a=0.01", "world.drift.p=1.5"];
        let with = load(text, &drift);
        let (plain, drifting) = (run(&without), run(&with));
        assert_eq!(plain.digest, drifting.digest, "drift decides nothing");
        assert_eq!((plain.drift, plain.summary.values().count()), (None, METRICS.len()));
        let more = METRICS.len() + drift::METRICS.len();
        assert_eq!(drifting.summary.values().count(), more);
        for (metric, value) in plain.summary.values() {
            assert_eq!(drifting.summary.get(metric.name), value, "{}", metric.name);
        }
        assert_ne!(without.digest(), with.digest());
    }
}

#[test]
fn equal_runs_predict_equal_ratios_and_other_seeds_others() {
    let scenario =
        load(SESSIONS, &["world.drift.sigma0=0.1", "world.drift.a=0.01", "world.drift.p=2"]);
    let (first, again) = (run(&scenario), run(&scenario));
    assert_eq!((&first.drift, &first.summary), (&again.drift, &again.summary));
    let other = simulate(&scenario, 1, RunOptions::default()).unwrap();
    assert_ne!(first.drift, other.drift);
    assert!(first.drift.unwrap().by_staleness.len() > 1);
}

#[test]
fn the_figures_of_a_floor_are_those_of_a_lognormal() {
    let result = with(&["correction=none"]);
    near(get(&result, "learner_rollout_p50"), libm::exp(-0.02), 0.005);
    near(get(&result, "learner_rollout_p99"), libm::exp(0.2 * normal_quantile(0.99) - 0.02), 0.02);
    near(get(&result, "learner_rollout_kl_k1"), 0.02, 0.002);
    near(get(&result, "learner_rollout_kl_k3"), 0.02, 0.002);
    near(get(&result, "learner_rollout_ess_token"), libm::exp(-0.04), 0.004);
    near(get(&result, "deploy_rollout_p99"), get(&result, "learner_rollout_p99"), 1e-9);
    assert_eq!(get(&result, "learner_deploy_p99"), 1.0);
    assert_eq!(get(&result, "learner_proximal_p99"), 1.0);
    assert_eq!(get(&result, "clipped_fraction"), 0.0);
    // 400 steps of 4 samples of 100 tokens: the largest is where one of 160,000 is.
    let largest = libm::exp(0.2 * normal_quantile(1.0 - 1.0 / 160_000.0) - 0.02);
    near(get(&result, "learner_rollout_max"), largest, 0.5);
    // A step of 4 sequences whose logarithms have variance 4.
    let sequence = get(&result, "learner_rollout_ess_sequence");
    assert!((0.25..0.6).contains(&sequence), "{sequence}");
    let effective = get(&result, "ess_samples_per_hour");
    let trained = get(&result, "trained_samples_per_hour");
    near(effective / trained, libm::exp(-0.04), 0.005);
}

#[test]
fn each_correction_changes_the_tokens_that_its_closed_form_says() {
    let both = above(1.2) + 1.0 - above(0.8);
    let tis = with(&["correction=tis", "correction_high=1.2"]);
    near(get(&tis, "clipped_fraction"), above(1.2), 0.006);
    near(get(&tis, "masked_or_truncated_share"), above(1.2), 0.006);
    assert_eq!(get(&tis, "lost_sequence_share"), 0.0);

    let icepop = with(&["correction=icepop", "correction_low=0.8", "correction_high=1.2"]);
    near(get(&icepop, "masked_or_truncated_share"), both, 0.006);
    assert!(get(&icepop, "ess_samples_per_hour") < get(&tis, "ess_samples_per_hour"));

    // What gains is clipped: above the band where the advantage is positive, else below it. Of the
    // samples half deserve 1, the others 0, so that either side is half of the tokens.
    let ppo = with(&["correction=ppo_clip", "correction_low=0.8", "correction_high=1.2"]);
    near(get(&ppo, "clipped_fraction"), 0.5 * both, 0.02);
    assert_eq!(get(&ppo, "masked_or_truncated_share"), 0.0);

    // With one update per step nothing is clipped; the weights are what they are.
    let decoupled = with(&["correction=decoupled"]);
    assert_eq!(get(&decoupled, "clipped_fraction"), 0.0);

    // The mean over 100 tokens has a deviation of 0.02 around -0.02.
    let band = ["correction_low=0.97", "correction_high=1.03"];
    let [low, high] = [0.97, 1.03].map(|bound| (libm::log(bound) + 0.02) / 0.02);
    let outside = normal_above(high) + 1.0 - normal_above(low);
    let mask = with(&[&["correction=sequence_mask"], &band[..]].concat());
    near(get(&mask, "masked_or_truncated_share"), outside, 0.04);
    near(get(&mask, "lost_sequence_share"), outside, 0.04);
    let gspo = with(&[&["correction=gspo"], &band[..]].concat());
    assert!(get(&gspo, "clipped_fraction") > 0.1);
    assert!(get(&gspo, "clipped_fraction") < outside);
}

#[test]
fn older_tokens_drift_further_and_rows_add_up() {
    let set = [
        "world.drift.sigma0=0.02",
        "world.drift.a=0.004",
        "world.drift.p=1.6",
        "max_head_off_policyness=4",
        "scenario.steps=400",
    ];
    let result = run(&load(SLOTS, &set));
    let rows = result.drift.clone().unwrap().by_staleness;
    assert!(rows.len() > 2);
    let column = |name| drift::STALENESS_COLUMNS.iter().position(|column| *column == name).unwrap();
    let square = column("learner_rollout_log_square");
    for row in &rows {
        let expected = 0.0004 + 0.004 * libm::pow(f64::from(row.staleness), 1.6);
        let found = row.values[square].unwrap();
        assert!((found / expected - 1.0).abs() < 0.25, "{}: {found}, {expected}", row.staleness);
    }
    let tokens: f64 = rows.iter().filter_map(|row| row.values[column("tokens")]).sum();
    assert_eq!(tokens, (result.trained * 100) as f64);
    let max = rows.iter().filter_map(|row| row.values[column("learner_rollout_max")]);
    assert_eq!(Some(max.fold(0.0, f64::max)), result.summary.get("learner_rollout_max"));
}

#[test]
fn several_updates_move_the_learner_within_its_step() {
    let set = ["world.drift.a=0.02", "world.drift.p=1", "updates_per_step=4"];
    let result = with(&set);
    assert!(get(&result, "learner_proximal_p99") > 1.1);
    let moved = get(&result, "learner_rollout_log_square") - 0.04;
    // On average 3/8 of a version: 0, 1/4, 1/2 and 3/4.
    near(moved, 0.02 * 0.375, 0.003);
}

#[test]
fn labels_of_other_tokens_make_the_difference_jump() {
    let right = get(&with(&[]), "train_rollout_logprob_abs_diff");
    for fault in ["world.drift.shifted_share=0.3", "world.drift.padded_share=0.5"] {
        let wrong = get(&with(&[fault]), "train_rollout_logprob_abs_diff");
        assert!(wrong > 1.4 * right, "{fault}: {right}, {wrong}");
    }
}

#[test]
fn a_policy_that_has_solved_its_task_moves_no_more() {
    let set = [
        "world.drift.sigma0=0",
        "world.drift.a=0.01",
        "world.drift.p=1",
        "max_head_off_policyness=4",
        "scenario.steps=200",
        "scenario.warmup_steps=101",
    ];
    let moving = get(&run(&load(SLOTS, &set)), "learner_rollout_log_square");
    let window = "world.drift.windows=[{ from_step = 100, a = 0.00001 }]";
    let solved = run(&load(SLOTS, &[&set[..], &[window]].concat()));
    let ratio = get(&solved, "learner_rollout_log_square") / moving;
    assert!((0.0008..0.0012).contains(&ratio), "{ratio}");
}

#[test]
fn two_policies_at_one_seed_see_the_same_tokens() {
    let at = |eta: &str| {
        let set = ["world.drift.sigma0=0.05", "world.drift.a=0", "world.drift.p=1", eta];
        get(&run(&load(SLOTS, &set)), "learner_rollout_kl_k3")
    };
    let (tight, loose) = (at("max_head_off_policyness=0"), at("max_head_off_policyness=2"));
    // Without drift age is nothing: nearly all of 80 samples are the same, whatever the bound.
    assert!((tight / loose - 1.0).abs() < 0.05, "{tight} {loose}");
}

#[test]
fn what_is_wrong_with_drift_is_said_where_it_is_written() {
    let drift = |lines: &str| problems(&format!("{SLOTS}\n[world.drift]\n{lines}"), &[]);
    let missing = drift("sigma0 = 0.1");
    assert!(missing.contains("`a` is missing in world.drift"), "{missing}");
    assert!(missing.contains("add `a = 0.005`"), "{missing}");
    let steep = drift("sigma0 = 0.1\na = 0.1\np = 2.5");
    assert!(steep.contains("test.toml:31:5"), "{steep}");
    assert!(steep.contains("`p` must be between 1 and 2"), "{steep}");
    let rest = "sigma0 = 0.1\na = 0.1\np = 2\n";
    let order = "windows = [{ from_step = 9 }, { from_step = 4 }]";
    let order = drift(&format!("{rest}{order}"));
    assert!(order.contains("begins at step 4, the one before it at 9"), "{order}");
    let shares = drift(&format!("{rest}shifted_share = 0.6\npadded_share = 0.6"));
    assert!(shares.contains("more than 1 together"), "{shares}");
    let unnamed = drift(&format!("{rest}calibrated_from = \"\""));
    assert!(unnamed.contains("`calibrated_from` says nothing"), "{unnamed}");
    let lone = drift(&format!("{rest}gradient_kept = 0.9"));
    assert!(lone.contains("and `world.judge.positive_growth` is 0"), "{lone}");
    let wide = drift(&format!("{rest}step_spread = 4"));
    assert!(wide.contains("`step_spread` must be between 0 and 3"), "{wide}");
    let unknown = drift(&format!("{rest}sigma = 1"));
    assert!(unknown.contains("did you mean `sigma0`?"), "{unknown}");
}

#[test]
fn steps_that_differ_keep_the_mean_square_and_lower_the_mean_percentile() {
    let at = |bound: u32, spread: &str| {
        let set = [
            "world.drift.sigma0=0",
            "world.drift.a=0.005",
            "world.drift.p=1.5",
            "world.drift.tail=0",
            "world.drift.sampled_tokens=100",
            &format!("max_head_off_policyness={bound}"),
            "scenario.steps=3000",
            spread,
        ];
        run(&load(SLOTS, &set))
    };
    let same = at(1, "world.drift.shifted_share=0");
    let (none, wide) = (at(1, "world.drift.step_spread=0"), at(1, "world.drift.step_spread=0.8"));
    assert_eq!(same.summary, none.summary, "0 is as if the key were not there");
    let ratio = |name: &str| get(&wide, name) / get(&none, name);
    // Of 3000 steps, each with a factor of relative spread 0.95.
    near(ratio("learner_rollout_log_square"), 1.0, 0.06);
    // The mean of the root of the factor: exp(-s²/8).
    near(ratio("train_rollout_logprob_abs_diff"), libm::exp(-0.08), 0.02);
    assert!(ratio("learner_rollout_step_p99") < 0.995, "{}", ratio("learner_rollout_step_p99"));
    assert!(ratio("learner_rollout_p99") > 1.0, "the pool has a heavier tail");
    assert_eq!(wide.digest, none.digest, "drift decides nothing");
    // Of several steps it is the mean that differs, and that less.
    let (none, wide) = (at(8, "world.drift.step_spread=0"), at(8, "world.drift.step_spread=0.8"));
    let difference = "train_rollout_logprob_abs_diff";
    let share = get(&wide, difference) / get(&none, difference);
    assert!((0.955..0.995).contains(&share), "{share}");
}

#[test]
fn runs_differ_more_where_neighbouring_steps_are_alike() {
    let spread = |correlation: &str| {
        let set = [
            "world.drift.sigma0=0",
            "world.drift.a=0.005",
            "world.drift.p=1.5",
            "world.drift.step_spread=0.8",
            "max_head_off_policyness=2",
            "scenario.steps=60",
            correlation,
        ];
        let scenario = load(SLOTS, &set);
        let square = |replication: u32| {
            let result = simulate(&scenario, replication, RunOptions::default()).unwrap();
            libm::log(get(&result, "learner_rollout_log_square"))
        };
        variance(&(0..200).map(square).collect::<Vec<f64>>()).unwrap()
    };
    let (none, alike) =
        (spread("world.drift.step_correlation=0"), spread("world.drift.step_correlation=0.8"));
    // Means of 60 normals of an autoregressive process vary (1 + c) / (1 - c) times as much, 9; factors
    // are their exponentials, whose correlation is less.
    assert!((4.0..9.0).contains(&(alike / none)), "{none} and {alike}");
}

/// Rewards grow so slowly that nothing shows but what is clipped. With p = 2 steps that are worth w move the
/// policy w² as far.
#[test]
fn a_policy_whose_gradient_is_clipped_moves_less() {
    let at = |more: &[&str]| {
        let set = [
            "policy_training.correction=ppo_clip",
            "correction_low=0.8",
            "correction_high=1.25",
            "world.judge.positive_share=0.5",
            "world.drift.sigma0=0",
            "world.drift.a=0.01",
            "world.drift.p=2",
            "world.drift.tail=0",
            "world.drift.sampled_tokens=100",
            "max_head_off_policyness=4",
            "scenario.steps=300",
        ];
        run(&load(SLOTS, &[&set[..], more].concat()))
    };
    let growth = "world.judge.positive_growth=0.0001";
    let (plain, none) = (at(&[]), at(&["world.judge.positive_growth=0"]));
    assert_eq!(plain.summary, none.summary, "0 is as if the key were not there");
    let square = |result: &RunResult| get(result, "learner_rollout_log_square");
    let clipped = at(&[growth]);
    assert!(get(&clipped, "clipped_fraction") > 0.05);
    // Half of what is beyond a bound has an advantage of the other sign.
    let kept = 1.0 - get(&clipped, "clipped_fraction");
    // Tokens that are clipped have stopped besides.
    let share = square(&clipped) / square(&plain) / (kept * kept);
    assert!((0.6..0.95).contains(&share), "{share}");
    // What the fitted run had clipped as well is no loss.
    let alike = at(&[growth, &format!("world.drift.gradient_kept={kept}")]);
    assert!(square(&alike) / square(&clipped) > 1.1);
    // A band that nothing leaves.
    let wide = at(&[growth, "correction_low=0.001", "correction_high=1000"]);
    near(square(&wide) / square(&plain), 1.0, 0.001);
    let unclipped = at(&[growth, "policy_training.correction=none"]);
    near(square(&unclipped) / square(&plain), 1.0, 0.001);
    assert_eq!(clipped.digest, plain.digest, "drift decides nothing");
}

/// Training comes to rest at step 300 of the fitted run.
#[test]
fn a_policy_that_keeps_twice_the_gradient_comes_to_rest_in_half_the_steps() {
    let moved = |more: &[&str]| {
        let set = [
            "policy_training.correction=decoupled",
            "world.drift.sigma0=0",
            "world.drift.a=0.005",
            "world.drift.p=1",
            "world.drift.windows=[{ from_step = 300, a = 0.0 }]",
            "max_head_off_policyness=4",
            "scenario.steps=400",
            "world.judge.positive_growth=0.0001",
        ];
        get(&run(&load(SLOTS, &[&set[..], more].concat())), "learner_rollout_log_square")
    };
    // Twice as fast it rests after 150 of 400 steps; meanwhile versions are twice as far apart.
    near(moved(&["world.drift.gradient_kept=0.5"]) / moved(&[]), 1.0, 0.05);
    let none = moved(&["world.drift.windows=[]"]);
    near(moved(&[]) / none, 300.0 / 400.0, 0.03);
}

#[test]
fn tokens_of_good_samples_are_clipped_more_where_the_reward_grows() {
    let clipped = |growth: &str| {
        let set = [
            "policy_training.correction=ppo_clip",
            "correction_low=0.8",
            "correction_high=1.25",
            "world.clients.output_tokens={ kind = 'constant', value = 2 }",
            // From one in five to nine in ten.
            "world.judge.positive_share=0.2",
            "policy_training.batch_size=200",
            "world.drift.sigma0=0",
            "world.drift.a=0.002",
            "world.drift.p=1.5",
            "max_head_off_policyness=8",
            "scenario.steps=60",
            growth,
        ];
        get(&run(&load(SLOTS, &set)), "clipped_fraction")
    };
    let (none, some) =
        (clipped("world.judge.positive_growth=0"), clipped("world.judge.positive_growth=0.06"));
    assert!(some > 1.2 * none, "{some} and {none}");
}

/// A shipped scenario at this bound.
fn shipped(name: &str, eta: &str) -> RunResult {
    let (scenario, _) = load_shipped(name);
    let set = [eta.to_owned(), "scenario.steps=60".to_owned()];
    run(&scenario.with_sets(&set).unwrap().0)
}

#[test]
fn the_shipped_scenarios_predict_as_committed() {
    let mut table = "scenario,max_head_off_policyness,metric,value\n".to_owned();
    for name in ["drift-floor", "drift-tiny-run"] {
        for eta in ["0", "4"] {
            let result = shipped(name, &format!("max_head_off_policyness={eta}"));
            for metric in drift::METRICS {
                let value = number::cell(result.summary.get(metric.name));
                table += &format!("{name},{eta},{},{value}\n", metric.name);
            }
        }
    }
    committed::check("results/drift.csv", &table);
}

/// KL 4.8e-4 on policy and 5.0e-4 at a staleness of 4; a difference of 0.020 to 0.029.
#[test]
fn the_published_floor_comes_out() {
    let [on_policy, stale] = ["0", "4"].map(|eta| {
        let result = shipped("drift-floor", &format!("max_head_off_policyness={eta}"));
        near(get(&result, "learner_rollout_ess_token"), 0.999, 0.0005);
        let diff = get(&result, "train_rollout_logprob_abs_diff");
        assert!((0.0195..0.029).contains(&diff), "{diff}");
        get(&result, "learner_rollout_kl_k3")
    });
    near(on_policy, 4.8e-4, 0.2e-4);
    near(stale / on_policy, 5.0 / 4.8, 0.02);
}

/// The lag probe's sigma² of 0.0047, 0.017, 0.060 and 0.13, within what one power law can do.
#[test]
fn the_measured_drift_of_a_tiny_run_comes_out() {
    let (scenario, _) = load_shipped("drift-tiny-run");
    let model = scenario.drift.unwrap();
    assert_eq!(model.calibration(), "uncalibrated");
    for (k, measured) in [(1.0, 0.0047), (2.0, 0.017), (4.0, 0.060), (8.0, 0.13)] {
        let ratio = model.stretches[0].variance(k) / measured;
        assert!((0.8..1.25).contains(&ratio), "{k}: {ratio}");
    }
    assert!((2.0..10.0).contains(&model.stretches[0].tokens.kurtosis()));
}
