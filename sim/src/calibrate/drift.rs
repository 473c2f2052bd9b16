//! The drift of a policy, from what its train steps reported and the lag probe of its trainer.

mod growth;
mod shape;

use std::collections::BTreeMap;

use headway_shared::source::Reported;

use super::estimate::{Estimates, Item, number};
use super::fit::{ProbePoint, WindowFit, drift as fit_drift, step_spread};

const TABLE: &str = "world.drift";
/// What is reported of log-ratios, by the versions between the two policies: by a lag probe, and by
/// every train step of the tokens that it trained.
const PROBE: [&str; 4] = ["probe_log_square", "probe_log_abs", "probe_p99", "probe_tokens"];
const TRAINED: [&str; 4] = [
    "learner_rollout_log_square",
    "learner_rollout_log_abs",
    "learner_rollout_p99",
    "learner_rollout_tokens",
];

/// What was reported of one step's tokens that are so many versions old.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    point: ProbePoint,
    /// The mean size of the log-ratio.
    abs: f64,
    /// The 99th percentile of the ratio.
    p99: f64,
}

/// Adds `[world.drift]`, where the record has lag probes.
pub(super) fn drift(estimates: &mut Estimates, reported: &[Reported], from: &str) {
    let probes = readings(reported, PROBE);
    if probes.is_empty() {
        estimates.note(
            "no drift: the record has no lag probe (a simulated one never has; the trainer `tch` \
             runs it every few steps)",
        );
        return;
    }
    // A probe holds what its own step trained.
    let trained = readings(reported, TRAINED)
        .into_iter()
        .filter(|(at, _)| at.1 > 0 && !probes.contains_key(at));
    let readings: Vec<Reading> =
        probes.values().copied().chain(trained.map(|(_, one)| one)).collect();
    let points: Vec<ProbePoint> = readings.iter().map(|reading| reading.point).collect();
    let found = match fit_drift(&points) {
        Ok(found) => found,
        Err(error) => {
            estimates.note(format!("no drift: the lag probe does not tell it: {error}"));
            return;
        }
    };
    let setting = |key, value| Item::setting("drift", TABLE, key, value, found.probes);
    estimates.items.push(setting("calibrated_from", format!("{from:?}")));
    let numbers = [
        ("drift: floor", "sigma0", found.sigma0),
        ("drift: of one version", "a", found.a),
        ("drift: power", "p", found.p),
    ];
    let with_p = |correlations: &[f64]| Some((format!("{TABLE}.p"), correlations.to_vec()));
    for (what, key, parameter) in numbers {
        let mut item = Item::number(what, TABLE, key, "probe", parameter, found.probes);
        if key == "a" {
            item.with = with_p(&found.a_with_p[..1]);
        }
        estimates.items.push(item);
    }
    if !found.windows.is_empty() {
        let windows: Vec<String> = found
            .windows
            .iter()
            .map(|window| {
                format!("{{ from_step = {}, a = {} }}", window.from_step, number(window.a.value))
            })
            .collect();
        let item = setting("windows", format!("[{}]", windows.join(", ")));
        let named =
            |(at, window): (usize, &WindowFit)| (format!("{TABLE}.windows[{at}].a"), window.a);
        let parameters = found.windows.iter().enumerate().map(named).collect();
        let what = "drift: later stretches".to_owned();
        estimates.items.push(Item {
            what,
            family: "probe",
            parameters,
            with: with_p(&found.a_with_p[1..]),
            ..item
        });
    }
    if let Some(found) = growth::growth(reported) {
        let growth::Growth { per_step, staleness, steps } = found;
        let what = "drift: growth of the reward";
        estimates.items.push(Item::number(what, TABLE, "growth", "logistic", per_step, steps));
        estimates.items.push(setting("growth_staleness", number(staleness)));
    } else {
        estimates.note(
            "how fast the policy learns is not told (`growth`): that takes 40 train steps whose mean \
             rewards lie between 0 and 1 and rise",
        );
    }
    let Some(tokens) = shape::tokens(&readings) else { return };
    if let Some(spread) = step_spread(&points, &found, tokens.kurtosis()) {
        let what = "drift: between steps";
        let item = Item::number(what, TABLE, "step_spread", "probe", spread, found.probes);
        estimates.items.push(item);
        if found.step_correlation > 0.0 {
            estimates.items.push(setting("step_correlation", number(found.step_correlation)));
        }
    }
    estimates.items.push(setting("token_entropy", number(tokens.entropy)));
    estimates.items.push(setting("tail", number(tokens.tail)));
    estimates.note(
        "`token_entropy` and `tail` are chosen so that the mean absolute log-ratio and the 99th \
         percentile, beside the root mean square, are as they were measured (medians over steps, \
         those with more drift counting more); they are no entropy that was measured",
    );
}

