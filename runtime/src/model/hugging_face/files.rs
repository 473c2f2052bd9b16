//! The files of a checkpoint's directory.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::failed;
use crate::model::ModelError;

/// A longer text is no configuration.
const LONGEST: u64 = 64 << 20;

/// What is copied beside weights: what a tokenizer, a chat and a generation need.
const TEXTS: [&str; 9] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "special_tokens_map.json",
    "added_tokens.json",
    "generation_config.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
];

pub(super) fn json(path: &Path) -> Result<Value, ModelError> {
    let of = |error: std::io::Error| failed(path, error.to_string());
    if fs::metadata(path).map_err(of)?.len() > LONGEST {
        return Err(failed(path, "it is too long for a configuration".to_owned()));
    }
    let text = fs::read_to_string(path).map_err(of)?;
    serde_json::from_str(&text).map_err(|error| failed(path, format!("it is no JSON: {error}")))
}

/// The files that hold the weights.
pub(super) fn weights(dir: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let index = dir.join("model.safetensors.index.json");
    if !index.exists() {
        let one = dir.join("model.safetensors");
        return match one.exists() {
            true => Ok(vec![one]),
            false => Err(failed(
                dir,
                "there is neither `model.safetensors` nor `model.safetensors.index.json`: convert \
                 weights of another format with `save_pretrained` of transformers"
                    .to_owned(),
            )),
        };
    }
    let map = json(&index)?;
    let named = map["weight_map"].as_object();
    let named = named.ok_or_else(|| failed(&index, "it has no object `weight_map`".to_owned()))?;
    let names: BTreeSet<Option<&str>> = named.values().map(Value::as_str).collect();
    let paths = names.into_iter().map(|name| {
        let is_plain = |name: &&str| {
            let mut parts = Path::new(name).components();
            matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
        };
        let name = name.filter(is_plain);
        let wrong = || failed(&index, "`weight_map` names what is no file beside it".to_owned());
        name.map(|name| dir.join(name)).ok_or_else(wrong)
    });
    paths.collect()
}

/// Makes an empty directory.
pub(super) fn empty(dir: &Path) -> Result<(), ModelError> {
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(|error| failed(dir, error.to_string()))?;
    }
    fs::create_dir_all(dir).map_err(|error| failed(dir, error.to_string()))
}

/// Copies what belongs to a checkpoint beside its weights and configuration.
pub(super) fn copy_text(from: &Path, to: &Path) -> Result<(), ModelError> {
    for name in TEXTS {
        let path = from.join(name);
        if path.exists() {
            fs::copy(&path, to.join(name)).map_err(|error| failed(&path, error.to_string()))?;
        }
    }
    Ok(())
}

pub(super) fn put(path: &Path, text: &str) -> Result<(), ModelError> {
    fs::File::create(path)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .map_err(|error| failed(path, error.to_string()))
}

/// Puts a directory in another's place.
pub(super) fn replace(part: &Path, place: &Path) -> Result<(), ModelError> {
    let of = |error: std::io::Error| failed(place, error.to_string());
    if place.exists() {
        fs::remove_dir_all(place).map_err(of)?;
    }
    fs::rename(part, place).map_err(of)
}
