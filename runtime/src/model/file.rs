//! Weights as a file, in the safetensors format.

use std::fs;
use std::io::Write;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::ModelError;
use crate::engine::{WeightTensor, Weights};

/// Named texts in the file's header.
#[expect(clippy::disallowed_types, reason = "the file format's library asks for it")]
pub type Header = std::collections::HashMap<String, String>;

/// Writes weights whole or not at all: beside the place, flushed to disk, then renamed.
///
/// # Errors
/// [`ModelError::File`] says what the system said; what was at the place is then still there.
pub fn write(path: &Path, weights: &Weights, header: Header) -> Result<(), ModelError> {
    write_with(path, weights, header, || {})
}

/// The same; calls `written` before it renames.
pub(crate) fn write_with(
    path: &Path,
    weights: &Weights,
    header: Header,
    written: impl FnOnce(),
) -> Result<(), ModelError> {
    let failed = |reason: String| ModelError::File { path: path.display().to_string(), reason };
    let bytes: Vec<(&WeightTensor, Vec<u8>)> = weights
        .tensors
        .iter()
        .map(|tensor| (tensor, tensor.data.iter().flat_map(|x| x.to_le_bytes()).collect()))
        .collect();
    let views = bytes.iter().map(|(tensor, bytes)| {
        let shape = tensor.shape.iter().map(|&size| usize::try_from(size).unwrap_or(0)).collect();
        Ok((tensor.name.as_str(), TensorView::new(Dtype::F32, shape, bytes)?))
    });
    let views: Vec<_> = views
        .collect::<Result<_, safetensors::SafeTensorError>>()
        .map_err(|error| failed(error.to_string()))?;
    let file = safetensors::serialize(views, Some(header)).map_err(|e| failed(e.to_string()))?;
    let part = path.with_extension("part");
    let done = fs::File::create(&part)
        .and_then(|mut part| part.write_all(&file).and_then(|()| part.sync_all()))
        .and_then(|()| {
            written();
            fs::rename(&part, path)
        });
    if let Err(error) = done {
        // On a full disk the part would keep it full.
        let _ = fs::remove_file(&part);
        return Err(failed(error.to_string()));
    }
    // The rename itself is on disk when the folder is.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| failed(error.to_string()))
}

/// Reads weights and the texts of the header. Tensors of type F32, BF16 and F16 are understood.
///
/// # Errors
/// [`ModelError::File`]: the file cannot be read, is cut off, is no safetensors file, or holds
/// another type.
pub fn read(path: &Path) -> Result<(Weights, Header), ModelError> {
    let failed = |reason: String| ModelError::File { path: path.display().to_string(), reason };
    let bytes = fs::read(path).map_err(|error| failed(error.to_string()))?;
    let (_, metadata) =
        SafeTensors::read_metadata(&bytes).map_err(|error| failed(error.to_string()))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| failed(error.to_string()))?;
    let tensors = file.iter().map(|(name, view)| {
        let data = match view.dtype() {
            Dtype::F32 => {
                floats(view.data(), |&[a, b, c, d]: &[u8; 4]| f32::from_le_bytes([a, b, c, d]))
            }
            Dtype::BF16 => {
                floats(view.data(), |&[a, b]: &[u8; 2]| f32::from_le_bytes([0, 0, a, b]))
            }
            Dtype::F16 => floats(view.data(), |&[a, b]: &[u8; 2]| half(u16::from_le_bytes([a, b]))),
            other => {
                let reason = format!("tensor `{name}` is {other:?}, not F32, BF16 or F16");
                return Err(failed(reason));
            }
        };
        let shape = view.shape().iter().map(|&size| size as i64).collect();
        Ok(WeightTensor { name: name.to_owned(), shape, data })
    });
    let mut tensors = tensors.collect::<Result<Vec<_>, _>>()?;
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((Weights { tensors }, metadata.metadata().clone().unwrap_or_default()))
}

fn floats<const N: usize>(bytes: &[u8], float: impl Fn(&[u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks::<N>().0.iter().map(float).collect()
}

/// A number of IEEE 754's binary16.
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (u32::from(bits >> 10 & 0x1f), u32::from(bits & 0x3ff));
    let size = match exponent {
        // 2^-24 each.
        0 => fraction as f32 / 16_777_216.0,
        31 => f32::from_bits(0x7f80_0000 | fraction << 13),
        _ => f32::from_bits((exponent + 112) << 23 | fraction << 13),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn numbers_of_16_bits_are_what_they_are() {
        for (bits, number) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x8000, -0.0),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(half(bits), number, "{bits:x}");
        }
        assert!(half(0x7e00).is_nan());
    }
}
