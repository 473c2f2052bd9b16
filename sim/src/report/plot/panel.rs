//! One pair of axes, and what is drawn between them.

use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::DrawingArea;
use plotters::element::{Circle, PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, RGBColor, ShapeStyle, WHITE};

use super::axis::Axis;
use super::canvas::said::{Said, Value};
use super::canvas::{Canvas, font};
use super::fit;
use super::theme::{self, GRID, INK, Marker, Style, TEXT, px};
use super::{Drawn, PlotError};

pub(crate) type Area<'c> = DrawingArea<Canvas<'c>, Shift>;
type Plane<'c> = DrawingArea<Canvas<'c>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// A value with the half-width of its interval; `None`: there is nothing to draw.
pub(crate) type Point = (f64, Option<f64>, Option<f64>);

/// Room for ticks and label on the left, in pixels: alike everywhere, so that panels line up.
const LABELS: i32 = 84;
/// The same where there is no label.
const TICKS: i32 = 44;

/// Room beside all that, in pixels.
const LEFT: i32 = 12;
const RIGHT: i32 = 24;

/// Half the width of an interval's rectangle, in places.
const RANGE: f64 = 0.3;

/// Distance of series that are not joined, in places.
const ASIDE: f64 = 0.06;

/// The room left of the axis: more where ticks have long names.
fn labels(y: &Axis) -> i32 {
    let longest = y.ticks.iter().map(|(_, name)| name.len()).max().unwrap_or(0) as i32;
    let ticks = 9 * longest;
    if y.drawn().is_empty() { TICKS } else { LABELS.max(ticks + TEXT + 14) }
}

/// A value that is there, with the half-width of its interval or 0.
type Known = (f64, f64, f64);

/// A pair of axes on a part of the picture.
pub(crate) struct Panel<'c> {
    /// The part of the picture between the axes, with their coordinates.
    plane: Plane<'c>,
    /// The ends of the vertical axis.
    range: (f64, f64),
    /// The ends of the horizontal axis.
    across: (f64, f64),
    /// The axes.
    axes: (Axis, Axis),
    /// The whole picture, in units from its corner.
    page: Area<'c>,
}

impl<'c> Panel<'c> {
    /// Draws axes, ticks and horizontal grid lines on `area`.
    pub(crate) fn on(area: &Area<'c>, x: &Axis, y: &Axis) -> Result<Self, PlotError> {
        let across = area.dim_in_pixel().0 as i32;
        // The label is in the middle of the plane, which is not that of the area.
        let label = fit::lines(x.drawn(), across - px(labels(y) + LEFT - RIGHT));
        let more = (label.len() as i32 - 1) * (TEXT + 4);
        let chart = ChartBuilder::on(area)
            .margin_top(px(10))
            .margin_right(px(RIGHT))
            .margin_left(px(LEFT))
            .x_label_area_size(px(2 * TEXT + 26 + more))
            .y_label_area_size(px(labels(y)))
            .build_cartesian_2d(x.range.0..x.range.1, y.range.0..y.range.1)?;
        let plane = chart.plotting_area().clone();
        let page = area.use_screen_coord();
        let axes = (x.clone(), y.clone());
        let panel = Self { plane, range: y.range, across: x.range, axes, page };
        panel.draw_axes(x, y, &label)?;
        panel.say(&Said::Panel { x: x.label.clone(), y: y.label.clone() })?;
        Ok(panel)
    }

    /// The same with a title above it.
    pub(crate) fn titled(
        area: &Area<'c>,
        title: &str,
        x: &Axis,
        y: &Axis,
    ) -> Result<Self, PlotError> {
        let below = area.split_vertically(px(TEXT + 6)).1;
        let panel = Self::on(&below, x, y)?;
        let (left, top) = panel.at(x.range.0, y.range.1);
        let right = panel.at(x.range.1, 0.0).0;
        let style = theme::text(TEXT, HPos::Center, VPos::Bottom);
        let shown = fit::within(title, area.dim_in_pixel().0 as i32);
        panel.text(&shown, style, (left + right) / 2, top - px(8))?;
        panel.say(&Said::Title(title.into()))?;
        Ok(panel)
    }

