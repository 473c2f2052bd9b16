//! Short batches, failed steps, and steps that never answer.

use headway_shared::action::{Action, Discard};
use headway_shared::config::{Choice, Config, GateKind, QueueOrder};
use headway_shared::input::Input;

use super::harness::{Bench, GOOD, secs};

/// Batches of 4, or of 2 after 10 s.
fn impatient(edit: impl FnOnce(&mut Config)) -> Bench {
    Bench::new(|c| {
        c.policy_training.batch_size = 4;
        c.policy_training.max_batch_wait = secs(10);
        c.policy_training.min_batch_size = 2;
        edit(c);
    })
}

#[test]
fn a_short_batch_trains_after_its_wait() {
    let mut bench = impatient(|_| {});
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.advance(secs(9));
    assert!(!bench.training());
    bench.advance(secs(2));
    assert_eq!(bench.batch().len(), 2);
    bench.end_step(true);
    assert_eq!(bench.core.ledger().short_steps, 1);
}

#[test]
fn fewer_than_min_batch_size_never_train() {
    let mut bench = impatient(|_| {});
    bench.scored(0, GOOD);
    bench.advance(secs(1000));
    assert!(!bench.training());
}

#[test]
fn at_eta_zero_a_short_batch_waits_for_everything_outstanding() {
    let mut bench = impatient(|c| c.policy_training.max_head_off_policyness = 0);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    let running = bench.admit(2);
    bench.advance(secs(100));
    assert!(!bench.training(), "the third would be stale after it");
    bench.finish_as(running, headway_shared::input::Finish::Failed, 0);
    bench.advance(secs(11));
    assert_eq!(bench.batch().len(), 2);
}

#[test]
fn a_gate_that_binds_no_sample_waits_for_none() {
    let mut bench = impatient(|c| {
        c.policy_training.gate = GateKind::Areal;
        c.policy_training.max_head_off_policyness = 0;
        c.policy_serving.max_concurrent_rollouts = 16;
    });
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.admit(2);
    bench.advance(secs(11));
    assert_eq!(bench.batch().len(), 2);
}

#[test]
fn a_short_batch_starts_where_what_is_outstanding_may_grow_older() {
    let mut bench = impatient(|c| c.policy_training.max_head_off_policyness = 1);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.admit(2);
    bench.advance(secs(11));
    assert_eq!(bench.batch().len(), 2);
    bench.end_step(true);
    // Now it is one version old: another short step would make it exceed the bound.
    bench.publish();
    bench.scored(3, GOOD);
    bench.scored(4, GOOD);
    bench.advance(secs(100));
    assert!(!bench.training());
}

/// One full batch after the short one trains what is outstanding in time, if it is no more than that.
#[test]
fn a_short_batch_starts_while_no_more_than_a_full_one_is_outstanding() {
    for (outstanding, starts) in [(4, true), (5, false)] {
        let mut bench = impatient(|c| c.policy_training.max_head_off_policyness = 1);
        bench.scored(0, GOOD);
        bench.scored(1, GOOD);
        for session in 0..outstanding {
            bench.admit(2 + session);
        }
        bench.advance(secs(11));
        assert_eq!(bench.training(), starts, "{outstanding}");
    }
}

/// What may grow older is counted from its own version on, late in a run as at its start.
#[test]
fn a_short_batch_starts_late_in_a_run_as_well() {
    let mut bench = impatient(|c| c.policy_training.max_head_off_policyness = 1);
    bench.steps(9);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.admit(2);
    bench.advance(secs(11));
    assert_eq!(bench.batch().len(), 2);
}

#[test]
fn a_failed_step_gives_its_samples_back_in_order() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 9);
    let samples: Vec<_> = (0..4).map(|session| bench.scored(session, GOOD)).collect();
    let first = bench.batch();
    bench.end_step(false);
    assert_eq!(bench.batch(), first, "the same batch is tried again");
    assert_eq!(bench.learner(), 0);
    bench.end_step(true);
    assert_eq!(bench.batch(), samples[2..]);
    assert_eq!(bench.core.ledger().failed_steps, 1);
    assert_eq!(bench.core.ledger().trained, 2);
}

#[test]
fn a_failed_batch_is_tried_again_whatever_the_order_of_the_queue() {
    for &(word, order) in QueueOrder::ALL {
        let mut bench = Bench::new(|c| {
            c.policy_training.max_head_off_policyness = 9;
            c.queue.output.queue_type = order;
        });
        let samples: Vec<_> = (0..4).map(|session| bench.scored(session, GOOD)).collect();
        bench.end_step(false);
        let mut batch = bench.batch();
        batch.sort_unstable();
        assert_eq!(batch, samples[..2], "{word}");
    }
}

