//! Why a run is as stale as it is, and where its ratios come from.
//!
//! [`Evidence`] is what a run shows: measured live, or predicted by a simulation. [`diagnose`] is
//! pure: rules with fixed thresholds, the constants of this module, which `docs/diagnose.md`
//! lists. It names
//!
//! - five troubles that users meet (`troubles`): 503 that never ends, votes that time out, a judge
//!   that never answers, a full queue, a log-prob difference that climbs;
//! - one of four causes of ratios that are far from 1, in the order in which they are cheapest to
//!   check: age, mixing, numerics, labels (`causes`).
//!
//! What tells the four apart:
//!
//! - At staleness 0 the policy that is trained *is* the one that generated. What its ratios differ
//!   by there is a defect, and no age explains it.
//! - A ratio of two policies has the mean 1 over tokens that the lower one has drawn. Age, other
//!   precision and a cache of older weights keep that true; log-probabilities of other tokens, or
//!   zeros, do not: these are labels.
//! - A defect that only tokens have whose turn was continued under other weights is mixing. One that
//!   all tokens have is numerics.
//! - What grows with staleness is age where the versions passed while samples waited, and mixing
//!   where they passed while their own turn was still being generated.

mod causes;
mod evidence;
mod folder;
mod pool;
mod ratios;
mod report;
mod signs;
mod spread;
#[cfg(test)]
mod tests;
mod troubles;
mod waits;

use headway_shared::config::{Choice, Config};

pub use evidence::Evidence;
pub use folder::NotOneRun;
pub use pool::Pool;
pub use ratios::{Course, Ratios};
pub use report::json;
pub use signs::Sign;
pub use spread::{Floor, Mean, Spread};
pub use waits::{Bar, Part, Waits, parts};

use crate::report::number::short;

/// Spread (root mean square of the logarithm) of learner/rollout, in nats, from which on ratios are
/// far from 1: the range in which PPO does not clip (0.8 to 1.2) ends there.
pub const WIDE: f64 = 0.2;

/// Spread at staleness 0 that two engines of one precision may have, in nats. Published for bf16: a
/// KL divergence of 4.8e-4 and differences of 0.011 to 0.029, spreads of 0.017 to 0.045.
pub const FLOOR: f64 = 0.06;

/// The same where the engine `tch` serves and trains: both compute in f32, and 3e-7 was measured.
pub const FLOOR_IN_PROCESS: f64 = 0.001;

/// Share of the mean square of a log-ratio from which on it counts as the cause.
pub const MOST: f64 = 0.5;

/// How far the mean of the ratios may be from 1, as a share of `1 - exp(-spread²)`: 0 for the ratio
/// of two policies, 0.24 and more where labels are wrong.
pub const OFF_ONE: f64 = 0.15;

/// It has to be so many standard errors from 1, too.
pub const STANDARD_ERRORS: f64 = 4.0;

/// How much larger the mean square of tokens that were generated behind another version has to be
/// than that of the others, at staleness 0.
pub const CONTINUED: f64 = 4.0;

/// Tokens at staleness 0 that are enough to speak of them.
pub const ENOUGH_TOKENS: f64 = 100.0;

/// Samples at staleness 0 that are enough, too: a defect can be one of some samples alone.
pub const ENOUGH_SAMPLES: f64 = 16.0;

/// Share of the votes that ended from which on their failures are a trouble.
pub const FAILED_VOTES: f64 = 0.1;

/// With fewer votes nothing is said of them.
pub const FEW_VOTES: f64 = 10.0;

/// Share of the requests offered from which on refusals by a full queue are a trouble.
pub const QUEUE_FULL: f64 = 0.05;

/// The log-prob difference climbs where its mean over the newer half of the steps is so many times
/// that over the older half,
pub const CLIMB: f64 = 1.5;

/// and above this, in nats: what two engines in bf16 differ by.
pub const CLIMB_ABOVE: f64 = 0.02;

