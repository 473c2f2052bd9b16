//! Tests of the runtime end to end: real HTTP, a real database, real processes; the engine and the
//! trainer are scripted.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod all {
    mod checkpoint;
    mod engine;
    mod live;
    mod official_clients;
    mod outside;
    mod packages;
    mod process;
    mod scripted;
    mod sglang_server;
    mod trainer;
    mod vllm_server;

    mod adaptive;
    mod admin;
    mod anthropic_client;
    mod chat;
    mod checks;
    mod crash;
    #[path = "../../../shared/tests/all/harness/damage.rs"]
    mod damage;
    mod damage_to_files;
    mod damage_to_requests;
    mod dashboard;
    mod defects;
    mod doctor;
    mod environment;
    mod external_trainer;
    mod garbage;
    mod given_up;
    mod guard;
    mod hugging_face;
    #[cfg(feature = "torch")]
    mod hugging_face_models;
    mod judges;
    mod judges_tls;
    #[cfg(feature = "torch")]
    mod learning;
    #[cfg(feature = "torch")]
    mod learning_live;
    mod logs;
    mod messages;
    mod openai_client;
    mod operator;
    mod record;
    mod schemathesis;
    mod sglang;
    mod shutdown;
    mod signals;
    mod slime;
    mod switching;
    mod sync_modes;
    mod trajectories;
    mod trajectories_killed;
    mod upgrade;
    mod vllm;
    mod weights;
    mod wrong_requests;
}
