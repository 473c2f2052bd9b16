use headway_shared::config::{Layers, load_config};
use headway_shared::id::StepId;
use headway_shared::source::Reported;

use super::*;

/// What a step would report of tokens whose log-ratio is normal with mean `-spread²/2`: the ratio
/// of two policies.
fn honest(tokens: f64, spread: f64) -> Vec<(&'static str, f64)> {
    let square = spread * spread;
    moments(tokens, -0.5 * square, square + 0.25 * square * square, 1.0, square)
}

/// Of tokens with this mean of the logarithm, mean square, mean ratio, and variance of the ratio.
fn moments(
    tokens: f64,
    log: f64,
    square: f64,
    ratio: f64,
    variance: f64,
) -> Vec<(&'static str, f64)> {
    vec![
        ("tokens", tokens),
        ("kl_k1", -log),
        ("kl_k3", ratio - 1.0 - log),
        ("log_square", square),
        ("ess_token", ratio * ratio / (ratio * ratio + variance)),
        ("max", 1.0 + 4.0 * variance.sqrt()),
    ]
}

struct Report(Vec<Reported>);

impl Report {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn put(&mut self, step: u64, prefix: &str, staleness: u32, values: &[(&str, f64)]) {
        for (name, value) in values {
            let (step, name) = (StepId(step), format!("{prefix}_{name}"));
            self.0.push(Reported { step, name, staleness: Some(staleness), value: *value });
        }
    }

    fn difference(&mut self, step: u64, value: f64) {
        let name = "train_rollout_logprob_abs_diff".to_owned();
        self.0.push(Reported { step: StepId(step), name, staleness: None, value });
    }
}

/// A run in this process with η = 2, whose samples wait.
fn run(report: &Report, metrics: &[(&str, f64)]) -> Evidence {
    let text = "
        [policy_serving]
        engine = \"tch\"
        [policy_training]
        engine = \"tch\"
    ";
    let (config, _) = load_config(&Layers::new().toml("config.toml", text)).unwrap();
    let (ratios, course) = Ratios::of(&report.0);
    let waits = [
        ("staleness_head_mean", 2.0),
        ("staleness_part_output_queue", 1.5),
        ("staleness_part_generating", 0.5),
        ("part_seconds_output_queue", 30.0),
        ("staleness_token_mean", 2.0),
        ("staleness_tail_mean", 1.8),
        ("failed_vote_share", 0.01),
        ("timed_out_vote_share", 0.0),
        ("judge_calls_per_hour", 600.0),
        ("duration_seconds", 3600.0),
        ("publications_per_hour", 40.0),
        ("trained_samples_per_hour", 600.0),
        ("trained_tokens_per_second", 10.0),
    ];
    let metrics = waits.iter().chain(metrics).map(|(name, value)| ((*name).to_owned(), *value));
    Evidence {
        config: Some(config),
        metrics: metrics.collect(),
        ratios,
        course,
        ..Evidence::default()
    }
}

/// 40 steps whose tokens differ at staleness 0 by `floor`, and at 1 and 2 by what `spread` adds.
fn drifting(floor: f64, per_version: f64) -> Report {
    let mut report = Report::new();
    for step in 0..40 {
        for staleness in 0..3 {
            let spread = (floor * floor + per_version * f64::from(staleness)).sqrt();
            report.put(step, "learner_rollout", staleness, &honest(200.0, spread));
        }
        report.difference(step, 0.03);
    }
    report
}

fn named(evidence: &Evidence) -> Vec<Named> {
    diagnose(evidence).findings.iter().map(|finding| finding.named).collect()
}

#[test]
fn a_healthy_run_has_no_cause_and_all_three_signs() {
    let evidence = run(&drifting(1e-6, 0.005), &[]);
    let diagnosis = diagnose(&evidence);
    assert_eq!(diagnosis.findings, []);
    assert!(diagnosis.signs.iter().all(|sign| sign.holds == Some(true)), "{:?}", diagnosis.signs);
}

#[test]
fn a_spread_that_grows_with_waiting_is_age_and_names_the_longest_part() {
    let evidence = run(&drifting(1e-6, 0.05), &[]);
    let diagnosis = diagnose(&evidence);
    assert_eq!(named(&evidence), [Named::Age]);
    let age = &diagnosis.findings[0];
    assert_eq!(age.settings[0].key, "policy_training.max_head_off_policyness");
    assert_eq!(age.settings[0].now, "2");
    assert_eq!(age.settings.last().unwrap().key, "queue.output.max_size");
    assert!(age.evidence.iter().any(|said| said.contains("`output_queue`")), "{age:?}");
}

