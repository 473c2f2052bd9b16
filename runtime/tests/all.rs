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
    mod process;
    mod trainer;

    mod admin;
    mod chat;
    mod crash;
    mod defects;
    mod environment;
    mod garbage;
    mod given_up;
    mod judges;
    #[cfg(feature = "torch")]
    mod learning;
    mod openai_client;
    mod record;
    mod shutdown;
    mod signals;
    mod sync_modes;
    mod trajectories;
    mod trajectories_killed;
    mod weights;
    mod wrong_requests;
}
