//! Queues whose answers are known.
