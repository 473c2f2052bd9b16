//! What is said of `results/validation/live.csv` is in it: docs/accuracy.md.

use super::committed::root;

/// A prediction of a run: its metric, and whether it is within its tolerance.
fn within(metric: &str) -> (usize, usize) {
    let mut reader = csv::Reader::from_path(root().join("results/validation/live.csv")).unwrap();
    let names = reader.headers().unwrap().clone();
    let column = |name: &str| names.iter().position(|other| other == name).unwrap();
    let (named, held) = (column("metric"), column("within"));
    let rows = reader.records().map(Result::unwrap).filter(|row| &row[named] == metric);
    rows.fold((0, 0), |(all, inside), row| (all + 1, inside + usize::from(&row[held] == "yes")))
}

#[test]
fn live_runs_are_predicted_as_the_page_says() {
    let goals = [
        ("trained_samples_per_hour", 22),
        ("staleness_head_mean", 21),
        ("staleness_part_publish_lag", 24),
        ("staleness_part_generating", 24),
        ("staleness_part_next_state", 24),
        ("staleness_part_judge_queue", 20),
        ("staleness_part_judging", 24),
        ("staleness_part_group_mates", 23),
        ("staleness_part_output_queue", 18),
        ("refused_stale_share", 23),
        ("refused_503_share", 23),
        ("learner_rollout_step_p99", 22),
        ("train_rollout_logprob_abs_diff", 23),
    ];
    for (metric, inside) in goals {
        assert_eq!(within(metric), (24, inside), "{metric}");
    }
}
