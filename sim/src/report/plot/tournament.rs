//! The pictures of a tournament.

use plotters::style::RGBColor;

use super::axis::Axis;
use super::page::{self, Head, Key, Picture};
use super::panel::Panel;
use super::theme::{Marker, REFERENCE, SERIES, Style};
use super::{Drawn, PlotError};
use crate::report::csv::Csv;
use crate::report::number;
use crate::tournament::results::{TournamentResults, Workload};

const RATE: &str = "trained_samples_per_hour";
const AGE: &str = "staleness_head_p99";

/// Older than this lies on the right edge: beyond it nothing is decided.
const OLDEST: f64 = 16.0;
/// Panels side by side.
const COLUMNS: usize = 3;
/// The same on a phone.
const NARROW: usize = 2;
/// Height of a panel, in pixels.
const HEIGHT: i32 = 225;

/// What all other points look like.
const OTHERS: Style =
    Style { color: RGBColor(0x88, 0x88, 0x88), dash: &[], marker: Marker::Disc, width: 0 };

/// The front of those whose trained lengths are the workload's.
const UNBIASED: Style =
    Style { color: RGBColor(0x22, 0x22, 0x22), dash: &[], marker: Marker::None, width: 1 };

/// A style per sync mode.
fn styles(results: &TournamentResults) -> Vec<(&str, Style)> {
    let purple =
        Style { color: RGBColor(0x8e, 0x4e, 0xa8), dash: &[6, 3], marker: Marker::Disc, width: 2 };
    let all = SERIES.into_iter().chain([purple]);
    results.meta.sync_modes.iter().map(String::as_str).zip(all).collect()
}

/// A row that ran.
struct Spot<'a> {
    gate: &'a str,
    mode: &'a str,
    knob: &'a str,
    /// Where it is drawn.
    at: (f64, f64),
    /// Its age, however old.
    age: f64,
    half: (f64, f64),
    on_front: bool,
    biased: bool,
}

impl Spot<'_> {
    /// The style of its mode, pale where its lengths are biased.
    fn style(&self, style: Style) -> Style {
        let RGBColor(red, green, blue) = style.color;
        let pale = |part: u8| 255 - (255 - part) / 5 * 2;
        match self.biased {
            true => Style { color: RGBColor(pale(red), pale(green), pale(blue)), ..style },
            false => style,
        }
    }
}

struct Field<'a> {
    spots: Vec<Spot<'a>>,
    x: Axis,
    y: Axis,
}

impl<'a> Field<'a> {
    fn of(results: &'a TournamentResults, workload: &Workload) -> Self {
        let table = &results.table;
        let spots: Vec<Spot<'_>> = results
            .rows_of(&workload.name)
            .into_iter()
            .filter_map(|row| spot(table, row, results.is_biased(row)))
            .collect();
        let oldest = spots.iter().fold(1.0, |most: f64, spot| most.max(spot.at.0));
        let highest = spots.iter().fold(0.0, |most: f64, spot| most.max(spot.at.1));
        let label = match oldest >= OLDEST {
            true => {
                format!("p99 of head staleness, learner versions ({OLDEST} and more at the edge)")
            }
            false => "p99 of head staleness, learner versions".to_owned(),
        };
        // Half a version beyond, so that no marker is cut.
        let x = Axis::until(&label, oldest.min(OLDEST) + 0.5, 8);
        let y = Axis::from_zero("trained samples/h", highest * 1.05, 6);
        Self { spots, x, y }
    }

    /// The front from young to old, as stairs are climbed.
    fn front(&self) -> Vec<&Spot<'a>> {
        let mut front: Vec<&Spot<'_>> = self.spots.iter().filter(|spot| spot.on_front).collect();
        front.sort_by(|one, other| {
            let age = one.at.0.total_cmp(&other.at.0);
            age.then(one.at.1.total_cmp(&other.at.1))
        });
        front
    }

    /// The best throughput up to each age, of all rows or of those without length bias.
    fn stairs(&self, all: bool) -> Vec<(f64, f64)> {
        let mut spots: Vec<&Spot<'_>> =
            self.spots.iter().filter(|spot| all || !spot.biased).collect();
        spots.sort_by(|one, other| {
            let age = one.at.0.total_cmp(&other.at.0);
            age.then(other.at.1.total_cmp(&one.at.1))
        });
        let mut path: Vec<(f64, f64)> = Vec::new();
        for spot in spots {
            let top = path.last().map_or(0.0, |last| last.1);
            if spot.at.1 > top {
                path.extend((!path.is_empty()).then_some((spot.at.0, top)));
                path.push(spot.at);
            }
        }
        let end = path.last().map(|last| (self.x.range.1, last.1));
        path.extend(end);
        path
    }
}

fn spot(table: &Csv, row: usize, biased: bool) -> Option<Spot<'_>> {
    let value = |column: &str| table.value(row, column);
    let half = |column: &str| value(&format!("{column}_hw")).unwrap_or(0.0);
    Some(Spot {
        gate: table.text(row, "gate"),
        mode: table.text(row, "sync_mode"),
        knob: table.text(row, "knob"),
        at: (value(AGE)?.min(OLDEST), value(RATE)?),
        age: value(AGE)?,
        half: (half(AGE), half(RATE)),
        on_front: table.text(row, "front") == "yes",
        biased,
    })
}

