//! Tests of the whole: the command line through the real binary, what the documents say, and what
//! the crates may use.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod all {
    mod blessed;
    mod calibrate;
    mod support;

    #[path = "../../runtime/tests/all/packages.rs"]
    mod packages;

    #[path = "../../runtime/tests/all/checkpoint.rs"]
    mod checkpoint;
    #[path = "../../runtime/tests/all/scripted.rs"]
    mod scripted;
    #[path = "../../runtime/tests/all/sglang_server.rs"]
    #[expect(dead_code, reason = "the runtime's tests use more of it")]
    mod sglang_server;

    mod check;
    mod cluster;
    mod describe;
    mod diagnose;
    #[cfg(feature = "torch")]
    mod diagnose_live;
    mod doctor;
    mod documents;
    mod elsewhere;
    mod export;
    mod guard;
    mod help;
    mod identity;
    mod import;
    mod init;
    mod killed;
    mod layout;
    mod live_files;
    mod live_results;
    mod live_run;
    mod outcome;
    mod pages;
    mod pipe;
    mod plan;
    mod progress;
    mod promote;
    mod promote_live;
    mod purity;
    mod readme;
    mod record;
    mod replay;
    mod report;
    mod resume;
    mod scenario_keys;
    mod schema;
    mod shard;
    mod silence;
    mod stall;
    mod timeline;
    mod torture;
    mod tournament;
    mod tune;
    #[cfg(feature = "torch")]
    mod tutorial;
    mod validate;
    mod wrong_configurations;
    mod wrong_input;
}
