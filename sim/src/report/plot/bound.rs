//! A bound that moves, over time, of one run.

use super::PlotError;
use super::axis::Axis;
use super::curve::{Curve, highest};
use super::page::{self, Head, Picture};
use super::panel::{Panel, Point};
use super::theme::{Marker, SERIES, Style};

/// What the gate binds.
pub(super) const COLUMN: &str = "bound";
/// The line has at most this many points.
const STRETCHES: usize = 480;

/// The bound over time; nothing where it stays, or no series was kept.
pub(crate) fn draw(curve: &Curve<'_>) -> Result<Option<Picture>, PlotError> {
    let table = curve.series();
    let rows = curve.rows_of(table, 0);
    let step = rows.len().div_ceil(STRETCHES).max(1);
    let at = |&row: &usize| Some((table.value(row, "time_sec")?, table.value(row, COLUMN)?));
    let values: Vec<(f64, f64)> = rows.iter().step_by(step).filter_map(at).collect();
    let Some(&(end, last)) = values.last() else { return Ok(None) };
    if values.iter().all(|(_, bound)| *bound == last) {
        return Ok(None);
    }
    let (unit, seconds) = if end > 7200.0 { ("h", 3600.0) } else { ("min", 60.0) };
    let time = Axis::until(&format!("simulated time, {unit}"), end / seconds, 12);
    let points: Vec<Point> =
        values.iter().map(|(at, bound)| (at / seconds, Some(*bound), None)).collect();
    let style = Style { marker: Marker::None, ..SERIES[0] };
    let axis = Axis::from_zero("learner versions", highest([&points]), 4);
    let head = Head {
        name: &curve.file("bound"),
        title: "The bound in force over time",
        subtitle: &curve.subtitle_of("replication 0"),
        legend: &[],
        height: 420,
        narrow: 300,
    };
    let lines = [(points, style)];
    page::draw(&head, |area| Panel::on(area, &time, &axis)?.curves(&lines, true)).map(Some)
}
