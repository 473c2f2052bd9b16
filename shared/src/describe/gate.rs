//! A gate's formula with its numbers.

use std::fmt::Write;

use super::refusal;
use crate::action::Refusal;
use crate::config::{Choice, GateKind};
use crate::core::{Capacity, Deliberation, ReplicaState, State, Syncing};

/// What a gate makes of its numbers, as an equation.
#[must_use]
pub fn capacity(gate: GateKind, numbers: &Capacity) -> String {
    let Capacity { places, eta, batch, deploy, outstanding, unresolved, training, .. } = *numbers;
    let lag = numbers.publish_lag;
    let counted = numbers.counted.unwrap_or(0);
    let allowed = numbers.allowed.unwrap_or(0);
    let left = match gate {
        GateKind::Headway => {
            format!("(η {eta} + 1 - publish lag {lag}) * batch {batch} - outstanding {outstanding}")
        }
        GateKind::Areal => format!(
            "min(max(1, max_concurrent_rollouts {}) - running {unresolved}, (η {eta} + version \
             {deploy} + 1) * batch {batch} - (accepted {counted} + running {unresolved}))",
            numbers.max_concurrent
        ),
        GateKind::Verl => format!(
            "required {allowed} - max(counted since the last sync {counted}, queued {})",
            outstanding - training - unresolved
        ),
        GateKind::Roll => format!(
            "ahead {allowed} + batch {batch} * (version {deploy} + 1) - (completed {counted} + \
             running {unresolved})"
        ),
        GateKind::Skyrl => format!(
            "(η {eta} + version {deploy} + 1) * batch {batch} - (accepted {counted} + running \
             {unresolved})"
        ),
        GateKind::PipelineRl => {
            format!("first {allowed} + batch {batch} * version {deploy} - submitted {counted}")
        }
        GateKind::OneStepOff | GateKind::SlimeTrainAsync if lag > eta => {
            return format!("0: publish lag {lag} is above {eta}");
        }
        GateKind::OneStepOff | GateKind::SlimeTrainAsync => {
            format!("batch {batch} - (outstanding {outstanding} - in training {training})")
        }
        GateKind::Sync if lag > 0 => return format!("0: publish lag {lag} is above 0"),
        GateKind::Sync => format!("batch {batch} - outstanding {outstanding}"),
        GateKind::PrimeRl | GateKind::NemoRlWindow | GateKind::Openclaw | GateKind::None => {
            return "no limit".to_owned();
        }
    };
    let reserve = match numbers.reserve {
        0 => String::new(),
        more => format!(" (over-sampling adds up to {more})"),
    };
    format!("{left} = {places}{reserve}")
}

/// Why a request may start or not, with the numbers at that instant; lines without an indent.
#[must_use]
pub fn deliberation(met: &Deliberation) -> String {
    let Deliberation { state, verdict, .. } = met;
    let mut text = String::new();
    let mut say = |line: &str| {
        let _ = writeln!(text, "{line}");
    };
    match verdict {
        None => say("it may start"),
        Some(reason) => say(refusal(*reason)),
    }
    match verdict {
        Some(Refusal::Ended) => {
            if let Some(error) = state.ended {
                say(&format!("the run has ended: {error}"));
            }
            return text;
        }
        Some(Refusal::Paused | Refusal::BadGroup) => return text,
        _ => {}
    }
    if met.behind > 0 {
        say(&format!("requests held before it, which go first: {}", met.behind));
    }
    if *verdict == Some(Refusal::Concurrency) {
        let State { rollouts, max_rollouts, .. } = state;
        say(&format!("{rollouts} rollouts of max_concurrent_rollouts {max_rollouts} are running"));
    }
    if *verdict == Some(Refusal::QueueFull) {
        say(&format!("its place reserves {} in both queues", met.reserves));
        for (name, queue) in
            [("rollout queue", &state.rollout_queue), ("output queue", &state.output_queue)]
        {
            say(&format!(
                "{name}: {} + {} reserved + {} blocked of {}",
                queue.samples, queue.reserved, queue.blocked, queue.max_size
            ));
        }
    }
    if let Some(publication) = state.publication.filter(|_| state.in_sync_window) {
        let version = publication.version.number();
        say(&format!("replicas load version {version}, and the gate is closed until they have"));
    }
    if !met.needs_place {
        let why = if met.main { "its group or session has one" } else { "it is a side turn" };
        say(&format!("it needs no place: {why}"));
    }
    let gate = state.gate.word();
    for replica in &state.replicas {
        let ReplicaState { replica: id, deploy, capacity: numbers, .. } = replica;
        let rule = match met.needs_place {
            true => format!("; gate {gate}: {}", capacity(state.gate, numbers)),
            false => String::new(),
        };
        let old = match replica.too_old && met.main {
            true => "; what it generates is too old to be trained",
            false => "",
        };
        let how = standing(replica);
        say(&format!("{id}: {how}, version {}{rule}{old}", deploy.number()));
    }
    text
}

/// Whether a replica takes turns, in words.
pub(super) fn standing(replica: &ReplicaState) -> &'static str {
    match (replica.up, replica.syncing) {
        (false, Syncing::Idle) => "down",
        (_, Syncing::Transferring) => "fetches weights",
        (_, Syncing::Loading) => "loads weights",
        (_, Syncing::Draining) => "drains",
        (_, Syncing::Aborting) => "aborts its turns",
        (_, Syncing::Waiting) if !replica.open => "waits to load, closed",
        (false, Syncing::Waiting) => "down",
        (true, _) if replica.open => "open",
        (true, _) => "closed",
    }
}