/// With fewer train steps there is no trend.
pub const STEPS_OF_A_TREND: usize = 4;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Named {
    /// A weight sync does not arrive, and requests are refused for ever.
    SyncNeverEnds,
    /// Votes are not answered within their time limit.
    JudgeTimesOut,
    /// Votes fail at once, and nothing trains: a judge without its key.
    JudgeSilent,
    /// Requests are refused because a queue has no room.
    QueueFull,
    /// `train_rollout_logprob_abs_diff` climbs.
    DifferenceClimbs,
    /// Ratios: time between generation and training.
    Age,
    /// Ratios: segments of several versions in one sample.
    Mixing,
    /// Ratios: two engines compute one policy differently.
    Numerics,
    /// Ratios: log-probabilities that do not belong to their tokens.
    Labels,
}

impl Named {
    /// Its name in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::SyncNeverEnds => "503_never_ends",
            Self::JudgeTimesOut => "judge_times_out",
            Self::JudgeSilent => "silence_after_start",
            Self::QueueFull => "queue_full",
            Self::DifferenceClimbs => "logprob_diff_climbs",
            Self::Age => "age",
            Self::Mixing => "mixing",
            Self::Numerics => "numerics",
            Self::Labels => "labels",
        }
    }

    /// The same as a sentence.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::SyncNeverEnds => "503 never ends: weights do not arrive within their time limits",
            Self::JudgeTimesOut => "judge requests time out",
            Self::JudgeSilent => "silence after start: the judge refuses every vote",
            Self::QueueFull => "requests are refused because a queue is full",
            Self::DifferenceClimbs => "train_rollout_logprob_abs_diff climbs: drift accumulates",
            Self::Age => "ratios: age, the time between generation and training",
            Self::Mixing => "ratios: mixing, samples that several versions have generated",
            Self::Numerics => "ratios: numerics, the two engines compute one policy differently",
            Self::Labels => "ratios: labels, log-probabilities that are not those of their tokens",
        }
    }

    /// It is one of the four causes of ratios that are far from 1.
    #[must_use]
    pub const fn is_of_ratios(self) -> bool {
        matches!(self, Self::Age | Self::Mixing | Self::Numerics | Self::Labels)
    }
}

/// A setting to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its key, or what else it is.
    pub key: &'static str,
    /// What it is now; empty: unknown.
    pub now: String,
    /// What to try.
    pub instead: String,
}

/// A cause, with what speaks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub named: Named,
    /// Sentences with the numbers.
    pub evidence: Vec<String>,
    /// What to change, the first of them first.
    pub settings: Vec<Setting>,
}

/// What is wrong with a run, if anything is.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// The three signs of a healthy run.
    pub signs: [Sign; 3],
    /// What was found: troubles, then causes of ratios, each in its fixed order.
    pub findings: Vec<Finding>,
    /// What the ratios are spread by; `None`: the run has none.
    pub spread: Option<Spread>,
}

impl Diagnosis {
    /// Nothing is wrong.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.findings.is_empty()
    }

    /// Whether this was found.
    #[must_use]
    pub fn names(&self, named: Named) -> bool {
        self.findings.iter().any(|finding| finding.named == named)
    }
}

/// Says what is wrong, and why.
#[must_use]
pub fn diagnose(evidence: &Evidence) -> Diagnosis {
    let spread = Spread::of(evidence);
    let mut findings = troubles::find(evidence);
    findings
        .extend(spread.as_ref().map(|spread| causes::find(evidence, spread)).unwrap_or_default());
    Diagnosis { signs: signs::of(evidence), findings, spread }
}

impl Setting {
    fn new(key: &'static str, now: impl Into<String>, instead: impl Into<String>) -> Self {
        Self { key, now: now.into(), instead: instead.into() }
    }

    /// One whose present value is in the configuration, if that is known.
    fn of(
        config: Option<&Config>,
        key: &'static str,
        now: impl Fn(&Config) -> String,
        instead: impl Into<String>,
    ) -> Self {
        Self::new(key, config.map(now).unwrap_or_default(), instead)
    }
}

/// The word of a choice, as the file has it.
fn word(choice: impl Choice) -> String {
    format!("\"{}\"", choice.word())
}

/// Seconds, for people.
fn seconds(value: f64) -> String {
    format!("{} s", short(Some(value)))
}

/// A share, for people.
fn percent(value: f64) -> String {
    crate::report::number::percent(Some(value))
}
