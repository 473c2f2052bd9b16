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
    /// The newest weights that were reported, the newest last.
    pub(super) weights: Vec<Place>,
    /// The step before the last, to which a step goes back that counts as failed.
    pub(super) before: Option<Done>,
}

/// So many places are remembered.
const MOST_PLACES: usize = 4;

impl Book {
    /// The version that the trainer has reached; 0: no step was reported.
    pub(super) fn version(&self) -> u32 {
        self.done.as_ref().map_or(0, |done| done.version + 1)
    }

    /// A step is done.
    pub(super) fn push(&mut self, done: Done) {
        self.before = self.done.replace(done);
    }

    /// The last step counts as failed, whatever the trainer made of it: its version never was.
    pub(super) fn take_back(&mut self) {
        self.done = self.before.take();
        let version = self.version();
        self.weights.retain(|place| place.version <= version);
    }

    /// Weights are in a place.
    pub(super) fn put(&mut self, place: Place) {
        self.weights.retain(|other| other.version != place.version);
        self.weights.push(place);
        self.weights.sort_by_key(|place| place.version);
        let surplus = self.weights.len().saturating_sub(MOST_PLACES);
        self.weights.drain(..surplus);
    }

    /// Where a version's weights are.
    pub(super) fn place(&self, version: u32) -> Option<&Place> {
        self.weights.iter().find(|place| place.version == version)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn done(step: u64, version: u32) -> Done {
        Done { step, version, batch: format!("batch-{step}") }
    }

    #[test]
    fn a_step_that_counts_as_failed_leaves_nothing_of_its_version() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trainer.json");
        let mut book = Book::read(&path).unwrap();
        assert_eq!(book.version(), 0);
        book.push(done(0, 0));
        book.put(Place { version: 1, path: "/one".to_owned() });
        let before = book.clone();
        book.push(done(1, 1));
        book.put(Place { version: 2, path: "/two".to_owned() });
        book.write(&path).unwrap();
        let mut book = Book::read(&path).unwrap();
        assert_eq!((book.version(), book.place(2).is_some()), (2, true));
        book.take_back();
        assert_eq!((&book.done, &book.weights), (&before.done, &before.weights));
        book.push(done(2, 1));
        assert_eq!(book.version(), 2);
        assert!(
            book.place(2).is_none(),
            "the weights of the failed step are not those of this one"
        );
    }

    #[test]
    fn few_places_are_remembered_and_the_newest_is_the_last() {
        let mut book = Book::default();
        for version in [3, 1, 2, 5, 4, 6] {
            book.put(Place { version, path: format!("/{version}") });
        }
        let versions: Vec<u32> = book.weights.iter().map(|place| place.version).collect();
        assert_eq!(versions, [3, 4, 5, 6]);
    }

    #[test]
    fn a_damaged_file_is_an_error_that_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trainer.json");
        fs::write(&path, "{\"done\": 3").unwrap();
        let error = Book::read(&path).unwrap_err().to_string();
        assert!(error.contains("trainer.json") && error.contains("put back"), "{error}");
    }
}
