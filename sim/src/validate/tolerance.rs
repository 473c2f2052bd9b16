//! How far a prediction may be off.

use std::fmt;

use headway_shared::config::nearest;

use super::figures::FIGURES;
use crate::report::number;

/// How far a prediction of one metric may be from what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// By this share of what was measured.
    Relative(f64),
    /// By this, in the metric's unit.
    Absolute(f64),
    /// What was measured must lie in the predicted interval.
    Interval,
    /// By any distance: it is shown and not judged.
    Any,
}

impl Tolerance {
    /// Whether a prediction keeps it; `None`: it is not judged.
    pub(super) fn is_kept(
        self,
        measured: f64,
        predicted: f64,
        inside: Option<bool>,
    ) -> Option<bool> {
        let off = (predicted - measured).abs();
        match self {
            Self::Relative(share) => Some(off <= share * measured.abs()),
            Self::Absolute(most) => Some(off <= most),
            Self::Interval => inside,
            Self::Any => None,
        }
    }
}

impl Tolerance {
    /// Reads what is written of one; `None`: it is none.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        if text.is_empty() { Some(Self::Any) } else { parse(text) }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relative(share) => write!(f, "{}%", number::text(share * 100.0)),
            Self::Absolute(most) => f.write_str(&number::text(*most)),
            Self::Interval => f.write_str("interval"),
            Self::Any => Ok(()),
        }
    }
}

/// Why a text is no tolerance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToleranceError {
    /// It has not the two parts.
    #[error("`{0}` is no tolerance")]
    Form(String),
    /// Nothing of this name is compared.
    #[error("`{name}` is not compared")]
    Metric {
        /// What was written.
        name: String,
        /// The most similar name.
        near: Option<&'static str>,
    },
    /// The value is none.
    #[error("`{0}` is no distance")]
    Value(String),
}

impl ToleranceError {
    /// What to write instead.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Metric { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Self::Metric { near: None, .. } => {
                "write a metric of docs/validate.md, or the beginning of some and a star: \
                 staleness_part_*=0.2"
                    .into()
            }
            Self::Form(_) | Self::Value(_) => {
                "write METRIC=VALUE, where VALUE is a share of what was measured (10%), a distance \
                 in the metric's unit (0.25), `interval` or `none`"
                    .into()
            }
        }
    }
}

/// The tolerance of each metric that is compared, in the order of [`FIGURES`].
#[derive(Clone, Debug, PartialEq)]
pub struct Tolerances(Vec<Tolerance>);

impl Default for Tolerances {
    fn default() -> Self {
        Self(FIGURES.iter().map(|figure| figure.tolerance).collect())
    }
}

impl Tolerances {
    /// Of the metric at this place of [`FIGURES`].
    #[must_use]
    pub fn at(&self, place: usize) -> Tolerance {
        self.0.get(place).copied().unwrap_or(Tolerance::Any)
    }

    /// Changes what `METRIC=VALUE` says; a name that ends in a star stands for all that begin like
    /// it.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn set(&mut self, text: &str) -> Result<(), ToleranceError> {
        let parts = text.split_once('=');
        let (name, value) = parts.ok_or_else(|| ToleranceError::Form(text.trim().into()))?;
        let (name, value) = (name.trim(), value.trim());
        let tolerance = parse(value).ok_or_else(|| ToleranceError::Value(value.into()))?;
        let mut found = false;
        for (place, figure) in self.0.iter_mut().zip(FIGURES) {
            let is_meant = match name.strip_suffix('*') {
                Some(beginning) => figure.name.starts_with(beginning),
                None => figure.name == name,
            };
            if is_meant {
                (*place, found) = (tolerance, true);
            }
        }
        if found {
            return Ok(());
        }
        let names: Vec<&'static str> = FIGURES.iter().map(|figure| figure.name).collect();
        Err(ToleranceError::Metric { name: name.into(), near: nearest(name, &names) })
    }
}

fn parse(value: &str) -> Option<Tolerance> {
    let distance = |text: &str| number::parse(text).filter(|distance| *distance >= 0.0);
    match (value, value.strip_suffix('%')) {
        ("interval", _) => Some(Tolerance::Interval),
        ("none", _) => Some(Tolerance::Any),
        (_, Some(percent)) => Some(Tolerance::Relative(distance(percent.trim())? / 100.0)),
        (_, None) => Some(Tolerance::Absolute(distance(value)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tolerances: &Tolerances, name: &str) -> Tolerance {
        let place = FIGURES.iter().position(|figure| figure.name == name).unwrap();
        tolerances.at(place)
    }

    #[test]
    fn a_tolerance_is_a_share_a_distance_the_interval_or_none() {
        let mut tolerances = Tolerances::default();
        for text in ["steps_per_hour=5%", "publish_lag_mean = 0.5", "clipped_fraction=interval"] {
            tolerances.set(text).unwrap();
        }
        tolerances.set("staleness_part_*=none").unwrap();
        assert_eq!(of(&tolerances, "steps_per_hour"), Tolerance::Relative(0.05));
        assert_eq!(of(&tolerances, "publish_lag_mean"), Tolerance::Absolute(0.5));
        assert_eq!(of(&tolerances, "clipped_fraction"), Tolerance::Interval);
        assert_eq!(of(&tolerances, "staleness_part_judging"), Tolerance::Any);
        assert_eq!(of(&tolerances, "staleness_head_mean"), Tolerance::Absolute(0.25));
        let written = ["5%", "0.5", "interval", ""];
        let names =
            ["steps_per_hour", "publish_lag_mean", "clipped_fraction", "staleness_part_judging"];
        assert_eq!(names.map(|name| of(&tolerances, name).to_string()), written);
    }

    #[test]
    fn what_is_no_tolerance_is_answered_with_what_to_write() {
        let mut tolerances = Tolerances::default();
        let mut wrong = |text: &str| tolerances.set(text).unwrap_err();
        assert!(wrong("staleness_mean=1").to_string().contains("`staleness_mean` is not compared"));
        assert_eq!(wrong("step_per_hour=1").help(), "did you mean `steps_per_hour`?");
        assert_eq!(wrong("steps_per_hour"), ToleranceError::Form("steps_per_hour".into()));
        for value in ["-1", "ten", "5 %%", ""] {
            let error = wrong(&format!("steps_per_hour={value}"));
            assert!(matches!(error, ToleranceError::Value(_)), "{value}: {error}");
        }
    }

    #[test]
    fn a_relative_tolerance_is_of_what_was_measured() {
        let ten = Tolerance::Relative(0.1);
        assert_eq!(ten.is_kept(100.0, 110.0, None), Some(true));
        assert_eq!(ten.is_kept(100.0, 89.0, Some(true)), Some(false));
        assert_eq!(ten.is_kept(0.0, 0.0, None), Some(true));
        assert_eq!(Tolerance::Interval.is_kept(1.0, 9.0, None), None);
        assert_eq!(Tolerance::Any.is_kept(1.0, 9.0, Some(false)), None);
    }
}
