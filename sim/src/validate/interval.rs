//! Prediction intervals from few replications, and how to score them.

use headway_shared::metrics::{Kind, Metric};

use crate::stats::{half_width_of_one_more, mean};

/// The share of runs that a prediction interval holds.
pub const COVERAGE: f64 = 0.9;

/// What is predicted of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The mean over replications.
    pub value: f64,
    /// The interval for one run, 5% of runs below it and 5% above; `None`: there are too few
    /// replications to say.
    pub interval: Option<(f64, f64)>,
}

impl Prediction {
    /// Whether a measured value lies in the interval, its ends included; a difference in the last
    /// digits of a number is none.
    #[must_use]
    pub fn holds(&self, measured: f64) -> Option<bool> {
        self.holds_within(measured, 0.0)
    }

    /// The same for a metric of which smaller differences than `resolution` mean nothing: the interval
    /// is wider by it on both sides.
    #[must_use]
    pub fn holds_within(&self, measured: f64, resolution: f64) -> Option<bool> {
        let (low, high) = self.interval?;
        let slack = resolution + 1e-9 * low.abs().max(high.abs());
        Some((low - slack..=high + slack).contains(&measured))
    }
}

/// The scale on which a metric's replications are taken to be normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Plain,
    /// Positive numbers whose spread grows with their size.
    Log,
    /// Shares: the arcsine of the root has the same variance near 0 and 1 as between them.
    Arcsine,
}

impl Scale {
    fn of(metric: &Metric, values: &[f64]) -> Self {
        let grows = metric.kind == Kind::Rate || matches!(metric.unit, "s" | "nats" | "nats²");
        let is_ratio = metric.name.starts_with("learner_rollout");
        match metric.kind {
            Kind::Share => Self::Arcsine,
            _ if (grows || is_ratio) && values.iter().all(|value| *value > 0.0) => Self::Log,
            _ => Self::Plain,
        }
    }

    fn forth(self, value: f64) -> f64 {
        match self {
            Self::Plain => value,
            Self::Log => libm::log(value),
            Self::Arcsine => libm::asin(libm::sqrt(value.clamp(0.0, 1.0))),
        }
    }

    /// Back again, within the metric's range: none is negative.
    fn back(self, value: f64) -> f64 {
        match self {
            Self::Plain => value.max(0.0),
            Self::Log => libm::exp(value),
            Self::Arcsine => {
                let root = libm::sin(value.clamp(0.0, std::f64::consts::FRAC_PI_2));
                root * root
            }
        }
    }
}

/// What one more run would give, from independent replications of it: the normal-theory prediction
/// interval `mean ± t sd sqrt(1 + 1/n)` (Hahn and Meeker, *Statistical Intervals*, 1991, section
/// 4.7) on a scale that suits the metric. `None` of nothing.
#[must_use]
pub fn predict(metric: &Metric, values: &[f64]) -> Option<Prediction> {
    let value = mean(values)?;
    let scale = Scale::of(metric, values);
    let scaled: Vec<f64> = values.iter().map(|&value| scale.forth(value)).collect();
    let interval = one_more(&scaled).map(|(low, high)| (scale.back(low), scale.back(high)));
    Some(Prediction { value, interval })
}

/// The interval of one more value; `None` of fewer than two.
#[must_use]
pub fn one_more(values: &[f64]) -> Option<(f64, f64)> {
    let (middle, half) = (mean(values)?, half_width_of_one_more(values, COVERAGE)?);
    Some((middle - half, middle + half))
}

/// The interval between the 5th and the 95th percentile (nearest rank) of values; `None` of none.
#[must_use]
pub fn central(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = |share: f64| libm::ceil(share * sorted.len() as f64).max(1.0) as usize - 1;
    let tail = 0.5 * (1.0 - COVERAGE);
    Some((*sorted.get(rank(tail))?, *sorted.get(rank(1.0 - tail))?))
}

/// The interval score of a 90% interval: its width, and 20 times the distance by which it misses.
/// Less is better; nobody gains by an interval that he does not believe in. Gneiting and Raftery,
/// *Strictly proper scoring rules, prediction, and estimation*, JASA 102, 2007, equation 43.
#[must_use]
pub fn score((low, high): (f64, f64), measured: f64) -> f64 {
    let tail = 0.5 * (1.0 - COVERAGE);
    let missed = (low - measured).max(0.0) + (measured - high).max(0.0);
    high - low + missed / tail
}

#[cfg(test)]
mod tests {
    use headway_shared::metrics::METRICS;

    use super::*;
    use crate::kernel::random::{Component, Key};

    fn metric(name: &str) -> &'static Metric {
        METRICS.iter().find(|metric| metric.name == name).unwrap()
    }

    #[test]
    fn the_interval_of_one_more_value_is_as_in_the_textbook() {
        // Mean 5, variance 32/7, t(7, 0.95) = 1.894579: 1.894579 sqrt(32/7 * 9/8).
        let (low, high) = one_more(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((high - 5.0 - 4.296_499).abs() < 1e-5, "{high}");
        assert!((low + high - 10.0).abs() < 1e-12);
        assert_eq!(one_more(&[3.0]), None);
        assert_eq!(predict(metric("steps_per_hour"), &[]), None);
    }

    #[test]
    fn nine_of_ten_more_runs_lie_in_the_interval() {
        let mut stream =
            Key::new(1, headway_shared::digest::Digest::new(), 0).stream(Component::Request, 0);
        let metric = metric("trained_samples_per_hour");
        let mut held = 0;
        for _ in 0..20_000 {
            let runs: Vec<f64> = (0..17).map(|_| libm::exp(7.0 + 0.1 * stream.normal())).collect();
            let prediction = predict(metric, &runs[1..]).unwrap();
            held += u32::from(prediction.holds(runs[0]).unwrap());
        }
        assert!((17_850..18_150).contains(&held), "{held} of 20000");
    }

    #[test]
    fn an_interval_stays_within_what_the_metric_can_be() {
        let share = predict(metric("refused_share"), &[0.0, 0.002, 0.0, 0.01]).unwrap();
        let (low, high) = share.interval.unwrap();
        assert!(low >= 0.0 && high <= 1.0 && high > 0.01, "{share:?}");
        let age = predict(metric("staleness_head_mean"), &[0.0, 0.1, 0.0]).unwrap();
        assert_eq!(age.interval.unwrap().0, 0.0);
        let same = predict(metric("staleness_head_max"), &[2.0, 2.0]).unwrap();
        assert_eq!((same.holds(2.0), same.holds(3.0)), (Some(true), Some(false)));
    }

    #[test]
    fn a_miss_costs_twenty_times_its_distance() {
        assert_eq!(score((1.0, 2.0), 1.5), 1.0);
        assert!((score((1.0, 2.0), 2.1) - 3.0).abs() < 1e-9);
        assert!((score((1.0, 2.0), 0.9) - 3.0).abs() < 1e-9);
        assert_eq!(central(&[]), None);
        let steps: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(central(&steps), Some((5.0, 95.0)));
    }
}
