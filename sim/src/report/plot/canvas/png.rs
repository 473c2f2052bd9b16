//! The shapes of a canvas as a PNG, two pixels per pixel of the SVG, with smooth edges.

use ab_glyph::{OutlineCurve, Point, point};
use ab_glyph_rasterizer::Rasterizer;
use plotters_backend::BackendCoord;

use super::{Form, Shape, UNITS, font};

/// Pixels of the PNG per pixel of the SVG: sharp on screens of high density and in print.
const DENSITY: i32 = 2;
/// Corners of the polygon that stands for a disc.
const CORNERS: u32 = 48;

/// The picture as a PNG file of `size` units.
///
/// # Errors
/// Only what the encoder reports.
pub(crate) fn write(size: (u32, u32), shapes: &[Shape]) -> Result<Vec<u8>, png::EncodingError> {
    let scale = DENSITY as f32 / UNITS as f32;
    let pixels = |units: u32| (units as f32 * scale) as usize;
    let mut image = Image::white(pixels(size.0), pixels(size.1));
    for shape in shapes {
        let mut outlines = Outlines::default();
        outlines.add(&shape.form, scale);
        image.fill(&outlines, shape);
    }
    image.encode()
}

/// Closed outlines in pixels, as edges; where they overlap they must turn the same way.
#[derive(Default)]
struct Outlines {
    edges: Vec<OutlineCurve>,
}

impl Outlines {
    fn add(&mut self, form: &Form, scale: f32) {
        let pixel = |(x, y): BackendCoord| point(x as f32 * scale, y as f32 * scale);
        match form {
            Form::Fill { points } => {
                self.polygon(&points.iter().map(|&at| pixel(at)).collect::<Vec<_>>());
            }
            Form::Disc { center, radius } => self.disc(pixel(*center), *radius as f32 * scale),
            Form::Line { points, width } => {
                let points: Vec<Point> = points.iter().map(|&at| pixel(at)).collect();
                self.line(&points, *width as f32 * scale / 2.0);
            }
            Form::Text { text, at, size, upward, .. } => {
                self.text(text, pixel(*at), *size as f32 * scale, *upward);
            }
        }
    }

    /// Adds a polygon, turned clockwise.
    fn polygon(&mut self, points: &[Point]) {
        let pairs = || points.iter().zip(points.iter().cycle().skip(1));
        let area: f32 = pairs().map(|(a, b)| a.x * b.y - b.x * a.y).sum();
        for (&from, &to) in pairs() {
            let (from, to) = if area >= 0.0 { (from, to) } else { (to, from) };
            self.edges.push(OutlineCurve::Line(from, to));
        }
    }

    fn disc(&mut self, center: Point, radius: f32) {
        let points: Vec<Point> = (0..CORNERS)
            .map(|corner| {
                let angle = core::f32::consts::TAU * corner as f32 / CORNERS as f32;
                let (sin, cos) = (libm::sinf(angle), libm::cosf(angle));
                point(center.x + radius * cos, center.y + radius * sin)
            })
            .collect();
        self.polygon(&points);
    }

    /// A rectangle per piece, with round joints where the line turns.
    fn line(&mut self, points: &[Point], half: f32) {
        for pair in points.windows(2) {
            let (dx, dy) = (pair[1].x - pair[0].x, pair[1].y - pair[0].y);
            let length = (dx * dx + dy * dy).sqrt();
            if length > 0.0 {
                let (nx, ny) = (-dy / length * half, dx / length * half);
                let beside = |at: Point, side: f32| point(at.x + nx * side, at.y + ny * side);
                self.polygon(&[
                    beside(pair[0], 1.0),
                    beside(pair[1], 1.0),
                    beside(pair[1], -1.0),
                    beside(pair[0], -1.0),
                ]);
            }
        }
        for &joint in points.iter().skip(1).take(points.len().saturating_sub(2)) {
            self.disc(joint, half);
        }
    }

    fn text(&mut self, text: &str, at: Point, size: f32, upward: bool) {
        let scale = size / font::units_per_em() as f32;
        let mut along = 0.0;
        for (glyph, advance) in font::glyphs(text) {
            let place = |from: Point| {
                let (right, up) = (along + from.x * scale, from.y * scale);
                if upward { point(at.x - up, at.y - right) } else { point(at.x + right, at.y - up) }
            };
            self.edges.extend(font::outline(glyph).iter().map(|curve| match *curve {
                OutlineCurve::Line(a, b) => OutlineCurve::Line(place(a), place(b)),
                OutlineCurve::Quad(a, b, c) => OutlineCurve::Quad(place(a), place(b), place(c)),
                OutlineCurve::Cubic(a, b, c, d) => {
                    OutlineCurve::Cubic(place(a), place(b), place(c), place(d))
                }
            }));
            along += advance as f32 * scale;
        }
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        self.edges.iter().flat_map(|edge| match *edge {
            OutlineCurve::Line(a, b) => [a, b, b, b],
            OutlineCurve::Quad(a, b, c) => [a, b, c, c],
            OutlineCurve::Cubic(a, b, c, d) => [a, b, c, d],
        })
    }
}

struct Image {
    width: usize,
    height: usize,
    /// Red, green, blue, row by row.
    bytes: Vec<u8>,
}

impl Image {
    fn white(width: usize, height: usize) -> Self {
        Self { width, height, bytes: vec![255; width * height * 3] }
    }

    fn fill(&mut self, outlines: &Outlines, shape: &Shape) {
        let low = |at: fn(&Point) -> f32| {
            outlines.points().map(|point| at(&point)).fold(f32::MAX, f32::min).floor() - 1.0
        };
        let high = |at: fn(&Point) -> f32| {
            outlines.points().map(|point| at(&point)).fold(f32::MIN, f32::max).ceil() + 1.0
        };
        if outlines.edges.is_empty() {
            return;
        }
        let (left, top) = (low(|at| at.x), low(|at| at.y));
        let (width, height) = (high(|at| at.x) - left, high(|at| at.y) - top);
        let mut raster = Rasterizer::new(width as usize, height as usize);
        let shift = |at: Point| point(at.x - left, at.y - top);
        for edge in &outlines.edges {
            match *edge {
                OutlineCurve::Line(a, b) => raster.draw_line(shift(a), shift(b)),
                OutlineCurve::Quad(a, b, c) => raster.draw_quad(shift(a), shift(b), shift(c)),
                OutlineCurve::Cubic(a, b, c, d) => {
                    raster.draw_cubic(shift(a), shift(b), shift(c), shift(d));
                }
            }
        }
        raster.for_each_pixel_2d(|x, y, coverage| {
            let (x, y) = (x as i64 + left as i64, y as i64 + top as i64);
            self.blend(x, y, f64::from(coverage.min(1.0)) * shape.alpha, shape.rgb);
        });
    }

    fn blend(&mut self, x: i64, y: i64, alpha: f64, (red, green, blue): (u8, u8, u8)) {
        let inside = (0..self.width as i64).contains(&x) && (0..self.height as i64).contains(&y);
        if !inside || alpha <= 0.0 {
            return;
        }
        let start = (y as usize * self.width + x as usize) * 3;
        for (byte, ink) in self.bytes[start..start + 3].iter_mut().zip([red, green, blue]) {
            let mixed = f64::from(*byte) * (1.0 - alpha) + f64::from(ink) * alpha;
            *byte = (mixed + 0.5) as u8;
        }
    }

    fn encode(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.bytes)?;
        writer.finish()?;
        Ok(out)
    }
}