fn legend(modes: &[(&str, Style)]) -> Vec<Key> {
    let fronts = [
        Key::Line(REFERENCE, "fastest".into()),
        Key::Line(UNBIASED, "fastest without length bias".into()),
    ];
    let modes = modes
        .iter()
        .map(|(name, style)| Key::Line(Style { width: 0, ..*style }, (*name).to_owned()));
    fronts.into_iter().chain(modes).collect()
}

/// Ticks in thousands, where they would take more room than a small panel has.
fn thousands(mut axis: Axis) -> Axis {
    if axis.range.1 >= 10_000.0 {
        for (at, name) in axis.ticks.iter_mut().filter(|(at, _)| *at > 0.0) {
            *name = format!("{}k", number::short(Some(*at / 1000.0)));
        }
    }
    axis
}

fn subtitle(workload: &Workload) -> String {
    let Workload { name, replications, .. } = workload;
    format!(
        "{name} · {replications} replications, 90% intervals · pale: lengths off by more than 5%"
    )
}

/// Throughput against staleness: the front named and in the colours of sync modes, all else pale.
pub(super) fn front(
    results: &TournamentResults,
    workload: &Workload,
) -> Result<Picture, PlotError> {
    let field = Field::of(results, workload);
    let modes = styles(results);
    let legend = legend(&modes);
    let name = format!("{}-front", workload.name);
    let head = Head {
        name: &name,
        title: "The front of throughput against staleness",
        subtitle: &subtitle(workload),
        legend: &legend,
        height: 640,
        narrow: 460,
    };
    page::draw(&head, |area| {
        let panel = Panel::on(area, &field.x, &field.y)?;
        for spot in field.spots.iter().filter(|spot| !spot.on_front) {
            panel.spot(spot.at, (0.0, 0.0), OTHERS, false)?;
        }
        panel.trace(&field.stairs(true), REFERENCE)?;
        panel.trace(&field.stairs(false), UNBIASED)?;
        let front = field.front();
        for spot in &front {
            let style = modes.iter().find(|(name, _)| *name == spot.mode).map(|(_, style)| *style);
            let style = style.unwrap_or(OTHERS);
            panel.spot(spot.at, spot.half, spot.style(style), true)?;
            tell(&panel, spot, style)?;
        }
        let names = front.iter().map(|spot| (spot.at, name_of(spot)));
        panel.names(&names.collect::<Vec<_>>())
    })
}

fn name_of(spot: &Spot<'_>) -> String {
    let value = spot.knob.replace("max_head_off_policyness=", "η=");
    match value.is_empty() {
        true => spot.gate.to_owned(),
        false => format!("{} {value}", spot.gate),
    }
}

/// Says what a spot is. `style`: that of its sync mode, by which it is called.
fn tell(panel: &Panel<'_>, spot: &Spot<'_>, style: Style) -> Drawn {
    let bias = if spot.biased { ", lengths off" } else { "" };
    panel.tell_spot((spot.age, spot.at.1), spot.half, style.color, &(name_of(spot) + bias))
}

/// A panel per gate: its rows in the colours of sync modes, and the fronts of all gates together.
pub(super) fn gates(
    results: &TournamentResults,
    workload: &Workload,
) -> Result<Picture, PlotError> {
    let field = Field::of(results, workload);
    let modes = styles(results);
    let legend = legend(&modes);
    let gates: Vec<&String> = results.meta.gates.iter().collect();
    let lines = gates.len().div_ceil(COLUMNS).max(1);
    let name = format!("{}-gates", workload.name);
    let head = Head {
        name: &name,
        title: "Trained samples/h against the p99 of staleness, gate by gate",
        subtitle: &subtitle(workload),
        legend: &legend,
        height: 120 + HEIGHT * lines as i32,
        narrow: 190 * gates.len().div_ceil(NARROW) as i32,
    };
    let (x, y) = (field.x.clone().without_label(), thousands(field.y.clone().without_label()));
    let (all, unbiased) = (field.stairs(true), field.stairs(false));
    page::draw(&head, |area| {
        let cells = page::cells(area, gates.len(), [COLUMNS, NARROW]);
        for (place, gate) in cells.iter().zip(&gates) {
            let panel = Panel::titled(place, gate, &x, &y)?;
            panel.trace(&all, REFERENCE)?;
            panel.trace(&unbiased, UNBIASED)?;
            for (mode, style) in &modes {
                let of_mode = |spot: &&Spot<'_>| spot.gate == gate.as_str() && spot.mode == *mode;
                for spot in field.spots.iter().filter(of_mode) {
                    panel.spot(spot.at, spot.half, spot.style(*style), true)?;
                    tell(&panel, spot, *style)?;
                }
            }
        }
        Ok(())
    })
}
