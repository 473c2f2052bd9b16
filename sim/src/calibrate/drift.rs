//! The drift of a policy, from what its train steps reported and the lag probe of its trainer.

mod kept;
mod shape;

use std::collections::BTreeMap;

use headway_shared::source::Reported;

use super::estimate::{Estimates, Item, number};
use super::fit::{ProbePoint, WindowFit, drift as fit_drift, step_spread};
use super::learning::Learning;
use super::measured::Measured;
use crate::drift::Tokens;

const TABLE: &str = "world.drift";
/// What is reported of log-ratios, by the versions between the two policies: by a lag probe, and by
/// every train step of the tokens that it trained.
const PROBE: [&str; 5] =
    ["probe_log_square", "probe_log_abs", "probe_p99", "probe_tokens", "probe_log_mean"];
const TRAINED: [&str; 5] = [
    "learner_rollout_log_square",
    "learner_rollout_log_abs",
    "learner_rollout_p99",
    "learner_rollout_tokens",
    "learner_rollout_log_mean",
];

/// What was reported of one step's tokens that are so many versions old.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    point: ProbePoint,
    /// The mean size of the log-ratio.
    abs: f64,
    /// The 99th percentile of the ratio.
    p99: f64,
    /// The mean of the log-ratio.
    mean: f64,
}

/// Adds `[world.drift]`, where the record has lag probes.
pub(super) fn drift(
    estimates: &mut Estimates,
    measured: &Measured,
    from: &str,
    learned: Option<&Learning>,
) {
    let reported = &measured.reported;
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
    let starts: Vec<u32> = found.windows.iter().map(|window| window.from_step).collect();
    let tokens = shape::tokens(&readings, &starts);
    let spread = tokens.as_ref().and_then(|tokens| {
        step_spread(&points, &found, |stretch, k| tokens[stretch].over(f64::from(k)).kurtosis())
    });
    let kept = match (learned, &tokens) {
        (Some(learned), Some(tokens)) => {
            kept::of_stretches(measured, &found, tokens, spread, learned.growth.value)
        }
        _ => vec![1.0; 1 + found.windows.len()],
    };
    let setting = |key, value| Item::setting("drift", TABLE, key, value, found.probes);
    estimates.items.push(setting("calibrated_from", format!("{from:?}")));
    let numbers = [
        ("drift: floor", "sigma0", found.sigma0),
        ("drift: of one version", "a", found.a),
        ("drift: power", "p", found.p),
    ];
    for (what, key, parameter) in numbers {
        let mut item = Item::number(what, TABLE, key, "probe", parameter, found.probes);
        if key == "a" {
            item.with = vec![Some((format!("{TABLE}.p"), found.a_with_p[0]))];
        }
        estimates.items.push(item);
    }
    if !found.windows.is_empty() {
        let window = |(at, window): (usize, &WindowFit)| {
            let mut text =
                format!("from_step = {}, a = {}", window.from_step, number(window.a.value));
            if let Some(p) = window.p {
                text += &format!(", p = {}", number(p.value));
            }
            if let Some(Tokens { entropy, tail, tail_fade }) = tokens.as_ref().map(|of| of[at + 1])
            {
                let [entropy, tail, fade] = [entropy, tail, tail_fade].map(number);
                text += &format!(", token_entropy = {entropy}, tail = {tail}, tail_fade = {fade}");
            }
            if learned.is_some() {
                text += &format!(", gradient_kept = {}", number(kept[at + 1]));
            }
            format!("{{ {text} }}")
        };
        let windows: Vec<String> = found.windows.iter().enumerate().map(window).collect();
        let item = setting("windows", format!("[{}]", windows.join(", ")));
        let (mut parameters, mut with) = (Vec::new(), Vec::new());
        for (at, window) in found.windows.iter().enumerate() {
            let path = |key: &str| format!("{TABLE}.windows[{at}].{key}");
            let of_p = if window.p.is_some() { path("p") } else { format!("{TABLE}.p") };
            parameters.push((path("a"), window.a));
            with.push(Some((of_p, found.a_with_p[at + 1])));
            if let Some(p) = window.p {
                parameters.push((path("p"), p));
                with.push(None);
            }
        }
        let what = "drift: later stretches".to_owned();
        estimates.items.push(Item { what, family: "probe", parameters, with, ..item });
    }
    if learned.is_some() {
        estimates.items.push(setting("gradient_kept", number(kept[0])));
    } else {
        estimates.note(
            "how fast the policy learns is not told (`positive_growth` of the judge): that takes 40 train \
             steps, and rewards that lie between 0 and 1 and rise",
        );
    }
    let Some(Tokens { entropy, tail, tail_fade }) = tokens.map(|tokens| tokens[0]) else { return };
    if let Some(spread) = spread {
        let what = "drift: between steps";
        let item = Item::number(what, TABLE, "step_spread", "probe", spread, found.probes);
        estimates.items.push(item);
        if found.step_correlation > 0.0 {
            estimates.items.push(setting("step_correlation", number(found.step_correlation)));
        }
    }
    estimates.items.push(setting("token_entropy", number(entropy)));
    estimates.items.push(setting("tail", number(tail)));
    if tail_fade > 0.0 {
        estimates.items.push(setting("tail_fade", number(tail_fade)));
    }
    estimates.note(
        "`token_entropy`, `tail` and `tail_fade` are chosen so that the mean absolute log-ratio and the 99th \
         percentile, beside the root mean square, are as they were measured (medians over steps, \
         those with more drift counting more); they are no entropy that was measured",
    );
}

