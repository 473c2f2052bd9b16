//! Throughput and idle shares over the swept key.

use super::PlotError;
use super::axis::Axis;
use super::curve::{Curve, highest};
use super::page::{self, Head, Key, Picture};
use super::panel::Panel;
use super::theme::{SERIES, px};

pub(super) const IDLE: [(&str, &str); 3] = [
    ("serving_idle_share", "serving idle"),
    ("judge_idle_share", "judge idle"),
    ("trainer_idle_share", "trainer idle"),
];

/// Trained samples per hour above, the idle shares of the loops below.
pub(crate) fn draw(curve: &Curve<'_>) -> Result<Picture, PlotError> {
    let trained = curve.metric("trained_samples_per_hour");
    let [first, styles @ ..] = SERIES;
    let mut legend = vec![Key::Line(first, "trained samples/h".into())];
    legend.extend(IDLE.iter().zip(styles).map(|(idle, style)| Key::Line(style, idle.1.into())));
    let head = Head {
        name: &curve.file("throughput"),
        title: "Throughput, and what stands idle",
        subtitle: &curve.subtitle(),
        legend: &legend,
        height: 760,
        narrow: 640,
    };
    let rate = Axis::from_zero("trained samples/h", highest([&trained]), 6);
    page::draw(&head, |area| {
        let (above, below) = area.split_vertically(px(340));
        let joined = curve.is_numeric();
        Panel::on(&above, &curve.axis(), &rate)?.curves(&[(trained.clone(), first)], joined)?;
        let idle: Vec<_> =
            IDLE.iter().zip(styles).map(|(idle, style)| (curve.metric(idle.0), style)).collect();
        let share = Axis::share("idle share of time");
        Panel::on(&below, &curve.axis(), &share)?.curves(&idle, joined)
    })
}
