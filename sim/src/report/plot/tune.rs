//! The picture of a tuning.

use super::PlotError;
use super::axis::Axis;
use super::page::{self, Head, Key, Picture};
use super::panel::Panel;
use super::theme::{Marker, SERIES, Style};
use crate::tune::results::TuneResults;

const STALENESS: &str = "staleness_head_mean";

/// What is maximised against staleness: every candidate, the front joined and named.
pub(super) fn front(tune: &TuneResults) -> Result<Picture, PlotError> {
    let (points, rate) = (&tune.candidates, tune.meta.maximize.as_str());
    let rows: Vec<usize> = (0..points.rows.len()).collect();
    let at = |row: usize| Some((points.value(row, STALENESS)?, points.value(row, rate)?));
    // A wide interval may leave the picture; no point does.
    let top =
        |column: &str| rows.iter().filter_map(|&row| points.value(row, column)).fold(0.0, f64::max);
    let front = tune.on_front();
    let line = Style { marker: Marker::None, ..SERIES[0] };
    let breaks = |row: usize| !points.text(row, "breaks").is_empty();
    let style = |row: usize| if breaks(row) { SERIES[1] } else { SERIES[0] };
    let spot = |style: Style| Style { width: 0, ..style };
    let mut legend = vec![
        Key::Line(line, "front".into()),
        Key::Line(spot(SERIES[0]), "keeps the constraints".into()),
    ];
    if rows.iter().any(|&row| breaks(row)) {
        legend.push(Key::Line(spot(SERIES[1]), "breaks one".into()));
    }
    legend.push(Key::Line(spot(SERIES[2]), "as it is".into()));
    if tune.chosen().is_some() {
        legend.push(Key::Line(spot(SERIES[3]), "the choice".into()));
    }
    let head = Head {
        name: "front",
        title: &format!("{} against staleness", rate.replace('_', " ")),
        subtitle: &subtitle(tune),
        legend: &legend,
        height: 640,
        narrow: 420,
    };
    let x = Axis::from_zero("mean head staleness, learner versions", top(STALENESS) * 1.05, 10);
    let y = Axis::from_zero(&rate.replace('_', " "), top(rate) * 1.1, 8);
    page::draw(&head, |area| {
        let panel = Panel::on(area, &x, &y)?;
        let path: Vec<(f64, f64)> = front.iter().filter_map(|&row| at(row)).collect();
        panel.trace(&path, line)?;
        let is_strong = |row: usize| tune.is(row, "front") || tune.is(row, "chosen") || row == 0;
        let mut order = rows.clone();
        // What matters lies on top.
        order.sort_by_key(|&row| (is_strong(row), row == 0, tune.is(row, "chosen")));
        for &row in &order {
            let Some((age, gain)) = at(row) else { continue };
            let half = |name: &str| points.value(row, &format!("{name}_hw")).unwrap_or(0.0);
            let chosen = tune.is(row, "chosen");
            let style = match (chosen, row) {
                (true, _) => SERIES[3],
                (false, 0) => SERIES[2],
                _ => style(row),
            };
            let halves = (half(STALENESS), half(rate));
            panel.spot((age, gain), halves, style, is_strong(row))?;
            panel.tell_spot((age, gain), halves, style.color, &settings(tune, row))?;
        }
        let names = front.iter().filter_map(|&row| Some((at(row)?, name(tune, row)?)));
        panel.names(&names.collect::<Vec<_>>())
    })
}

/// What a point of the front is called: what it has otherwise than the choice, where that is one
/// key or two.
fn name(tune: &TuneResults, row: usize) -> Option<String> {
    let chosen = tune.chosen().unwrap_or(0);
    let set = tune.differs(row, chosen);
    (row != chosen && row != 0 && set.matches(", ").count() < 2).then_some(set)
}

/// All that a candidate has otherwise than the scenario.
fn settings(tune: &TuneResults, row: usize) -> String {
    let set = tune.differs(row, 0);
    if set.is_empty() { "as it is".into() } else { set }
}

fn subtitle(tune: &TuneResults) -> String {
    let meta = &tune.meta;
    let kept = if meta.subject_to.is_empty() {
        String::new()
    } else {
        format!(" · {}", meta.subject_to.join(", "))
    };
    format!(
        "{}{kept} · {} replications, 95% intervals; pale: fewer",
        meta.scenario, meta.replications
    )
}
