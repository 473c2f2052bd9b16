//! What the loops of a world can do by their means, and whether the judge can keep up.

use headway_shared::config::{Config, JudgeNeeds, SampleUnit};

use super::check::{Checked, secs};
use crate::world::settings::{Arrivals, ClientKind, JudgeLatency, StepTime, Transfer, WorldConfig};

const HOUR: f64 = 3600.0;

/// What the loops of a world can do, by the means of its laws.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loads<'a> {
    /// The scheduling sections.
    pub(crate) config: &'a Config,
    /// The world.
    pub(crate) world: &'a WorldConfig,
}

/// Warns where the judge is slower than those who feed it and those whom it feeds.
pub(super) fn check(checked: &Checked<'_>) {
    let loads = Loads { config: checked.config, world: checked.world };
    let judging = &checked.config.reward_judging;
    let (quota, vote) = (loads.votes_at_once(), loads.vote_sec());
    if vote <= 0.0 || quota == 0 {
        return;
    }
    let votes = HOUR * f64::from(quota) / vote;
    let turns = votes / f64::from(judging.votes);
    let (trained, offered) = (loads.trained_per_hour(), loads.offered_per_hour());
    if turns >= trained.min(offered) {
        return;
    }
    let batch = checked.config.samples_per_batch();
    let what = if loads.trajectories() { "session" } else { "turn" };
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

impl Loads<'_> {
    /// Votes that can be served together.
    pub(crate) fn votes_at_once(&self) -> u32 {
        let concurrency = self.config.reward_judging.judge_concurrency;
        match self.world.judge.quota {
            0 => concurrency,
            quota => quota.min(concurrency),
        }
    }

    /// Whether a sample is a whole session.
    pub(crate) fn trajectories(&self) -> bool {
        self.config.policy_training.sample_unit == SampleUnit::Session
    }

    /// Turns of a sample, on average.
    pub(crate) fn turns_of_sample(&self) -> f64 {
        if self.trajectories() { self.world.clients.turns.mean().max(1.0) } else { 1.0 }
    }

    /// Tokens of a sample, its prompt included, on average; later turns of a session, which have
    /// longer prompts where a sample is a turn, count as the first.
    pub(crate) fn sample_tokens(&self) -> f64 {
        let clients = &self.world.clients;
        let turns = self.turns_of_sample();
        let growth = (turns - 1.0) * clients.growth_tokens.mean();
        clients.prompt_tokens.mean() + turns * clients.output_tokens.mean() + growth
    }

    /// Mean time of a vote at the endpoint.
    pub(crate) fn vote_sec(&self) -> f64 {
        let judge = &self.world.judge;
        match &judge.latency {
            JudgeLatency::Time(time) => time.mean(),
            JudgeLatency::Tokens { base_sec, read_per_sec, write_per_sec } => {
                let written = judge.verdict_tokens.mean();
                base_sec + self.sample_tokens() / read_per_sec + written / write_per_sec
            }
        }
    }

    /// Mean time of a train step on a batch of so many tokens.
    pub(crate) fn step_sec(&self, tokens: f64) -> f64 {
        match &self.world.trainer.step {
            StepTime::Time(time) => time.mean(),
            StepTime::Tokens { base_sec, sec_per_token, gpus } => {
                base_sec + sec_per_token * tokens / f64::from(*gpus)
            }
        }
    }

    /// Mean time until the weights are on every replica, once they are saved.
    pub(crate) fn sync_sec(&self) -> f64 {
        let weights = &self.world.weights;
        let transfer = match &weights.transfer {
            Transfer::Time(time) => time.mean(),
            Transfer::Link { copy_sec, shared: false } => *copy_sec,
            Transfer::Link { copy_sec, shared: true } => {
                copy_sec * f64::from(self.world.serving.replicas)
            }
        };
        transfer + weights.load.mean()
    }

    /// Samples that the trainer could take in an hour, if it never waited.
    fn trained_per_hour(&self) -> f64 {
        let batch = self.config.samples_per_batch() as f64;
        batch * HOUR / self.step_sec(self.sample_tokens() * batch)
    }

    /// Samples that clients bring to the judge in an hour, if none is refused and serving is no limit
    /// (slots: if all of them decode together).
    pub(crate) fn offered_per_hour(&self) -> f64 {
        let clients = &self.world.clients;
        let turns = clients.turns.mean().max(1.0);
        let replicas = f64::from(self.world.serving.replicas);
        let generation = |together: f64| {
            // As many as there can be at once; `as` saturates.
            let rate = self.world.serving.replica.decode.rate((together / replicas).ceil() as u32);
            clients.output_tokens.mean() / rate
        };
        match &clients.kind {
            ClientKind::Slots(slots) => {
                let tasks = f64::from(slots.tasks(self.config.policy_training.group_size));
                let each = generation(tasks) * self.turns_of_sample();
                tasks * HOUR / each
            }
            ClientKind::Sessions(sessions) => {
                let judged = match self.config.reward_judging.judge_needs {
                    _ if self.trajectories() => 1.0,
                    // The last turn of a session has no next state.
                    JudgeNeeds::NextState => turns - 1.0,
                    JudgeNeeds::Turn => turns,
                };
                // Of a trajectory's turns one that trains is enough.
                let side = if self.trajectories() { 0.0 } else { sessions.side_share };
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
}
