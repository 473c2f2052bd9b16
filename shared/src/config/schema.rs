//! JSON schemas of the files that people write, for editors that complete and check them.
//!
//! A schema is what the reader of a file [asks](super::Asked) for when it reads probes, texts in which
//! every table is there: key by key, with types, ranges and words. So it cannot differ from what is read.
//! Rules between keys are not in it: `headway` itself reports those.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::asked::{Asked, Shape};
use super::keys::keys;
use super::layers::{Document, Layers};
use super::parse::parse_sections;
use super::reader::Reader;
use super::sections::Config;
use super::settings::parse_settings;
use super::{GuardSettings, tuned};

/// What is said of a key: its path, such as `queue.max_size`, to what it means.
pub type Abouts = BTreeMap<String, String>;

/// The largest whole number that is written as a bound: JSON's readers count exactly up to here.
const EXACT: u64 = 1 << 53;

/// What the readers of `config.toml` ask for.
#[must_use]
pub fn asked_of_config() -> Vec<Asked> {
    asked(&["[guard]\n[guard.previous]\n"], |root| {
        let config = parse_sections(root);
        let _ = GuardSettings::read(root, &config);
    })
}

/// What the reader of `settings.json` asks for, with an endpoint that judges and with a rule.
#[must_use]
pub fn asked_of_settings() -> Vec<Asked> {
    let mut all = Vec::new();
    for rule in ["", "exact"] {
        let mut config = Config::default();
        config.reward_judging.rule = rule.to_owned();
        all.extend(asked(&[""], |root| drop(parse_settings(root, &config, None))));
    }
    all
}

/// What the readers of a tuned file ask for.
#[must_use]
pub fn asked_of_tuned() -> Vec<Asked> {
    asked(&["[tuned]\n[tuned.envelope]\n[tuned.predicted]\n"], tuned::probe)
}

/// What is asked of each of these texts.
pub fn asked(texts: &[&str], read: impl Fn(&mut Reader<'_>)) -> Vec<Asked> {
    let mut all = Vec::new();
    for text in texts {
        let Ok(document) = Layers::new().toml("probe", *text).merge() else { continue };
        let Document { findings, .. } = &document;
        findings.note_asked();
        let mut root = document.reader();
        read(&mut root);
        root.finish();
        all.extend(findings.take_asked());
    }
    all
}

/// What the key table says of the scheduling sections, where they stand at the root and within
/// `within`, such as `guard.previous`.
#[must_use]
pub fn abouts_of_sections(within: &[&str]) -> Abouts {
    let defaults = Config::default();
    let mut abouts = Abouts::new();
    for key in keys() {
        let described = key.describe(&defaults);
        let default = match (key.default_text, described.value) {
            (Some(follows), _) => format!(" Default: {}.", plain(follows)),
            (None, Some(value)) => format!(" Default: {value}."),
            (None, None) => String::new(),
        };
        let words: Vec<String> =
            described.words.iter().map(|(word, about)| format!("\n{word}: {about}")).collect();
        let about = format!("{}{default}{}", plain(key.about), words.concat());
        for within in within {
            let dot = if within.is_empty() { "" } else { "." };
            abouts.insert(format!("{within}{dot}{}", key.path()), about.clone());
        }
    }
    abouts
}

/// Markdown without links and marks of code.
#[must_use]
pub fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once('[') {
        text += before;
        match link.split_once("](").and_then(|(words, to)| Some((words, to.split_once(')')?.1))) {
            Some((words, behind)) if !words.contains('[') => {
                text += words;
                rest = behind;
            }
            _ => {
                text.push('[');
                rest = link;
            }
        }
    }
    (text + rest).replace('`', "")
}

