//! What a plan must keep: a metric, a comparison, a number.

use std::fmt;

use headway_shared::config::nearest;
use headway_shared::metrics::{METRICS, Metric};

use crate::drift;
use crate::report::number;
use crate::stats::Estimate;

/// How a metric is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    AtMost,
    Below,
    AtLeast,
    Above,
}

impl Comparison {
    /// Longer signs first: `<` is the beginning of `<=`.
    const ALL: [(&str, Self); 4] =
        [("<=", Self::AtMost), (">=", Self::AtLeast), ("<", Self::Below), (">", Self::Above)];

    const fn sign(self) -> &'static str {
        match self {
            Self::AtMost => "<=",
            Self::Below => "<",
            Self::AtLeast => ">=",
            Self::Above => ">",
        }
    }
}

/// `staleness_head_p99 <= 4`
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// The metric's name.
    pub metric: &'static str,
    comparison: Comparison,
    limit: f64,
}

/// Why a text is no constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// It has not the three parts.
    #[error("`{0}` is no constraint")]
    Form(String),
    /// No metric has this name.
    #[error("`{name}` is no metric")]
    Metric {
        /// What was written.
        name: String,
        /// The most similar name.
        near: Option<&'static str>,
    },
    /// What it is compared with is no number.
    #[error("`{0}` is no number")]
    Number(String),
}

impl ConstraintError {
    /// What to write instead.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Metric { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Self::Metric { near: None, .. } => {
                "write a metric of docs/metrics.md, such as staleness_head_p99".into()
            }
            Self::Form(_) | Self::Number(_) => {
                "write a metric, one of <= < >= >, and a number: staleness_head_p99 <= 4".into()
            }
        }
    }
}

impl Constraint {
    /// Reads a constraint.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        let parts = Comparison::ALL.into_iter().find_map(|(sign, comparison)| {
            let (metric, limit) = text.split_once(sign)?;
            Some((metric.trim(), comparison, limit.trim()))
        });
        let Some((name, comparison, limit)) = parts else {
            return Err(ConstraintError::Form(text.trim().into()));
        };
        let metric =
            find(name).map_err(|near| ConstraintError::Metric { name: name.into(), near })?.name;
        match number::parse(limit) {
            Some(limit) => Ok(Self { metric, comparison, limit }),
            None => Err(ConstraintError::Number(limit.into())),
        }
    }

    /// Whether it is kept from above: what it bounds cannot grow for ever.
    #[must_use]
    pub const fn is_upper(&self) -> bool {
        matches!(self.comparison, Comparison::AtMost | Comparison::Below)
    }

    /// Whether it is clear from the interval of a mean that it is broken.
    #[must_use]
    pub fn is_clearly_broken(&self, value: Option<Estimate>) -> bool {
        value
            .is_none_or(|value| value.half_width.is_some_and(|half| self.excess(value.mean) > half))
    }

    /// By how much a mean breaks it, in the metric's unit; `None`: it could not be measured.
    #[must_use]
    pub fn excess_of(&self, value: Option<Estimate>) -> Option<f64> {
        value.map(|value| self.excess(value.mean).max(0.0))
    }

    /// Whether a mean keeps it. What could not be measured does not.
    #[must_use]
    pub fn is_kept(&self, value: Option<Estimate>) -> bool {
        value
            .is_some_and(|value| self.excess(value.mean) <= 0.0 && !self.is_met_exactly(value.mean))
    }

    /// Whether the interval of a mean lies on both sides of the limit.
    #[must_use]
    pub fn is_unsure(&self, value: Option<Estimate>) -> bool {
        value.is_some_and(|value| {
            value.half_width.is_some_and(|half| (value.mean - self.limit).abs() < half)
        })
    }

    /// By how much a value breaks it, as a share of the limit (of 1, where the limit is 0).
    #[must_use]
    pub fn breach(&self, value: Option<Estimate>) -> f64 {
        let scale = if self.limit == 0.0 { 1.0 } else { self.limit.abs() };
        value.map_or(f64::INFINITY, |value| self.excess(value.mean).max(0.0) / scale)
    }

    /// How far beyond the limit a value is.
    fn excess(&self, value: f64) -> f64 {
        match self.comparison {
            Comparison::AtMost | Comparison::Below => value - self.limit,
            Comparison::AtLeast | Comparison::Above => self.limit - value,
        }
    }

    fn is_met_exactly(&self, value: f64) -> bool {
        let strict = matches!(self.comparison, Comparison::Below | Comparison::Above);
        strict && value == self.limit
    }
}

/// The metric of a name, those of ratios included.
///
/// # Errors
/// The most similar name, if there is one.
pub fn find(name: &str) -> Result<&'static Metric, Option<&'static str>> {
    let all = || METRICS.iter().chain(drift::METRICS);
    all().find(|metric| metric.name == name).ok_or_else(|| {
        let names: Vec<&'static str> = all().map(|metric| metric.name).collect();
        nearest(name, &names)
    })
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.metric, self.comparison.sign(), number::text(self.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exactly(mean: f64) -> Option<Estimate> {
        Some(Estimate { mean, half_width: Some(0.0), count: 2 })
    }

    #[test]
    fn a_limit_is_kept_on_its_side_and_strict_signs_leave_it_out() {
        let keeps =
            |text: &str, value: f64| Constraint::parse(text).unwrap().is_kept(exactly(value));
        assert!(keeps("staleness_head_p99 <= 4", 4.0) && !keeps("staleness_head_p99<4", 4.0));
        assert!(keeps("steps_per_hour >= 4", 4.0) && !keeps("steps_per_hour > 4", 4.0));
        assert!(!keeps("staleness_head_p99 <= 4", 4.5) && keeps("steps_per_hour > 4", 4.5));
    }

    #[test]
    fn what_was_not_measured_keeps_nothing() {
        let constraint = Constraint::parse("staleness_head_p99 <= 4").unwrap();
        assert!(!constraint.is_kept(None));
        assert_eq!(constraint.breach(None), f64::INFINITY);
        assert_eq!(constraint.breach(exactly(5.0)), 0.25);
    }

    #[test]
    fn an_interval_across_the_limit_is_unsure() {
        let constraint = Constraint::parse("staleness_head_p99 <= 4").unwrap();
        let wide = Some(Estimate { mean: 3.9, half_width: Some(0.3), count: 2 });
        assert!(constraint.is_kept(wide) && constraint.is_unsure(wide));
        assert!(!constraint.is_unsure(exactly(3.9)));
    }

    #[test]
    fn a_wrong_text_is_explained() {
        let error = |text: &str| Constraint::parse(text).unwrap_err();
        let near = error("stalenes_head_p99 <= 4");
        assert_eq!(near.help(), "did you mean `staleness_head_p99`?");
        assert!(error("staleness_head_p99").to_string().contains("is no constraint"));
        assert!(error("staleness_head_p99 <= four").to_string().contains("`four` is no number"));
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        for text in ["staleness_head_p99 <= 4", "trained_samples_per_hour > 1000.5"] {
            assert_eq!(Constraint::parse(text).unwrap().to_string(), text);
        }
    }
}
