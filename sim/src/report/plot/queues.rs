//! Queues and utilisation over time, of one run.

use super::PlotError;
use super::axis::Axis;
use super::curve::{Curve, highest};
use super::page::{self, Head, Key, Picture};
use super::panel::{Panel, Point};
use super::theme::{Marker, SERIES, Style};
use crate::stats;

/// Each line has at most this many points, each the mean of a stretch of time: many for levels,
/// few for what is 0 or 1 at every instant.
const STRETCHES: [usize; 3] = [240, 240, 60];

pub(super) const LENGTHS: [(&str, &str); 3] = [
    ("rollout_queue", "rollout queue"),
    ("output_queue", "output queue"),
    ("outstanding", "outstanding"),
];
pub(super) const FLIGHT: [(&str, &str); 2] =
    [("running", "turns generating"), ("votes", "votes in flight")];
pub(super) const BUSY: [(&str, &str); 2] =
    [("training", "trainer busy"), ("closed", "closed (503)")];

/// Queue lengths, work in flight, and shares of time; nothing where no series was kept.
pub(crate) fn draw(curve: &Curve<'_>) -> Result<Option<Picture>, PlotError> {
    let table = curve.series();
    let rows = curve.rows_of(table, 0);
    let Some(end) = rows.last().and_then(|&row| table.value(row, "time_sec")) else {
        return Ok(None);
    };
    let (unit, seconds) = if end > 7200.0 { ("h", 3600.0) } else { ("min", 60.0) };
    let time = Axis::until(&format!("simulated time, {unit}"), end / seconds, 12);
    let styles = SERIES.map(|style| Style { marker: Marker::None, ..style });
    let groups: [&[(&str, &str)]; 3] = [&LENGTHS, &FLIGHT, &BUSY];
    let lines = [0, 1, 2].map(|group| -> Vec<(Vec<Point>, Style)> {
        let length = rows.len().div_ceil(STRETCHES[group]).max(1);
        let stretches: Vec<&[usize]> = rows.chunks(length).collect();
        let columns = groups[group].iter();
        columns.map(|(column, _)| means(curve, &stretches, column, seconds)).zip(styles).collect()
    });
    let top = |group: usize| highest(lines[group].iter().map(|(points, _)| points));
    let axes = [
        Axis::from_zero("samples", top(0), 4),
        Axis::from_zero("in flight", top(1), 4),
        Axis::share("share of time"),
    ];
    let head = Head {
        name: &curve.file("queues"),
        title: "Queues and utilisation over time",
        subtitle: &curve.subtitle_of("replication 0"),
        legend: &[],
        height: 960,
        narrow: 840,
    };
    page::draw(&head, |area| {
        for (group, area) in area.split_evenly((3, 1)).iter().enumerate() {
            let names = groups[group].iter().zip(styles);
            let keys: Vec<Key> =
                names.map(|(name, style)| Key::Line(style, name.1.into())).collect();
            let below = page::legend(area, &keys)?;
            Panel::on(&below, &time, &axes[group])?.curves(&lines[group], true)?;
        }
        Ok(())
    })
    .map(Some)
}

/// The means of a column over stretches of time.
fn means(curve: &Curve<'_>, stretches: &[&[usize]], column: &str, seconds: f64) -> Vec<Point> {
    let table = curve.series();
    let mean = |stretch: &&[usize]| {
        let values: Vec<f64> = stretch.iter().filter_map(|&row| table.value(row, column)).collect();
        let start = table.value(*stretch.first()?, "time_sec")?;
        Some((start / seconds, stats::mean(&values), None))
    };
    stretches.iter().filter_map(mean).collect()
}
