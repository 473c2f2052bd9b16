//! What a trainer reports of a step, as an adaptive bound follows it.

use headway_shared::id::StepId;
use headway_shared::input::Measured;
use headway_shared::ratio::millionths;

use super::narrator::LOGPROB_DIFF;
use crate::trainer::StepMetric;

/// The metric of an external trainer, and of ours, behind `signal = "clipped_fraction"`.
const CLIPPED: &str = "clipped_fraction";
/// The same behind `signal = "ess"`.
const ESS: &str = "learner_rollout_ess_token";

/// The numbers about the whole step, in millionths: what is none stops here.
pub(super) fn measured(step: StepId, metrics: &[StepMetric]) -> Measured {
    let of = |name: &str| {
        let whole = |metric: &&StepMetric| metric.staleness.is_none() && metric.name == name;
        metrics.iter().find(whole).and_then(|metric| millionths(metric.value))
    };
    Measured {
        step,
        logprob_abs_diff: of(LOGPROB_DIFF),
        clipped_fraction: of(CLIPPED),
        ess: of(ESS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(name: &'static str, staleness: Option<u32>, value: f64) -> StepMetric {
        StepMetric { name: name.into(), staleness, value }
    }

    #[test]
    fn what_is_no_number_is_not_measured_and_parts_are_not_the_whole() {
        let metrics = [
            metric(LOGPROB_DIFF, None, 0.012_345_6),
            metric(ESS, Some(2), 0.5),
            metric(CLIPPED, None, f64::NAN),
        ];
        let measured = measured(StepId(3), &metrics);
        assert_eq!(measured.logprob_abs_diff, Some(12_346));
        assert_eq!((measured.clipped_fraction, measured.ess), (None, None));
    }
}
