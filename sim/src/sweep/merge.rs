//! Shards of a sweep, joined.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::journal::{self, Header, Journal, JournalError};
use super::plan::Outcome;
use super::shard::{self, Shard};
use crate::report::folder::Folder;
use crate::report::results::Kind;

/// All shards of a sweep, joined.
#[derive(Clone, Debug)]
pub struct Joined {
    /// What the first of them is about.
    pub header: Header,
    /// What the sweep gave.
    pub outcome: Outcome,
}

/// Why folders cannot be joined.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A folder cannot be read.
    #[error("{} cannot be read: {error}", .path.display())]
    Io {
        /// The file or the folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A folder has the results of a whole sweep or of a run.
    #[error("{} holds the results of a whole {word}, and no shard of a sweep", .folder.display())]
    WholeResult {
        /// The folder.
        folder: PathBuf,
        /// What it is.
        word: &'static str,
    },
    /// A folder has nothing of a sweep.
    #[error("{} holds no shard of a sweep: there is no {} in it", .0.display(), journal::FILE)]
    NoShard(PathBuf),
    /// A shard was killed, or is still at work.
    #[error(
        "{}: shard {} {}: {done} of its {all} runs are there",
        .folder.display(), .header.shard, if *.at_work { "is at work" } else { "is not finished" }
    )]
    Unfinished {
        /// The folder.
        folder: PathBuf,
        /// What it is about.
        header: Box<Header>,
        /// Runs that are there.
        done: usize,
        /// Runs that it is to have.
        all: usize,
        /// A process is writing it.
        at_work: bool,
    },
    /// A file is not what was written.
    #[error("{} {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: JournalError,
        /// What it is about, where that can be read.
        header: Option<Box<Header>>,
    },
    /// Two folders are of different sweeps.
    #[error("{} is of another sweep than {}: {difference}", .folder.display(), .first.display())]
    OtherSweep {
        /// The one.
        folder: PathBuf,
        /// The first of all.
        first: PathBuf,
        /// In what.
        difference: String,
    },
    /// The sweep was divided twice.
    #[error(
        "{} is shard {shard}, and {} is one of {of}",
        .folder.display(), .first.display()
    )]
    OtherDivision {
        /// The one.
        folder: PathBuf,
        /// Its shard.
        shard: Shard,
        /// The first of all.
        first: PathBuf,
        /// Into how many that one is divided.
        of: u32,
    },
    /// A shard is there twice.
    #[error("shard {shard} is given twice: {} and {}", .first.display(), .second.display())]
    Twice {
        /// Which.
        shard: Shard,
        /// Where.
        first: PathBuf,
        /// Where else.
        second: PathBuf,
    },
    /// Shards are not there.
    #[error("{} of {} missing", numbers(.missing), verb(.header.shard.of(), .missing))]
    Missing {
        /// Their numbers, in order.
        missing: Vec<u32>,
        /// What one that is there is about.
        header: Box<Header>,
        /// The folder of one that is there.
        folder: PathBuf,
    },
}

/// Joins the shards in `folders`, in whatever order. A folder that holds folders of shards stands for
/// them.
///
/// # Errors
/// Anything but every shard of one sweep, each once.
pub fn join(folders: &[PathBuf]) -> Result<Joined, MergeError> {
    let mut shards: BTreeMap<u32, (PathBuf, Journal)> = BTreeMap::new();
    let mut first: Option<(PathBuf, Header)> = None;
    for folder in expanded(folders)? {
        let journal = read(&folder)?;
        let header = &journal.header;
        let (lead, known) = first.get_or_insert_with(|| (folder.clone(), header.clone()));
        if let Some(difference) = known.difference(header) {
            return Err(MergeError::OtherSweep { folder, first: lead.clone(), difference });
        }
        let (shard, of) = (header.shard, known.shard.of());
        if shard.of() != of {
            return Err(MergeError::OtherDivision { folder, shard, first: lead.clone(), of });
        }
        if let Some((other, _)) = shards.insert(shard.number(), (folder.clone(), journal)) {
            return Err(MergeError::Twice { shard, first: other, second: folder });
        }
    }
    let Some((folder, header)) = first else {
        return Err(MergeError::NoShard(folders.first().cloned().unwrap_or_default()));
    };
    let missing: Vec<u32> =
        (1..=header.shard.of()).filter(|number| !shards.contains_key(number)).collect();
    if !missing.is_empty() {
        return Err(MergeError::Missing { missing, header: Box::new(header), folder });
    }
    let runs: BTreeMap<usize, _> =
        shards.into_values().flat_map(|(_, journal)| journal.runs).collect();
    let outcome = header.outline.collect(runs.into_values());
    Ok(Joined { header, outcome })
}

