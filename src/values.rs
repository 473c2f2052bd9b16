//! Values of options that are more than a number or a name, read from their texts.

use std::path::Path;

use headway_shared::config::{Diagnostic, Findings, Origin, Sources, Syntax, nearest};
use headway_sim::calibrate::column::{Latency, column};
use headway_sim::calibrate::{Measurements, name_of};
use headway_sim::plan::constraint::Constraint;
use headway_sim::scenario::is_name;
use headway_sim::validate::Tolerances;

use crate::failure::Failure;
use crate::options;

/// Reads what is given with `--constraint`.
pub(crate) fn constraints(texts: &[String]) -> Result<Vec<Constraint>, Failure> {
    let (mut sources, findings) = (Sources::default(), Findings::default());
    let mut constraints = Vec::new();
    for text in texts {
        let source = sources.add(Syntax::Set, "--constraint", text);
        match Constraint::parse(text) {
            Ok(constraint) => constraints.push(constraint),
            Err(error) => {
                let origin = Origin { source, start: 0, end: text.len() };
                findings.push(Diagnostic::error(origin, error.to_string()).help(error.help()));
            }
        }
    }
    findings.finish(sources)?;
    Ok(constraints)
}

/// Reads what is given with `--tolerance`.
pub(crate) fn tolerances(texts: &[String]) -> Result<Tolerances, Failure> {
    let mut tolerances = Tolerances::default();
    for text in texts {
        tolerances.set(text).map_err(|error| {
            Failure::input(format!("--tolerance: {error}\nhelp: {}", error.help()))
        })?;
    }
    Ok(tolerances)
}

/// Reads a column of measured values for each text given with `--latency`, such as
/// `judge=log.csv:seconds`.
pub(crate) fn latencies(texts: &[String]) -> Result<Vec<Measurements>, Failure> {
    texts.iter().map(|text| measurements(text)).collect()
}

fn measurements(text: &str) -> Result<Measurements, Failure> {
    let wrong = |what: &str| {
        let help = "write NAME=FILE:COLUMN, such as judge=log.csv:seconds";
        Failure::input(format!("--latency {text}: {what}\nhelp: {help}"))
    };
    let (name, place) = text.split_once('=').ok_or_else(|| wrong("it has no `=`"))?;
    let (file, of) = place.rsplit_once(':').ok_or_else(|| wrong("it names no column"))?;
    let latency = Latency::find(name)
        .map_err(|error| Failure::input(format!("--latency {text}: {error}")))?;
    let values = column(file, &options::read(Path::new(file))?, of, latency.unit)?;
    let base = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
    Ok(Measurements { latency, from: format!("{base}:{of}"), values })
}

/// The name of a scenario that is fitted to a record, or to columns: as `--name` says, else after the
/// record's file.
pub(crate) fn name(given: Option<&str>, record: Option<&Path>) -> Result<String, Failure> {
    match given {
        None => {
            let stem = record.and_then(Path::file_stem);
            Ok(name_of(&stem.map_or("columns".into(), |stem| stem.to_string_lossy())))
        }
        Some(name) if is_name(name) => Ok(name.to_owned()),
        Some(name) => {
            let help = "write small letters, digits and dashes";
            Err(Failure::input(format!("--name {name}: it is no name of a scenario\nhelp: {help}")))
        }
    }
}

/// Those of `all` that were named, in the order of `all`; every one where none was.
pub(crate) fn chosen<T: Copy>(
    option: &str,
    names: &[String],
    all: &[(&'static str, T)],
) -> Result<Vec<T>, Failure> {
    let known: Vec<&'static str> = all.iter().map(|(name, _)| *name).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let near = nearest(name, &known);
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write some of {}", known.join(", ")),
        };
        return Err(Failure::input(format!("{option}: there is no `{name}`\nhelp: {help}")));
    }
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    Ok(all.iter().filter(|(name, _)| wanted(name)).map(|(_, value)| *value).collect())
}

/// Reads the address of a server.
#[cfg(feature = "live")]
pub(crate) fn url(text: &str) -> Result<String, String> {
    match headway_shared::config::is_url(text) {
        true => Ok(text.to_owned()),
        false => Err("write it with its scheme, such as http://127.0.0.1:30000".to_owned()),
    }
}

/// Reads a share: `0.02` or `2%`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let parsed = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    match parsed {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a share such as 0.02 or 2%, from 0 to 1".to_owned()),
    }
}
