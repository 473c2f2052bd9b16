//! How a field of a section is read from a file, and how the reference describes it.

use crate::config::choices::Choice;
use crate::config::reader::Reader;
use crate::config::text::toml_text;
use crate::time::Span;

/// What the reference says about a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// What can be written, in words.
    pub kind: String,
    /// The value as TOML; `None` where the key is then absent.
    pub value: Option<String>,
    /// Each word that can be written, with its meaning; empty where any value can.
    pub words: Vec<(&'static str, &'static str)>,
}

/// A type that a key can have.
pub(super) trait Field: Sized {
    fn read(reader: &mut Reader<'_>, key: &'static str, default: Self) -> Self;
    fn describe(&self) -> Described;
}

fn plain(kind: &str, value: impl Into<String>) -> Described {
    Described { kind: kind.to_owned(), value: Some(value.into()), words: Vec::new() }
}

impl Field for u32 {
    fn read(reader: &mut Reader<'_>, key: &'static str, default: Self) -> Self {
        reader.u32(key, default, 0..=u32::MAX)
    }
    fn describe(&self) -> Described {
        plain("whole number", self.to_string())
    }
}

impl Field for u16 {
    fn read(reader: &mut Reader<'_>, key: &'static str, default: Self) -> Self {
        // The range keeps it within `u16`.
        reader.u32(key, u32::from(default), 0..=u32::from(u16::MAX)) as u16
    }
    fn describe(&self) -> Described {
        plain("whole number, 0 to 65535", self.to_string())
    }
}

impl Field for Option<u32> {
    fn read(reader: &mut Reader<'_>, key: &'static str, default: Self) -> Self {
        if !reader.has(key) {
            // Makes the key known.
            let _ = reader.node(key);
            return default;
        }
        Some(reader.u32(key, default.unwrap_or(0), 0..=u32::MAX))
    }
    fn describe(&self) -> Described {
        Described {
            kind: "whole number".to_owned(),
            value: self.map(|number| number.to_string()),
            words: Vec::new(),
        }
    }
}

impl Field for bool {
    fn read(reader: &mut Reader<'_>, key: &'static str, default: Self) -> Self {
        reader.boolean(key, default)
    }
    fn describe(&self) -> Described {
        plain("true or false", self.to_string())
    }
}

impl Field for String {
    fn read(reader: &mut Reader<'_>, key: &'static str, default: Self) -> Self {
        reader.string(key, &default)
    }
    fn describe(&self) -> Described {
        plain("text", toml_text(self))
    }
}

impl Field for Span {
    fn read(reader: &mut Reader<'_>, key: &'static str, default: Self) -> Self {
        reader.span_sec(key, default)
    }
    fn describe(&self) -> Described {
        plain("seconds", self.to_string().trim_end_matches('s'))
    }
}

/// A decimal number that the configuration keeps in millionths.
pub(super) struct Millionths(pub(super) u32);

impl Field for Millionths {
    fn read(reader: &mut Reader<'_>, key: &'static str, default: Self) -> Self {
        Self(reader.millionths(key, default.0))
    }
    fn describe(&self) -> Described {
        let decimals = format!("{:06}", self.0 % 1_000_000);
        let decimals = match decimals.trim_end_matches('0') {
            "" => "0",
            some => some,
        };
        plain("number, 0 to 4000", format!("{}.{decimals}", self.0 / 1_000_000))
    }
}

impl<T: Choice> Field for T {
    fn read(reader: &mut Reader<'_>, key: &'static str, default: Self) -> Self {
        reader.choice(key, default)
    }
    fn describe(&self) -> Described {
        let words = T::ALL.iter().zip(T::ABOUT);
        Described {
            kind: "word".to_owned(),
            value: Some(format!("{:?}", self.word())),
            words: words.map(|((word, _), about)| (*word, about.trim())).collect(),
        }
    }
}
