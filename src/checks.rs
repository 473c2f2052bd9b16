//! What `headway check` looks at, scenarios and records, and how it reports them.

pub(crate) mod records;
pub(crate) mod scenarios;

use std::path::Path;

use clap::ValueEnum;
use headway_sim::check::{Case, github, junit};
use headway_sim::report::folder::Folder;
use serde_json::{Value, json};

use crate::failure::Failure;

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
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let text = junit(&cases(checked));
    let mut staged = Folder::open(folder.unwrap_or(Path::new(".")));
    let written = staged.as_mut().map_or(Ok(()), |staged| staged.write(&name, text.as_bytes()));
    let written = staged.and_then(|staged| written.and_then(|()| staged.commit()));
    written.map_err(|error| {
        let help = "name another file with --junit FILE";
        Failure::input(format!("{}: cannot be written: {error}\nhelp: {help}", file.display()))
    })
}

fn cases(checked: &[Checked]) -> Vec<Case> {
    checked.iter().map(|checked| checked.case.clone()).collect()
}