#[test]
fn a_batch_that_fails_again_and_again_is_discarded() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.policy_training.train_retries = 2;
    });
    let samples: Vec<_> = (0..4).map(|session| bench.scored(session, GOOD)).collect();
    bench.end_step(false);
    bench.end_step(false);
    assert_eq!(bench.fate(samples[0]), None);
    bench.end_step(false);
    assert_eq!(bench.fate(samples[0]), Some(Discard::StepFailed));
    assert_eq!(bench.fate(samples[1]), Some(Discard::StepFailed));
    assert_eq!(bench.batch(), samples[2..], "the next batch is tried afresh");
    bench.end_step(false);
    assert_eq!(bench.fate(samples[2]), None);
}

#[test]
fn a_step_without_an_answer_is_given_up_and_tried_again() {
    let mut bench = Bench::new(|c| c.policy_training.train_timeout = secs(60));
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    let (batch, lost) = (bench.batch(), bench.watch.step.expect("it trains"));
    bench.advance(secs(61));
    assert_eq!(bench.batch(), batch);
    assert!(bench.did(|action| *action == Action::CancelStep { step: lost }));
    assert_eq!(bench.core.state().step, bench.watch.step, "the state names the one that trains");
    assert_ne!(bench.watch.step, Some(lost), "another attempt is another step");
    bench.give(Input::StepEnded { step: lost, ok: true });
    assert_eq!(bench.learner(), 0, "an answer that comes too late counts for nothing");
    bench.end_step(true);
    assert_eq!(bench.trained.len(), 2);
}

#[test]
fn a_failed_step_frees_no_place() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 0);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.end_step(false);
    bench.refuses(2, headway_shared::action::Refusal::Stale);
}

#[test]
fn with_results_a_batch_is_full_when_that_many_are_judged() {
    let mut bench = Bench::new(|c| {
        c.policy_training.batch_size = 4;
        c.policy_training.batch_counts = headway_shared::config::BatchCounts::Results;
        c.reward_judging.zero_score = headway_shared::config::ZeroScore::Discard;
    });
    bench.scored(0, GOOD);
    bench.scored(1, 0);
    bench.scored(2, GOOD);
    assert!(!bench.training());
    bench.scored(3, 0);
    assert_eq!(bench.batch().len(), 2);
}

#[test]
fn with_results_what_a_batch_does_not_need_counts_for_the_next() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.policy_training.batch_size = 3;
        c.policy_training.batch_counts = headway_shared::config::BatchCounts::Results;
        c.reward_judging.zero_score = headway_shared::config::ZeroScore::Discard;
    });
    let scores = [GOOD, GOOD, GOOD, GOOD, 0, 0, 0];
    let samples: Vec<_> =
        scores.into_iter().zip(0..).map(|(score, session)| bench.scored(session, score)).collect();
    assert_eq!(bench.batch(), samples[..3]);
    bench.end_step(true);
    assert_eq!(bench.batch(), samples[3..4], "with two of three that were rejected");
    let fifth = bench.scored(7, GOOD);
    bench.end_step(true);
    assert!(!bench.training(), "it and the third that was rejected are two results");
    let sixth = bench.scored(8, GOOD);
    assert_eq!(bench.batch(), [fifth, sixth]);
}

#[test]
fn with_results_a_batch_has_at_least_one_sample() {
    let mut bench = Bench::new(|c| {
        c.policy_training.batch_counts = headway_shared::config::BatchCounts::Results;
        c.reward_judging.zero_score = headway_shared::config::ZeroScore::Discard;
    });
    bench.scored(0, 0);
    bench.scored(1, 0);
    assert!(!bench.training());
    bench.scored(2, GOOD);
    if !bench.training() {
        // The batch that was rejected whole is over; this is the next one.
        bench.scored(3, 0);
    }
    assert_eq!(bench.batch().len(), 1);
}

#[test]
fn with_results_batches_that_are_rejected_whole_do_not_shut_the_gate() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 1;
        c.policy_training.batch_counts = headway_shared::config::BatchCounts::Results;
        c.reward_judging.zero_score = headway_shared::config::ZeroScore::Discard;
    });
    for session in 0..20 {
        bench.scored(session, 0);
    }
    bench.scored(20, GOOD);
    bench.scored(21, GOOD);
    assert!(bench.training());
}

#[test]
fn when_no_more_will_come_the_rest_is_a_short_batch() {
    let mut bench = Bench::new(|c| c.policy_training.batch_size = 4);
    let judged = bench.scored(0, GOOD);
    let running = bench.admit(1);
    bench.give(Input::SourceExhausted);
    assert!(!bench.training(), "one more is on its way");
    bench.finish(running);
    let late = bench.sample_of(running);
    bench.vote(late, GOOD);
    assert_eq!(bench.batch(), [judged, late]);
}

#[test]
fn what_a_failed_step_gives_back_finds_room_in_a_full_queue() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.queue.output.max_size = 2;
        c.queue.output.drop_policy = headway_shared::config::DropPolicy::DropOldest;
    });
    let samples: Vec<_> = (0..4).map(|session| bench.scored(session, GOOD)).collect();
    bench.end_step(false);
    assert_eq!(bench.batch(), samples[..2]);
    assert!(bench.discarded.is_empty());
}