/// A table of the file.
#[derive(Default)]
struct Node {
    keys: Vec<(&'static str, Vec<Shape>)>,
    required: BTreeMap<&'static str, u32>,
    finished: u32,
}

/// The schema of what was asked. `title` says of what, `abouts` what keys mean.
#[must_use]
pub fn schema(title: &str, asked: &[Asked], abouts: &Abouts) -> Value {
    let mut tables: BTreeMap<String, Node> = BTreeMap::new();
    let mut forms: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for asked in asked {
        match asked {
            Asked::Key { path, key, shape } => {
                let table = tables.entry(path.clone()).or_default();
                if let Shape::Form(form) = shape {
                    forms.entry(*form).or_default().push(join(path, key));
                }
                match table.keys.iter_mut().find(|(known, _)| known == key) {
                    Some((_, shapes)) if shapes.contains(shape) => {}
                    Some((_, shapes)) => shapes.push(shape.clone()),
                    None => table.keys.push((key, vec![shape.clone()])),
                }
            }
            Asked::Required { path, key } => {
                let table = tables.entry(path.clone()).or_default();
                *table.required.entry(key).or_default() += 1;
            }
            Asked::Finished { path } => tables.entry(path.clone()).or_default().finished += 1,
        }
    }
    let writer = Writer { tables, abouts };
    let mut document = Map::new();
    document.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
    document.insert("title".to_owned(), title.into());
    document.extend(writer.object(&[String::new()]));
    let definitions: Map<String, Value> = forms
        .iter()
        .map(|(form, paths)| ((*form).to_owned(), Value::Object(writer.object(paths))))
        .collect();
    if !definitions.is_empty() {
        document.insert("definitions".to_owned(), Value::Object(definitions));
    }
    Value::Object(document)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

struct Writer<'a> {
    tables: BTreeMap<String, Node>,
    abouts: &'a Abouts,
}

impl Writer<'_> {
    /// The table that was found at these paths, which have one form.
    fn object(&self, paths: &[String]) -> Map<String, Value> {
        let mut properties = Map::new();
        let mut required: BTreeMap<&str, u32> = BTreeMap::new();
        let tables: Vec<_> =
            paths.iter().filter_map(|path| Some((path, self.tables.get(path)?))).collect();
        for (path, table) in &tables {
            for (key, shapes) in &table.keys {
                properties.entry((*key).to_owned()).or_insert_with(|| self.key(path, key, shapes));
            }
            for (key, times) in &table.required {
                *required.entry(key).or_default() += times;
            }
        }
        // What is not demanded every time depends on what else is there.
        let finished: u32 = tables.iter().map(|(_, table)| table.finished).sum();
        let always = required.iter().filter(|(_, times)| **times >= finished);
        let required: Vec<Value> = always.map(|(key, _)| Value::from(*key)).collect();
        let mut object = Map::new();
        object.insert("type".to_owned(), "object".into());
        object.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            object.insert("required".to_owned(), Value::Array(required));
        }
        object.insert("additionalProperties".to_owned(), false.into());
        object
    }

    fn key(&self, path: &str, key: &str, shapes: &[Shape]) -> Value {
        let path = join(path, key);
        // What a reader looks at itself it often asks for in words, too; a form is a table.
        let has_form = shapes.iter().any(|shape| matches!(shape, Shape::Form(_)));
        let says_more = |shape: &&Shape| match shape {
            Shape::Any => false,
            Shape::Table => !has_form,
            _ => true,
        };
        let known: Vec<&Shape> = shapes.iter().filter(says_more).collect();
        let mut of: Vec<Value> = known.iter().map(|shape| self.shape(&path, shape)).collect();
        of.dedup();
        let mut value = match of.len() {
            0 => json!({}),
            1 => of.remove(0),
            _ => json!({ "anyOf": of }),
        };
        if let Some(about) = self.abouts.get(&path) {
            // Beside a reference nothing else counts.
            if value.get("$ref").is_some() {
                value = json!({ "allOf": [value] });
            }
            value["description"] = about.as_str().into();
        }
        value
    }

    fn shape(&self, path: &str, shape: &Shape) -> Value {
        match shape {
            Shape::Whole(low, high) => {
                let mut value = json!({ "type": "integer", "minimum": low });
                if *high <= EXACT && *high != u64::from(u32::MAX) {
                    value["maximum"] = (*high).into();
                }
                value
            }
            Shape::Number(low, high) => number(*low, *high),
            Shape::Pair(low, high) => {
                let item = number(*low, *high);
                json!({ "type": "array", "items": item, "minItems": 2, "maxItems": 2 })
            }
            Shape::Boolean => json!({ "type": "boolean" }),
            Shape::Text => json!({ "type": "string" }),
            Shape::Words(words) => json!({ "enum": words }),
            Shape::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Shape::Table => Value::Object(self.object(&[path.to_owned()])),
            Shape::Tables => {
                let item = self.object(&[format!("{path}[]")]);
                json!({ "type": "array", "items": item })
            }
            Shape::Form(form) => json!({ "$ref": format!("#/definitions/{form}") }),
            Shape::Any => json!({}),
        }
    }
}

