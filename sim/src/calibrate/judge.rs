//! The judge: how long votes take, what they say, and how far they agree.

mod prompts;

use std::collections::BTreeMap;

use headway_shared::input::Score;
use headway_shared::time::Time;

use super::estimate::{Estimates, Item};
use super::fit::{Parameter, Unit, share};
use super::loops::share_item;
use super::measured::{Measured, Vote, VoteEnd};
use super::series::{Series, seconds};
use prompts::{Group, prompts};

const TABLE: &str = "world.judge";
const ONE: Score = 1_000_000;
/// Votes that start when more are in flight take longer by this part: the endpoint queues them.
const QUEUES: f64 = 1.25;

/// Adds all of `[world.judge]`, but what is known of a policy that `learned`.
pub(super) fn judge(estimates: &mut Estimates, measured: &Measured, since: Time, learned: bool) {
    let votes: Vec<&Vote> = measured.votes.votes.iter().filter(|vote| vote.at >= since).collect();
    if votes.is_empty() {
        return;
    }
    times(estimates, &votes, since, measured.config.reward_judging.judge_concurrency);
    verdicts(estimates, &votes, since);
    let count = |is: fn(&VoteEnd) -> bool| votes.iter().filter(|vote| is(&vote.end)).count() as u64;
    let scored = count(|end| matches!(end, VoteEnd::Score(_)));
    let invalid = count(|end| *end == VoteEnd::Invalid);
    let failed = count(|end| *end == VoteEnd::Failed);
    let all = scored + invalid + failed;
    estimates.share("votes that failed", TABLE, "failed_share", failed, all, 0);
    estimates.share("votes without a score", TABLE, "invalid_share", invalid, scored + invalid, 0);
    scores(estimates, &votes, learned);
}

fn times(estimates: &mut Estimates, votes: &[&Vote], since: Time, concurrency: u32) {
    let mut series = Series::default();
    for vote in votes {
        let ended = matches!(vote.end, VoteEnd::Score(_) | VoteEnd::Invalid | VoteEnd::Failed);
        series.push_span(vote.at, vote.until, ended);
    }
    let late = votes.iter().filter(|vote| vote.end == VoteEnd::TimedOut).count();
    let (what, key, unit) = ("vote of the judge", "vote", Unit::Seconds);
    if late == 0 {
        estimates.law(what, TABLE, key, unit, series.values(since));
    } else {
        // Whatever took longer than the time limit hung.
        let (values, never) = series.values_that_end(since);
        let of = votes.len() - votes.iter().filter(|vote| vote.end == VoteEnd::Cancelled).count();
        estimates.law(what, TABLE, key, unit, values);
        let hits = never * of as f64;
        estimates.items.push(share_item("votes that hung", TABLE, "hang_share", hits, of as f64));
    }
    if let Some(longer) = longer_when_busy(votes) {
        estimates.note(format!(
            "votes take {longer:.1} times as long when many are in flight as when few are: the \
             endpoint queues them, which a law of their times does not know"
        ));
    }
    let bound = votes.iter().filter(|vote| vote.in_flight >= concurrency).count();
    if bound * 10 > votes.len() {
        estimates.note(format!(
            "the judge's own limit (`quota`) cannot be seen: `judge_concurrency` let no more than \
             {concurrency} votes in flight at once, and {bound} of {} votes began when it was \
             reached",
            votes.len()
        ));
    }
}

/// How much longer votes take that began when the more was in flight, if that is more than chance.
fn longer_when_busy(votes: &[&Vote]) -> Option<f64> {
    let scored = |vote: &&&Vote| matches!(vote.end, VoteEnd::Score(_));
    let mut by_load: Vec<&Vote> = votes.iter().filter(scored).copied().collect();
    by_load.sort_by_key(|vote| vote.in_flight);
    let half = by_load.len() / 2;
    let differ = by_load.first()?.in_flight < by_load.last()?.in_flight;
    if half < 50 || !differ {
        return None;
    }
    let mean = |votes: &[&Vote]| {
        let secs = votes.iter().map(|vote| seconds(vote.until.since(vote.at)));
        secs.fold(0.0, |sum, secs| sum + secs) / votes.len() as f64
    };
    let longer = mean(&by_load[half..]) / mean(&by_load[..half]).max(1e-12);
    (longer > QUEUES).then_some(longer)
}

