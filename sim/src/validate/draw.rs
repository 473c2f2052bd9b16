//! Fitted numbers, drawn from what is known of them.

use headway_shared::config::Diagnostics;
use headway_shared::digest::Digest;

use crate::drift::Stretch;
use crate::kernel::math::normal_quantile;
use crate::kernel::random::{Component, Key, Stream};
use crate::scenario::{Parameter, Scenario};

/// Standard deviations from the middle to either end of a 90% interval.
const ENDS: f64 = 1.644_853_626_951_472_7;

/// How much of its distance from the estimate a draw keeps, where the whole of it is no value that
/// a key can have.
const NEARER: [f64; 4] = [1.0, 0.5, 0.25, 0.0];

/// One replication's place in the law of every parameter, in standard deviations.
pub(super) type Place = Vec<f64>;

/// The places of `replications`, for `parameters` parameters.
///
/// A Latin hypercube (McKay, Beckman and Conover, *Technometrics* 21, 1979): each parameter's law is cut
/// into as many parts of equal probability as there are replications, and each replication has one
/// of them, in an order of the parameter's own. So a few replications cover every law.
pub(super) fn places(seed: u64, parameters: usize, replications: u32) -> Vec<Place> {
    let key = Key::new(seed, Digest::new(), 0);
    let mut places = vec![Vec::with_capacity(parameters); replications as usize];
    for parameter in 0..parameters {
        let mut stream = key.stream(Component::Parameter, parameter as u64);
        for (place, part) in places.iter_mut().zip(order(replications, &mut stream)) {
            let share = (f64::from(part) + stream.uniform()) / f64::from(replications);
            place.push(normal_quantile(share));
        }
    }
    places
}

/// The numbers below `count` in a random order (Fisher and Yates).
fn order(count: u32, stream: &mut Stream) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, stream.below(last as u64 + 1) as usize);
    }
    order
}

/// The value at a place of a parameter's law: log-normal to either side of the estimate, its
/// interval between the 5th and the 95th percentile; normal where an end is not above 0.
fn value(parameter: &Parameter, place: f64) -> f64 {
    let Parameter { value, low, high, .. } = *parameter;
    let (end, share) = if place < 0.0 { (low, -place / ENDS) } else { (high, place / ENDS) };
    if low > 0.0 {
        return value * libm::exp(share * libm::log(end / value));
    }
    let drawn = value + share * (end - value);
    // What cannot be negative in its interval is not negative beyond it.
    if low == 0.0 { drawn.max(0.0) } else { drawn }
}

/// As near as the number can be: a power of the drift lies from 1 to 2, and is often known so little that a
/// draw of it does not. It would draw all others back with it.
fn possible(key: &str, value: f64) -> f64 {
    let power = key == "world.drift.p" || (key.starts_with(WINDOWS) && key.ends_with(".p"));
    if power { value.clamp(1.0, 2.0) } else { value }
}

/// The scenario with its fitted numbers at these places of what is known of them, and `set` over all.
/// Nearer to the estimates, where a draw is outside of what a key can be.
///
/// # Errors
/// What is wrong with the scenario and `set` alone.
pub(super) fn drawn(
    scenario: &Scenario,
    places: &[f64],
    set: &[String],
) -> Result<Scenario, Diagnostics> {
    let parameters = scenario.calibration.iter().flat_map(|fitted| &fitted.parameters);
    let parameters: Vec<&Parameter> = parameters.collect();
    // Estimates that depend on each other are drawn together.
    let along = |parameter: &Parameter, own: f64| {
        let (other, correlation) = parameter.with.as_ref()?;
        let other = parameters.iter().position(|parameter| parameter.key == *other)?;
        Some(correlation * places[other] + libm::sqrt(1.0 - correlation * correlation) * own)
    };
    let at = |nearer: f64| {
        let drawn = parameters.iter().zip(places).map(|(parameter, &own)| {
            let place = along(parameter, own).unwrap_or(own);
            let key = parameter.key.as_str();
            (key, possible(key, value(parameter, nearer * place)))
        });
        // At the estimates themselves the file is taken as it is written.
        let (windows, keys): (Vec<_>, Vec<_>) =
            drawn.filter(|_| nearer > 0.0).partition(|(key, _)| key.starts_with(WINDOWS));
        let keys = keys.into_iter().map(|(key, value)| format!("{key}={value:?}"));
        let all: Vec<String> =
            keys.chain(drift_windows(scenario, &windows)).chain(set.iter().cloned()).collect();
        scenario.with_sets(&all).map(|(scenario, _)| scenario)
    };
    let mut last = at(NEARER[0]);
    for nearer in &NEARER[1..] {
        if last.is_ok() {
            break;
        }
        last = at(*nearer);
    }
    last
}

/// What the keys of later stretches begin with, before their place.
const WINDOWS: &str = "world.drift.windows[";

/// The later stretches of the drift with these numbers in them: a list is set as a whole.
fn drift_windows(scenario: &Scenario, drawn: &[(&str, f64)]) -> Option<String> {
    let (first, later) = scenario.drift.as_ref()?.stretches.split_first()?;
    let window = |(at, stretch): (usize, &Stretch)| {
        let of = |key: &str| {
            let path = format!("{WINDOWS}{at}].{key}");
            drawn.iter().find(|(of, _)| *of == path).map(|(_, value)| *value)
        };
        let a = of("a").unwrap_or(stretch.a);
        let mut window = format!("from_step = {}, a = {a:?}", stretch.from_step);
        let p = of("p").unwrap_or(stretch.p);
        // What it has from the first stretch is what is drawn for that.
        for (key, value, of_first) in [
            ("sigma0", stretch.sigma0, first.sigma0),
            ("p", p, first.p),
            ("gradient_kept", stretch.kept, first.kept),
            ("token_entropy", stretch.tokens.entropy, first.tokens.entropy),
            ("tail", stretch.tokens.tail, first.tokens.tail),
            ("tail_fade", stretch.tokens.tail_fade, first.tokens.tail_fade),
        ] {
            if value != of_first {
                window += &format!(", {key} = {value:?}");
            }
        }
        format!("{{ {window} }}")
    };
    let windows: Vec<String> = later.iter().enumerate().map(window).collect();
    (!drawn.is_empty()).then(|| format!("world.drift.windows=[{}]", windows.join(", ")))
}

