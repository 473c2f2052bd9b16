//! Samplers keep their values for ever, and have the moments of their laws.

use headway_shared::digest::Digest;
use headway_sim::kernel::random::{Component, Key, Stream};
use headway_sim::kernel::sampler::{Distribution, DistributionError};
use headway_sim::stats::{mean, variance};

fn stream(entity: u64) -> Stream {
    Key::new(42, Digest::of(b"samplers"), 7).stream(Component::Request, entity)
}

fn laws() -> [(&'static str, Distribution); 8] {
    let rows = [3.0, 1.0, 4.0, 1.0, 5.0];
    [
        ("constant", Distribution::constant(2.5).unwrap()),
        ("uniform", Distribution::uniform(1.0, 4.0).unwrap()),
        ("exponential", Distribution::exponential(3.0).unwrap()),
        ("lognormal", Distribution::lognormal_median_p99(18.0, 60.0).unwrap()),
        ("gamma", Distribution::gamma(2.5, 4.0).unwrap()),
        ("bursty gamma", Distribution::gamma(0.4, 4.0).unwrap()),
        ("pareto", Distribution::pareto(2.0, 4.5).unwrap()),
        ("empirical", Distribution::empirical(rows.into()).unwrap()),
    ]
}

#[test]
fn values_are_pinned_to_the_bit() {
    assert_eq!(stream(0).bits(), 0x7a89_14f8_a6c1_4df1);
    let pinned = [
        [0x4004_0000_0000_0000, 0x4004_0000_0000_0000],
        [0x4003_7cd9_f74f_a21f, 0x3ff7_718f_52cc_37ca],
        [0x4001_aec1_ca53_3c2c, 0x4016_5dbd_2d7e_d425],
        [0x4031_8216_e720_da52, 0x4025_4a64_f060_70c5],
        [0x400a_bca6_abcd_c5c0, 0x3ff9_56c8_daf6_b01d],
        [0x3fe2_92a5_371c_cd00, 0x3fdf_7814_77bd_a91c],
        [0x4002_d8a7_7e01_decb, 0x4008_35d4_66ee_f843],
        [0x4010_0000_0000_0000, 0x4008_0000_0000_0000],
    ];
    for ((name, law), pinned) in laws().into_iter().zip(pinned) {
        let drawn = [0, 1].map(|entity| law.sample(&mut stream(entity), entity).to_bits());
        assert_eq!(drawn, pinned, "{name}");
    }
}

#[test]
fn each_law_has_its_mean_and_variance() {
    let pareto = 4.0 * 4.5 / (3.5 * 3.5 * 2.5);
    let sigma = libm::log(60.0 / 18.0) / 2.326_347_874_040_841;
    let squared = libm::exp(sigma * sigma);
    let lognormal = 18.0 * 18.0 * squared * (squared - 1.0);
    let variances = [0.0, 0.75, 9.0, lognormal, 6.4, 40.0, pareto, 2.56];
    for ((name, law), expected) in laws().into_iter().zip(variances) {
        let values: Vec<f64> =
            (0..200_000).map(|entity| law.sample(&mut stream(entity), entity)).collect();
        let (found, spread) = (mean(&values).unwrap(), variance(&values).unwrap());
        let error = (expected / values.len() as f64).sqrt();
        assert!((found - law.mean()).abs() <= 3.0 * error, "{name}: mean {found}");
        assert!((spread - expected).abs() <= 0.05 * expected, "{name}: variance {spread}");
        let within = values.iter().all(|value| (law.min()..=law.max()).contains(value));
        assert!(within, "{name}: a value outside its bounds");
    }
}

#[test]
fn the_normal_has_the_moments_of_the_normal() {
    let mut stream = stream(0);
    let values: Vec<f64> = (0..400_000).map(|_| stream.normal()).collect();
    let moment = |power: usize| {
        let powers: Vec<f64> =
            values.iter().map(|value| (0..power).fold(1.0, |product, _| product * value)).collect();
        mean(&powers).unwrap()
    };
    assert!(moment(1).abs() < 0.005);
    assert!((moment(2) - 1.0).abs() < 0.01);
    assert!(moment(3).abs() < 0.02);
    assert!((moment(4) - 3.0).abs() < 0.06);
}

#[test]
fn half_of_a_lognormal_lies_below_its_median_and_99_of_100_below_its_p99() {
    let law = Distribution::lognormal_median_p99(18.0, 60.0).unwrap();
    let share = |bound: f64| {
        let below = (0..100_000).filter(|&at| law.sample(&mut stream(at), at) <= bound).count();
        below as f64 / 100_000.0
    };
    assert!((share(18.0) - 0.5).abs() < 0.005);
    assert!((share(60.0) - 0.99).abs() < 0.001);
}

#[test]
fn a_lognormal_by_mean_has_this_mean() {
    let law = Distribution::lognormal_mean_sigma(1.0, 1.2).unwrap();
    assert!((law.mean() - 1.0).abs() < 1e-12);
}

#[test]
fn a_replayed_row_belongs_to_its_entity_whatever_was_drawn_before() {
    let law = Distribution::replay([10.0, 20.0, 30.0].into()).unwrap();
    let mut stream = stream(0);
    let forward: Vec<f64> = (0..5).map(|entity| law.sample(&mut stream, entity)).collect();
    stream.bits();
    let mut backward: Vec<f64> = (0..5).rev().map(|at| law.sample(&mut stream, at)).collect();
    backward.reverse();
    assert_eq!(forward, [10.0, 20.0, 30.0, 10.0, 20.0]);
    assert_eq!(forward, backward);
}

#[test]
fn an_impossible_law_names_its_parameter() {
    let message =
        |found: Result<Distribution, DistributionError>| found.map_err(|error| error.parameter);
    assert_eq!(message(Distribution::constant(-1.0)), Err("value"));
    assert_eq!(message(Distribution::constant(f64::NAN)), Err("value"));
    assert_eq!(message(Distribution::uniform(2.0, 1.0)), Err("max"));
    assert_eq!(message(Distribution::exponential(0.0)), Err("mean"));
    assert_eq!(message(Distribution::lognormal_median_p99(60.0, 18.0)), Err("p99"));
    assert_eq!(message(Distribution::lognormal_mean_sigma(1.0, f64::INFINITY)), Err("sigma"));
    assert_eq!(message(Distribution::gamma(0.0, 1.0)), Err("shape"));
    assert_eq!(message(Distribution::pareto(1.0, 1.0)), Err("alpha"));
    assert_eq!(message(Distribution::empirical([].into())), Err("values"));
    assert_eq!(message(Distribution::replay([1.0, -2.0].into())), Err("values"));
}
