//! What was fitted, a row each.

use comfy_table::Cell;
use headway_sim::calibrate::estimate::Item;
use headway_sim::calibrate::{Calibrated, json};
use headway_sim::report::csv::Csv;
use headway_sim::report::number;

use super::{empty, right, written_out};
use crate::failure::Failure;
use crate::options::Format;

/// The numbers of a calibration, in the form that is wanted.
pub(crate) fn calibrated(found: &Calibrated, format: Format) -> Result<String, Failure> {
    match format {
        Format::Table => Ok(table(&found.items)),
        Format::Json => Ok(format!("{:#}\n", json::document(found))),
        Format::Csv => csv(&found.items).to_text().map_err(Failure::broken),
    }
}

fn table(items: &[Item]) -> String {
    let header = ["", "law", "parameters, 90% interval", "of", "mean", "fit"];
    let mut table = empty(header.map(str::to_owned));
    for item in items.iter().filter(|item| item.family != "setting") {
        let mean = number::short(item.mean());
        table.add_row([
            Cell::new(&item.what),
            Cell::new(item.family),
            Cell::new(parameters(item)),
            right(number::short(Some(item.count as f64))),
            right(mean),
            right(goodness(item)),
        ]);
    }
    written_out(&table)
}

/// A parameter per line.
fn parameters(item: &Item) -> String {
    let lines = item.parameters.iter().map(|(path, parameter)| {
        let key = path.rsplit('.').next().unwrap_or(path);
        let [value, low, high] =
            [parameter.value, parameter.low, parameter.high].map(|n| number::short(Some(n)));
        format!("{key} {value} ({low} to {high})")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn goodness(item: &Item) -> String {
    match (item.distance, item.r_squared) {
        (Some((ks, p)), _) if !matches!(item.family, "constant" | "empirical") => {
            format!("D {}, p {}", number::short(Some(ks)), number::short(Some(p)))
        }
        (_, Some(r_squared)) => format!("R² {}", number::short(Some(r_squared))),
        _ => "-".to_owned(),
    }
}

fn csv(items: &[Item]) -> Csv {
    let header = ["what", "key", "law", "parameter", "value", "low", "high", "count", "cut"];
    let more = ["mean", "distance", "p_value", "r_squared"];
    let mut csv = Csv::new(header.into_iter().chain(more));
    for item in items.iter().filter(|item| item.family != "setting") {
        let key = format!("{}.{}", item.table, item.values.first().map_or("", |(key, _)| key));
        let row = |parameter: &str, [value, low, high]: [Option<f64>; 3]| {
            let texts =
                [&item.what, &key, item.family, parameter].map(|text: &str| text.to_owned());
            let counts = [item.count.to_string(), item.cut.to_string()];
            let numbers = [
                item.mean(),
                item.distance.map(|distance| distance.0),
                item.distance.map(|distance| distance.1),
                item.r_squared,
            ];
            let cells = [value, low, high].map(number::cell);
            let cells = texts.into_iter().chain(cells).chain(counts);
            cells.chain(numbers.map(number::cell)).collect()
        };
        if item.parameters.is_empty() {
            csv.rows.push(row("", [None; 3]));
        }
        for (path, parameter) in &item.parameters {
            let ends = [parameter.value, parameter.low, parameter.high].map(Some);
            csv.rows.push(row(path, ends));
        }
    }
    csv
}
