//! Values that were drawn from a continuous law and not rounded: closed forms.

use super::law::Law;
use super::sample::Sample;
use super::{Family, LEVEL, LOWER, Parameter, UPPER, likelihood_drop, t_upper};
use crate::kernel::math::{digamma, gamma_quantile, trigamma};

/// A fitted law.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    pub(super) law: Law,
    pub(super) log_likelihood: f64,
    /// In the order in which a scenario writes them.
    pub(super) parameters: Vec<Parameter>,
    pub(super) mean: Parameter,
}

/// The estimate of a family, or why there is none. The values are not all the same.
pub(super) fn estimate(sample: &Sample, family: Family) -> Result<Estimate, &'static str> {
    let logs = || sample.log_mean.ok_or("a value is 0");
    match family {
        Family::Exponential => exponential(sample),
        Family::Uniform => Ok(uniform(sample)),
        Family::LogNormal => Ok(lognormal(sample, logs()?)),
        Family::Gamma => gamma(sample, logs()?),
        Family::Pareto => pareto(sample, logs()?),
        Family::Constant => Err("the values differ"),
        Family::Empirical => Err("it is none"),
    }
}

/// `2 count mean / truth` is chi-square with twice the count as degrees of freedom: exact.
fn exponential(sample: &Sample) -> Result<Estimate, &'static str> {
    let (count, mean) = (sample.count, sample.mean);
    let end = |p: f64| count * mean / gamma_quantile(p, count);
    let interval = Parameter::new(mean, end(UPPER), end(LOWER));
    Ok(Estimate {
        law: Law::Exponential { mean },
        log_likelihood: -count * (libm::log(mean) + 1.0),
        parameters: vec![interval],
        mean: interval,
    })
}

/// How far beyond the range, as a part of it, an end of a uniform law may lie: with all that lies
/// further the probability of so wide a range is below one minus the level.
pub(super) fn beyond(count: f64) -> f64 {
    libm::pow(1.0 - LEVEL, -1.0 / (count - 1.0)) - 1.0
}

/// Exact: `P(X_1 - min > t (X_n - X_1)) = (1 + t)^(1 - n)`, and for the middle of the range
/// `P(|middle - mean| > t (X_n - X_1)) = (1 + 2 t)^(1 - n)`. No end lies within the values, so the
/// intervals of the ends are one-sided.
fn uniform(sample: &Sample) -> Estimate {
    let (min, max) = (sample.min(), sample.max());
    let range = max - min;
    let width = range * beyond(sample.count);
    let middle = 0.5 * (min + max);
    Estimate {
        law: Law::Uniform { min, max },
        log_likelihood: -sample.count * libm::log(range),
        parameters: vec![
            Parameter::new(min, min - width, min).not_negative(),
            Parameter::new(max, max, max + width),
        ],
        mean: Parameter::new(middle, middle - 0.5 * width, middle + 0.5 * width).not_negative(),
    }
}

/// The median by Student's t, sigma by chi-square, both exact; the mean by Cox's method with t
/// (Olsson, Confidence intervals for the mean of a log-normal distribution, 2005).
fn lognormal(sample: &Sample, mu: f64) -> Estimate {
    let (count, squares) = (sample.count, sample.log_squares);
    let sigma = (squares / count).sqrt();
    let variance = squares / (count - 1.0);
    let t = t_upper(count - 1.0);
    let end = |p: f64| (0.5 * squares / gamma_quantile(p, 0.5 * (count - 1.0))).sqrt();
    let spread = variance / count + 0.5 * variance * variance / (count - 1.0);
    // Cox's interval is about the mean with the unbiased variance.
    let (value, about) = (mu + 0.5 * sigma * sigma, mu + 0.5 * variance);
    let width = t * spread.sqrt();
    Estimate {
        law: Law::LogNormal { mu, sigma },
        log_likelihood: -0.5
            * count
            * (libm::log(2.0 * std::f64::consts::PI * sigma * sigma) + 1.0)
            - count * mu,
        parameters: vec![
            Parameter::times(libm::exp(mu), t * (variance / count).sqrt()),
            Parameter::new(sigma, end(UPPER), end(LOWER)),
        ],
        mean: Parameter::new(libm::exp(value), libm::exp(about - width), libm::exp(about + width)),
    }
}

/// What the shape follows from: log(mean) - mean(log), which has no unit.
#[derive(Clone, Copy)]
struct Shape {
    count: f64,
    deficit: f64,
}

impl Shape {
    /// The shape with `log(shape) - digamma(shape) = deficit`, by Newton's method on 1/shape from
    /// Minka's start (Estimating a gamma distribution, 2002).
    fn at(deficit: f64) -> f64 {
        let root = ((deficit - 3.0) * (deficit - 3.0) + 24.0 * deficit).sqrt();
        let mut shape = (3.0 - deficit + root) / (12.0 * deficit);
        for _ in 0..50 {
            let excess = libm::log(shape) - digamma(shape) - deficit;
            let slope = 1.0 / shape - trigamma(shape);
            let inverse = 1.0 / shape + excess / (shape * shape * slope);
            let next = if inverse > 0.0 { 1.0 / inverse } else { 2.0 * shape };
            let same = (next / shape - 1.0).abs() < 1e-14;
            shape = next;
            if same {
                break;
            }
        }
        shape
    }

