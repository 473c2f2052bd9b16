//! What a picture says, in words and numbers: for whoever hovers over it, or cannot see it.

use plotters_backend::{BackendCoord, DrawingBackend, DrawingErrorKind};

use super::Canvas;
use plotters::element::{Drawable, PointCollection};

/// One thing that a picture says. What follows a panel belongs to it, and a value has the name of the
/// last key of its colour.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    /// A pair of axes begins: what they show.
    Panel { x: String, y: String },
    /// The panel's title.
    Title(String),
    /// An entry of a legend.
    Key { rgb: (u8, u8, u8), name: String },
    /// A value at a place.
    Value(Value),
}

/// A value that is drawn somewhere.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) rgb: (u8, u8, u8),
    /// Where, in units of the canvas.
    pub(crate) at: BackendCoord,
    /// Its place on the horizontal axis, in words.
    pub(crate) x: String,
    /// The value, with its interval where it has one.
    pub(crate) text: String,
    /// The value as CSV has it.
    pub(crate) raw: String,
    /// What it is called, where it has a name of its own.
    pub(crate) name: String,
}

impl<'p> PointCollection<'p, BackendCoord> for &'p Said {
    type Point = BackendCoord;
    type IntoIter = std::iter::Empty<BackendCoord>;

    fn point_iter(self) -> Self::IntoIter {
        std::iter::empty()
    }
}

impl Drawable<Canvas<'_>> for Said {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        _: I,
        canvas: &mut Canvas<'_>,
        _: (u32, u32),
    ) -> Result<(), DrawingErrorKind<<Canvas<'_> as DrawingBackend>::ErrorType>> {
        canvas.say(self.clone());
        Ok(())
    }
}
