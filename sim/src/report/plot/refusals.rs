//! Refused requests over the swept key.

use super::PlotError;
use super::axis::Axis;
use super::curve::{Curve, highest};
use super::page::{self, Head, Key, Picture};
use super::panel::Panel;
use super::theme::SERIES;

const METRICS: [(&str, &str); 4] = [
    ("refused_stale_share", "429, staleness bound"),
    ("refused_queue_full_share", "429, queue full"),
    ("refused_other_429_share", "429, other"),
    ("refused_503_share", "503, unavailable"),
];

/// Refused requests as shares of those offered, by reason.
pub(crate) fn draw(curve: &Curve<'_>) -> Result<Picture, PlotError> {
    let series = METRICS.map(|(metric, _)| curve.metric(metric));
    let legend: Vec<Key> = METRICS
        .iter()
        .zip(SERIES)
        .map(|(metric, style)| Key::Line(style, metric.1.into()))
        .collect();
    let head = Head {
        name: &curve.file("refusals"),
        title: "Refused requests",
        subtitle: &curve.subtitle(),
        legend: &legend,
        height: 640,
    };
    let y = Axis::from_zero(
        "share of requests offered (retries included), %",
        highest(&series) * 100.0,
        8,
    );
    page::draw(&head, |area| {
        let panel = Panel::on(area, &curve.axis(), &y)?;
        for (points, style) in series.iter().zip(SERIES) {
            let percent: Vec<_> = points
                .iter()
                .map(|&(x, share, half)| (x, share.map(|s| s * 100.0), half.map(|h| h * 100.0)))
                .collect();
            panel.curve(&percent, style, curve.is_numeric())?;
        }
        Ok(())
    })
}
