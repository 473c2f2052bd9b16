//! The runs of a sweep as a file that grows: what one shard did, or a sweep until it was killed.
//!
//! ```text
//! "HWYRUNS1\n"  frame: header, as JSON  frame: run  frame: run  ...
//! frame   length (u32), digest (u64), bytes; both little-endian
//! run     zlib of: the run's number, then its contribution, in postcard
//! ```
//!
//! Runs stand in the order in which they ended. Each frame is written at once: a killed process tears
//! the last one at most. Numbers of floats keep every bit.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Mutex;

use headway_shared::digest::Digest;
use headway_shared::metrics::METRICS;
use headway_shared::record::DECISION_VERSION;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use serde::{Deserialize, Serialize};

use super::contribution::Contribution;
use super::outline::Outline;
use super::shard::Shard;
use crate::drift;

/// The name of the file.
pub const FILE: &str = "shard.runs";

const MAGIC: &[u8] = b"HWYRUNS1\n";
/// The place of the format's number in it.
const FORMAT: usize = 7;
/// Of 0 to 10: series shrink to a fifth, and a run is kept in a fraction of a millisecond.
const LEVEL: u8 = 1;
/// Far more than a run ever gives, and little enough to be unpacked whatever a damaged file says.
const MOST_BYTES: usize = 1 << 28;
/// Length and digest.
const LEAD: usize = 12;

/// What wrote a file, as far as its runs depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The version of Headway.
    pub version: String,
    /// Its decision version.
    pub decision_version: u32,
    /// The digest of the names of its metrics: values have their places, no names.
    pub metrics: String,
}

impl Build {
    /// This one.
    #[must_use]
    pub fn this() -> Self {
        let names: Vec<&str> =
            METRICS.iter().chain(drift::METRICS).map(|metric| metric.name).collect();
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            decision_version: DECISION_VERSION,
            metrics: Digest::of(names.join(" ").as_bytes()).to_string(),
        }
    }
}

impl std::fmt::Display for Build {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { version, decision_version, metrics } = self;
        write!(f, "Headway {version} (decision version {decision_version}, metrics {metrics})")
    }
}

/// The command that made a file, to be repeated; it does not tell sweeps apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The scenario's file.
    pub scenario: String,
    /// `--over`.
    pub over: Vec<String>,
    /// `--replications`.
    pub replications: Option<u32>,
    /// `--set`.
    pub set: Vec<String>,
    /// `--config`.
    pub config: Vec<String>,
    /// `--seed`.
    pub seed: Option<u64>,
}

/// What a file is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// What wrote it.
    pub build: Build,
    /// Whose runs it has.
    pub shard: Shard,
    /// The sweep.
    pub outline: Outline,
    /// The command.
    pub asked: Asked,
}

impl Header {
    /// Of a file that this build writes.
    #[must_use]
    pub fn new(outline: Outline, shard: Shard, asked: Asked) -> Self {
        Self { build: Build::this(), shard, outline, asked }
    }

    /// How another sweep differs from this one, in words about the other; `None`: it is the same,
    /// though perhaps another shard of it.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<String> {
        let (here, there) = (&self.outline.meta, &other.outline.meta);
        let pairs = [
            ("its scenario is", &there.scenario, &here.scenario),
            ("the scenario's title is", &there.title, &here.title),
        ];
        if let Some((what, there, here)) = pairs.iter().find(|(_, there, here)| there != here) {
            return Some(format!("{what} `{there}`, not `{here}`"));
        }
        let numbers = [
            ("its seed is", there.seed, here.seed),
            ("its replications are", there.replications.into(), here.replications.into()),
        ];
        if let Some((what, there, here)) = numbers.iter().find(|(_, there, here)| there != here) {
            return Some(format!("{what} {there}, not {here}"));
        }
        if there.scenario_digest != here.scenario_digest {
            return Some(format!(
                "the scenario `{}` has other settings (digest {}, not {})",
                here.scenario, there.scenario_digest, here.scenario_digest
            ));
        }
        if there.keys != here.keys {
            let swept = |keys: &[String]| format!("`{}`", keys.join(", "));
            return Some(format!("it sweeps {}, not {}", swept(&there.keys), swept(&here.keys)));
        }
        if other.outline.points != self.outline.points {
            let points = |header: &Self| header.outline.points.len();
            return Some(format!(
                "it sweeps other values of {} ({} points, not {})",
                here.keys.join(", "),
                points(other),
                points(self)
            ));
        }
        (other.outline != self.outline).then(|| "it is another kind of result".to_owned())
    }
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// It is something else.
    #[error("is no file of runs: it does not begin as one")]
    NoJournal,
    /// Another build laid it out.
    #[error("has format {0}; this build reads format 1")]
    OtherFormat(char),
    /// Another build ran its runs.
    #[error("was written by {by}; this is {}", Build::this())]
    OtherBuild {
        /// Which.
        by: Build,
    },
    /// It was cut off here.
    #[error("ends at byte {0}, in the middle of a run")]
    Torn(usize),
    /// It is not what was written.
    #[error("is damaged at byte {at}: {what}")]
    Damaged {
        /// Where.
        at: usize,
        /// What is wrong there.
        what: &'static str,
    },
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Journal {
    /// What it is about.
    pub header: Header,
    /// Its runs, by number.
    pub runs: BTreeMap<usize, Contribution>,
    /// Up to this byte it is whole.
    pub whole: usize,
    /// What is wrong behind that.
    pub damage: Option<JournalError>,
}

