//! The tables of a tournament that people read, made of its CSV and of nothing else.

use super::entrant::{ENTRANTS, Entrant};
use super::results::TournamentResults;
use super::row::{AGE, BIASED, LENGTH, RATES};
use crate::report::cell::Cell;
use crate::report::number;

/// Limits of the 99th percentile of staleness that the first table asks about, in versions.
pub const LIMITS: [u32; 5] = [0, 1, 2, 4, 8];
/// The limit at which gates are compared side by side.
pub(crate) const SIDE_BY_SIDE: u32 = 4;

/// A table, to be written as Markdown or otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What stands above it.
    pub title: String,
    /// Its columns.
    pub header: Vec<String>,
    /// Its rows. Names that one can write stand in backticks.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    fn new(title: String, header: &[&str]) -> Self {
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        Self { title, header, rows: Vec::new() }
    }

    /// The table in Markdown, without its title.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
        let rule = vec!["---"; self.header.len()].join("|");
        let row = |row: &Vec<Cell>| line(&row.iter().map(|cell| &*cell.text).collect::<Vec<_>>());
        let rows: String = self.rows.iter().map(row).collect();
        let header: Vec<&str> = self.header.iter().map(String::as_str).collect();
        format!("{}|{rule}|\n{rows}", line(&header))
    }
}

/// The rows of one workload that ran.
pub(crate) struct Field<'a> {
    results: &'a TournamentResults,
    pub(crate) rows: Vec<usize>,
}

/// The fastest of each limit on staleness, in a workload.
#[must_use]
pub fn fastest(results: &TournamentResults, workload: &str) -> Table {
    within_limits(&Field::of(results, workload), "Fastest within a limit on staleness".into())
}

/// The same among those whose trained samples are as long as the workload's.
#[must_use]
pub fn fastest_unbiased(results: &TournamentResults, workload: &str) -> Table {
    let percent = number::text(BIASED * 100.0);
    let title = format!("Fastest of those whose trained lengths are within {percent}%");
    within_limits(&Field::unbiased(results, workload), title)
}

fn within_limits(field: &Field<'_>, title: String) -> Table {
    let header = [
        "p99 at most",
        "fastest",
        "sync mode",
        "trained samples/h",
        "effective samples/h",
        "p99",
        "wasted",
        "length",
        "as fast, as far as the intervals tell",
    ];
    let mut table = Table::new(title, &header);
    let limits = LIMITS.iter().map(|&limit| (limit.to_string(), f64::from(limit)));
    for (label, limit) in limits.chain([("any".to_owned(), f64::INFINITY)]) {
        let within: Vec<usize> = field.within(&field.rows, limit);
        let Some(best) = field.fastest(&within) else {
            let none = std::iter::repeat_n("-", header.len() - 2);
            let cells = [label.as_str(), "none"].into_iter().chain(none);
            table.rows.push(cells.map(Cell::plain).collect());
            continue;
        };
        let mut cells = vec![Cell::plain(label)];
        cells.extend(field.cells(best));
        cells.push(Cell::plain(listed(&field.as_fast(&within, best))));
        table.rows.push(cells);
    }
    table
}

/// Each gate at its fastest within a limit on staleness, the fastest first.
#[must_use]
pub fn side_by_side(results: &TournamentResults, workload: &str) -> Table {
    let field = Field::of(results, workload);
    let header = [
        "gate",
        "fastest",
        "sync mode",
        "trained samples/h",
        "effective samples/h",
        "p99",
        "wasted",
        "length",
        "above bound",
        "refused",
        "discarded",
    ];
    let title = format!("Each gate at its fastest with a p99 of at most {SIDE_BY_SIDE}");
    let mut table = Table::new(title, &header);
    let best = |gate: &String| {
        let of_gate: Vec<usize> =
            field.rows.iter().copied().filter(|&row| field.text(row, "gate") == gate).collect();
        field.fastest(&field.within(&of_gate, f64::from(SIDE_BY_SIDE)))
    };
    let gates = &results.meta.gates;
    let mut found: Vec<(&String, Option<usize>)> =
        gates.iter().map(|gate| (gate, best(gate))).collect();
    // A stable order: equals stay in the order of gates.
    found.sort_by(|one, other| field.rate(other.1).total_cmp(&field.rate(one.1)));
    for (gate, best) in found {
        let mut cells = vec![Cell::plain(format!("`{gate}`"))];
        match best {
            Some(row) => {
                cells.extend(field.cells(row).into_iter().enumerate().map(|(place, cell)| {
                    // The gate has a column of its own.
                    if place == 0 { Cell::plain(field.knob(row)) } else { cell }
                }));
                let shares = ["staleness_above_bound_share", "refused_share", "discarded_share"];
                cells.extend(shares.map(|name| field.share(row, name)));
            }
            None => {
                let youngest = field.rows.iter().filter(|&&row| field.text(row, "gate") == gate);
                let ages = youngest.filter_map(|&row| field.value(row, AGE));
                let least = ages.fold(f64::INFINITY, f64::min);
                let least = match least.is_finite() {
                    true => format!("its least p99 is {}", number::short(Some(least))),
                    false => "nothing ran".to_owned(),
                };
                cells.push(Cell::plain(least));
                cells.extend(std::iter::repeat_n(Cell::plain("-"), header.len() - 2));
            }
        }
        table.rows.push(cells);
    }
    table
}

