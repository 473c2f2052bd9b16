//! Lines of a log of metrics, in any of the forms that trackers write.

use std::io::BufRead;

use serde_json::{Map, Value};

use super::systems::System;
use crate::import::json::{Object, shown};
use crate::import::lines::{Line, Lines};
use crate::import::{ImportError, Problem};

/// Trackers log some hundred metrics in a line.
const LONGEST: usize = 1 << 20;
/// No step is later.
const LAST_STEP: u64 = 1 << 53;

/// A step and what a line says of it.
pub(super) type Entry = (u64, Vec<(String, f64)>);

/// What a file turned out to be.
enum Form {
    /// Not a line was read.
    Unknown,
    /// An object per line: flat, or verl's `{"step": 1, "data": {...}}`.
    Json,
    /// A row per step: where the step is, and the metric of each column.
    Csv { step: usize, names: Vec<Option<String>> },
    /// What the trainer printed, between other lines.
    Printed,
}

/// Reads a log entry by entry.
pub(super) struct Reader<'n, R> {
    system: System,
    lines: Lines<R>,
    form: Form,
    /// The file's, without folder.
    name: &'n str,
    /// The last line with an entry.
    line: u64,
}

impl<'n, R: BufRead> Reader<'n, R> {
    pub(super) fn new(system: System, reader: R, name: &'n str) -> Self {
        Self { system, lines: Lines::up_to(LONGEST, reader), form: Form::Unknown, name, line: 0 }
    }

    /// The last line that had an entry; 0: there was none.
    pub(super) const fn line(&self) -> u64 {
        self.line
    }

    /// The next entry.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, ImportError> {
        let (system, name) = (self.system, self.name);
        loop {
            let Some(line) = self.lines.next()? else { return Ok(None) };
            let number = line.number;
            let entry = match &self.form {
                Form::Unknown => {
                    self.form = form(system, &line, name)?;
                    match &self.form {
                        Form::Json => json(system, &line)?,
                        Form::Printed => printed(system, &line)?,
                        Form::Unknown | Form::Csv { .. } => None,
                    }
                }
                Form::Json => json(system, &line)?,
                Form::Csv { step, names } => Some(row(system, &line, *step, names)?),
                Form::Printed => printed(system, &line)?,
            };
            if let Some(entry) = entry {
                self.line = number;
                return Ok(Some(entry));
            }
        }
    }
}

/// What the first line says of the file.
fn form(system: System, line: &Line<'_>, name: &str) -> Result<Form, ImportError> {
    let text = line.text.strip_prefix('\u{feff}').unwrap_or(line.text);
    if text.starts_with('{') {
        return Ok(Form::Json);
    }
    let cells = cells(text);
    let step = system.steps().iter().find_map(|step| cells.iter().position(|cell| cell == step));
    match step {
        _ if cells == ["Wall time", "Step", "Value"] => {
            let metric = tensorboard(system, name).ok_or_else(|| {
                line.wrong(text, Problem::Tag { name: name.into(), system: system.word() })
            })?;
            Ok(Form::Csv { step: 1, names: vec![None, None, Some(metric.into())] })
        }
        Some(step) if cells.len() > 1 => {
            let names = columns(system, line, &cells, step)?;
            Ok(Form::Csv { step, names })
        }
        _ => Ok(Form::Printed),
    }
}

/// The metric of a file that TensorBoard's page has saved, such as `run-a-tag-perf_train_time.csv`:
/// it writes `_` for what a file name cannot have.
fn tensorboard(system: System, name: &str) -> Option<&'static str> {
    let (_, tag) = name.strip_suffix(".csv")?.rsplit_once("tag-")?;
    let plain = |metric: &str| metric.trim_start_matches("*/").replace(['/', '-'], "_");
    system.metrics().find(|metric| {
        let (plain, tag) = (plain(metric), tag.replace('-', "_"));
        if metric.starts_with('*') { tag.ends_with(&plain) } else { tag == plain }
    })
}

/// The metric of each column. wandb's pages write `RUN - METRIC`, with `__MIN` and `__MAX` beside.
fn columns(
    system: System,
    line: &Line<'_>,
    cells: &[String],
    step: usize,
) -> Result<Vec<Option<String>>, ImportError> {
    let mut names: Vec<Option<String>> = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        let beside = cell.ends_with("__MIN") || cell.ends_with("__MAX");
        let metric = match cell.rsplit_once(" - ") {
            Some((_, metric)) if system.knows(metric) => metric,
            _ => cell.as_str(),
        };
        let own = at == step || beside || metric.is_empty() || system.steps().contains(&metric);
        let twice = !own && names.iter().flatten().any(|known| known == metric);
        if twice && system.knows(metric) {
            return Err(line.wrong(line.text, Problem::TwoRuns { metric: metric.into() }));
        }
        names.push((!own).then(|| metric.to_owned()));
    }
    Ok(names)
}

