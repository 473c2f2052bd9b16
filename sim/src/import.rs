//! Other systems' traces and logs, as tables that a scenario replays or is calibrated with, and
//! predictions, as tables of rates.
//!
//! An importer of traces reads from a [`BufRead`](std::io::BufRead) and writes to a
//! [`Write`](std::io::Write) line by line: a trace may be larger than memory.

mod aiconfigurator;
mod azure_llm;
mod json;
mod lines;
mod metrics;
mod mooncake;
mod openclaw;
mod time;

use std::io;

pub use aiconfigurator::{Estimates, ImportedRates};
pub use azure_llm::import_azure_llm;
pub use metrics::{How, MetricColumn, MetricsLog, MetricsReport, System};
pub use mooncake::import_mooncake;
pub use openclaw::{OpenClawReport, OpenClawTable, import_openclaw};

/// The columns of a table of arrivals and lengths: seconds since the first request, and tokens.
pub const COLUMNS: [&str; 3] = ["arrival_sec", "prompt_tokens", "output_tokens"];

/// What an import gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Requests.
    pub rows: u64,
    /// From the first request to the last one, in units of 100 ns.
    pub ticks: u64,
    /// Prompt tokens of all of them.
    pub prompt_tokens: u64,
    /// Generated tokens of all of them.
    pub output_tokens: u64,
}

impl ImportReport {
    /// From the first request to the last one, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.ticks as f64 / 1e7
    }
}

/// Why a text was not imported. What was written until then is no whole table.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The text could not be read.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// The table could not be written.
    #[error("cannot be written: {0}")]
    Write(io::Error),
    /// No estimate is left that fits into the memory of the GPUs.
    #[error("no batch fits into the memory of the GPUs")]
    NothingFits,
    /// The text is wrong.
    #[error("{line}:{column}: {problem}")]
    Wrong {
        /// The line, from 1.
        line: u64,
        /// The column, in bytes from 1.
        column: usize,
        /// What is wrong there.
        problem: Problem,
    },
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is no byte in it.
    #[error("the file is empty")]
    Empty,
    /// There is a header and nothing else.
    #[error("there are no rows")]
    NoRows,
    /// The header is not that of this format.
    #[error("`{found}` is not the header of this format")]
    Header {
        /// The first line.
        found: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// A line is not UTF-8.
    #[error("not UTF-8 text")]
    NotText,
    /// A line is longer than any row.
    #[error("the line is longer than {limit} bytes")]
    TooLong {
        /// The longest that a row can be.
        limit: usize,
    },
    /// A row has another number of values than the header.
    #[error("the header has {expected} columns, and `{row}` has {found}")]
    Values {
        /// The row.
        row: String,
        /// How many it has.
        found: usize,
        /// How many it has to have.
        expected: usize,
    },
    /// A value is no time.
    #[error("`{found}` is no time")]
    Time {
        /// The value.
        found: String,
    },
    /// A value is no number of tokens.
    #[error("`{found}` is no number of tokens (`{column}`)")]
    Tokens {
        /// The value.
        found: String,
        /// Its column.
        column: &'static str,
    },
    /// A row is earlier than the one before it.
    #[error("`{found}` is earlier than the row before it")]
    Backwards {
        /// Its time.
        found: String,
    },
    /// There is no estimate in it.
    #[error("there is no estimate of `aiconfigurator cli estimate`")]
    NoEstimate,
    /// It is a table of configurations that `aiconfigurator cli default` saved.
    #[error("this is a table that `aiconfigurator cli default` saved")]
    Saved,
    /// An estimate is of a kind that says nothing about decoding alone.
    #[error("an estimate of mode `{found}` does not say how fast a batch decodes")]
    Mode {
        /// The mode.
        found: String,
    },
    /// An estimate ends before its last line.
    #[error("the estimate is cut short")]
    CutShort,
    /// An estimate lacks a line.
    #[error("the estimate has no line `{key}`")]
    Missing {
        /// How the line begins.
        key: &'static str,
    },
    /// An estimate was made with something that a table of rates does not have.
    #[error("a table of rates has no place for `{what}`")]
    Beyond {
        /// What it is.
        what: String,
    },
    /// A value of an estimate is no whole number.
    #[error("`{found}` is no whole number (`{key}`)")]
    Count {
        /// The value.
        found: String,
        /// Its line.
        key: &'static str,
    },
    /// A value of an estimate is no time.
    #[error("`{found}` is no time (`{key}`)")]
    Milliseconds {
        /// The value.
        found: String,
        /// Its line.
        key: &'static str,
    },
    /// An estimate is about something else than those before it.
    #[error("`{what}` is {found} here and {expected} in the estimates before")]
    OtherEstimate {
        /// In what it differs.
        what: &'static str,
        /// What the others say.
        expected: String,
        /// What it says.
        found: String,
    },
    /// Two estimates are about the same batch.
    #[error("there are two estimates for a batch of {batch}")]
    Twice {
        /// Its sequences.
        batch: u32,
    },
    /// A line is no JSON object.
    #[error("no JSON object: {what}")]
    Json {
        /// What the parser says.
        what: String,
    },
    /// A value is no whole number.
    #[error("`{found}` is no whole number up to {most} (`{key}`)")]
    Whole {
        /// The value.
        found: String,
        /// Its key.
        key: &'static str,
        /// The largest that there can be.
        most: u64,
    },
    /// A value is no text.
    #[error("`{found}` is no text (`{key}`)")]
    Text {
        /// The value.
        found: String,
        /// Its key.
        key: &'static str,
    },
    /// No session has a second turn.
    #[error("no session has more than one turn, so that there is nothing between turns")]
    OneTurnEach,
    /// No line of a log has a step and a metric.
    #[error("no line has a step and metrics as {system} logs them")]
    NoMetrics {
        /// The system.
        system: &'static str,
    },
    /// No step has all columns of the table.
    #[error("no step has all of these columns: {columns}")]
    NoSteps {
        /// The columns.
        columns: String,
    },
    /// A step is no whole number.
    #[error("`{found}` is no step")]
    Step {
        /// The value.
        found: String,
    },
    /// A metric is no number from 0.
    #[error("`{found}` is no number from 0 to 1e15 (`{metric}`)")]
    Metric {
        /// The value.
        found: String,
        /// The metric.
        metric: String,
    },
    /// A table has a metric of two runs.
    #[error("`{metric}` is there for two runs")]
    TwoRuns {
        /// The metric.
        metric: String,
    },
    /// The name of a file of TensorBoard's does not say which metric it holds.
    #[error(
        "nothing says which metric this is: `{name}` does not end in the tag of one that {system} logs"
    )]
    Tag {
        /// The name of the file.
        name: String,
        /// The system.
        system: &'static str,
    },
}