/// Sync modes over all gates and knobs that ran under every one of them: throughput as a share of
/// the best mode's, staleness, and what was closed.
#[must_use]
pub fn modes(results: &TournamentResults, workload: &str) -> Table {
    let field = Field::of(results, workload);
    let header = [
        "sync mode",
        "throughput, share of the best mode's",
        "fastest mode of",
        "p99, mean",
        "wasted",
        "mixed versions",
        "closed",
    ];
    let mut table = Table::new("Sync modes, each over the same gates and knobs".into(), &header);
    let modes = &results.meta.sync_modes;
    let sets = field.sets(modes);
    for (place, mode) in modes.iter().enumerate() {
        let mean = |value: &dyn Fn(&Vec<usize>) -> Option<f64>| {
            let values: Vec<f64> = sets.iter().filter_map(value).collect();
            crate::stats::mean(&values)
        };
        let best = |set: &Vec<usize>| field.rate(field.fastest(set));
        let of = |name: &'static str| mean(&|set| field.value(set[place], name));
        let wins = sets.iter().filter(|set| field.fastest(set) == Some(set[place])).count();
        table.rows.push(vec![
            Cell::plain(format!("`{mode}`")),
            percent(mean(&|set| Some(field.rate(Some(set[place])) / best(set)))),
            Cell { text: format!("{wins} of {}", sets.len()), raw: wins.to_string() },
            short(of(AGE)),
            percent(of("wasted_token_share")),
            percent(of("mixed_version_share")),
            percent(of("closed_share")),
        ]);
    }
    table
}

/// What did not run, or not to its end, and why; equal reasons of one gate share a row.
#[must_use]
pub fn not_run(results: &TournamentResults) -> Table {
    let title = "What could not run, or did not run to its end".to_owned();
    let mut found: Vec<[String; 5]> = Vec::new();
    let rows = &results.table;
    for row in (0..rows.rows.len()).filter(|&row| rows.text(row, "status") != "ok") {
        let cell = |column: &str| rows.text(row, column).to_owned();
        let gate = format!("`{}`", cell("gate"));
        let key = [cell("workload"), gate, cell("status"), cell("note").replace('|', "\\|")];
        let known = found
            .iter_mut()
            .find(|known| [&known[0], &known[1], &known[3], &known[4]].into_iter().eq(key.iter()));
        match known {
            Some(known) => {
                let count: u32 = known[2].parse().unwrap_or(0);
                known[2] = (count + 1).to_string();
            }
            None => {
                let [workload, gate, status, reason] = key;
                found.push([workload, gate, "1".to_owned(), status, reason]);
            }
        }
    }
    let mut table = Table::new(title, &["workload", "gate", "rows", "status", "reason"]);
    table.rows = found.into_iter().map(|row| row.map(Cell::plain).to_vec()).collect();
    table
}

/// Every gate with what is set beside its knob.
#[must_use]
pub fn field(results: &TournamentResults) -> Table {
    let mut table = Table::new("Who plays".into(), &["gate", "beside its knob", "publishing"]);
    let took_part = |entrant: &&Entrant| results.meta.gates.iter().any(|gate| gate == entrant.name);
    for entrant in ENTRANTS.iter().filter(took_part) {
        let beside = if entrant.companions.is_empty() { "-" } else { entrant.companions };
        let publishing = if entrant.trains_on { "trains on" } else { "the trainer waits" };
        let name = format!("`{}`", entrant.name);
        table.rows.push([&name, beside, publishing].map(Cell::plain).to_vec());
    }
    table
}

/// Everything, in Markdown.
#[must_use]
pub fn markdown(results: &TournamentResults) -> String {
    let field = field(results);
    let mut text = format!("## {}\n\n{}\n", field.title, field.markdown());
    for workload in &results.meta.workloads {
        text += &format!("## {}\n", workload.name);
        let name = &workload.name;
        let tables = [fastest, fastest_unbiased, side_by_side, modes];
        for table in tables.map(|table| table(results, name)) {
            text += &format!("\n### {}: {}\n\n{}", name, table.title, table.markdown());
        }
        text += "\n";
    }
    let rest = not_run(results);
    text += &format!("## {}\n\n", rest.title);
    text += &if rest.rows.is_empty() { "Everything ran.\n".to_owned() } else { rest.markdown() };
    text
}

