//! What `headway check` looks at, scenarios and records, and how it reports them.

pub(crate) mod records;
pub(crate) mod scenarios;

use std::path::Path;

use clap::ValueEnum;
use headway_sim::check::{Case, github, junit};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::whole_file::WholeFile;

/// One thing that was checked.
pub(crate) struct Checked {
    /// For continuous integration.
    pub(crate) case: Case,
    /// For people.
    pub(crate) shown: String,
    /// For programs.
    pub(crate) document: Value,
}

/// How a check is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Lines, to read
    Table,
    /// One JSON document
    Json,
    /// The same lines, and annotations of a GitHub workflow
    Github,
}

/// The report that goes to stdout. `counted`: it ends with how many are as they should be.
pub(crate) fn report(checked: &[Checked], format: Format, counted: bool) -> String {
    if format == Format::Json {
        let documents: Vec<&Value> = checked.iter().map(|checked| &checked.document).collect();
        return format!("{:#}\n", json!({ "kind": "check", "cases": documents }));
    }
    let mut text: String = checked.iter().map(|checked| checked.shown.as_str()).collect();
    if counted {
        let good = checked.iter().filter(|checked| checked.case.passed).count();
        text += &format!("{good} of {} as they should be\n", checked.len());
    }
    if format == Format::Github {
        text += &github(&cases(checked));
    }
    text
}

/// Writes the report in JUnit's XML, whole or not at all.
pub(crate) fn save_junit(file: &Path, checked: &[Checked]) -> Result<(), Failure> {
    let file = WholeFile { path: file, option: "--junit", example: "junit.xml" };
    let (mut folder, name) = file.stage()?;
    let written = folder.write(&name, junit(&cases(checked)).as_bytes());
    written.and_then(|()| folder.commit()).map_err(|error| file.unwritable(&error))
}

fn cases(checked: &[Checked]) -> Vec<Case> {
    checked.iter().map(|checked| checked.case.clone()).collect()
}
