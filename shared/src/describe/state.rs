//! The core at an instant, as text.

use std::fmt::Write;

use super::gate::{capacity, standing};
use crate::action::{Discard, Refusal};
use crate::config::Choice;
use crate::core::{QueueState, SampleState, State};

/// Versions, replicas with the gate's numbers, queues, samples by state, and the ledger; one thing
/// a line, each behind `indent`.
#[must_use]
pub fn state(state: &State, indent: &str) -> String {
    let mut text = String::new();
    let mut say = |line: &str| {
        let _ = writeln!(text, "{indent}{line}");
    };
    say(&format!("run: {}", run(state)));
    let step = state.step.map_or_else(
        || "no step".to_owned(),
        |step| format!("{step} on {} samples", state.in_step),
    );
    say(&format!("learner: version {}, {step}", state.learner.number()));
    if let Some(publication) = state.publication {
        let how = if publication.saving { "being saved" } else { "on its way to replicas" };
        say(&format!(
            "{}: version {}, {how}",
            publication.publication,
            publication.version.number()
        ));
    }
    for replica in &state.replicas {
        say(&format!(
            "{}: {}, version {} (publish lag {}), {} turns",
            replica.replica,
            standing(replica),
            replica.deploy.number(),
            replica.capacity.publish_lag,
            replica.running,
        ));
        if replica.up {
            let gate = state.gate.word();
            say(&format!("  gate {gate}: places = {}", capacity(state.gate, &replica.capacity)));
        }
    }
    say(&format!("rollout queue: {}", queue(&state.rollout_queue)));
    say(&format!("output queue: {}", queue(&state.output_queue)));
    say(&format!("votes: {} of {}", state.votes, state.max_votes));
    if state.environments > 0 {
        say(&format!("environments: {}", state.environments));
    }
    say(&format!("samples: {}", samples(state)));
    let ledger = &state.ledger;
    say(&format!(
        "ledger: {} admitted = {} trained + {} discarded + {} outstanding + {} parked",
        ledger.admitted,
        ledger.trained,
        ledger.discarded_total(),
        ledger.outstanding(),
        ledger.parked(),
    ));
    say(&format!(
        "  {} offered = {} admitted + {} continued + {} refused + {} held + {} served only + {} left",
        ledger.offered,
        ledger.admitted,
        ledger.continued,
        ledger.refused_total(),
        ledger.held,
        ledger.served_only,
        ledger.left_while_held,
    ));
    let refused = Refusal::ALL.iter().map(|reason| (reason.name(), ledger.refused[reason.index()]));
    let discarded =
        Discard::ALL.iter().map(|reason| (reason.name(), ledger.discarded[reason.index()]));
    for (what, reasons) in [("refused", counts(refused)), ("discarded", counts(discarded))] {
        if !reasons.is_empty() {
            say(&format!("  {what}: {reasons}"));
        }
    }
    text
}

fn run(state: &State) -> String {
    let mut words = match (state.ended, state.paused) {
        (Some(error), _) => format!("ended ({error})"),
        (None, true) => "paused by an operator".to_owned(),
        (None, false) if state.in_sync_window => "answers 503: a sync window".to_owned(),
        (None, false) if state.closed => "answers 503".to_owned(),
        (None, false) => "open".to_owned(),
    };
    if state.held > 0 {
        words += &format!(", {} requests held", state.held);
    }
    if state.max_rollouts > 0 {
        words += &format!(", {} of {} rollouts", state.rollouts, state.max_rollouts);
    }
    words
}

fn queue(queue: &QueueState) -> String {
    let QueueState { samples, max_size, order, drop_policy, .. } = queue;
    let mut words = format!("{samples} of {max_size}, {}, {}", order.word(), drop_policy.word());
    for (count, what) in [(queue.reserved, "reserved"), (queue.blocked, "blocked")] {
        if count > 0 {
            words += &format!(", {count} {what}");
        }
    }
    if let Some(next) = queue.next {
        words += &format!(", next {next}");
    }
    words
}

fn samples(state: &State) -> String {
    let of = |place: SampleState| (self::place(place), state.ledger.count(place));
    let words = counts(SampleState::ALL.into_iter().map(of));
    if words.is_empty() { "none".to_owned() } else { words }
}

fn counts<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> String {
    let words = counts.filter(|(_, count)| *count > 0);
    words.map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// Where a sample is, in words.
#[must_use]
pub const fn place(state: SampleState) -> &'static str {
    match state {
        SampleState::Generating => "generating",
        SampleState::AwaitingState => "awaiting a next state",
        SampleState::AwaitingSessionEnd => "awaiting the end of its session",
        SampleState::RolloutBlocked => "blocked before the rollout queue",
        SampleState::RolloutQueue => "in the rollout queue",
        SampleState::Judging => "being judged",
        SampleState::GroupWait => "awaiting group mates",
        SampleState::OutputBlocked => "blocked before the output queue",
        SampleState::OutputQueue => "in the output queue",
        SampleState::Training => "in the train step",
        SampleState::Parked => "parked",
    }
}
