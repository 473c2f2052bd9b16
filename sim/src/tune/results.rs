//! The files of a tuning, and reading them back.

use std::io;
use std::path::Path;

use serde_json::Value;

use super::{Task, Tuning, space};
use crate::plan::setting;
use crate::report::about::About;
use crate::report::csv::Csv;
use crate::report::described::described;
use crate::report::json;
use crate::report::number;
use crate::report::results::ReadError;
use crate::report::stored;
use crate::stats::Estimate;

described! {
    /// What a tuning is about. It holds no time of day, host or path.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TuneMeta {
        /// `tune`
        pub kind: String,
        /// The version of Headway that made it.
        pub version: String,
        /// The scenario's name.
        pub scenario: String,
        /// The scenario's title.
        pub title: String,
        /// The digest of the scenario as it was given.
        pub scenario_digest: String,
        /// The seed of all random streams.
        pub seed: u64,
        /// Replications of whatever could be chosen.
        pub replications: u32,
        /// Keys that were searched, in the order of their columns.
        pub keys: Vec<String>,
        /// The same with their values.
        pub space: Vec<String>,
        /// The metric that was maximised.
        pub maximize: String,
        /// What had to be kept.
        pub subject_to: Vec<String>,
        /// Metrics of the table of candidates, what was maximised first.
        pub metrics: Vec<String>,
        /// Points that the space has.
        pub points: u64,
        /// Points that were tried and do not fit the scenario.
        pub unfit: usize,
        /// Runs that were made.
        pub runs: u64,
        /// Rounds of the search.
        pub rounds: u32,
        /// The search ended because its runs were spent.
        pub spent: bool,
        /// What it comes to, in words.
        pub verdict: Vec<String>,
        /// Where it comes from; `None`: an older build made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub about: Option<About>,
    }
}

/// Everything that a folder of a tuning holds, but for the plot and the tuned file.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneResults {
    /// What it is about.
    pub meta: TuneMeta,
    /// A row per candidate, in the order in which they were tried.
    pub candidates: Csv,
    /// Those of them that lie on the front, from fresh to stale.
    pub front: Csv,
}

impl TuneResults {
    /// The name of the file of metadata.
    pub const META: &str = "tune.json";
    /// The name of the file to hand on.
    pub const TUNED: &str = "tuned.toml";

    /// Puts a tuning into tables.
    #[must_use]
    pub fn of(tuning: &Tuning, task: &Task<'_>) -> Self {
        let scenario = task.scenario;
        let texts = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let meta = TuneMeta {
            kind: "tune".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            scenario: scenario.name.clone(),
            title: scenario.title.clone(),
            scenario_digest: scenario.digest().to_string(),
            seed: scenario.seed,
            replications: task.replications,
            keys: task.axes.iter().map(|axis| axis.key.clone()).collect(),
            space: task.axes.iter().map(space::expression).collect(),
            maximize: task.aim.metric.name.into(),
            subject_to: task.aim.constraints.iter().map(ToString::to_string).collect(),
            metrics: texts(task.aim.metrics()),
            points: tuning.points,
            unfit: tuning.unfit,
            runs: tuning.runs,
            rounds: tuning.rounds,
            spent: tuning.spent,
            verdict: tuning.verdict(task),
            about: Some(About::of(scenario)),
        };
        let candidates = candidates(tuning, task, &meta);
        let mut results = Self { front: Csv::new(&candidates.header), meta, candidates };
        let rows = results.on_front();
        results.front.rows =
            rows.into_iter().map(|row| results.candidates.rows[row].clone()).collect();
        results
    }

    /// The files, by name.
    ///
    /// # Errors
    /// A table's row is not as long as its header.
    pub fn files(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let tables = [("candidates.csv", &self.candidates), ("front.csv", &self.front)];
        stored::files(tables, (Self::META, &self.meta))
    }

    /// Reads the files of a folder; `None`: it holds no tuning.
    ///
    /// # Errors
    /// A file of it is missing or malformed.
    pub fn read(folder: &Path) -> Result<Option<Self>, ReadError> {
        let Some(meta) = stored::meta(folder, Self::META)? else { return Ok(None) };
        let table = |name| stored::table(folder, name);
        Ok(Some(Self { meta, candidates: table("candidates.csv")?, front: table("front.csv")? }))
    }

