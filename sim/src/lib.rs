//! The simulated world of Headway, and everything that computes offline.
//!
//! A [`scenario::Scenario`] is a world and the scheduling sections of a live configuration.
//! [`run::simulate`] lets the core of [`headway_shared`] live in it once; a [`sweep::Plan`] does so
//! for every point of a grid, replicated, on any number of threads, with the same bytes as result.
//!
//! ```
//! use std::path::Path;
//!
//! use headway_shared::config::Layers;
//! use headway_sim::run::{RunOptions, simulate};
//! use headway_sim::scenario::Scenario;
//!
//! let text = r#"
//!     [scenario]
//!     name = "tour"
//!     steps = 50
//!
//!     [policy_training]
//!     max_head_off_policyness = 2
//!
//!     [reward_judging]
//!     judge_needs = "turn"
//!
//!     [world.serving]
//!     decode_base_sec = 0.02
//!
//!     [world.clients]
//!     kind = "slots"
//!     slots = 64
//!     prompt_tokens = { kind = "constant", value = 512 }
//!     output_tokens = { kind = "lognormal", median = 800, p99 = 4000 }
//!
//!     [world.judge]
//!     vote = { kind = "constant", sec = 1 }
//!
//!     [world.trainer]
//!     step = { kind = "constant", sec = 30 }
//! "#;
//! let layers = Layers::new().toml("tour.toml", text);
//! let (scenario, _warnings) = Scenario::load(&layers, Path::new(".")).unwrap();
//!
//! let loose = simulate(&scenario, 0, RunOptions::default()).unwrap();
//! let (synchronous, _warnings) = scenario.with_set("max_head_off_policyness=0").unwrap();
//! let tight = simulate(&synchronous, 0, RunOptions::default()).unwrap();
//!
//! assert_eq!(tight.summary.get("staleness_head_max"), Some(0.0));
//! assert!(loose.summary.get("staleness_head_max") > Some(0.0));
//! let throughput = "trained_samples_per_hour";
//! assert!(loose.summary.get(throughput) > tight.summary.get(throughput));
//!
//! // The same scenario, seed and replication: the same decisions at the same times.
//! let again = simulate(&scenario, 0, RunOptions::default()).unwrap();
//! assert_eq!(again.digest, loose.digest);
//! ```
//!
//! # Where to look
//!
//! | module | holds |
//! |---|---|
//! | [`answer`] | what a result comes to, in words, with what speaks for it |
//! | [`kernel`] | events in order of time, random streams, samplers |
//! | [`world`] | clients, replicas, environments, judges, the trainer, weights and faults |
//! | [`scenario`] | scenario files: reading them, and checking that they can make progress |
//! | [`drift`] | importance ratios: what they would be |
//! | [`run`] | one run: the core, the world, the observer, and the record |
//! | [`sweep`], [`compare`] | grids, and differences in pairs |
//! | [`plan`] | how to split GPUs over the loops |
//! | [`tune`] | the configuration that makes a metric largest under constraints |
//! | [`torture`] | random scenarios with every fault, and what must hold in each |
//! | [`tournament`] | every gate and sync mode over the same worlds |
//! | [`validate`] | predictions beside what recorded runs measured |
//! | [`check`] | scenarios as regression tests: goldens, and what differs from them |
//! | [`diagnose`] | where a run's staleness and ratios come from, and what to change |
//! | [`guarded`] | a recorded run held to an envelope after the fact |
//! | [`stats`] | intervals, warm-up |
//! | [`calibrate`] | what a run measured, as numbers of a scenario |
//! | [`report`] | tables, CSV, JSON and plots, the same bytes everywhere |
//! | [`rates`] | how fast replicas generate: tables by name |
//! | [`import`] | other systems' traces and predictions |

pub mod answer;
pub mod calibrate;
pub mod check;
pub mod compare;
pub mod diagnose;
pub mod drift;
pub mod guarded;
pub mod import;
pub mod kernel;
pub mod plan;
pub mod rates;
pub mod report;
pub mod run;
pub mod scenario;
pub mod stats;
pub mod sweep;
pub mod torture;
pub mod tournament;
pub mod tune;
pub mod validate;
pub mod world;
