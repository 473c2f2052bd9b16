//! Weights for engines of other processes: a checkpoint of `transformers` for each version.

use std::fs;
use std::path::PathBuf;

use headway_shared::version::LearnerVersion;

use crate::engine::{Export, Weights};
use crate::model::{HuggingFaceModel, ModelError};

/// How many are kept: an engine that comes back gets the newest one that was published, which is not
/// always the last that was written.
const KEPT: usize = 3;

/// Where weights are written, and as what.
#[derive(Clone, Debug)]
pub struct Exports {
    /// The checkpoint that the run began with: its configuration and tokenizer go with the weights.
    pub model: HuggingFaceModel,
    /// The folder of all versions. The engines read it under this very path: it is absolute.
    pub folder: PathBuf,
}

impl Exports {
    /// Writes a version, then removes the oldest beyond those that are kept.
    pub(super) fn write(
        &self,
        version: LearnerVersion,
        weights: &Weights,
    ) -> Result<Export, ModelError> {
        let place = self.folder.join(format!("version-{:010}", version.number()));
        fs::create_dir_all(&self.folder).map_err(|error| ModelError::File {
            path: self.folder.display().to_string(),
            reason: error.to_string(),
        })?;
        self.model.save(&place, weights)?;
        for old in self.all().into_iter().rev().skip(KEPT) {
            // One too many does no harm.
            let _ = fs::remove_dir_all(old);
        }
        Ok(Export::Directory(place.into()))
    }

    /// What is in the folder, oldest first.
    fn all(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("version-") && !name.contains('.')
        });
        paths.sort();
        paths
    }
}