impl Journal {
    /// Reads a file as far as it is whole.
    ///
    /// # Errors
    /// Its header cannot be read, or it is of another build; no bytes make it panic.
    pub fn parse(bytes: &[u8]) -> Result<Self, JournalError> {
        let format = bytes.get(FORMAT).filter(|_| bytes.starts_with(&MAGIC[..FORMAT]));
        match format {
            Some(format) if *format == MAGIC[FORMAT] && bytes.starts_with(MAGIC) => {}
            Some(format) if *format != MAGIC[FORMAT] => {
                return Err(JournalError::OtherFormat(char::from(*format)));
            }
            _ => return Err(JournalError::NoJournal),
        }
        let mut whole = MAGIC.len();
        let (text, end) = frame(bytes, whole)?;
        let header = header(text, whole)?;
        whole = end;
        let (mut runs, mut damage) = (BTreeMap::new(), None);
        while damage.is_none() && whole < bytes.len() {
            match frame(bytes, whole).and_then(|(packed, end)| {
                let (run, contribution) = run(packed, &header, whole)?;
                if runs.insert(run, contribution).is_some() {
                    return Err(JournalError::Damaged { at: whole, what: "it has this run twice" });
                }
                Ok(end)
            }) {
                Ok(end) => whole = end,
                Err(error) => damage = Some(error),
            }
        }
        Ok(Self { header, runs, whole, damage })
    }

    /// The numbers of its shard's runs that it lacks, in order.
    pub fn missing(&self) -> impl Iterator<Item = usize> {
        let Header { shard, outline, .. } = &self.header;
        shard.runs(outline.runs()).filter(|run| !self.runs.contains_key(run))
    }
}

/// The bytes of the frame that begins at `at`, and where it ends.
fn frame(bytes: &[u8], at: usize) -> Result<(&[u8], usize), JournalError> {
    let torn = JournalError::Torn(bytes.len());
    let Some((lead, rest)) = bytes[at..].split_first_chunk::<LEAD>() else { return Err(torn) };
    let [a, b, c, d, digest @ ..] = *lead;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    let Some(content) = rest.get(..length) else { return Err(torn) };
    if Digest::of(content).value() != u64::from_le_bytes(digest) {
        return Err(JournalError::Damaged { at, what: "its digest is not that of its bytes" });
    }
    Ok((content, at + LEAD + length))
}

fn header(text: &[u8], at: usize) -> Result<Header, JournalError> {
    /// What can be read whatever the others are.
    #[derive(Deserialize)]
    struct Lead {
        build: Build,
    }
    let damaged = |_| JournalError::Damaged { at, what: "its header cannot be read" };
    let Lead { build } = serde_json::from_slice(text).map_err(damaged)?;
    if build != Build::this() {
        return Err(JournalError::OtherBuild { by: build });
    }
    serde_json::from_slice(text).map_err(damaged)
}

fn run(packed: &[u8], header: &Header, at: usize) -> Result<(usize, Contribution), JournalError> {
    let damaged = |what| JournalError::Damaged { at, what };
    let plain = decompress_to_vec_zlib_with_limit(packed, MOST_BYTES);
    let plain = plain.map_err(|_| damaged("its run cannot be unpacked"))?;
    let (run, rest) =
        postcard::take_from_bytes::<u64>(&plain).map_err(|_| damaged("its run has no number"))?;
    let run = usize::try_from(run).ok().filter(|run| *run < header.outline.runs());
    let run = run.filter(|run| header.shard.has(*run));
    let run = run.ok_or_else(|| damaged("it has a run that is not of its shard"))?;
    let contribution = Contribution::from_bytes(rest);
    Ok((run, contribution.ok_or_else(|| damaged("its run cannot be read"))?))
}

/// Writes a file, run by run, from any thread.
#[derive(Debug)]
pub struct Writer(Mutex<File>);

impl Writer {
    /// Begins an empty file.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn new(mut file: File, header: &Header) -> io::Result<Self> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(framed(&serde_json::to_vec(header)?)?);
        file.write_all(&bytes)?;
        Ok(Self(Mutex::new(file)))
    }

    /// Goes on behind these bytes, which are whole, in an empty file.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn behind(mut file: File, whole: &[u8]) -> io::Result<Self> {
        file.write_all(whole)?;
        Ok(Self(Mutex::new(file)))
    }

    /// One more run.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn add(&self, run: usize, contribution: &Contribution) -> io::Result<()> {
        let mut plain = postcard::to_stdvec(&(run as u64)).map_err(io::Error::other)?;
        plain.extend(contribution.to_bytes().map_err(io::Error::other)?);
        let bytes = framed(&compress_to_vec_zlib(&plain, LEVEL))?;
        let broken = |_| io::Error::other("another thread broke while it wrote");
        self.0.lock().map_err(broken)?.write_all(&bytes)
    }

    /// All of it is on the disk.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn finish(self) -> io::Result<()> {
        let broken = |_| io::Error::other("another thread broke while it wrote");
        self.0.into_inner().map_err(broken)?.sync_all()
    }
}

fn framed(content: &[u8]) -> io::Result<Vec<u8>> {
    let too_long = |_| io::Error::other("a run gave more than 4 GiB");
    let length = u32::try_from(content.len()).map_err(too_long)?;
    let digest = Digest::of(content).value();
    Ok([&length.to_le_bytes()[..], &digest.to_le_bytes(), content].concat())
}
