//! One estimate.

use std::io::BufRead;

use super::{LOG, Line, Lines};
use crate::import::{ImportError, Problem};

/// The title of an estimate, with its mode in brackets.
const TITLE: &str = "Performance Estimate (";

/// What an estimate is about, but for its batch.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) model: String,
    pub(super) system: String,
    pub(super) engine: String,
    pub(super) engine_version: String,
    /// Of a replica.
    pub(super) gpus: u32,
    /// Tokens of each prompt.
    pub(super) isl: u32,
    /// Tokens of each answer.
    pub(super) osl: u32,
}

impl Subject {
    /// The first thing in which two differ, and what each says.
    pub(super) fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let words = |subject: &Self| {
            [
                ("Model", subject.model.clone()),
                ("System", subject.system.clone()),
                ("Backend", format!("{} ({})", subject.engine, subject.engine_version)),
                ("GPUs", subject.gpus.to_string()),
                ("ISL", subject.isl.to_string()),
                ("OSL", subject.osl.to_string()),
            ]
        };
        let pairs = words(self).into_iter().zip(words(other));
        pairs
            .filter(|((_, mine), (_, theirs))| mine != theirs)
            .map(|((what, mine), (_, theirs))| (what, mine, theirs))
            .next()
    }
}

/// How fast one batch is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    /// Sequences in the replica.
    pub(super) batch: u32,
    /// Sequences in each rank of attention data parallelism: what the tool calls the batch size.
    pub(super) batch_of_a_rank: u32,
    /// From token to token of a sequence.
    pub(super) ms_per_token: f64,
    /// Reading the prompts of the whole batch; `None` in an estimate of decoding alone.
    pub(super) prefill_ms: Option<f64>,
}

/// An estimate of which not every line has been read.
#[derive(Debug, Default)]
pub(super) struct Block {
    line: u64,
    decodes_only: bool,
    model: Option<String>,
    system: Option<String>,
    backend: Option<(String, String)>,
    isl: Option<u32>,
    osl: Option<u32>,
    batch: Option<u32>,
    tp: Option<u32>,
    dp: Option<u32>,
    concurrency: Option<u32>,
    ttft: Option<f64>,
    tpot: Option<f64>,
}

impl Block {
    /// Begins at the line of the title.
    pub(super) fn begin(line: &Line<'_>) -> Result<Self, ImportError> {
        let mode = line.text.trim_start().strip_prefix(TITLE).and_then(|rest| rest.split_once(')'));
        let mode = mode.map_or("", |(mode, _)| mode);
        if !["static", "static_gen"].contains(&mode) {
            return Err(line.wrong(mode, Problem::Mode { found: mode.into() }));
        }
        let decodes_only = mode == "static_gen";
        Ok(Self { line: line.number, decodes_only, ..Self::default() })
    }

    /// Reads the lines after the title, up to the one that closes the box.
    pub(super) fn read<R: BufRead>(
        mut self,
        lines: &mut Lines<R>,
    ) -> Result<(Subject, Estimate), ImportError> {
        let mut closed = 0;
        // One line below the title, one at the end.
        while closed < 2 {
            let Some(line) = lines.next()? else { return Err(self.wrong(Problem::CutShort)) };
            let text = line.text.trim();
            if text.starts_with("====") {
                closed += 1;
            } else if is_title(text) {
                return Err(self.wrong(Problem::CutShort));
            } else if let Some((key, value)) = text.split_once(':')
                && !text.contains(LOG)
            {
                self.take(&line, key.trim(), value.trim())?;
            }
        }
        let cut_short = self.wrong(Problem::CutShort);
        match self.end() {
            // What closed it was the first line of the next estimate's box.
            Err(_) if lines.next()?.is_some_and(|line| is_title(line.text)) => Err(cut_short),
            end => end,
        }
    }

    fn take(&mut self, line: &Line<'_>, key: &str, value: &str) -> Result<(), ImportError> {
        match key {
            "Model" => self.model = Some(value.into()),
            "System" => self.system = Some(value.into()),
            "Backend" => {
                let (engine, version) = value.split_once(" (").unwrap_or((value, ""));
                let version = version.trim_end_matches(')');
                self.backend = Some((engine.into(), version.into()));
            }
            "ISL" => self.isl = Some(count(line, "ISL", value)?),
            "OSL" => self.osl = Some(count(line, "OSL", value)?),
            "Batch Size" => self.batch = Some(count(line, "Batch Size", value)?),
            "TP Size" => self.tp = Some(count(line, "TP Size", value)?),
            "Attention DP" => self.dp = Some(count(line, "Attention DP", value)?),
            "Concurrency" => self.concurrency = Some(count(line, "Concurrency", value)?),
            "TTFT" => self.ttft = Some(milliseconds(line, "TTFT", value)?),
            "TPOT" => self.tpot = Some(milliseconds(line, "TPOT", value)?),
            "PP Size" if value == "1" => {}
            // Each of them gives the two times another meaning.
            "PP Size" | "Prefix" | "MTP nextn" | "Images" | "Encoder parallel" => {
                return Err(line.wrong(line.text.trim(), Problem::Beyond { what: key.into() }));
            }
            // Sums of the above, power and memory.
            _ => {}
        }
        Ok(())
    }

    fn end(self) -> Result<(Subject, Estimate), ImportError> {
        let line = self.line;
        let missing = |key| {
            let problem = Problem::Missing { key };
            move || ImportError::Wrong { line, column: 1, problem }
        };
        let (engine, engine_version) = self.backend.ok_or_else(missing("Backend"))?;
        let subject = Subject {
            model: self.model.ok_or_else(missing("Model"))?,
            system: self.system.ok_or_else(missing("System"))?,
            engine,
            engine_version,
            gpus: self.tp.ok_or_else(missing("TP Size"))?.saturating_mul(self.dp.unwrap_or(1)),
            isl: self.isl.ok_or_else(missing("ISL"))?,
            osl: self.osl.ok_or_else(missing("OSL"))?,
        };
        let prefill_ms = match self.decodes_only {
            true => None,
            false => Some(self.ttft.ok_or_else(missing("TTFT"))?),
        };
        let estimate = Estimate {
            batch: self.concurrency.ok_or_else(missing("Concurrency"))?,
            batch_of_a_rank: self.batch.ok_or_else(missing("Batch Size"))?,
            ms_per_token: self.tpot.ok_or_else(missing("TPOT"))?,
            prefill_ms,
        };
        Ok((subject, estimate))
    }

    fn wrong(&self, problem: Problem) -> ImportError {
        ImportError::Wrong { line: self.line, column: 1, problem }
    }
}

/// Whether a line begins an estimate.
pub(super) fn is_title(text: &str) -> bool {
    text.trim_start().starts_with(TITLE)
}

fn count(line: &Line<'_>, key: &'static str, value: &str) -> Result<u32, ImportError> {
    match value.parse() {
        Ok(number @ 1..) => Ok(number),
        _ => Err(line.wrong(value, Problem::Count { key, found: value.into() })),
    }
}

fn milliseconds(line: &Line<'_>, key: &'static str, value: &str) -> Result<f64, ImportError> {
    let number = value.strip_suffix("ms").and_then(|number| number.trim().parse::<f64>().ok());
    // The smallest time that is not printed as 0; a day.
    number
        .filter(|ms| (0.001..=86_400_000.0).contains(ms))
        .ok_or_else(|| line.wrong(value, Problem::Milliseconds { key, found: value.into() }))
}
