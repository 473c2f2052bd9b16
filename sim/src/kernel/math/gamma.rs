//! The gamma function's relatives: incomplete gamma, its quantiles, digamma and trigamma.

/// Terms of a series or fraction: about `6 sqrt(shape)` are needed.
const MOST_TERMS: u32 = 200_000;
const TINY: f64 = 1e-300;

/// `P(X <= x)` for X of the gamma distribution with this shape (above 0) and scale 1: the
/// regularised lower incomplete gamma function, to about 1e-14 (for a shape of a million, 1e-9).
///
/// The series and the continued fraction of Abramowitz and Stegun, 6.5.29 and 6.5.31, the second by
/// Lentz's method; O(sqrt(shape)).
#[must_use]
pub fn gamma_below(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x < shape + 1.0 { series(shape, x) } else { 1.0 - fraction(shape, x) }
}

/// `P(X > x)`: one minus [`gamma_below`], exact also where it is small.
#[must_use]
pub fn gamma_above(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    if x < shape + 1.0 { 1.0 - series(shape, x) } else { fraction(shape, x) }
}

/// `x^shape e^-x / gamma(shape)`: x times the density.
fn front(shape: f64, x: f64) -> f64 {
    libm::exp(shape * libm::log(x) - x - libm::lgamma(shape))
}

