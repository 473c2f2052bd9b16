//! The policy itself: a decoder-only transformer in libtorch, small enough for a CPU and the same
//! on a GPU.
//!
//! RMSNorm before each block, rotary positions, grouped-query attention, SwiGLU, no biases, an
//! output head of its own: the architecture and the tensor names of Llama checkpoints. One forward
//! pass ([`Net::hidden`]) serves the trainer (all positions at once), the prefill of a prompt and a
//! decode step over a [`Cache`]; they differ in positions, mask, and where keys and values are kept.
//! Weights cross threads as owned copies ([`Weights`](crate::engine::Weights)), never as tensors.
//! Every call to libtorch here is the one that returns its error: a GPU out of memory is a failed
//! step or load, not a panic.

mod cache;
pub mod file;
mod hugging_face;
mod net;
mod shape;
#[cfg(test)]
mod tests;

pub use cache::Cache;
pub use hugging_face::HuggingFaceModel;
pub(crate) use net::floats;
pub use net::{Keep, Net, padded};
pub use shape::{RopeScaling, Shape};

pub use tch::Kind;
use tch::TchError;

/// What a model or its weights can fail with.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// libtorch said no.
    #[error("libtorch: {0}")]
    Torch(#[from] TchError),
    /// The shape is impossible.
    #[error("the model's shape: {0}")]
    Shape(&'static str),
    /// A tensor is not there.
    #[error("the weights hold no tensor `{0}`")]
    Missing(String),
    /// A tensor has another extent than the model needs.
    #[error("tensor `{name}` is {has:?}, the model needs {needs:?}")]
    Extent {
        /// Which.
        name: String,
        /// Its extent.
        has: Vec<i64>,
        /// The model's.
        needs: Vec<i64>,
    },
    /// A tensor holds NaN or an infinity.
    #[error("tensor `{0}` holds a number that is not finite")]
    NotFinite(String),
    /// A file of weights cannot be read.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
}

/// The device that tests compute on: the CPU, or the one that `HEADWAY_TEST_DEVICE` names.
#[cfg(test)]
pub(crate) fn test_device() -> tch::Device {
    let name = std::env::var("HEADWAY_TEST_DEVICE").unwrap_or_else(|_| "cpu".to_owned());
    device(&name).expect("HEADWAY_TEST_DEVICE names a device of this machine")
}

/// What two ways to one number may differ by: a GPU adds up in another order for each kernel.
#[cfg(test)]
pub(crate) fn tolerance() -> f32 {
    if test_device() == tch::Device::Cpu { 1e-4 } else { 1e-3 }
}

/// The same weights: bit for bit on a CPU. On a GPU gradients add up in no fixed order, and where
/// one is nearly 0, AdamW can turn its last bit into a step of the learning rate, either way.
#[cfg(test)]
pub(crate) fn same(one: &crate::engine::Weights, other: &crate::engine::Weights) -> bool {
    if test_device() == tch::Device::Cpu {
        return one == other;
    }
    let numbers = |weights: &crate::engine::Weights| {
        weights.tensors.iter().flat_map(|tensor| tensor.data.clone()).collect::<Vec<f32>>()
    };
    let (one, other) = (numbers(one), numbers(other));
    let apart = |(one, other): &(&f32, &f32)| (*one - *other).abs() > 1e-4;
    one.len() == other.len() && one.iter().zip(&other).filter(apart).count() * 100 <= one.len()
}

/// From now on every thread computes alone on a CPU: the engine and the trainer have one each, and a
/// small model gains nothing by more.
pub fn one_thread() {
    tch::set_num_threads(1);
}

/// The device of this name: `cpu`, `cuda`, `cuda:1`.
///
/// # Errors
/// The name is none of these, or libtorch finds no such GPU; the text says which.
pub fn device(name: &str) -> Result<tch::Device, String> {
    let index = match name {
        "cpu" => return Ok(tch::Device::Cpu),
        "cuda" => Some(0),
        _ => name.strip_prefix("cuda:").and_then(|index| index.parse::<usize>().ok()),
    };
    let Some(index) = index else {
        return Err(format!("`{name}` is no device: write `cpu`, `cuda` or `cuda:N`"));
    };
    let found = usize::try_from(tch::Cuda::device_count()).unwrap_or(0);
    if index < found {
        Ok(tch::Device::Cuda(index))
    } else {
        Err(format!(
            "`{name}`: libtorch sees {found} GPUs; write `cpu`, or use a PyTorch with CUDA"
        ))
    }
}
