//! What a run shows.

use std::collections::BTreeMap;

use headway_shared::action::RunError;
use headway_shared::config::Config;
use headway_shared::metrics::Observer;
use headway_shared::source::{RunSource, SourceError};
use headway_shared::time::Span;

use super::ratios::{Course, Ratios};
use super::waits::Waits;

/// Everything that a diagnosis reads.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// What the run is called.
    pub name: String,
    /// The configuration at its end, where it is known.
    pub config: Option<Config>,
    /// Metrics by name, as `docs/metrics.md` has them.
    pub metrics: BTreeMap<String, f64>,
    /// How old its samples were; `None`: only quantiles are known, as metrics.
    pub waits: Option<Waits>,
    /// Its ratios, where it has some.
    pub ratios: Option<Ratios>,
    /// Its log-prob difference over the steps.
    pub course: Option<Course>,
    /// Why it could not go on.
    pub error: Option<RunError>,
}

impl Evidence {
    /// Reads a recorded run, live or simulated. Nothing is left out as a warm-up.
    ///
    /// # Errors
    /// The record cannot be read to its end.
    pub fn of_run(source: &dyn RunSource) -> Result<Self, SourceError> {
        let mut core = source.core()?;
        let mut observer = Observer::new(core.config(), Span::ZERO);
        observer.reset(core.now(), &core);
        let (mut waits, mut actions) = (Waits::default(), Vec::new());
        source.inputs(&mut |at, input| {
            core.handle(at, input);
            actions.clear();
            actions.extend(std::iter::from_fn(|| core.poll_action()));
            observer.observe(at, input, &actions, &core);
            waits.see(core.resolved());
        })?;
        let summary = observer.summary(core.now(), &core);
        let value = |(metric, value): (&headway_shared::metrics::Metric, Option<f64>)| {
            Some((metric.name.to_owned(), value?))
        };
        let (ratios, course) = Ratios::of(&source.reported()?);
        Ok(Self {
            name: source.name(),
            config: Some(core.config().clone()),
            metrics: summary.values().filter_map(value).collect(),
            waits: Some(waits),
            ratios,
            course,
            error: core.error(),
        })
    }

    /// A metric; `None` where it is undefined or unknown.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.metrics.get(name).copied()
    }

    /// The same, 0 where it is undefined.
    pub(super) fn count(&self, name: &str) -> f64 {
        self.get(name).unwrap_or(0.0)
    }

    /// How many of something there were, from its rate.
    pub(super) fn events(&self, per_hour: &str) -> f64 {
        self.count(per_hour) * self.count("duration_seconds") / 3600.0
    }

    /// Generated tokens of a trained sample, on average; at least 1.
    pub(super) fn tokens_per_sample(&self) -> f64 {
        let samples = self.count("trained_samples_per_hour") / 3600.0;
        if samples > 0.0 {
            (self.count("trained_tokens_per_second") / samples).max(1.0)
        } else {
            1.0
        }
    }

    /// The engine in this process serves and trains.
    pub(super) fn is_in_process(&self) -> bool {
        let tch = |config: &Config| {
            config.policy_serving.engine == "tch" && config.policy_training.engine == "tch"
        };
        self.config.as_ref().is_some_and(tch)
    }
}
