//! Integration tests of the simulated world, as one binary.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod all {
    mod adaptive;
    mod aiconfigurator;
    mod applied_compute;
    mod areal_throughput;
    mod azure_trace;
    mod calibrate;
    mod calibration_coverage;
    mod committed;
    mod coverage;
    #[path = "../../../shared/tests/all/harness/damage.rs"]
    mod damage;
    mod damage_to_files;
    mod diagnose;
    mod drift_learning;
    mod drift_model;
    mod drift_runs;
    mod goldens;
    mod guard;
    mod import;
    mod import_logs;
    mod journal;
    mod live_validation;
    mod panics;
    mod plan;
    mod plan_results;
    mod planted;
    mod properties;
    mod published;
    mod random_worlds;
    mod rates;
    mod reference;
    mod replica;
    mod samplers;
    mod synthetic_trace;
    mod theory;
    mod torture;
    mod tournament;
    mod trajectories;
    mod troubles;
    mod tune;
    mod validate;
    mod validation;
    mod verl_fully_async;
    mod world_clients;
    mod world_effects;
    mod world_faults;
    mod world_groups;
    mod world_runs;
    mod world_scenario;
    mod world_support;
}
