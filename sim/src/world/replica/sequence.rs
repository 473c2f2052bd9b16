//! One sequence in a replica, and what is left of it at its end.

use headway_shared::id::SessionId;
use headway_shared::input::{Segment, Segments};
use headway_shared::time::Time;
use headway_shared::version::{DeployVersion, RolloutVersion};

/// A turn to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The caller's own name for it; comes back in [`Ended`].
    pub handle: u64,
    /// Whose prefix cache it uses; `None`: none.
    pub session: Option<SessionId>,
    /// Tokens to read before the first is generated (with a resumed turn: also those that it has
    /// already).
    pub prompt_tokens: u32,
    /// Tokens to generate.
    pub tokens: u32,
}

/// Names a submitted turn, for [`Replica::abort`](super::Replica::abort). One that is over is
/// recognised, even when its place is taken by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// How a turn ended in the replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All its tokens are generated.
    Complete,
    /// It was aborted; the segments are what there is.
    Aborted,
    /// The replica died; the segments are what was lost.
    Lost,
}

/// The end of a turn. Every submitted turn has exactly one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The turn's handle.
    pub handle: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// When its first token was generated (the end of its prefill, as engines sample it from
    /// there); `None` without a whole token.
    pub first_token: Option<Time>,
    /// What was generated, by version. A complete turn has all its tokens here.
    pub segments: Segments,
}

/// Appends a segment; neighbours of one version become one, an empty one nothing.
pub fn append(segments: &mut Segments, segment: Segment) {
    match segments.last_mut() {
        _ if segment.tokens == 0 => {}
        Some(last) if last.version == segment.version => last.tokens += segment.tokens,
        _ => segments.push(segment),
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Waiting,
    Prefilling,
    Decoding,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    pub(super) handle: u64,
    pub(super) session: Option<SessionId>,
    pub(super) prompt: u32,
    pub(super) tokens: u32,
    pub(super) stage: Stage,
    /// Tokens generated before it last entered decoding.
    pub(super) done: u32,
    /// Tokens in its segments: all of `done`, and those since that a swap closed.
    pub(super) recorded: u32,
    /// The progress at which it last entered decoding.
    pub(super) entered: f64,
    /// Tokens of its context that the prefix cache held at its last prefill.
    pub(super) cached: u32,
    pub(super) first_token: Time,
    pub(super) segments: Segments,
}

impl Sequence {
    /// Tokens that its KV cache holds when it enters decoding.
    pub(super) fn context(&self) -> u64 {
        u64::from(self.prompt) + u64::from(self.done)
    }

    /// Whole tokens generated so far.
    pub(super) fn generated(&self, progress: f64) -> u32 {
        match self.stage {
            // `as` cuts the fraction off.
            Stage::Decoding => {
                self.tokens.min(self.done.saturating_add((progress - self.entered) as u32))
            }
            Stage::Waiting | Stage::Prefilling => self.done,
        }
    }

    /// Stamps the tokens generated since the last stamp with the version that generated them.
    pub(super) fn record(&mut self, generated: u32, version: DeployVersion) {
        let tokens = generated - self.recorded;
        let version = RolloutVersion::stamped_by(version);
        append(&mut self.segments, Segment { version, tokens });
        self.recorded = generated;
    }
}