#[test]
fn a_short_blow_up_in_a_long_run_still_shows() {
    let mut report = drifting(1e-6, 0.0001);
    for step in 100..116 {
        for staleness in 0..3 {
            let spread = (0.04 * f64::from(staleness)).sqrt();
            report.put(step, "learner_rollout", staleness, &honest(200.0, spread));
        }
    }
    assert_eq!(named(&run(&report, &[])), [Named::Age]);
}

#[test]
fn a_spread_that_grows_while_turns_are_generated_is_mixing() {
    let within = [("staleness_token_mean", 2.0), ("staleness_tail_mean", 0.4)];
    let evidence = run(&drifting(1e-6, 0.05), &within);
    assert_eq!(named(&evidence), [Named::Mixing]);
    let keys: Vec<_> =
        diagnose(&evidence).findings[0].settings.iter().map(|setting| setting.key).collect();
    assert_eq!(keys[0], "policy_serving.sync_mode");
}

#[test]
fn a_defect_of_continued_tokens_is_mixing_and_asks_for_a_fresh_cache() {
    let mut report = drifting(1e-6, 0.005);
    for step in 0..4 {
        let (begun, continued) = (1e-6_f64, 0.03_f64);
        let all = (0.5 * (begun * begun + continued * continued)).sqrt();
        report.put(step, "probe", 0, &honest(200.0, all));
        report.put(step, "probe_continued", 0, &honest(100.0, continued));
    }
    let evidence = run(&report, &[]);
    assert_eq!(named(&evidence), [Named::Mixing]);
    assert_eq!(diagnose(&evidence).findings[0].settings[0].key, "policy_serving.kv_on_sync");
}

#[test]
fn a_floor_above_one_precision_is_numerics() {
    let evidence = run(&drifting(0.01, 0.00001), &[]);
    assert_eq!(named(&evidence), [Named::Numerics]);
    // What bf16 leaves between two engines of their own is what one precision leaves.
    let mut other = evidence;
    other.config = None;
    assert_eq!(named(&other), []);
    let mut low = run(&drifting(0.1, 0.00001), &[]);
    low.config = None;
    assert_eq!(named(&low), [Named::Numerics]);
}

#[test]
fn a_defect_of_all_tokens_is_numerics_whether_or_not_they_were_continued() {
    let mut report = drifting(0.01, 0.00001);
    for step in 0..4 {
        report.put(step, "probe", 0, &honest(200.0, 0.01));
        report.put(step, "probe_continued", 0, &honest(100.0, 0.011));
    }
    assert_eq!(named(&run(&report, &[])), [Named::Numerics]);
}

/// `share` of the tokens have 0 in place of a log-probability that is exponential with this mean.
fn padded(entropy: f64, share: f64) -> Vec<(&'static str, f64)> {
    // The ratio of such a token is its probability: p^(1/entropy - 1) / entropy.
    let rate = 1.0 / entropy;
    let (mean, square) = (rate / (rate + 1.0), rate / (rate + 2.0));
    let ratio = 1.0 + share * (mean - 1.0);
    let variance = 1.0 + share * (square - 1.0) - ratio * ratio;
    moments(200.0, -share * entropy, 2.0 * share * entropy * entropy, ratio, variance)
}

#[test]
fn zeros_for_log_probabilities_are_labels() {
    for (entropy, share) in [(0.5, 0.05), (0.5, 1.0), (1.0, 0.3), (2.5, 1.0)] {
        let mut report = Report::new();
        for step in 0..40 {
            for staleness in 0..3 {
                report.put(step, "learner_rollout", staleness, &padded(entropy, share));
            }
        }
        let evidence = run(&report, &[]);
        assert_eq!(named(&evidence), [Named::Labels], "{entropy} {share}");
        assert_eq!(diagnose(&evidence).findings[0].settings[0].key, "padding");
    }
}

#[test]
fn log_probabilities_of_other_tokens_are_labels_however_heavy_their_tail() {
    for (entropy, share) in [(0.3_f64, 1.0), (0.4, 0.3), (0.5, 1.0)] {
        let mut report = Report::new();
        // The difference of two exponentials: no mean ratio where the entropy is 1, and no variance
        // of it from 0.5 on. What is seen then is what so many tokens happen to show.
        let square = 2.0 * share * entropy * entropy;
        let excess = share * f64::min(entropy * entropy / (1.0 - entropy * entropy).max(0.1), 2.0);
        for step in 0..40 {
            for staleness in 0..3 {
                let values = moments(200.0, 0.0, square, 1.0 + excess, 40.0 * share);
                report.put(step, "learner_rollout", staleness, &values);
            }
        }
        let evidence = run(&report, &[]);
        assert_eq!(named(&evidence), [Named::Labels], "{entropy} {share}");
        assert_eq!(diagnose(&evidence).findings[0].settings[0].key, "tokenisation");
    }
}

