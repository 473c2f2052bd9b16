//! The incomplete beta function and its quantiles.

const MOST_TERMS: u32 = 200_000;
const TINY: f64 = 1e-300;

/// `P(X <= x)` for X of the beta distribution with parameters `a` and `b` (above 0), to about 1e-13.
///
/// The continued fraction of Abramowitz and Stegun, 26.5.8, by Lentz's method; O(sqrt(max(a, b))).
#[must_use]
pub fn beta_below(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x < (a + 1.0) / (a + b + 2.0) {
        front(a, b, x) * fraction(a, b, x) / a
    } else {
        1.0 - front(b, a, 1.0 - x) * fraction(b, a, 1.0 - x) / b
    }
}

/// `x^a (1 - x)^b / B(a, b)`: x (1 - x) times the density.
fn front(a: f64, b: f64, x: f64) -> f64 {
    let beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    libm::exp(a * libm::log(x) + b * libm::log1p(-x) - beta)
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..MOST_TERMS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        value *= c * d;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        let factor = c * d;
        value *= factor;
        if (factor - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}

/// The quantile of the beta distribution at `p`, to about 1e-13: bisection, then Newton's method
/// within the bracket.
#[must_use]
pub fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    let mut x = a / (a + b);
    for _ in 0..200 {
        let error = beta_below(a, b, x) - p;
        if error < 0.0 {
            low = x;
        } else {
            high = x;
        }
        let step = error * x * (1.0 - x) / front(a, b, x).max(TINY);
        if step.abs() <= 1e-15 * x || high - low <= 1e-16 * high {
            return x;
        }
        x -= step;
        if x.is_nan() || x <= low || x >= high {
            x = 0.5 * (low + high);
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64, relative: f64) {
        assert!((found / expected - 1.0).abs() < relative, "{found} is not {expected}");
    }

    #[test]
    fn the_incomplete_beta_is_the_sum_of_binomial_probabilities() {
        // P(at least k of n) = I_p(k, n - k + 1).
        for (k, n, p) in [(1_u32, 5_u32, 0.1), (3, 5, 0.5), (7, 20, 0.3), (40, 50, 0.75)] {
            let (mut term, mut sum) = (libm::pow(1.0 - p, f64::from(n)), 0.0);
            for at in 0..=n {
                sum += if at >= k { term } else { 0.0 };
                term *= p / (1.0 - p) * f64::from(n - at) / f64::from(at + 1);
            }
            near(beta_below(f64::from(k), f64::from(n - k + 1), p), sum, 1e-12);
        }
    }

    #[test]
    fn the_arcsine_law_has_its_quantiles() {
        for p in [0.05, 0.25, 0.5, 0.95] {
            let sine = libm::sin(0.5 * std::f64::consts::PI * p);
            near(beta_quantile(p, 0.5, 0.5), sine * sine, 1e-12);
        }
    }

    #[test]
    fn the_quantile_inverts_the_distribution() {
        for (a, b) in [(0.5, 0.5), (0.5, 200.5), (3.0, 8.0), (1_000.5, 9.5), (2e5, 3e5)] {
            for p in [0.001, 0.05, 0.5, 0.95, 0.999] {
                let x = beta_quantile(p, a, b);
                assert!((beta_below(a, b, x) - p).abs() < 1e-9, "{a} {b} {p} {x}");
            }
        }
        // F(0.95; 4, 6) = 4.5337: the ratio of variances whose beta is x / (x + 6/4).
        let f = 4.533_677;
        near(beta_quantile(0.95, 2.0, 3.0), f / (f + 1.5), 1e-7);
    }
}
