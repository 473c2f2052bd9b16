//! Synchronous training.

use super::GateView;

/// One batch per version: B places at the newest version, nothing while a step trains or weights
/// are on their way.
pub(super) fn capacity(view: &GateView) -> i64 {
    if view.lag == 0 { view.batch - view.outstanding } else { 0 }
}
