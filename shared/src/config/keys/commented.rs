//! A configuration with a comment on every key.

use std::fmt::Write;

use super::{Key, keys};
use crate::config::schema::plain;
use crate::config::sections::Config;

/// The width of comments, in characters.
const WIDTH: usize = 100;

/// What to write for a key that is absent by default.
const EXAMPLE: &str = "8";

/// The scheduling sections as TOML with every key: those whose paths are in `given` with their values in
/// `config`, the others as comments, with their defaults. What it writes loads as `config` if `given`
/// names every key that `config` needs.
#[must_use]
pub fn commented_toml(config: &Config, given: &[&str]) -> String {
    let mut text = String::new();
    let mut section = "";
    let is_given = |key: &Key| given.contains(&key.path().as_str());
    for key in keys().iter().filter(|key| is_given(key) || !key.is_alias()) {
        if key.section != section {
            section = key.section;
            let gap = if text.is_empty() { "" } else { "\n" };
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{gap}[{section}]");
        }
        let described = key.describe(config);
        let words: Vec<&str> = described.words.iter().map(|(word, _)| *word).collect();
        let one_of =
            if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
        comment(&mut text, &format!("{}{one_of}", plain(key.about)));
        let mark = if is_given(key) { "" } else { "# " };
        let value = described.value.unwrap_or_else(|| EXAMPLE.to_owned());
        let _ = writeln!(text, "{mark}{} = {value}", key.name);
    }
    text
}

/// Breaks a text into lines of a comment.
fn comment(text: &mut String, about: &str) {
    let mut line = String::from("#");
    for word in about.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line += word;
    }
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Layers, load_config};

    fn load(text: &str) -> Config {
        load_config(&Layers::new().toml("config.toml", text)).unwrap().0
    }

    #[test]
    fn what_is_given_counts_and_every_other_key_is_a_comment() {
        let config = load("[policy_training]\nbatch_size = 7\n[queue]\nmax_size = 99");
        let text = commented_toml(&config, &["policy_training.batch_size", "queue.max_size"]);
        assert_eq!(load(&text), config);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        for key in keys().iter().filter(|key| !key.is_alias()) {
            assert!(text.contains(&format!("{} = ", key.name)), "{}", key.path());
        }
    }

    #[test]
    fn each_comment_that_is_a_key_can_be_taken_as_it_is() {
        let text = commented_toml(&Config::default(), &[]);
        for (at, _) in text.match_indices("\n# ") {
            let line = text[at + 3..].lines().next().unwrap();
            let is_key = keys().iter().any(|key| line.starts_with(&format!("{} = ", key.name)));
            // A filter and an adaptive bound need other keys beside them.
            let alone =
                !["filter = ", "target = ", "signal = "].iter().any(|key| line.starts_with(key));
            if is_key && alone {
                let mut changed = text.clone();
                changed.replace_range(at + 1..at + 3, "");
                load(&changed);
            }
        }
    }
}
