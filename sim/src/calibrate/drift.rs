//! The drift of a policy from the lag probe of its trainer.

use std::collections::BTreeMap;
use std::f64::consts::FRAC_PI_2;

use headway_shared::source::Reported;

use super::estimate::{Estimates, Item, number};
use super::fit::{ProbePoint, drift as fit_drift};
use crate::drift::Tokens;

const TABLE: &str = "world.drift";
/// What a probe reports, by the versions between the two policies.
const NAMES: [&str; 3] = ["probe_log_square", "probe_log_abs", "probe_tokens"];

/// Adds `[world.drift]`, where the record has lag probes.
pub(super) fn drift(estimates: &mut Estimates, reported: &[Reported], from: &str) {
    let mut probes: BTreeMap<(u64, u32), [Option<f64>; 3]> = BTreeMap::new();
    for Reported { step, name, staleness, value } in reported {
        if let (Some(at), Some(k)) = (NAMES.iter().position(|known| known == name), staleness) {
            probes.entry((step.0, *k)).or_default()[at] = Some(*value);
        }
    }
    let points: Vec<ProbePoint> = probes
        .iter()
        .filter_map(|(&(step, k), [square, _, tokens])| {
            let step = u32::try_from(step).ok()?;
            Some(ProbePoint { step, k, log_square: (*square)?, tokens: (*tokens)? })
        })
        .collect();
    if points.is_empty() {
        estimates.note(
            "no drift: the record has no lag probe (a simulated one never has; the trainer `tch` \
             runs it every few steps)",
        );
        return;
    }
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
    for (what, key, parameter) in numbers {
        estimates.items.push(Item::number(what, TABLE, key, "probe", parameter, found.probes));
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
        estimates.items.push(Item { what: "drift: later stretches".to_owned(), ..item });
        estimates.note("the intervals of the drift's windows are not in [calibration]");
    }
    if let Some(Tokens { entropy, tail }) = tokens(probes.iter()) {
        estimates.items.push(setting("token_entropy", number(entropy)));
        estimates.items.push(setting("tail", number(tail)));
        estimates.note(
            "`token_entropy` and `tail` are chosen so that the mean absolute log-ratio beside its \
             root mean square is as the lag probe has it (median over steps and distances); they \
             are no entropy that was measured",
        );
    }
}

/// The population of tokens whose log-ratios have the measured mean absolute value beside their root
/// mean square.
///
/// The log-ratio of a token is normal with the scale c = (1 - probability)^tail, so that
/// `E|x|² / E x² = (2 / π) E[c]² / E[c²]`. With `tail = 1` and r = 1 / entropy the moments of c are
/// those of Beta(1, r), and `E[c]² / E[c²] = (2 + r) / (2 + 2 r)`, which is between 1/2 and 1. Below
/// that, `tail = 2`; at 1, all tokens are alike.
fn tokens<'a>(
    probes: impl Iterator<Item = (&'a (u64, u32), &'a [Option<f64>; 3])>,
) -> Option<Tokens> {
    let mut ratios: Vec<f64> = probes
        .filter(|((_, k), _)| *k > 0)
        .filter_map(|(_, [square, abs, _])| {
            let (square, abs) = ((*square)?, (*abs)?);
            (square > 0.0).then(|| FRAC_PI_2 * abs * abs / square)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let ratio = *ratios.get(ratios.len() / 2)?;
    Some(with_ratio(ratio))
}

fn with_ratio(ratio: f64) -> Tokens {
    let of = |entropy: f64, tail: f64| {
        let tokens = Tokens { entropy, tail };
        let mean = tokens.moment(tail);
        mean * mean / tokens.moment(2.0 * tail)
    };
    let (least, most) = (0.01, 10.0);
    if ratio >= of(most, 1.0) {
        return Tokens { entropy: 0.5, tail: 0.0 };
    }
    let tail = if ratio >= of(least, 1.0) { 1.0 } else { 2.0 };
    // The larger the entropy, the more alike the scales.
    let (mut low, mut high) = (least, most);
    for _ in 0..60 {
        let middle = libm::sqrt(low * high);
        if of(middle, tail) < ratio {
            low = middle;
        } else {
            high = middle;
        }
    }
    Tokens { entropy: low, tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_population_has_the_ratio_that_was_measured() {
        for entropy in [0.05, 0.26, 0.5, 2.0] {
            let rate = 1.0 / entropy;
            let found = with_ratio((2.0 + rate) / (2.0 + 2.0 * rate));
            assert!((found.entropy / entropy - 1.0).abs() < 1e-6, "{found:?}");
            assert_eq!(found.tail, 1.0);
        }
        assert_eq!(with_ratio(1.02).tail, 0.0, "a normal law");
        let heavy = with_ratio(0.3);
        let mean = heavy.moment(2.0);
        assert_eq!(heavy.tail, 2.0);
        assert!((mean * mean / heavy.moment(4.0) - 0.3).abs() < 1e-6);
    }
}
