//! Reading a tuned file.

use super::{Provenance, Tuned};
use crate::config::diagnostic::{Diagnostic, Diagnostics, Findings};
use crate::config::envelope::{Envelope, Range};
use crate::config::layers::{Document, Layers};
use crate::config::node::{Entry, Node, Value};
use crate::config::parse::{check_sections, parse_sections};
use crate::config::reader::{Reader, did_you_mean};
use crate::digest::Digest;
use crate::metrics::{METRICS, Metric};
use crate::record::DECISION_VERSION;
use crate::time::Span;

/// What `[tuned]` says, each with an example.
const REQUIRED: [(&str, &str); 15] = [
    ("scenario", "\"openclaw\""),
    ("scenario_file", "\"scenarios/openclaw.toml\""),
    ("scenario_digest", "\"0123456789abcdef\""),
    ("config_digest", "\"0123456789abcdef\""),
    ("seed", "1"),
    ("replications", "8"),
    ("runs", "100"),
    ("headway", "\"0.1.0\""),
    ("decision_version", "1"),
    ("maximize", "\"trained_samples_per_hour\""),
    ("subject_to", "[\"staleness_head_p99 <= 4\"]"),
    ("space", "[\"policy_training.max_head_off_policyness=0,1,2,4\"]"),
    ("window_sec", "600"),
    ("predicted", "{ trained_samples_per_hour = [1200.0, 10.0] }"),
    ("envelope", "{ trained_samples_per_hour = [1100.0, 1300.0] }"),
];

/// What to do with a file that is not what was written.
const AGAIN: &str = "run `headway tune` again, and hand on the file as it writes it";

pub(super) fn load(name: &str, text: &str) -> Result<(Tuned, Diagnostics), Diagnostics> {
    let document = Layers::new().toml(name, text).merge()?;
    if let Some(foreign) = foreign(&document) {
        document.findings.push(foreign);
        let (Ok(diagnostics) | Err(diagnostics)) = document.finish();
        return Err(diagnostics);
    }
    let mut reader = document.reader();
    let (head, config_digest) = head(reader.table("tuned"), &document.findings);
    let config = parse_sections(&mut reader);
    reader.finish();
    check_sections(&document, &config);
    let Head { provenance, predicted, envelope } = head;
    let tuned = Tuned { provenance, predicted, envelope, config };
    if !document.findings.has_errors() {
        edited(&document, &tuned, config_digest);
        older(&document, &tuned);
    }
    document.finish().map(|warnings| (tuned, warnings))
}

/// A file of another kind: one finding, not one for each key that it lacks.
fn foreign(document: &Document) -> Option<Diagnostic> {
    let root = &document.root;
    if root.get("tuned").is_some_and(|entry| entry.node.as_table().is_some()) {
        return None;
    }
    let what = if root.get("scenario").is_some() || root.get("world").is_some() {
        "a scenario"
    } else if root.get("policy_training").is_some() || root.get("policy_serving").is_some() {
        "a configuration"
    } else {
        "no tuned file"
    };
    let message = format!("this is {what}: it has no [tuned]");
    let help = "name the tuned.toml that `headway tune` wrote into its folder";
    Some(Diagnostic::error(document.sources.start(), message).help(help))
}

