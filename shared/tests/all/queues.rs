//! The orders and drop policies of both queues.

use headway_shared::action::{Discard, Refusal};
use headway_shared::config::{DropPolicy, JudgeNeeds, Queue, QueueOrder};
use headway_shared::core::SampleState;
use headway_shared::id::{RequestId, SampleId};

use super::harness::{Bench, GOOD};

/// One step is training; four samples become ready meanwhile, the last admitted first. They are
/// of versions 1, 0, 1, 0 in the order of their admission.
fn four_waiting(order: QueueOrder) -> (Bench, Vec<SampleId>) {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.queue.output.queue_type = order;
    });
    bench.replicas_apart();
    bench.scored(2, GOOD);
    bench.scored(3, GOOD);
    assert!(bench.training());
    let requests: Vec<RequestId> = (4..8).map(|session| bench.admit(session)).collect();
    let samples: Vec<SampleId> = requests.iter().map(|r| bench.sample_of(*r)).collect();
    for request in requests.iter().rev() {
        bench.finish(*request);
        bench.vote(bench.sample_of(*request), GOOD);
    }
    let versions: Vec<u32> =
        samples.iter().map(|s| bench.core.sample(*s).expect("waits").head.number()).collect();
    assert_eq!(versions, [1, 0, 1, 0]);
    (bench, samples)
}

fn next_batch(order: QueueOrder) -> Vec<usize> {
    let (mut bench, samples) = four_waiting(order);
    bench.end_step(true);
    let place = |id: &SampleId| samples.iter().position(|s| s == id).expect("one of the four");
    bench.batch().iter().map(place).collect()
}

#[test]
fn fifo_takes_what_entered_first() {
    assert_eq!(next_batch(QueueOrder::Fifo), [3, 2]);
}

#[test]
fn lifo_takes_what_entered_last() {
    assert_eq!(next_batch(QueueOrder::Lifo), [0, 1]);
}

#[test]
fn admission_order_takes_what_was_admitted_first() {
    assert_eq!(next_batch(QueueOrder::AdmissionOrder), [0, 1]);
}

#[test]
fn oldest_version_first_takes_the_oldest_tokens() {
    let mut batch = next_batch(QueueOrder::OldestVersionFirst);
    batch.sort_unstable();
    assert_eq!(batch, [1, 3]);
}

#[test]
fn freshest_first_takes_the_newest_tokens() {
    let mut batch = next_batch(QueueOrder::FreshestFirst);
    batch.sort_unstable();
    assert_eq!(batch, [0, 2]);
}

/// One judge slot, taken by sample 0; the rollout queue holds samples 1 and 2 and is full.
fn full_rollout_queue(drop_policy: DropPolicy) -> (Bench, Vec<SampleId>) {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.reward_judging.judge_concurrency = 1;
        c.policy_serving.max_concurrent_rollouts = 4;
        c.queue.rollout = Queue { max_size: 2, queue_type: QueueOrder::Fifo, drop_policy };
    });
    let samples = (0..3).map(|session| bench.turn(session)).collect();
    assert_eq!(bench.core.gauges().rollout_queue, 2);
    (bench, samples)
}

#[test]
fn the_rollout_queue_has_an_order_too() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.reward_judging.judge_concurrency = 1;
        c.queue.rollout.queue_type = QueueOrder::Lifo;
    });
    let samples: Vec<SampleId> = (0..3).map(|session| bench.turn(session)).collect();
    bench.vote(samples[0], GOOD);
    assert_eq!(bench.votes_on(samples[2]), 1);
}

#[test]
fn reject_reserves_room_at_admission() {
    let (mut bench, samples) = full_rollout_queue(DropPolicy::Reject);
    bench.refuses(3, Refusal::QueueFull);
    bench.vote(samples[0], GOOD);
    bench.admit(4);
    bench.refuses(5, Refusal::QueueFull);
}

