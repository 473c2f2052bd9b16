use std::borrow::Cow;
use std::collections::BTreeMap;

use headway_shared::ratio::{Ends, Spread, Token, abs_diff, by_staleness, spread};

use crate::trainer::StepMetric;

/// Names of a spread's numbers, in the order of [`numbers`].
macro_rules! names {
    ($ends:literal) => {
        [
            concat!($ends, "_tokens"),
            concat!($ends, "_p50"),
            concat!($ends, "_p99"),
            concat!($ends, "_max"),
            concat!($ends, "_log_mean"),
            concat!($ends, "_log_square"),
            concat!($ends, "_log_abs"),
            concat!($ends, "_kl_k1"),
            concat!($ends, "_kl_k3"),
            concat!($ends, "_ess_token"),
            concat!($ends, "_ess_sequence"),
        ]
    };
}

type Names = [&'static str; 11];

const PROBE: Names = names!("probe");
const CONTINUED: Names = names!("probe_continued");

const fn names(ends: Ends) -> Names {
    match ends {
        Ends::LearnerRollout => names!("learner_rollout"),
        Ends::LearnerDeploy => names!("learner_deploy"),
        Ends::DeployRollout => names!("deploy_rollout"),
        Ends::LearnerProximal => names!("learner_proximal"),
    }
}

fn numbers(spread: &Spread) -> [f64; 11] {
    [
        spread.tokens as f64,
        spread.p50,
        spread.p99,
        spread.max,
        spread.log_mean,
        spread.log_square,
        spread.log_abs,
        spread.kl_k1,
        spread.kl_k3,
        spread.ess_token,
        spread.ess_sequence,
    ]
}

fn put(metrics: &mut Vec<StepMetric>, names: Names, staleness: Option<u32>, spread: &Spread) {
    let pairs = names.into_iter().zip(numbers(spread));
    metrics.extend(pairs.map(|(name, value)| StepMetric {
        name: Cow::Borrowed(name),
        staleness,
        value,
    }));
}

/// A number about the whole step.
pub(super) const fn whole(name: &'static str, value: f64) -> StepMetric {
    StepMetric { name: Cow::Borrowed(name), staleness: None, value }
}

/// What the ratios of a step were: of the whole, then by the tokens' staleness. Without a deployed
/// copy to score by, what needs it is left out.
pub(super) fn ratios(sequences: &[Vec<Token>], deployed: bool) -> Vec<StepMetric> {
    let mut metrics = vec![whole("train_rollout_logprob_abs_diff", abs_diff(sequences))];
    for ends in Ends::ALL {
        if !deployed && matches!(ends, Ends::LearnerDeploy | Ends::DeployRollout) {
            continue;
        }
        if let Some(all) = spread(ends, sequences) {
            put(&mut metrics, names(ends), None, &all);
        }
        for (staleness, part) in by_staleness(ends, sequences) {
            put(&mut metrics, names(ends), Some(staleness), &part);
        }
    }
    metrics
}

/// The lag probe: the ratios of newer by older policy, by how many versions lie between them; of all
/// tokens, and of those that were generated behind tokens of another version.
pub(super) fn probe(all: &[Vec<Token>], continued: &[Vec<Token>]) -> Vec<StepMetric> {
    let mut metrics = Vec::new();
    for (names, sequences) in [(PROBE, all), (CONTINUED, continued)] {
        let parts: BTreeMap<u32, Spread> = by_staleness(Ends::LearnerRollout, sequences);
        for (distance, part) in parts {
            put(&mut metrics, names, Some(distance), &part);
        }
    }
    metrics
}
