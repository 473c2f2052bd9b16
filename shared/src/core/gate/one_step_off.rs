//! One step off-policy, as in verl's recipe.

use super::GateView;

/// The batch of step k + 1 is generated while step k trains: B places beside the batch in training.
///
/// Step k starts when its batch is complete and the weights of step k - 1 are there, and with it
/// the next collection: so the push waits for a complete batch, and the step for the push. The
/// staleness is exactly 1, and 0 for the first batch.
pub(super) fn capacity(view: &GateView) -> i64 {
    match view.lag > view.eta {
        true => 0,
        false => view.batch - (view.outstanding - view.training),
    }
}