/// What was reported under these names, by step and versions between; where all of it was.
fn readings(reported: &[Reported], names: [&str; 5]) -> BTreeMap<(u64, u32), Reading> {
    let mut values: BTreeMap<(u64, u32), [Option<f64>; 5]> = BTreeMap::new();
    for Reported { step, name, staleness, value } in reported {
        if let (Some(at), Some(k)) = (names.iter().position(|known| known == name), staleness) {
            values.entry((step.0, *k)).or_default()[at] = Some(*value);
        }
    }
    let reading = |((step, k), [square, abs, p99, tokens, mean]): (_, [Option<f64>; 5])| {
        let (log_square, tokens) = (square?, tokens?);
        let point = ProbePoint { step: u32::try_from(step).ok()?, k, log_square, tokens };
        Some(((step, k), Reading { point, abs: abs?, p99: p99?, mean: mean? }))
    };
    values.into_iter().filter_map(reading).collect()
}

#[cfg(test)]
mod tests {
    use headway_shared::id::StepId;

    use super::*;
    use crate::kernel::math::normal_quantile;

    /// Reports of the tokens of one step and age, all of one size.
    fn report(names: [&str; 5], step: u32, k: u32, square: f64) -> Vec<Reported> {
        let root = libm::sqrt(square);
        let values = [square, 0.75 * root, libm::exp(2.4 * root), 200.0, -0.5 * square];
        let of = |(name, value): (&str, f64)| Reported {
            step: StepId(u64::from(step)),
            name: name.to_owned(),
            staleness: Some(k),
            value,
        };
        names.into_iter().zip(values).map(of).collect()
    }

    fn measured(reported: &[Reported]) -> Measured {
        Measured { reported: reported.to_vec(), ..Measured::default() }
    }

    #[test]
    fn where_the_reward_grows_each_stretch_says_what_was_left_of_its_gradient() {
        use headway_shared::config::Correction;
        use headway_shared::input::Segment;
        use headway_shared::ratio::Member;
        use headway_shared::version::RolloutVersion;

        use crate::calibrate::fit::Parameter;
        use crate::drift::Batch;

        let mut found = Measured::default();
        for step in 0..120_u32 {
            let a = if step < 60 { 0.01 } else { 0.0001 };
            for k in 0..8 {
                let square = 1e-14 + a * libm::pow(f64::from(k), 1.5);
                found.reported.extend(report(PROBE, step, k, square));
            }
            let member = |at: u32| Member { group: 2, reward: f64::from(at % 2), masked: false };
            let head = RolloutVersion::new(step.saturating_sub(6));
            found.batches.batches.push(Batch {
                version: step,
                members: (0..8).map(member).collect(),
                segments: vec![Segment { version: head, tokens: 20 }; 8],
            });
        }
        let growth = Parameter { value: 0.05, low: 0.04, high: 0.06 };
        let learned = Learning { positive: 0.05, growth, spread: 0.0, samples: 960 };
        let written = |found: &Measured, learned: Option<&Learning>| {
            let mut estimates = Estimates::default();
            drift(&mut estimates, found, "a run", learned);
            let all = estimates.items.iter().flat_map(|item| item.values.clone());
            let of = |key: &str| all.clone().find(|(known, _)| *known == key).map(|(_, text)| text);
            (of("gradient_kept"), of("windows").unwrap())
        };
        let training = &mut found.config.policy_training;
        training.correction = Correction::PpoClip;
        (training.correction_low, training.correction_high) = (800_000, 1_250_000);
        let (first, windows) = written(&found, Some(&learned));
        let first: f64 = first.unwrap().parse().unwrap();
        assert!((0.6..0.9).contains(&first), "{first}");
        assert!(windows.contains("from_step = 60") && windows.contains("gradient_kept = 1 }"));
        found.config.policy_training.correction = Correction::None;
        assert_eq!(written(&found, Some(&learned)).0.unwrap(), "1");
        let (none, windows) = written(&found, None);
        assert!(none.is_none() && !windows.contains("gradient_kept"), "{windows}");
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
            drift(&mut estimates, &measured(reported), "a run", None);
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
        drift(&mut none, &measured(&report(TRAINED, 1, 1, 0.01)), "a run", None);
        assert!(none.items.is_empty() && none.notes[0].contains("no lag probe"));
    }
}
