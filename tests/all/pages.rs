//! Pages that are printed from the tables in the code, below an introduction written by hand.

use headway_shared::config::keys;
use headway_shared::metrics::{self, METRICS};
use headway_sim::drift;
use headway_sim::report::csv::Csv;

use super::blessed;

const MARK: &str = "<!-- What follows is printed from the code: `make bless`. -->\n\n";

fn check(path: &str, printed: &str) {
    let text = blessed::text(path);
    let (by_hand, _) = text.split_once(MARK).unwrap_or_else(|| panic!("{path} has no {MARK}"));
    blessed::check(path, &format!("{by_hand}{MARK}{printed}"));
}

#[test]
fn the_configuration_page_lists_every_key() {
    check("docs/configuration.md", &keys::reference());
}

#[test]
fn the_metrics_page_lists_every_metric() {
    let all = metrics::markdown(METRICS);
    let ratios = metrics::markdown(drift::METRICS);
    check(
        "docs/metrics.md",
        &format!(
            "{all}\n## Importance ratios\n\nOnly of scenarios with `[world.drift]`: [drift.md](drift.md).\n\n{ratios}"
        ),
    );
}

/// The rows of a table of predictions, a section for each source.
fn predictions(table: &Csv) -> String {
    const COLUMNS: &str = "| case | quantity | published | predicted | error | tolerance | inside | role | note |\n\
                           |---|---|---|---|---|---|---|---|---|\n";
    let mut page = "## Every row\n".to_owned();
    for row in 0..table.rows.len() {
        let cell = |column| table.text(row, column);
        let source = cell("source");
        if row == 0 || source != table.text(row - 1, "source") {
            page += &format!("\n### {source}\n\n{COLUMNS}");
        }
        let interval = match cell("ci") {
            "" => String::new(),
            half => format!(" ± {half}"),
        };
        let predicted = format!("{}{interval}", cell("predicted"));
        let rest = ["error_share", "tolerance", "inside", "role", "note"].map(cell).join(" | ");
        let quantity = format!("{}, {}", cell("quantity"), cell("unit"));
        let published = cell("published");
        page +=
            &format!("| {} | {quantity} | {published} | {predicted} | {rest} |\n", cell("case"));
    }
    page
}

#[test]
fn the_accuracy_page_lists_every_prediction_of_a_published_number() {
    let table = Csv::parse(blessed::text("results/validation/published.csv").as_bytes()).unwrap();
    assert!(!table.rows.is_empty());
    check("docs/accuracy.md", &predictions(&table));
}
