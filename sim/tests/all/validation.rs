//! `results/validation/published.csv`: what others published, beside what is predicted of it.

use std::env;
use std::fs;

use headway_sim::report::csv::Csv;
use headway_sim::report::number;
use headway_sim::report::plot::draw_published;
use headway_sim::stats::Estimate;

use super::{applied_compute, areal_throughput, committed, verl_fully_async};

const TABLE: &str = "results/validation/published.csv";
const PICTURE: &str = "results/validation/published";

/// What a row's number owes to the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The world was fitted to it.
    Fitted,
    /// Nothing was fitted to it.
    Predicted,
}

/// One number that was published, or follows from a formula, and its prediction.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) source: &'static str,
    pub(crate) case: String,
    pub(crate) quantity: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) published: f64,
    pub(crate) predicted: Estimate,
    /// How far apart they may be; `None`: reported only.
    pub(crate) tolerance: Option<f64>,
    pub(crate) role: Role,
    pub(crate) note: &'static str,
}

impl Row {
    pub(crate) fn error(&self) -> f64 {
        self.predicted.mean - self.published
    }

    pub(crate) fn inside(&self) -> Option<bool> {
        self.tolerance.map(|tolerance| self.error().abs() <= tolerance)
    }

    fn cells(&self) -> Vec<String> {
        let digits = |value: f64| format!("{value:.3}");
        let share = self.error() / self.published;
        let inside = self.inside().map_or("", |inside| if inside { "yes" } else { "no" });
        vec![
            self.source.into(),
            self.case.clone(),
            self.quantity.into(),
            self.unit.into(),
            number::text(self.published),
            digits(self.predicted.mean),
            self.predicted.half_width.map_or_else(String::new, digits),
            format!("{:+.3}", self.error()),
            format!("{:+.1}%", 100.0 * share),
            self.tolerance.map_or_else(String::new, digits),
            inside.into(),
            match self.role {
                Role::Fitted => "fitted",
                Role::Predicted => "predicted",
            }
            .into(),
            self.note.into(),
        ]
    }
}

fn table() -> Csv {
    let mut table = Csv::new([
        "source",
        "case",
        "quantity",
        "unit",
        "published",
        "predicted",
        "ci",
        "error",
        "error_share",
        "tolerance",
        "inside",
        "role",
        "note",
    ]);
    let rows = [applied_compute::rows(), verl_fully_async::rows(), areal_throughput::rows()];
    table.rows.extend(rows.into_iter().flatten().map(Row::cells));
    table
}

/// `HEADWAY_BLESS=1 cargo test -p headway-sim --test all validation` makes table and picture.
#[test]
fn what_was_published_is_predicted_as_committed() {
    let table = table();
    committed::check(TABLE, &String::from_utf8(table.to_bytes().unwrap()).unwrap());
    let shown = [applied_compute::SOURCE, verl_fully_async::SOURCE, areal_throughput::SOURCE];
    let picture = draw_published(&table, &shown).unwrap();
    committed::check(&format!("{PICTURE}.svg"), &picture.svg);
    let png = committed::root().join(format!("{PICTURE}.png"));
    if env::var_os("HEADWAY_BLESS").is_some() {
        fs::write(&png, picture.png).unwrap();
    }
    assert!(png.exists());
}