fn series(shape: f64, x: f64) -> f64 {
    let (mut term, mut sum) = (1.0 / shape, 1.0 / shape);
    let mut below = shape;
    for _ in 0..MOST_TERMS {
        below += 1.0;
        term *= x / below;
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    (sum * front(shape, x)).min(1.0)
}

fn fraction(shape: f64, x: f64) -> f64 {
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut b = x + 1.0 - shape;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / away(b);
    let mut value = d;
    for term in 1..MOST_TERMS {
        let term = f64::from(term);
        let a = term * (shape - term);
        b += 2.0;
        d = 1.0 / away(a * d + b);
        c = away(b + a / c);
        let factor = c * d;
        value *= factor;
        if (factor - 1.0).abs() < 1e-16 {
            break;
        }
    }
    (value * front(shape, x)).min(1.0)
}

/// The quantile of the gamma distribution with this shape and scale 1 at `p`, to about 1e-13. 0 at
/// 0 (and where it is below 1e-300), infinite at 1.
///
/// Newton's method within a shrinking bracket.
#[must_use]
pub fn gamma_quantile(p: f64, shape: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    // The better of the two tails is compared.
    let upper = p > 0.5;
    let excess = |x: f64| {
        if upper { (1.0 - p) - gamma_above(shape, x) } else { gamma_below(shape, x) - p }
    };
    let (mut low, mut high) = (0.0, shape + 1.0);
    while excess(high) < 0.0 && high < 1e300 {
        (low, high) = (high, 2.0 * high);
    }
    let mut x = start(p, shape);
    if x < TINY {
        return x;
    }
    for _ in 0..200 {
        if x.is_nan() || x <= low || x >= high {
            x = 0.5 * (low + high);
        }
        let error = excess(x);
        if error < 0.0 {
            low = x;
        } else {
            high = x;
        }
        let step = error * x / front(shape, x).max(TINY);
        if step.abs() <= 1e-15 * x || high - low <= 1e-15 * high {
            return x;
        }
        x -= step;
    }
    x
}

/// Wilson and Hilferty's cube of a normal; in the lower tail of a small shape, the series' first term.
fn start(p: f64, shape: f64) -> f64 {
    let ninth = 1.0 / (9.0 * shape);
    let root = 1.0 - ninth + super::normal_quantile(p) * ninth.sqrt();
    if root > 0.1 {
        return shape * root * root * root;
    }
    libm::exp((libm::log(p) + libm::lgamma(shape + 1.0)) / shape)
}

/// The quantile of the chi-square distribution with `df` degrees of freedom (any number above 0).
#[must_use]
pub fn chi_square_quantile(p: f64, df: f64) -> f64 {
    2.0 * gamma_quantile(p, 0.5 * df)
}

/// The derivative of log gamma, for x above 0, to about 1e-14: recurrence up to 16, then Abramowitz
/// and Stegun, 6.3.18.
#[must_use]
pub fn digamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < 16.0 {
        below += 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let tail = square
        * (1.0 / 12.0
            - square
                * (1.0 / 120.0
                    - square
                        * (1.0 / 252.0
                            - square * (1.0 / 240.0 - square * (1.0 / 132.0 - square / 47.4)))));
    libm::log(x) - 0.5 / x - tail - below
}

/// The second derivative of log gamma, for x above 0, to about 1e-14: Abramowitz and Stegun, 6.4.12.
#[must_use]
pub fn trigamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < 16.0 {
        below += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let tail = square
        * (1.0 / 6.0
            - square
                * (1.0 / 30.0
                    - square * (1.0 / 42.0 - square * (1.0 / 30.0 - square * (5.0 / 66.0)))));
    (1.0 + 0.5 / x + tail) / x + below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64, relative: f64) {
        assert!((found / expected - 1.0).abs() < relative, "{found} is not {expected}");
    }

    #[test]
    fn the_incomplete_gamma_is_the_sum_of_poisson_probabilities() {
        for (shape, x) in [(1_u32, 0.3), (2, 0.1), (3, 2.5), (5, 12.0), (20, 15.0), (40, 60.0)] {
            let (mut term, mut sum) = (libm::exp(-x), 0.0);
            for k in 1..=shape {
                sum += term;
                term *= x / f64::from(k);
            }
            near(gamma_above(f64::from(shape), x), sum, 1e-12);
            assert!((gamma_below(f64::from(shape), x) - (1.0 - sum)).abs() < 1e-14);
        }
    }

    #[test]
    fn half_a_degree_is_the_error_function() {
        for x in [1e-6, 0.01, 0.5, 1.0, 1.6, 4.0, 25.0] {
            near(gamma_below(0.5, x), libm::erf(x.sqrt()), 1e-13);
            near(gamma_above(0.5, x), libm::erfc(x.sqrt()), 1e-12);
        }
    }

    #[test]
    fn chi_square_has_its_tabled_quantiles() {
        let table = [
            (0.95, 1.0, 3.841_458_820_694_124),
            (0.90, 1.0, 2.705_543_454_095_404),
            (0.05, 1.0, 0.003_932_140_000_019_52),
            (0.95, 2.0, 5.991_464_547_107_979),
            (0.05, 10.0, 3.940_299_136_119_47),
            (0.95, 10.0, 18.307_038_053_275_15),
            (0.975, 30.0, 46.979_242_243_7),
            (0.05, 100.0, 77.929_465_165),
            (0.95, 100.0, 124.342_113_405),
        ];
        for (p, df, expected) in table {
            near(chi_square_quantile(p, df), expected, 1e-10);
        }
    }

    #[test]
    fn the_quantile_inverts_the_distribution_for_any_shape() {
        for shape in [0.05, 0.1, 0.7, 1.0, 3.3, 80.0, 4e3, 1e5] {
            for p in [1e-4, 0.05, 0.3, 0.5, 0.8, 0.95, 0.9999] {
                let x = gamma_quantile(p, shape);
                assert!((gamma_below(shape, x) - p).abs() < 1e-9, "{shape} {p} {x}");
            }
        }
        assert_eq!(gamma_quantile(0.0, 2.0), 0.0);
        assert_eq!(gamma_quantile(1.0, 2.0), f64::INFINITY);
    }

    #[test]
    fn digamma_and_trigamma_have_their_published_values() {
        const EULER: f64 = 0.577_215_664_901_532_9;
        let sixth = std::f64::consts::PI * std::f64::consts::PI / 6.0;
        near(digamma(1.0), -EULER, 1e-14);
        near(digamma(0.5), -EULER - 2.0 * std::f64::consts::LN_2, 1e-14);
        near(digamma(10.0), 2.251_752_589_066_721, 1e-14);
        near(trigamma(1.0), sixth, 1e-14);
        near(trigamma(0.5), 3.0 * sixth, 1e-14);
        near(trigamma(2.0), sixth - 1.0, 1e-13);
    }
}
