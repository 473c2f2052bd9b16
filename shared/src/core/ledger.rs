//! The ledger: where every request and every sample is, in O(1) counters.

use serde::{Deserialize, Serialize};

use crate::action::{Discard, Refusal};

/// Where an admitted sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleState {
    /// Being generated, or waiting to be started again.
    Generating,
    /// Waiting for its next state.
    AwaitingState,
    /// Waiting for the end of its session, to be judged with the session's other turns; a
    /// trajectory also waits so for its next turn.
    AwaitingSessionEnd,
    /// Waiting for room in the rollout queue, with its serving slot.
    RolloutBlocked,
    /// In the rollout queue.
    RolloutQueue,
    /// Being judged.
    Judging,
    /// Scored, waiting for its group mates.
    GroupWait,
    /// Waiting for room in the output queue, with a judge slot.
    OutputBlocked,
    /// In the output queue.
    OutputQueue,
    /// In a train step.
    Training,
    /// Waiting for its next state without a place.
    Parked,
}

impl SampleState {
    /// How many states there are.
    pub const COUNT: usize = 11;

    /// Every state.
    pub const ALL: [SampleState; Self::COUNT] = [
        Self::Generating,
        Self::AwaitingState,
        Self::AwaitingSessionEnd,
        Self::RolloutBlocked,
        Self::RolloutQueue,
        Self::Judging,
        Self::GroupWait,
        Self::OutputBlocked,
        Self::OutputQueue,
        Self::Training,
        Self::Parked,
    ];
}

/// Which rule of the core was broken. Never seen in a correct build; a run that breaks one ends
/// with [`RunError::Invariant`](crate::action::RunError::Invariant).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Violation {
    /// Admitted samples are not trained, discarded, outstanding or parked.
    #[error("admitted samples do not add up")]
    Samples,
    /// Offered requests are not admitted, part of a trajectory, refused, held, served only or gone.
    #[error("offered requests do not add up")]
    Requests,
    /// A sample above η was trained under a strict bound.
    #[error("a sample above max_head_off_policyness was trained under a strict bound")]
    StrictBound,
    /// A staleness or lag was negative, or a version went backwards.
    #[error("a version went backwards")]
    Version,
    /// A queue exceeds its size.
    #[error("a queue exceeds its size")]
    QueueSize,
    /// More votes in flight than `judge_concurrency`.
    #[error("more votes in flight than judge_concurrency")]
    Votes,
    /// More environments than `max_envs`.
    #[error("more environments than max_envs")]
    Environments,
    /// A 503 outside a pause.
    #[error("a 503 outside a pause")]
    Refused503,
    /// A batch of the wrong size.
    #[error("a batch has the wrong size")]
    BatchSize,
    /// A counter differs from its recount.
    #[error("a counter differs from its recount")]
    Recount,
}

/// Counters of requests and samples since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Main requests that arrived.
    pub offered: u64,
    /// Requests that became samples.
    pub admitted: u64,
    /// Main requests refused, by [`Refusal::index`].
    pub refused: [u64; Refusal::COUNT],
    /// Main requests that wait for a place now.
    pub held: u64,
    /// Main requests that went on with a trajectory.
    pub continued: u64,
    /// Main requests served without recording.
    pub served_only: u64,
    /// Main requests whose client left while they were held.
    pub left_while_held: u64,
    /// Side requests that arrived.
    pub side_offered: u64,
    /// Side requests refused (503).
    pub side_refused: u64,
    /// Samples trained.
    pub trained: u64,
    /// Samples trained above η.
    pub trained_above_bound: u64,
    /// Samples discarded, by [`Discard::index`].
    pub discarded: [u64; Discard::COUNT],
    /// Samples now in each [`SampleState`].
    pub in_state: [u64; SampleState::COUNT],
    /// Times a sample was parked.
    pub parkings: u64,
    /// Inputs that were late, double, or for something unknown.
    pub ignored: u64,
    /// Train steps that made a new version.
    pub steps: u64,
    /// Train steps with fewer than `batch_size` entries.
    pub short_steps: u64,
    /// Train steps that failed.
    pub failed_steps: u64,
    /// Publications that reached every replica.
    pub publications: u64,
    /// Publications that failed, wholly or on some replica.
    pub failed_publications: u64,
    /// Votes started.
    pub votes: u64,
    /// Groups that were complete, or went on without the rest.
    pub groups_complete: u64,
    /// Of these, groups that the filter discarded.
    pub groups_filtered: u64,
    /// Of these, groups since the last one that was kept.
    pub filtered_in_a_row: u64,
    /// Times an adaptive bound was raised.
    pub bound_raised: u64,
    /// Times an adaptive bound was lowered.
    pub bound_lowered: u64,
}

impl Ledger {
    /// Samples parked now.
    #[must_use]
    pub const fn parked(&self) -> u64 {
        self.in_state[SampleState::Parked as usize]
    }

    /// Samples admitted and not yet trained, discarded or parked.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.in_state.iter().sum::<u64>() - self.parked()
    }

    /// Samples now in `state`.
    #[must_use]
    pub const fn count(&self, state: SampleState) -> u64 {
        self.in_state[state as usize]
    }

    /// All samples discarded.
    #[must_use]
    pub fn discarded_total(&self) -> u64 {
        self.discarded.iter().sum()
    }

    /// All main requests refused.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// Checks that requests and samples add up.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn check(&self) -> Result<(), Violation> {
        let known = self.trained + self.discarded_total() + self.in_state.iter().sum::<u64>();
        if self.admitted != known {
            return Err(Violation::Samples);
        }
        let served = self.admitted + self.continued + self.served_only;
        let left = self.held + self.left_while_held;
        if self.offered != served + self.refused_total() + left {
            return Err(Violation::Requests);
        }
        Ok(())
    }
}
