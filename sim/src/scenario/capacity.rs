//! Whether the judge can keep up, with the arithmetic.

use headway_shared::config::JudgeNeeds;

use super::check::{Checked, secs};
use crate::world::settings::{Arrivals, ClientKind, JudgeLatency, StepTime};

const HOUR: f64 = 3600.0;

/// Warns where the judge is slower than those who feed it and those whom it feeds.
pub(super) fn check(checked: &Checked<'_>) {
    let judging = &checked.config.reward_judging;
    let quota = match checked.world.judge.quota {
        0 => judging.judge_concurrency,
        quota => quota.min(judging.judge_concurrency),
    };
    let vote = vote_sec(checked);
    if vote <= 0.0 || quota == 0 {
        return;
    }
    let votes = HOUR * f64::from(quota) / vote;
    let turns = votes / f64::from(judging.votes);
    let (trained, offered) = (trained_per_hour(checked), offered_per_hour(checked));
    if turns >= trained.min(offered) {
        return;
    }
    let batch = checked.config.samples_per_batch();
    let what = if checked.trajectories() { "session" } else { "turn" };
    let bound = if offered < trained {
        format!("clients bring {} an hour", whole(offered))
    } else {
        format!("the trainer could take {} an hour", whole(trained))
    };
    checked.warn(
        "reward_judging.judge_concurrency",
        format!(
            "the judge cannot keep up: with {} at once, {} a {what} and {} a vote, it gives {} \
             votes or {} {what}s an hour, so a batch of {batch} takes {} whatever \
             `max_head_off_policyness` is; {bound}",
            counted(quota),
            counted(judging.votes),
            secs(vote),
            whole(votes),
            whole(turns),
            secs((batch as f64 / turns * HOUR).round()),
        ),
        "allow more votes at once if the endpoint does, ask for fewer votes, or take a faster judge",
    );
}

/// Votes for a message.
fn counted(votes: u32) -> String {
    if votes == 1 { "1 vote".to_owned() } else { format!("{votes} votes") }
}

/// A rate for a message.
fn whole(rate: f64) -> String {
    format!("{}", rate.round())
}

/// Mean time of a vote at the endpoint.
fn vote_sec(checked: &Checked<'_>) -> f64 {
    let judge = &checked.world.judge;
    match &judge.latency {
        JudgeLatency::Time(time) => time.mean(),
        JudgeLatency::Tokens { base_sec, read_per_sec, write_per_sec } => {
            let read = checked.sample_tokens();
            base_sec + read / read_per_sec + judge.verdict_tokens.mean() / write_per_sec
        }
    }
}

/// Samples that the trainer could take in an hour, if it never waited.
fn trained_per_hour(checked: &Checked<'_>) -> f64 {
    let batch = checked.config.samples_per_batch() as f64;
    let step = match &checked.world.trainer.step {
        StepTime::Time(time) => time.mean(),
        StepTime::Tokens { base_sec, sec_per_token, gpus } => {
            let tokens = checked.sample_tokens();
            base_sec + sec_per_token * tokens * batch / f64::from(*gpus)
        }
    };
    batch * HOUR / step
}

/// Samples that clients bring to the judge in an hour, if none is refused and serving is no limit
/// (slots: if all of them decode together).
fn offered_per_hour(checked: &Checked<'_>) -> f64 {
    let clients = &checked.world.clients;
    let turns = clients.turns.mean().max(1.0);
    let replicas = f64::from(checked.world.serving.replicas);
    let generation = |together: f64| {
        // As many as there can be at once; `as` saturates.
        let rate = checked.world.serving.replica.decode.rate((together / replicas).ceil() as u32);
        clients.output_tokens.mean() / rate
    };
    match &clients.kind {
        ClientKind::Slots(slots) => {
            let each = generation(f64::from(slots.slots)) * checked.turns_of_sample();
            f64::from(slots.slots) * HOUR / each
        }
        ClientKind::Sessions(sessions) => {
            let judged = match checked.config.reward_judging.judge_needs {
                _ if checked.trajectories() => 1.0,
                // The last turn of a session has no next state.
                JudgeNeeds::NextState => turns - 1.0,
                JudgeNeeds::Turn => turns,
            };
            // Of a trajectory's turns one that trains is enough.
            let side = if checked.trajectories() { 0.0 } else { sessions.side_share };
            let main = judged * (1.0 - side);
            let gap = sessions.tool_share * sessions.tool.mean()
                + (1.0 - sessions.tool_share) * sessions.think.mean();
            match &sessions.arrivals {
                Arrivals::Poisson { per_hour } => per_hour * main,
                Arrivals::Users { users, pause } => {
                    let session = turns * generation(1.0) + (turns - 1.0) * gap + pause.mean();
                    f64::from(*users) * HOUR / session * main
                }
                Arrivals::Replay { times } => {
                    let last = times.last().map_or(0.0, |time| time.as_secs_f64());
                    times.len() as f64 * HOUR / last * main
                }
            }
        }
    }
}
