//! What a validation gives: a row for each run and metric, and what they come to.

use headway_shared::metrics::Metric;

use super::figures::{FIGURES, Figure, Group};
use super::interval::{Prediction, central, one_more, predict, score};
use super::measure::Measured;
use super::settings::Settings;
use super::tolerance::Tolerance;
use super::{LAWS, Run, Simulated, Task, world};
use crate::report::about::About;
use crate::stats::mean;

/// Ratios and log-ratios (in nats) that differ by less are the same: so far do logits in f32 differ
/// by their rounding alone, which is another on each machine.
pub const RATIO_RESOLUTION: f64 = 1e-6;

/// One metric of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Which run.
    pub run: usize,
    /// Which of [`FIGURES`].
    pub figure: usize,
    /// What was measured; `None`: there was nothing to measure.
    pub measured: Option<f64>,
    /// What is predicted; `None`: the scenario says nothing of it.
    pub prediction: Option<Prediction>,
    /// How far they may be apart.
    pub tolerance: Tolerance,
    /// Whether what was measured lies in the predicted interval.
    pub(super) inside: Option<bool>,
    /// Whether the tolerance is kept; `None`: it is not judged.
    pub(super) within: Option<bool>,
}

impl Row {
    /// Judges a prediction by its interval and by its tolerance.
    #[must_use]
    pub fn new(
        run: usize,
        figure: usize,
        measured: Option<f64>,
        prediction: Option<Prediction>,
        tolerance: Tolerance,
    ) -> Self {
        let of_ratios = FIGURES[figure].group == Group::Ratios;
        let resolution = if of_ratios { RATIO_RESOLUTION } else { 0.0 };
        let both = prediction.zip(measured);
        let inside = both.and_then(|(said, measured)| said.holds_within(measured, resolution));
        let within =
            both.and_then(|(said, measured)| tolerance.is_kept(measured, said.value, inside));
        Self { run, figure, measured, prediction, tolerance, inside, within }
    }

    /// The predicted value, and the ends of its interval.
    pub(super) fn predicted(&self) -> (Option<f64>, [Option<f64>; 2]) {
        let interval = self.prediction.and_then(|prediction| prediction.interval);
        let ends = [interval.map(|ends| ends.0), interval.map(|ends| ends.1)];
        (self.prediction.map(|prediction| prediction.value), ends)
    }

    /// What is compared.
    #[must_use]
    pub fn figure(&self) -> &'static Figure {
        &FIGURES[self.figure]
    }

    /// Its metric.
    #[must_use]
    pub fn metric(&self) -> Option<&'static Metric> {
        self.figure().metric()
    }

    /// Predicted minus measured.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        Some(self.prediction?.value - self.measured?)
    }

    /// The error as a share of what was measured.
    #[must_use]
    pub fn relative_error(&self) -> Option<f64> {
        let measured = self.measured.filter(|measured| *measured != 0.0)?;
        Some(self.error()? / measured.abs())
    }

    /// Whether what was measured lies in the predicted interval.
    #[must_use]
    pub const fn is_inside(&self) -> Option<bool> {
        self.inside
    }

    /// Whether the tolerance is kept; `None`: it is not judged.
    #[must_use]
    pub const fn is_within(&self) -> Option<bool> {
        self.within
    }

    /// Whether it is beyond its tolerance.
    #[must_use]
    pub fn is_miss(&self) -> bool {
        self.is_within() == Some(false)
    }
}

/// What one metric comes to over all runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sum {
    /// Which of [`FIGURES`].
    pub figure: usize,
    /// Runs that have it, measured and predicted.
    pub runs: usize,
    /// Of these, how many lie in their interval.
    pub inside: usize,
    /// Runs that a tolerance is kept in, of how many it is judged in.
    pub within: (usize, usize),
    /// The row with the largest error.
    pub worst: Option<Row>,
}

/// How good the intervals of a ratio are: mean interval scores over the runs, less is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Which of [`FIGURES`].
    pub figure: usize,
    /// Runs that it is of.
    pub runs: usize,
    /// Of the prediction.
    pub predicted: f64,
    /// Of "as in the fitted run", by the better of two intervals; `None`: that run is not known.
    pub baseline: Option<f64>,
}

/// A run that was compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// What tables call it.
    pub name: String,
    /// Its values of [`Validation::keys`].
    pub settings: Vec<String>,
    /// Train steps that it made.
    pub steps: u32,
    /// Seconds until the last of them had ended.
    pub seconds: f64,
    /// What is to be known of the comparison: warnings.
    pub notes: Vec<String>,
    /// What went wrong in its replications: the first that did, and how many.
    pub failed: Option<(String, usize)>,
}

