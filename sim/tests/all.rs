//! Integration tests of the simulated world, as one binary.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

mod all {
    mod import;
    mod properties;
    mod replica;
    mod samplers;
    mod theory;
}