#[test]
fn reject_reserves_room_for_turns_that_are_still_generated() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.queue.rollout.max_size = 2;
    });
    bench.admit(0);
    bench.admit(1);
    bench.refuses(2, Refusal::QueueFull);
}

#[test]
fn reject_reserves_room_in_the_output_queue_until_training() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.queue.output.max_size = 2;
    });
    bench.scored(0, GOOD);
    bench.admit(1);
    bench.refuses(2, Refusal::QueueFull);
}

#[test]
fn drop_oldest_discards_what_entered_first() {
    let (mut bench, samples) = full_rollout_queue(DropPolicy::DropOldest);
    bench.turn(3);
    assert_eq!(bench.fate(samples[1]), Some(Discard::RolloutQueueFull));
    assert_eq!(bench.core.gauges().rollout_queue, 2);
}

#[test]
fn drop_newest_discards_what_would_enter() {
    let (mut bench, samples) = full_rollout_queue(DropPolicy::DropNewest);
    let newest = bench.turn(3);
    assert_eq!(bench.fate(newest), Some(Discard::RolloutQueueFull));
    assert_eq!(bench.fate(samples[1]), None);
}

#[test]
fn block_keeps_the_serving_slot_until_there_is_room() {
    let (mut bench, samples) = full_rollout_queue(DropPolicy::Block);
    for session in 3..7 {
        bench.turn(session);
    }
    assert_eq!(bench.core.ledger().count(SampleState::RolloutBlocked), 4);
    bench.refuses(7, Refusal::Concurrency);
    bench.vote(samples[0], GOOD);
    assert_eq!(bench.core.ledger().count(SampleState::RolloutBlocked), 3);
    bench.admit(8);
}

/// A step is training; the output queue holds samples 2 and 3 and is full.
fn full_output_queue(drop_policy: DropPolicy) -> (Bench, Vec<SampleId>) {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.reward_judging.judge_concurrency = 1;
        c.queue.output = Queue { max_size: 2, queue_type: QueueOrder::Fifo, drop_policy };
    });
    let samples = (0..4).map(|session| bench.scored(session, GOOD)).collect();
    assert!(bench.training());
    assert_eq!(bench.core.gauges().output_queue, 2);
    (bench, samples)
}

#[test]
fn a_full_output_queue_drops_its_oldest() {
    let (mut bench, samples) = full_output_queue(DropPolicy::DropOldest);
    bench.scored(4, GOOD);
    assert_eq!(bench.fate(samples[2]), Some(Discard::OutputQueueFull));
    assert_eq!(bench.core.gauges().output_queue, 2);
}

#[test]
fn a_full_output_queue_drops_its_newest() {
    let (mut bench, _) = full_output_queue(DropPolicy::DropNewest);
    let newest = bench.scored(4, GOOD);
    assert_eq!(bench.fate(newest), Some(Discard::OutputQueueFull));
}

#[test]
fn a_sample_blocked_before_the_output_queue_keeps_its_judge_slot() {
    let (mut bench, samples) = full_output_queue(DropPolicy::Block);
    let blocked = bench.scored(4, GOOD);
    assert_eq!(bench.core.ledger().count(SampleState::OutputBlocked), 1);
    let waits = bench.turn(5);
    assert_eq!(bench.votes_on(waits), 0, "the only judge slot is taken");
    bench.end_step(true);
    assert_eq!(bench.batch(), samples[2..4]);
    assert_eq!(bench.core.ledger().count(SampleState::OutputBlocked), 0);
    assert_eq!(bench.votes_on(waits), 1);
    assert_eq!(bench.fate(blocked), None);
}

#[test]
fn a_group_is_dropped_as_one_entry() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 2;
        c.policy_training.batch_size = 1;
        c.queue.output = Queue {
            max_size: 2,
            queue_type: QueueOrder::Fifo,
            drop_policy: DropPolicy::DropOldest,
        };
    });
    let mut pair = |group: u64| {
        [bench.scored_in(2 * group, group, GOOD), bench.scored_in(2 * group + 1, group, GOOD)]
    };
    pair(0);
    let old = pair(1);
    let new = pair(2);
    assert_eq!(old.map(|s| bench.fate(s)), [Some(Discard::OutputQueueFull); 2]);
    assert_eq!(new.map(|s| bench.fate(s)), [None; 2]);
}

