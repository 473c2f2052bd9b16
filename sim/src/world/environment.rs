//! Environments: how long a reset or a step takes, and what it leads to.

use headway_shared::input::EnvironmentOutcome;
use headway_shared::time::Span;

use super::event::span;
use super::settings::Environment;
use crate::kernel::random::{Component, Key};

/// Attempts of one session that have draws of their own; beyond, they repeat.
const ATTEMPTS: u64 = 1 << 7;

/// A reset or a step that is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    /// The core's count of the session's operations.
    pub(super) attempt: u32,
    pub(super) reset: bool,
    pub(super) outcome: EnvironmentOutcome,
}

/// Draws an operation of the session with this ordinal, and how long it takes; no time: for ever.
/// `last`: the session is over after it.
pub(super) fn draw(
    settings: &Environment,
    key: &Key,
    session: u64,
    attempt: u32,
    reset: bool,
    last: bool,
) -> (Operation, Option<Span>) {
    let entity = session * ATTEMPTS + u64::from(attempt) % ATTEMPTS;
    let stream = &mut key.stream(Component::Environment, entity);
    let law = if reset { &settings.reset } else { &settings.step };
    let time = span(law.sample(stream, entity));
    let failed = settings.failure_share > 0.0 && stream.chance(settings.failure_share);
    let hangs = settings.hang_share > 0.0 && stream.chance(settings.hang_share);
    let outcome = match (failed, last && !reset) {
        (true, _) => EnvironmentOutcome::Failed,
        (false, true) => EnvironmentOutcome::Done,
        (false, false) => EnvironmentOutcome::Ready,
    };
    (Operation { attempt, reset, outcome }, (!hangs).then_some(time))
}
