//! What each sample deserves: its votes, and what they make.

use super::{Asked, Checked, Watch, must};
use crate::action::Discard;
use crate::config::{
    Aggregate, Config, MAX_VOTES, OnJudgeFailure, OnTie, RewardJudging, ZeroScore,
};
use crate::core::{Sample, SampleState, Scheduler};
use crate::id::{SampleId, VoteId};
use crate::input::{Score, VoteOutcome};
use crate::time::{Span, Time};

/// What votes make of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Train(Score),
    Mask(Score),
    Reject(Discard),
}

/// The votes on a sample.
#[derive(Clone, Debug)]
pub(super) struct Ballot {
    /// It was opened for so many.
    needed: u32,
    started: u32,
    flying: u32,
    valid: Vec<Score>,
    /// Votes that the last input cancelled in time: they would still have counted.
    cancelled: u32,
    /// What they made, once they are over.
    verdict: Option<Verdict>,
}

impl Ballot {
    fn new(config: &Config) -> Self {
        let needed = config.reward_judging.votes.clamp(1, MAX_VOTES);
        Self { needed, started: 0, flying: 0, valid: Vec::new(), cancelled: 0, verdict: None }
    }

    fn verdict(&self, judging: &RewardJudging) -> Verdict {
        if (self.valid.len() as u32) < judging.min_votes.clamp(1, self.needed) {
            return match judging.on_judge_failure {
                OnJudgeFailure::Discard => Verdict::Reject(Discard::JudgeFailed),
                OnJudgeFailure::Mask => Verdict::Mask(0),
                OnJudgeFailure::Zero => scored(0, judging),
            };
        }
        let counts = self.counts();
        let score = match judging.aggregate {
            Aggregate::Majority if self.lead() > 0 => counts[0].1,
            Aggregate::Majority if judging.on_tie == OnTie::Discard => {
                return Verdict::Reject(Discard::Tie);
            }
            Aggregate::Majority => 0,
            Aggregate::Mean => {
                let sum: i64 = self.valid.iter().map(|&vote| i64::from(vote)).sum();
                (sum / self.valid.len() as i64) as Score
            }
            Aggregate::Median => {
                let mut sorted = self.valid.clone();
                sorted.sort_unstable();
                let middle = sorted.len() / 2;
                let below = middle - usize::from(sorted.len().is_multiple_of(2));
                ((i64::from(sorted[below]) + i64::from(sorted[middle])) / 2) as Score
            }
        };
        scored(score, judging)
    }

    /// How often each score was given, the most frequent first.
    fn counts(&self) -> Vec<(usize, Score)> {
        let mut scores = self.valid.clone();
        scores.sort_unstable();
        scores.dedup();
        let count = |score: Score| self.valid.iter().filter(|&&vote| vote == score).count();
        let mut counts: Vec<_> = scores.into_iter().map(|score| (count(score), score)).collect();
        counts.sort_unstable_by_key(|&(count, _)| std::cmp::Reverse(count));
        counts
    }

    /// By how many votes the most frequent score leads.
    fn lead(&self) -> usize {
        let counts = self.counts();
        let count = |place: usize| counts.get(place).map_or(0, |&(count, _)| count);
        count(0) - count(1)
    }
}

fn scored(score: Score, judging: &RewardJudging) -> Verdict {
    match judging.zero_score {
        ZeroScore::Mask if score == 0 => Verdict::Mask(0),
        ZeroScore::Discard if score == 0 => Verdict::Reject(Discard::ZeroScore),
        _ => Verdict::Train(score),
    }
}

impl Watch {
    pub(super) fn vote_started(&mut self, now: Time, vote: VoteId, sample: SampleId) -> Checked {
        must!(self.last_vote < Some(vote), "{vote} starts twice");
        self.last_vote = Some(vote);
        let retries = self.configs.iter().map(|c| c.reward_judging.judge_retries).max();
        let tries = u64::from(retries.unwrap_or(0)) + 1;
        let opened = Ballot::new(self.config());
        let Some(life) = self.samples.get_mut(&sample) else {
            return Err(format!("{vote} is on {sample}, which is none"));
        };
        let ballot = life.ballot.get_or_insert(opened);
        (ballot.started, ballot.flying) = (ballot.started + 1, ballot.flying + 1);
        must!(ballot.verdict.is_none(), "{sample} is judged again");
        let (started, most) = (ballot.started, u64::from(ballot.needed) * tries);
        must!(u64::from(started) <= most, "{started} votes on {sample}, and {most} are allowed");
        self.votes.insert(vote, sample);
        self.asked.insert(vote, Asked { since: self.inputs, started: now });
        Ok(())
    }