/// Predicted beside measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// The version of Headway that made it.
    pub version: String,
    /// The scenario's name.
    pub scenario: String,
    /// The digest of the scenario.
    pub scenario_digest: String,
    /// What its numbers were fitted to; empty: to nothing.
    pub fitted_to: String,
    /// How many of its numbers were drawn from their intervals.
    pub uncertain: usize,
    /// The seed.
    pub seed: u64,
    /// Replications of each run.
    pub replications: u32,
    /// Train steps that the warm-up takes.
    pub warmup_steps: u32,
    /// The run that predictions were compared with as a baseline.
    pub baseline: Option<String>,
    /// The keys in which runs differ from the scenario.
    pub keys: Vec<String>,
    /// The runs.
    pub runs: Vec<Compared>,
    /// By run, then in the order of [`FIGURES`].
    pub rows: Vec<Row>,
    /// What each metric comes to.
    pub sums: Vec<Sum>,
    /// How good the intervals of ratios are.
    pub scores: Vec<Score>,
    /// Where it comes from; `None`: an older build made it.
    pub about: Option<About>,
}

impl Validation {
    /// Puts what was measured beside what was simulated.
    pub(super) fn of(task: &Task<'_>, done: &[Vec<Simulated>]) -> Self {
        let Task { scenario, runs, .. } = task;
        let Settings { keys, values } = Settings::of(scenario, runs);
        let mut rows = Vec::new();
        let mut compared = Vec::new();
        for (place, ((run, simulated), settings)) in runs.iter().zip(done).zip(values).enumerate() {
            let own = rows_of(task, place, run, simulated);
            let mut notes = run.measured.notes.clone();
            notes.extend(world::differences(&own));
            rows.extend(own);
            compared.push(Compared {
                name: run.measured.name.clone(),
                settings,
                steps: run.measured.steps,
                seconds: run.measured.time.as_secs_f64(),
                notes,
                failed: failed(simulated),
            });
        }
        let fitted = scenario.calibration.as_ref();
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            scenario: scenario.name.clone(),
            scenario_digest: scenario.digest().to_string(),
            fitted_to: fitted.map_or_else(String::new, |fitted| fitted.from.clone()),
            uncertain: fitted.map_or(0, |fitted| fitted.parameters.len()),
            seed: scenario.seed,
            replications: task.replications,
            warmup_steps: task.warmup.steps,
            baseline: task.baseline.map(|run| run.name.clone()),
            keys,
            runs: compared,
            sums: (0..FIGURES.len()).filter_map(|figure| sum(figure, &rows)).collect(),
            scores: (0..FIGURES.len())
                .filter(|figure| FIGURES[*figure].group == Group::Ratios)
                .filter_map(|figure| score_of(figure, &rows, task.baseline))
                .collect(),
            rows,
            about: Some(About::of(scenario)),
        }
    }

    /// What is beyond its tolerance.
    pub fn misses(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_miss())
    }

    /// Whether every tolerance is kept, and every replication is a result.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.misses().next().is_none() && self.runs.iter().all(|run| run.failed.is_none())
    }
}

fn rows_of(task: &Task<'_>, run: usize, of: &Run, simulated: &[Simulated]) -> Vec<Row> {
    let row = |(place, figure): (usize, &'static Figure)| {
        // A replication that came to nothing predicts nothing.
        let good = simulated.iter().filter(|once| once.trouble.is_none());
        let values: Vec<f64> = good.filter_map(|once| once.values[place]).collect();
        let prediction = figure.metric().and_then(|metric| predict(metric, &values));
        let measured = measured(figure, &of.measured);
        let row = Row::new(run, place, measured, prediction, task.tolerances.at(place));
        // A simulated run reports no ratios: they are not compared.
        let shown =
            row.measured.is_some() || (row.prediction.is_some() && figure.group != Group::Ratios);
        shown.then_some(row)
    };
    FIGURES.iter().enumerate().filter_map(row).collect()
}

fn measured(figure: &Figure, run: &Measured) -> Option<f64> {
    match figure.group {
        Group::Ratios => run
            .ratios
            .iter()
            .find(|ratio| ratio.metric.name == figure.name)
            .map(|ratio| ratio.value),
        Group::World => run.laws[LAWS.iter().position(|metric| metric.name == figure.name)?],
        _ => run.summary.get(figure.name),
    }
}

fn failed(simulated: &[Simulated]) -> Option<(String, usize)> {
    let mut troubles = simulated.iter().filter_map(|once| once.trouble.as_ref());
    let first = troubles.next()?;
    Some((first.clone(), 1 + troubles.count()))
}

