//! A diagnosis as a JSON document.

use serde_json::{Value, json};

use super::spread::{Floor, Spread};
use super::{Diagnosis, Evidence, Finding, Ratios, Waits, parts};
use crate::report::number;

/// Everything that was seen and found. Numbers have six significant digits; what is unknown is
/// null.
#[must_use]
pub fn json(evidence: &Evidence, diagnosis: &Diagnosis) -> Value {
    json!({
        "run": evidence.name,
        "healthy": diagnosis.is_healthy(),
        "signs": diagnosis.signs.iter().map(|sign| json!({
            "sign": sign.name,
            "holds": sign.holds,
            "seen": sign.seen,
        })).collect::<Vec<_>>(),
        "causes": diagnosis.findings.iter().map(finding).collect::<Vec<_>>(),
        "staleness": staleness(evidence),
        "parts": parts(evidence).iter().map(|part| json!({
            "part": part.name,
            "versions": number::json(part.versions),
            "seconds": number::json(part.seconds),
        })).collect::<Vec<_>>(),
        "age_seconds": ages(evidence),
        "ratios": evidence.ratios.as_ref().map(|of| ratios(of, diagnosis.spread.as_ref())),
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "cause": finding.named.word(),
        "of": if finding.named.is_of_ratios() { "ratios" } else { "trouble" },
        "title": finding.named.title(),
        "evidence": finding.evidence,
        "settings": finding.settings.iter().map(|setting| json!({
            "key": setting.key,
            "now": setting.now,
            "instead": setting.instead,
        })).collect::<Vec<_>>(),
    })
}

fn staleness(evidence: &Evidence) -> Value {
    let of = |name: &str| number::json(evidence.get(&format!("staleness_{name}")));
    json!({
        "head_mean": of("head_mean"),
        "head_p50": of("head_p50"),
        "head_p95": of("head_p95"),
        "head_p99": of("head_p99"),
        "head_max": of("head_max"),
        "tail_mean": of("tail_mean"),
        "token_mean": of("token_mean"),
        "above_bound_share": of("above_bound_share"),
        "mixed_version_share": number::json(evidence.get("mixed_version_share")),
    })
}

fn ages(evidence: &Evidence) -> Value {
    let of = |name: &str| number::json(evidence.get(&format!("age_seconds_{name}")));
    let bars = evidence.waits.iter().flat_map(Waits::bars).map(|bar| {
        json!({
            "from": number::json(Some(bar.from)),
            "to": number::json(Some(bar.to)),
            "samples": bar.samples,
        })
    });
    json!({
        "mean": of("mean"),
        "p50": of("p50"),
        "p95": of("p95"),
        "max": of("max"),
        "histogram": bars.collect::<Vec<_>>(),
    })
}

fn ratios(ratios: &Ratios, spread: Option<&Spread>) -> Value {
    let root = |square: Option<f64>| number::json(square.map(|square| libm::sqrt(square.max(0.0))));
    let rows = ratios.by_staleness.iter().map(|(staleness, pool)| {
        json!({
            "staleness": staleness,
            "tokens": number::json(Some(pool.tokens)),
            "spread": root(pool.square()),
            "mean": number::json(pool.ratio_mean()),
            "max": number::json(pool.max),
        })
    });
    json!({
        "predicted": ratios.predicted,
        "spread": root(ratios.all.square()),
        "spread_widest": root(Some(ratios.widest)),
        "spread_at_0": root(spread.map(|spread| spread.floor)),
        "spread_at_0_is": spread.map(|spread| match spread.floor_from {
            Floor::Measured => "measured",
            Floor::Extrapolated => "extrapolated",
            Floor::Assumed => "assumed",
        }),
        "spread_at_0_allowed": number::json(spread.map(|spread| spread.allowed)),
        "grown_share": number::json(spread.map(Spread::grown)),
        "generated_within_share": number::json(spread.and_then(|spread| spread.within)),
        "mean_off_1": number::json(spread.and_then(|spread| spread.mean).map(|mean| mean.off)),
        "by_staleness": rows.collect::<Vec<_>>(),
    })
}
