//! A line that is a JSON object.

use serde_json::{Map, Value};

use super::lines::Line;
use super::{ImportError, Problem};

/// The object of a line, which knows where its keys stand.
pub(super) struct Object<'a> {
    line: Line<'a>,
    values: Map<String, Value>,
}

impl<'a> Object<'a> {
    /// Reads it; one may be as deep as the parser follows.
    pub(super) fn read(line: &Line<'a>) -> Result<Self, ImportError> {
        let text = line.text.strip_prefix('\u{feff}').unwrap_or(line.text);
        let mark = line.text.len() - text.len();
        let wrong = |column: usize, what: String| {
            let problem = Problem::Json { what };
            ImportError::Wrong { line: line.number, column: column + mark, problem }
        };
        match serde_json::from_str(text) {
            Ok(Value::Object(values)) => Ok(Self { line: *line, values }),
            Ok(_) => Err(wrong(1, "it is no object".into())),
            Err(error) => {
                let said = error.to_string();
                // The place is said beside it.
                let what = said.rsplit_once(" at line ").map_or(said.as_str(), |(what, _)| what);
                Err(wrong(error.column().max(1), what.into()))
            }
        }
    }

    pub(super) const fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// Something is wrong with the value of this key.
    pub(super) fn wrong(&self, key: &str, problem: Problem) -> ImportError {
        let quoted = format!("\"{key}\"");
        let start = self.line.text.find(&quoted).unwrap_or(0);
        self.line.wrong(&self.line.text[start..], problem)
    }

    /// A whole number up to `most`.
    pub(super) fn integer(&self, key: &'static str, most: u64) -> Result<u64, ImportError> {
        let value = self.values.get(key);
        let whole = |number: f64| {
            ((0.0..=1e15).contains(&number) && number.trunc() == number).then_some(number as u64)
        };
        let number = value.and_then(|value| value.as_u64().or_else(|| whole(value.as_f64()?)));
        number
            .filter(|&number| number <= most)
            .ok_or_else(|| self.wrong(key, Problem::Whole { found: shown(value), key, most }))
    }

    /// A text.
    pub(super) fn text(&self, key: &'static str) -> Result<&str, ImportError> {
        let value = self.values.get(key);
        value
            .and_then(Value::as_str)
            .ok_or_else(|| self.wrong(key, Problem::Text { found: shown(value), key }))
    }
}

/// The beginning of a value, as it stands in the text.
pub(super) fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| value.to_string().chars().take(40).collect())
}
