//! What a diagnosis says, to read.

use std::fmt::Write;

use comfy_table::{Cell, ContentArrangement};
use headway_sim::diagnose::{Bar, Diagnosis, Evidence, Finding, Ratios, Spread, Waits, parts};
use headway_sim::report::number::{percent, ratio, short};

use super::{empty, right, written_out};

/// Columns of text.
const WIDTH: u16 = 120;
/// Columns of the longest bar.
const BAR: u64 = 40;
/// Rows of ratios by staleness at most.
const ROWS: usize = 12;

/// Signs, parts, ages and ratios; then what was found, with its evidence and its cure.
pub(crate) fn diagnosis(evidence: &Evidence, diagnosis: &Diagnosis) -> String {
    let mut text = format!("{}\n\n", evidence.name);
    text += &of_parts(evidence);
    text += &ages(evidence);
    if let (Some(of), Some(spread)) = (&evidence.ratios, &diagnosis.spread) {
        text += &ratios(of, spread);
    }
    text += &signs(diagnosis);
    for finding in &diagnosis.findings {
        text += &found(finding);
    }
    if diagnosis.is_healthy() {
        text += "\nno cause found: nothing is wrong\n";
    }
    text
}

fn of_parts(evidence: &Evidence) -> String {
    let mut table = empty(["staleness, by part", "versions", "", "seconds"].map(str::to_owned));
    let mean = evidence.get("staleness_head_mean");
    let share = |versions: Option<f64>| {
        let share = versions.zip(mean).filter(|(_, mean)| *mean > 0.0);
        share.map_or_else(String::new, |(versions, mean)| percent(Some(versions / mean)))
    };
    let known = |value: Option<f64>| value.map_or_else(String::new, |value| short(Some(value)));
    for part in parts(evidence) {
        table.add_row([
            Cell::new(part.name.replace('_', " ")),
            right(known(part.versions)),
            right(share(part.versions)),
            right(known(part.seconds)),
        ]);
    }
    let of = |name: &str| short(evidence.get(&format!("staleness_{name}")));
    let all = format!(
        "all: {} versions on average, p50 {}, p95 {}, p99 {}, at most {}; {} above the bound\n",
        of("head_mean"),
        of("head_p50"),
        of("head_p95"),
        of("head_p99"),
        of("head_max"),
        percent(evidence.get("staleness_above_bound_share")),
    );
    written_out(&table) + &all
}

fn ages(evidence: &Evidence) -> String {
    let of = |name: &str| short(evidence.get(&format!("age_seconds_{name}")));
    let mut text = format!(
        "\nseconds between generation and training: {} on average, p50 {}, p95 {}, at most {}\n",
        of("mean"),
        of("p50"),
        of("p95"),
        of("max"),
    );
    let bars = evidence.waits.as_ref().map(Waits::bars).unwrap_or_default();
    let most = bars.iter().map(|bar| bar.samples).max().unwrap_or(0).max(1);
    for Bar { from, to, samples } in bars {
        let length = (samples * BAR).div_ceil(most) as usize;
        let (from, to) = (short(Some(from)), short(Some(to)));
        let line = format!("{from:>8} to {to:<8} {samples:>8} {}", "#".repeat(length));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn ratios(ratios: &Ratios, spread: &Spread) -> String {
    let heading =
        ["staleness", "tokens", "spread of\nlearner/rollout", "mean\nratio", "largest\nratio"];
    let mut table = empty(heading.map(str::to_owned));
    let rows = ratios.by_staleness.iter();
    let step = ratios.by_staleness.len().div_ceil(ROWS).max(1);
    let last = ratios.by_staleness.len().saturating_sub(1);
    for (_, (staleness, pool)) in rows.enumerate().filter(|(at, _)| at % step == 0 || *at == last) {
        let root = pool.square().map(|square| square.max(0.0).sqrt());
        table.add_row(
            [
                staleness.to_string(),
                short(Some(pool.tokens)),
                short(root),
                ratio(pool.ratio_mean()),
                ratio(pool.max),
            ]
            .map(right),
        );
    }
    let from = match &ratios.predicted {
        Some(calibration) => format!("predicted, {calibration}"),
        None => "measured".to_owned(),
    };
    let grown = percent(Some(spread.grown()));
    format!(
        "\n{}{from}; {grown} of the mean square is not there at staleness 0\n",
        written_out(&table)
    )
}

fn signs(diagnosis: &Diagnosis) -> String {
    let mut table = empty(["sign of health", "holds", "what was seen"].map(str::to_owned));
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    for sign in &diagnosis.signs {
        let holds = match sign.holds {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "unknown",
        };
        table.add_row([sign.name, holds, &sign.seen]);
    }
    format!("\n{}", written_out(&table))
}

fn found(finding: &Finding) -> String {
    let mut text = format!("\nFOUND {}\n", finding.named.title());
    for sentence in &finding.evidence {
        let _ = writeln!(text, "  - {sentence}");
    }
    text += "  change:\n";
    for setting in &finding.settings {
        let now = match setting.now.as_str() {
            "" => String::new(),
            now => format!(" (now {now})"),
        };
        let _ = writeln!(text, "    {}{now}: {}", setting.key, setting.instead);
    }
    text
}
