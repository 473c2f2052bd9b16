//! Tests of the command line, through the real binary.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod all {
    mod help;
    mod identity;
    mod import;
    mod killed;
    mod live_files;
    mod outcome;
    mod pipe;
    mod record;
    mod silence;
    mod stall;
    mod support;
    mod wrong_configurations;
    mod wrong_input;
}
