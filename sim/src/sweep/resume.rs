//! Going on with a sweep that was killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::journal::{self, Header, Journal, JournalError};
use super::outline::Outline;
use super::shard::Shard;
use crate::report::folder::Folder;
use crate::report::results::read_meta;

/// What is there of a sweep that is to be gone on with.
#[derive(Clone, Debug, PartialEq)]
pub enum Begun {
    /// Nothing.
    Nothing,
    /// Some or all of its runs.
    Sweep {
        /// The bytes that are whole.
        bytes: Vec<u8>,
        /// What they say.
        journal: Box<Journal>,
    },
    /// Something else.
    Other {
        /// Which folder or file.
        path: PathBuf,
        /// How it differs.
        difference: String,
    },
}

impl Begun {
    /// What is in `folder` of the sweep and the shard of `header`: what a killed process left there,
    /// or what another has finished. Of several, the one with the most runs.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn find(folder: &Path, header: &Header) -> io::Result<Self> {
        let staged = Folder::staged(folder)?;
        let left = staged.into_iter().filter(|(_, at_work)| !at_work);
        let left = left.map(|(staging, _)| staging.join(journal::FILE));
        let (mut best, mut other) = (None::<(Vec<u8>, Journal)>, Self::Nothing);
        for path in left.chain([folder.join(journal::FILE)]) {
            let mut bytes = match fs::read(&path) {
                // Another command left it, or another process has just removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                read => read?,
            };
            let difference = match Journal::parse(&bytes) {
                Ok(journal) => match journal.header.strictly(header) {
                    None => {
                        let fewer = |(_, best): &(_, Journal)| best.runs.len() < journal.runs.len();
                        if best.as_ref().is_none_or(fewer) {
                            bytes.truncate(journal.whole);
                            best = Some((bytes, journal));
                        }
                        continue;
                    }
                    Some(difference) => difference,
                },
                // It was killed before it had run anything.
                Err(JournalError::NoJournal | JournalError::Torn(_)) => continue,
                Err(error) => format!("it {error}"),
            };
            other = Self::Other { path, difference };
        }
        Ok(match (best, other) {
            (Some((bytes, journal)), _) => Self::Sweep { bytes, journal: Box::new(journal) },
            (None, Self::Nothing) => Self::finished(folder, header),
            (None, other) => other,
        })
    }

    /// The same of a result: nothing is left of its runs, but it may be another sweep's.
    fn finished(folder: &Path, header: &Header) -> Self {
        let Ok(mut meta) = read_meta(folder) else { return Self::Nothing };
        meta.plots.clear();
        let path = folder.join(meta.kind.file());
        let outline = Outline { meta, ..header.outline.clone() };
        let difference = header.difference(&Header { outline, ..header.clone() });
        difference.map_or(Self::Nothing, |difference| Self::Other { path, difference })
    }
}

impl Header {
    /// How another sweep or shard differs from this one.
    fn strictly(&self, wanted: &Self) -> Option<String> {
        let shards = || match (self.shard, wanted.shard) {
            (there, here) if there == here => None,
            (Shard::WHOLE, here) => Some(format!("it is the whole sweep, not shard {here}")),
            (there, here) => Some(format!("it is shard {there}, not {here}")),
        };
        wanted.difference(self).or_else(shards)
    }
}
