//! Bugs that tests plant in the core, to see that they are found.
//!
//! A build without the feature `planted` has none of them: [`Plant`] is empty there, and
//! [`Plant::is`] a constant.

/// A bug that was made elsewhere, or nearly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A step discards what it leaves in the output queue.
    SurplusDropped,
    /// The gate counts what was ever admitted, less a full batch for each step.
    CumulativeCounter,
    /// A sample that leaves wakes nobody who waits for its place.
    LostWakeUp,
    /// The gate takes a replica for one version newer than it is.
    OffByOneLag,
    /// Replicas that were closed for a weight sync stay closed.
    GateNotReopened,
    /// Each vote counts twice.
    VoteCountedTwice,
    /// What a completion that comes twice holds is trained twice.
    DuplicateTrained,
    /// A sample keeps the version of its replica at its start, whatever generated it.
    StaleLabel,
    /// The output queue takes one sample more than it may.
    QueueOverCapacity,
    /// Nobody is told what a full queue drops.
    SilentEviction,
    /// A driver forgets every hundredth action.
    ActionDropped,
}

impl Planted {
    /// Every one.
    pub const ALL: [Self; 11] = [
        Self::SurplusDropped,
        Self::CumulativeCounter,
        Self::LostWakeUp,
        Self::OffByOneLag,
        Self::GateNotReopened,
        Self::VoteCountedTwice,
        Self::DuplicateTrained,
        Self::StaleLabel,
        Self::QueueOverCapacity,
        Self::SilentEviction,
        Self::ActionDropped,
    ];
}

/// The bug that is planted, if any is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plant {
    #[cfg(feature = "planted")]
    bug: Option<Planted>,
}

impl Plant {
    /// This one.
    #[cfg(feature = "planted")]
    #[must_use]
    pub const fn of(bug: Planted) -> Self {
        Self { bug: Some(bug) }
    }

    /// Whether it is this one.
    #[cfg(feature = "planted")]
    #[must_use]
    pub const fn is(self, bug: Planted) -> bool {
        matches!(self.bug, Some(planted) if planted as u8 == bug as u8)
    }

    /// It is none.
    #[cfg(not(feature = "planted"))]
    #[must_use]
    pub const fn is(self, _: Planted) -> bool {
        false
    }
}
