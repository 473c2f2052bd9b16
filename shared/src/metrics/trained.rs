//! The trained population: staleness, age and waits of every trained sample.

use super::counts::Counts;
use super::histogram::Histogram;
use crate::core::{STALENESS_PARTS, Sample, Stage};

/// Sums over the samples trained since the last reset.
#[derive(Clone, Debug, Default)]
pub(super) struct Trained {
    pub(super) head: Counts,
    pub(super) tail: Counts,
    pub(super) tokens: u64,
    pub(super) staleness_token_sum: u128,
    pub(super) parts: [u64; STALENESS_PARTS.len()],
    /// In nanoseconds.
    pub(super) part_nanos: [u128; STALENESS_PARTS.len()],
    /// In nanoseconds.
    pub(super) age: Histogram,
    /// In nanoseconds.
    pub(super) rollout_queue_wait: Histogram,
    /// In nanoseconds.
    pub(super) output_queue_wait: Histogram,
    pub(super) lengths: Histogram,
    pub(super) turns: u64,
    pub(super) mixed: u64,
    pub(super) masked: u64,
}

impl Trained {
    pub(super) fn add(&mut self, sample: &Sample) {
        self.head.add(u64::from(sample.staleness_head()));
        self.tail.add(u64::from(sample.staleness_tail()));
        self.tokens += u64::from(sample.tokens);
        self.staleness_token_sum += u128::from(sample.staleness_token_sum());
        for (sum, part) in self.parts.iter_mut().zip(sample.staleness_parts()) {
            *sum += u64::from(part);
        }
        for (sum, part) in self.part_nanos.iter_mut().zip(sample.time_parts()) {
            *sum += u128::from(part.as_nanos());
        }
        self.age.add(sample.age().as_nanos());
        let wait = |from, to| sample.time(to).since(sample.time(from)).as_nanos();
        self.rollout_queue_wait.add(wait(Stage::StateKnown, Stage::JudgeStarted));
        self.output_queue_wait.add(wait(Stage::Ready, Stage::TrainStarted));
        self.lengths.add(u64::from(sample.tokens));
        self.turns += u64::from(sample.turns);
        self.mixed += u64::from(sample.segments > 1);
        self.masked += u64::from(sample.masked);
    }

    pub(super) fn reset(&mut self) {
        self.head.clear();
        self.tail.clear();
        for histogram in [
            &mut self.age,
            &mut self.rollout_queue_wait,
            &mut self.output_queue_wait,
            &mut self.lengths,
        ] {
            histogram.clear();
        }
        (self.tokens, self.staleness_token_sum) = (0, 0);
        (self.turns, self.mixed, self.masked) = (0, 0, 0);
        self.parts.fill(0);
        self.part_nanos.fill(0);
    }
}