#[cfg(test)]
mod tests {
    use headway_shared::config::Layers;

    use super::*;
    use crate::drift::Tokens;

    fn parameter(value: f64, low: f64, high: f64) -> Parameter {
        Parameter { key: "world.judge.vote.mean_sec".into(), value, low, high, with: None }
    }

    #[test]
    fn a_draw_at_the_end_of_the_interval_is_its_end() {
        let skewed = parameter(1.0, 0.8, 2.0);
        assert!((value(&skewed, -ENDS) - 0.8).abs() < 1e-12);
        assert!((value(&skewed, ENDS) - 2.0).abs() < 1e-12);
        assert_eq!(value(&skewed, 0.0), 1.0);
        assert!(value(&skewed, 4.0) > 2.0);
        let share = parameter(0.01, 0.0, 0.03);
        assert_eq!(value(&share, -9.0), 0.0);
        assert!((value(&share, ENDS) - 0.03).abs() < 1e-12);
        let exact = parameter(3.0, 3.0, 3.0);
        assert_eq!((value(&exact, 2.0), value(&exact, -2.0)), (3.0, 3.0));
    }

    #[test]
    fn each_part_of_a_law_is_drawn_from_once_in_an_order_of_its_own() {
        let places = places(7, 3, 16);
        let column = |parameter: usize| -> Vec<f64> {
            places.iter().map(|place| place[parameter]).collect()
        };
        for parameter in 0..3 {
            let mut sorted = column(parameter);
            sorted.sort_by(f64::total_cmp);
            for (part, place) in sorted.iter().enumerate() {
                let ends = [part, part + 1].map(|end| normal_quantile(end as f64 / 16.0));
                assert!(ends[0] <= *place && *place <= ends[1], "{part}: {place}");
            }
        }
        assert_ne!(column(0), column(1));
        assert_eq!(places, super::places(7, 3, 16));
        assert_ne!(places, super::places(8, 3, 16));
    }

    #[test]
    fn estimates_that_depend_on_each_other_are_drawn_together_and_stretches_in_their_places() {
        let text = r#"
            [world.drift]
            sigma0 = 0.0
            a = 0.01
            p = 1.5
            gradient_kept = 0.8
            windows = [{ from_step = 50, a = 0.02, gradient_kept = 0.9, token_entropy = 2.0, tail_fade = 0.5 }, { from_step = 90, a = 0.001, p = 1.1, tail = 4.0 }]
            [world.judge]
            positive_growth = 0.05
            [calibration]
            from = "run.db"
            parameters = [
                { key = "world.drift.a", value = 0.01, low = 0.005, high = 0.02, with = "world.drift.p", correlation = -1 },
                { key = "world.drift.p", value = 1.5, low = 1.4, high = 1.6 },
                { key = "world.drift.windows[1].a", value = 0.001, low = 0.0005, high = 0.002 },
                { key = "world.drift.windows[1].p", value = 1.1, low = 1.05, high = 1.2 },
            ]
        "#;
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
        let world = std::fs::read_to_string(folder.join("openclaw.toml")).unwrap();
        let layers = Layers::new().toml("openclaw.toml", world).toml("drift.toml", text);
        let (scenario, _) = Scenario::load(&layers, &folder).unwrap();
        let drift = drawn(&scenario, &[0.0, ENDS, -ENDS, ENDS], &[]).unwrap().drift.unwrap();
        let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9);
        let usual = Tokens { entropy: 0.5, tail: 1.0, tail_fade: 0.0 };
        let law =
            |from_step, a, p, kept, tokens| Stretch { from_step, sigma0: 0.0, a, p, kept, tokens };
        let expected = [
            law(0, 0.005, 1.6, 0.8, usual),
            law(50, 0.02, 1.6, 0.9, Tokens { entropy: 2.0, tail_fade: 0.5, ..usual }),
            law(90, 0.0005, 1.2, 0.8, Tokens { tail: 4.0, ..usual }),
        ];
        assert_eq!(drift.stretches.len(), expected.len());
        for (found, expected) in drift.stretches.iter().zip(expected) {
            near(found.a, expected.a);
            near(found.p, expected.p);
            assert_eq!(
                (found.from_step, found.kept, found.tokens),
                (expected.from_step, expected.kept, expected.tokens)
            );
        }
        // A power that cannot be is the nearest that can, and nothing else is drawn back.
        let drift = drawn(&scenario, &[ENDS, 9.0 * ENDS, 0.0, -9.0 * ENDS], &[]).unwrap().drift;
        let stretches = drift.unwrap().stretches;
        assert_eq!((stretches[0].p, stretches[2].p), (2.0, 1.0));
        near(stretches[0].a, 0.01 * libm::pow(0.5, 9.0));
        let asked = drawn(&scenario, &[0.0; 4], &["world.drift.windows=[]".to_owned()]).unwrap();
        assert_eq!(asked.drift.unwrap().stretches.len(), 1, "what is asked for is over all");
    }
}
