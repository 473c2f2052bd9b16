//! `[world.serving]`: replicas, and how fast they are.

use headway_shared::config::{Diagnostic, Findings, Node, Reader, Value};

use super::columns::Columns;
use super::resources::Resources;
use super::world::{MOST_GPUS, SHARE};
use crate::rates::{self, RateTable};
use crate::world::replica::{DecodeLaw, DecodeLawError, ReplicaSpec};
use crate::world::settings::Serving;

/// The keys that say how fast a replica decodes, of which one can be there.
const LAWS: [&str; 3] = ["decode_rates", "decode_table", "decode_base_sec"];

/// Reads the table, and gives the table of rates that it names, if it does.
pub(super) fn read(
    mut table: Reader<'_>,
    columns: &mut Columns<'_>,
    findings: &Findings,
    resources: &mut Resources,
) -> (Serving, Option<RateTable>) {
    let replicas = table.u32("replicas", 1, 1..=10_000);
    let (decode, rates) = decode(&mut table, columns, findings);
    let measured = rates.as_ref().and_then(|rates| rates.gpus_per_replica).unwrap_or(1);
    resources.serving_gpus = table.u32("gpus_per_replica", measured, 1..=MOST_GPUS);
    let measured = rates.as_ref().and_then(|rates| rates.prefill_tokens_per_sec);
    let prefill = table.float("prefill_tokens_per_sec", measured.unwrap_or(0.0), 0.0..=1e12);
    let kv_tokens = table.u64("kv_tokens", 0, 0..=1 << 50);
    let serving = Serving {
        replicas,
        replica: ReplicaSpec {
            decode,
            max_batch: table.u32("max_batch", 0, 0..=u32::MAX),
            prefill_tokens_per_sec: (prefill > 0.0).then_some(prefill),
            cached_sessions: table.u32("cached_sessions", 0, 0..=u32::MAX),
            kv_tokens: (kv_tokens > 0).then_some(kv_tokens),
        },
        speed_during_step: table.float("speed_during_step", 1.0, SHARE),
        speed_during_load: table.float("speed_during_load", 1.0, SHARE),
    };
    table.finish();
    (serving, rates)
}

/// The decode law: by name, by table, or `decode_base_sec` and `decode_per_sequence_sec`.
fn decode(
    table: &mut Reader<'_>,
    columns: &mut Columns<'_>,
    findings: &Findings,
) -> (DecodeLaw, Option<RateTable>) {
    let given: Vec<&str> = LAWS.into_iter().filter(|key| table.node(key).is_some()).collect();
    if let [one, another, ..] = given.as_slice() {
        let message = format!("`{one}` and `{another}` both say how fast a replica decodes");
        table.error(one, message, "keep one of them");
    }
    let name = table.node("decode_rates").map(|node| &node.value);
    let node = table.node("decode_table");
    let rates = match (name, node.map(|node| &node.value)) {
        (Some(_), _) => named(table),
        (None, Some(Value::Text(file))) => columns.rates(table, "decode_table", file),
        (None, Some(Value::List(rows))) => {
            let law = inline(table, rows, findings);
            return (law.unwrap_or_else(fallback_law), None);
        }
        (None, Some(other)) => {
            let message = format!("`decode_table` cannot be {}", other.describe());
            table.error("decode_table", message, EXAMPLE);
            None
        }
        (None, None) => return (linear(table), None),
    };
    let law = rates.as_ref().map_or_else(fallback_law, |rates| rates.law().clone());
    (law, rates)
}

const EXAMPLE: &str = "write decode_table = [[1, 60], [32, 1400]]: sequences, tokens/s of all \
                       together; or the name of a CSV file that says so; or decode_base_sec and \
                       decode_per_sequence_sec";

fn named(table: &mut Reader<'_>) -> Option<RateTable> {
    let name = table.string("decode_rates", "");
    // What is no text is reported already.
    if name.is_empty() && !matches!(table.node("decode_rates")?.value, Value::Text(_)) {
        return None;
    }
    rates::find(&name)
        .map_err(|error| table.error("decode_rates", error.to_string(), error.help()))
        .ok()
}

fn linear(table: &mut Reader<'_>) -> DecodeLaw {
    table.require("decode_base_sec", "0.02");
    let base = table.float("decode_base_sec", 0.02, 0.0..=3600.0);
    let law = DecodeLaw::linear(base, table.float("decode_per_sequence_sec", 0.0, 0.0..=3600.0));
    law.unwrap_or_else(|error| {
        table.error("decode_base_sec", error.to_string(), EXAMPLE);
        fallback_law()
    })
}

fn inline(table: &Reader<'_>, rows: &[Node], findings: &Findings) -> Option<DecodeLaw> {
    let points = rows.iter().filter_map(|row| decode_row(row, findings)).collect();
    let report = |error: DecodeLawError| table.error("decode_table", error.to_string(), EXAMPLE);
    DecodeLaw::table(points).map_err(report).ok()
}

#[expect(clippy::expect_used, reason = "a step of 20 ms takes some time")]
fn fallback_law() -> DecodeLaw {
    DecodeLaw::linear(0.02, 0.0).expect("a decode law")
}

fn decode_row(row: &Node, findings: &Findings) -> Option<(u32, f64)> {
    let pair = match &row.value {
        Value::List(items) => match items.as_slice() {
            [batch, tokens] => Some((&batch.value, &tokens.value)),
            _ => None,
        },
        _ => None,
    };
    let result = match pair {
        Some((Value::Integer(batch), Value::Integer(tokens))) => {
            u32::try_from(*batch).ok().map(|batch| (batch, *tokens as f64))
        }
        Some((Value::Integer(batch), Value::Float(tokens))) => {
            u32::try_from(*batch).ok().map(|batch| (batch, *tokens))
        }
        _ => None,
    };
    if result.is_none() {
        findings.push(
            Diagnostic::error(row.origin, "this is no row of `decode_table`")
                .help("write [sequences, tokens/s of all together], such as [32, 1400]"),
        );
    }
    result
}
