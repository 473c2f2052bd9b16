//! Drives a [`Scheduler`] by hand, in virtual time, and checks it after every input.

mod bench;
mod configs;
mod plan;
mod verbs;
mod world;

pub(crate) use bench::{Bench, main_request};
pub(crate) use configs::{adaptive_config, any_config, sane_config};
pub(crate) use plan::{Delay, Plan, any_plan, calm_plan, fifo_plan};
pub(crate) use world::World;

use headway_shared::config::{Config, JudgeNeeds, SyncMode};
use headway_shared::id::ReplicaId;
use headway_shared::input::{Score, Segment, Segments};
use headway_shared::time::Span;
use headway_shared::version::RolloutVersion;
pub(crate) use headway_shared::watch::{Decision, Watch};

/// A score of 1.
pub(crate) const GOOD: Score = 1_000_000;
/// A score of 0.
pub(crate) const ZERO: Score = 0;
/// A score of -1.
pub(crate) const BAD: Score = -1_000_000;
/// The replica of a world with one.
pub(crate) const R0: ReplicaId = ReplicaId(0);
/// The second replica.
pub(crate) const R1: ReplicaId = ReplicaId(1);

/// Whole seconds.
pub(crate) const fn secs(n: u64) -> Span {
    Span::from_secs(n)
}

/// A small configuration: batches of 2, η = 2, judged when generated, weights swapped in flight.
pub(crate) fn small() -> Config {
    let mut config = Config::default();
    config.policy_serving.sync_mode = SyncMode::InFlight;
    config.reward_judging.judge_needs = JudgeNeeds::Turn;
    config.policy_training.batch_size = 2;
    config
}

/// `tokens` tokens over the versions that a turn met: one for each but the last.
pub(crate) fn spread(met: &[u32], tokens: u32) -> Segments {
    let shown = met.len().min(tokens as usize);
    let rest = (tokens as usize - shown) as u32;
    let mut segments: Segments = met[..shown]
        .iter()
        .map(|version| Segment { version: RolloutVersion::new(*version), tokens: 1 })
        .collect();
    if let Some(last) = segments.last_mut() {
        last.tokens += rest;
    }
    segments
}