#[test]
fn without_tokens_of_staleness_0_the_floor_is_extrapolated_and_never_from_one_point() {
    let mut report = Report::new();
    for step in 0..40 {
        for staleness in 4..9 {
            let spread = (0.02 * f64::from(staleness)).sqrt();
            report.put(step, "learner_rollout", staleness, &honest(100.0, spread));
        }
    }
    assert_eq!(named(&run(&report, &[])), [Named::Age]);
    let spread = diagnose(&run(&report, &[])).spread.unwrap();
    assert_eq!(spread.floor_from, spread::Floor::Extrapolated);
    let mut one = Report::new();
    (0..40).for_each(|step| one.put(step, "learner_rollout", 4, &honest(500.0, 0.3)));
    let spread = diagnose(&run(&one, &[])).spread.unwrap();
    assert_eq!(spread.floor_from, spread::Floor::Assumed);
    assert_eq!(named(&run(&one, &[])), [Named::Age]);
    let mut flat = Report::new();
    for step in 0..40 {
        (4..9).for_each(|k| flat.put(step, "learner_rollout", k, &honest(100.0, 0.05)));
    }
    assert_eq!(named(&run(&flat, &[])), [Named::Numerics]);
}

#[test]
fn a_difference_climbs_above_what_engines_differ_by_and_not_for_want_of_age() {
    let climbing = |from: f64, to: f64| {
        let mut report = drifting(1e-6, 0.0001);
        report.0.retain(|number| number.staleness.is_some());
        (0..40).for_each(|step| {
            report.difference(step, from + (to - from) * step as f64 / 40.0);
        });
        named(&run(&report, &[]))
    };
    assert_eq!(climbing(0.02, 0.1), [Named::DifferenceClimbs]);
    assert_eq!(climbing(0.002, 0.01), [], "below what two engines differ by");
    assert_eq!(climbing(0.1, 0.11), []);
    // The first steps of a run train what they have just generated.
    let mut report = Report::new();
    for step in 0..12 {
        let staleness = u32::from(step >= 5);
        let spread = if step >= 5 { 0.07 } else { 1e-6 };
        report.put(step, "learner_rollout", staleness, &honest(200.0, spread));
        report.difference(step, if step >= 5 { 0.05 } else { 1e-7 });
    }
    let evidence = run(&report, &[]);
    assert_eq!(evidence.course.unwrap().steps, 7);
    assert_eq!(named(&evidence), []);
}

#[test]
fn each_trouble_is_named_by_its_own_numbers() {
    let calm = drifting(1e-6, 0.001);
    let with = |metrics: &[(&str, f64)]| named(&run(&calm, metrics));
    let late = [("failed_vote_share", 0.95), ("timed_out_vote_share", 0.95)];
    assert_eq!(with(&late), [Named::JudgeTimesOut]);
    assert_eq!(with(&[("failed_vote_share", 1.0)]), [Named::JudgeSilent]);
    assert_eq!(with(&[("refused_queue_full_share", 0.5)]), [Named::QueueFull]);
    assert_eq!(with(&[("refused_queue_full_share", 0.01)]), []);
    let stuck = [("publications_per_hour", 0.0), ("failed_publications_per_hour", 40.0)];
    assert_eq!(with(&stuck), [Named::SyncNeverEnds]);
    assert_eq!(with(&[("failed_publications_per_hour", 2.0)]), []);
    assert_eq!(with(&[("closed_seconds_max", 3000.0)]), [Named::SyncNeverEnds]);
    let signs = |metrics: &[(&str, f64)]| {
        diagnose(&run(&calm, metrics)).signs.map(|sign| sign.holds.unwrap())
    };
    assert_eq!(signs(&late), [false, true, true]);
    assert_eq!(signs(&stuck), [true, false, true]);
}

#[test]
fn a_run_without_ratios_has_none_and_unknown_is_not_healthy_nor_wrong() {
    let evidence = run(&Report::new(), &[]);
    let diagnosis = diagnose(&evidence);
    assert!(diagnosis.is_healthy() && diagnosis.spread.is_none());
    assert_eq!(diagnosis.signs[2].holds, None);
    let document = json(&evidence, &diagnosis);
    assert_eq!(document["ratios"], serde_json::Value::Null);
    assert_eq!(document["signs"][2]["holds"], serde_json::Value::Null);
}

#[test]
fn an_external_trainer_may_report_whole_steps_alone() {
    let mut report = Report::new();
    for step in 0..20 {
        for (name, value) in honest(500.0, 0.3) {
            let (step, name) = (StepId(step), format!("learner_rollout_{name}"));
            report.0.push(Reported { step, name, staleness: None, value });
        }
    }
    let evidence = run(&report, &[]);
    let spread = diagnose(&evidence).spread.unwrap();
    assert!((spread.all.sqrt() - 0.3).abs() < 0.01);
    assert_eq!(named(&evidence), [Named::Age]);
}
