//! `validation.json`.

use super::figures::FIGURES;
use super::interval::COVERAGE;
use super::results::{Compared, Row, Score, Sum, Validation};
use crate::report::about::About;
use crate::report::described::{Named, Rounded, Setting, described};
use crate::report::json::scalar;

described! {
    /// Predictions beside what was measured. It holds no time of day, host or path.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ValidationDocument {
        /// `validate`
        pub kind: String,
        /// The version of Headway that made it.
        pub version: String,
        /// The scenario's name.
        pub scenario: String,
        /// The digest of the scenario.
        pub scenario_digest: String,
        /// What its numbers were fitted to; null: to nothing.
        pub fitted_to: Option<String>,
        /// How many of its numbers were drawn from their intervals.
        pub uncertain_parameters: usize,
        /// The seed of all random streams.
        pub seed: u64,
        /// Simulations of each run.
        pub replications: u32,
        /// Train steps that the warm-up takes.
        pub warmup_steps: u32,
        /// The share of runs that a predicted interval should hold.
        pub interval: Rounded,
        /// The run that predictions were compared with; null: none.
        pub baseline: Option<String>,
        /// Every tolerance is kept, and every simulation is a result.
        pub good: bool,
        /// The runs.
        pub runs: Vec<RunDocument>,
        /// What each metric comes to over all runs.
        pub metrics: Vec<SumDocument>,
        /// How good the intervals of ratios are.
        pub interval_scores: Vec<ScoreDocument>,
        /// Where it comes from; none: an older build made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub about: Option<About>,
    }
}

described! {
    /// A run that was compared.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RunDocument {
        /// What tables call it.
        pub run: String,
        /// The keys in which runs differ from the scenario, with its values; null: it has none.
        pub settings: Named<Setting>,
        /// Train steps that it made.
        pub steps: u32,
        /// Seconds until the last of them had ended.
        pub seconds: Rounded,
        /// What is to be known of the comparison.
        pub warnings: Vec<String>,
        /// What went wrong in its simulations; null: nothing.
        pub failed: Option<FailedDocument>,
        /// Each metric by its name.
        pub metrics: Named<MetricDocument>,
    }
}

described! {
    /// What went wrong.
    #[derive(Clone, Debug, PartialEq)]
    pub struct FailedDocument {
        /// In the first simulation that is no result.
        pub what: String,
        /// In how many of them.
        pub replications: usize,
    }
}

described! {
    /// A metric of a run.
    #[derive(Clone, Debug, PartialEq)]
    pub struct MetricDocument {
        /// Its unit; empty: it has none.
        pub unit: String,
        /// What was measured; null: there was nothing to measure.
        pub measured: Rounded,
        /// What is predicted; null: the scenario says nothing of it.
        pub predicted: Rounded,
        /// The lower end of the interval for one run.
        pub low: Rounded,
        /// Its upper end.
        pub high: Rounded,
        /// Whether what was measured lies in it; null: nothing can be said.
        pub inside: Option<bool>,
        /// How far they may be apart: a share (`10%`), a distance, or `interval`; null: any distance.
        pub tolerance: Option<String>,
        /// Whether the tolerance is kept; null: it is not judged.
        pub within: Option<bool>,
        /// Predicted minus measured.
        pub error: Rounded,
        /// The same as a share of what was measured.
        pub relative_error: Rounded,
    }
}

described! {
    /// What a metric comes to over all runs.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SumDocument {
        /// Its name.
        pub metric: String,
        /// Runs that have it, measured and predicted.
        pub runs: usize,
        /// Of these, how many lie in their interval.
        pub inside: usize,
        /// In how many a tolerance is judged.
        pub judged: usize,
        /// In how many of these it is kept.
        pub within: usize,
        /// The run with the largest error; null: none.
        pub worst_run: Option<String>,
        /// That error.
        pub worst_error: Rounded,
    }
}

described! {
    /// How good the intervals of a ratio are: mean interval scores over the runs, less is better.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ScoreDocument {
        /// The ratio.
        pub metric: String,
        /// Runs that it is of.
        pub runs: usize,
        /// Of the prediction.
        pub predicted: Rounded,
        /// Of the same as in the run that the scenario was fitted to; null: that run is not known.
        pub as_in_the_fitted_run: Rounded,
    }
}

impl Validation {
    /// Everything, as one document.
    #[must_use]
    pub fn document(&self) -> ValidationDocument {
        let runs = self.runs.iter().enumerate().map(|(place, run)| self.run(place, run));
        ValidationDocument {
            kind: "validate".into(),
            version: self.version.clone(),
            scenario: self.scenario.clone(),
            scenario_digest: self.scenario_digest.clone(),
            fitted_to: text(&self.fitted_to),
            uncertain_parameters: self.uncertain,
            seed: self.seed,
            replications: self.replications,
            warmup_steps: self.warmup_steps,
            interval: Rounded(Some(COVERAGE)),
            baseline: self.baseline.clone(),
            good: self.is_good(),
            runs: runs.collect(),
            metrics: self.sums.iter().map(|sum| self.sum(sum)).collect(),
            interval_scores: self.scores.iter().map(score).collect(),
            about: self.about.clone(),
        }
    }

    fn run(&self, place: usize, run: &Compared) -> RunDocument {
        let Compared { name, settings, steps, seconds, notes, failed } = run;
        let settings = self.keys.iter().cloned().zip(settings.iter().map(|value| setting(value)));
        let rows = self.rows.iter().filter(|row| row.run == place);
        let metrics = rows.map(|row| (row.figure().name.to_owned(), metric(row)));
        let failed =
            failed.clone().map(|(what, replications)| FailedDocument { what, replications });
        RunDocument {
            run: name.clone(),
            settings: Named(settings.collect()),
            steps: *steps,
            seconds: Rounded(Some(*seconds)),
            warnings: notes.clone(),
            failed,
            metrics: Named(metrics.collect()),
        }
    }

    fn sum(&self, sum: &Sum) -> SumDocument {
        let worst = sum.worst.as_ref();
        SumDocument {
            metric: FIGURES[sum.figure].name.into(),
            runs: sum.runs,
            inside: sum.inside,
            judged: sum.within.1,
            within: sum.within.0,
            worst_run: worst.map(|row| self.runs[row.run].name.clone()),
            worst_error: Rounded(worst.and_then(Row::error)),
        }
    }
}

fn metric(row: &Row) -> MetricDocument {
    let (value, [low, high]) = row.predicted();
    MetricDocument {
        unit: row.metric().map_or("", |metric| metric.unit).into(),
        measured: Rounded(row.measured),
        predicted: Rounded(value),
        low: Rounded(low),
        high: Rounded(high),
        inside: row.is_inside(),
        tolerance: text(&row.tolerance.to_string()),
        within: row.is_within(),
        error: Rounded(row.error()),
        relative_error: Rounded(row.relative_error()),
    }
}

fn score(score: &Score) -> ScoreDocument {
    ScoreDocument {
        metric: FIGURES[score.figure].name.into(),
        runs: score.runs,
        predicted: Rounded(Some(score.predicted)),
        as_in_the_fitted_run: Rounded(score.baseline),
    }
}

/// A setting: a number where it is one; null where the run has none.
fn setting(value: &str) -> Setting {
    Setting(if value.is_empty() { serde_json::Value::Null } else { scalar(value) })
}

/// Text; none where it is empty.
fn text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
