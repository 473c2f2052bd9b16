//! Tests of the scheduling core, one module per behaviour, driven by hand in virtual time.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod all {
    mod harness;

    mod adaptive;
    mod admission;
    mod elsewhere;
    mod environment;
    mod forced_publication;
    mod gates;
    mod groups;
    mod hostile;
    mod judging;
    mod ledger;
    mod long_runs;
    mod over_limit;
    mod parking;
    mod properties;
    mod queues;
    mod reconfigure;
    mod rollback;
    mod short_batches;
    mod snapshots;
    mod staleness;
    mod stalls;
    mod stamps;
    mod switching;
    mod sync_failures;
    mod sync_modes;
    mod trajectories;
    mod trajectories_lost;
    mod views;
}
