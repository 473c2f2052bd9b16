//! Who asks: when sessions begin, what they ask for, and what they do when they are refused.

mod arrivals;
mod retries;

use headway_shared::config::SampleUnit;
use headway_shared::time::Time;

use super::Choice;
use super::estimate::{Estimates, Item};
use super::fit::{Limits, Unit};
use super::measured::{Measured, Over, Session, Turn};
use super::series::Series;

const TABLE: &str = "world.clients";
/// All turns that reached their limit reached the same one, but for so many.
const SAME_LIMIT: f64 = 0.95;
/// At most this part of the record is too late for pauses to begin in.
const LATE: f64 = 0.1;

/// Adds all of `[world.clients]`.
pub(super) fn clients(estimates: &mut Estimates, measured: &Measured, since: Time, choice: Choice) {
    let hosted = measured.environments.is_used();
    let kind = if hosted { "\"slots\"" } else { "\"sessions\"" };
    let sessions: Vec<&Session> =
        measured.sessions.all.iter().filter(|session| session.at >= since).collect();
    let setting = |key, value| Item::setting("clients", TABLE, key, value, sessions.len());
    estimates.items.push(setting("kind", kind.to_owned()));
    if hosted {
        estimates.items.push(setting("environment", "true".to_owned()));
    }
    lengths(estimates, measured, &sessions, since);
    arrivals::arrivals(estimates, measured, since, choice);
    if hosted {
        return;
    }
    pauses(estimates, measured, since);
    shares(estimates, &sessions, since, measured);
    retries::retries(estimates, measured, since);
    if measured.sessions.overlapping > 0 {
        estimates.note(format!(
            "{} turns were asked for while the one before in their session was under way; in a \
             simulated session one turn follows the other",
            measured.sessions.overlapping
        ));
    }
}

/// Turns of the record that began at `since` or later, in the order of sessions.
fn turns_of(measured: &Measured, since: Time) -> impl Iterator<Item = &Turn> {
    let turns = measured.sessions.all.iter().flat_map(|session| &session.turns);
    turns.filter(move |turn| turn.at >= since)
}

/// Prompts, what is generated, what follows it, and how many turns there are.
fn lengths(estimates: &mut Estimates, measured: &Measured, sessions: &[&Session], since: Time) {
    let (mut turns, mut prompts) = (Series::default(), Series::default());
    // Where turns of one place are a group, a session with fewer than the others was given up.
    let training = &measured.config.policy_training;
    let whole = match training.sample_unit {
        SampleUnit::Turn if training.group_size > 1 => {
            sessions.iter().map(|session| session.turns.len()).max().unwrap_or(0)
        }
        SampleUnit::Turn | SampleUnit::Session => 0,
    };
    for session in sessions {
        let count = session.turns.len() as f64;
        match session.over && session.turns.len() >= whole {
            _ if count == 0.0 => {}
            true => turns.push(session.at, count),
            false => turns.push_cut(session.at, count),
        }
        if let Some(first) = session.turns.first() {
            prompts.push(session.at, f64::from(first.prompt));
        }
    }
    let mut growth = Series::default();
    for session in &measured.sessions.all {
        for pair in session.turns.windows(2) {
            if let [before, turn] = pair
                && turn.at >= since
                && before.is_whole()
            {
                let held = before.prompt.saturating_add(before.tokens);
                growth.push(turn.at, f64::from(turn.prompt.saturating_sub(held)));
            }
        }
    }
    let at_least = Limits { at_least: Some(1), at_most: None };
    let count = Unit::Count;
    let several = turns.values(since);
    if several.values.iter().any(|turns| *turns > 1.0) {
        let what = "turns of a session";
        estimates.law_within(what, TABLE, "turns", count, at_least, several);
    }
    estimates.law("first prompt", TABLE, "prompt_tokens", count, prompts.values(since));
    outputs(estimates, measured, since);
    let growth = growth.values(since);
    if growth.values.iter().any(|tokens| *tokens > 0.0) {
        let what = "tokens between turns";
        estimates.law(what, TABLE, "growth_tokens", count, growth);
    }
}

/// Generated tokens; those of a turn that never ended whole are as many at least.
fn outputs(estimates: &mut Estimates, measured: &Measured, since: Time) {
    let mut outputs = Series::default();
    let mut limits: Vec<u32> = Vec::new();
    let mut stopped = 0;
    for turn in turns_of(measured, since) {
        match turn.is_whole() {
            true => outputs.push(turn.at, f64::from(turn.tokens)),
            false if turn.tokens > 0 => outputs.push_cut(turn.at, f64::from(turn.tokens)),
            false => {}
        }
        match turn.over {
            Some(Over::Length) => limits.push(turn.tokens),
            Some(Over::Stop) => stopped = stopped.max(turn.tokens),
            _ => {}
        }
    }
    let most = limits.iter().copied().max().unwrap_or(0);
    let alike = limits.iter().filter(|limit| **limit == most).count();
    let one_limit = most >= stopped.max(1) && alike as f64 >= SAME_LIMIT * limits.len() as f64;
    let at_most = (!limits.is_empty() && one_limit).then_some(most);
    let within = Limits { at_least: None, at_most };
    let observed = outputs.values(since);
    estimates.law_within("output", TABLE, "output_tokens", Unit::Count, within, observed);
    if let Some(most) = at_most {
        let (what, key) = ("longest output", "max_output_tokens");
        estimates.items.push(Item::setting(what, TABLE, key, most.to_string(), limits.len()));
    } else if !limits.is_empty() {
        estimates.note(
            "turns were cut at different lengths: there is no `max_output_tokens`, and the lengths \
             are those that came out",
        );
    }
}

/// From the end of a turn to the next request. Of a session that is silent when the record ends
/// nobody knows whether it goes on: pauses that began so late that the longest would not have ended
/// are left out, whether or not they did.
fn pauses(estimates: &mut Estimates, measured: &Measured, since: Time) {
    let all = || turns_of(measured, since).filter_map(|turn| Some((turn.at, turn.gap?)));
    let longest = all().map(|(_, gap)| gap).fold(0.0, f64::max);
    let span = measured.end.since(since).as_secs_f64();
    let late = span - longest.min(LATE * span);
    let mut gaps = Series::default();
    for (at, gap) in all() {
        if at.since(since).as_secs_f64() - gap <= late {
            gaps.push(at, gap);
        }
    }
    let values = gaps.values(since);
    if values.values.iter().any(|secs| *secs > 0.0)
        && estimates.law("pause between turns", TABLE, "think", Unit::Seconds, values)
    {
        estimates.note(
            "users and tools are not told apart: `think` has the pauses of both, and there is no \
             `tool`",
        );
    }
}

fn shares(estimates: &mut Estimates, sessions: &[&Session], since: Time, measured: &Measured) {
    let turns = || turns_of(measured, since);
    let of = turns().count() as u64;
    let streamed = turns().filter(|turn| turn.streamed).count() as u64;
    estimates.share("streamed turns", TABLE, "streamed_share", streamed, of, 0);
    let side = turns().filter(|turn| turn.side).count() as u64;
    estimates.share("side turns", TABLE, "side_share", side, of, 0);
    let over = || sessions.iter().filter(|session| session.over && !session.turns.is_empty());
    let said = over().filter(|session| session.turns.last().is_some_and(|turn| turn.last)).count();
    let what = "sessions that say that they end";
    estimates.share(what, TABLE, "done_share", said as u64, over().count() as u64, 1);
}
