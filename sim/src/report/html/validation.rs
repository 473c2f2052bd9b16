//! The page of a validation.

use super::metrics;
use super::page::Page;
use super::table::{Cell, Column, Row, Table};
use crate::answer;
use crate::report::csv::Csv;
use crate::report::number;
use crate::report::plot::Picture;
use crate::validate::{FIGURES, Tolerance, Validation};

/// The page of a validation.
#[must_use]
pub fn of_validation(validation: &Validation, pictures: &[Picture]) -> String {
    let answer = answer::of_validation(validation);
    let mut tables = Vec::new();
    if validation.runs.len() > 1 {
        tables.push(sums(validation));
    }
    tables.push(rows(validation));
    let facts = vec![
        ("Fitted to", validation.fitted_to.clone()),
        ("Numbers drawn from their intervals", validation.uncertain.to_string()),
        ("Baseline", validation.baseline.clone().unwrap_or_default()),
        ("Train steps of the warm-up", validation.warmup_steps.to_string()),
        ("Seed", validation.seed.to_string()),
        ("Replications", validation.replications.to_string()),
        ("Scenario, digest", validation.scenario_digest.clone()),
        ("Headway", validation.version.clone()),
    ];
    Page {
        kind: "Validation",
        name: &validation.scenario,
        title: "",
        answer: &answer,
        pictures,
        tables,
        about: validation.about.as_ref(),
        scenarios: Vec::new(),
        facts,
        varied: "Each run was simulated under the configuration in its record instead.".into(),
    }
    .write()
}

/// A row for each figure.
fn sums(validation: &Validation) -> Table {
    let row = |sum: &crate::validate::Sum| {
        let worst = sum.worst?;
        let within = match sum.within {
            (_, 0) => String::new(),
            (kept, judged) => format!("{kept} of {judged}"),
        };
        let relative = matches!(worst.tolerance, Tolerance::Relative(_));
        let error = worst.relative_error().filter(|_| relative);
        let text = error
            .map_or_else(|| number::short(worst.error()), |share| number::percent(Some(share)));
        Some(Row::of([
            Cell::plain(FIGURES[sum.figure].name),
            Cell::plain(sum.runs.to_string()),
            Cell::plain(sum.inside.to_string()),
            Cell::plain(within),
            Cell::plain(worst.tolerance.to_string()),
            Cell { text, raw: number::cell(error.or(worst.error())) },
            Cell::plain(validation.runs[worst.run].name.clone()),
        ]))
    };
    Table {
        caption: "What each figure comes to".into(),
        columns: vec![
            Column::word("metric"),
            Column::number("runs"),
            Column::number("in the interval"),
            Column::number("in the tolerance"),
            Column::number("tolerance"),
            Column::number("largest error"),
            Column::word("of"),
        ],
        rows: validation.sums.iter().filter_map(row).collect(),
        ..Table::default()
    }
}

/// A row for each run and figure, as the CSV has them.
fn rows(validation: &Validation) -> Table {
    const NUMBERS: [&str; 4] = ["measured", "predicted", "low", "high"];
    const WORDS: [&str; 3] = ["inside", "tolerance", "within"];
    let csv: Csv = validation.csv();
    let row = |row: usize| {
        let name = csv.text(row, "metric").to_owned();
        let number = |column: &&str| Cell {
            text: metrics::text(&name, csv.value(row, column), None),
            raw: csv.text(row, column).to_owned(),
        };
        let plain = |column: &str| Cell::plain(csv.text(row, column));
        let settings = validation.keys.iter().map(|key| plain(key));
        let cells = [plain("metric"), plain("run")].into_iter().chain(settings);
        let cells = cells.chain(NUMBERS.iter().map(number)).chain(WORDS.map(plain));
        Row::of(cells)
    };
    let words =
        ["metric", "run"].map(str::to_owned).into_iter().chain(validation.keys.iter().cloned());
    let heads = words.map(Column::word);
    let heads = heads.chain(NUMBERS.map(Column::number)).chain(WORDS.map(Column::word));
    Table {
        caption: "Predicted and measured".into(),
        note: "As validation.csv beside this page. Inside: in the predicted interval. Within: in the tolerance."
            .into(),
        columns: heads.collect(),
        rows: (0..csv.rows.len()).map(row).collect(),
        folded: false,
    }
}
