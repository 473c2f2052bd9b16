//! Where staleness comes from.

use headway_shared::config::JudgeNeeds;
use headway_shared::core::Stage;
use headway_shared::input::{Finish, Input, Segment};
use headway_shared::time::Time;
use headway_shared::version::RolloutVersion;
use smallvec::smallvec;

use super::harness::{Bench, GOOD, secs};

/// Batches of one; eight samples wait, so that each step that ends makes a version at once.
fn eight_versions_ahead() -> Bench {
    let mut bench = Bench::new(|c| {
        c.policy_training.batch_size = 1;
        c.policy_training.max_head_off_policyness = 40;
        c.reward_judging.judge_concurrency = 1;
        c.reward_judging.judge_needs = JudgeNeeds::NextState;
        c.reward_judging.judge_timeout = secs(0);
    });
    for session in 0..8 {
        let sample = bench.turn(session);
        bench.next_state(session);
        bench.vote(sample, GOOD);
    }
    bench
}

fn new_version(bench: &mut Bench) {
    bench.advance(secs(10));
    bench.end_step(true);
}

#[test]
fn the_parts_of_staleness_are_the_versions_that_passed_in_each_stage() {
    let mut bench = eight_versions_ahead();
    new_version(&mut bench);
    let request = bench.admit(100);
    let sample = bench.sample_of(request);
    let first_token = bench.now;
    new_version(&mut bench);
    bench.advance(secs(5));
    bench.give(Input::GenerationEnded {
        request,
        attempt: 1,
        finish: Finish::Stop,
        first_token: Some(first_token),
        segments: smallvec![Segment { version: RolloutVersion::new(0), tokens: 7 }],
    });
    new_version(&mut bench);
    let blocker = bench.turn(200);
    bench.next_state(200);
    bench.next_state(100);
    new_version(&mut bench);
    bench.vote(blocker, GOOD);
    new_version(&mut bench);
    new_version(&mut bench);
    bench.vote(sample, GOOD);
    while !bench.was_trained(sample) {
        new_version(&mut bench);
    }
    let sample = bench.trained_sample(sample);
    let [lag, generating, next_state, judge_queue, judging, mates, output] =
        sample.staleness_parts();
    assert_eq!([lag, generating, next_state, judge_queue, judging, mates], [1, 1, 1, 1, 2, 0]);
    assert_eq!(sample.staleness_head(), 6 + output);
    assert_eq!(sample.learner(Stage::TrainStarted).number(), sample.staleness_head());
    assert_eq!(sample.time(Stage::FirstToken), first_token);
}

#[test]
fn head_tail_and_mean_staleness_are_told_apart() {
    let mut bench = Bench::new(|c| {
        c.policy_training.batch_size = 1;
        c.policy_training.max_head_off_policyness = 9;
    });
    let slow = bench.admit(0);
    for session in 1..3 {
        bench.scored(session, GOOD);
        bench.end_step(true);
        bench.publish();
    }
    // Its tokens: 1 of version 0, 1 of version 1, 8 of version 2.
    bench.finish(slow);
    bench.vote(bench.sample_of(slow), GOOD);
    bench.end_step(true);
    let sample = bench.trained_sample(bench.sample_of(slow));
    assert_eq!((sample.staleness_head(), sample.staleness_tail()), (2, 0));
    assert_eq!((sample.staleness_token_sum(), sample.tokens), (2 + 1, 10));
    assert_eq!(sample.serving_skew(), 2);
}

#[test]
fn a_first_token_that_is_said_to_come_before_its_start_does_no_harm() {
    let mut bench = Bench::new(|c| c.policy_training.batch_size = 1);
    bench.advance(secs(100));
    let request = bench.admit(0);
    bench.advance(secs(1));
    for (first_token, request) in
        [(Some(Time::ZERO), request), (Some(Time::MAX), bench.admit(1)), (None, bench.admit(2))]
    {
        bench.give(Input::GenerationEnded {
            request,
            attempt: 1,
            finish: Finish::Stop,
            first_token,
            segments: smallvec![Segment { version: RolloutVersion::new(0), tokens: 7 }],
        });
        bench.vote(bench.sample_of(request), GOOD);
        bench.end_step(true);
        // That the parts add up is asserted by the checker.
        assert!(bench.was_trained(bench.sample_of(request)));
    }
}

#[test]
fn age_counts_from_the_end_of_the_generation_to_the_start_of_the_step() {
    let mut bench = Bench::new(|c| c.policy_training.batch_size = 1);
    let request = bench.admit(0);
    bench.advance(secs(20));
    bench.finish(request);
    bench.advance(secs(7));
    bench.vote(bench.sample_of(request), GOOD);
    bench.advance(secs(3));
    bench.end_step(true);
    assert_eq!(bench.trained[0].age(), secs(7));
}
