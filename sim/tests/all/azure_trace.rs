//! Production traces through the importer and through a run. Skipped, and said so, where they are
//! not beside the workspace.

use std::fs;

use headway_sim::import::{ImportReport, import_azure_llm};
use headway_sim::run::{Ended, RunOptions, simulate};

use super::committed;
use super::world_support::load_shipped;

/// Mean (to the digits given), p50, p90, p99 and maximum of the output tokens, as published.
type Published = (f64, [u64; 4]);

/// Imports a trace; its table, or nothing where it is missing.
fn import(name: &str) -> Option<(String, ImportReport)> {
    let trace = committed::beside(&format!("traces/{name}.csv"))?;
    let mut table = Vec::new();
    let report = import_azure_llm(trace.as_bytes(), &mut table).unwrap();
    Some((String::from_utf8(table).unwrap(), report))
}

fn numbers(table: &str) -> Vec<[f64; 3]> {
    let row = |line: &str| {
        let values: Vec<f64> = line.split(',').map(|value| value.parse().unwrap()).collect();
        values.try_into().unwrap()
    };
    table.lines().skip(1).map(row).collect()
}

fn check_lengths(name: &str, rows: u64, (mean, quantiles): Published) {
    let Some((table, report)) = import(name) else { return };
    assert_eq!(report.rows, rows);
    let numbers = numbers(&table);
    assert_eq!(numbers.len() as u64, rows);
    let mut output: Vec<u64> = numbers.iter().map(|row| row[2] as u64).collect();
    output.sort_unstable();
    let at = |percent: usize| output[(output.len() * percent).div_ceil(100) - 1];
    assert_eq!([at(50), at(90), at(99), at(100)], quantiles, "{name}");
    assert_eq!(output.iter().sum::<u64>(), report.output_tokens);
    let found = report.output_tokens as f64 / rows as f64;
    assert!((found - mean).abs() < 0.002 * mean, "{name}: {found} instead of {mean}");
    assert_eq!(numbers[0][0], 0.0);
    assert!(numbers.windows(2).all(|pair| pair[0][0] <= pair[1][0]));
    let last = numbers[numbers.len() - 1][0];
    assert!((last - report.seconds()).abs() < 1e-6, "{last} s");
}

#[test]
fn the_conversation_trace_has_its_published_lengths() {
    check_lengths("azure_llm_2023_conv", 19_366, (211.0, [129, 424, 601, 1000]));
}

#[test]
fn the_code_trace_has_its_published_lengths() {
    check_lengths("azure_llm_2023_code", 8_819, (27.9, [13, 55, 252, 1899]));
}

#[test]
fn the_conversation_trace_is_replayed_request_by_request() {
    let Some((table, report)) = import("azure_llm_2023_conv") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("conv.csv");
    fs::write(&path, table).unwrap();
    let mut set = vec!["batch_size=160".to_owned(), "world.trainer.gpus=12".to_owned()];
    set.push("world.serving.replicas=4".to_owned());
    for key in ["arrivals", "prompt_tokens", "output_tokens"] {
        // A literal string: a path may hold a backslash.
        set.push(format!("world.clients.{key}.file='{}'", path.display()));
    }
    let (base, _) = load_shipped("trace-replay");
    let trained = [0, 1, 16].map(|eta| {
        set.push(format!("max_head_off_policyness={eta}"));
        let (scenario, _) = base.with_sets(&set).unwrap();
        let result = simulate(&scenario, 0, RunOptions::default()).unwrap();
        assert_eq!(result.ended, Ended::Exhausted);
        let seconds = result.end.as_secs_f64();
        assert!((report.seconds()..7200.0).contains(&seconds), "{seconds} s");
        let metric = |name| result.summary.get(name).unwrap();
        if eta == 0 {
            assert_eq!(metric("staleness_head_max"), 0.0);
        }
        metric("trained_samples_per_hour") * metric("duration_seconds") / 3600.0
    });
    assert!(trained[0] < trained[1] && trained[1] < trained[2], "{trained:?}");
    let offered = report.rows as f64;
    assert!((0.95 * offered..=offered).contains(&trained[2]), "{trained:?} of {offered}");
}
