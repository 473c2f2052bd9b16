//! The tables of a tournament on a terminal.

use headway_sim::tournament::page::{self, Table};
use headway_sim::tournament::results::TournamentResults;

use super::{empty, right, written_out};

/// For each workload the fastest within each limit on staleness, and of those without length bias.
pub(crate) fn tournament(results: &TournamentResults) -> String {
    let mut text = String::new();
    for workload in &results.meta.workloads {
        let drift = workload.drift.as_deref();
        text += &format!("{}: {}\n", workload.name, workload.title);
        let tables = [page::fastest, page::fastest_unbiased];
        for mut table in tables.map(|table| table(results, &workload.name)) {
            // Who is as fast is for the page, where lines are as long as they need to be.
            table.header.pop();
            table.rows.iter_mut().for_each(|row| drop(row.pop()));
            text += &format!("\n{}\n{}", table.title, written(&table));
        }
        text += &drift.map_or_else(String::new, |words| format!("\neffective: {words}\n"));
        text += "\n";
    }
    let rest = page::not_run(results);
    if !rest.rows.is_empty() {
        text += &format!("{}\n{}", rest.title, written(&rest));
    }
    text
}

fn written(table: &Table) -> String {
    let plain = |text: &str| text.replace('`', "");
    let mut out = empty(table.header.iter().map(|name| plain(name)));
    for row in &table.rows {
        out.add_row(row.iter().map(|cell| right(plain(&cell.text))));
    }
    written_out(&out)
}
