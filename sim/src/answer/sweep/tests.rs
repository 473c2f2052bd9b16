use super::*;
use crate::report::csv::Csv;
use crate::report::results::{Kind, Meta};
use crate::stats;

const KEY: &str = "policy_training.max_head_off_policyness";

/// A sweep of η: the throughput of each replication, and the mean staleness.
fn sweep(points: &[(&str, &[f64], f64)]) -> Results {
    let mut table = Csv::new(["point", KEY, RATE, "trained_samples_per_hour_hw", AGE, OLD]);
    let mut runs = Csv::new(["point", "replication", RATE]);
    for (place, (eta, rates, age)) in points.iter().enumerate() {
        let found = stats::estimate(rates);
        table.rows.push(vec![
            place.to_string(),
            (*eta).to_owned(),
            number::cell(found.map(|found| found.mean)),
            number::cell(found.and_then(|found| found.half_width)),
            number::text(*age),
            number::text(age + 2.0),
        ]);
        runs.rows.extend(rates.iter().enumerate().map(|(replication, rate)| {
            vec![place.to_string(), replication.to_string(), number::text(*rate)]
        }));
    }
    let meta = Meta {
        kind: Kind::Sweep,
        version: String::new(),
        scenario: "made-up".into(),
        title: String::new(),
        scenario_digest: String::new(),
        seed: 1,
        replications: points.first().map_or(0, |point| point.1.len() as u32),
        keys: vec![KEY.into()],
        drift: None,
        config: None,
        about: None,
        plots: Vec::new(),
    };
    let empty = || Csv::new(["point"]);
    Results { meta, points: table, runs, histogram: empty(), series: empty(), ratios: None }
}

fn has(lines: &[String], part: &str) {
    assert!(
        lines.iter().any(|line| line.contains(part)),
        "{part:?} is not in\n{}",
        lines.join("\n")
    );
}

#[test]
fn the_smallest_bound_whose_throughput_may_be_the_best_is_taken() {
    let answer = of(&sweep(&[
        ("0", &[300.0, 302.0, 304.0, 306.0], 0.0),
        ("2", &[798.0, 803.0, 807.0, 812.0], 1.7),
        ("4", &[800.0, 810.0, 790.0, 820.0], 3.3),
        ("8", &[805.0, 800.0, 810.0, 808.0], 6.5),
    ]));
    assert_eq!(answer.question, "Which staleness bound should I choose, and why?");
    assert!(answer.is_known && answer.chosen == Some(1));
    assert!(answer.answer.starts_with("Take η = 2: it trains 805 ±"), "{}", answer.answer);
    assert!(answer.answer.contains("mean staleness of 1.7 learner versions (p99 3.7)"));
    has(&answer.because, "The most is trained with η = 8");
    has(&answer.because, "That may be chance.");
    has(&answer.because, "A smaller bound costs throughput: η = 0 trains 503 ±");
    has(
        &answer.because,
        "A larger bound costs age: with η = 4 the mean staleness is 3.3, 1.9 times as old",
    );
}

#[test]
fn a_loss_that_is_clear_and_small_is_named_as_one() {
    // 8 more of 808 in every pair: clear, and clearly below 2%.
    let answer = of(&sweep(&[
        ("1", &[500.0, 501.0, 499.0, 500.0], 0.9),
        ("4", &[800.0, 801.0, 799.0, 800.0], 3.0),
        ("8", &[808.0, 809.0, 807.0, 808.1], 7.0),
    ]));
    assert_eq!(answer.chosen, Some(1));
    has(&answer.because, "clearly no more than 2.0% of it");
    has(&answer.but, "The best point has the largest bound that was swept, 8");
}

#[test]
fn a_loss_that_is_clear_and_large_is_not_taken() {
    let answer = of(&sweep(&[
        ("1", &[500.0, 501.0, 499.0, 500.0], 0.9),
        ("4", &[800.0, 801.0, 799.0, 800.0], 3.0),
    ]));
    assert_eq!(answer.chosen, Some(1));
    has(&answer.because, "Nothing fresher that was swept is known to come within 2.0%");
}

#[test]
fn pairs_count_and_not_the_spread_of_the_runs() {
    // The spread of the runs hides a difference that each pair has.
    let answer = of(&sweep(&[
        ("1", &[700.0, 750.0, 800.0, 850.0], 0.9),
        ("4", &[750.0, 800.0, 850.0, 900.1], 3.0),
    ]));
    assert_eq!(answer.chosen, Some(1), "{answer:?}");
}

#[test]
fn of_one_replication_nothing_is_concluded() {
    let answer = of(&sweep(&[("1", &[500.0], 0.9), ("4", &[800.0], 3.0)]));
    assert!(!answer.is_known && answer.chosen.is_none());
    assert!(answer.answer.contains("with one replication no difference can be told from chance"));
    assert!(answer.answer.contains("800 samples/h, with η = 4"), "{}", answer.answer);
}

#[test]
fn where_every_difference_is_known_poorly_nothing_is_concluded() {
    let answer = of(&sweep(&[("1", &[500.0, 900.0], 0.9), ("4", &[800.0, 1300.0], 3.0)]));
    assert!(!answer.is_known, "{answer:?}");
    assert!(answer.answer.starts_with("Nothing can be concluded yet"));
}

#[test]
fn what_is_known_too_poorly_is_named_and_not_taken() {
    let answer = of(&sweep(&[
        ("1", &[700.0, 950.0, 650.0, 900.0], 0.9),
        ("4", &[800.0, 801.0, 802.0, 803.0], 3.0),
        ("8", &[805.0, 806.0, 807.0, 808.0], 6.0),
    ]));
    assert_eq!(answer.chosen, Some(1));
    has(&answer.but, "Of η = 1, which would be fresher, the throughput is known too poorly");
}

#[test]
fn where_nothing_trains_nothing_is_chosen() {
    let answer = of(&sweep(&[("1", &[0.0, 0.0], 0.0)]));
    assert_eq!(answer.answer, "Nothing can be concluded: no point trained anything.");
    assert!(!of(&sweep(&[])).is_known);
}

#[test]
fn another_key_asks_another_question() {
    let mut results = sweep(&[("1", &[500.0, 501.0], 0.9), ("4", &[500.0, 502.0], 1.0)]);
    results.meta.keys = vec!["reward_judging.judge_concurrency".into()];
    results.points.header[1] = "reward_judging.judge_concurrency".into();
    let answer = of(&results);
    assert_eq!(answer.question, "Which judge_concurrency should I choose, and why?");
    assert!(answer.answer.starts_with("Take judge_concurrency = 1"), "{}", answer.answer);
}