fn number(low: f64, high: f64) -> Value {
    let mut value = json!({ "type": "number" });
    // Beyond these the range says only that a number is finite.
    const FAR: f64 = 1e15;
    if low > -FAR {
        value["minimum"] = whole_or_not(low);
    }
    if high < FAR {
        value["maximum"] = whole_or_not(high);
    }
    value
}

/// `1`, not `1.0`.
fn whole_or_not(number: f64) -> Value {
    if number.trunc() == number { Value::from(number as i64) } else { Value::from(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Value {
        schema("config.toml", &asked_of_config(), &abouts_of_sections(&["", "guard.previous"]))
    }

    #[test]
    fn every_key_of_the_reference_is_in_the_schema_with_what_it_means() {
        let schema = config();
        for key in keys() {
            let mut place = &schema;
            for name in key.path().split('.') {
                place = &place["properties"][name];
            }
            let about = place["description"].as_str().unwrap_or_else(|| panic!("{}", key.path()));
            assert!(about.starts_with(&plain(key.about)), "{about}");
        }
        let previous = &schema["properties"]["guard"]["properties"]["previous"];
        assert!(previous["properties"]["queue"]["properties"]["max_size"].is_object());
    }

    #[test]
    fn a_key_has_its_type_its_range_and_its_words() {
        let schema = config();
        let of = |section: &str, key: &str| {
            let mut value = schema["properties"][section]["properties"][key].clone();
            value.as_object_mut().unwrap().remove("description");
            value
        };
        assert_eq!(
            of("policy_serving", "port"),
            json!({ "type": "integer", "minimum": 0, "maximum": 65535 })
        );
        assert_eq!(of("reward_judging", "fire_on_turn_end"), json!({ "type": "boolean" }));
        assert_eq!(
            of("reward_judging", "aggregate"),
            json!({ "enum": ["majority", "mean", "median"] })
        );
        assert_eq!(
            of("policy_training", "over_sampling"),
            json!({ "type": "number", "minimum": 0, "maximum": 4000 })
        );
        assert_eq!(schema["additionalProperties"], json!(false));
    }

    #[test]
    fn what_only_an_endpoint_needs_is_not_required_and_what_a_list_needs_is() {
        let settings = schema("settings.json", &asked_of_settings(), &Abouts::new());
        assert_eq!(settings["properties"]["api"].get("required"), None);
        let tuned = schema("tuned.toml", &asked_of_tuned(), &Abouts::new());
        let required = tuned["properties"]["tuned"]["required"].as_array().unwrap();
        assert!(required.contains(&json!("config_digest")), "{required:?}");
    }

    #[test]
    fn links_and_code_become_text() {
        assert_eq!(
            plain("The [rule](judging.md) that `x` reads [1, 2]"),
            "The rule that x reads [1, 2]"
        );
    }
}
