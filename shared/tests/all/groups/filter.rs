//! `filter = "zero_variance"`: groups that have nothing to learn from.

use headway_shared::action::Discard;
use headway_shared::config::{
    BatchCounts, Config, GateKind, GroupFilter, OnJudgeFailure, ZeroScore,
};
use headway_shared::core::Stall;
use headway_shared::input::VoteOutcome;

use super::super::harness::{BAD, Bench, Delay, GOOD, Plan, World, ZERO, secs, small};

/// Groups of 2, one per batch at η = 0, filtered.
fn filtered(edit: impl FnOnce(&mut Config)) -> Bench {
    Bench::new(|c| {
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 2;
        c.policy_training.batch_size = 1;
        c.policy_training.max_head_off_policyness = 0;
        c.policy_training.filter = GroupFilter::ZeroVariance;
        edit(c);
    })
}

/// A whole group with these scores.
fn group(bench: &mut Bench, id: u64, scores: [i32; 2]) -> [headway_shared::id::SampleId; 2] {
    let first = bench.scored_in(2 * id, id, scores[0]);
    [first, bench.scored_in(2 * id + 1, id, scores[1])]
}

#[test]
fn a_group_of_equal_scores_never_trains_and_gives_its_place_back() {
    let mut bench = filtered(|_| {});
    for (id, score) in (0..30).zip([GOOD, ZERO, BAD].into_iter().cycle()) {
        let members = group(&mut bench, id, [score, score]);
        for member in members {
            assert_eq!(bench.fate(member), Some(Discard::ZeroVariance));
        }
        assert_eq!(bench.core.gauges().outstanding, 0);
    }
    let kept = group(&mut bench, 99, [GOOD, ZERO]);
    assert_eq!(bench.batch(), kept);
    let ledger = bench.core.ledger();
    assert_eq!((ledger.groups_complete, ledger.groups_filtered), (31, 30));
}

#[test]
fn members_without_a_gradient_are_not_compared() {
    let masks = |c: &mut Config| {
        c.reward_judging.judge_retries = 0;
        c.reward_judging.on_judge_failure = OnJudgeFailure::Mask;
        c.policy_training.group_size = 3;
    };
    let mut bench = filtered(masks);
    let masked = bench.turn_in(0, 7);
    // It has no score to differ by.
    bench.vote_as(masked, VoteOutcome::Invalid);
    bench.scored_in(1, 7, GOOD);
    bench.scored_in(2, 7, GOOD);
    assert_eq!(bench.fate(masked), Some(Discard::ZeroVariance));
    let masked = bench.turn_in(3, 8);
    bench.vote_as(masked, VoteOutcome::Invalid);
    bench.scored_in(4, 8, GOOD);
    bench.scored_in(5, 8, ZERO);
    assert!(bench.batch().contains(&masked), "it keeps its place in a group that trains");
}

#[test]
fn one_score_alone_and_none_at_all_have_no_variance() {
    let mut bench = filtered(|c| {
        c.reward_judging.judge_retries = 0;
        c.reward_judging.on_judge_failure = OnJudgeFailure::Mask;
        c.policy_training.min_group_size = 1;
        c.policy_training.straggler_wait = secs(10);
    });
    let alone = bench.scored_in(0, 7, GOOD);
    bench.advance(secs(10));
    assert_eq!(bench.fate(alone), Some(Discard::ZeroVariance));
    let both = [bench.turn_in(1, 8), bench.turn_in(2, 8)];
    for masked in both {
        bench.vote_as(masked, VoteOutcome::Invalid);
    }
    assert_eq!(both.map(|sample| bench.fate(sample)), [Some(Discard::ZeroVariance); 2]);
}

#[test]
fn a_filtered_group_is_not_counted_as_accepted() {
    let mut bench = filtered(|c| {
        c.policy_training.gate = GateKind::Areal;
        c.policy_serving.max_concurrent_rollouts = 8;
    });
    for id in 0..30 {
        group(&mut bench, id, [GOOD, GOOD]);
    }
    group(&mut bench, 99, [GOOD, ZERO]);
    assert!(bench.training(), "the gate has not closed over what was filtered");
}

#[test]
fn a_filtered_group_is_a_result_where_batches_count_results() {
    let mut bench = filtered(|c| {
        c.policy_training.batch_size = 2;
        c.policy_training.batch_counts = BatchCounts::Results;
    });
    group(&mut bench, 1, [GOOD, GOOD]);
    assert!(!bench.training());
    let kept = group(&mut bench, 2, [GOOD, ZERO]);
    assert_eq!(bench.batch(), kept, "one of two results was rejected");
}

#[test]
fn progress_resumes_when_the_filter_keeps_something_again() {
    let mut bench = filtered(|_| {});
    for id in 0..37 {
        group(&mut bench, id, [ZERO, ZERO]);
    }
    assert_eq!(bench.core.stall(), Stall::Filter { groups: 37 });
    let said = bench.core.stall().to_string();
    assert!(said.starts_with("policy training blocks: 37 groups in a row had equal"), "{said}");
    assert!(said.contains("`filter = \"zero_variance\"`"), "{said}");
    for id in 100..105 {
        group(&mut bench, id, [GOOD, ZERO]);
        bench.end_step(true);
        bench.publish();
    }
    assert_eq!(bench.core.ledger().steps, 5);
    assert_ne!(bench.core.stall(), Stall::Filter { groups: 37 });
}

#[test]
fn a_step_that_runs_is_named_before_the_filter() {
    let mut bench = filtered(|c| c.policy_training.max_head_off_policyness = 3);
    group(&mut bench, 100, [GOOD, ZERO]);
    for id in 0..20 {
        group(&mut bench, id, [ZERO, ZERO]);
    }
    assert_eq!(bench.core.stall(), Stall::Step);
}

#[test]
fn a_filter_that_keeps_a_third_makes_progress_in_a_world_of_many_clients() {
    for zero_score in [ZeroScore::Train, ZeroScore::Discard] {
        let mut config = small();
        config.policy_training.group_size = 4;
        config.policy_training.min_group_size = 2;
        config.policy_training.batch_size = 3;
        config.policy_training.filter = GroupFilter::ZeroVariance;
        config.policy_training.over_sampling = 1_500_000;
        config.reward_judging.zero_score = zero_score;
        let plan = Plan {
            clients: 40,
            zeros: 50,
            generate: Delay { least: 5, most: 80 },
            steps: 20,
            inputs: 60_000,
            ..Plan::calm()
        };
        let mut world = World::new(config, plan);
        world.run();
        assert_eq!(world.bench.learner(), 20);
        assert!(world.bench.core.ledger().groups_filtered > 0);
        let differ = |id: headway_shared::id::GroupId| {
            let of = world.bench.trained.iter().filter(|s| s.group == Some(id) && !s.masked);
            of.map(|s| s.score).collect::<std::collections::BTreeSet<_>>().len() > 1
        };
        assert!(world.bench.trained.iter().all(|s| s.group.is_some_and(differ)));
    }
}
