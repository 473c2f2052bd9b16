use headway_shared::digest::Digest;

use super::*;
use crate::kernel::math::digamma;
use crate::kernel::random::{Component, Key, Stream};
use crate::kernel::sampler::Distribution;

fn stream(entity: u64) -> Stream {
    Key::new(7, Digest::of(b"fits"), 0).stream(Component::Request, entity)
}

fn drawn(law: &Distribution, count: u64) -> Vec<f64> {
    (0..count).map(|at| law.sample(&mut stream(at), at)).collect()
}

fn of(values: &[f64], family: Family) -> Fit {
    fit_family(values, Unit::Seconds, Limits::default(), family).unwrap()
}

fn near(found: Parameter, [low, value, high]: [f64; 3]) {
    for (found, expected) in [(found.low, low), (found.value, value), (found.high, high)] {
        assert!((found / expected - 1.0).abs() < 1e-5, "{found} is not {expected}");
    }
}

#[test]
fn an_exponential_mean_has_its_chi_square_interval() {
    let values = [0.5, 1.0, 1.5, 2.0, 5.0, 0.5, 1.0, 1.5, 2.0, 5.0];
    let found = of(&values, Family::Exponential);
    // 40 / 31.4104 and 40 / 10.8508: chi-square with 20 degrees of freedom.
    near(found.parameters[0].1, [1.273_463, 2.0, 3.686_358]);
    assert_eq!((found.parameters[0].0, found.mean), ("mean_sec", found.parameters[0].1));
    assert_eq!(found.toml().unwrap(), "{ kind = \"exponential\", mean_sec = 2 }");
}

#[test]
fn a_lognormal_has_the_intervals_of_the_normal() {
    let values = [1.0, 2.0, 3.0, 4.0, 5.0].map(libm::exp);
    let found = of(&values, Family::LogNormal);
    // t = 2.131847 with 4 degrees of freedom; chi-square 9.487729 and 0.710723.
    let half = 2.131_847 * 0.5_f64.sqrt();
    near(found.parameters[0].1, [3.0 - half, 3.0, 3.0 + half].map(libm::exp));
    near(found.parameters[1].1, [1.026_642, 2.0_f64.sqrt(), 3.751_040]);
    assert_eq!(
        found.toml().unwrap(),
        "{ kind = \"lognormal\", median_sec = 20.0855, sigma = 1.41421 }"
    );
}

#[test]
fn a_uniform_law_ends_at_the_outermost_values() {
    let found = of(&[1.0, 1.5, 2.0, 2.5, 3.0], Family::Uniform);
    // 0.1^(-1/4) - 1 of the range.
    let beyond = 2.0 * 0.778_279_4;
    assert_eq!(found.parameters[0].1, Parameter { value: 1.0, low: 0.0, high: 1.0 });
    near(found.parameters[1].1, [3.0, 3.0, 3.0 + beyond]);
    near(found.mean, [2.0 - 0.5 * beyond, 2.0, 2.0 + 0.5 * beyond]);
}

#[test]
fn a_gamma_law_solves_its_equations() {
    let values = drawn(&Distribution::gamma(2.5, 4.0).unwrap(), 200);
    let found = of(&values, Family::Gamma);
    let [("shape", shape), ("mean_sec", mean)] = found.parameters[..] else { panic!("{found:?}") };
    let average = |of: fn(f64) -> f64| values.iter().map(|&value| of(value)).sum::<f64>() / 200.0;
    assert!((mean.value - average(|value| value)).abs() < 1e-12);
    let left = libm::log(shape.value) - digamma(shape.value);
    assert!((left - (libm::log(mean.value) - average(libm::log))).abs() < 1e-12);
    assert!(shape.holds(2.5) && mean.holds(4.0));
}

#[test]
fn a_pareto_law_begins_at_its_smallest_value() {
    let values = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7].map(|log| 2.0 * libm::exp(log));
    let found = of(&values, Family::Pareto);
    // 8 / 2.8; gamma quantiles of shape 7 are half of chi-square's 6.570631 and 23.684791.
    near(found.parameters[1].1, [3.285_316 / 2.8, 8.0 / 2.8, 11.842_395 / 2.8]);
    assert!((found.parameters[0].1.high - 2.0).abs() < 1e-12);
    assert!((found.mean.value - 2.0 * 8.0 / 5.2).abs() < 1e-9);
}

#[test]
fn what_is_always_the_same_is_constant_to_the_nanosecond() {
    let found = fit(&[2.5, 2.500_000_001, 2.5, 2.5], Unit::Seconds).unwrap();
    assert_eq!((found.family, found.parameters[0].0), (Family::Constant, "sec"));
    assert!(found.mean.holds(2.5));
    assert_eq!(found.toml().unwrap(), "{ kind = \"constant\", sec = 2.5 }");
    let once = fit(&[512.0], Unit::Count).unwrap();
    assert_eq!(once.toml().unwrap(), "{ kind = \"constant\", value = 512 }");
    assert_eq!(fit(&[0.0; 9], Unit::Seconds).unwrap().family, Family::Constant);
}

#[test]
fn zeros_leave_the_families_that_can_have_them() {
    let mut values = drawn(&Distribution::exponential(2.0).unwrap(), 100);
    values[3] = 0.0;
    let found = fit(&values, Unit::Seconds).unwrap();
    assert_eq!(found.family, Family::Exponential);
    let impossible = fit_family(&values, Unit::Seconds, Limits::default(), Family::LogNormal);
    assert!(matches!(impossible, Err(FitError::Impossible { family: "lognormal", .. })));
}