    fn draw_axes(&self, x: &Axis, y: &Axis, label: &[String]) -> Drawn {
        let (left, bottom) = self.at(x.range.0, y.range.0);
        let (right, top) = self.at(x.range.1, y.range.1);
        for (value, name) in &y.ticks {
            let level = self.at(0.0, *value).1;
            self.line(&[(left, level), (right, level)], GRID.stroke_width(px(1) as u32))?;
            self.text(name, theme::text(TEXT, HPos::Right, VPos::Center), left - px(8), level)?;
        }
        let axis = INK.stroke_width(5);
        for (value, name) in &fit::ticks(x, right - left) {
            let place = self.at(*value, 0.0).0;
            self.line(&[(place, bottom), (place, bottom + px(5))], axis)?;
            self.text(name, theme::text(TEXT, HPos::Center, VPos::Top), place, bottom + px(10))?;
        }
        self.line(&[(left, top), (left, bottom), (right, bottom)], axis)?;
        for (place, line) in (0..).zip(label) {
            let middle = theme::text(TEXT, HPos::Center, VPos::Top);
            let below = bottom + px(TEXT + 18 + place * (TEXT + 4));
            self.text(line, middle, (left + right) / 2, below)?;
        }
        self.text(y.drawn(), theme::upward(TEXT), left - px(labels(y)), (top + bottom) / 2)
    }

    /// Where a point lies on the page, in units; what is above or below the axis lies on its end.
    fn at(&self, x: f64, y: f64) -> (i32, i32) {
        let (low, high) = self.range;
        let y = y.clamp(low, high);
        self.plane.map_coordinate(&(x, y))
    }

    fn line(&self, points: &[(i32, i32)], style: ShapeStyle) -> Drawn {
        Ok(self.page.draw(&PathElement::new(points.to_vec(), style))?)
    }

    fn text(&self, text: &str, style: plotters::style::TextStyle<'_>, x: i32, y: i32) -> Drawn {
        Ok(self.page.draw(&Text::new(text, (x, y), style))?)
    }

    fn say(&self, said: &Said) -> Drawn {
        Ok(self.page.draw(said)?)
    }

    /// Says a value that is drawn at a point, for whoever hovers over it or cannot see it.
    fn tell(&self, (x, y): (f64, f64), half: Option<f64>, color: RGBColor) -> Drawn {
        let (across, up) = &self.axes;
        let (text, raw) = (up.value(y, half), up.raw(y));
        self.say(&Said::Value(Value {
            x: across.place(x),
            text,
            raw,
            ..self.silent((x, y), color)
        }))
    }

    /// The same of a point that has a name, and intervals in both directions.
    pub(crate) fn tell_spot(
        &self,
        (x, y): (f64, f64),
        (wide, high): (f64, f64),
        color: RGBColor,
        name: &str,
    ) -> Drawn {
        let (across, up) = &self.axes;
        let (text, raw) = (up.value(y, Some(high)), up.raw(y));
        let (x_text, name) = (across.value(x, Some(wide)), name.to_owned());
        let silent = self.silent((x, y), color);
        self.say(&Said::Value(Value { x: x_text, text, raw, name, ..silent }))
    }

    /// A value at a point that says nothing yet.
    fn silent(&self, (x, y): (f64, f64), RGBColor(red, green, blue): RGBColor) -> Value {
        let at = self.at(x.clamp(self.across.0, self.across.1), y);
        Value {
            rgb: (red, green, blue),
            at,
            x: String::new(),
            text: String::new(),
            raw: String::new(),
            name: String::new(),
        }
    }

    /// Series with their intervals. `joined`: by lines with bands around them; bands lie below all
    /// lines.
    pub(crate) fn curves(&self, series: &[(Vec<Point>, Style)], joined: bool) -> Drawn {
        let mut pieces: Vec<(Vec<Known>, Style)> = Vec::new();
        for (place, (points, style)) in series.iter().enumerate() {
            // What no line tells apart stands side by side.
            let aside = (place as f64 - (series.len() - 1) as f64 / 2.0) * ASIDE;
            let aside = if joined { 0.0 } else { aside };
            let moved: Vec<Point> =
                points.iter().map(|&(x, y, half)| (x + aside, y, half)).collect();
            pieces.extend(split(&moved).into_iter().map(|piece| (piece, *style)));
        }
        if joined {
            for (piece, style) in &pieces {
                self.band(piece, *style)?;
            }
        }
        for (piece, style) in &pieces {
            let path: Vec<_> = piece.iter().map(|&(x, y, _)| self.at(x, y)).collect();
            if joined {
                self.dashed(&path, *style)?;
            }
            for (&(x, y, half), &at) in piece.iter().zip(&path) {
                self.whisker(x, y, half, *style)?;
                mark(&self.page, at, *style)?;
                self.tell((x, y), Some(half), style.color)?;
            }
        }
        Ok(())
    }

    fn band(&self, piece: &[Known], style: Style) -> Drawn {
        if piece.len() < 2 || piece.iter().all(|point| point.2 == 0.0) {
            return Ok(());
        }
        let upper = piece.iter().map(|&(x, y, half)| self.at(x, y + half));
        let lower = piece.iter().rev().map(|&(x, y, half)| self.at(x, y - half));
        let outline: Vec<_> = upper.chain(lower).collect();
        Ok(self.page.draw(&Polygon::new(outline, style.color.mix(0.16)))?)
    }

