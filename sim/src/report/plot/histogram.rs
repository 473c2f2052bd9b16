//! How stale the trained samples were: one small histogram per point.

use super::PlotError;
use super::axis::Axis;
use super::curve::Curve;
use super::page::{self, Head, Key, Picture};
use super::panel::Panel;
use super::theme::{REFERENCE, SERIES};

/// More points than this are thinned out, the first and the last kept.
const MOST: usize = 9;
const COLUMNS: usize = 3;

/// Percentage of trained samples by head staleness.
pub(crate) fn draw(curve: &Curve<'_>) -> Result<Picture, PlotError> {
    let titles = curve.titles();
    let places = thinned(titles.len());
    let bars: Vec<Vec<(f64, f64)>> =
        places.iter().map(|&place| percentages(curve, place)).collect();
    let highest = |of: fn(&(f64, f64)) -> f64| bars.iter().flatten().map(of).fold(0.0, f64::max);
    let columns = COLUMNS.min(places.len());
    let rows = places.len().div_ceil(columns.max(1));
    let x =
        Axis::counts("head staleness, versions", highest(|bar| bar.0) as u32, 18 / columns as u32);
    let y = Axis::from_zero("% of samples", highest(|bar| bar.1), 5);
    let bounds = curve.bounds();
    let bound = bounds.iter().map(|_| Key::Line(REFERENCE, "the bound η".into()));
    let legend: Vec<Key> = bound.collect();
    let head = Head {
        name: &curve.file("histogram"),
        title: "Head staleness of trained samples",
        subtitle: &curve.subtitle_of(&format!("% of the samples of {}", curve.replications())),
        legend: &legend,
        height: (110 + 270 * rows as i32).max(600),
        narrow: (200 * places.len() as i32).max(340),
    };
    page::draw(&head, |area| {
        let cells = page::cells(area, places.len(), [columns, 1]);
        for (cell, (bars, &place)) in cells.iter().zip(bars.iter().zip(&places)) {
            let panel = Panel::titled(cell, &titles[place], &x, &y)?;
            if bars.is_empty() {
                let middle = (x.range.0 + x.range.1) / 2.0;
                panel.note((middle, y.range.1 / 2.0), "nothing trained")?;
            }
            for &(staleness, percent) in bars {
                panel.bar((staleness - 0.42, 0.0), (staleness + 0.42, percent), SERIES[0].color)?;
            }
            if let Some((_, eta)) = bounds.as_ref().and_then(|bounds| bounds.get(place)) {
                panel.trace(&[(eta + 0.5, 0.0), (eta + 0.5, y.range.1)], REFERENCE)?;
            }
        }
        Ok(())
    })
}

/// Percentages of trained samples by staleness, without the empty ones.
fn percentages(curve: &Curve<'_>, place: usize) -> Vec<(f64, f64)> {
    let table = curve.histogram();
    let value =
        |row: usize| Some((table.value(row, "staleness")?, table.value(row, "share")? * 100.0));
    curve.rows_of(table, place).into_iter().filter_map(value).collect()
}

/// At most [`MOST`] of `count` places, evenly chosen.
fn thinned(count: usize) -> Vec<usize> {
    if count <= MOST {
        return (0..count).collect();
    }
    (0..MOST).map(|pick| pick * (count - 1) / (MOST - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_both_ends() {
        assert_eq!(thinned(3), [0, 1, 2]);
        let places = thinned(17);
        assert_eq!((places.len(), places[0], places[MOST - 1]), (MOST, 0, 16));
    }
}
