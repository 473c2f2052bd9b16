//! Shares of trials, and events per hour.

use super::{LOWER, Parameter, UPPER};
use crate::kernel::math::{beta_quantile, gamma_quantile};

/// A share: `hits` of `of` independent trials, with Jeffreys' 90% interval; without a trial, anything
/// from 0 to 1.
///
/// The exact interval of Clopper and Pearson covers at least 90% whatever the share, and so far more
/// than that for most. Jeffreys' covers 90% on average over shares, and within a few percent of it
/// for each (Brown, Cai and DasGupta, Interval estimation for a binomial proportion, 2001). Where no
/// trial was a hit its lower end is 0, where all were its upper end is 1, as they advise.
#[must_use]
pub fn share(hits: u64, of: u64) -> Parameter {
    if of == 0 {
        return Parameter { value: 0.0, low: 0.0, high: 1.0 };
    }
    jeffreys(hits.min(of) as f64, of as f64)
}

pub(super) fn jeffreys(hits: f64, of: f64) -> Parameter {
    let (a, b) = (hits + 0.5, of - hits + 0.5);
    let low = if hits == 0.0 { 0.0 } else { beta_quantile(LOWER, a, b) };
    let high = if hits == of { 1.0 } else { beta_quantile(UPPER, a, b) };
    Parameter::new(hits / of, low, high)
}

/// Events per hour of a Poisson process that was watched for so many hours, with Jeffreys' 90%
/// interval: gamma quantiles of `events + 1/2`, for the same reason as in [`share`]. Without an event
/// its lower end is 0; without an hour its upper end is infinite.
#[must_use]
pub fn rate(events: u64, hours: f64) -> Parameter {
    if hours.is_nan() || hours <= 0.0 {
        return Parameter { value: 0.0, low: 0.0, high: f64::INFINITY };
    }
    let shape = events as f64 + 0.5;
    let low = if events == 0 { 0.0 } else { gamma_quantile(LOWER, shape) };
    Parameter::new(events as f64 / hours, low / hours, gamma_quantile(UPPER, shape) / hours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_jeffreys_ends() {
        // Beta(1/2, 1/2), of which the quantiles are known, is what no trial leaves; one hit of one
        // leaves Beta(3/2, 1/2), with F(x) = (2 / pi) (asin(sqrt(x)) - sqrt(x (1 - x))).
        let below =
            |x: f64| std::f64::consts::FRAC_2_PI * (libm::asin(x.sqrt()) - (x * (1.0 - x)).sqrt());
        let one = share(1, 1);
        assert!((below(one.low) - 0.05).abs() < 1e-12, "{one:?}");
        assert_eq!((one.value, one.high), (1.0, 1.0));
        let mirrored = share(0, 1);
        assert!((mirrored.high - (1.0 - one.low)).abs() < 1e-12);
        assert_eq!((mirrored.value, mirrored.low), (0.0, 0.0));
        assert_eq!(share(0, 0), Parameter { value: 0.0, low: 0.0, high: 1.0 });
    }

    #[test]
    fn many_trials_have_the_normal_interval() {
        let found = share(400_000, 1_000_000);
        let half = 1.644_853_627 * (0.24_f64 / 1e6).sqrt();
        assert!((found.high - (0.4 + half)).abs() < 2e-6, "{found:?}");
        assert!((found.low - (0.4 - half)).abs() < 2e-6);
    }

    #[test]
    fn a_rate_is_per_hour() {
        let none = rate(0, 10.0);
        // Half of chi-square's 95% quantile with one degree of freedom.
        assert!((none.high - 0.192_072_941).abs() < 1e-8, "{none:?}");
        assert_eq!((none.value, none.low), (0.0, 0.0));
        let many = rate(10_000, 100.0);
        assert!((many.high - (100.0 + 1.645)).abs() < 0.02 && (many.low - 98.36).abs() < 0.02);
        assert_eq!(rate(3, 0.0).high, f64::INFINITY);
    }
}
