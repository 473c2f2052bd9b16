//! JSON schemas of the files that people write, and of those that results consist of.

use headway_shared::config::schema::{
    Abouts, abouts_of_sections, asked_of_config, asked_of_settings, asked_of_tuned, plain, schema,
};
use headway_sim::report::documents;
use headway_sim::scenario;
use serde_json::Value;

/// The pages that say what keys mean, those of `[world]` and those of `settings.json`.
const PAGES: [&str; 2] =
    [include_str!("../docs/scenarios.md"), include_str!("../docs/configuration.md")];

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// config.toml, the scheduling sections of a live run
    Config,
    /// settings.json, what a live run is to do
    Settings,
    /// A scenario
    Scenario,
    /// tuned.toml, what `headway tune` chose
    Tuned,
    /// run.json and sweep.json, what a simulation or a sweep is about
    Result,
    /// plan.json
    Plan,
    /// tune.json
    Tune,
    /// tournament.json
    Tournament,
    /// validation.json
    Validation,
    /// What `headway check` compares a scenario with
    Golden,
}

impl Kind {
    /// Those that `headway init` writes, each with the name of its file.
    const WRITTEN: [(Self, &'static str); 3] = [
        (Self::Config, "config.toml"),
        (Self::Settings, "settings.json"),
        (Self::Scenario, "scenario.toml"),
    ];

    /// The file of its schema.
    pub(crate) const fn schema_file(self) -> &'static str {
        match self {
            Self::Config => "config.schema.json",
            Self::Settings => "settings.schema.json",
            Self::Scenario => "scenario.schema.json",
            Self::Tuned => "tuned.schema.json",
            Self::Result => "result.schema.json",
            Self::Plan => "plan.schema.json",
            Self::Tune => "tune.schema.json",
            Self::Tournament => "tournament.schema.json",
            Self::Validation => "validation.schema.json",
            Self::Golden => "golden.schema.json",
        }
    }

    /// The schema.
    pub(crate) fn schema(self) -> Value {
        let (title, asked) = match self {
            Self::Config => ("config.toml of Headway", asked_of_config()),
            Self::Settings => ("settings.json of Headway", asked_of_settings()),
            Self::Scenario => ("A scenario of Headway", scenario::asked()),
            Self::Tuned => ("A tuned file of Headway", asked_of_tuned()),
            Self::Result => return documents::result(),
            Self::Plan => return documents::plan(),
            Self::Tune => return documents::tune(),
            Self::Tournament => return documents::tournament(),
            Self::Validation => return documents::validation(),
            Self::Golden => return documents::golden(),
        };
        let mut abouts = abouts_of_pages();
        abouts.extend(abouts_of_sections(&["", "guard.previous"]));
        schema(title, &asked, &abouts)
    }
}

/// Schemas for those of these files that have one, each with the name of its file.
pub(crate) fn beside<'a>(
    files: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = (&'static str, String)> {
    let kind = |name: &str| Kind::WRITTEN.into_iter().find(|(_, file)| *file == name);
    files.filter_map(kind).map(|(kind, _)| (kind.schema_file(), format!("{:#}\n", kind.schema())))
}

/// What the tables of the pages say: below a heading of a table, ``| `key` | value | default |
/// meaning |``.
fn abouts_of_pages() -> Abouts {
    let mut abouts = Abouts::new();
    for page in PAGES {
        let mut table = None;
        for line in page.lines() {
            if line.starts_with('#') {
                table = table_of(line);
            }
            let (Some(table), Some(row)) = (&table, line.strip_prefix("| `")) else { continue };
            let Some((key, rest)) = row.split_once("` |") else { continue };
            let cells: Vec<&str> = rest.trim_end_matches('|').split(" | ").map(str::trim).collect();
            let [_, default, meaning] = cells.as_slice() else { continue };
            let default = match plain(default).as_str() {
                "" => String::new(),
                default => format!(" Default: {default}."),
            };
            let path = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
            abouts.insert(path, format!("{}{default}", plain(meaning)));
        }
    }
    abouts
}

/// The table that a heading is about: ``## `[world.judge]` ``; `settings.json` names its keys whole.
fn table_of(heading: &str) -> Option<String> {
    let name = heading.trim_start_matches('#').trim().strip_prefix('`')?.split('`').next()?;
    match name {
        "settings.json" => Some(String::new()),
        _ if name.starts_with("[[") => {
            Some(format!("{}[]", name.trim_start_matches('[').trim_end_matches(']')))
        }
        _ => Some(name.strip_prefix('[')?.strip_suffix(']')?.to_owned()),
    }
}
