//! The page of a tournament.

use super::page::Page;
use super::search::{Listed, listed};
use super::table::{Cell, Column, Row, Table};
use crate::answer;
use crate::report::about::About;
use crate::report::number;
use crate::report::plot::Picture;
use crate::tournament::page::{self, Table as Told};
use crate::tournament::results::{TournamentResults, Workload};
use crate::tournament::row::{AGE, LENGTH, RATES};

/// More rows of a workload are not shown: all are in the CSV, and plots say them.
const MOST: usize = 100;

/// What is shown of each.
const METRICS: [&str; 8] = [
    RATES[0],
    RATES[1],
    "staleness_head_mean",
    AGE,
    LENGTH,
    "wasted_token_share",
    "refused_share",
    "trainer_idle_share",
];

/// The page of a tournament.
#[must_use]
pub fn of_tournament(results: &TournamentResults, pictures: &[Picture]) -> String {
    let meta = &results.meta;
    let answer = answer::of_tournament(results);
    let about = About { command: meta.command.clone(), ..About::default() };
    let name: Vec<&str> = meta.workloads.iter().map(|world| world.name.as_str()).collect();
    let title = match &meta.workloads[..] {
        [one] => one.title.as_str(),
        _ => "",
    };
    Page {
        kind: "Tournament",
        name: &name.join(", "),
        title,
        answer: &answer,
        pictures,
        tables: tables(results),
        about: Some(&about),
        scenarios: meta.workloads.iter().filter_map(scenario).collect(),
        facts: facts(results),
        varied:
            "Gates, what is set beside them and sync modes are set otherwise, as the column set of \
                 tournament.csv says."
                .into(),
    }
    .write()
}

/// What a workload says of itself, with its name.
fn scenario(workload: &Workload) -> Option<(&str, &About)> {
    Some((&workload.name, workload.about.as_ref()?))
}

fn tables(results: &TournamentResults) -> Vec<Table> {
    let several = results.meta.workloads.len() > 1;
    let mut tables = Vec::new();
    for (workload, winner) in results.meta.workloads.iter().zip(answer::winners(results)) {
        let of = if several { format!("{}: ", workload.name) } else { String::new() };
        let all = [page::fastest_unbiased, page::fastest, page::side_by_side, page::modes];
        tables.extend(all.map(|table| told(&of, &table(results, &workload.name))));
        tables.push(rows(results, workload, winner));
    }
    let rest = page::not_run(results);
    if !rest.rows.is_empty() {
        tables.push(told("", &rest));
    }
    tables.push(told("", &page::field(results)));
    tables
}

/// A table that the documentation has, too.
fn told(of: &str, table: &Told) -> Table {
    let plain = |text: &str| text.replace('`', "").replace("\\|", "|");
    let cell = |cell: &Cell| Cell { text: plain(&cell.text), raw: plain(&cell.raw) };
    let row = |row: &Vec<Cell>| Row::of(row.iter().map(cell));
    // What has words is a column of words.
    let is_number = |at: usize| {
        table.rows.iter().all(|row| {
            let raw = row.get(at).map_or("", |cell| cell.raw.as_str());
            ["", "-", "none", "any"].contains(&raw) || number::parse(raw).is_some()
        })
    };
    let column = |(at, name): (usize, &String)| match name.as_str() {
        "reason" | "beside its knob" | "as fast, as far as the intervals tell" => {
            Column::long(name)
        }
        name if is_number(at) => Column::number(name),
        name => Column::word(name),
    };
    Table {
        caption: format!("{of}{}", table.title),
        columns: table.header.iter().enumerate().map(column).collect(),
        rows: table.rows.iter().map(row).collect(),
        ..Table::default()
    }
}

/// The rows of a workload, the fastest first.
fn rows(results: &TournamentResults, workload: &Workload, winner: Option<usize>) -> Table {
    let table = &results.table;
    let mut rows: Vec<usize> =
        (0..table.rows.len()).filter(|&row| table.text(row, "workload") == workload.name).collect();
    let rate = |row: usize| table.value(row, RATES[0]).unwrap_or(f64::NEG_INFINITY);
    rows.sort_by(|&one, &other| rate(other).total_cmp(&rate(one)));
    let caption = match rows.len() {
        0..=MOST => format!("Every row of {}", workload.name),
        _ => format!("The {MOST} fastest rows of {}", workload.name),
    };
    let mut place = 0;
    rows.retain(|row| {
        place += 1;
        place <= MOST || Some(*row) == winner
    });
    let words = ["gate", "knob", "sync_mode"].map(str::to_owned);
    let metrics = METRICS.map(str::to_owned);
    let shown = Listed { words: &words, metrics: &metrics, marks: &["status", "front", "note"] };
    let mut listed = listed(&caption, table, &rows, &shown, winner);
    listed.note += " front: no other row is preferable in throughput and p99. All rows, with every metric, \
                    are in tournament.csv beside this page.";
    listed.folded = true;
    listed
}

fn facts(results: &TournamentResults) -> Vec<(&'static str, String)> {
    let meta = &results.meta;
    let each = |value: &dyn Fn(&Workload) -> String| match &meta.workloads[..] {
        [one] => value(one),
        all => {
            let each = all.iter().map(|world| format!("{} ({})", value(world), world.name));
            each.collect::<Vec<_>>().join(", ")
        }
    };
    vec![
        ("Gates", meta.gates.join(", ")),
        ("Sync modes", meta.sync_modes.join(", ")),
        ("Seed", each(&|world| world.seed.to_string())),
        ("Replications", each(&|world| world.replications.to_string())),
        ("Scenario, digest", each(&|world| world.scenario_digest.clone())),
        ("Headway", meta.version.clone()),
    ]
}