struct Head {
    provenance: Provenance,
    predicted: Vec<(&'static Metric, f64, f64)>,
    envelope: Envelope,
}

fn head(mut table: Reader<'_>, findings: &Findings) -> (Head, Digest) {
    for (key, example) in REQUIRED {
        table.require(key, example);
    }
    let config_digest = digest(&mut table, "config_digest");
    let provenance = Provenance {
        scenario: table.string("scenario", ""),
        scenario_file: table.string("scenario_file", ""),
        scenario_digest: digest(&mut table, "scenario_digest"),
        overrides: table.strings("overrides"),
        seed: table.u64("seed", 1, 0..=u64::MAX),
        replications: table.u32("replications", 1, 1..=u32::MAX),
        runs: table.u64("runs", 0, 0..=u64::MAX),
        headway: table.string("headway", ""),
        decision_version: table.u32("decision_version", 0, 0..=u32::MAX),
        maximize: table.string("maximize", ""),
        subject_to: table.strings("subject_to"),
        space: table.strings("space"),
    };
    let window = table.span_sec("window_sec", Span::ZERO);
    if table.has("window_sec") && window == Span::ZERO {
        table.error("window_sec", "a window of no length", "write `window_sec = 600`");
    }
    let predicted = pairs(&mut table, "predicted", findings);
    for (_, (_, half_width), node) in &predicted {
        if *half_width < 0.0 {
            let message = "the half-width of an interval is below 0";
            findings.push(Diagnostic::error(node.origin, message).help("write [mean, half_width]"));
        }
    }
    let ranges = pairs(&mut table, "envelope", findings);
    for (_, (low, high), node) in &ranges {
        if low > high {
            let message = format!("the range is empty: {low} is above {high}");
            let help = format!("write [{high:?}, {low:?}], the lower end first");
            findings.push(Diagnostic::error(node.origin, message).help(help));
        }
    }
    table.finish();
    let predicted =
        predicted.into_iter().map(|(metric, (mean, half), _)| (metric, mean, half)).collect();
    let range = |(metric, (low, high), _)| (metric, Range { low, high });
    let envelope = Envelope { window, ranges: ranges.into_iter().map(range).collect() };
    (Head { provenance, predicted, envelope }, config_digest)
}

/// Sixteen hexadecimal digits.
fn digest(table: &mut Reader<'_>, key: &'static str) -> Digest {
    let text = table.string(key, "");
    let value = u64::from_str_radix(&text, 16).ok().filter(|_| text.len() == 16);
    if value.is_none() && table.has(key) {
        table.error(key, format!("`{key}` is no digest of 16 hexadecimal digits"), AGAIN);
    }
    Digest::from_value(value.unwrap_or_default())
}

type Pair<'a> = (&'static Metric, (f64, f64), &'a Node);

/// A table of metrics with two numbers each.
fn pairs<'a>(table: &mut Reader<'a>, key: &'static str, findings: &Findings) -> Vec<Pair<'a>> {
    let Some(node) = table.node(key) else { return Vec::new() };
    let Some(metrics) = node.as_table() else {
        table.error(
            key,
            format!("`{key}` must be a table, not {}", node.value.describe()),
            format!("write a [tuned.{key}] with a line a metric"),
        );
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in metrics.entries() {
        match pair(entry) {
            Ok((metric, pair)) => found.push((metric, pair, &entry.node)),
            Err(wrong) => findings.push(wrong),
        }
    }
    if metrics.entries().next().is_none() {
        table.error(key, format!("[tuned.{key}] is empty"), AGAIN);
    }
    found
}

fn pair(entry: &Entry) -> Result<(&'static Metric, (f64, f64)), Diagnostic> {
    let Some(metric) = METRICS.iter().find(|metric| metric.name == entry.key) else {
        let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        let help = did_you_mean(&entry.key, &names, "write a metric of docs/metrics.md");
        let message = format!("`{}` is no metric", entry.key);
        return Err(Diagnostic::error(entry.key_origin, message).help(help));
    };
    let number = |node: &Node| match node.value {
        Value::Integer(number) => Some(number as f64),
        Value::Float(number) => Some(number).filter(|number| number.is_finite()),
        _ => None,
    };
    if let Value::List(items) = &entry.node.value
        && let [one, other] = items.as_slice()
        && let (Some(one), Some(other)) = (number(one), number(other))
    {
        return Ok((metric, (one, other)));
    }
    let message = format!("`{}` must be two finite numbers in brackets", entry.key);
    Err(Diagnostic::error(entry.node.origin, message)
        .help(format!("write `{} = [1, 2]`", entry.key)))
}

/// The sections must be those that were tuned: predictions of others mean nothing.
fn edited(document: &Document, tuned: &Tuned, written: Digest) {
    let found = tuned.config.digest();
    let Some(entry) = document.root.find("tuned.config_digest") else { return };
    if found == written {
        return;
    }
    let message = format!(
        "the scheduling sections are not those that were tuned: the file was edited or cut short, \
         or another version wrote it ({written} was written, {found} is found)"
    );
    let help = format!("{AGAIN}; a key that you want otherwise is changed after the promotion");
    document.findings.push(Diagnostic::error(entry.node.origin, message).help(help));
}

/// Predictions of a core that decided otherwise.
fn older(document: &Document, tuned: &Tuned) {
    let version = tuned.provenance.decision_version;
    let Some(entry) = document.root.find("tuned.decision_version") else { return };
    if version != DECISION_VERSION {
        let message = format!(
            "it was tuned with decision version {version}, and this Headway has \
             {DECISION_VERSION}: its runs may differ from what is predicted"
        );
        document.findings.push(Diagnostic::warning(entry.node.origin, message).help(AGAIN));
    }
}
