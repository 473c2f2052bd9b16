//! Values that are one of a few words.

use serde::{Deserialize, Serialize};

macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[doc = $about:literal])* $variant:ident = $text:literal,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[doc = $about])* #[serde(rename = $text)] $variant,)*
        }

        impl Choice for $name {
            const ALL: &'static [(&'static str, Self)] = &[$(($text, Self::$variant),)*];
            const ABOUT: &'static [&'static str] = &[$(concat!($($about),*),)*];
        }
    )*};
}

/// A value that is one of a few words.
pub trait Choice: Copy + PartialEq + 'static {
    /// Every word with its value.
    const ALL: &'static [(&'static str, Self)];
    /// What each word means, in the order of [`ALL`](Self::ALL).
    const ABOUT: &'static [&'static str];

    /// The word of this value.
    fn word(self) -> &'static str {
        // Every value is in the list, as the macro writes both.
        Self::ALL.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
}

choices! {
    /// How weights reach the replicas.
    SyncMode {
        /// Close the gate (503), let in-flight turns end, abort the rest, load, reopen.
        PauseDrain = "pause_drain",
        /// Close the gate (503), abort all, load, reopen.
        PauseAbort = "pause_abort",
        /// Close the gate (503), freeze in-flight turns, load, go on.
        PauseKeep = "pause_keep",
        /// Never close; each replica swaps between two decode steps.
        InFlight = "in_flight",
        /// One replica at a time is drained and loaded; the others serve.
        Rolling = "rolling",
    }
    /// What becomes of a turn that a weight sync aborted.
    Aborted {
        /// Its sample is discarded.
        Discard = "discard",
        /// It starts again from nothing.
        Restart = "restart",
        /// It goes on from its tokens; its segments mix versions.
        Resume = "resume",
        /// It counts as complete.
        KeepAsFinal = "keep_as_final",
    }
    /// What happens to the KV cache of a turn whose replica swaps weights under it.
    KvOnSync {
        /// It is computed again under the new weights.
        Recompute = "recompute",
        /// It is kept, stale.
        Keep = "keep",
    }
    /// Which replica takes a request.
    Routing {
        /// The one with the fewest turns running.
        LeastLoaded = "least_loaded",
        /// The one that served the session's last turn, if it may; for its prefix cache.
        SessionAffine = "session_affine",
    }
    /// What happens to a request for which the gate has no capacity.
    OverLimit {
        /// 429.
        Refuse = "refuse",
        /// It waits, up to `hold_sec`.
        Hold = "hold",
        /// It is served, and not recorded.
        ServeOnly = "serve_only",
    }
    /// Whether a turn keeps its serving slot until it is judged.
    JudgeMode {
        /// Scoring never blocks a rollout.
        Async = "async",
        /// It does (the baseline).
        Sync = "sync",
    }
    /// What a judge has to see.
    JudgeNeeds {
        /// What followed the turn: the user's reply, the tool's output.
        NextState = "next_state",
        /// The turn alone.
        Turn = "turn",
    }
    /// How votes make a score.
    Aggregate {
        /// The most frequent vote.
        Majority = "majority",
        /// The arithmetic mean.
        Mean = "mean",
        /// The middle vote; of an even number, the mean of the two middle ones.
        Median = "median",
    }
    /// What a tie of `majority` means.
    OnTie {
        /// A score of 0.
        Zero = "zero",
        /// The sample is discarded.
        Discard = "discard",
    }
    /// What happens to a sample with fewer than `min_votes` valid votes.
    OnJudgeFailure {
        /// It is discarded.
        Discard = "discard",
        /// Its score is 0.
        Zero = "zero",
        /// It keeps its place in a batch, with no gradient.
        Mask = "mask",
    }
    /// What a score of 0 means.
    ZeroScore {
        /// It trains like every other.
        Train = "train",
        /// It keeps its place in a batch, with no gradient.
        Mask = "mask",
        /// The sample is discarded.
        Discard = "discard",
    }
    /// The rule that admits requests.
    GateKind {
        /// Ours: (η + 1 - publish lag) * B - outstanding.
        Headway = "headway",
        /// AReaL's staleness manager.
        Areal = "areal",
        /// OpenClaw-RL's: closed from a full batch until the step before is trained.
        Openclaw = "openclaw",
        /// verl, fully async: a budget per sync period, `staleness_threshold` beyond it.
        Verl = "verl",
        /// ROLL's: a budget per step, `async_generation_ratio` ahead; strict per sample.
        Roll = "roll",
        /// prime-rl's: nothing is refused; what η forbids is cancelled or swept. Strict per sample.
        PrimeRl = "prime_rl",
        /// SkyRL's: (η + 1 + version) * B, less what was accepted and what runs.
        Skyrl = "skyrl",
        /// NeMo-RL's window: the buffer evicts what is older than η.
        NemoRlWindow = "nemo_rl_window",
        /// PipelineRL's: `max_lag_samples` ahead, and one batch more per version.
        PipelineRl = "pipeline_rl",
        /// The next batch is generated while one trains: staleness is 1.
        OneStepOff = "one_step_off",
        /// slime's `train_async.py`: the next batch is collected while one trains, and weights are
        /// pushed every `publish_interval` steps once it is complete.
        SlimeTrainAsync = "slime_train_async",
        /// Synchronous: one batch per version, nothing else.
        Sync = "sync",
        /// No bound.
        None = "none",
    }
    /// What η bounds.
    Bound {
        /// What is admitted; stragglers are trained and counted.
        Aggregate = "aggregate",
        /// Every trained sample.
        Strict = "strict",
    }
    /// What `bound = "strict"` does with a sample that would become too old.
    Late {
        /// It is discarded.
        Discard = "discard",
        /// The step waits for it, up to `late_wait_sec`.
        Wait = "wait",
    }
    /// What a sample is.
    SampleUnit {
        /// One turn.
        Turn = "turn",
        /// The whole trajectory of a session: its head is its first generated token.
        Session = "session",
    }
    /// Which complete groups are not trained.
    GroupFilter {
        /// All are.
        None = "none",
        /// Those whose scores are all equal: they have no advantage to learn from.
        ZeroVariance = "zero_variance",
    }
    /// What happens, when a step starts, to what over-sampling brought beyond a batch.
    Surplus {
        /// It is kept for later batches.
        Recycle = "recycle",
        /// Places that the gate would not give now to weights of their age are discarded.
        Drop = "drop",
    }
    /// What fills a batch.
    BatchCounts {
        /// Samples that will be trained.
        Accepted = "accepted",
        /// Judged samples, trained or rejected (AReaL's `dynamic_bs`).
        Results = "results",
    }
    /// The off-policy correction of the loss.
    Correction {
        /// None.
        None = "none",
        /// PPO's clipped ratio.
        PpoClip = "ppo_clip",
        /// Decoupled PPO (AReaL).
        Decoupled = "decoupled",
        /// Truncated importance sampling.
        Tis = "tis",
        /// IcePop: zero outside a band.
        Icepop = "icepop",
        /// A sequence outside a band is masked.
        SequenceMask = "sequence_mask",
        /// GSPO's sequence ratio.
        Gspo = "gspo",
    }
    /// What the adaptive bound follows, as it is measured on each train step's batch.
    Signal {
        /// Nothing: η stays as it is set.
        Off = "off",
        /// The mean absolute difference of the trainer's and the engine's log-probabilities, in
        /// nats: smaller is better.
        LogprobAbsDiff = "logprob_abs_diff",
        /// The share of tokens that the correction changes: smaller is better.
        ClippedFraction = "clipped_fraction",
        /// The effective sample size of the tokens, as a share of them: larger is better.
        Ess = "ess",
    }
    /// In which order a queue is taken from.
    QueueOrder {
        /// First in, first out.
        Fifo = "fifo",
        /// Last in, first out.
        Lifo = "lifo",
        /// The oldest first token first.
        OldestVersionFirst = "oldest_version_first",
        /// The newest first token first.
        FreshestFirst = "freshest_first",
        /// The order of admission.
        AdmissionOrder = "admission_order",
    }
    /// What happens when a queue is full.
    DropPolicy {
        /// Room is reserved at admission; where there is none, the request is refused (429).
        Reject = "reject",
        /// A sample keeps the slot it has until there is room.
        Block = "block",
        /// The sample that entered first is discarded.
        DropOldest = "drop_oldest",
        /// The sample that would enter is discarded.
        DropNewest = "drop_newest",
    }
    /// What happens when a run leaves the envelope of `[guard]`.
    OnDeviation {
        /// It is logged, counted, and shown in the admin state.
        Log = "log",
        /// The same, and the run goes back to the previous configuration.
        Rollback = "rollback",
    }
}

impl SyncMode {
    /// Requests get a 503 during a weight sync.
    #[must_use]
    pub const fn pauses(self) -> bool {
        matches!(self, Self::PauseDrain | Self::PauseAbort | Self::PauseKeep)
    }
}
