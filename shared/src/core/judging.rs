//! The rollout queue, votes and scores.

use super::slab::{NONE, Slot};
use super::state::{Ballot, MAX_VOTES, Vote};
use super::{SampleState, Scheduler, Stage, Violation};
use crate::action::{Action, Discard};
use crate::config::{
    Aggregate, DropPolicy, JudgeMode, OnJudgeFailure, OnTie, RewardJudging, ZeroScore,
};
use crate::id::VoteId;
use crate::input::{Score, VoteOutcome};
use crate::planted::Planted;

/// What a closed ballot says.
#[derive(Clone, Copy)]
enum Verdict {
    Train(Score),
    Mask(Score),
    Reject(Discard),
}

impl Scheduler {
    /// A sample has what its judge needs.
    pub(super) fn enter_rollout(&mut self, slot: Slot) {
        if self.rollout_has_room(slot) {
            return self.push_rollout(slot);
        }
        let policy = self.config.queue.rollout.drop_policy;
        if policy == DropPolicy::DropNewest {
            return self.discard(slot, Discard::RolloutQueueFull);
        }
        while policy == DropPolicy::DropOldest
            && !self.rollout_has_room(slot)
            && let Some(oldest) =
                self.rollout.fronts().min_by_key(|&front| self.samples[front].entered)
        {
            self.discard(oldest, Discard::RolloutQueueFull);
            // It can have taken its group with it, this sample included.
            if self.samples.get(slot).is_none() {
                return;
            }
        }
        if self.rollout_has_room(slot) {
            return self.push_rollout(slot);
        }
        self.in_state(slot, SampleState::RolloutBlocked);
        self.rollout.block(slot);
        self.keep_slot(slot);
    }

    fn rollout_has_room(&self, slot: Slot) -> bool {
        let entry = &self.samples[slot];
        let promised = if entry.reserved_rollout { 0 } else { self.rollout.reserved };
        let room = self.rollout.samples + promised < self.config.queue.rollout.max_size;
        room || self.is_awaited(slot)
    }

    fn push_rollout(&mut self, slot: Slot) {
        self.release_rollout_room(slot);
        if self.config.reward_judging.mode == JudgeMode::Async {
            self.release_slot(slot);
        }
        self.in_state(slot, SampleState::RolloutQueue);
        let entered = self.entry_ordinal();
        let entry = &mut self.samples[slot];
        entry.rank = self.rollout.rank(entry.sample.head.number(), entry.sample.id.0);
        entry.entered = entered;
        self.rollout.push(slot, entry.rank, 1);
        let max_size = self.config.queue.rollout.max_size;
        let fits = self.rollout.samples <= max_size || self.is_awaited(slot);
        self.ensure(fits, Violation::QueueSize);
    }

    /// Lets samples that wait for room into the rollout queue.
    pub(super) fn unblock_rollout(&mut self) -> bool {
        let mut moved = false;
        while let Some(slot) = self.rollout.blocked.front().filter(|&s| self.rollout_has_room(s)) {
            self.rollout.unblock(slot);
            self.push_rollout(slot);
            moved = true;
        }
        if self.awaits_late() {
            while let Some(slot) = self.awaited_of(&self.rollout) {
                self.rollout.unblock(slot);
                self.push_rollout(slot);
                moved = true;
            }
        }
        moved
    }

    /// Starts votes while there are judge slots.
    pub(super) fn start_votes(&mut self) -> bool {
        let limit = self.config.reward_judging.judge_concurrency as usize;
        let mut moved = self.judge_awaited();
        while self.votes.len() + (self.output.blocked.len() as usize) < limit {
            if let Some(ballot) = self.ballot_line.front() {
                self.start_vote(ballot);
            } else if let Some(slot) = self.rollout.next() {
                self.open_ballot(slot);
            } else {
                break;
            }
            moved = true;
        }
        moved
    }

    /// A step waits for these: samples that are scored and have no room do not stand in their way.
    fn judge_awaited(&mut self) -> bool {
        let limit = self.config.reward_judging.judge_concurrency as usize;
        let mut moved = false;
        while self.votes.len() < limit
            && self.awaits_late()
            && let Some(slot) = self.awaited_in(SampleState::RolloutQueue)
        {
            self.open_ballot(slot);
            let ballot = self.samples[slot].ballot;
            while self.votes.len() < limit && self.ballots[ballot].in_line {
                self.start_vote(ballot);
            }
            moved = true;
        }
        moved
    }

