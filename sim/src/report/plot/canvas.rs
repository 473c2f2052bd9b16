//! What plotters draws on: a list of shapes, which becomes an SVG or a PNG.
//!
//! Both pictures come from the same shapes, and text is drawn as outlines of the bundled font in
//! both, so they look alike and look the same on every machine.

pub(crate) mod font;
pub(crate) mod inline;
pub(crate) mod png;
pub(crate) mod said;
pub(crate) mod svg;

use std::convert::Infallible;

use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontTransform,
};

use said::Said;

/// Units of the canvas per pixel of the picture: plotters places things on whole units, which
/// would be too coarse as pixels.
pub(crate) const UNITS: i32 = 4;

/// One thing on the canvas; coordinates in units, later shapes cover earlier ones.
#[derive(Clone)]
pub(crate) struct Shape {
    pub(crate) form: Form,
    /// Red, green, blue.
    pub(crate) rgb: (u8, u8, u8),
    /// Opacity, 0 to 1.
    pub(crate) alpha: f64,
}

#[derive(Clone)]
pub(crate) enum Form {
    /// A line through the points.
    Line { points: Vec<BackendCoord>, width: u32 },
    /// The inside of a polygon.
    Fill { points: Vec<BackendCoord> },
    /// A disc.
    Disc { center: BackendCoord, radius: u32 },
    /// Text that starts at `at` on its base line; `upward`: it runs from bottom to top. `anchor` is
    /// what it was placed by: who draws it in another font keeps that place.
    Text { text: String, at: BackendCoord, size: f64, upward: bool, anchor: HPos },
}

/// What was drawn: the shapes, and the same in words and numbers.
#[derive(Default)]
pub(crate) struct Sheet {
    pub(crate) shapes: Vec<Shape>,
    pub(crate) said: Vec<Said>,
}

/// Collects one picture.
pub(crate) struct Canvas<'a> {
    size: (u32, u32),
    sheet: &'a mut Sheet,
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl<'a> Canvas<'a> {
    /// A canvas of `size` units that collects into `sheet`.
    pub(crate) fn new(size: (u32, u32), sheet: &'a mut Sheet) -> Self {
        Self { size, sheet }
    }

    /// Keeps what a picture says.
    fn say(&mut self, said: Said) {
        self.sheet.said.push(said);
    }

    fn push(&mut self, form: Form, color: BackendColor) -> Drawn {
        if color.alpha > 0.0 {
            self.sheet.shapes.push(Shape { form, rgb: color.rgb, alpha: color.alpha });
        }
        Ok(())
    }
}

impl DrawingBackend for Canvas<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, at: BackendCoord, color: BackendColor) -> Drawn {
        self.draw_rect(at, (at.0 + 1, at.1 + 1), &color, true)
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let corners = [from, (to.0, from.1), to, (from.0, to.1)];
        if fill {
            self.fill_polygon(corners, style)
        } else {
            self.draw_path(corners.into_iter().chain([from]), style)
        }
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        let points = path.into_iter().collect();
        self.push(Form::Line { points, width: style.stroke_width() }, style.color())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        _fill: bool,
    ) -> Drawn {
        self.push(Form::Disc { center, radius }, style.color())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        outline: I,
        style: &S,
    ) -> Drawn {
        self.push(Form::Fill { points: outline.into_iter().collect() }, style.color())
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (x, y): BackendCoord,
    ) -> Drawn {
        let size = style.size();
        let upward = matches!(style.transform(), FontTransform::Rotate270);
        let width = font::width(text, size).round() as i32;
        let along = match style.anchor().h_pos {
            HPos::Left => 0,
            HPos::Center => -width / 2,
            HPos::Right => -width,
        };
        let down = match style.anchor().v_pos {
            VPos::Top => font::ascent(size),
            VPos::Center => font::ascent(size) / 2.0,
            VPos::Bottom => 0.0,
        }
        .round() as i32;
        let at = if upward { (x + down, y - along) } else { (x + along, y + down) };
        let anchor = style.anchor().h_pos;
        self.push(Form::Text { text: text.into(), at, size, upward, anchor }, style.color())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let (width, height) = (font::width(text, style.size()), font::ascent(style.size()));
        Ok((width.ceil() as u32, height.ceil() as u32))
    }
}