fn row(
    system: System,
    line: &Line<'_>,
    step: usize,
    names: &[Option<String>],
) -> Result<Entry, ImportError> {
    let cells = cells(line.text);
    if cells.len() != names.len() {
        let row = line.text.chars().take(80).collect();
        let problem = Problem::Values { row, found: cells.len(), expected: names.len() };
        return Err(line.wrong(line.text, problem));
    }
    // Where the cell stands, unless it is quoted: then the line has to do.
    let place = |cell: &str| line.text.find(cell).map_or(line.text, |start| &line.text[start..]);
    let found = &cells[step];
    let number = whole(found.parse().ok());
    let number =
        number.ok_or_else(|| line.wrong(place(found), Problem::Step { found: found.clone() }))?;
    let mut values = Vec::new();
    for (name, cell) in names.iter().zip(&cells) {
        let Some(name) = name else { continue };
        let Some(text) = present(cell) else { continue };
        match text.parse::<f64>() {
            Ok(value) if usable(value) => values.push((name.clone(), value)),
            _ if system.knows(name) => {
                let (found, metric) = (cell.clone(), name.clone());
                return Err(line.wrong(place(cell), Problem::Metric { found, metric }));
            }
            // A metric that is in no column may be anything; its name is said.
            _ => values.push((name.clone(), 0.0)),
        }
    }
    Ok((number, values))
}

/// The cells of a row; a quoted one may have commas. A row is one line.
fn cells(text: &str) -> Vec<String> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    match reader.records().next() {
        Some(Ok(record)) => record.iter().map(|cell| cell.trim().to_owned()).collect(),
        _ => Vec::new(),
    }
}

fn json(system: System, line: &Line<'_>) -> Result<Option<Entry>, ImportError> {
    let object = Object::read(line)?;
    let outer = object.values();
    let data = outer.get("data").and_then(Value::as_object).unwrap_or(outer);
    let step = system.steps().iter().find_map(|key| {
        let value = data.get(*key).or_else(|| outer.get(*key))?;
        (!value.is_null()).then_some((*key, value))
    });
    let Some((key, value)) = step else { return Ok(None) };
    let step = whole(value.as_f64());
    let step =
        step.ok_or_else(|| object.wrong(key, Problem::Step { found: shown(Some(value)) }))?;
    let values = numbers(system, data).map_err(|(metric, found)| {
        object.wrong(&metric, Problem::Metric { found, metric: metric.clone() })
    })?;
    Ok(Some((step, values)))
}

/// The numbers of an object; what is wrong with a metric that a column needs.
fn numbers(
    system: System,
    data: &Map<String, Value>,
) -> Result<Vec<(String, f64)>, (String, String)> {
    let mut values = Vec::new();
    for (name, value) in data {
        if system.steps().contains(&name.as_str()) || value.is_null() {
            continue;
        }
        match value.as_f64() {
            Some(number) if usable(number) => values.push((name.clone(), number)),
            // Python writes what is no number as a text in some trackers.
            None if value.as_str().is_some_and(|text| present(text).is_none()) => {}
            _ if system.knows(name) => return Err((name.clone(), shown(Some(value)))),
            Some(_) => values.push((name.clone(), 0.0)),
            None => {}
        }
    }
    Ok(values)
}

/// An entry in what a trainer prints: verl's `step:3 - timing_s/gen:1.5 - ...`, slime's
/// `perf 3: {'perf/train_time': 1.5, ...}`. Other lines are none.
fn printed(system: System, line: &Line<'_>) -> Result<Option<Entry>, ImportError> {
    let (step, pairs): (&str, Vec<(&str, &str)>) = match system {
        System::Verl => {
            let Some(start) = line.text.find("step:") else { return Ok(None) };
            let mut parts = line.text[start..].split(" - ");
            let step = parts.next().and_then(|part| part.strip_prefix("step:")).unwrap_or("");
            (step.trim(), parts.filter_map(|part| part.split_once(':')).collect())
        }
        System::Slime => {
            let Some((before, body)) = line.text.split_once(": {") else { return Ok(None) };
            let Some(body) = body.trim_end().strip_suffix('}') else { return Ok(None) };
            let step = before.rsplit(' ').next().unwrap_or("");
            // Each part is `'NAME': VALUE`; the split takes the first quote of all but the first.
            let pairs = body
                .split(", '")
                .filter_map(|part| part.strip_prefix('\'').unwrap_or(part).split_once("': "));
            (step, pairs.collect())
        }
        System::Areal => return Ok(None),
    };
    let Some(step) = whole(step.parse().ok()) else { return Ok(None) };
    let mut values = Vec::new();
    for (name, text) in pairs {
        let (name, text) = (name.trim(), text.trim());
        if system.steps().contains(&name) {
            continue;
        }
        let bare = text.strip_prefix("np.float64(").and_then(|text| text.strip_suffix(')'));
        let Some(text) = present(bare.unwrap_or(text)) else { continue };
        match text.parse::<f64>() {
            Ok(value) if usable(value) => values.push((name.to_owned(), value)),
            _ if system.knows(name) => {
                let (found, metric) = (text.to_owned(), name.to_owned());
                return Err(line.wrong(text, Problem::Metric { found, metric }));
            }
            Ok(_) => values.push((name.to_owned(), 0.0)),
            Err(_) => {}
        }
    }
    Ok((!values.is_empty()).then_some((step, values)))
}

/// A cell that says something.
fn present(text: &str) -> Option<&str> {
    let nothing = ["", "nan", "none", "null"].iter().any(|word| text.eq_ignore_ascii_case(word));
    (!nothing).then_some(text)
}

/// A time, a length or a difference.
fn usable(value: f64) -> bool {
    (0.0..=1e15).contains(&value)
}

fn whole(value: Option<f64>) -> Option<u64> {
    let value = value?;
    let fits = value >= 0.0 && value <= LAST_STEP as f64 && value.trunc() == value;
    fits.then_some(value as u64)
}
