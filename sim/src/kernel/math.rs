//! Quantiles and special functions, on `libm` only: the same bits on every platform.

mod beta;
mod gamma;

pub use beta::{beta_below, beta_quantile};
pub use gamma::{chi_square_quantile, digamma, gamma_above, gamma_below, gamma_quantile, trigamma};

/// A polynomial, by Horner's rule, highest coefficient first.
#[inline]
fn horner(coefficients: [f64; 8], x: f64) -> f64 {
    let mut value = 0.0;
    for coefficient in coefficients {
        value = value * x + coefficient;
    }
    value
}

/// The quantile of the standard normal distribution at `p` in (0, 1), with a relative error of
/// about 1e-16: Wichura, algorithm AS 241 (PPND16), 1988. At 0 and 1: minus and plus infinity.
#[must_use]
#[expect(clippy::excessive_precision, reason = "the coefficients as published")]
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 8] = [
        2509.0809287301226727,
        33430.575583588128105,
        67265.770927008700853,
        45921.953931549871457,
        13731.693765509461125,
        1971.5909503065514427,
        133.14166789178437745,
        3.3871328727963666080,
    ];
    const B: [f64; 8] = [
        5226.4952788528545610,
        28729.085735721942674,
        39307.895800092710610,
        21213.794301586595867,
        5394.1960214247511077,
        687.18700749205790830,
        42.313330701600911252,
        1.0,
    ];
    const C: [f64; 8] = [
        7.74545014278341407640e-4,
        0.0227238449892691845833,
        0.241780725177450611770,
        1.27045825245236838258,
        3.64784832476320460504,
        5.76949722146069140550,
        4.63033784615654529590,
        1.42343711074968357734,
    ];
    const D: [f64; 8] = [
        1.05075007164441684324e-9,
        5.47593808499534494600e-4,
        0.0151986665636164571966,
        0.148103976427480074590,
        0.689767334985100004550,
        1.67638483018380384940,
        2.05319162663775882187,
        1.0,
    ];
    const E: [f64; 8] = [
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        1.24266094738807843860e-3,
        0.0265321895265761230930,
        0.296560571828504891230,
        1.78482653991729133580,
        5.46378491116411436990,
        6.65790464350110377720,
    ];
    const F: [f64; 8] = [
        2.04426310338993978564e-15,
        1.42151175831644588870e-7,
        1.84631831751005468180e-5,
        7.86869131145613259100e-4,
        0.0148753612908506148525,
        0.136929880922735805310,
        0.599832206555887937690,
        1.0,
    ];
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q * horner(A, r) / horner(B, r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = (-libm::log(tail)).sqrt();
    let size = if r <= 5.0 {
        horner(C, r - 1.6) / horner(D, r - 1.6)
    } else {
        horner(E, r - 5.0) / horner(F, r - 5.0)
    };
    if q < 0.0 { -size } else { size }
}

/// `P(Z <= z)` of the standard normal distribution.
#[must_use]
pub fn normal_below(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// The quantile of Student's t distribution with `df` degrees of freedom (at least 1) at `p` in
/// (0, 1), to about 1e-14. At 0 and 1, or without a degree of freedom: infinite.
///
/// By bisection of the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4; O(`df`).
#[must_use]
pub fn student_t_quantile(p: f64, df: u32) -> f64 {
    if p < 0.5 {
        return -student_t_quantile(1.0 - p, df);
    }
    if df == 0 || p >= 1.0 {
        return f64::INFINITY;
    }
    let inside = 2.0 * p - 1.0;
    let (mut low, mut high) = (0.0, 1.0);
    while student_t_within(high, df) < inside && high < 1e300 {
        (low, high) = (high, 2.0 * high);
    }
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if student_t_within(middle, df) < inside {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// `P(-t <= T <= t)` of Student's t distribution.
fn student_t_within(t: f64, df: u32) -> f64 {
    let freedom = f64::from(df);
    let angle = libm::atan(t / freedom.sqrt());
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let odd = df % 2 == 1;
    let first = if odd { cosine } else { 1.0 };
    let (mut term, mut sum) = (first, 0.0);
    let mut k = if odd { 3 } else { 2 };
    while k <= df {
        sum += term;
        term *= cosine * cosine * (f64::from(k - 1) / f64::from(k));
        k += 2;
    }
    if odd { (angle + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_quantile_inverts_the_normal_distribution() {
        for k in 1..4_000 {
            let p = f64::from(k) / 4_000.0;
            let back = normal_below(normal_quantile(p));
            assert!((back - p).abs() < 1e-15, "{p} came back as {back}");
        }
        for exponent in 3..300 {
            let p = libm::pow(10.0, -f64::from(exponent));
            let back = normal_below(normal_quantile(p));
            assert!((back / p - 1.0).abs() < 1e-11, "{p} came back as {back}");
        }
    }

    #[test]
    fn the_normal_quantile_has_its_published_values() {
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-14);
        assert!((normal_quantile(0.99) - 2.326_347_874_040_841).abs() < 1e-14);
        assert_eq!(normal_quantile(0.5), 0.0);
    }

    #[test]
    fn the_t_quantile_has_its_tabled_values() {
        let table = [
            (0.975, 1, 12.706_204_736_174_7),
            (0.975, 2, 4.302_652_729_749_46),
            (0.975, 3, 3.182_446_305_283_71),
            (0.975, 7, 2.364_624_251_592_78),
            (0.975, 10, 2.228_138_851_986_27),
            (0.975, 30, 2.042_272_456_301_24),
            (0.995, 5, 4.032_142_983_555_23),
            (0.95, 4, 2.131_846_786_326_65),
        ];
        for (p, df, t) in table {
            assert!((student_t_quantile(p, df) - t).abs() < 2e-13 * t, "{p} {df}");
            assert_eq!(student_t_quantile(1.0 - p, df), -student_t_quantile(p, df));
        }
        assert_eq!(student_t_quantile(0.5, 9), 0.0);
        let normal = student_t_quantile(0.975, 1_000_000) - normal_quantile(0.975);
        assert!(normal > 0.0 && normal < 3e-6);
    }
}
