//! What to write instead of a text that is no TOML or no JSON.

use std::ops::Range;

use super::node::Value;
use super::remedy;
use super::text::toml_text;

const TOML: &str = "this is TOML: `key = value` lines below `[section]` headers, text in quotes";
const JSON: &str = "this is JSON: one `{ ... }` with `\"key\": value` pairs, commas between them";

/// What is wrong with a TOML text, and what to write instead. `said`: what the parser says of `span`.
pub(super) fn toml(said: &str, text: &str, span: Range<usize>) -> (String, String) {
    let line = Line::around(text, span.start);
    let said_all = said.trim_end().replace('\n', "; ");
    let as_said = |help: String| (said_all.clone(), help);
    if text.trim_start().starts_with('{') {
        return as_said(format!("{TOML}; what begins with a brace is JSON: name the file .json"));
    }
    if !said.contains("expected") {
        return as_said(TOML.to_owned());
    }
    match (line.key(), line.value()) {
        (Some(key), Some("")) => {
            let help = "write one behind the `=`, or take the line out".to_owned();
            (format!("`{key}` has no value"), help)
        }
        (Some(_), Some(value)) if said.contains("newline") => as_said(behind(value)),
        // Texts over several lines, lists and tables are more than a word.
        (Some(key), Some(value)) if !value.starts_with(['"', '\'', '[', '{']) => {
            (format!("`{value}` is no value"), no_value(key, value))
        }
        (Some(_), Some(_)) if said.contains("escape") => {
            as_said("write a backslash twice, or the text in single quotes".to_owned())
        }
        (Some(_), Some(value)) if value.starts_with(['"', '\'']) => {
            as_said(format!("a text ends on its line, with the quote that it began with; {TOML}"))
        }
        (None, _) if line.text.starts_with('[') => {
            let name = line.text.trim_matches(['[', ']', ' ']);
            as_said(format!("write the header of a section alone on its line: `[{name}]`"))
        }
        (None, _) => as_said(line.assignment().unwrap_or_else(|| TOML.to_owned())),
        _ => as_said(TOML.to_owned()),
    }
}

/// A line without its comment.
struct Line<'t> {
    text: &'t str,
}

impl<'t> Line<'t> {
    fn around(text: &'t str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or("");
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = text.get(start..).unwrap_or("").lines().next().unwrap_or("");
        Self { text: line.split(" #").next().unwrap_or("").trim() }
    }

    /// What stands before its `=`.
    fn key(&self) -> Option<&'t str> {
        let (key, _) = self.text.split_once('=')?;
        let is_key = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        Some(key.trim()).filter(|key| !key.is_empty() && key.chars().all(is_key))
    }

    /// What stands behind its `=`.
    fn value(&self) -> Option<&'t str> {
        self.text.split_once('=').map(|(_, value)| value.trim())
    }

    /// A key and its value, with something else than `=` between them.
    fn assignment(&self) -> Option<String> {
        let end = self
            .text
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || "-_".contains(letter)))?;
        let (key, rest) = self.text.split_at(end);
        let value = rest.trim_start().trim_start_matches(':').trim();
        let help = format!("write `{key} = {value}`: an `=` stands between a key and its value");
        (!key.is_empty() && !value.is_empty() && !value.contains('=')).then_some(help)
    }
}

/// What to write instead of a bare word or a number that is none.
fn no_value(key: &str, value: &str) -> String {
    let shown = Value::Text(value.to_owned());
    let quotes = ['“', '”', '„', '‘', '’', '«', '»'];
    if value.starts_with(quotes) {
        return format!("write straight quotes: {}", toml_text(value.trim_matches(quotes)));
    }
    if let Some(bare) = value.strip_suffix([';', ',']) {
        return format!("a line ends without a mark: write `{key} = {}`", bare.trim_end());
    }
    if matches!(value, "None" | "null" | "nil") {
        return "take the line out: what has no value is not written".to_owned();
    }
    if let Some(meant) = remedy::boolean(&shown).filter(|_| !value.starts_with(['0', '1'])) {
        return format!("write `{key} = {meant}`");
    }
    let seconds = key.ends_with("_sec");
    let first = || Value::Text(value.split(' ').next().unwrap_or("").to_owned());
    let meant = remedy::number(&shown, seconds).or_else(|| remedy::number(&first(), seconds));
    if let Some(number) = meant {
        return format!("write a number alone: `{key} = {number}`");
    }
    format!("text stands in quotes: {}", toml_text(value))
}

