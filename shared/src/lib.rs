//! What the simulator and the live runtime of Headway share: the scheduling core, its
//! configuration, records of runs, and metrics.
//!
//! The heart is [`core::Scheduler`], a pure state machine. A driver feeds it one [`input::Input`]
//! at a time with the time it happened, then drains its [`action::Action`]s:
//!
//! ```text
//!            facts                                decisions
//!   world ──────────► Scheduler::handle ──► Scheduler::poll_action ──► world
//!                            ▲                      │
//!                            └── Tick at Scheduler::poll_timeout
//! ```
//!
//! The simulator (`headway-sim`) is a driver with a virtual clock; the runtime (`headway-runtime`)
//! will be one with a real clock, real engines and real clients.
//!
//! # A tour
//!
//! This world has one replica, answers every action at once, and never publishes weights, so that
//! the second sample is trained one version behind.
//!
//! ```
//! use headway_shared::action::Action;
//! use headway_shared::config::{Layers, load_config};
//! use headway_shared::core::Scheduler;
//! use headway_shared::id::{ReplicaId, RequestId, SessionId};
//! use headway_shared::input::{Finish, Input, Request, Segment, TurnType, VoteOutcome};
//! use headway_shared::time::Time;
//! use headway_shared::version::{DeployVersion, RolloutVersion};
//!
//! // A configuration is a text; what it does not say has a default.
//! let text = "
//!     [reward_judging]
//!     judge_needs = \"turn\"
//!     [policy_training]
//!     batch_size = 1
//!     max_head_off_policyness = 2
//! ";
//! let (config, warnings) = load_config(&Layers::new().toml("config.toml", text)).unwrap();
//! assert!(warnings.items.is_empty());
//!
//! let mut scheduler = Scheduler::new(config);
//! let turn = |number| Input::Request(Request {
//!     request: RequestId(number),
//!     session: SessionId(number),
//!     group: None,
//!     turn: TurnType::Main,
//!     prompt_tokens: 100,
//!     streamed: false,
//!     last: true,
//! });
//! let replica = Input::ReplicaUp { replica: ReplicaId(0), deploy: DeployVersion::new(0) };
//! let mut facts = std::collections::VecDeque::from([replica, turn(0), turn(1)]);
//! let mut staleness = Vec::new();
//!
//! for second in 0.. {
//!     let Some(fact) = facts.pop_front() else { break };
//!     let now = Time::from_secs(second);
//!     scheduler.handle(now, &fact);
//!     for resolved in scheduler.resolved() {
//!         staleness.push(resolved.sample.staleness_head());
//!     }
//!     while let Some(action) = scheduler.poll_action() {
//!         match action {
//!             Action::StartGeneration { request, attempt, .. } => {
//!                 // The engine stamps the version of what it generates.
//!                 let segment = Segment { version: RolloutVersion::new(0), tokens: 50 };
//!                 facts.push_back(Input::GenerationEnded {
//!                     request,
//!                     attempt,
//!                     finish: Finish::Stop,
//!                     first_token: Some(now),
//!                     segments: [segment].into_iter().collect(),
//!                 });
//!             }
//!             Action::StartVote { vote, .. } => facts.push_back(Input::VoteEnded {
//!                 vote,
//!                 outcome: VoteOutcome::Score(1_000_000),
//!                 tokens: 200,
//!                 judge_version: 0,
//!             }),
//!             Action::StartStep { step, .. } => {
//!                 facts.push_back(Input::StepEnded { step, ok: true });
//!             }
//!             _ => {}
//!         }
//!     }
//! }
//! assert_eq!(staleness, [0, 1]);
//! assert_eq!(scheduler.ledger().trained, 2);
//! ```
//!
//! # Where to look
//!
//! | module | holds |
//! |---|---|
//! | [`version`], [`time`], [`id`] | the words: three roles of a version that do not mix, nanoseconds, identities |
//! | [`input`], [`action`] | every fact that the core may read, every decision that it may make |
//! | [`config`] | the configuration, its rules, and errors with their place |
//! | [`core`] | the scheduler, a file per loop |
//! | [`metrics`] | an observer that computes the same columns live and simulated |
//! | [`timeline`] | an observer that tells who did what from when to when |
//! | [`guard`] | a run's windows against the envelope it was promoted with |
//! | [`ratio`] | importance ratios: advantages, off-policy corrections, spreads, in plain `f64` |
//! | [`record`], [`replay`], [`snapshot`] | a run as bytes, fed to a fresh core again, restored in the middle |
//! | [`source`] | a run, live or simulated, as commands that analyse it read it |
//! | [`check`], [`work`] | what must hold of every record: decisions, the ledger, one end for everything that starts |
//! | [`watch`] | an observer with books of its own, for tests and torture |
//! | [`planted`] | bugs that tests plant, to see that they are found |
//! | [`describe`] | inputs, actions and states in words |
//! | [`rule`] | a judge's rule: a small expression over a turn |
//! | [`digest`] | equal digests, equal decisions |

pub mod action;
pub mod backoff;
pub mod check;
pub mod config;
pub mod core;
pub mod describe;
pub mod digest;
pub mod guard;
pub mod id;
pub mod input;
pub mod metrics;
pub mod planted;
pub mod ratio;
pub mod record;
pub mod replay;
pub mod rule;
pub mod snapshot;
pub mod source;
#[cfg(test)]
mod testing;
pub mod time;
pub mod timeline;
pub mod version;
pub mod watch;
pub mod work;
