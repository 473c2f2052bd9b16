//! Tests of the runtime end to end: real HTTP, a real database, real processes; the engine and the
//! trainer are scripted.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod all {
    mod engine;
    mod live;
    mod trainer;

    mod admin;
    mod chat;
    mod crash;
    mod defects;
    mod environment;
    mod judges;
    #[cfg(feature = "torch")]
    mod learning;
    #[cfg(feature = "torch")]
    mod learning_live;
    mod record;
    mod shutdown;
    mod weights;
    mod wrong_requests;
}
