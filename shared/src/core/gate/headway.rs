//! Headway's own rule.

use super::GateView;

/// (η + 1 - publish lag) * B - outstanding.
///
/// With full batches in admission order no sample exceeds η: a sample admitted at lag l is at most
/// the ((η + 1 - l) * B)-th outstanding one, so at most η - l steps start before its own.
/// `outstanding` counts by state; a cumulative count would loosen with every rejected sample.
pub(super) fn capacity(view: &GateView) -> i64 {
    (view.eta + 1 - view.lag).max(0).saturating_mul(view.batch) - view.outstanding
}
