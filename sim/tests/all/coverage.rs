//! 90% intervals hold the truth in 86% to 94% of 400 synthetic data sets, for every parameter; the
//! simulator's own samplers draw them. `--nocapture` prints the table.

use headway_shared::digest::Digest;
use headway_sim::calibrate::fit::{
    Family, Fit, Limits, Parameter, ProbePoint, Unit, drift, fit, fit_family, line, plane, rate,
    share,
};
use headway_sim::drift::{Stretch, Tokens};
use headway_sim::kernel::random::{Component, Key, Stream};
use headway_sim::kernel::sampler::{Distribution, DistributionError};
use rayon::prelude::*;

const SETS: u64 = 400;
const BAND: std::ops::RangeInclusive<f64> = 0.86..=0.94;

fn stream(seed: u64, entity: u64) -> Stream {
    Key::new(seed, Digest::of(b"coverage"), 0).stream(Component::Request, entity)
}

/// In how many of the data sets each interval holds its truth.
fn coverage(
    of: impl Fn(u64) -> Vec<(&'static str, Parameter, f64)> + Send + Sync,
) -> Vec<(&'static str, f64)> {
    let sets: Vec<_> = (1..=SETS).into_par_iter().map(of).collect();
    let names: Vec<_> = sets[0].iter().map(|(name, ..)| *name).collect();
    let held = |at: usize| {
        sets.iter().filter(|set| set[at].1.holds(set[at].2)).count() as f64 / SETS as f64
    };
    names.into_iter().enumerate().map(|(at, name)| (name, held(at))).collect()
}

/// Prints a row of the table, and says what is outside the band.
fn outside(
    title: &str,
    of: impl Fn(u64) -> Vec<(&'static str, Parameter, f64)> + Send + Sync,
) -> Vec<String> {
    let found = coverage(of);
    let row = |(name, held): &(&str, f64)| format!("{title} {name}: {:.1}%", 100.0 * held);
    found.iter().for_each(|cell| println!("{}", row(cell)));
    found.iter().filter(|(_, held)| !BAND.contains(held)).map(row).collect()
}

fn values(law: &Distribution, seed: u64, count: u64, unit: Unit) -> Vec<f64> {
    let value = |at| law.sample(&mut stream(seed, at), at);
    let rounded = |at| match unit {
        Unit::Seconds => value(at),
        Unit::Count => libm::floor(value(at) + 0.5),
    };
    (0..count).map(rounded).collect()
}

struct Case {
    title: &'static str,
    law: Result<Distribution, DistributionError>,
    family: Family,
    unit: Unit,
    count: u64,
    limits: Limits,
    /// In the order of the fit's parameters.
    truths: [f64; 2],
}

impl Case {
    fn new(
        title: &'static str,
        law: Result<Distribution, DistributionError>,
        family: Family,
        count: u64,
        truths: [f64; 2],
    ) -> Self {
        let (unit, limits) = (Unit::Seconds, Limits::default());
        Self { title, law, family, unit, count, limits, truths }
    }

    fn counts(self) -> Self {
        Self { unit: Unit::Count, ..self }
    }

    fn outside(&self) -> Vec<String> {
        let law = self.law.clone().unwrap();
        outside(self.title, |seed| {
            let mut values = values(&law, seed, self.count, self.unit);
            let least = self.limits.at_least.map_or(0.0, f64::from);
            let most = self.limits.at_most.map_or(f64::INFINITY, f64::from);
            values.iter_mut().for_each(|value| *value = value.clamp(least, most));
            let Fit { parameters, mean, .. } =
                fit_family(&values, self.unit, self.limits, self.family).unwrap();
            let named = parameters.into_iter().zip(self.truths);
            let mean = ("mean", mean, law.mean());
            named.map(|((key, found), truth)| (key, found, truth)).chain([mean]).collect()
        })
    }
}

fn assert_none(outside: &[String]) {
    assert!(outside.is_empty(), "outside 86% to 94%: {outside:#?}");
}

#[test]
fn intervals_of_laws_of_times_hold_the_truth_as_often_as_they_say() {
    let cases = [
        Case::new("exponential", Distribution::exponential(3.0), Family::Exponential, 40, [3.0; 2]),
        Case::new("uniform", Distribution::uniform(1.0, 4.0), Family::Uniform, 40, [1.0, 4.0]),
        Case::new(
            "lognormal",
            Distribution::lognormal_median_sigma(18.0, 0.8),
            Family::LogNormal,
            40,
            [18.0, 0.8],
        ),
        Case::new("gamma", Distribution::gamma(2.5, 4.0), Family::Gamma, 40, [2.5, 4.0]),
        Case::new("bursty gamma", Distribution::gamma(0.4, 4.0), Family::Gamma, 60, [0.4, 4.0]),
        Case::new("even gamma", Distribution::gamma(400.0, 2.0), Family::Gamma, 25, [400.0, 2.0]),
        Case::new("pareto", Distribution::pareto(2.0, 3.0), Family::Pareto, 60, [2.0, 3.0]),
    ];
    assert_none(&cases.iter().flat_map(Case::outside).collect::<Vec<_>>());
}

#[test]
fn intervals_of_laws_of_counts_hold_what_was_rounded() {
    let lognormal =
        |median, sigma| (Distribution::lognormal_median_sigma(median, sigma), [median, sigma]);
    let (small, of_small) = lognormal(2.0, 0.8);
    let (large, of_large) = lognormal(300.0, 0.5);
    let (cut, of_cut) = lognormal(4.0, 1.0);
    let limits = Limits { at_least: Some(1), at_most: Some(9) };
    let cases = [
        Case::new(
            "rounded exponential",
            Distribution::exponential(2.0),
            Family::Exponential,
            80,
            [2.0; 2],
        ),
        Case::new("rounded lognormal", small, Family::LogNormal, 100, of_small),
        Case::new("long lognormal", large, Family::LogNormal, 50, of_large),
        Case { limits, ..Case::new("cut lognormal", cut, Family::LogNormal, 150, of_cut) },
        Case::new(
            "rounded uniform",
            Distribution::uniform(2.7, 8.2),
            Family::Uniform,
            150,
            [2.7, 8.2],
        ),
        Case::new("rounded gamma", Distribution::gamma(2.0, 3.0), Family::Gamma, 100, [2.0, 3.0]),
        Case::new(
            "rounded pareto",
            Distribution::pareto(2.8, 3.0),
            Family::Pareto,
            150,
            [2.8, 3.0],
        ),
    ];
    assert_none(&cases.into_iter().flat_map(|case| case.counts().outside()).collect::<Vec<_>>());
}

#[test]
fn the_ends_of_a_law_of_long_counts_are_held_at_least_as_often() {
    let (min, max) = (100.0, 900.0);
    let law = Distribution::uniform(min, max).unwrap();
    let held = coverage(|seed| {
        let values = values(&law, seed, 40, Unit::Count);
        let found = fit_family(&values, Unit::Count, Limits::default(), Family::Uniform).unwrap();
        let [(first, least), (second, most)] = found.parameters[..] else { panic!() };
        vec![(first, least, min), (second, most, max), ("mean", found.mean, law.mean())]
    });
    println!("long uniform: {held:?}");
    assert!(held.iter().all(|(_, held)| *held >= *BAND.start()), "{held:?}");
}

#[test]
fn intervals_of_lines_hold_the_truth_whether_or_not_errors_grow() {
    let points = |seed: u64, error: fn(f64) -> f64| {
        let point = |at| {
            let mut stream = stream(seed, at);
            let x = 200.0 + 3_000.0 * stream.uniform();
            (x, 2.5 + 0.004 * x + error(x) * stream.normal())
        };
        (0..40).map(point).unzip::<f64, f64, Vec<_>, Vec<_>>()
    };
    let of = |error: fn(f64) -> f64| {
        move |seed| {
            let (xs, ys) = points(seed, error);
            let found = line(&xs, &ys).unwrap();
            vec![("base", found.base, 2.5), ("slope", found.slope, 0.004)]
        }
    };
    let mut outside_all = outside("line", of(|_| 0.5));
    outside_all.extend(outside("line of growing errors", of(|x| 0.0004 * x)));
    outside_all.extend(outside("plane", |seed| {
        // Decoding: n tokens beside b sequences, each token's time off by as much.
        let (mut tokens, mut both, mut times) = (Vec::new(), Vec::new(), Vec::new());
        for at in 0..40 {
            let mut stream = stream(seed, at);
            let n = libm::floor(50.0 + 900.0 * stream.uniform());
            let b = libm::floor(1.0 + 30.0 * stream.uniform());
            tokens.push(n);
            both.push(n * b);
            times.push(n * (0.02 + 0.0005 * b) + 0.01 * n.sqrt() * stream.normal());
        }
        let weights: Vec<f64> = tokens.iter().map(|n| 1.0 / n).collect();
        let found = plane(&tokens, &both, &times, &weights).unwrap();
        vec![("base", found.first, 0.02), ("per sequence", found.second, 0.0005)]
    }));
    assert_none(&outside_all);
}

#[test]
fn intervals_of_shares_and_rates_hold_the_truth_on_average() {
    let shares = |from: f64, to: f64| {
        move |seed| {
            let mut stream = stream(seed, 0);
            let truth = from + (to - from) * stream.uniform();
            let hits = (0..80).filter(|_| stream.chance(truth)).count();
            vec![("share", share(hits as u64, 80), truth)]
        }
    };
    let mut outside_all = outside("all shares", shares(0.0, 1.0));
    outside_all.extend(outside("small shares", shares(0.01, 0.1)));
    outside_all.extend(outside("rates", |seed| {
        let mut stream = stream(seed, 1);
        let (hours, truth) = (4.0, 10.0 * stream.uniform());
        let mut time = stream.exponential() / truth;
        let mut events = 0;
        while time < hours {
            events += 1;
            time += stream.exponential() / truth;
        }
        vec![("per hour", rate(events, hours), truth)]
    }));
    assert_none(&outside_all);
}

const TOKENS: Tokens = Tokens { entropy: 0.5, tail: 1.0, tail_fade: 0.0 };
const DRIFT: [Stretch; 2] = [
    Stretch { from_step: 0, sigma0: 0.03, a: 0.01, p: 1.5, kept: 1.0, tokens: TOKENS },
    Stretch { from_step: 240, sigma0: 0.03, a: 0.001, p: 1.5, kept: 1.0, tokens: TOKENS },
];
const DISTANCES: usize = 16;

/// The factor of the covariance of fractional Brownian motion at 1, 2, ...
fn path_factor(law: &Stretch) -> Vec<Vec<f64>> {
    let mut factor: Vec<Vec<f64>> = Vec::new();
    for row in 1..DISTANCES {
        let s = row as f64;
        let mut line: Vec<f64> = Vec::new();
        for (column, other) in factor.iter().enumerate() {
            let t = (column + 1) as f64;
            let common = 0.5 * (law.moved(s) + law.moved(t) - law.moved(s - t));
            let known = line.iter().zip(other).fold(0.0, |sum, (left, right)| sum + left * right);
            line.push((common - known) / other[column]);
        }
        let known = line.iter().fold(0.0, |sum, part| sum + part * part);
        line.push((law.moved(s) - known).sqrt());
        factor.push(line);
    }
    factor
}

/// A probe: tokens that move along paths of their own, some more than others, on a step that moved
/// more or less than the average one.
fn probe(step: u32, law: &Stretch, factor: &[Vec<f64>], mut stream: Stream) -> Vec<ProbePoint> {
    const COUNT: usize = 64;
    let level = libm::exp(0.3 * stream.normal() - 0.045);
    let mut squares = [0.0; DISTANCES];
    for _ in 0..COUNT {
        let surprise = TOKENS.entropy * stream.exponential();
        let scale = TOKENS.raw_scale(-libm::expm1(-surprise)) / TOKENS.norm();
        let floor = law.sigma0 * stream.normal();
        let normals = [0; DISTANCES - 1].map(|_| stream.normal());
        let moved = |k: usize| match k {
            0 => 0.0,
            k => factor[k - 1].iter().zip(normals).fold(0.0, |sum, (part, z)| sum + part * z),
        };
        for (k, square) in squares.iter_mut().enumerate() {
            let log = scale * (floor + level.sqrt() * moved(k));
            *square += log * log / COUNT as f64;
        }
    }
    let point = |(k, &log_square): (usize, &f64)| ProbePoint {
        step,
        k: k as u32,
        log_square,
        tokens: COUNT as f64,
    };
    squares.iter().enumerate().map(point).collect()
}

#[test]
fn intervals_of_drift_hold_the_truth_though_probes_are_correlated() {
    let factors = DRIFT.map(|law| path_factor(&law));
    let of = |seed| {
        let law = |step: u32| usize::from(step >= DRIFT[1].from_step);
        let points: Vec<ProbePoint> = (0..48)
            .map(|at| 10 * at)
            .flat_map(|step| {
                let law = law(step);
                probe(step, &DRIFT[law], &factors[law], stream(seed, u64::from(step)))
            })
            .collect();
        let found = drift(&points).unwrap();
        let late = found.windows.iter().rfind(|window| window.from_step <= DRIFT[1].from_step);
        vec![
            ("sigma0", found.sigma0, DRIFT[0].sigma0),
            ("p", found.p, DRIFT[0].p),
            ("a", found.a, DRIFT[0].a),
            ("later a", late.unwrap().a, DRIFT[1].a),
        ]
    };
    assert_none(&outside("drift", of));
}

#[test]
fn the_family_of_a_few_hundred_values_is_found() {
    let laws = [
        (Family::Exponential, Distribution::exponential(3.0)),
        (Family::Uniform, Distribution::uniform(1.0, 4.0)),
        (Family::LogNormal, Distribution::lognormal_median_sigma(18.0, 0.8)),
        (Family::Gamma, Distribution::gamma(2.5, 4.0)),
        (Family::Pareto, Distribution::pareto(2.0, 3.0)),
    ];
    for (family, law) in laws {
        let law = law.unwrap();
        let found = |seed: &u64| {
            fit(&values(&law, *seed, 300, Unit::Seconds), Unit::Seconds).unwrap().family == family
        };
        let right = (1..=100_u64).into_par_iter().filter(found).count();
        println!("{family:?}: {right} of 100");
        assert!(right >= 90, "{family:?}: {right} of 100");
    }
}

#[test]
fn p_values_are_as_often_small_as_they_say() {
    let laws = [
        (Family::Exponential, Distribution::exponential(3.0)),
        (Family::Uniform, Distribution::uniform(1.0, 4.0)),
        (Family::LogNormal, Distribution::lognormal_median_sigma(18.0, 0.8)),
        (Family::Gamma, Distribution::gamma(0.2, 4.0)),
        (Family::Gamma, Distribution::gamma(5.0, 4.0)),
        (Family::Pareto, Distribution::pareto(2.0, 3.0)),
    ];
    for (family, law) in laws {
        let law = law.unwrap();
        let of = |seed| {
            let values = values(&law, seed, 60, Unit::Seconds);
            fit_family(&values, Unit::Seconds, Limits::default(), family).unwrap().p_value
        };
        let found: Vec<f64> = (1..=1_000_u64).into_par_iter().map(of).collect();
        let below = |p: f64| found.iter().filter(|found| **found < p).count() as f64 / 1_000.0;
        println!("{family:?}: {:?}", [0.5, 0.1, 0.01].map(below));
        assert!((below(0.5) - 0.5).abs() < 0.05, "{family:?}: {}", below(0.5));
        assert!((below(0.1) - 0.1).abs() < 0.03, "{family:?}: {}", below(0.1));
        assert!(below(0.01) <= 0.02, "{family:?}: {}", below(0.01));
    }
}
