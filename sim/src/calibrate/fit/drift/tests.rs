use headway_shared::digest::Digest;

use super::*;
use crate::kernel::random::{Component, Key};

fn truth(floor: f64, a: f64, p: f64, k: u32) -> f64 {
    floor + a * libm::pow(f64::from(k), p)
}

/// Probes every 10 steps without noise; `a` falls to a fifth at step 150.
fn exact(floor: f64) -> Vec<ProbePoint> {
    falling(floor, 15)
}

/// `a` falls at this probe.
fn falling(floor: f64, at: u32) -> Vec<ProbePoint> {
    let point = |probe: u32, k: u32| {
        let a = if probe < at { 0.01 } else { 0.002 };
        ProbePoint {
            step: 10 * probe,
            k,
            log_square: truth(floor, a, 1.6, k),
            tokens: 1_000.0 + f64::from(probe),
        }
    };
    (0..30).flat_map(|probe| (0..16).map(move |k| point(probe, k))).collect()
}

#[test]
fn exact_probes_give_their_law_back() {
    let found = drift(&exact(0.0009)).unwrap();
    assert!((found.sigma0.value - 0.03).abs() < 1e-6, "{found:?}");
    assert!((found.a.value - 0.01).abs() < 1e-6);
    assert!((found.p.value - 1.6).abs() < 1e-5);
    let [window] = found.windows[..] else { panic!("{found:?}") };
    assert_eq!((window.from_step, window.probes, found.probes), (150, 15, 30));
    assert!((window.a.value - 0.002).abs() < 1e-7);
}

#[test]
fn a_stretch_begins_where_the_values_change() {
    for at in 7..=23 {
        let found = drift(&falling(0.0009, at)).unwrap();
        let begins: Vec<u32> = found.windows.iter().map(|window| window.from_step).collect();
        assert_eq!(begins, [10 * at]);
    }
}

#[test]
fn one_process_of_one_precision_has_no_floor() {
    let found = drift(&exact(0.0)).unwrap();
    assert_eq!(found.sigma0, Parameter::exact(0.0));
    assert!((found.p.value - 1.6).abs() < 1e-5 && (found.a.value - 0.01).abs() < 1e-6);
}

#[test]
fn a_policy_that_does_not_move_leaves_the_floor() {
    let stream = &mut Key::new(1, Digest::of(b"floor"), 0).stream(Component::Step, 0);
    let points: Vec<ProbePoint> = (0..20)
        .flat_map(|probe| {
            let level = 0.001 * (1.0 + 0.1 * stream.normal());
            (0..16).map(move |k| ProbePoint { step: probe, k, log_square: level, tokens: 500.0 })
        })
        .collect();
    let found = drift(&points).unwrap();
    assert!(found.windows.is_empty());
    assert!(found.sigma0.holds(0.001_f64.sqrt()), "{found:?}");
    assert!(found.a.value < 1e-6 && found.a.low == 0.0, "{found:?}");
}

#[test]
fn probes_that_tell_nothing_are_an_error() {
    let few: Vec<_> = exact(0.0).into_iter().filter(|point| point.step < 40).collect();
    assert!(matches!(drift(&few), Err(FitError::TooFew { found: 4, needed: 5, .. })));
    let near: Vec<_> = exact(0.0).into_iter().filter(|point| point.k < 2).collect();
    assert!(matches!(drift(&near), Err(FitError::Undetermined(_))));
    let still: Vec<_> =
        exact(0.0).into_iter().map(|point| ProbePoint { log_square: 0.0, ..point }).collect();
    assert!(matches!(drift(&still), Err(FitError::Undetermined(_))));
    let mut broken = exact(0.0);
    broken[7].log_square = f64::NAN;
    assert!(matches!(drift(&broken), Err(FitError::NotASize { index: 7, .. })));
}

/// Four stretches of 12 probes, whose powers and levels are these; each value is off by this much.
fn of_powers(powers: [f64; 4], noise: f64) -> Vec<ProbePoint> {
    let point = |probe: u32, k: u32| {
        let stretch = (probe / 12) as usize;
        let a = [0.01, 0.001, 0.0001, 0.00001][stretch];
        let normal = Key::new(3, Digest::of(b"powers"), 0)
            .stream(Component::Step, u64::from(probe * 16 + k))
            .normal();
        let log_square = truth(0.0, a, powers[stretch], k) * libm::exp(noise * normal);
        ProbePoint { step: 10 * probe, k, log_square, tokens: 1_000.0 }
    };
    (0..48).flat_map(|probe| (0..16).map(move |k| point(probe, k))).collect()
}

#[test]
fn stretches_that_grow_otherwise_have_powers_of_their_own() {
    let powers = [1.8, 1.4, 1.7, 1.5];
    let found = drift(&of_powers(powers, 0.1)).unwrap();
    let stretches: Vec<(u32, f64, f64)> = found.stretches().collect();
    assert_eq!(stretches.len(), 4, "{found:?}");
    for ((_, _, p), truth) in stretches.into_iter().zip(powers) {
        assert!((p - truth).abs() < 0.03, "{p} {truth}");
    }
}

#[test]
fn stretches_that_grow_alike_have_one_power() {
    let found = drift(&of_powers([1.6; 4], 0.0)).unwrap();
    assert_eq!(found.windows.len(), 3);
    assert!(found.windows.iter().all(|window| window.p.is_none()), "{found:?}");
    assert!((found.p.value - 1.6).abs() < 1e-5);
}

/// One stretch of 200 probes, one each step, whose logarithms are those of this process.
fn of_correlation(correlation: f64, seed: u64) -> Vec<ProbePoint> {
    let key = Key::new(seed, Digest::of(b"correlation"), 0);
    let mut normal = 0.0;
    let mut points = Vec::new();
    for step in 0..200 {
        let own = key.stream(Component::Step, u64::from(step)).normal();
        normal = correlation * normal + libm::sqrt(1.0 - correlation * correlation) * own;
        points.extend((0..4).map(|k| ProbePoint {
            step,
            k,
            log_square: truth(0.0, 0.01, 1.6, k) * libm::exp(0.5 * normal),
            tokens: 200.0,
        }));
    }
    points
}

#[test]
fn steps_that_move_alike_for_a_while_are_told_from_independent_ones() {
    let mean = |correlation: f64| {
        let of = |seed| drift(&of_correlation(correlation, seed)).unwrap().step_correlation;
        (1..=20).map(of).sum::<f64>() / 20.0
    };
    let (none, alike) = (mean(0.0), mean(0.8));
    assert!(none < 0.2, "{none}");
    // What is alike for longer is cut into stretches.
    assert!((0.3..0.9).contains(&alike), "{alike}");
}
