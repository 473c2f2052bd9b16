//! A whole picture: title, legend, panels.

use plotters::drawing::IntoDrawingArea;
use plotters::element::{PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, RGBColor, WHITE};

use super::canvas::said::Said;
use super::canvas::{Canvas, Sheet, UNITS, font, inline, png, svg};
use super::figure::{self, Figure, Narrow};
use super::fit;
use super::panel::{Area, dashes, mark};
use super::theme::{self, Style, TEXT, TITLE, px};
use super::{Drawn, PlotError};

/// Width of every picture, in pixels.
const WIDTH: i32 = 960;
/// Its width on a phone, which shows it a little smaller.
const NARROW: i32 = 420;
/// Height of title and subtitle, in pixels.
const HEAD: i32 = 18 + TITLE + 9 + TEXT + 4;
/// Shapes that stand behind them: the ground, the title, the subtitle.
const ABOVE: usize = 3;
/// Space on the left of titles and legends, in pixels.
const MARGIN: i32 = 20;

/// A picture in both formats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The name of its files, without extension.
    pub name: String,
    /// The SVG document.
    pub svg: String,
    /// The PNG file.
    pub png: Vec<u8>,
    /// The same for a page.
    pub figure: Figure,
}

/// One entry of a legend.
pub(crate) enum Key {
    /// A series.
    Line(Style, String),
    /// A fill.
    Fill(RGBColor, String),
}

impl Key {
    fn name(&self) -> &str {
        let (Self::Line(_, name) | Self::Fill(_, name)) = self;
        name
    }

    /// Length of its sample, in pixels.
    const fn sample(&self) -> i32 {
        match self {
            Self::Line(..) => 46,
            Self::Fill(..) => 22,
        }
    }
}

/// What stands above the panels.
pub(crate) struct Head<'a> {
    /// The name of the files.
    pub(crate) name: &'a str,
    pub(crate) title: &'a str,
    pub(crate) subtitle: &'a str,
    pub(crate) legend: &'a [Key],
    /// Height of the picture, in pixels.
    pub(crate) height: i32,
    /// Height of its panels on a phone, in pixels.
    pub(crate) narrow: i32,
}

/// Draws a picture; `body` draws the panels on what the head leaves.
pub(crate) fn draw(
    head: &Head<'_>,
    body: impl for<'c> Fn(&Area<'c>) -> Drawn,
) -> Result<Picture, PlotError> {
    let drawn = |size: (u32, u32)| -> Result<Sheet, PlotError> {
        let mut sheet = Sheet::default();
        let page = Canvas::new(size, &mut sheet).into_drawing_area();
        page.fill(&WHITE)?;
        body(&legend(&draw_head(&page, head)?, head.legend)?)?;
        page.present()?;
        drop(page);
        Ok(sheet)
    };
    let size = (px(WIDTH) as u32, px(head.height) as u32);
    let sheet = drawn(size)?;
    let below = laid(head.legend, px(NARROW)).1;
    let small = (px(NARROW) as u32, (px(HEAD + head.narrow) + below) as u32);
    let phone = drawn(small)?;
    // A page has title and subtitle as text of its own, and a ground of its own.
    let above = px(HEAD);
    let view = |size: (u32, u32)| [0, above, size.0 as i32, size.1 as i32 - above];
    let svg = |sheet: &Sheet| inline::write(sheet.shapes.get(ABOVE..).unwrap_or_default());
    let panels = figure::panels(&sheet.said);
    let narrow = Narrow {
        view: view(small),
        svg: svg(&phone),
        at: figure::places(&panels, &figure::panels(&phone.said)),
    };
    let figure = Figure {
        title: head.title.into(),
        subtitle: head.subtitle.into(),
        view: view(size),
        unit: UNITS,
        svg: svg(&sheet),
        panels,
        narrow,
    };
    Ok(Picture {
        name: head.name.into(),
        svg: svg::write(head.title, size, &sheet.shapes),
        png: png::write(size, &sheet.shapes)?,
        figure,
    })
}

