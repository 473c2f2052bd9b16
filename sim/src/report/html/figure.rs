//! A plot of a page: its drawing, its values for pointer and keyboard, and the same as a table.

use std::fmt::Write;

use super::escape;
use super::table::{Cell, Column, Row, Table};
use crate::report::number;
use crate::report::plot::{Figure, FigurePanel, Value};

/// Writes the figure of this number. `name`: the name of its files.
pub(super) fn write(out: &mut String, number: usize, name: &str, figure: &Figure) {
    let (title, subtitle) = (escape(&figure.title), escape(&figure.subtitle));
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<figure id=\"figure-{number}\" data-name=\"{}\">\n<div class=\"plot\" tabindex=\"0\" role=\"group\" \
         aria-label=\"Plot: {title}. Arrow keys read its values.\">\n",
        escape(name),
    );
    open(out, figure, "wide", figure.view, "");
    out.push_str(&figure.svg);
    for (place, panel) in figure.panels.iter().enumerate() {
        write_values(out, place, panel, figure.unit);
    }
    out.push_str("</svg>\n");
    let place = |at: &Option<(i32, i32)>| at.map_or("-".to_owned(), |(x, y)| format!("{x},{y}"));
    let at: Vec<String> = figure.narrow.at.iter().map(place).collect();
    open(out, figure, "narrow", figure.narrow.view, &format!(" data-at=\"{}\"", at.join(" ")));
    out.push_str(&figure.narrow.svg);
    let _ = write!(
        out,
        "</svg>\n<output class=\"tip\"></output>\n</div>\n\
         <figcaption><b>Figure {number}. {title}.</b> {subtitle}.</figcaption>\n\
         <details class=\"values\">\n<summary>Values of figure {number}</summary>\n"
    );
    tables(figure).iter().for_each(|table| table.write(out));
    out.push_str("</details>\n</figure>\n");
}

/// The beginning of a drawing. `class`: for which width of the screen it is.
fn open(out: &mut String, figure: &Figure, class: &str, view: [i32; 4], more: &str) {
    let [left, top, width, height] = view;
    let (pixels_wide, pixels_high) = (width / figure.unit, height / figure.unit);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<svg class=\"{class}\" viewBox=\"{left} {top} {width} {height}\" width=\"{pixels_wide}\" \
         height=\"{pixels_high}\" role=\"img\" aria-label=\"{}, {}\"{more}>",
        escape(&figure.title),
        escape(&figure.subtitle)
    );
}

/// Places that say a value, each with its series.
fn write_values(out: &mut String, place: usize, panel: &FigurePanel, unit: i32) {
    let radius = 6 * unit;
    for value in &panel.values {
        let ((x, y), series) = (value.at, value.series);
        let _ = writeln!(
            out,
            "<circle class=\"v\" data-s=\"{place}.{series}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"><title>{}\
             </title></circle>",
            escape(&words(panel, value))
        );
    }
}

/// What a value says: `p99: 5 ±0.2; staleness bound η 4`.
fn words(panel: &FigurePanel, value: &Value) -> String {
    let series = panel.series.get(value.series).map_or("", String::as_str);
    let Value { x, text, name, .. } = value;
    let place = match x.as_str() {
        "" => String::new(),
        x => match axis(&panel.x) {
            (axis, "h" | "min" | "s") => format!("; {axis} {x} {}", axis_unit(&panel.x)),
            ("", _) => format!("; {x}"),
            (axis, _) => format!("; {axis} {x}"),
        },
    };
    let title = if panel.title.is_empty() { String::new() } else { format!("{}, ", panel.title) };
    match name.as_str() {
        "" => format!("{title}{series}: {text}{place}"),
        name => format!("{name} ({series}): {} {text}{place}", axis(&panel.y).0),
    }
}

/// What an axis shows, without what explains it, and its unit.
fn axis(label: &str) -> (&str, &str) {
    let (name, unit) = label.rsplit_once(", ").unwrap_or((label, ""));
    (name.split(" (").next().unwrap_or(name), unit)
}

fn axis_unit(label: &str) -> &str {
    axis(label).1
}