/// How the estimates are made that can be imported.
const ESTIMATE: &str = "run `aiconfigurator cli estimate --estimate-mode static --batch-size 64 ...` \
                        once for each batch size, as scripts/aiconfigurator_rates.sh does";

impl Problem {
    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Empty | Self::NoRows => {
                "download the trace again: it has a header and a row per request".into()
            }
            Self::Header { expected, .. } => format!("the first line must be `{expected}`"),
            Self::NotText => "save the file as UTF-8; a compressed one has to be unpacked".into(),
            Self::TooLong { .. } => "write one row per line".into(),
            Self::Values { expected, .. } => format!("write {expected} values with commas between"),
            Self::Time { .. } => "write it as 2023-11-16 18:15:46.6805900".into(),
            Self::Tokens { .. } => "write a whole number from 0 to 4294967295".into(),
            Self::Backwards { .. } => {
                "sort the rows by their time: requests are replayed in the order of the file".into()
            }
            Self::NoEstimate | Self::Mode { .. } => ESTIMATE.into(),
            Self::Saved => format!("its times mix decoding with reading prompts: {ESTIMATE}"),
            Self::CutShort | Self::Missing { .. } => {
                "save all that the tool prints: `aiconfigurator cli estimate ... > FILE 2>&1`"
                    .into()
            }
            Self::Beyond { .. } => "run the estimate without it".into(),
            Self::Count { .. } => "write a whole number from 1 to 4294967295".into(),
            Self::Milliseconds { .. } => "write it as 10.631 ms".into(),
            Self::OtherEstimate { .. } => {
                "import one model, GPU, engine, parallelism and length at a time".into()
            }
            Self::Twice { .. } => "leave one of them out".into(),
            Self::Json { .. } => "write one JSON object per line, with null for NaN".into(),
            Self::Whole { most, .. } => format!("write a whole number from 0 to {most}"),
            Self::Text { .. } => "import the file that OPENCLAW_RECORD_FILE names, as it is".into(),
            Self::OneTurnEach => "write --table sessions".into(),
            Self::NoMetrics { .. } => {
                "docs/import.md has the metrics and the forms of logs that are read".into()
            }
            Self::NoSteps { .. } => {
                "write --columns with fewer of them: docs/import.md says what each is made of"
                    .into()
            }
            Self::Step { .. } => "write a whole number from 0".into(),
            Self::Metric { .. } => "write a number, or nothing".into(),
            Self::TwoRuns { .. } => "export one run at a time".into(),
            Self::Tag { .. } => {
                "name it as TensorBoard does, run-NAME-tag-perf_train_time.csv".into()
            }
        }
    }
}
