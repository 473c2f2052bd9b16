//! The shapes of a canvas as SVG inside a page: text as text, colours by class, so that the page's
//! style chooses them for light and dark.

use std::fmt::Write;

use plotters_backend::text_anchor::HPos;

use super::svg::{escape, is_one_line, list, strokes};
use super::{Form, Shape, UNITS, font};
use crate::report::number;
use crate::report::plot::theme;

/// The shapes as elements of an `<svg>` whose unit is a pixel over [`UNITS`].
pub(crate) fn write(shapes: &[Shape]) -> String {
    let mut out = String::new();
    for run in shapes.chunk_by(is_one_line) {
        draw(&mut out, run);
    }
    out
}

fn draw(out: &mut String, run: &[Shape]) {
    let Some(shape) = run.first() else { return };
    let opacity = match shape.alpha < 1.0 {
        true => format!(" opacity=\"{}\"", number::text(shape.alpha)),
        false => String::new(),
    };
    // Writing to a string cannot fail.
    let _ = match &shape.form {
        Form::Line { width, .. } => writeln!(
            out,
            "<path {}{opacity} stroke-width=\"{width}\" d=\"{}\"/>",
            paint(shape, Paint::Stroke),
            run.iter().map(strokes).collect::<String>()
        ),
        Form::Fill { points } => writeln!(
            out,
            "<polygon {}{opacity} points=\"{}\"/>",
            paint(shape, Paint::Fill),
            list(points)
        ),
        Form::Disc { center: (x, y), radius } => writeln!(
            out,
            "<circle {}{opacity} cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>",
            paint(shape, Paint::Fill)
        ),
        Form::Text { text, at, size, upward, anchor } => {
            let width = font::width(text, *size).round() as i32;
            let (along, word) = match anchor {
                HPos::Left => (0, ""),
                HPos::Center => (width / 2, " text-anchor=\"middle\""),
                HPos::Right => (width, " text-anchor=\"end\""),
            };
            let size = size.round() as i32 / UNITS;
            let (x, y) = if *upward { (at.0, at.1 - along) } else { (at.0 + along, at.1) };
            let place = match upward {
                true => format!("transform=\"translate({x} {y}) rotate(-90)\""),
                false => format!("x=\"{x}\" y=\"{y}\""),
            };
            writeln!(out, "<text class=\"z{size}\" {place}{word}>{}</text>", escape(text))
        }
    };
}

#[derive(Clone, Copy)]
enum Paint {
    Fill,
    Stroke,
}

/// The class of a colour of ours; another colour as it is.
fn paint(shape: &Shape, how: Paint) -> String {
    let (letter, attributes) = match how {
        Paint::Fill => ('f', "fill"),
        Paint::Stroke => ('s', "fill=\"none\" stroke"),
    };
    match theme::class(shape.rgb) {
        Some(class) => format!("class=\"{letter}-{class}\""),
        None => {
            let (red, green, blue) = shape.rgb;
            format!("{attributes}=\"#{red:02x}{green:02x}{blue:02x}\"")
        }
    }
}
