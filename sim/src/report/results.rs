//! The files of a result, and reading them back.
//!
//! Plots are drawn from these tables and from nothing else, so a plot drawn again from the files
//! is the plot that was drawn first.

use std::io;
use std::path::{Path, PathBuf};

use headway_shared::config::Config;
use serde::{Deserialize, Serialize};

use super::about::About;
use super::csv::Csv;
use super::described::{Described, described};
use super::stored;

/// What made a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `sweep`: a row per point.
    Sweep,
    /// `simulate`: one point.
    Run,
}

impl Kind {
    /// Both, in the order in which a folder is searched.
    pub const ALL: [Kind; 2] = [Kind::Sweep, Kind::Run];

    /// The name of its file of metadata.
    #[must_use]
    pub fn file(self) -> String {
        format!("{}.json", self.stem())
    }

    /// The name of its files of points and of metadata, without extension.
    #[must_use]
    pub const fn stem(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Run => "run",
        }
    }
}

impl Described for Kind {
    fn schema() -> serde_json::Value {
        serde_json::json!({ "enum": Self::ALL })
    }
}

described! {
    /// What a result is about. It holds no time of day, host or path.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Meta {
        /// What made it.
        pub kind: Kind,
        /// The version of Headway that made it.
        pub version: String,
        /// The scenario's name.
        pub scenario: String,
        /// The scenario's title.
        pub title: String,
        /// The digest of the scenario as it was given, before anything was swept.
        pub scenario_digest: String,
        /// The seed of all random streams.
        pub seed: u64,
        /// Replications of each point.
        pub replications: u32,
        /// The swept keys, in the order of their columns.
        pub keys: Vec<String>,
        /// What its ratios were fitted to, or that they are uncalibrated; none: it has no ratios.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub drift: Option<String>,
        /// The scheduling sections of a run, every key; a sweep has as many as points, and none here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub config: Option<Config>,
        /// Where it comes from; `None`: an older build made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub about: Option<About>,
        /// The names of its plots, without extension: what a later result in the same folder replaces.
        pub plots: Vec<String>,
    }
}

/// Everything that a folder of results holds, but for the plots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Results {
    /// What it is about.
    pub meta: Meta,
    /// A row per point: its keys, then each metric's mean and 95% half-width (`NAME`, `NAME_hw`).
    pub points: Csv,
    /// A row per point and replication: its keys, then each metric.
    pub runs: Csv,
    /// Trained samples by head staleness, summed over the replications of a point.
    pub histogram: Csv,
    /// Gauges over time of each point's replication 0.
    pub series: Csv,
    /// Ratios of trained tokens by their staleness, where `[world.drift]` predicts them.
    pub ratios: Option<Csv>,
}

/// The file of ratios by staleness.
const RATIOS: &str = "ratios.csv";

/// Why a folder cannot be read as a result.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It holds neither `sweep.json` nor `run.json`.
    #[error("{} holds no result: there is no sweep.json and no run.json in it", .0.display())]
    NoResult(PathBuf),
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}: {message}", .path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
}

impl Results {
    /// The files, by name.
    ///
    /// # Errors
    /// A table's row is not as long as its header.
    pub fn files(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let stem = self.meta.kind.stem();
        let points = format!("{stem}.csv");
        let mut tables = vec![
            (points.as_str(), &self.points),
            ("runs.csv", &self.runs),
            ("histogram.csv", &self.histogram),
            ("series.csv", &self.series),
        ];
        tables.extend(self.ratios.as_ref().map(|ratios| (RATIOS, ratios)));
        stored::files(tables, (&self.meta.kind.file(), &self.meta))
    }

    /// The names of the files of a folder's result, if it holds one, that a later one may not have:
    /// its plots, and its ratios.
    #[must_use]
    pub fn own_files(folder: &Path) -> Vec<String> {
        let Ok(meta) = read_meta(folder) else { return Vec::new() };
        let files = |name: &String| [format!("{name}.svg"), format!("{name}.png")];
        // A name is a name: it leads nowhere else.
        let plain = meta.plots.iter().filter(|name| !name.contains(['/', '\\']));
        plain.flat_map(files).chain(meta.drift.iter().map(|_| RATIOS.into())).collect()
    }

    /// Reads the files of a folder.
    ///
    /// # Errors
    /// The folder holds no result, or a file of it is missing or malformed.
    pub fn read(folder: &Path) -> Result<Self, ReadError> {
        let meta = read_meta(folder)?;
        let table = |name: &str| stored::table(folder, name);
        Ok(Self {
            points: table(&format!("{}.csv", meta.kind.stem()))?,
            runs: table("runs.csv")?,
            histogram: table("histogram.csv")?,
            series: table("series.csv")?,
            ratios: meta.drift.as_ref().map(|_| table(RATIOS)).transpose()?,
            meta,
        })
    }
}

/// What the result of a folder is about.
///
/// # Errors
/// It holds none, or the file that says so is malformed.
pub(crate) fn read_meta(folder: &Path) -> Result<Meta, ReadError> {
    let read = |kind: Kind| stored::meta(folder, &kind.file()).transpose();
    let found = Kind::ALL.into_iter().find_map(read);
    found.unwrap_or_else(|| Err(ReadError::NoResult(folder.into())))
}
