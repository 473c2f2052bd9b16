//! The reference as Markdown.

use std::fmt::Write;

use super::{Key, keys};
use crate::config::sections::Config;

/// The reference of every key, one table per section, as Markdown.
#[must_use]
pub fn reference() -> String {
    let defaults = Config::default();
    let mut text = String::new();
    let mut sections: Vec<&str> = keys().iter().map(|key| key.section).collect();
    sections.dedup();
    for section in sections {
        let keys: Vec<&Key> = keys().iter().filter(|key| key.section == section).collect();
        // Writing to a `String` cannot fail.
        let _ = section_table(&mut text, section, &keys, &defaults);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn section_table(
    text: &mut String,
    section: &str,
    keys: &[&Key],
    defaults: &Config,
) -> std::fmt::Result {
    writeln!(text, "## `[{section}]`\n")?;
    writeln!(text, "| key | value | default | a change takes effect | meaning |")?;
    writeln!(text, "|---|---|---|---|---|")?;
    for key in keys {
        let described = key.describe(defaults);
        let default = match (key.default_text, described.value) {
            (Some(follows), _) => follows.to_owned(),
            (None, Some(value)) => format!("`{value}`"),
            (None, None) => "absent".to_owned(),
        };
        let (name, effect, about) = (key.name, key.effect, key.about);
        writeln!(text, "| `{name}` | {} | {default} | {effect} | {about} |", described.kind)?;
    }
    writeln!(text)?;
    for key in keys {
        words(text, key, defaults)?;
    }
    Ok(())
}

/// What each word of a key means; nothing for a key whose rival has said it.
fn words(text: &mut String, key: &Key, defaults: &Config) -> std::fmt::Result {
    let words = key.describe(defaults).words;
    if words.is_empty() || key.default_text.is_some() {
        return Ok(());
    }
    writeln!(text, "`{}` is one of\n", key.name)?;
    for (word, about) in words {
        writeln!(text, "- `{word}`: {about}")?;
    }
    writeln!(text)
}