impl<'a> Field<'a> {
    /// All that ran.
    pub(crate) fn of(results: &'a TournamentResults, workload: &str) -> Self {
        Self { results, rows: results.rows_of(workload) }
    }

    /// Those whose trained samples are as long as the workload's.
    pub(crate) fn unbiased(results: &'a TournamentResults, workload: &str) -> Self {
        let rows = results.rows_of(workload);
        Self { results, rows: rows.into_iter().filter(|&row| !results.is_biased(row)).collect() }
    }
}

impl Field<'_> {
    pub(crate) fn text(&self, row: usize, column: &str) -> &str {
        self.results.table.text(row, column)
    }

    pub(crate) fn value(&self, row: usize, column: &str) -> Option<f64> {
        self.results.table.value(row, column)
    }

    /// A share of the table.
    fn share(&self, row: usize, column: &str) -> Cell {
        Cell { raw: self.text(row, column).to_owned(), ..percent(self.value(row, column)) }
    }

    /// Throughput; below everything where there is none.
    pub(crate) fn rate(&self, row: Option<usize>) -> f64 {
        row.and_then(|row| self.value(row, RATES[0])).unwrap_or(f64::NEG_INFINITY)
    }

    pub(crate) fn within(&self, rows: &[usize], limit: f64) -> Vec<usize> {
        let young = |row: &usize| self.value(*row, AGE).is_some_and(|age| age <= limit);
        rows.iter().copied().filter(young).collect()
    }

    /// The one with the highest throughput; of equals the first.
    pub(crate) fn fastest(&self, rows: &[usize]) -> Option<usize> {
        rows.iter().copied().reduce(|best, next| {
            if self.rate(Some(next)) > self.rate(Some(best)) { next } else { best }
        })
    }

    /// What is set: its gate and knob, its mode; then what it gave.
    fn cells(&self, row: usize) -> Vec<Cell> {
        let interval = |name: &str| Cell {
            text: number::interval(self.value(row, name), self.value(row, &half(name))),
            raw: self.text(row, name).to_owned(),
        };
        let short = |name: &str| Cell {
            text: number::short(self.value(row, name)),
            raw: self.text(row, name).to_owned(),
        };
        let knob = self.knob(row);
        let gate = self.text(row, "gate");
        vec![
            Cell::plain(if knob == "-" { format!("`{gate}`") } else { format!("`{gate}` {knob}") }),
            Cell::plain(format!("`{}`", self.text(row, "sync_mode"))),
            interval(RATES[0]),
            interval(RATES[1]),
            short(AGE),
            self.share(row, "wasted_token_share"),
            short(LENGTH),
        ]
    }

    pub(crate) fn knob(&self, row: usize) -> String {
        let knob = self.text(row, "knob").replace("max_head_off_policyness=", "η=");
        if knob.is_empty() { "-".into() } else { knob }
    }

    /// The ends of the interval of a row's throughput.
    pub(crate) fn ends(&self, row: usize) -> (f64, f64) {
        let rate = self.rate(Some(row));
        let half = self.value(row, &half(RATES[0])).unwrap_or(0.0);
        (rate - half, rate + half)
    }

    /// The gates with a row whose interval overlaps with the best one's.
    pub(crate) fn as_fast(&self, rows: &[usize], best: usize) -> Vec<&str> {
        let low = self.ends(best).0;
        let gates = self.results.meta.gates.iter().map(String::as_str).filter(|gate| {
            *gate != self.text(best, "gate")
                && rows
                    .iter()
                    .any(|&row| self.text(row, "gate") == *gate && self.ends(row).1 >= low)
        });
        gates.collect()
    }

    /// Rows that differ in their sync mode alone, in the order of modes; whole sets only.
    fn sets(&self, modes: &[String]) -> Vec<Vec<usize>> {
        let first = self
            .rows
            .iter()
            .filter(|&&row| Some(self.text(row, "sync_mode")) == modes.first().map(String::as_str));
        let set = |&row: &usize| {
            let akin = |other: usize| {
                ["gate", "knob"].iter().all(|key| self.text(row, key) == self.text(other, key))
            };
            let of_mode = |mode: &String| {
                self.rows
                    .iter()
                    .copied()
                    .find(|&other| self.text(other, "sync_mode") == mode && akin(other))
            };
            modes.iter().map(of_mode).collect::<Option<Vec<usize>>>()
        };
        first.filter_map(set).collect()
    }
}

fn half(name: &str) -> String {
    format!("{name}_hw")
}

/// Names that one can write, in a row; `-` where there are none.
fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "-".into() } else { names.join(", ") }
}

fn percent(value: Option<f64>) -> Cell {
    Cell { text: number::percent(value), raw: number::cell(value) }
}

fn short(value: Option<f64>) -> Cell {
    Cell { text: number::short(value), raw: number::cell(value) }
}