#[test]
fn what_no_family_has_stays_a_column() {
    // Two humps: half of the values about 1, half about 9.
    let values: Vec<f64> = (0..200)
        .map(|at| stream(at).normal() * 0.3 + if at % 2 == 0 { 1.5 } else { 9.0 })
        .collect();
    let found = fit(&values, Unit::Seconds).unwrap();
    assert_eq!((found.family, found.toml()), (Family::Empirical, None));
    assert!(found.mean.holds(5.25) && found.parameters.is_empty());
    assert!(found.candidates.iter().all(Candidate::is_rejected), "{found:?}");
}

#[test]
fn a_small_misfit_of_many_values_is_none() {
    // Rounded to tenths: by its p-value no law has these, though none would be noticed to differ.
    let values: Vec<f64> = drawn(&Distribution::gamma(4.0, 8.0).unwrap(), 20_000)
        .iter()
        .map(|value| libm::floor(value * 10.0 + 0.5) / 10.0)
        .collect();
    let found = fit(&values, Unit::Seconds).unwrap();
    assert_eq!(found.family, Family::Gamma);
    assert!(found.p_value < LEAST_P && found.ks < MOST_DISTANCE, "{found:?}");
}

#[test]
fn a_few_different_counts_need_no_law() {
    let values: Vec<f64> = (0..60).map(|at| if at % 3 == 0 { 2.0 } else { 1.0 }).collect();
    assert_eq!(fit(&values, Unit::Count).unwrap().family, Family::Empirical);
}

#[test]
fn counts_with_zeros_are_those_of_a_rounded_law() {
    let law = Distribution::lognormal_median_sigma(1.2, 0.7).unwrap();
    let values: Vec<f64> =
        drawn(&law, 3_000).iter().map(|value| libm::floor(value + 0.5)).collect();
    assert!(values.contains(&0.0));
    let found = fit(&values, Unit::Count).unwrap();
    assert_eq!((found.family, found.parameters[0].0), (Family::LogNormal, "median"));
    assert!((found.parameters[0].1.value - 1.2).abs() < 0.05, "{found:?}");
    assert!((found.parameters[1].1.value - 0.7).abs() < 0.03);
    assert!((found.mean.value - law.mean()).abs() < 0.05);
}

#[test]
fn a_limit_that_cuts_counts_does_not_shorten_the_law() {
    let law = Distribution::lognormal_median_sigma(800.0, 0.9).unwrap();
    let values: Vec<f64> =
        drawn(&law, 1_000).iter().map(|value| libm::floor(value + 0.5).min(1_024.0)).collect();
    let limits = Limits { at_most: Some(1_024), ..Limits::default() };
    let found = fit_within(&values, Unit::Count, limits).unwrap();
    assert_eq!(found.family, Family::LogNormal);
    assert!(found.parameters[0].1.holds(800.0) && found.parameters[1].1.holds(0.9), "{found:?}");
}

#[test]
fn what_is_no_measurement_is_an_error() {
    let of = |values: &[f64], unit| fit(values, unit).unwrap_err();
    assert_eq!(of(&[1.0, -2.0], Unit::Seconds), FitError::NotASize { index: 1, value: -2.0 });
    assert!(matches!(of(&[f64::NAN], Unit::Seconds), FitError::NotASize { index: 0, .. }));
    assert!(matches!(of(&[f64::INFINITY], Unit::Seconds), FitError::NotASize { .. }));
    assert_eq!(of(&[1.0, 2.5], Unit::Count), FitError::NotWhole { index: 1, value: 2.5 });
    let few = of(&[1.0, 2.0, 3.0], Unit::Seconds);
    assert_eq!(few.to_string(), "3 values, of which at least 5 are needed");
    assert_eq!(of(&[], Unit::Count), FitError::TooFew { of: "values", found: 0, needed: 1 });
}

#[test]
fn a_fitted_law_draws_what_it_was_fitted_to() {
    let law = Distribution::gamma(3.0, 5.0).unwrap();
    let found = fit(&drawn(&law, 2_000), Unit::Seconds).unwrap();
    let [(_, shape), (_, mean)] = found.parameters[..] else { panic!("{found:?}") };
    let again = Distribution::gamma(shape.value, mean.value).unwrap();
    assert!((again.mean() - law.mean()).abs() < 0.2);
    assert!(found.p_value > LEAST_P && found.ks < 0.03, "{found:?}");
}

#[test]
fn t_goes_on_beyond_its_sums() {
    let (sum, series) = (student_t_quantile(UPPER, 1_000), t_upper(1_000.1));
    assert!((sum - series).abs() < 2e-7, "{sum} {series}");
    assert!((t_upper(1e9) - normal_quantile(UPPER)).abs() < 1e-8);
}

#[test]
fn an_interval_holds_its_value() {
    let found = Parameter::new(1.0, 1.1, 1.2);
    assert!(found.holds(1.0) && found.holds(1.2) && !found.holds(1.3));
    assert_eq!(Parameter::new(-1.0, -2.0, 3.0).not_negative(), Parameter::new(0.0, 0.0, 3.0));
}