    /// A line through every point, without markers.
    pub(crate) fn trace(&self, points: &[(f64, f64)], style: Style) -> Drawn {
        let path: Vec<_> = points.iter().map(|&(x, y)| self.at(x, y)).collect();
        self.dashed(&path, style)
    }

    /// A rectangle between two corners, with a thin white line on top that sets it off from what
    /// is stacked on it.
    pub(crate) fn bar(&self, from: (f64, f64), to: (f64, f64), fill: RGBColor) -> Drawn {
        let corners = [self.at(from.0, from.1), self.at(to.0, to.1)];
        if corners[0].1 == corners[1].1 || corners[0].0 == corners[1].0 {
            return Ok(());
        }
        self.page.draw(&Rectangle::new(corners, fill.filled()))?;
        let top = corners[1].1;
        self.line(&[(corners[0].0, top), (corners[1].0, top)], WHITE.stroke_width(3))?;
        // A stacked bar says its own height, in its middle.
        let middle = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
        let (text, raw) = {
            let (height, up) = (to.1 - from.1, &self.axes.1);
            (up.value(height, None), up.raw(height))
        };
        let x = self.axes.0.place(middle.0);
        self.say(&Said::Value(Value { x, text, raw, ..self.silent(middle, fill) }))
    }

    /// An interval at a place, with a line at what it is around: lower end, middle, upper end.
    pub(crate) fn range(
        &self,
        x: f64,
        [low, middle, high]: [f64; 3],
        fill: RGBColor,
        line: RGBColor,
    ) -> Drawn {
        let ((left, bottom), (right, top)) = (self.at(x - RANGE, low), self.at(x + RANGE, high));
        // What has no height is still to be seen.
        let corners = [(left, top - px(1)), (right, bottom + px(1))];
        self.page.draw(&Rectangle::new(corners, fill.filled()))?;
        let level = self.at(x, middle).1;
        self.line(&[(left, level), (right, level)], line.stroke_width(5))?;
        let (across, up) = &self.axes;
        let [lower, value, upper] = [low, middle, high].map(|end| up.value(end, None));
        let text = format!("{value} ({lower} to {upper})");
        let (x_text, raw) = (across.place(x), up.raw(middle));
        self.say(&Said::Value(Value { x: x_text, text, raw, ..self.silent((x, middle), fill) }))
    }

    /// Letters that have room side by side.
    pub(crate) fn letters(&self) -> usize {
        let ends = self.plane.get_pixel_range().0;
        fit::letters(ends.end - ends.start)
    }

    /// Words just above a point, for what cannot be drawn there.
    pub(crate) fn note(&self, (x, y): (f64, f64), words: &str) -> Drawn {
        let (x, y) = self.at(x, y);
        self.text(words, theme::text(TEXT, HPos::Center, VPos::Bottom), x, y - px(6))
    }

    /// A point with its intervals in both directions; a weak one is small and pale.
    pub(crate) fn spot(
        &self,
        (x, y): (f64, f64),
        (across, up): (f64, f64),
        style: Style,
        strong: bool,
    ) -> Drawn {
        if strong {
            self.whisker(x, y, up, style)?;
            let stroke = style.color.stroke_width(5);
            let (low, high) = self.across;
            let ends = [(x - across).max(low), (x + across).min(high)];
            self.line(&ends.map(|x| self.at(x, y)), stroke)?;
            return mark(&self.page, self.at(x, y), style);
        }
        let pale = style.color.mix(0.35).filled();
        Ok(self.page.draw(&Circle::new(self.at(x, y), px(3), pale))?)
    }

    /// Names of points, beside them where there is room; those that come first keep theirs.
    pub(crate) fn names(&self, names: &[((f64, f64), String)]) -> Drawn {
        let ends = self.plane.get_pixel_range();
        let height = px(TEXT + 4);
        let mut taken: Vec<[i32; 4]> = names
            .iter()
            .map(|((x, y), _)| {
                let (x, y) = self.at(*x, *y);
                [x - px(6), y - px(6), x + px(6), y + px(6)]
            })
            .collect();
        for ((x, y), name) in names {
            let (x, y) = self.at(*x, *y);
            let width = font::width(name, f64::from(px(TEXT))) as i32;
            // Below right, above left, above right, below left, each a little off the marker.
            let (right, left) = (x + px(9), x - px(9) - width);
            let (above, below) = (y - px(8) - height, y + px(8));
            let places = [(right, below), (left, above), (right, above), (left, below)];
            let room = |&(left, top): &(i32, i32)| {
                let fits = left >= ends.0.start && left + width <= ends.0.end;
                let fits = fits && top >= ends.1.start && top + height <= ends.1.end;
                let apart = |other: &[i32; 4]| {
                    left + width < other[0]
                        || left > other[2]
                        || top + height < other[1]
                        || top > other[3]
                };
                fits && taken.iter().all(apart)
            };
            if let Some((left, top)) = places.into_iter().find(room) {
                taken.push([left, top, left + width, top + height]);
                self.text(name, theme::text(TEXT, HPos::Left, VPos::Top), left, top + px(2))?;
            }
        }
        Ok(())
    }