#[test]
fn a_drain_keeps_the_surplus_for_the_next_batch() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 9);
    let samples: Vec<SampleId> = (0..7).map(|session| bench.scored(session, GOOD)).collect();
    for step in 0..3 {
        assert_eq!(bench.batch(), samples[2 * step..2 * step + 2]);
        bench.end_step(true);
    }
    assert!(bench.discarded.is_empty());
    assert_eq!(bench.core.gauges().output_queue, 1);
}

#[test]
fn a_turn_that_waited_for_its_next_state_may_find_the_rollout_queue_full() {
    for policy in [DropPolicy::DropNewest, DropPolicy::DropOldest, DropPolicy::Block] {
        let mut bench = Bench::new(|c| {
            c.policy_training.max_head_off_policyness = 9;
            c.reward_judging.judge_needs = JudgeNeeds::NextState;
            c.reward_judging.judge_concurrency = 1;
            c.queue.rollout =
                Queue { max_size: 2, queue_type: QueueOrder::Fifo, drop_policy: policy };
        });
        let samples: Vec<SampleId> = (0..4).map(|session| bench.turn(session)).collect();
        for session in 0..4 {
            bench.next_state(session);
        }
        let dropped: Vec<SampleId> = bench.discarded.iter().map(|(sample, _)| *sample).collect();
        match policy {
            DropPolicy::DropNewest => assert_eq!(dropped, [samples[3]]),
            DropPolicy::DropOldest => assert_eq!(dropped, [samples[1]]),
            _ => assert!(dropped.is_empty()),
        }
    }
}

#[test]
fn a_turn_without_reserved_room_does_not_lock_out_those_that_have_it() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.policy_training.batch_size = 3;
        c.reward_judging.fire_on_turn_end = false;
        c.reward_judging.judge_concurrency = 1;
        c.queue.output.max_size = 3;
    });
    let turns = [0, 1, 2, 0, 0].map(|session| bench.turn(session));
    for session in 0..3 {
        bench.end_session(session);
    }
    for _ in 0..turns.len() {
        if let Some(sample) = bench.watch.votes.values().next().copied() {
            bench.vote(sample, GOOD);
        }
    }
    assert!(bench.training(), "three of five turns are a batch");
    bench.end_step(true);
    assert!(bench.discarded.is_empty());
}

#[test]
fn a_group_that_waits_for_room_and_loses_its_first_member_keeps_its_turn() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.policy_training.stale_filter_steps = Some(1);
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 1;
        c.policy_training.batch_size = 1;
        c.queue.output =
            Queue { max_size: 2, queue_type: QueueOrder::Fifo, drop_policy: DropPolicy::Block };
    });
    let pair = |bench: &mut Bench, group: u64| {
        [10 * group, 10 * group + 1].map(|session| bench.scored_in(session, group, GOOD))
    };
    let old = bench.admit_in(0, 1);
    pair(&mut bench, 2);
    bench.end_step(true);
    bench.publish();
    let young = bench.admit_in(1, 1);
    pair(&mut bench, 3);
    let queued = pair(&mut bench, 4);
    let [old, young] = [old, young].map(|request| {
        bench.finish(request);
        let sample = bench.sample_of(request);
        bench.vote(sample, GOOD);
        sample
    });
    assert_eq!(bench.core.ledger().count(SampleState::OutputBlocked), 2);
    bench.end_step(true);
    assert_eq!(bench.fate(old), Some(Discard::StaleFilter));
    assert_eq!(bench.batch(), queued);
    assert_eq!(bench.core.ledger().count(SampleState::OutputQueue), 1, "there is room for it");
    assert_eq!(bench.fate(young), None);
}