/// Every folder, with those that stand for the shards in them replaced by these.
fn expanded(folders: &[PathBuf]) -> Result<Vec<PathBuf>, MergeError> {
    let mut all = Vec::new();
    for folder in folders {
        if folder.join(journal::FILE).exists() {
            all.push(folder.clone());
            continue;
        }
        let unreadable = |error| MergeError::Io { path: folder.clone(), error };
        let mut shards = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let is_shard = entry.file_name().to_string_lossy().starts_with(shard::FOLDERS);
            if is_shard && entry.path().is_dir() {
                shards.push(entry.path());
            }
        }
        if shards.is_empty() {
            shards.push(folder.clone());
        }
        shards.sort();
        all.append(&mut shards);
    }
    Ok(all)
}

/// The whole shard of a folder.
fn read(folder: &Path) -> Result<Journal, MergeError> {
    let path = folder.join(journal::FILE);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(lacking(folder)),
        read => read.map_err(|error| MergeError::Io { path: path.clone(), error })?,
    };
    let unreadable = |error, header| MergeError::Unreadable { path, error, header };
    let journal = match Journal::parse(&bytes) {
        Ok(journal) => journal,
        Err(error) => return Err(unreadable(error, None)),
    };
    if let Some(error) = journal.damage {
        return Err(unreadable(error, Some(Box::new(journal.header))));
    }
    match journal.missing().count() {
        0 => Ok(journal),
        _ => Err(unfinished(folder, journal, false)),
    }
}

/// Why a folder has no file of runs.
fn lacking(folder: &Path) -> MergeError {
    let unreadable = |error| MergeError::Io { path: folder.into(), error };
    let staged = match Folder::staged(folder) {
        Ok(staged) => staged,
        Err(error) => return unreadable(error),
    };
    for (staging, at_work) in staged {
        let read = fs::read(staging.join(journal::FILE)).ok();
        if let Some(journal) = read.and_then(|bytes| Journal::parse(&bytes).ok()) {
            return unfinished(folder, journal, at_work);
        }
    }
    let whole = Kind::ALL.into_iter().find(|kind| folder.join(kind.file()).exists());
    match whole {
        Some(kind) => MergeError::WholeResult { folder: folder.into(), word: kind.stem() },
        None => MergeError::NoShard(folder.into()),
    }
}

fn unfinished(folder: &Path, journal: Journal, at_work: bool) -> MergeError {
    let (done, missing) = (journal.runs.len(), journal.missing().count());
    MergeError::Unfinished {
        folder: folder.into(),
        header: Box::new(journal.header),
        done,
        all: done + missing,
        at_work,
    }
}

/// `shards 2, 5 to 6`
fn numbers(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let range = |&(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    let ranges: Vec<String> = ranges.iter().map(range).collect();
    let word = if numbers.len() == 1 { "shard" } else { "shards" };
    format!("{word} {}", ranges.join(", "))
}

/// `8 are`
fn verb(of: u32, missing: &[u32]) -> String {
    format!("{of} {}", if missing.len() == 1 { "is" } else { "are" })
}
