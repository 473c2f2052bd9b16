//! Reading a tuned file.

use super::write::searched;
use super::{Provenance, Tuned};
use crate::config::diagnostic::{Diagnostic, Diagnostics};
use crate::config::envelope::Envelope;
use crate::config::keys::keys;
use crate::config::layers::{Document, Layers};
use crate::config::parse::{check_sections, parse_sections};
use crate::config::reader::Reader;
use crate::digest::Digest;
use crate::metrics::{METRICS, Metric};
use crate::record::DECISION_VERSION;

/// What `[tuned]` says, each with an example.
const REQUIRED: [(&str, &str); 14] = [
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
    let (head, config_digest) = head(reader.table("tuned"));
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

/// Asks a document for all that a tuned file has.
pub(crate) fn probe(root: &mut Reader<'_>) {
    let _ = head(root.table("tuned"));
    let _ = parse_sections(root);
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

fn head(mut table: Reader<'_>) -> (Head, Digest) {
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
    let envelope = Envelope::read(&mut table);
    if table.has("envelope") && envelope.ranges.is_empty() {
        table.error("envelope", "the envelope is empty", AGAIN);
    }
    let predicted = predicted(table.table("predicted"));
    table.finish();
    (Head { provenance, predicted, envelope }, config_digest)
}

/// Any number: a metric has no other limits here.
const ANY: std::ops::RangeInclusive<f64> = -1e300..=1e300;

/// `METRIC = [mean, half_width]`
fn predicted(mut table: Reader<'_>) -> Vec<(&'static Metric, f64, f64)> {
    let mut found = Vec::new();
    for metric in METRICS {
        let Some([mean, half_width]) = table.pair(metric.name, ANY) else { continue };
        if half_width < 0.0 {
            let message = "the half-width of an interval is below 0";
            table.error(metric.name, message, "write [mean, half_width]");
        }
        found.push((metric, mean, half_width));
    }
    table.finish();
    found
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

/// The sections must be those that were tuned: predictions of others mean nothing.
fn edited(document: &Document, tuned: &Tuned, written: Digest) {
    let found = tuned.config.digest();
    let Some(entry) = document.root.find("tuned.config_digest") else { return };
    let lacking = searched(&tuned.provenance.space).into_iter().find(|path| {
        let key = keys().iter().find(|key| key.path() == *path);
        // A key that has no value is written by leaving it out.
        key.is_some_and(|key| key.describe(&tuned.config).value.is_some())
            && document.root.find(path).is_none()
    });
    let why = match lacking {
        _ if found != written => format!("{written} was written, {found} is found"),
        Some(path) => format!("`{path}` was searched and is missing"),
        None => return,
    };
    let message = format!(
        "the scheduling sections are not those that were tuned: the file was edited or cut short, \
         or another version wrote it ({why})"
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
