//! Metrics of a run, computed by an observer of (now, input, actions).
