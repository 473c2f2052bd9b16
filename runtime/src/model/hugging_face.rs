//! Checkpoints as Hugging Face's `transformers` reads and writes them: a directory of `config.json`,
//! `*.safetensors` and the tokenizer's files.
//!
//! The families are Llama, Qwen2 and Qwen3: one architecture that differs in biases, norms of heads
//! and rotary frequencies. What a configuration asks for beyond that is refused, never left out: a
//! model that is nearly right is wrong. Weights are F32, BF16 or F16 in files, f32 in memory, and are
//! written as F32.

mod config;
mod files;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::file::{self, Header};
use super::{ModelError, Shape};
use crate::engine::Weights;

/// A checkpoint's directory, without its weights.
#[derive(Clone, Debug)]
pub struct HuggingFaceModel {
    dir: PathBuf,
    config: Value,
    shape: Shape,
}

impl HuggingFaceModel {
    /// Reads `config.json`. Sequences are at most `longest` tokens, also where the model could take
    /// longer ones.
    ///
    /// # Errors
    /// [`ModelError::File`]: the file cannot be read, or names a model that is not built in.
    pub fn open(dir: &Path, longest: u32) -> Result<Self, ModelError> {
        let path = dir.join("config.json");
        let config = files::json(&path)?;
        let mut shape = config::shape(&config).map_err(|reason| failed(&path, reason))?;
        shape.positions = shape.positions.min(i64::from(longest));
        shape.check().map_err(|error| failed(&path, error.to_string()))?;
        Ok(Self { dir: dir.to_owned(), config, shape })
    }

    /// The sizes.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Reads the weights: `model.safetensors`, or the files that `model.safetensors.index.json`
    /// names.
    ///
    /// # Errors
    /// [`ModelError`]: a file cannot be read, or a tensor is missing or has another extent.
    pub fn weights(&self) -> Result<Weights, ModelError> {
        let mut tensors = Vec::new();
        for path in files::weights(&self.dir)? {
            tensors.extend(file::read(&path)?.0.tensors);
        }
        let mut wanted = self.shape.tensors();
        wanted.sort();
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        tensors.dedup_by(|a, b| a.name == b.name);
        // A head that is tied is the embedding, whatever else a file holds.
        tensors
            .retain(|tensor| wanted.binary_search_by(|(name, _)| name.cmp(&tensor.name)).is_ok());
        for (name, needs) in wanted {
            let found = tensors.binary_search_by(|tensor| tensor.name.cmp(&name));
            let has = found.map(|place| tensors[place].shape.clone());
            match has {
                Err(_) => return Err(ModelError::Missing(name)),
                Ok(has) if has != needs => return Err(ModelError::Extent { name, has, needs }),
                Ok(_) => {}
            }
        }
        Ok(Weights { tensors })
    }

    /// Writes a checkpoint of other weights, with this one's configuration and tokenizer: whole or not
    /// at all. What is at the place is replaced.
    ///
    /// # Errors
    /// [`ModelError::File`] says what the system said.
    pub fn save(&self, place: &Path, weights: &Weights) -> Result<(), ModelError> {
        let part = place.with_extension("part");
        let written = self.write(&part, weights).and_then(|()| files::replace(&part, place));
        if written.is_err() {
            // On a full disk the part would keep it full.
            let _ = std::fs::remove_dir_all(&part);
        }
        written
    }

    fn write(&self, part: &Path, weights: &Weights) -> Result<(), ModelError> {
        files::empty(part)?;
        files::copy_text(&self.dir, part)?;
        let text = config::in_floats(self.config.clone()).to_string();
        files::put(&part.join("config.json"), &text)?;
        let header: Header = [("format".to_owned(), "pt".to_owned())].into_iter().collect();
        file::write(&part.join("model.safetensors"), weights, header)
    }
}

fn failed(path: &Path, reason: String) -> ModelError {
    ModelError::File { path: path.display().to_string(), reason }
}
