//! Queues and utilisation over time, of one run.

use super::PlotError;
use super::axis::Axis;
use super::curve::{Curve, highest};
use super::page::{self, Head, Key, Picture};
use super::panel::{Panel, Point};
use super::theme::{Marker, SERIES, Style};

/// Each line has at most this many points, each the mean of a stretch of time.
const STRETCHES: usize = 240;

const LENGTHS: [(&str, &str); 3] = [
    ("rollout_queue", "rollout queue"),
    ("output_queue", "output queue"),
    ("outstanding", "outstanding"),
];
const FLIGHT: [(&str, &str); 2] = [("running", "turns generating"), ("votes", "votes in flight")];
const BUSY: [(&str, &str); 2] = [("training", "trainer busy"), ("closed", "closed (503)")];

/// Queue lengths, work in flight, and shares of time; nothing where no series was kept.
pub(crate) fn draw(curve: &Curve<'_>) -> Result<Option<Picture>, PlotError> {
    let table = curve.series();
    let rows = curve.rows_of(table, 0);
    let Some(end) = rows.last().and_then(|&row| table.value(row, "time_sec")) else {
        return Ok(None);
    };
    let (unit, seconds) = if end > 7200.0 { ("h", 3600.0) } else { ("min", 60.0) };
    let time = Axis::until(&format!("simulated time, {unit}"), end / seconds, 12);
    let lines = |columns: &[(&str, &str)]| -> Vec<Vec<Point>> {
        columns.iter().map(|(column, _)| means(curve, &rows, column, seconds)).collect()
    };
    let groups = [lines(&LENGTHS), lines(&FLIGHT), lines(&BUSY)];
    let axes = [
        Axis::from_zero("samples", highest(&groups[0]), 4),
        Axis::from_zero("in flight", highest(&groups[1]), 4),
        Axis::share("share of time"),
    ];
    let styles = SERIES.map(|style| Style { marker: Marker::None, ..style });
    let head = Head {
        name: &curve.file("queues"),
        title: "Queues and utilisation over time",
        subtitle: &curve.subtitle_of("replication 0"),
        legend: &[],
        height: 960,
    };
    let names: [&[(&str, &str)]; 3] = [&LENGTHS, &FLIGHT, &BUSY];
    page::draw(&head, |area| {
        for (panel, area) in area.split_evenly((3, 1)).iter().enumerate() {
            let keys: Vec<Key> = names[panel]
                .iter()
                .zip(styles)
                .map(|(name, style)| Key::Line(style, name.1.into()))
                .collect();
            let below = page::legend(area, &keys)?;
            let panel_area = Panel::on(&below, &time, &axes[panel])?;
            for (points, style) in groups[panel].iter().zip(styles) {
                panel_area.curve(points, style, true)?;
            }
        }
        Ok(())
    })
    .map(Some)
}

/// The means of a column over stretches of time.
fn means(curve: &Curve<'_>, rows: &[usize], column: &str, seconds: f64) -> Vec<Point> {
    let table = curve.series();
    let length = rows.len().div_ceil(STRETCHES).max(1);
    let mean = |stretch: &[usize]| {
        let values: Vec<f64> = stretch.iter().filter_map(|&row| table.value(row, column)).collect();
        let start = table.value(*stretch.first()?, "time_sec")?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some((start / seconds, (!values.is_empty()).then_some(mean), None))
    };
    rows.chunks(length).filter_map(mean).collect()
}