pub(super) fn sum(figure: usize, rows: &[Row]) -> Option<Sum> {
    let of: Vec<&Row> =
        rows.iter().filter(|row| row.figure == figure && row.error().is_some()).collect();
    let count = |is: &dyn Fn(&Row) -> bool| of.iter().filter(|row| is(row)).count();
    let size = |row: &Row| row.relative_error().or(row.error()).unwrap_or(0.0).abs();
    let worst = of.iter().copied().reduce(|one, other| {
        let error = |row: &Row| match row.tolerance {
            Tolerance::Relative(_) => size(row),
            _ => row.error().unwrap_or(0.0).abs(),
        };
        if error(other) > error(one) { other } else { one }
    });
    let judged = count(&|row| row.is_within().is_some());
    (!of.is_empty()).then(|| Sum {
        figure,
        runs: of.len(),
        inside: count(&|row| row.is_inside() == Some(true)),
        within: (count(&|row| row.is_within() == Some(true)), judged),
        worst: worst.copied(),
    })
}

/// The mean interval scores of one ratio, predicted and of the baseline.
fn score_of(figure: usize, rows: &[Row], baseline: Option<&Measured>) -> Option<Score> {
    let known = |row: &Row| Some((row.measured?, row.prediction?.interval?));
    let runs: Vec<(f64, (f64, f64))> =
        rows.iter().filter(|row| row.figure == figure).filter_map(known).collect();
    let mean_of = |interval: &dyn Fn((f64, f64)) -> (f64, f64)| {
        let scores: Vec<f64> =
            runs.iter().map(|&(measured, own)| score(interval(own), measured)).collect();
        mean(&scores)
    };
    let named = |run: &&Measured| {
        run.ratios.iter().find(|ratio| ratio.metric.name == FIGURES[figure].name).cloned()
    };
    let fitted = baseline.as_ref().and_then(named);
    let intervals = fitted.into_iter().flat_map(|fitted| {
        [central(&fitted.steps), of_the_mean(&fitted.steps)].into_iter().flatten()
    });
    let baseline = intervals.filter_map(|interval| mean_of(&|_| interval)).reduce(f64::min);
    Some(Score { figure, runs: runs.len(), predicted: mean_of(&|own| own)?, baseline })
}

/// Batches that the steps of a run are cut into: means of neighbouring steps are nearly independent.
const BATCHES: usize = 10;

/// The interval of the mean of another run as long, from the steps of one: by batch means.
fn of_the_mean(steps: &[f64]) -> Option<(f64, f64)> {
    let size = steps.len() / BATCHES;
    if size == 0 {
        return None;
    }
    let means: Vec<f64> = steps.chunks_exact(size).take(BATCHES).filter_map(mean).collect();
    let (low, high) = one_more(&means)?;
    let middle = mean(steps)?;
    // One more batch has the variance s²(1 + 1/b), the mean of as many more s²(1/b + 1/b).
    let count = BATCHES as f64;
    let half = 0.5 * (high - low) * (2.0 / count / (1.0 + 1.0 / count)).sqrt();
    Some((middle - half, middle + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(run: usize, name: &str, measured: f64, low: f64, high: f64) -> Row {
        let figure = FIGURES.iter().position(|figure| figure.name == name).unwrap();
        let prediction = Prediction { value: 0.5 * (low + high), interval: Some((low, high)) };
        Row::new(run, figure, Some(measured), Some(prediction), FIGURES[figure].tolerance)
    }

    #[test]
    fn a_row_is_judged_by_its_tolerance_and_its_interval_apart() {
        let off = row(0, "steps_per_hour", 100.0, 111.0, 113.0);
        assert_eq!((off.is_inside(), off.is_within()), (Some(false), Some(false)));
        let near = row(0, "steps_per_hour", 100.0, 101.0, 103.0);
        assert_eq!((near.is_inside(), near.is_within()), (Some(false), Some(true)));
        assert_eq!(near.error(), Some(2.0));
        let unjudged = row(0, "closed_share", 0.9, 0.1, 0.2);
        assert_eq!((unjudged.is_within(), unjudged.is_miss()), (None, false));
    }

    #[test]
    fn sums_count_runs_and_name_the_worst() {
        let rows = [
            row(0, "staleness_head_mean", 2.0, 1.9, 2.1),
            row(1, "staleness_head_mean", 2.0, 2.4, 2.6),
            row(2, "staleness_head_mean", 2.0, 1.7, 1.9),
        ];
        let found = sum(rows[0].figure, &rows).unwrap();
        assert_eq!((found.runs, found.inside, found.within), (3, 1, (2, 3)));
        assert_eq!(found.worst.unwrap().run, 1);
        assert_eq!(sum(0, &rows), None);
    }

    #[test]
    fn the_interval_of_a_mean_is_narrower_than_that_of_a_step() {
        let steps: Vec<f64> = (0..200).map(|step| 1.0 + f64::from(step % 7) * 0.01).collect();
        let (low, high) = of_the_mean(&steps).unwrap();
        let step = central(&steps).unwrap();
        assert!(low > step.0 && high < step.1, "{low} {high} {step:?}");
        assert_eq!(of_the_mean(&steps[..9]), None);
    }
}
