//! Tests of the runtime end to end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod all {
    #[cfg(feature = "torch")]
    mod learning;
}