    fn whisker(&self, x: f64, y: f64, half: f64, style: Style) -> Drawn {
        let (top, bottom) = (self.at(x, y + half), self.at(x, y - half));
        if top.1 == bottom.1 {
            return Ok(());
        }
        let stroke = style.color.stroke_width(5);
        self.line(&[top, bottom], stroke)?;
        for (x, y) in [top, bottom] {
            self.line(&[(x - px(4), y), (x + px(4), y)], stroke)?;
        }
        Ok(())
    }

    fn dashed(&self, path: &[(i32, i32)], style: Style) -> Drawn {
        for dash in dashes(path, style.dash) {
            self.line(&dash, style.color.stroke_width(px(style.width) as u32))?;
        }
        Ok(())
    }
}

/// The runs of points that have a value, with a half-width of 0 where there is none.
fn split(points: &[Point]) -> Vec<Vec<Known>> {
    points
        .split(|point| point.1.is_none())
        .map(|run| {
            let known = run.iter().filter_map(|&(x, y, half)| Some((x, y?, half.unwrap_or(0.0))));
            known.collect::<Vec<_>>()
        })
        .filter(|run| !run.is_empty())
        .collect()
}

/// Draws a marker on `page`.
pub(crate) fn mark(page: &Area<'_>, (x, y): (i32, i32), style: Style) -> Drawn {
    let r = px(5);
    let fill = style.color.filled();
    let corners = match style.marker {
        Marker::None => return Ok(()),
        Marker::Disc => return Ok(page.draw(&Circle::new((x, y), r, fill))?),
        Marker::Square => vec![(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)],
        Marker::Triangle => vec![(x, y - r - 4), (x + r + 2, y + r), (x - r - 2, y + r)],
        Marker::Diamond => {
            vec![(x, y - r - 6), (x + r + 6, y), (x, y + r + 6), (x - r - 6, y)]
        }
    };
    Ok(page.draw(&Polygon::new(corners, fill))?)
}

/// Cuts a path into dashes; `pattern` holds lengths of line and gap in turn, in pixels.
pub(crate) fn dashes(path: &[(i32, i32)], pattern: &[i32]) -> Vec<Vec<(i32, i32)>> {
    if pattern.is_empty() {
        return vec![path.to_vec()];
    }
    let mut out = Vec::new();
    let mut dash: Vec<(i32, i32)> = path.first().copied().into_iter().collect();
    let (mut turn, mut left) = (0, f64::from(px(pattern[0])));
    for pair in path.windows(2) {
        let (dx, dy) = (f64::from(pair[1].0 - pair[0].0), f64::from(pair[1].1 - pair[0].1));
        let length = (dx * dx + dy * dy).sqrt();
        let mut done = 0.0;
        while length - done > left {
            done += left;
            let place = |from: i32, by: f64| from + (by * done / length).round() as i32;
            let here = (place(pair[0].0, dx), place(pair[0].1, dy));
            if turn % 2 == 0 {
                dash.push(here);
                out.push(std::mem::take(&mut dash));
            } else {
                dash = vec![here];
            }
            turn += 1;
            left = f64::from(px(pattern[turn % pattern.len()]));
        }
        left -= length - done;
        if turn % 2 == 0 {
            dash.push(pair[1]);
        }
    }
    out.push(dash);
    out.retain(|dash| dash.len() > 1);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_leave_their_gaps_across_corners() {
        let path = [(0, 0), (px(10), 0), (px(10), px(10))];
        let parts = dashes(&path, &[8, 4]);
        assert_eq!(parts[0], [(0, 0), (px(8), 0)]);
        assert_eq!(parts[1], [(px(10), px(2)), (px(10), px(10))]);
    }

    #[test]
    fn a_missing_value_interrupts_a_line() {
        let points = [(0.0, Some(1.0), None), (1.0, None, None), (2.0, Some(3.0), Some(0.5))];
        assert_eq!(split(&points), [vec![(0.0, 1.0, 0.0)], vec![(2.0, 3.0, 0.5)]]);
    }
}