/// What to do about something behind a value.
fn behind(value: &str) -> String {
    if let Some((whole, part)) = value.split_once(',') {
        let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        if digits(whole) && digits(part) {
            return format!("a decimal number has a point: {whole}.{part}");
        }
    }
    format!("write one `key = value` a line, and nothing behind it; {TOML}")
}

/// What to write instead of a text that is no JSON. `said`: what the parser says of the place `at`.
pub(super) fn json(said: &str, text: &str, at: usize) -> String {
    let start = text.trim_start().trim_start_matches('[');
    let begins = start.starts_with(|first: char| first.is_ascii_alphabetic() || first == '#');
    if begins && text.contains('=') {
        return format!("{JSON}; this looks like TOML: is it config.toml?");
    }
    let rest = text.get(at..).unwrap_or("");
    let word: &str = rest.split([':', ',', '}', '\n', ' ']).next().unwrap_or("");
    let word = word.trim_matches('\'');
    let does = match said {
        "Trailing commas are not allowed" => "take out the comma behind the last one".to_owned(),
        "Expected string for object property" | "Single-quoted strings are not allowed"
            if !word.is_empty() =>
        {
            format!("write it in double quotes: \"{word}\"")
        }
        _ if word == "True" => "write `true`".to_owned(),
        _ if word == "False" => "write `false`".to_owned(),
        "Unterminated object" => "close the brace that begins here: `}`".to_owned(),
        "Unterminated array" => "close the bracket that begins here: `]`".to_owned(),
        "Unterminated string literal" => "close the text with a double quote".to_owned(),
        _ => return JSON.to_owned(),
    };
    format!("{does}; {JSON}")
}

#[cfg(test)]
mod tests {
    use super::super::layers::Layers;

    fn toml(text: &str) -> String {
        Layers::new().toml("a.toml", text).merge().unwrap_err().to_string()
    }

    fn json(text: &str) -> String {
        Layers::new().json("a.json", text).merge().unwrap_err().to_string()
    }

    #[test]
    fn a_line_that_is_no_toml_shows_how_it_is_written() {
        for (line, says, help) in [
            ("max_size =", "`max_size` has no value", "or take the line out"),
            ("max_size = 512;", "`512;` is no value", "write `max_size = 512`"),
            ("max_size = 1k", "`1k` is no value", "`max_size = 1000`"),
            ("max_size = 512 samples", "`512 samples` is no value", "`max_size = 512`"),
            ("path = \"C:\\queue\"", "", "write a backslash twice"),
            ("max size = 512", "", "this is TOML"),
            ("wait_sec = 2m # short", "`2m` is no value", "`wait_sec = 120`"),
            ("max_size = 0512", "`0512` is no value", "`max_size = 512`"),
            ("on = True", "`True` is no value", "write `on = true`"),
            ("max_size = None", "`None` is no value", "take the line out"),
            ("host = 0.0.0.0", "`0.0.0.0` is no value", "in quotes: \"0.0.0.0\""),
            ("drop = “reject”", "`“reject”` is no value", "straight quotes: \"reject\""),
            ("share = 0,6", "", "a decimal number has a point: 0.6"),
            ("max_size: 512", "", "write `max_size = 512`"),
            ("max_size 512", "", "write `max_size = 512`"),
            ("drop = \"reject", "", "a text ends on its line"),
            ("[queue", "", "`[queue]`"),
            ("[queue]]", "", "`[queue]`"),
            ("{ \"api\": 1 }", "", "name the file .json"),
        ] {
            let said = toml(line);
            assert!(said.starts_with("a.toml:1:"), "{said}");
            assert!(said.contains(says), "{line}: {said}");
            assert!(said.contains(help), "{line}: {said}");
        }
    }

    #[test]
    fn a_text_that_is_no_json_shows_how_it_is_written() {
        for (text, help) in [
            ("{ \"a\": 1, }", "take out the comma"),
            ("{ a: 1 }", "in double quotes: \"a\""),
            ("{ 'a': 1 }", "in double quotes: \"a\""),
            ("{ \"a\": 1", "close the brace"),
            ("[queue]\nmax_size = 4", "is it config.toml?"),
            ("{ \"a\": True }", "write `true`"),
            ("", "this is JSON"),
        ] {
            let said = json(text);
            assert!(said.starts_with("a.json:1:"), "{said}");
            assert!(said.contains(help), "{text}: {said}");
        }
    }
}
