//! Tests of the whole: the command, what its documents say, and what its crates may use.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod all {
    mod blessed;

    mod pages;
    mod purity;
}
