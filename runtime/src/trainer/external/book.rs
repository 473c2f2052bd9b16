//! What was reported last, on disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file of what was reported cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}: {reason}: it remembers which step the external trainer has done; put back the file that \
     belongs to this record",
    path.display()
)]
pub struct BookError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// A step that made a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    /// The step, as the core numbers its attempts.
    pub(super) step: u64,
    /// The version that it started from; it made the next one.
    pub(super) version: u32,
    /// Its batch.
    pub(super) batch: String,
}

/// Where a version's weights are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) version: u32,
    pub(super) path: String,
}

/// What outlives this process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Book {
    /// The last step that was reported.
    pub(super) done: Option<Done>,
    /// The newest weights that were reported.
    pub(super) weights: Option<Place>,
    /// Those before them.
    #[serde(default)]
    older: Option<Place>,
    /// The version, where no step is known: what a step started from that was undone.
    #[serde(default)]
    base: u32,
}

impl Book {
    /// The version that the trainer has reached; 0: no step was reported.
    pub(super) fn version(&self) -> u32 {
        self.done.as_ref().map_or(self.base, |done| done.version + 1)
    }

    /// A version's weights are there.
    pub(super) fn place(&mut self, version: u32, path: String) {
        self.older = self.weights.replace(Place { version, path });
    }

    /// What was made of this version counts as failed.
    pub(super) fn go_back(&mut self, version: u32) {
        (self.done, self.base) = (None, version);
        let newer = |place: &mut Place| place.version > version;
        if self.weights.take_if(newer).is_some() {
            self.weights = self.older.take();
        }
    }

    /// Reads the file; where there is none, nothing was reported.
    pub(super) fn read(path: &Path) -> Result<Self, BookError> {
        let failed = |reason: String| BookError { path: path.to_owned(), reason };
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Writes the file whole or not at all, and returns when it is on disk.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let mut draft = path.as_os_str().to_owned();
        draft.push(".new");
        let draft = PathBuf::from(draft);
        let mut file = File::create(&draft)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}
