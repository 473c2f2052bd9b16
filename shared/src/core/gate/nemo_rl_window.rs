//! NeMo-RL's replay buffer with a window of versions.

/// Nothing is refused but by `max_concurrent_rollouts` and the output queue, which is the buffer.
///
/// The buffer evicts what is older than `current - η`, and the sampler takes any sample inside the
/// window: which one first is `queue.output.queue_type`. Nothing in flight is cancelled, so that
/// what outlives the window while it is generated is generated to its end and evicted on arrival.
/// Strict per sample, and long samples starve.
pub(super) fn capacity() -> i64 {
    i64::MAX
}
