//! A checkpoint is one file, whole or not there: weights, what the optimizer remembers, the
//! running baseline, which step it was written after, and the earlier parameters of the lag probe.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use headway_shared::id::StepId;
use headway_shared::ratio::Baseline;
use headway_shared::version::LearnerVersion;
use tch::{Device, Tensor};

use super::adamw::Moments;
use super::gaps::Gaps;
use super::learner::{Applied, Learner};
use crate::driver::Point;
use crate::engine::{WeightTensor, Weights};
use crate::model::file::{self, Header};
use crate::model::{ModelError, Net, Shape, floats};
use crate::trainer::Probe;

/// How many are kept.
const KEPT: usize = 3;

const MEAN: &str = "adamw.mean.";
const SQUARE: &str = "adamw.square.";
/// Then the version, a point, and the tensor's name.
const SNAPSHOT: &str = "snapshot.";

fn place(folder: &Path, version: LearnerVersion) -> PathBuf {
    folder.join(format!("checkpoint-{:010}.safetensors", version.number()))
}

/// Writes one, then removes the oldest beyond those that are kept.
pub(super) fn write(folder: &Path, learner: &Learner, probe: &Probe) -> Result<(), ModelError> {
    let mut weights = learner.net.weights()?;
    let names: Vec<(String, Vec<i64>)> = learner.net.shape().tensors();
    for ((name, shape), (mean, square)) in names.iter().zip(&learner.moments.of) {
        for (prefix, tensor) in [(MEAN, mean), (SQUARE, square)] {
            let data = floats(tensor)?;
            let name = format!("{prefix}{name}");
            weights.tensors.push(WeightTensor { name, shape: shape.clone(), data });
        }
    }
    for (version, net) in &learner.snapshots {
        for tensor in net.weights()?.tensors {
            let name = format!("{SNAPSHOT}{}.{}", version.number(), tensor.name);
            weights.tensors.push(WeightTensor { name, ..tensor });
        }
    }
    let mut header = Header::new();
    let mut put = |key: &str, value: String| header.insert(key.to_owned(), value);
    put("version", learner.version.number().to_string());
    put("updates", learner.moments.updates.to_string());
    put("gaps", learner.gaps.text());
    if let Some(mean) = learner.baseline.mean {
        // As bits: it comes back as it was.
        put("baseline_bits", mean.to_bits().to_string());
    }
    if let Some(applied) = &learner.applied {
        put("step", applied.step.0.to_string());
        put("step_from", applied.learner.number().to_string());
    }
    let failed = |error: std::io::Error| ModelError::File {
        path: folder.display().to_string(),
        reason: error.to_string(),
    };
    fs::create_dir_all(folder).map_err(failed)?;
    probe.at(Point::BeforeCheckpoint);
    let written = || probe.at(Point::BeforeRename);
    file::write_with(&place(folder, learner.version), &weights, header, written)?;
    probe.at(Point::AfterRename);
    for old in all(folder).into_iter().rev().skip(KEPT) {
        // One too many does no harm.
        let _ = fs::remove_file(old);
    }
    Ok(())
}

/// Removes the checkpoint of a version, if there is one.
pub(super) fn remove(folder: &Path, version: LearnerVersion) {
    let _ = fs::remove_file(place(folder, version));
}

/// The newest checkpoint that is whole. One that cannot be read is named on
/// stderr and passed over.
pub(super) fn newest(folder: &Path, shape: &Shape, device: Device) -> Option<Learner> {
    for path in all(folder).into_iter().rev() {
        match read(&path, shape, device) {
            Ok(found) => return Some(found),
            Err(error) => tracing::warn!(target: "headway", "passed over a checkpoint: {error}"),
        }
    }
    None
}

/// The checkpoints of a folder, oldest first.
fn all(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("checkpoint-") && name.ends_with(".safetensors")
    });
    paths.sort();
    paths
}

fn read(path: &Path, shape: &Shape, device: Device) -> Result<Learner, ModelError> {
    let (weights, header) = file::read(path)?;
    let number = |key: &str| header.get(key).and_then(|text| text.parse::<u64>().ok());
    let needed = |key: &'static str| {
        number(key).ok_or_else(|| ModelError::File {
            path: path.display().to_string(),
            reason: format!("its header has no number `{key}`"),
        })
    };
    let version = |number: u64| LearnerVersion::new(u32::try_from(number).unwrap_or(u32::MAX));
    let of = |prefix: &str| {
        let tensors = weights.tensors.iter().filter_map(|tensor| {
            let name = tensor.name.strip_prefix(prefix)?.to_owned();
            Some(WeightTensor { name, ..tensor.clone() })
        });
        Weights { tensors: tensors.collect() }
    };
    let moments = |prefix: &str| {
        let net = Net::new(shape, &of(prefix), device)?;
        Ok::<_, ModelError>(net.tensors().iter().map(Tensor::shallow_clone).collect::<Vec<_>>())
    };
    let mut learner =
        Learner::new(Net::new(shape, &weights, device)?, version(needed("version")?))?;
    learner.moments = Moments {
        updates: i64::try_from(needed("updates")?).unwrap_or(i64::MAX),
        of: moments(MEAN)?.into_iter().zip(moments(SQUARE)?).collect(),
    };
    learner.snapshots = snapshots(&weights, shape, device)?;
    learner.gaps = Gaps::read(header.get("gaps").map_or("", String::as_str));
    learner.baseline = Baseline { mean: number("baseline_bits").map(f64::from_bits) };
    learner.applied = number("step").zip(number("step_from")).map(|(step, from)| Applied {
        step: StepId(step),
        learner: version(from),
        metrics: Vec::new(),
    });
    Ok(learner)
}

/// The earlier parameters, oldest first.
fn snapshots(
    weights: &Weights,
    shape: &Shape,
    device: Device,
) -> Result<VecDeque<(LearnerVersion, Rc<Net>)>, ModelError> {
    let mut found: BTreeMap<u32, Weights> = BTreeMap::new();
    for tensor in &weights.tensors {
        let name = tensor.name.strip_prefix(SNAPSHOT).and_then(|name| name.split_once('.'));
        if let Some((version, name)) = name
            && let Ok(version) = version.parse()
        {
            let tensor = WeightTensor { name: name.to_owned(), ..tensor.clone() };
            found.entry(version).or_default().tensors.push(tensor);
        }
    }
    let net = |(version, weights): (&u32, &Weights)| {
        Ok((LearnerVersion::new(*version), Rc::new(Net::new(shape, weights, device)?)))
    };
    found.iter().map(net).collect()
}