    /// The log likelihood of the shape alone: given their sum, the values' parts of it have the
    /// Dirichlet distribution, in which there is no mean.
    fn log_likelihood(self, shape: f64) -> f64 {
        let Self { count, deficit } = self;
        libm::lgamma(count * shape)
            - count * libm::lgamma(shape)
            - count * shape * (deficit + libm::log(count))
    }

    fn interval(self, shape: f64) -> Parameter {
        let drop = 0.5 * likelihood_drop(self.count, 1.0);
        // Bias moves the maximum of this likelihood below the estimate.
        let best = self.peak(shape);
        let level = self.log_likelihood(best) - drop;
        let end = |factor: f64| crossing(best, factor, |shape| self.log_likelihood(shape) - level);
        Parameter::new(shape, end(0.5), end(2.0))
    }

    /// Where the derivative is 0: `digamma(count shape) - digamma(shape) = deficit + log(count)`.
    fn peak(self, near: f64) -> f64 {
        let rising = |shape: f64| {
            digamma(self.count * shape) - digamma(shape) - self.deficit - libm::log(self.count)
        };
        let from = 2.0 * near;
        if rising(from) > 0.0 { near } else { crossing_between(1e-3 * near, from, rising) }
    }

    /// The interval of the mean by profile likelihood: at any mean, the best shape is that of a
    /// larger deficit.
    fn mean(self, mean: f64, shape: f64) -> Parameter {
        let Self { count, deficit } = self;
        // Per value, less what does not depend on either.
        let profile = |ratio: f64| {
            let wider = deficit + 1.0 / ratio - 1.0 + libm::log(ratio);
            let shape = Self::at(wider);
            shape * (libm::log(shape) - 1.0 - wider) - libm::lgamma(shape)
        };
        let drop = 0.5 * likelihood_drop(count, 1.0) / count;
        let level = shape * (libm::log(shape) - 1.0 - deficit) - libm::lgamma(shape) - drop;
        let step = libm::exp(1.0 / (shape * count).sqrt());
        let low = crossing(1.0, 1.0 / step, |ratio| profile(ratio) - level);
        let high = crossing(1.0, step, |ratio| profile(ratio) - level);
        Parameter::new(mean, mean * low, mean * high)
    }
}

/// Shape and mean, which are independent where there are many values. Of the shape: the likelihood
/// ratio of the values' parts of their sum; of the mean: the profile likelihood.
fn gamma(sample: &Sample, log_mean: f64) -> Result<Estimate, &'static str> {
    let (count, mean) = (sample.count, sample.mean);
    let deficit = libm::log(mean) - log_mean;
    if deficit < 4e-7 {
        return Err("its shape would be above a million");
    }
    let of = Shape { count, deficit };
    let shape = Shape::at(deficit);
    if shape < 0.01 {
        return Err("its shape would be below 0.01");
    }
    let log_likelihood = count
        * (shape * libm::log(shape / mean) - libm::lgamma(shape) + (shape - 1.0) * log_mean
            - shape);
    let mean = of.mean(mean, shape);
    Ok(Estimate {
        law: Law::Gamma { shape, mean: mean.value },
        log_likelihood,
        parameters: vec![of.interval(shape), mean],
        mean,
    })
}

/// Both exact: `alpha` times the sum of log(value / smallest) is gamma with shape count - 1, and
/// apart from it `count alpha log(smallest / min)` is exponential. The mean's interval is that of
/// alpha, at the expected `min`.
fn pareto(sample: &Sample, log_mean: f64) -> Result<Estimate, &'static str> {
    let (count, min) = (sample.count, sample.min());
    let sum = count * (log_mean - libm::log(min));
    let alpha = count / sum;
    let end = |p: f64| gamma_quantile(p, count - 1.0) / sum;
    let (low, high) = (end(LOWER), end(UPPER));
    if low <= 1.0 {
        return Err("its mean could be infinite");
    }
    let mean = |alpha: f64| alpha / (alpha - 1.0);
    let expected = min * libm::exp(-1.0 / (count * alpha));
    Ok(Estimate {
        law: Law::Pareto { min, alpha },
        log_likelihood: count * (libm::log(alpha) - libm::log(min)) - (alpha + 1.0) * sum,
        parameters: vec![
            Parameter::new(min, min * libm::exp(-sum / count * beyond(count)), min),
            Parameter::new(alpha, low, high),
        ],
        mean: Parameter::new(min * mean(alpha), expected * mean(high), expected * mean(low)),
    })
}

/// Where `of` first falls to 0, going from `from` (where it is above) by this factor.
pub(super) fn crossing(from: f64, factor: f64, of: impl Fn(f64) -> f64) -> f64 {
    let (mut inside, mut outside) = (from, from * factor);
    let mut step = factor;
    while of(outside) > 0.0 && (1e-12..=1e12).contains(&(outside / from)) {
        step *= step;
        (inside, outside) = (outside, outside * step);
    }
    crossing_between(inside, outside, of)
}

/// The zero of `of` between two places where its signs differ, first above it: bisection, as the
/// ratio of the places.
fn crossing_between(mut inside: f64, mut outside: f64, of: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..48 {
        let middle = (inside * outside).sqrt();
        if of(middle) > 0.0 {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    (inside * outside).sqrt()
}
