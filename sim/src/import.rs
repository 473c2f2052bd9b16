//! Other systems' traces, as tables that a scenario replays.
//!
//! An importer reads from a [`BufRead`](std::io::BufRead) and writes to a
//! [`Write`](std::io::Write) line by line: a trace may be larger than memory.

mod azure_llm;
mod lines;

use std::io;

pub use azure_llm::import_azure_llm;

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

/// Why a trace was not imported. What was written until then is no whole table.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The trace could not be read.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// The table could not be written.
    #[error("cannot be written: {0}")]
    Write(io::Error),
    /// The trace is wrong.
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

/// What is wrong with a trace.
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
}

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
        }
    }
}