    pub(super) fn vote_cancelled(&mut self, now: Time, vote: VoteId) -> Checked {
        let Some(sample) = self.votes.remove(&vote) else {
            return Err(format!("{vote} is cancelled, and is not under way"));
        };
        let started = self.asked.remove(&vote).map_or(now, |asked| asked.started);
        let limit = self.config().reward_judging.judge_timeout;
        let in_time = limit == Span::ZERO || now.since(started) < limit;
        if let Some(ballot) = self.ballot(sample) {
            ballot.flying = ballot.flying.saturating_sub(1);
            ballot.cancelled += u32::from(in_time);
        }
        self.polled.insert(sample);
        Ok(())
    }

    pub(super) fn count_vote(&mut self, sample: SampleId, outcome: VoteOutcome) {
        if let Some(ballot) = self.ballot(sample) {
            ballot.flying = ballot.flying.saturating_sub(1);
            if let VoteOutcome::Score(score) = outcome {
                ballot.valid.push(score);
            }
        }
        self.polled.insert(sample);
    }

    fn ballot(&mut self, sample: SampleId) -> Option<&mut Ballot> {
        self.samples.get_mut(&sample)?.ballot.as_mut()
    }

    /// Where the last input closed a ballot, its sample has the score that its votes make.
    pub(super) fn check_polled(&mut self, core: &Scheduler) -> Checked {
        for id in std::mem::take(&mut self.polled) {
            let judging = self.config().reward_judging.clone();
            let Some(ballot) = self.ballot(id) else { continue };
            let cancelled = std::mem::take(&mut ballot.cancelled);
            let Some(sample) = core.sample(id) else {
                return Err(format!("{id} is gone, and nobody was told"));
            };
            if ballot.verdict.is_some() || core.sample_state(id) == Some(SampleState::Judging) {
                continue;
            }
            ballot.verdict = Some(ballot.verdict(&judging));
            let decided = judging.aggregate == Aggregate::Majority
                && ballot.lead() > (ballot.flying + cancelled) as usize;
            let over = ballot.flying + cancelled == 0 || decided;
            must!(over, "{id} is judged before its votes are: {ballot:?}");
            self.check_score(sample)?;
        }
        Ok(())
    }

    /// Its score is the one that its votes make.
    pub(super) fn check_score(&self, sample: &Sample) -> Checked {
        let id = sample.id;
        let ballot = self.samples.get(&id).and_then(|life| life.ballot.as_ref());
        let Some((ballot, verdict)) = ballot.and_then(|it| Some((it, it.verdict?))) else {
            return Err(format!("{id} is trained, and was not judged"));
        };
        let one_counts = self.ever(|config| config.reward_judging.at_least_one);
        let (score, masked) = (sample.score, sample.masked);
        let fits = match verdict {
            Verdict::Train(made) => score == made && !masked,
            Verdict::Mask(made) => score == made && (masked || one_counts),
            Verdict::Reject(Discard::Tie | Discard::ZeroScore) => {
                score == 0 && !masked && one_counts
            }
            Verdict::Reject(_) => false,
        };
        let votes = &ballot.valid;
        must!(fits, "{id} has a score of {score} (masked: {masked}), and its votes are {votes:?}");
        Ok(())
    }

    /// A sample is discarded for what its votes say.
    pub(super) fn check_rejected(&self, id: SampleId, reason: Discard) -> Checked {
        let ballot = self.samples.get(&id).and_then(|life| life.ballot.as_ref());
        let Some(ballot) = ballot else {
            return Err(format!("{id} is discarded as {reason} without a vote"));
        };
        let verdict = ballot.verdict(&self.config().reward_judging);
        let votes = &ballot.valid;
        let fits = verdict == Verdict::Reject(reason);
        must!(fits, "{id} is discarded as {reason}, and its votes are {votes:?}");
        Ok(())
    }
}