/// What was reported under these names, by step and versions between; where all of it was.
fn readings(reported: &[Reported], names: [&str; 4]) -> BTreeMap<(u64, u32), Reading> {
    let mut values: BTreeMap<(u64, u32), [Option<f64>; 4]> = BTreeMap::new();
    for Reported { step, name, staleness, value } in reported {
        if let (Some(at), Some(k)) = (names.iter().position(|known| known == name), staleness) {
            values.entry((step.0, *k)).or_default()[at] = Some(*value);
        }
    }
    let reading = |((step, k), [square, abs, p99, tokens]): (_, [Option<f64>; 4])| {
        let (log_square, tokens) = (square?, tokens?);
        let point = ProbePoint { step: u32::try_from(step).ok()?, k, log_square, tokens };
        Some(((step, k), Reading { point, abs: abs?, p99: p99? }))
    };
    values.into_iter().filter_map(reading).collect()
}

#[cfg(test)]
mod tests {
    use headway_shared::id::StepId;

    use super::*;
    use crate::kernel::math::normal_quantile;

    /// Reports of the tokens of one step and age, all of one size.
    fn report(names: [&str; 4], step: u32, k: u32, square: f64) -> Vec<Reported> {
        let root = libm::sqrt(square);
        let values = [square, 0.75 * root, libm::exp(2.4 * root), 200.0];
        let of = |(name, value): (&str, f64)| Reported {
            step: StepId(u64::from(step)),
            name: name.to_owned(),
            staleness: Some(k),
            value,
        };
        names.into_iter().zip(values).map(of).collect()
    }

    #[test]
    fn what_a_step_trained_counts_as_a_probe_of_its_age_and_not_twice() {
        let mut probes = Vec::new();
        let mut trained = Vec::new();
        for step in 0..60 {
            // All parts of the normal law, in another order.
            let normal = normal_quantile((f64::from(step * 37 % 60) + 0.5) / 60.0);
            let factor = libm::exp(0.6 * normal);
            let at = |k: u32| 1e-14 + 0.003 * factor * libm::pow(f64::from(k), 1.5);
            if step % 5 == 0 {
                (0..6).for_each(|k| probes.extend(report(PROBE, step, k, at(k))));
            }
            // On policy nothing is told but the floor, which is the probe's.
            trained.extend(report(TRAINED, step, step % 2, at(step % 2)));
        }
        let number = |reported: &[Reported], key: &str| {
            let mut estimates = Estimates::default();
            drift(&mut estimates, reported, "a run");
            let path = format!("world.drift.{key}");
            let of = |item: &Item| item.parameters.iter().any(|(known, _)| *known == path);
            let item = estimates.items.iter().find(|item| of(item)).unwrap();
            (item.count, item.parameters[0].1)
        };
        assert_eq!(number(&probes, "a").0, 12);
        let both = [probes, trained].concat();
        // 30 steps are of age 1, and 6 of these have a probe.
        let (count, spread) = number(&both, "step_spread");
        assert_eq!(count, 12 + 24);
        assert!(spread.holds(0.6) && spread.low > 0.3, "{spread:?}");
        let mut none = Estimates::default();
        drift(&mut none, &report(TRAINED, 1, 1, 0.01), "a run");
        assert!(none.items.is_empty() && none.notes[0].contains("no lag probe"));
    }
}
