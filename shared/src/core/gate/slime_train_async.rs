//! slime's `train_async.py`.

use super::GateView;

/// Collection k + 1 starts before step k trains: B places beside the batch in training.
///
/// Weights are pushed every `publish_interval` = K steps, once the next batch is complete, and the
/// step waits for the push. The staleness of step k is k - K * floor((k - 1) / K): exactly 1 at
/// K = 1, at most K otherwise, and 0 for the first batch.
pub(super) fn capacity(view: &GateView) -> i64 {
    match view.lag > view.eta {
        true => 0,
        false => view.batch - (view.outstanding - view.training),
    }
}