/// The values as tables: one, where all panels show the same of different things.
fn tables(figure: &Figure) -> Vec<Table> {
    let alike = figure.panels.windows(2).all(|pair| {
        (&pair[0].x, &pair[0].y, &pair[0].series) == (&pair[1].x, &pair[1].y, &pair[1].series)
    });
    let single =
        figure.panels.iter().all(|panel| panel.series.len() == 1 && !panel.title.is_empty());
    if figure.panels.len() > 1 && alike && single {
        return vec![side_by_side(figure)];
    }
    let several = figure.panels.len() > 1;
    figure.panels.iter().map(|panel| of_panel(figure, panel, several)).collect()
}

/// A column for each panel.
fn side_by_side(figure: &Figure) -> Table {
    let first = &figure.panels[0];
    let columns = figure.panels.iter().map(|panel| panel.title.clone()).collect();
    let values: Vec<(usize, &Value)> = figure
        .panels
        .iter()
        .enumerate()
        .flat_map(|(place, panel)| panel.values.iter().map(move |value| (place, value)))
        .collect();
    let caption = format!("{}: {}", figure.title, first.y);
    pivot(caption, &first.x, columns, &values)
}

fn of_panel(figure: &Figure, panel: &FigurePanel, several: bool) -> Table {
    let caption = match (several, panel.title.as_str()) {
        (false, _) => figure.title.clone(),
        (true, "") => format!("{}: {}", figure.title, panel.y),
        (true, title) => format!("{}: {title}, {}", figure.title, panel.y),
    };
    if panel.values.iter().any(|value| !value.name.is_empty()) {
        return of_spots(caption, panel);
    }
    let values: Vec<(usize, &Value)> =
        panel.values.iter().map(|value| (value.series, value)).collect();
    pivot(caption, &panel.x, panel.series.clone(), &values)
}

/// A row for each place, a column for each series.
fn pivot(caption: String, x: &str, columns: Vec<String>, values: &[(usize, &Value)]) -> Table {
    let mut rows: Vec<(&str, Vec<Option<&Value>>)> = Vec::new();
    for &(column, value) in values {
        let place = rows.iter().position(|(x, _)| *x == value.x);
        let place = place.unwrap_or_else(|| {
            rows.push((&value.x, vec![None; columns.len()]));
            rows.len() - 1
        });
        // Of two values at one place that are written alike the first is shown.
        rows[place].1[column].get_or_insert(value);
    }
    if let Some(keys) = rows.iter().map(|(x, _)| place(x)).collect::<Option<Vec<f64>>>() {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|&one, &other| keys[one].total_cmp(&keys[other]));
        rows = order.into_iter().map(|at| rows[at].clone()).collect();
    }
    let cell = |value: Option<&Value>| {
        value.map_or_else(
            || Cell::plain(""),
            |value| Cell { text: value.text.clone(), raw: value.raw.clone() },
        )
    };
    let row = |(x, values): (&str, Vec<Option<&Value>>)| {
        Row::of(std::iter::once(Cell::plain(x)).chain(values.into_iter().map(cell)))
    };
    // A single run has no key along its axis.
    let x = if x.is_empty() { "run" } else { x };
    let heads = std::iter::once(Column::word(x)).chain(columns.into_iter().map(Column::number));
    Table {
        caption,
        columns: heads.collect(),
        rows: rows.into_iter().map(row).collect(),
        ..Table::default()
    }
}

/// A place that is a number, as people read it.
fn place(x: &str) -> Option<f64> {
    number::parse(&x.replace(',', ""))
}

/// A row for each point that has a name.
fn of_spots(caption: String, panel: &FigurePanel) -> Table {
    let row = |value: &Value| {
        Row::of([
            Cell::plain(value.name.clone()),
            Cell::plain(panel.series.get(value.series).cloned().unwrap_or_default()),
            Cell::plain(value.x.clone()),
            Cell { text: value.text.clone(), raw: value.raw.clone() },
        ])
    };
    Table {
        caption,
        columns: vec![
            Column::word("point"),
            Column::word("kind"),
            Column::number(&panel.x),
            Column::number(&panel.y),
        ],
        rows: panel.values.iter().map(row).collect(),
        ..Table::default()
    }
}
