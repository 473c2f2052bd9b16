//! One step off-policy, as in verl's recipe.

use super::{GateView, slime_train_async};

/// The batch of step k + 1 is generated while step k trains: B places beside the batch in training.
///
/// Step k starts when its batch is complete and the weights of step k - 1 are there, and with it
/// the next collection: so the push waits for a complete batch, and the step for the push. The
/// staleness is exactly 1, and 0 for the first batch. It is slime's rule at K = 1.
pub(super) fn capacity(view: &GateView) -> i64 {
    slime_train_async::capacity(view)
}