    fn open_ballot(&mut self, slot: Slot) {
        self.rollout.remove(slot, self.samples[slot].rank, 1);
        self.admission_due = true;
        self.in_state(slot, SampleState::Judging);
        let needed = self.config.reward_judging.votes.clamp(1, MAX_VOTES as u32);
        let ballot = self.ballots.insert(Ballot {
            sample: slot,
            needed,
            waiting: (1 << needed) - 1,
            in_flight: [NONE; MAX_VOTES],
            tries: [0; MAX_VOTES],
            scores: [0; MAX_VOTES],
            valid: 0,
            in_line: true,
        });
        self.ballot_line.push_back(&mut self.ballot_links, ballot);
        self.samples[slot].ballot = ballot;
        self.samples[slot].stamp(Stage::JudgeStarted, self.now, self.learner);
    }

    /// Starts the next vote of a ballot in line.
    fn start_vote(&mut self, slot: Slot) {
        let id = VoteId(self.next_vote);
        self.next_vote += 1;
        let ballot = &mut self.ballots[slot];
        let index = ballot.waiting.trailing_zeros() as usize;
        ballot.waiting &= !(1 << index);
        ballot.tries[index] = ballot.tries[index].saturating_add(1);
        let vote = self.votes.insert(Vote { id, ballot: slot, index, started: self.now });
        ballot.in_flight[index] = vote;
        if ballot.waiting == 0 {
            ballot.in_line = false;
            self.ballot_line.remove(&mut self.ballot_links, slot);
        }
        let sample = self.samples[self.ballots[slot].sample].sample.id;
        self.vote_of.insert(id.0, vote);
        self.vote_timers.push_back(&mut self.vote_links, vote);
        self.ledger.votes += 1;
        let within = self.votes.len() <= self.config.reward_judging.judge_concurrency as usize;
        self.ensure(within, Violation::Votes);
        self.act(Action::StartVote { vote: id, sample });
    }

    pub(super) fn handle_vote_ended(&mut self, id: VoteId, outcome: VoteOutcome, judge: u32) {
        let Some(vote) = self.vote_of.get(id.0) else { return self.ignore() };
        let Some(Vote { ballot, index, .. }) = self.forget_vote(vote) else { return };
        self.samples[self.ballots[ballot].sample].sample.judge_version = judge;
        match outcome {
            VoteOutcome::Score(score) => {
                self.ballots[ballot].count(score);
                if self.plant.is(Planted::VoteCountedTwice) {
                    self.ballots[ballot].count(score);
                }
            }
            VoteOutcome::Invalid => {}
            VoteOutcome::Failed => self.retry_vote(ballot, index),
        }
        self.count_votes(ballot);
    }

    #[cold]
    pub(super) fn vote_timed_out(&mut self) {
        let Some(slot) = self.vote_timers.front() else { return };
        let Some(Vote { id, ballot, index, .. }) = self.forget_vote(slot) else { return };
        self.act(Action::CancelVote { vote: id });
        self.retry_vote(ballot, index);
        self.count_votes(ballot);
    }

    fn forget_vote(&mut self, slot: Slot) -> Option<Vote> {
        self.vote_timers.remove(&mut self.vote_links, slot);
        let vote = self.votes.remove(slot)?;
        self.vote_of.remove(vote.id.0);
        self.ballots[vote.ballot].in_flight[vote.index] = NONE;
        Some(vote)
    }

    fn retry_vote(&mut self, slot: Slot, index: usize) {
        let retries = self.config.reward_judging.judge_retries;
        let ballot = &mut self.ballots[slot];
        if ballot.tries[index] > retries {
            return;
        }
        ballot.waiting |= 1 << index;
        if !std::mem::replace(&mut ballot.in_line, true) {
            self.ballot_line.push_back(&mut self.ballot_links, slot);
        }
    }

    /// Closes the ballot if its outcome is known.
    fn count_votes(&mut self, slot: Slot) {
        let config = &self.config.reward_judging;
        let ballot = &self.ballots[slot];
        let flying = ballot.in_flight.iter().filter(|&&vote| vote != NONE).count() as u32;
        let open = flying + ballot.waiting.count_ones();
        let min_votes = config.min_votes.clamp(1, ballot.needed);
        let votes = &ballot.scores[..ballot.valid as usize];
        let decided = config.aggregate == Aggregate::Majority
            && ballot.valid >= min_votes
            && leads_by(votes) > open;
        if open > 0 && !decided {
            return;
        }
        let enough = ballot.valid >= min_votes;
        let verdict = if enough { score(config, votes) } else { judge_failed(config) };
        let sample = ballot.sample;
        self.close_ballot(sample);
        self.judged(sample, verdict, enough);
    }

