//! The files of a tournament, and reading them back.

use std::io;
use std::path::Path;

use headway_shared::config::Choice as _;
use serde_json::Value;

use super::row::{BIASED, LENGTH, RATES, SHOWN};
use super::{Task, Tournament};
use crate::drift::Model;
use crate::report::about::About;
use crate::report::csv::Csv;
use crate::report::described::described;
use crate::report::json;
use crate::report::number;
use crate::report::results::ReadError;
use crate::report::stored;

described! {
    /// A workload of a tournament.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Workload {
        /// The scenario's name.
        pub name: String,
        /// The scenario's title.
        pub title: String,
        /// The digest of the scenario as it was given.
        pub scenario_digest: String,
        /// The seed of all random streams.
        pub seed: u64,
        /// Replications of each row.
        pub replications: u32,
        /// What its ratios were fitted to, or `uncalibrated`; `None`: it has no `[world.drift]`.
        pub drift: Option<String>,
        /// Where it comes from, without a command; `None`: an older build made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub about: Option<About>,
    }
}

described! {
    /// What a tournament is about. It holds no time of day, host or path.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TournamentMeta {
        /// `tournament`
        pub kind: String,
        /// The version of Headway that made it.
        pub version: String,
        /// The worlds, in the order of the rows.
        pub workloads: Vec<Workload>,
        /// Who took part, in the order of the rows.
        pub gates: Vec<String>,
        /// The sync modes, in the order of the rows.
        pub sync_modes: Vec<String>,
        /// The command that repeats it; empty: it is not known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub command: String,
    }
}

/// Everything that a folder of a tournament holds, but for the plots.
#[derive(Clone, Debug, PartialEq)]
pub struct TournamentResults {
    /// What it is about.
    pub meta: TournamentMeta,
    /// A row per workload, gate, knob and sync mode.
    pub table: Csv,
}

impl TournamentResults {
    /// The name of the file of metadata.
    pub const META: &str = "tournament.json";
    /// The name of the table.
    pub const TABLE: &str = "tournament.csv";

    /// Puts a tournament into a table.
    #[must_use]
    pub fn of(tournament: &Tournament, task: &Task<'_>) -> Self {
        let workload = |scenario: &crate::scenario::Scenario| Workload {
            name: scenario.name.clone(),
            title: scenario.title.clone(),
            scenario_digest: scenario.digest().to_string(),
            seed: scenario.seed,
            replications: task.replications_of(scenario),
            drift: scenario.drift.as_ref().map(Model::calibration),
            about: Some(About::of(scenario)),
        };
        let meta = TournamentMeta {
            kind: "tournament".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            workloads: task.workloads.iter().map(workload).collect(),
            gates: task.entrants.iter().map(|entrant| entrant.name.to_owned()).collect(),
            sync_modes: task.modes.iter().map(|mode| mode.word().to_owned()).collect(),
            command: String::new(),
        };
        let lead = ["workload", "gate", "knob", "sync_mode", "status"];
        let metrics = SHOWN.iter().flat_map(|name| [(*name).to_owned(), format!("{name}_hw")]);
        let header = lead.into_iter().map(str::to_owned).chain(metrics);
        let end = ["drift", "front", "effective_front", "note", "set"].map(str::to_owned);
        let mut table = Csv::new(header.chain(end));
        for row in &tournament.rows {
            let workload = &meta.workloads[row.workload];
            let mut cells = vec![
                workload.name.clone(),
                row.gate.to_owned(),
                row.knob.label.clone(),
                row.mode.word().to_owned(),
                row.state.word().to_owned(),
            ];
            for name in SHOWN {
                let estimate = row.estimate(name);
                let half_width = estimate.and_then(|estimate| estimate.half_width);
                cells.push(number::cell(estimate.map(|estimate| estimate.mean)));
                cells.push(number::cell(half_width));
            }
            cells.push(workload.drift.clone().unwrap_or_default());
            cells.extend(row.on_front.map(|on| if on { "yes" } else { "no" }.to_owned()));
            cells.push(row.state.note().to_owned());
            cells.push(row.knob.set.join(" "));
            table.rows.push(cells);
        }
        Self { meta, table }
    }

    /// The files, by name.
    ///
    /// # Errors
    /// A row of the table is not as long as its header.
    pub fn files(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        stored::files([(Self::TABLE, &self.table)], (Self::META, &self.meta))
    }

    /// Reads the files of a folder; `None`: it holds no tournament.
    ///
    /// # Errors
    /// A file of it is missing or malformed.
    pub fn read(folder: &Path) -> Result<Option<Self>, ReadError> {
        let Some(meta) = stored::meta(folder, Self::META)? else { return Ok(None) };
        Ok(Some(Self { meta, table: stored::table(folder, Self::TABLE)? }))
    }

    /// Everything as one JSON document.
    ///
    /// # Errors
    /// The metadata cannot be written as JSON.
    pub fn document(&self) -> serde_json::Result<Value> {
        let mut document = serde_json::to_value(&self.meta)?;
        if let Some(fields) = document.as_object_mut() {
            fields.insert("rows".into(), json::table(&self.table));
        }
        Ok(document)
    }

    /// Whether the trained samples of a row are shorter or longer than the workload's.
    #[must_use]
    pub fn is_biased(&self, row: usize) -> bool {
        let ratio = self.table.value(row, LENGTH);
        ratio.is_none_or(|ratio| (ratio - 1.0).abs() > BIASED)
    }

    /// The rows of a workload that ran and trained.
    #[must_use]
    pub fn rows_of(&self, workload: &str) -> Vec<usize> {
        let table = &self.table;
        (0..table.rows.len())
            .filter(|&row| table.text(row, "workload") == workload)
            .filter(|&row| table.text(row, "status") == "ok")
            .filter(|&row| table.value(row, RATES[0]) > Some(0.0))
            .collect()
    }
}