/// What the judge writes, where its tokens are counted as the policy's are.
fn verdicts(estimates: &mut Estimates, votes: &[&Vote], since: Time) {
    let answered = |vote: &&&Vote| matches!(vote.end, VoteEnd::Score(_) | VoteEnd::Invalid);
    let mut series = Series::default();
    let (mut below, mut none, mut all) = (0, 0, 0);
    for vote in votes.iter().filter(answered) {
        all += 1;
        below += usize::from(vote.tokens < vote.read);
        none += usize::from(vote.tokens == 0);
        series.push(vote.at, f64::from(vote.tokens.saturating_sub(vote.read)));
    }
    if none == all {
        return;
    }
    if below > 0 {
        estimates.note(
            "the judge counts its tokens otherwise than the policy does: what it writes is not told \
             apart from what it reads",
        );
        return;
    }
    let values = series.values(since);
    if values.values.iter().any(|tokens| *tokens > 0.0) {
        estimates.law("verdict", TABLE, "verdict_tokens", Unit::Count, values);
    }
}

/// What samples are worth, unless that is known of a policy that learned: a sample is told by its first two votes.
fn scores(estimates: &mut Estimates, votes: &[&Vote], learned: bool) {
    let mut samples: BTreeMap<u64, (Option<u64>, Vec<Score>)> = BTreeMap::new();
    let mut between = 0;
    for vote in votes {
        if let VoteEnd::Score(score) = vote.end {
            between += u64::from(!matches!(score, ONE | 0) && score != -ONE);
            let (_, scores) = samples.entry(vote.sample).or_insert((vote.group, Vec::new()));
            scores.push(score.signum());
        }
    }
    let firsts = || samples.values().map(|(_, scores)| scores[0]);
    let of = samples.len() as u64;
    if of == 0 {
        return;
    }
    if between > 0 {
        estimates.note(format!(
            "{between} votes say something between -1, 0 and 1: by their sign they count as 1, 0 \
             or -1"
        ));
    }
    let agreement = agreement(samples.values().map(|(_, scores)| scores.as_slice()));
    match agreement {
        Some((agreement, pairs)) => {
            let (what, key) = ("votes that are right", "agreement");
            estimates.items.push(Item::number(what, TABLE, key, "share", agreement, pairs));
        }
        None => estimates.note(
            "whether votes are right cannot be seen, as samples have one vote: `agreement` is 1",
        ),
    }
    if learned {
        return;
    }
    let mut groups: BTreeMap<u64, Group> = BTreeMap::new();
    for (group, scores) in samples.values() {
        if let Some(group) = group {
            groups.entry(*group).or_default().add(scores[0]);
        }
    }
    let found = match agreement {
        // Where votes err, a group whose votes are alike is no sign of its prompt.
        Some(_) => None,
        None => prompts(&groups.into_values().collect::<Vec<_>>()),
    };
    let whole = |sign| firsts().filter(|score| *score == sign).count() as f64;
    match &found {
        Some(found) => {
            let mixed = found.mixed_samples;
            let item = |what, key, hits| share_item(what, TABLE, key, hits, mixed);
            estimates.items.push(item("samples worth 1", "positive_share", found.positive));
            if found.negative > 0.0 {
                estimates.items.push(item("samples worth -1", "negative_share", found.negative));
            }
            let item = |what, key, hits| share_item(what, TABLE, key, hits, found.groups);
            estimates.items.push(item("prompts always solved", "solved_share", found.solved));
            estimates.items.push(item("prompts never solved", "hopeless_share", found.hopeless));
        }
        None => {
            let item = |what, key, hits| share_item(what, TABLE, key, hits, of as f64);
            estimates.items.push(item("samples worth 1", "positive_share", whole(1)));
            if whole(-1) > 0.0 {
                estimates.items.push(item("samples worth -1", "negative_share", whole(-1)));
            }
        }
    }
}

/// How often a vote says what its sample deserves. Two votes on one sample are equal with the
/// probability `a² + s (1 - a²)`, where a is the agreement and s the probability that two votes on
/// different samples are equal. By the first two votes of a sample: later ones may have been
/// cancelled because these were equal.
fn agreement<'a>(samples: impl Iterator<Item = &'a [Score]>) -> Option<(Parameter, usize)> {
    let (mut equal, mut pairs, mut counts) = (0, 0, [0.0; 3]);
    for scores in samples {
        if let [first, second, ..] = scores {
            pairs += 1;
            equal += u64::from(first == second);
            for score in [first, second] {
                counts[(score + 1).clamp(0, 2) as usize] += 1.0;
            }
        }
    }
    if pairs < 20 {
        return None;
    }
    let all: f64 = counts.iter().fold(0.0, |sum, count| sum + count);
    let by_chance = counts.iter().fold(0.0, |sum, count| sum + (count / all) * (count / all));
    let found = share(equal, pairs);
    let right = |equal: f64| {
        let square = (equal - by_chance) / (1.0 - by_chance).max(1e-9);
        libm::sqrt(square.clamp(0.0, 1.0))
    };
    let parameter =
        Parameter { value: right(found.value), low: right(found.low), high: right(found.high) };
    Some((parameter, pairs as usize))
}
