//! Fitted numbers, drawn from what is known of them.

use headway_shared::config::Diagnostics;
use headway_shared::digest::Digest;

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

/// The scenario with its fitted numbers at this place of what is known of them, and `set` over all.
/// Nearer to the estimates, where a draw is outside of what a key can be.
///
/// # Errors
/// What is wrong with the scenario and `set` alone.
pub(super) fn drawn(
    scenario: &Scenario,
    place: &[f64],
    set: &[String],
) -> Result<Scenario, Diagnostics> {
    let parameters = scenario.calibration.iter().flat_map(|fitted| &fitted.parameters);
    let parameters: Vec<&Parameter> = parameters.collect();
    let at = |nearer: f64| {
        let drawn = parameters.iter().zip(place).map(|(parameter, place)| {
            format!("{}={:?}", parameter.key, value(parameter, nearer * place))
        });
        // At the estimates themselves the file is taken as it is written.
        let drawn = drawn.filter(|_| nearer > 0.0);
        let all: Vec<String> = drawn.chain(set.iter().cloned()).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(value: f64, low: f64, high: f64) -> Parameter {
        Parameter { key: "world.judge.vote.mean_sec".into(), value, low, high }
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
}
