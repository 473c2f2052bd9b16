//! The shapes of a canvas as SVG: text as outlines, each glyph defined once.

use std::collections::BTreeSet;
use std::fmt::Write;

use ab_glyph::{OutlineCurve, Point};
use plotters_backend::BackendCoord;

use super::{Form, Shape, UNITS, font};
use crate::report::number;

/// The picture as an SVG document of `size` units.
pub(crate) fn write(title: &str, (width, height): (u32, u32), shapes: &[Shape]) -> String {
    let scale = UNITS as u32;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n",
        width / scale,
        height / scale,
        escape(title)
    );
    define_glyphs(&mut out, shapes);
    // Dashes of one line follow each other: they share one element.
    for run in shapes.chunk_by(is_one_line) {
        draw(&mut out, run);
    }
    out.push_str("</svg>\n");
    out
}

/// Whether two shapes are pieces of a line of one style.
pub(super) fn is_one_line(one: &Shape, next: &Shape) -> bool {
    match (&one.form, &next.form) {
        (Form::Line { width, .. }, Form::Line { width: other, .. }) => {
            width == other && one.rgb == next.rgb && one.alpha == 1.0 && next.alpha == 1.0
        }
        _ => false,
    }
}

/// Draws one shape, or the pieces of one line.
fn draw(out: &mut String, run: &[Shape]) {
    let Some(shape) = run.first() else { return };
    let paint = paint(shape);
    // Writing to a string cannot fail.
    let _ = match &shape.form {
        Form::Line { width, .. } => writeln!(
            out,
            "<path fill=\"none\" stroke={paint} stroke-width=\"{width}\" \
             stroke-linejoin=\"round\" d=\"{}\"/>",
            run.iter().map(strokes).collect::<String>()
        ),
        Form::Fill { points } => {
            writeln!(out, "<polygon fill={paint} points=\"{}\"/>", list(points))
        }
        Form::Disc { center: (x, y), radius } => {
            writeln!(out, "<circle fill={paint} cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>")
        }
        Form::Text { text, at: (x, y), size, upward, .. } => {
            let scale = number::text(size / font::units_per_em());
            let turn = if *upward { " rotate(-90)" } else { "" };
            let _ = write!(
                out,
                "<g fill={paint} aria-label=\"{}\" transform=\"translate({x} {y}){turn} \
                 scale({scale} -{scale})\">",
                escape(text)
            );
            spell(out, text);
            writeln!(out, "</g>")
        }
    };
}

/// The glyphs of a text, side by side.
fn spell(out: &mut String, text: &str) {
    let mut x = 0.0;
    for (glyph, advance) in font::glyphs(text) {
        if !font::outline(glyph).is_empty() {
            let _ = write!(out, "<use href=\"#g{}\" x=\"{}\"/>", glyph.0, number::text(x));
        }
        x += advance;
    }
}

/// A colour and its opacity, as attribute values: the quoted colour, then `opacity`.
fn paint(shape: &Shape) -> String {
    let (red, green, blue) = shape.rgb;
    let color = format!("\"#{red:02x}{green:02x}{blue:02x}\"");
    if shape.alpha < 1.0 {
        format!("{color} opacity=\"{}\"", number::text(shape.alpha))
    } else {
        color
    }
}

/// A line from its start by relative steps, which are shorter to write.
pub(super) fn strokes(shape: &Shape) -> String {
    let Form::Line { points, .. } = &shape.form else { return String::new() };
    let mut out = String::new();
    let mut last = None;
    for &(x, y) in points {
        let _ = match last {
            None => write!(out, "M{x} {y}"),
            Some((from_x, from_y)) => write!(out, "l{} {}", x - from_x, y - from_y),
        };
        last = Some((x, y));
    }
    out
}

pub(super) fn list(points: &[BackendCoord]) -> String {
    let pairs: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
    pairs.join(" ")
}

/// Defines each glyph that is used, in the order of its number.
fn define_glyphs(out: &mut String, shapes: &[Shape]) {
    let mut used = BTreeSet::new();
    for shape in shapes {
        if let Form::Text { text, .. } = &shape.form {
            used.extend(font::glyphs(text).map(|(glyph, _)| glyph));
        }
    }
    out.push_str("<defs>\n");
    for glyph in used {
        let curves = font::outline(glyph);
        if !curves.is_empty() {
            let _ = writeln!(out, "<path id=\"g{}\" d=\"{}\"/>", glyph.0, path(&curves));
        }
    }
    out.push_str("</defs>\n");
}

fn path(curves: &[OutlineCurve]) -> String {
    let at = |point: &Point| {
        format!("{} {}", number::text(f64::from(point.x)), number::text(f64::from(point.y)))
    };
    let mut out = String::new();
    let mut last: Option<Point> = None;
    for curve in curves {
        let (from, to, step) = match curve {
            OutlineCurve::Line(from, to) => (from, to, format!("L{}", at(to))),
            OutlineCurve::Quad(from, bend, to) => (from, to, format!("Q{} {}", at(bend), at(to))),
            OutlineCurve::Cubic(from, one, two, to) => {
                (from, to, format!("C{} {} {}", at(one), at(two), at(to)))
            }
        };
        if last != Some(*from) {
            let _ = write!(out, "M{}", at(from));
        }
        out.push_str(&step);
        last = Some(*to);
    }
    out
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
