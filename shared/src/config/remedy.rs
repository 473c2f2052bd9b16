//! What was meant by a value of the wrong type, where it shows that.

use super::node::Value;
use super::text::toml_text;

/// Units of time with their seconds, the longer names first.
const TIMES: [(&str, f64); 13] = [
    ("ms", 0.001),
    ("seconds", 1.0),
    ("secs", 1.0),
    ("sec", 1.0),
    ("s", 1.0),
    ("minutes", 60.0),
    ("min", 60.0),
    ("m", 60.0),
    ("hours", 3600.0),
    ("h", 3600.0),
    ("days", 86_400.0),
    ("day", 86_400.0),
    ("d", 86_400.0),
];

/// Units of numbers.
const COUNTS: [(&str, f64); 5] = [("%", 0.01), ("k", 1e3), ("K", 1e3), ("M", 1e6), ("", 1.0)];

/// The number that a value shows: a text that is one, with a unit or a percent sign, or a decimal number
/// where a whole one is wanted. `seconds`: the key counts them.
pub(super) fn number(value: &Value, seconds: bool) -> Option<f64> {
    let text = match value {
        Value::Text(text) => text.trim(),
        Value::Integer(number) => return Some(*number as f64),
        Value::Float(number) => return Some(*number).filter(|number| number.is_finite()),
        _ => return None,
    };
    let units = if seconds { &TIMES[..] } else { &[] };
    units.iter().chain(&COUNTS).find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?.trim_end();
        // `inf` and `nan` are numbers to Rust.
        let is_number = number.ends_with(|last: char| last.is_ascii_digit());
        let number: f64 = is_number.then(|| number.replace(['_', ','], "").parse().ok())??;
        // Whole numbers stay whole: 60% of 1 is 0.6.
        let scaled = if *factor < 1.0 { number / (1.0 / factor).round() } else { number * factor };
        scaled.is_finite().then_some(scaled)
    })
}

/// Whether a value shows yes or no.
pub(super) fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Integer(number @ 0..=1) => Some(*number == 1),
        Value::Text(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// A value as text, in quotes.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Integer(number) => Some(format!("\"{number}\"")),
        Value::Float(number) => Some(format!("\"{number}\"")),
        _ => None,
    }
}

/// A text that stands alone, as a list of it.
pub(super) fn texts(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(format!("[{}]", toml_text(text))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, seconds: bool) -> Option<f64> {
        number(&Value::Text(text.to_owned()), seconds)
    }

    #[test]
    fn a_number_in_quotes_shows_itself_with_its_unit() {
        for (text, seconds, found) in [
            ("32", false, 32.0),
            (" 0.5 ", false, 0.5),
            ("1,000", false, 1000.0),
            ("1_000", false, 1000.0),
            ("60%", false, 0.6),
            ("4k", false, 4000.0),
            ("2m", true, 120.0),
            ("1.5 h", true, 5400.0),
            ("500ms", true, 0.5),
            ("30 s", true, 30.0),
            ("30", true, 30.0),
        ] {
            assert_eq!(shown(text, seconds), Some(found), "{text}");
        }
        for text in ["", "x", "inf", "nan", "2m", "-", "%", "one"] {
            assert_eq!(shown(text, false), None, "{text}");
        }
    }

    #[test]
    fn yes_and_no_show_what_is_true() {
        let word = |text: &str| boolean(&Value::Text(text.to_owned()));
        assert_eq!([word("False"), word("yes"), word("maybe")], [Some(false), Some(true), None]);
        assert_eq!(
            [0, 1, 2].map(|number| boolean(&Value::Integer(number))),
            [Some(false), Some(true), None]
        );
    }
}
