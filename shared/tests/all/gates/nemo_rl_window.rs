//! NeMo-RL: the buffer evicts what its window has left behind.

use headway_shared::action::Discard;
use headway_shared::config::{GateKind, QueueOrder};
use headway_shared::id::SampleId;

use super::super::harness::{Bench, GOOD};
use super::{gated, gated_with, room};

#[test]
fn nemo_admits_up_to_the_limit_of_rollouts() {
    let mut bench = gated(GateKind::NemoRlWindow);
    assert_eq!(room(&mut bench, 0), 256);
}

#[test]
fn nothing_in_flight_is_cancelled_and_what_comes_too_late_is_evicted_on_arrival() {
    let mut bench = gated(GateKind::NemoRlWindow);
    let (slow, judged) = (bench.admit(500), bench.turn(501));
    bench.steps(5);
    assert!(bench.watch.generations.values().all(|generation| !generation.aborted));
    assert!(bench.discarded.is_empty());
    bench.finish(slow);
    let slow = bench.sample_of(slow);
    assert_eq!(bench.fate(slow), None, "it is judged first");
    for sample in [slow, judged] {
        bench.vote(sample, GOOD);
        assert_eq!(bench.fate(sample), Some(Discard::Late));
    }
    assert!(!bench.training());
}

/// One sample of each version 0 to 2 left in the buffer, at version 3 and a window of 3.
fn buffered(order: QueueOrder) -> (Bench, Vec<SampleId>) {
    let mut bench = gated_with(GateKind::NemoRlWindow, |c| {
        c.policy_training.max_head_off_policyness = 3;
        c.policy_training.batch_size = 100;
        c.queue.output.queue_type = QueueOrder::Lifo;
    });
    let mut left = Vec::new();
    for step in 0..3 {
        left.push(bench.scored(10 * step, GOOD));
        bench.scored(10 * step + 1, GOOD);
        bench.scored(10 * step + 2, GOOD);
        bench.reconfigure(|c| c.policy_training.batch_size = 2);
        bench.reconfigure(|c| c.policy_training.batch_size = 100);
        bench.end_step(true);
        bench.publish();
    }
    bench.reconfigure(|c| c.queue.output.queue_type = order);
    (bench, left)
}

#[test]
fn the_sampler_takes_any_sample_inside_the_window_in_the_order_of_the_queue() {
    for (order, next) in [(QueueOrder::OldestVersionFirst, 0), (QueueOrder::FreshestFirst, 2)] {
        let (mut bench, left) = buffered(order);
        assert!(bench.discarded.is_empty(), "{:?}", bench.discarded);
        assert!(!bench.training());
        bench.reconfigure(|c| c.policy_training.batch_size = 1);
        assert_eq!(bench.batch(), [left[next]], "{order:?}");
    }
}

#[test]
fn the_buffer_evicts_what_is_older_than_the_window() {
    let (mut bench, left) = buffered(QueueOrder::Lifo);
    bench.scored(900, GOOD);
    bench.scored(901, GOOD);
    bench.reconfigure(|c| c.policy_training.batch_size = 2);
    assert!(bench.discarded.is_empty());
    bench.end_step(true);
    assert_eq!(bench.discarded, [(left[0], Discard::Late)], "4 - 0 is above 3");
}
