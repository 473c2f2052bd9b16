//! OpenClaw-RL's gate on slime's pipeline.

/// The gate bounds no number of samples, and a turn that waits for its user can be arbitrarily old.
pub(super) fn capacity() -> i64 {
    i64::MAX
}

/// Closed (503) from "batch k + 1 is full" until "step k is trained and its weights are updated":
/// only then step k + 1 takes the batch, and the next collection begins. Its 503 after a start,
/// before the trainer first asks for data, is left out: it is over before a run is warm.
pub(super) fn window_closed(ready: i64, batch: i64) -> bool {
    ready >= batch
}
