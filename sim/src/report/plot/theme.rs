//! Colours, dashes, markers and sizes. Series differ in luminance, dash and marker as well as in
//! hue, so that a print in grey can be read.

use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, FontFamily, FontStyle, FontTransform, RGBColor, TextStyle, WHITE};

use super::canvas::UNITS;

/// Ink of text and axes.
pub(crate) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// Ink of grid lines.
pub(crate) const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// Size of the title, in pixels.
pub(crate) const TITLE: i32 = 20;
/// Size of every other text, in pixels.
pub(crate) const TEXT: i32 = 15;

/// Pixels in units of the canvas.
pub(crate) const fn px(pixels: i32) -> i32 {
    pixels * UNITS
}

/// How a point of a series is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    None,
    Disc,
    Square,
    Triangle,
    Diamond,
}

/// How a series looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) color: RGBColor,
    /// Lengths of line and gap in turn, in pixels; empty: a whole line.
    pub(crate) dash: &'static [i32],
    pub(crate) marker: Marker,
    /// Width of the line, in pixels.
    pub(crate) width: i32,
}

const fn style(color: RGBColor, dash: &'static [i32], marker: Marker) -> Style {
    Style { color, dash, marker, width: 2 }
}

/// The styles of series, in the order in which they are taken.
pub(crate) const SERIES: [Style; 4] = [
    style(RGBColor(0x12, 0x2b, 0x55), &[], Marker::Disc),
    style(RGBColor(0xb8, 0x3a, 0x1e), &[10, 4], Marker::Square),
    style(RGBColor(0x2f, 0x8f, 0x83), &[3, 3], Marker::Triangle),
    style(RGBColor(0xe0, 0x9f, 0x1f), &[12, 4, 3, 4], Marker::Diamond),
];

/// A line of reference, such as y = η.
pub(crate) const REFERENCE: Style =
    Style { color: RGBColor(0x77, 0x77, 0x77), dash: &[2, 4], marker: Marker::None, width: 2 };

/// The fill of predicted intervals.
pub(crate) const BAND: RGBColor = RGBColor(0xb9, 0xc6, 0xde);

/// Fills of stacked parts, from dark to light.
pub(crate) const STACK: [RGBColor; 7] = [
    RGBColor(0x0b, 0x1f, 0x48),
    RGBColor(0x34, 0x3b, 0x72),
    RGBColor(0x65, 0x4f, 0x8a),
    RGBColor(0x99, 0x60, 0x8e),
    RGBColor(0xc8, 0x76, 0x7f),
    RGBColor(0xe5, 0x99, 0x65),
    RGBColor(0xf0, 0xc6, 0x5a),
];

/// Text of `size` pixels, anchored at this place.
pub(crate) fn text(size: i32, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    let font = FontDesc::new(FontFamily::SansSerif, f64::from(px(size)), FontStyle::Normal);
    font.color(&INK).pos(Pos::new(horizontal, vertical))
}

/// The same text, running upwards, its middle at this place.
pub(crate) fn upward(size: i32) -> TextStyle<'static> {
    text(size, HPos::Center, VPos::Top).transform(FontTransform::Rotate270)
}

/// What a page's style calls a colour; `None`: it is none of ours.
pub(crate) fn class((red, green, blue): (u8, u8, u8)) -> Option<String> {
    let color = RGBColor(red, green, blue);
    let others = [(INK, "ink"), (GRID, "grid"), (WHITE, "page"), (BAND, "band")];
    let mut named = others.into_iter().chain([(REFERENCE.color, "ref")]);
    if let Some((_, name)) = named.find(|(known, _)| *known == color) {
        return Some(name.into());
    }
    let place = |at: usize, letter: char| format!("{letter}{at}");
    let series = SERIES.iter().position(|style| style.color == color).map(|at| place(at, 'c'));
    series.or_else(|| STACK.iter().position(|fill| *fill == color).map(|at| place(at, 'k')))
}
