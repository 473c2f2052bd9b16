//! One row of a tournament: what was played, and what it gave.

use headway_shared::config::{Diagnostics, Severity, SyncMode};

use super::entrant::Knob;
use crate::kernel::math::student_t_quantile;
use crate::report::tables::Replicated;
use crate::stats::{Estimate, mean, variance};
use crate::sweep::Trouble;

const HOUR: f64 = 3600.0;
/// Both ends of a 90% interval leave a twentieth out.
const UPPER: f64 = 0.95;

/// The share of a sample's expected tokens that trained samples have.
pub(crate) const LENGTH: &str = "trained_length_ratio";
/// Trained lengths that are off by more are biased.
pub(crate) const BIASED: f64 = 0.05;
/// Throughput, in both currencies.
pub(crate) const RATES: [&str; 2] = ["trained_samples_per_hour", "ess_samples_per_hour"];
/// The age that fronts compare.
pub(crate) const AGE: &str = "staleness_head_p99";

/// The metrics of a row, in the order of their columns.
pub(super) const SHOWN: [&str; 18] = [
    RATES[0],
    RATES[1],
    "staleness_head_mean",
    AGE,
    "staleness_head_max",
    "staleness_above_bound_share",
    "wasted_token_share",
    LENGTH,
    "length_ratio",
    "length_distance",
    "refused_share",
    "held_share",
    "discarded_share",
    "mixed_version_share",
    "closed_share",
    "serving_idle_share",
    "judge_idle_share",
    "trainer_idle_share",
];

/// What became of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It ran; what is suspicious about it, if anything is.
    Ran(String),
    /// The settings do not go together: why.
    Invalid(String),
    /// A run of it stalled or failed: how.
    Failed(String),
}

impl State {
    pub(super) fn of(trouble: &[Trouble], point: usize) -> Self {
        let mut here = trouble.iter().filter(|trouble| trouble.point == point);
        if let Some(fatal) = here.clone().find(|trouble| trouble.fatal) {
            return Self::Failed(fatal.what.clone());
        }
        Self::Ran(here.next().map_or_else(String::new, |trouble| trouble.what.clone()))
    }

    /// `ok`, `invalid` or `failed`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Ran(_) => "ok",
            Self::Invalid(_) => "invalid",
            Self::Failed(_) => "failed",
        }
    }

    /// The reason, or what is suspicious.
    #[must_use]
    pub fn note(&self) -> &str {
        let (Self::Ran(note) | Self::Invalid(note) | Self::Failed(note)) = self;
        note
    }
}

/// What is wrong, in one line.
pub(super) fn first_error(diagnostics: &Diagnostics) -> String {
    let error = diagnostics.items.iter().find(|item| item.severity == Severity::Error);
    error.map_or_else(String::new, |error| error.message.clone())
}

/// What was played, and what it gave.
#[derive(Clone, Debug)]
pub struct Row {
    /// The place of its workload.
    pub workload: usize,
    /// The name of its entrant.
    pub gate: &'static str,
    /// The value of its knob.
    pub knob: Knob,
    /// How weights reached the replicas.
    pub mode: SyncMode,
    /// What became of it.
    pub state: State,
    /// Of each of [`SHOWN`], a value per replication.
    values: Vec<Vec<(u32, f64)>>,
    /// Whether it lies on the front of throughput, and on that of effective throughput.
    pub on_front: [bool; 2],
}

impl Row {
    pub(super) fn new(
        workload: usize,
        gate: &'static str,
        knob: Knob,
        mode: SyncMode,
        state: State,
        runs: &[(u32, Replicated)],
        expected_length: f64,
    ) -> Self {
        let of = |name: &&str| {
            let value = |(number, run): &(u32, Replicated)| {
                Some((*number, value(run, name, expected_length)?))
            };
            runs.iter().filter_map(value).collect()
        };
        let values = SHOWN.iter().map(of).collect();
        Self { workload, gate, knob, mode, state, values, on_front: [false; 2] }
    }

    /// It ran, and trained something.
    #[must_use]
    pub fn is_fit(&self) -> bool {
        matches!(self.state, State::Ran(_)) && self.mean(RATES[0]) > 0.0
    }

    /// A value per replication of a metric of [`SHOWN`].
    pub(super) fn values(&self, name: &str) -> &[(u32, f64)] {
        let place = SHOWN.iter().position(|shown| *shown == name);
        place.map_or(&[], |place| self.values[place].as_slice())
    }

    /// The mean of a metric of the table, with its 90% interval.
    #[must_use]
    pub fn estimate(&self, name: &str) -> Option<Estimate> {
        let values: Vec<f64> = self.values(name).iter().map(|(_, value)| *value).collect();
        ninety(&values)
    }

    pub(super) fn mean(&self, name: &str) -> f64 {
        self.estimate(name).map_or(0.0, |estimate| estimate.mean)
    }
}

fn value(run: &Replicated, name: &str, expected_length: f64) -> Option<f64> {
    if name != LENGTH {
        return run.summary.get(name);
    }
    let samples = run.summary.get(RATES[0]).filter(|samples| *samples > 0.0)?;
    let tokens = run.summary.get("trained_tokens_per_second")? * HOUR;
    (expected_length > 0.0).then(|| tokens / samples / expected_length)
}

/// The mean of independent replications with its 90% interval; `None` of nothing.
pub(super) fn ninety(values: &[f64]) -> Option<Estimate> {
    let count = u32::try_from(values.len()).ok()?;
    let half_width = variance(values).map(|variance| {
        student_t_quantile(UPPER, count - 1) * (variance / f64::from(count)).sqrt()
    });
    Some(Estimate { mean: mean(values)?, half_width, count })
}
