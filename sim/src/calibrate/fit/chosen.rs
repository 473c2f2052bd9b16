//! Which family the values are of.

use super::counts::{self, Cell};
use super::distance::{self, Distance};
use super::law::Law;
use super::sample::Sample;
use super::times::{self, Estimate};
use super::{Family, FitError, Parameter, Unit, t_upper};
use crate::report::number;

/// A family whose Kolmogorov distance is not above this is never rejected: no share of values below
/// any bound is wrong by more.
pub const MOST_DISTANCE: f64 = 0.05;
/// A family whose p-value is not below this is never rejected.
pub const LEAST_P: f64 = 0.01;
/// Fewer different values than this say nothing of a law.
const LEAST_VALUES: usize = 5;

/// A family that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The family.
    pub family: Family,
    /// The Bayesian information criterion: the smaller, the better. Of one sample only, comparable.
    pub bic: f64,
    /// The Kolmogorov distance.
    pub ks: f64,
    /// The probability of so large a distance if the family is right; the estimation of parameters
    /// is accounted for. For counts an upper bound.
    pub p_value: f64,
}

impl Candidate {
    /// Whether the values are clearly not of this family.
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        self.ks > MOST_DISTANCE && self.p_value < LEAST_P
    }
}

/// A law fitted to values.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The family.
    pub family: Family,
    /// What the values are of.
    pub unit: Unit,
    /// How many there are.
    pub count: usize,
    /// The parameters by their keys in a scenario (`mean_sec`, `sigma`), each with its 90% interval;
    /// empty for [`Family::Empirical`].
    pub parameters: Vec<(&'static str, Parameter)>,
    /// The Kolmogorov distance of the values from the law, 0 to 1.
    pub ks: f64,
    /// How often it is as large if the family is right.
    pub p_value: f64,
    /// The mean of the law.
    pub mean: Parameter,
    /// The families that can have these values, the best first. Empty where nothing was compared.
    pub candidates: Vec<Candidate>,
}

/// What the world does to a count after it was drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Smaller counts are raised to this: 1 for the turns of a session.
    pub at_least: Option<u32>,
    /// Larger counts are cut to this: `max_output_tokens`.
    pub at_most: Option<u32>,
}

/// Fits a law to values, in any order: the family, too. See the [module](super) for the rules.
///
/// # Errors
/// If a value is no time or count, or there are fewer than five that are not all the same.
pub fn fit(values: &[f64], unit: Unit) -> Result<Fit, FitError> {
    fit_within(values, unit, Limits::default())
}

/// The same for counts that the world raises or cuts; times have no limits.
///
/// # Errors
/// As for [`fit`].
pub fn fit_within(values: &[f64], unit: Unit, limits: Limits) -> Result<Fit, FitError> {
    let data = Data::new(values, unit, limits)?;
    if data.sample.is_constant(unit) {
        return Ok(data.constant());
    }
    data.require(LEAST_VALUES)?;
    let mut tried: Vec<(Candidate, Option<Estimate>)> = Family::LAWS
        .into_iter()
        .filter_map(|family| data.estimate(family).ok())
        .map(|estimate| (data.candidate(&estimate), Some(estimate)))
        .collect();
    if unit == Unit::Count {
        tried.push((data.column(), None));
    }
    tried.sort_by(|(left, _), (right, _)| left.bic.total_cmp(&right.bic));
    let candidates: Vec<Candidate> = tried.iter().map(|(candidate, _)| *candidate).collect();
    let best = tried.into_iter().find(|(candidate, _)| !candidate.is_rejected());
    let found = match best {
        Some((candidate, Some(estimate))) => data.fitted(&estimate, candidate),
        _ => data.empirical(),
    };
    Ok(Fit { candidates, ..found })
}

/// Fits this family, however badly the values go with it.
///
/// # Errors
/// As for [`fit`], or if the family cannot have these values.
pub fn fit_family(
    values: &[f64],
    unit: Unit,
    limits: Limits,
    family: Family,
) -> Result<Fit, FitError> {
    let data = Data::new(values, unit, limits)?;
    match family {
        Family::Constant if data.sample.is_constant(unit) => return Ok(data.constant()),
        Family::Empirical => return Ok(data.empirical()),
        _ => data.require(LEAST_VALUES)?,
    }
    let why = if data.sample.is_constant(unit) { Err("all are the same") } else { Ok(()) };
    let estimate = why
        .and_then(|()| data.estimate(family))
        .map_err(|why| FitError::Impossible { family: family.word(), why })?;
    let candidate = data.candidate(&estimate);
    Ok(data.fitted(&estimate, candidate))
}

/// Values, and for counts the steps that they stand for.
struct Data {
    sample: Sample,
    unit: Unit,
    cells: Vec<Cell>,
}

impl Data {
    fn new(values: &[f64], unit: Unit, limits: Limits) -> Result<Self, FitError> {
        let sample = Sample::new(values, unit)?;
        let cells = match unit {
            Unit::Count => counts::cells(&sample, limits),
            Unit::Seconds => Vec::new(),
        };
        Ok(Self { sample, unit, cells })
    }

