//! prime-rl's orchestrator.

/// Nothing is refused but by `max_concurrent_rollouts`.
///
/// A batch of step s takes rollouts with (s - 1) - start version <= η, queue time included. The
/// queue is swept before each batch, and groups in flight that can no longer make it are cancelled
/// whole, before the engine is paused: the core's sweep at each new version, which comes before the
/// publication. Strict per sample.
///
/// What is cancelled was generated for nothing, and was long more often than not: trained lengths
/// fall short of those generated.
pub(super) fn capacity() -> i64 {
    i64::MAX
}
