//! Where staleness comes from.

use headway_shared::core::STALENESS_PARTS;

use super::PlotError;
use super::axis::Axis;
use super::curve::Curve;
use super::page::{self, Head, Key, Picture};
use super::panel::Panel;
use super::theme::STACK;

/// Half the width of a stack, in places.
const HALF: f64 = 0.3;

/// What each part is, in the order of [`STALENESS_PARTS`].
const NAMES: [&str; STALENESS_PARTS.len()] = [
    "publish lag",
    "generating",
    "waiting for the next state",
    "judge queue",
    "judging",
    "waiting for group mates",
    "output queue",
];

/// Mean head staleness, stacked by the part of a sample's life in which it arose.
pub(crate) fn draw(curve: &Curve<'_>) -> Result<Picture, PlotError> {
    let versions = STALENESS_PARTS.map(|part| curve.metric(&format!("staleness_part_{part}")));
    let legend: Vec<Key> =
        NAMES.iter().zip(STACK).map(|(name, color)| Key::Fill(color, (*name).into())).collect();
    let head = Head {
        name: &curve.file("parts"),
        title: "Where staleness comes from",
        subtitle: &curve.subtitle_of(&format!("means of {}", curve.replications())),
        legend: &legend,
        height: 640,
        narrow: 420,
    };
    let total = |place: usize| versions.iter().filter_map(|part| part[place].1).sum::<f64>();
    let places = versions[0].len();
    let highest = (0..places).map(total).fold(0.0, f64::max);
    let y = Axis::from_zero("mean head staleness, learner versions", highest, 8);
    page::draw(&head, |area| {
        let panel = Panel::on(area, &curve.axis(), &y)?;
        let half = if places == 1 { HALF / 2.0 } else { HALF };
        for place in 0..places {
            if versions.iter().all(|part| part[place].1.is_none_or(|height| height == 0.0)) {
                let known = versions.iter().any(|part| part[place].1.is_some());
                panel.note((place as f64, 0.0), if known { "0" } else { "nothing trained" })?;
                continue;
            }
            let mut base = 0.0;
            for (part, color) in versions.iter().zip(STACK) {
                let (x, Some(height), _) = part[place] else { continue };
                panel.bar((x - half, base), (x + half, base + height), color)?;
                base += height;
            }
        }
        Ok(())
    })
}
