//! Lengths of what was generated and discarded, by reason: does a policy starve long samples?

use super::histogram::Histogram;
use crate::action::Discard;
use crate::core::Sample;

/// Lengths, in tokens, of samples that were discarded after their generation had ended.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    /// By [`Discard::index`]; `None` before the first.
    lengths: [Option<Histogram>; Discard::COUNT],
}

impl Default for Lost {
    fn default() -> Self {
        Self { lengths: [const { None }; Discard::COUNT] }
    }
}

impl Lost {
    /// A sample was discarded. One that was still being generated has no length yet.
    pub(super) fn add(&mut self, sample: &Sample, reason: Discard) {
        if sample.tokens > 0 {
            let lengths = self.lengths[reason.index()].get_or_insert_default();
            lengths.add(u64::from(sample.tokens));
        }
    }

    pub(super) fn reset(&mut self) {
        self.lengths.iter_mut().flatten().for_each(Histogram::clear);
    }

    /// The lengths of what was discarded for a reason, if anything was.
    pub(super) fn of(&self, reason: Discard) -> Option<&Histogram> {
        self.lengths[reason.index()].as_ref()
    }
}