    /// Everything as one JSON document.
    ///
    /// # Errors
    /// The metadata cannot be written as JSON.
    pub fn document(&self) -> serde_json::Result<Value> {
        let mut document = serde_json::to_value(&self.meta)?;
        if let Some(fields) = document.as_object_mut() {
            fields.insert("candidates".into(), json::table(&self.candidates));
        }
        Ok(document)
    }

    /// Whether a column of a candidate says yes.
    #[must_use]
    pub fn is(&self, row: usize, column: &str) -> bool {
        self.candidates.text(row, column) == YES
    }

    /// The row of the choice.
    #[must_use]
    pub fn chosen(&self) -> Option<usize> {
        (0..self.candidates.rows.len()).find(|&row| self.is(row, "chosen"))
    }

    /// The rows that lie on the front, from fresh to stale.
    #[must_use]
    pub fn on_front(&self) -> Vec<usize> {
        let age =
            |row: usize| self.candidates.value(row, super::aim::STALENESS).unwrap_or(f64::INFINITY);
        let mut rows: Vec<usize> =
            (0..self.candidates.rows.len()).filter(|&row| self.is(row, "front")).collect();
        rows.sort_by(|&one, &other| age(one).total_cmp(&age(other)));
        rows
    }

    /// In what a candidate differs from another: `η = 2, sync_mode = in_flight`.
    #[must_use]
    pub fn differs(&self, row: usize, from: usize) -> String {
        let keys = self.meta.keys.iter();
        let text = |row: usize, key: &str| self.candidates.text(row, key).to_owned();
        let differing = keys.filter(|key| text(row, key) != text(from, key));
        differing.map(|key| setting(key, &text(row, key))).collect::<Vec<_>>().join(", ")
    }
}

const YES: &str = "yes";

fn word(yes: bool) -> String {
    if yes { YES.into() } else { "no".into() }
}

/// A mean and its half-width as two cells.
fn cells(value: Option<Estimate>) -> [String; 2] {
    let half_width = value.and_then(|value| value.half_width);
    [number::cell(value.map(|value| value.mean)), number::cell(half_width)]
}

fn with_half(name: &str) -> [String; 2] {
    [name.to_owned(), format!("{name}_hw")]
}

fn candidates(tuning: &Tuning, task: &Task<'_>, meta: &TuneMeta) -> Csv {
    let metrics = task.aim.metrics();
    let mut header: Vec<String> = vec!["candidate".into()];
    header.extend(meta.keys.iter().cloned());
    // Runs that were spent on it, and the digest of the decisions of the first.
    header.extend(["tried_for", "replications", "digest"].map(str::to_owned));
    header.extend(metrics.iter().flat_map(|name| with_half(name)));
    header.extend(with_half("difference_to_choice"));
    let marks = ["breaks", "front", "chosen", "present", "same_as", "failed"];
    header.extend(marks.map(str::to_owned));
    let mut csv = Csv::new(header);
    let chosen = tuning.chosen.map(|place| &tuning.candidates[place]);
    for (place, candidate) in tuning.candidates.iter().enumerate() {
        let mut row = vec![place.to_string()];
        row.extend(candidate.values.iter().cloned());
        row.push(candidate.origin.word().into());
        row.push(candidate.runs.len().to_string());
        row.push(candidate.runs.first().map_or_else(String::new, |run| run.digest.to_string()));
        row.extend(metrics.iter().flat_map(|name| cells(candidate.metric(name))));
        let difference =
            chosen.and_then(|chosen| chosen.difference(candidate, task.aim.metric.name));
        row.extend(cells(difference));
        let breaks = candidate.breaks(task.aim);
        let breaks = breaks.into_iter().map(|at| task.aim.constraints[at].to_string());
        row.push(breaks.collect::<Vec<_>>().join("; "));
        row.push(word(tuning.front[place]));
        row.push(word(tuning.chosen == Some(place)));
        row.push(word(place == 0));
        row.push(candidate.same_as.map_or_else(String::new, |same| same.to_string()));
        row.push(candidate.failed.clone().unwrap_or_default());
        csv.rows.push(row);
    }
    csv
}