    /// Cancels what is left of a sample's votes.
    pub(super) fn close_ballot(&mut self, sample: Slot) {
        let slot = std::mem::replace(&mut self.samples[sample].ballot, NONE);
        for index in 0..MAX_VOTES {
            let vote = self.ballots[slot].in_flight[index];
            if vote != NONE
                && let Some(vote) = self.forget_vote(vote)
            {
                self.act(Action::CancelVote { vote: vote.id });
            }
        }
        if self.ballots[slot].in_line {
            self.ballot_line.remove(&mut self.ballot_links, slot);
        }
        self.ballots.remove(slot);
    }

    /// The votes are over; `known`: enough of them were valid.
    fn judged(&mut self, slot: Slot, verdict: Verdict, known: bool) {
        let session = std::mem::replace(&mut self.samples[slot].session, NONE);
        // Its session lives at least as long as it is not judged.
        // Alone in its session, a trajectory would always be the one.
        let at_least_one = self.config.reward_judging.at_least_one && !self.trajectories();
        let first = known && at_least_one && !self.sessions[session].counted;
        let (score, masked, rejected) = match verdict {
            Verdict::Train(score) => (score, false, None),
            Verdict::Mask(score) => (score, !first, None),
            Verdict::Reject(Discard::Tie | Discard::ZeroScore) if first => (0, false, None),
            Verdict::Reject(reason) => (0, true, Some(reason)),
        };
        self.sessions[session].counted |= !masked;
        self.leave_session(session);
        self.release_slot(slot);
        let entry = &mut self.samples[slot];
        (entry.sample.score, entry.sample.masked) = (score, masked);
        entry.stamp(Stage::Judged, self.now, self.learner);
        self.in_state(slot, SampleState::GroupWait);
        if let Some(reason) = rejected {
            // It was not counted as scored, and discarding it takes it from that count.
            self.count_scored(slot);
            return self.discard(slot, reason);
        }
        match self.count_scored(slot) {
            NONE => self.sample_ready(slot),
            group => self.check_group(group, Discard::GroupTooSmall),
        }
    }

    fn count_scored(&mut self, slot: Slot) -> Slot {
        let group = self.samples[slot].group;
        if group != NONE {
            self.groups[group].scored += 1;
        }
        group
    }
}

/// By how many votes the most frequent score leads; 0 for a tie.
fn leads_by(votes: &[Score]) -> u32 {
    let (mut first, mut second) = (0, 0);
    for (index, vote) in votes.iter().enumerate() {
        if votes[..index].contains(vote) {
            continue;
        }
        let count = votes.iter().filter(|other| *other == vote).count() as u32;
        if count > first {
            (first, second) = (count, first);
        } else {
            second = second.max(count);
        }
    }
    first - second
}

fn most_frequent(votes: &[Score]) -> Score {
    let count = |vote: &Score| votes.iter().filter(|other| *other == vote).count();
    votes.iter().copied().max_by_key(|vote| count(vote)).unwrap_or(0)
}

fn score(config: &RewardJudging, votes: &[Score]) -> Verdict {
    let score = match config.aggregate {
        Aggregate::Majority if leads_by(votes) == 0 => {
            if config.on_tie == OnTie::Discard {
                return Verdict::Reject(Discard::Tie);
            }
            0
        }
        Aggregate::Majority => most_frequent(votes),
        Aggregate::Mean => {
            let sum: i64 = votes.iter().map(|&vote| i64::from(vote)).sum();
            (sum / votes.len() as i64) as Score
        }
        Aggregate::Median => median(votes),
    };
    match config.zero_score {
        ZeroScore::Mask if score == 0 => Verdict::Mask(0),
        ZeroScore::Discard if score == 0 => Verdict::Reject(Discard::ZeroScore),
        _ => Verdict::Train(score),
    }
}

fn median(votes: &[Score]) -> Score {
    let mut sorted = [0; MAX_VOTES];
    let sorted = &mut sorted[..votes.len()];
    sorted.copy_from_slice(votes);
    sorted.sort_unstable();
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    ((i64::from(low) + i64::from(high)) / 2) as Score
}

fn judge_failed(config: &RewardJudging) -> Verdict {
    match config.on_judge_failure {
        OnJudgeFailure::Discard => Verdict::Reject(Discard::JudgeFailed),
        OnJudgeFailure::Zero => match config.zero_score {
            ZeroScore::Mask => Verdict::Mask(0),
            ZeroScore::Discard => Verdict::Reject(Discard::ZeroScore),
            ZeroScore::Train => Verdict::Train(0),
        },
        OnJudgeFailure::Mask => Verdict::Mask(0),
    }
}
