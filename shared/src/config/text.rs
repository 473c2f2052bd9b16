//! TOML and JSON into [`Node`]s.

use std::ops::Range;

use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions};
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::diagnostic::{Diagnostic, Findings, Origin, SourceId};
use super::node::{Entry, Node, Table, Value};
use super::syntax;

/// What the parser calls a key that is given twice.
const DUPLICATE: &str = "duplicate key";

/// Reads a TOML document. What is wrong goes to `findings`; the rest is still there.
#[must_use]
pub(super) fn parse_toml(source: SourceId, text: &str, findings: &Findings) -> Table {
    let (document, mut errors) = DeTable::parse_recoverable(text);
    let place = |error: &toml::de::Error| error.span().unwrap_or(0..0);
    errors.sort_by_key(|error| place(error).start);
    let mut broken = false;
    for error in errors {
        let span = place(&error);
        let origin = at(source, &span, 0);
        if error.message() == DUPLICATE {
            let key = text.get(span).unwrap_or("a key");
            findings.push(
                Diagnostic::error(origin, format!("`{key}` is given twice"))
                    .help("keep one of them"),
            );
            continue;
        }
        // After the first the parser guesses what was meant, and finds more than there is.
        if !std::mem::replace(&mut broken, true) {
            let (message, help) = syntax::toml(error.message(), text, span);
            findings.push(Diagnostic::error(origin, message).help(help));
        }
    }
    toml_table(document.get_ref(), source, 0)
}

/// A text as TOML writes it: in double quotes, what is no plain letter escaped.
#[must_use]
pub(super) fn toml_text(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            letter if letter.is_control() => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// Reads one TOML value that stands at byte `offset` of a source; `None` if it is not one.
#[must_use]
pub(super) fn parse_toml_value(source: SourceId, text: &str, offset: usize) -> Option<Node> {
    DeValue::parse(text).ok().map(|value| toml_node(&value, source, offset))
}

fn at(source: SourceId, span: &Range<usize>, offset: usize) -> Origin {
    Origin { source, start: span.start + offset, end: span.end + offset }
}

fn toml_table(table: &DeTable<'_>, source: SourceId, offset: usize) -> Table {
    let mut entries: Vec<_> = table.iter().collect();
    // The parser sorts by name; people expect findings in the order of the file.
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut result = Table::default();
    for (key, value) in entries {
        result.push(Entry {
            key: key.get_ref().to_string(),
            key_origin: at(source, &key.span(), offset),
            node: toml_node(value, source, offset),
        });
    }
    result
}

fn toml_node(node: &Spanned<DeValue<'_>>, source: SourceId, offset: usize) -> Node {
    let value = match node.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => Value::Integer(toml_integer(number)),
        // A number beyond the range of `f64` parses to infinity, which every key refuses.
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| toml_node(item, source, offset)).collect())
        }
        DeValue::Table(table) => Value::Table(toml_table(table, source, offset)),
    };
    Node { value, origin: at(source, &node.span(), offset) }
}

fn toml_integer(number: &DeInteger<'_>) -> i128 {
    let text = number.as_str();
    let end = if text.starts_with('-') { i128::MIN } else { i128::MAX };
    i128::from_str_radix(text, number.radix()).unwrap_or(end)
}

/// Reads a JSON object; comments are allowed. What is wrong goes to `findings`.
#[must_use]
pub(super) fn parse_json(source: SourceId, text: &str, findings: &Findings) -> Table {
    let options = ParseOptions {
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
        allow_comments: true,
    };
    let whole = Origin { source, start: 0, end: 0 };
    match jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options) {
        Ok(parsed) => match parsed.value {
            Some(jsonc_parser::ast::Value::Object(object)) => json_table(object, source, findings),
            _ => {
                let help = syntax::json("", text, 0);
                findings.push(Diagnostic::error(whole, "the file holds no JSON object").help(help));
                Table::default()
            }
        },
        Err(error) => {
            let (origin, message) = (json_origin(source, &error.range()), error.kind().to_string());
            let help = syntax::json(&message, text, origin.start);
            findings.push(Diagnostic::error(origin, message).help(help));
            Table::default()
        }
    }
}

fn json_origin(source: SourceId, place: &impl Ranged) -> Origin {
    let range = place.range();
    Origin { source, start: range.start, end: range.end }
}

fn json_table(
    object: jsonc_parser::ast::Object<'_>,
    source: SourceId,
    findings: &Findings,
) -> Table {
    let mut result = Table::default();
    for property in object.properties {
        let key_origin = json_origin(source, &property.name);
        let key = property.name.into_string();
        if let Some(first) = result.get(&key) {
            findings.push(
                Diagnostic::error(key_origin, format!("`{key}` is given twice"))
                    .related(first.key_origin, "first here")
                    .help("keep one of them"),
            );
            continue;
        }
        result.push(Entry { key, key_origin, node: json_node(property.value, source, findings) });
    }
    result
}

fn json_node(value: jsonc_parser::ast::Value<'_>, source: SourceId, findings: &Findings) -> Node {
    use jsonc_parser::ast::Value as Json;
    let origin = json_origin(source, &value);
    let value = match value {
        Json::StringLit(text) => Value::Text(text.value.into_owned()),
        Json::NumberLit(number) => json_number(number.value),
        Json::BooleanLit(value) => Value::Boolean(value.value),
        Json::NullKeyword(_) => Value::Other("null"),
        Json::Object(object) => Value::Table(json_table(object, source, findings)),
        Json::Array(items) => Value::List(
            items.elements.into_iter().map(|item| json_node(item, source, findings)).collect(),
        ),
    };
    Node { value, origin }
}

fn json_number(text: &str) -> Value {
    if text.contains(['.', 'e', 'E']) {
        return Value::Float(text.parse().unwrap_or(f64::NAN));
    }
    let end = if text.starts_with('-') { i128::MIN } else { i128::MAX };
    Value::Integer(text.parse().unwrap_or(end))
}