/// Cells for so many panels: so many side by side, on a page and on a phone.
pub(crate) fn cells<'c>(area: &Area<'c>, count: usize, columns: [usize; 2]) -> Vec<Area<'c>> {
    let is_narrow = area.dim_in_pixel().0 < px(WIDTH) as u32;
    let columns = columns[usize::from(is_narrow)].max(1);
    area.split_evenly((count.div_ceil(columns).max(1), columns))
}

/// Title and subtitle; gives what is left below them.
fn draw_head<'c>(page: &Area<'c>, head: &Head<'_>) -> Result<Area<'c>, PlotError> {
    let (left, top) = (px(MARGIN), px(18));
    page.draw(&Text::new(head.title, (left, top), theme::text(TITLE, HPos::Left, VPos::Top)))?;
    let below = top + px(TITLE + 9);
    page.draw(&Text::new(head.subtitle, (left, below), theme::text(TEXT, HPos::Left, VPos::Top)))?;
    Ok(page.split_vertically(px(HEAD)).1)
}

/// Draws a legend on top of `area`, in as many lines as it takes; gives what is left below it.
pub(crate) fn legend<'c>(area: &Area<'c>, keys: &[Key]) -> Result<Area<'c>, PlotError> {
    let (places, used) = laid(keys, area.dim_in_pixel().0 as i32);
    for (key, (at, lines)) in keys.iter().zip(places) {
        draw_key(area, key, at, &lines)?;
    }
    Ok(area.split_vertically(used).1)
}

/// Where a key stands, and the lines of its name.
type Placed = ((i32, i32), Vec<String>);

/// The entries of a legend of this width, and how high it is.
fn laid(keys: &[Key], width: i32) -> (Vec<Placed>, i32) {
    let line = px(TEXT + 8);
    let (mut x, mut y) = (px(MARGIN), px(8));
    let mut places = Vec::new();
    for key in keys {
        let sample = px(key.sample() + 34);
        let own = sample + font::width(key.name(), f64::from(px(TEXT))) as i32;
        if x > px(MARGIN) && x + own > width - px(MARGIN) {
            (x, y) = (px(MARGIN), y + line);
        }
        // What is wider than a line has several, and the last of them to itself.
        let lines = fit::lines(key.name(), width - 2 * px(MARGIN) - px(key.sample() + 8));
        let more = lines.len() as i32 - 1;
        places.push(((x, y), lines));
        (x, y) = if more > 0 { (width, y + more * line) } else { (x + own, y) };
    }
    (places, if keys.is_empty() { 0 } else { y + px(TEXT + 4) })
}

fn draw_key(page: &Area<'_>, key: &Key, (x, y): (i32, i32), lines: &[String]) -> Drawn {
    let middle = y + px(TEXT) / 3;
    let end = x + px(key.sample());
    match key {
        Key::Line(style, _) => {
            for dash in dashes(&[(x, middle), (end, middle)], style.dash) {
                let stroke = style.color.stroke_width(px(style.width) as u32);
                page.draw(&PathElement::new(dash, stroke))?;
            }
            mark(page, ((x + end) / 2, middle), *style)?;
        }
        Key::Fill(color, _) => {
            let corners = [(x, middle - px(8)), (end, middle + px(8))];
            page.draw(&Rectangle::new(corners, color.filled()))?;
        }
    }
    for (place, line) in (0..).zip(lines) {
        let text = theme::text(TEXT, HPos::Left, VPos::Center);
        let below = middle + place * px(TEXT + 8);
        page.draw(&Text::new(line.as_str(), (end + px(8), below), text))?;
    }
    let (Key::Line(Style { color, .. }, _) | Key::Fill(color, _)) = key;
    let RGBColor(red, green, blue) = *color;
    Ok(page.draw(&Said::Key { rgb: (red, green, blue), name: key.name().into() })?)
}
