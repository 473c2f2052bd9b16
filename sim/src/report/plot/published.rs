//! What others published, beside what is predicted of it.

use super::PlotError;
use super::axis::Axis;
use super::curve::highest;
use super::page::{self, Head, Key, Picture};
use super::panel::{Panel, Point};
use super::theme::SERIES;
use crate::report::csv::Csv;

/// Height of a panel, in pixels.
const HEIGHT: i32 = 290;

/// One quantity of one source, over its cases.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    source: String,
    label: String,
    cases: Vec<String>,
    published: Vec<Point>,
    predicted: Vec<Point>,
}

/// Draws the rows of `results/validation/published.csv` that the sources in `shown` have, a panel
/// for each: the published value of each case, and the predicted one with its interval. Of a source
/// with several quantities the first is drawn.
///
/// # Errors
/// The picture could not be laid out or encoded.
pub fn draw_published(table: &Csv, shown: &[&str]) -> Result<Picture, PlotError> {
    let groups: Vec<Group> = shown.iter().filter_map(|source| group(table, source)).collect();
    let [published, predicted] = [SERIES[0], SERIES[1]];
    let legend = [
        Key::Line(published, "published".into()),
        Key::Line(predicted, "predicted, with its 95% interval".into()),
    ];
    let panels = groups.len().max(1);
    let head = Head {
        name: "published",
        title: "Published systems, and what is predicted of them",
        subtitle: "some rows were fitted to: docs/accuracy.md says which",
        legend: &legend,
        height: 110 + HEIGHT * panels as i32,
        narrow: HEIGHT * panels as i32,
    };
    page::draw(&head, |area| {
        for (place, group) in area.split_evenly((panels, 1)).iter().zip(&groups) {
            let lines =
                [(group.published.clone(), published), (group.predicted.clone(), predicted)];
            let x = Axis::places("", &group.cases);
            let y = Axis::from_zero(&group.label, highest(lines.iter().map(|line| &line.0)), 5);
            Panel::titled(place, &group.source, &x, &y)?.curves(&lines, false)?;
        }
        Ok(())
    })
}

fn group(table: &Csv, source: &str) -> Option<Group> {
    let of = |row: &usize| table.text(*row, "source") == source;
    let first = (0..table.rows.len()).find(of)?;
    let quantity = table.text(first, "quantity");
    let rows: Vec<usize> = (0..table.rows.len())
        .filter(|row| of(row) && table.text(*row, "quantity") == quantity)
        .collect();
    let points = |value: &str, half: &str| {
        let point = |(place, &row): (usize, &usize)| {
            (place as f64, table.value(row, value), table.value(row, half))
        };
        rows.iter().enumerate().map(point).collect()
    };
    Some(Group {
        source: source.to_owned(),
        label: format!("{quantity}, {}", table.text(first, "unit")),
        cases: rows.iter().map(|&row| table.text(row, "case").to_owned()).collect(),
        published: points("published", ""),
        predicted: points("predicted", "ci"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_has_the_first_quantity_of_its_source() {
        let header = ["source", "case", "quantity", "unit", "published", "predicted", "ci"];
        let mut table = Csv::new(header);
        for (case, quantity) in [("a", "step"), ("a", "wait"), ("b", "step")] {
            let row = ["them", case, quantity, "s", "3", "4", "0.5"];
            table.rows.push(row.map(str::to_owned).to_vec());
        }
        let group = group(&table, "them").expect("its rows are there");
        assert_eq!(group.label, "step, s");
        assert_eq!(group.cases, ["a", "b"]);
        assert_eq!(group.published[1], (1.0, Some(3.0), None));
        assert_eq!(group.predicted[1], (1.0, Some(4.0), Some(0.5)));
        let picture = draw_published(&table, &["them", "nobody"]).expect("there is room");
        assert!(picture.svg.contains("them") && !picture.png.is_empty());
    }
}
