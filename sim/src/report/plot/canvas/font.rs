//! The bundled font: DejaVu Sans, cut down to Latin, Greek and mathematical signs.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, GlyphId, OutlineCurve};

/// `None` only if the bundled file were broken, which a test excludes; text is then not drawn.
static FONT: LazyLock<Option<FontRef<'static>>> = LazyLock::new(|| {
    FontRef::try_from_slice(include_bytes!("../../../../assets/DejaVuSans-subset.ttf")).ok()
});

/// Height of a capital letter above the base line, as a share of the size.
const CAPITAL: f64 = 0.729;

/// Units of the font per em.
pub(crate) fn units_per_em() -> f64 {
    f64::from(FONT.as_ref().and_then(Font::units_per_em).unwrap_or(2048.0))
}

/// Height of capital letters of text of this size (em), in the unit of `size`.
pub(crate) fn ascent(size: f64) -> f64 {
    size * CAPITAL
}

/// Width of a text of this size (em), in the unit of `size`.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let units: f64 = glyphs(text).map(|(_, advance)| advance).sum();
    units * size / units_per_em()
}

/// The glyphs of a text, each with its advance in font units.
pub(crate) fn glyphs(text: &str) -> impl Iterator<Item = (GlyphId, f64)> {
    FONT.as_ref().into_iter().flat_map(|font| {
        text.chars().map(move |letter| {
            let glyph = font.glyph_id(letter);
            (glyph, f64::from(font.h_advance_unscaled(glyph)))
        })
    })
}

/// The outline of a glyph in font units, y upwards; empty for a space.
pub(crate) fn outline(glyph: GlyphId) -> Vec<OutlineCurve> {
    FONT.as_ref().and_then(|font| font.outline(glyph)).map_or(Vec::new(), |outline| outline.curves)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_font_has_every_letter_that_labels_use() {
        let font = FONT.as_ref().expect("the font parses");
        for letter in "abcxyzABCXYZ0123456789ηση±≤≥×·–—…−%/()[]_=<>.,;:".chars() {
            assert_ne!(font.glyph_id(letter), GlyphId(0), "no glyph for {letter}");
        }
    }

    #[test]
    fn width_grows_with_size_and_text() {
        assert!(width("ηη", 10.0) > width("η", 10.0));
        assert!((width("staleness", 20.0) / width("staleness", 10.0) - 2.0).abs() < 1e-9);
    }
}
