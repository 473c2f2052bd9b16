//! What is maximised, and what must be kept meanwhile.

use headway_shared::config::{Diagnostic, Diagnostics, Findings, Origin, Sources, Syntax};
use headway_shared::metrics::{Kind, METRICS, Metric};

use crate::drift;
use crate::plan::constraint::{Constraint, find};
use crate::scenario::Scenario;

/// What is maximised, and what must be kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Aim {
    /// The metric that is to be as large as can be.
    pub metric: &'static Metric,
    /// What must be kept.
    pub constraints: Vec<Constraint>,
}

impl Aim {
    /// Reads what is given with `--maximize` and `--subject-to`.
    ///
    /// # Errors
    /// A name is no metric, a constraint is malformed, a metric of ratios is asked of a scenario
    /// that predicts none, or the aim is a rate that grows for ever with what the gate lets become
    /// stale, and nothing bounds staleness or a ratio.
    pub fn parse(
        scenario: &Scenario,
        maximize: &str,
        subject_to: &[String],
    ) -> Result<Self, Diagnostics> {
        let (mut sources, findings) = (Sources::default(), Findings::default());
        let mut place = |name: &str, text: &str| {
            let source = sources.add(Syntax::Set, name, text);
            Origin { source, start: 0, end: text.len() }
        };
        let wrong = |origin: Origin, message: String, help: String| {
            findings.push(Diagnostic::error(origin, message).help(help));
        };
        let origin = place("--maximize", maximize);
        let metric = find(maximize.trim());
        match metric {
            Err(near) => {
                let help = near.map_or_else(
                    || "write a metric of docs/metrics.md, such as trained_samples_per_hour".into(),
                    |near| format!("did you mean `{near}`?"),
                );
                wrong(origin, format!("`{maximize}` is no metric"), help);
            }
            Ok(metric) if is_unknown_to(scenario, metric.name) => {
                wrong(origin, unpredicted(metric.name), PREDICT.into());
            }
            Ok(_) => {}
        }
        let mut constraints = Vec::new();
        for text in subject_to {
            let origin = place("--subject-to", text);
            match Constraint::parse(text) {
                Err(error) => wrong(origin, error.to_string(), error.help()),
                Ok(constraint) if is_unknown_to(scenario, constraint.metric) => {
                    wrong(origin, unpredicted(constraint.metric), PREDICT.into());
                }
                Ok(constraint) => constraints.push(constraint),
            }
        }
        if let Ok(metric) = metric
            && grows_for_ever(metric)
            && !findings.has_errors()
            && !constraints.iter().any(bounds_staleness)
        {
            let name = metric.name;
            let message = format!(
                "`{name}` grows for ever with the staleness that the gate allows, while what is \
                 learned from a sample falls: nothing here bounds staleness or a ratio"
            );
            let most = scenario.config.bound_versions().max(1);
            let help = format!("add --subject-to 'staleness_head_p99<={most}'");
            wrong(origin, message, help);
        }
        findings.finish(sources)?;
        // An error above has ended this.
        let metric = metric.unwrap_or(&METRICS[0]);
        Ok(Self { metric, constraints })
    }

    /// The metrics that are about this aim, each once: what is maximised comes first.
    #[must_use]
    pub fn metrics(&self) -> Vec<&'static str> {
        let all = [self.metric.name, STALENESS];
        let mut names: Vec<&'static str> = Vec::new();
        for name in all.into_iter().chain(self.constraints.iter().map(|kept| kept.metric)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// What decides between candidates that are as good as each other: the smaller one wins.
pub(super) const STALENESS: &str = "staleness_head_mean";

/// A rate that fell with staleness would be one of ratios; those of [`METRICS`] do not see it.
fn grows_for_ever(metric: &Metric) -> bool {
    metric.kind == Kind::Rate && !is_of_ratios(metric.name)
}

/// Metrics of ratios that grow with staleness, so that an upper limit bounds it.
const GROWING: [&str; 12] = [
    "learner_rollout_p99",
    "learner_rollout_step_p99",
    "learner_rollout_max",
    "learner_rollout_log_square",
    "learner_rollout_kl_k1",
    "learner_rollout_kl_k3",
    "train_rollout_logprob_abs_diff",
    "train_rollout_logprob_abs_diff_older",
    "train_rollout_logprob_abs_diff_newer",
    "clipped_fraction",
    "masked_or_truncated_share",
    "lost_sequence_share",
];

/// Metrics of ratios that fall with it, so that a lower limit does.
const FALLING: [&str; 2] = ["learner_rollout_ess_token", "learner_rollout_ess_sequence"];

/// Whether a constraint keeps staleness, or what staleness does to ratios, from growing.
fn bounds_staleness(constraint: &Constraint) -> bool {
    let name = constraint.metric;
    let is = |start: &str| name.starts_with(start);
    let staleness = is("staleness_head_") || is("staleness_tail_") || is("staleness_token_");
    if constraint.is_upper() {
        staleness || GROWING.contains(&name)
    } else {
        FALLING.contains(&name)
    }
}

fn is_of_ratios(name: &str) -> bool {
    drift::METRICS.iter().any(|metric| metric.name == name)
}

fn is_unknown_to(scenario: &Scenario, name: &str) -> bool {
    scenario.drift.is_none() && is_of_ratios(name)
}

/// What to do about [`unpredicted`].
const PREDICT: &str = "add [world.drift], as `headway calibrate` writes it, or name a metric of \
                       docs/metrics.md";

fn unpredicted(name: &str) -> String {
    format!("`{name}` is a metric of ratios, and the scenario has no [world.drift] to predict them")
}