    fn require(&self, needed: usize) -> Result<(), FitError> {
        let found = self.sample.sorted.len();
        if found >= needed { Ok(()) } else { Err(FitError::TooFew { of: "values", found, needed }) }
    }

    fn estimate(&self, family: Family) -> Result<Estimate, &'static str> {
        match self.unit {
            Unit::Seconds => times::estimate(&self.sample, family),
            Unit::Count => counts::estimate(&self.sample, &self.cells, family),
        }
    }

    fn distance(&self, law: &Law) -> Distance {
        match self.unit {
            Unit::Seconds => distance::of_values(&self.sample.sorted, law),
            Unit::Count => distance::of_cells(&self.cells, law),
        }
    }

    fn candidate(&self, estimate: &Estimate) -> Candidate {
        let Distance { ks, p_value } = self.distance(&estimate.law);
        let family = estimate.law.family();
        let penalty = f64::from(family.parameters()) * libm::log(self.sample.count);
        Candidate { family, bic: penalty - 2.0 * estimate.log_likelihood, ks, p_value }
    }

    /// The column of counts, compared as a law with a parameter for each different count but one.
    fn column(&self) -> Candidate {
        let count = self.sample.count;
        let penalty = (self.cells.len() - 1) as f64 * libm::log(count);
        let log_likelihood = counts::log_likelihood_of_column(&self.cells, count);
        Candidate {
            family: Family::Empirical,
            bic: penalty - 2.0 * log_likelihood,
            ks: 0.0,
            p_value: 1.0,
        }
    }

    fn fitted(&self, estimate: &Estimate, candidate: Candidate) -> Fit {
        let keys = keys(estimate.law.family(), self.unit);
        Fit {
            family: candidate.family,
            unit: self.unit,
            count: self.sample.sorted.len(),
            parameters: keys.iter().copied().zip(estimate.parameters.iter().copied()).collect(),
            ks: candidate.ks,
            p_value: candidate.p_value,
            mean: estimate.mean,
            candidates: Vec::new(),
        }
    }

    /// The values themselves; their mean by Student's t.
    fn empirical(&self) -> Fit {
        let Sample { mean, count, .. } = self.sample;
        let width = t_upper(count - 1.0) * (self.sample.variance() / count).sqrt();
        let mean = Parameter::new(mean, mean - width, mean + width).not_negative();
        self.without_law(Family::Empirical, mean)
    }

    /// All the same, to the nanosecond.
    fn constant(&self) -> Fit {
        let (sample, width) = (&self.sample, self.sample.resolution(self.unit));
        let value = if self.unit == Unit::Count { sample.min() } else { sample.mean };
        let value = Parameter::new(value, value - width, value + width).not_negative();
        let key = keys(Family::Constant, self.unit)[0];
        Fit { parameters: vec![(key, value)], ..self.without_law(Family::Constant, value) }
    }

    fn without_law(&self, family: Family, mean: Parameter) -> Fit {
        Fit {
            family,
            unit: self.unit,
            count: self.sample.sorted.len(),
            parameters: Vec::new(),
            ks: 0.0,
            p_value: 1.0,
            mean,
            candidates: Vec::new(),
        }
    }
}

/// The keys of a family's parameters in a scenario.
const fn keys(family: Family, unit: Unit) -> &'static [&'static str] {
    match (family, unit) {
        (Family::Constant, Unit::Seconds) => &["sec"],
        (Family::Constant, Unit::Count) => &["value"],
        (Family::Uniform, Unit::Seconds) => &["min_sec", "max_sec"],
        (Family::Uniform, Unit::Count) => &["min", "max"],
        (Family::Exponential, Unit::Seconds) => &["mean_sec"],
        (Family::Exponential, Unit::Count) => &["mean"],
        (Family::LogNormal, Unit::Seconds) => &["median_sec", "sigma"],
        (Family::LogNormal, Unit::Count) => &["median", "sigma"],
        (Family::Gamma, Unit::Seconds) => &["shape", "mean_sec"],
        (Family::Gamma, Unit::Count) => &["shape", "mean"],
        (Family::Pareto, Unit::Seconds) => &["min_sec", "alpha"],
        (Family::Pareto, Unit::Count) => &["min", "alpha"],
        (Family::Empirical, _) => &[],
    }
}

impl Fit {
    /// The law as a scenario writes it, `{ kind = "exponential", mean_sec = 1.2 }`; `None` for a
    /// column of values, which is a file.
    #[must_use]
    pub fn toml(&self) -> Option<String> {
        if self.family == Family::Empirical {
            return None;
        }
        let kind = self.family.word();
        let parameters = self.parameters.iter().fold(String::new(), |text, (key, parameter)| {
            text + &format!(", {key} = {}", number::text(parameter.value))
        });
        Some(format!("{{ kind = \"{kind}\"{parameters} }}"))
    }
}
