use tch::{Kind, Tensor};

use super::{ModelError, Net, padded};

/// Attention lengths are rounded up to a multiple of this, so that a step's work changes shape
/// seldom.
const CHUNK: i64 = 32;

/// Keys and values of the sequences being generated, a row per slot, on the model's device. It
/// holds `slots * positions` tokens of each layer, reserved at once.
#[derive(Debug)]
pub struct Cache {
    positions: i64,
    /// Per layer: keys and values, [slots, kv_heads, positions, head_size].
    layers: Vec<(Tensor, Tensor)>,
}

impl Cache {
    /// An empty one for this model.
    ///
    /// # Errors
    /// libtorch has no room.
    pub fn new(net: &Net, slots: usize) -> Result<Self, ModelError> {
        let shape = net.shape();
        let positions = (shape.positions + CHUNK - 1) / CHUNK * CHUNK;
        let extent = [slots as i64, shape.kv_heads, positions, shape.head_size];
        let zeros = || Tensor::f_zeros(extent, (net.kind(), net.device()));
        let layers = (0..shape.layers).map(|_| Ok((zeros()?, zeros()?)));
        Ok(Self { positions, layers: layers.collect::<Result<_, ModelError>>()? })
    }

    /// Fills slots with whole sequences of one length and gives the logits behind each one's last
    /// token, [n, vocab].
    ///
    /// # Errors
    /// What libtorch says; the slots' contents are then undefined.
    pub fn prefill(
        &mut self,
        net: &Net,
        slots: &[usize],
        sequences: &[&[u32]],
    ) -> Result<Tensor, ModelError> {
        let tokens = padded(sequences, net.device())?;
        let (_, length) = tokens.size2()?;
        let rows = slot_rows(slots, net)?;
        let layers = &mut self.layers;
        let states = net.whole(&tokens, &mut |layer, keys, values| {
            let (all_keys, all_values) = &mut layers[layer];
            let _ = all_keys.f_narrow(2, 0, length)?.f_index_copy_(0, &rows, &keys)?;
            let _ = all_values.f_narrow(2, 0, length)?.f_index_copy_(0, &rows, &values)?;
            Ok((keys, values))
        })?;
        net.logits(&states.f_select(1, length - 1)?)
    }

    /// One decode step: each slot's next token at its position (the number of tokens before it);
    /// gives the logits behind it, [n, vocab].
    ///
    /// # Errors
    /// What libtorch says.
    pub fn decode(
        &mut self,
        net: &Net,
        slots: &[usize],
        tokens: &[u32],
        positions: &[usize],
    ) -> Result<Tensor, ModelError> {
        let device = net.device();
        let count = slots.len() as i64;
        let rows = slot_rows(slots, net)?;
        let places: Vec<i64> = positions.iter().map(|&place| place as i64).collect();
        let longest = places.iter().copied().max().unwrap_or(0) + 1;
        let reach = ((longest + CHUNK - 1) / CHUNK * CHUNK).min(self.positions);
        let places = Tensor::f_from_slice(&places)?.f_to_device(device)?;
        let tokens: Vec<i64> = tokens.iter().map(|&id| i64::from(id)).collect();
        let tokens = Tensor::f_from_slice(&tokens)?.f_view([count, 1])?.f_to_device(device)?;
        let mask = reach_mask(&places, reach, net.kind())?;
        let layers = &mut self.layers;
        let column = places.f_view([count, 1])?;
        let states = net.hidden(&tokens, &column, Some(&mask), &mut |layer, keys, values| {
            let (all_keys, all_values) = &mut layers[layer];
            let at = [Some(&rows), None, Some(&places)];
            let _ = all_keys.f_index_put_(&at, &keys.f_squeeze_dim(2)?, false)?;
            let _ = all_values.f_index_put_(&at, &values.f_squeeze_dim(2)?, false)?;
            let of_rows = |all: &Tensor| all.f_narrow(2, 0, reach)?.f_index_select(0, &rows);
            Ok((of_rows(all_keys)?, of_rows(all_values)?))
        })?;
        net.logits(&states.f_select(1, 0)?)
    }
}

fn slot_rows(slots: &[usize], net: &Net) -> Result<Tensor, ModelError> {
    let rows: Vec<i64> = slots.iter().map(|&slot| slot as i64).collect();
    Ok(Tensor::f_from_slice(&rows)?.f_to_device(net.device())?)
}

/// What is added to each row's scores, [n, 1, 1, reach]: nothing up to its own place, minus
/// infinity beyond.
fn reach_mask(places: &Tensor, reach: i64, kind: Kind) -> Result<Tensor, ModelError> {
    let device = places.device();
    let columns = Tensor::f_arange(reach, (Kind::Int64, device))?.f_unsqueeze(0)?;
    let beyond = columns.f_gt_tensor(&places.f_unsqueeze(1)?)?;
    let zeros = Tensor::f_zeros([places.size()[0], reach], (kind, device))?;
    let mask = zeros.f_masked_fill(&beyond, f64::NEG_INFINITY)?;
    Ok(mask.f_view([-1, 1, 1, reach])?)
}
