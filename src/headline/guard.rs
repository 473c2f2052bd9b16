//! What people read of a run that was held to an envelope.

use comfy_table::Cell;
use headway_shared::guard::Report;
use headway_sim::guarded::{Held, Line};
use headway_sim::report::number::short;

use super::{empty, right, written_out};

/// A row per metric of the envelope, then what a guard would have said.
pub(crate) fn guarded(run: &str, held: &Held) -> String {
    let headings = ["metric", "envelope", "whole run", "windows", "outside", ""];
    let mut table = empty(headings.map(str::to_owned));
    for line in &held.lines {
        let range = format!("{} to {}", short(Some(line.range.low)), short(Some(line.range.high)));
        let windows = line.windows.map_or_else(String::new, |[low, high]| {
            format!("{} to {}", short(Some(low)), short(Some(high)))
        });
        table.add_row([
            Cell::new(line.metric.name),
            right(range),
            right(short(line.whole)),
            right(windows),
            right(format!("{} of {}", line.outside, line.judged)),
            Cell::new(mark(line)),
        ]);
    }
    let found = &held.found;
    let verdict = match (found.deviations, &found.deviation) {
        (1, Some(report)) => format!("it left the envelope once, at {}:", report.at),
        (times, Some(report)) => {
            format!("it left the envelope {times} times, the last time at {}:", report.at)
        }
        (_, None) => "it kept to the envelope".to_owned(),
    };
    let (judged, outside) = (found.judged, found.outside);
    let mut sum =
        format!("{run}: {judged} windows, {outside} of them outside somewhere; {verdict}\n");
    for reading in found.deviation.iter().flat_map(Report::outside) {
        sum += &format!("  - {reading}\n");
    }
    written_out(&table) + &sum
}

fn mark(line: &Line) -> &'static str {
    if line.holds() { "" } else { "OUTSIDE" }
}
