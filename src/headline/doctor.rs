//! What the doctor found.

use comfy_table::ContentArrangement;
use headway_runtime::doctor::Finding;

use super::{empty, written_out};

/// Columns of text.
const WIDTH: u16 = 120;

/// A row per check.
pub(crate) fn doctor(findings: &[Finding]) -> String {
    let heading = ["check", "result", "what was seen", "cure"];
    let mut table = empty(heading.map(str::to_owned));
    // Not the terminal's: what is written does not depend on it.
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    for Finding { check, result, seen, cure } in findings {
        table.add_row([check, result.word(), seen, cure]);
    }
    written_out(&table)
}
