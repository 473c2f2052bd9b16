use std::collections::BTreeMap;

use tch::{Device, Kind, Tensor};

use super::{ModelError, Shape};
use crate::engine::{WeightTensor, Weights};

/// A transformer on a device. The tensors are in the order of [`Shape::tensors`].
#[derive(Debug)]
pub struct Net {
    shape: Shape,
    device: Device,
    /// What it computes in; a trainer's is [`Kind::Float`].
    kind: Kind,
    tensors: Vec<Tensor>,
    /// Cosine and sine of every position, [positions, head_size].
    rotary: (Tensor, Tensor),
}

impl Net {
    /// Copies weights to a device. Additional tensors are an error of nobody and left alone.
    ///
    /// # Errors
    /// A tensor is missing, has another extent or is not finite; libtorch has no room.
    pub fn new(shape: &Shape, weights: &Weights, device: Device) -> Result<Self, ModelError> {
        Self::of_kind(shape, weights, device, Kind::Float)
    }

    /// The same, computing in another type, such as [`Kind::BFloat16`].
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_kind(
        shape: &Shape,
        weights: &Weights,
        device: Device,
        kind: Kind,
    ) -> Result<Self, ModelError> {
        shape.check()?;
        let named: BTreeMap<&str, &WeightTensor> =
            weights.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
        let tensors = shape
            .tensors()
            .into_iter()
            .map(|(name, needs)| {
                let tensor = named.get(name.as_str()).ok_or(ModelError::Missing(name))?;
                Ok(upload(tensor, &needs, device)?.f_to_kind(kind)?)
            })
            .collect::<Result<_, ModelError>>()?;
        let (cos, sin) = rotary(shape, device)?;
        let rotary = (cos.f_to_kind(kind)?, sin.f_to_kind(kind)?);
        Ok(Self { shape: shape.clone(), device, kind, tensors, rotary })
    }

    /// The sizes.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Where it is.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// What it computes in.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The tensors, in the order of [`Shape::tensors`].
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The same, to be updated in place.
    pub fn tensors_mut(&mut self) -> &mut [Tensor] {
        &mut self.tensors
    }

    /// An owned copy of the weights.
    ///
    /// # Errors
    /// What libtorch says.
    pub fn weights(&self) -> Result<Weights, ModelError> {
        let names = self.shape.tensors().into_iter();
        let tensors = names
            .zip(&self.tensors)
            .map(|((name, shape), tensor)| Ok(WeightTensor { name, shape, data: floats(tensor)? }));
        Ok(Weights { tensors: tensors.collect::<Result<_, ModelError>>()? })
    }

    /// A copy on the same device that shares nothing and needs no gradient.
    ///
    /// # Errors
    /// What libtorch says.
    pub fn snapshot(&self) -> Result<Self, ModelError> {
        let copy = |tensor: &Tensor| tensor.f_detach_copy();
        Ok(Self {
            shape: self.shape.clone(),
            device: self.device,
            kind: self.kind,
            tensors: self.tensors.iter().map(copy).collect::<Result<_, _>>()?,
            rotary: (self.rotary.0.shallow_clone(), self.rotary.1.shallow_clone()),
        })
    }

    /// The last layer's normed states, [n, t, hidden], of tokens [n, t] at positions [n or 1, t].
    ///
    /// `mask` is added to the scores, [n or 1, 1, t, keys]; without one each token attends to itself
    /// and to those before it. `keep` gets each layer's keys and values of these tokens, [n, kv_heads,
    /// t, head_size], and gives those to attend to.
    ///
    /// # Errors
    /// What libtorch or `keep` says.
    pub fn hidden(
        &self,
        tokens: &Tensor,
        positions: &Tensor,
        mask: Option<&Tensor>,
        keep: &mut Keep<'_>,
    ) -> Result<Tensor, ModelError> {
        let (count, length) = positions.size2()?;
        let rotary = [&self.rotary.0, &self.rotary.1].map(|table| {
            table.f_index_select(0, &positions.f_reshape([-1])?)?.f_view([count, 1, length, -1])
        });
        let [cos, sin] = rotary;
        let rotary = (cos?, sin?);
        let mut states = Tensor::f_embedding(&self.tensors[0], tokens, -1, false, false)?;
        for layer in 0..self.shape.layers as usize {
            let weights = self.layer(layer);
            let attended = self.attention(layer, weights, &states, &rotary, mask, keep)?;
            states = states.f_add(&attended)?;
            let inner = self.norm(&states, &weights[5])?;
            let gate = inner.f_linear(&weights[6], None::<Tensor>)?.f_silu()?;
            let up = inner.f_linear(&weights[7], None::<Tensor>)?;
            states = states.f_add(&gate.f_mul(&up)?.f_linear(&weights[8], None::<Tensor>)?)?;
        }
        self.norm(&states, &self.tensors[1 + self.shape.layers as usize * self.shape.per_layer()])
    }

    /// A layer's tensors, in the order of [`Shape::tensors`].
    fn layer(&self, layer: usize) -> &[Tensor] {
        let count = self.shape.per_layer();
        &self.tensors[1 + layer * count..][..count]
    }

    /// Logits, [.., vocab], of states [.., hidden].
    ///
    /// # Errors
    /// What libtorch says.
    pub fn logits(&self, states: &Tensor) -> Result<Tensor, ModelError> {
        let head = if self.shape.tied { 0 } else { self.tensors.len() - 1 };
        Ok(states.f_linear(&self.tensors[head], None::<Tensor>)?)
    }

    /// Logits of whole sequences, [n, t, vocab], from [`padded`] tokens [n, t]: what is right of a
    /// sequence's end does not matter to what is left of it.
    ///
    /// # Errors
    /// What libtorch says.
    pub fn full(&self, tokens: &Tensor) -> Result<Tensor, ModelError> {
        let states = self.whole(tokens, &mut |_, k, v| Ok((k, v)))?;
        self.logits(&states)
    }

    /// The last layer's normed states, [n, t, hidden], of sequences from their first token on.
    ///
    /// # Errors
    /// What libtorch or `keep` says.
    pub fn whole(&self, tokens: &Tensor, keep: &mut Keep<'_>) -> Result<Tensor, ModelError> {
        let (_, length) = tokens.size2()?;
        let positions = Tensor::f_arange(length, (Kind::Int64, self.device))?.f_unsqueeze(0)?;
        self.hidden(tokens, &positions, None, keep)
    }

    fn attention(
        &self,
        layer: usize,
        weights: &[Tensor],
        states: &Tensor,
        rotary: &(Tensor, Tensor),
        mask: Option<&Tensor>,
        keep: &mut Keep<'_>,
    ) -> Result<Tensor, ModelError> {
        let (count, length, _) = states.size3()?;
        let normed = self.norm(states, &weights[0])?;
        // Behind the nine that every layer has: biases, then norms.
        let bias = |place: usize| self.shape.biases.then(|| &weights[9 + place]);
        let heads = |place: usize, heads: i64| {
            normed.f_linear(&weights[1 + place], bias(place))?.f_view([
                count,
                length,
                heads,
                self.shape.head_size,
            ])
        };
        let normed_heads = |place: usize, of: i64| -> Result<Tensor, ModelError> {
            let of = heads(place, of)?;
            let gain = weights.len() - 2 + place;
            let of = if self.shape.head_norms { self.norm(&of, &weights[gain])? } else { of };
            rotate(&of.f_transpose(1, 2)?, rotary)
        };
        let queries = normed_heads(0, self.shape.heads)?;
        let keys = normed_heads(1, self.shape.kv_heads)?;
        let values = heads(2, self.shape.kv_heads)?.f_transpose(1, 2)?;
        let (keys, values) = keep(layer, keys, values)?;
        let grouped = self.shape.heads != self.shape.kv_heads;
        let mixed = Tensor::f_scaled_dot_product_attention(
            &queries,
            &keys,
            &values,
            mask,
            0.0,
            mask.is_none(),
            None,
            grouped,
        )?;
        let joined = mixed.f_transpose(1, 2)?.f_reshape([count, length, -1])?;
        Ok(joined.f_linear(&weights[4], None::<Tensor>)?)
    }

    fn norm(&self, states: &Tensor, gain: &Tensor) -> Result<Tensor, ModelError> {
        Ok(states.f_rms_norm(gain.size(), Some(gain), self.shape.norm_eps)?)
    }
}

/// Gets a layer's number and the keys and values of the tokens of this pass; gives those to attend
/// to.
pub type Keep<'a> = dyn FnMut(usize, Tensor, Tensor) -> Result<(Tensor, Tensor), ModelError> + 'a;

/// Sequences as one tensor [n, longest], padded on the right with zeros.
///
/// # Errors
/// What libtorch says.
pub fn padded(sequences: &[&[u32]], device: Device) -> Result<Tensor, ModelError> {
    let longest = sequences.iter().map(|sequence| sequence.len()).max().unwrap_or(0);
    let mut flat = Vec::with_capacity(sequences.len() * longest);
    for sequence in sequences {
        flat.extend(sequence.iter().map(|&id| i64::from(id)));
        flat.resize(flat.len() + longest - sequence.len(), 0);
    }
    let shape = [sequences.len() as i64, longest as i64];
    Ok(Tensor::f_from_slice(&flat)?.f_view(shape)?.f_to_device(device)?)
}

fn upload(tensor: &WeightTensor, needs: &[i64], device: Device) -> Result<Tensor, ModelError> {
    let fits = usize::try_from(needs.iter().product::<i64>()) == Ok(tensor.data.len());
    if tensor.shape != needs || !fits {
        let (name, has) = (tensor.name.clone(), tensor.shape.clone());
        return Err(ModelError::Extent { name, has, needs: needs.to_vec() });
    }
    if !tensor.data.iter().all(|number| number.is_finite()) {
        return Err(ModelError::NotFinite(tensor.name.clone()));
    }
    Ok(Tensor::f_from_slice(&tensor.data)?.f_view(needs)?.f_to_device(device)?)
}

/// A tensor's elements, in row-major order.
pub(crate) fn floats(tensor: &Tensor) -> Result<Vec<f32>, ModelError> {
    let flat = tensor.f_detach()?.f_to_device(Device::Cpu)?.f_to_kind(Kind::Float)?;
    let flat = flat.f_contiguous()?;
    let mut data = vec![0.0; flat.numel()];
    let count = data.len();
    flat.f_copy_data(&mut data, count)?;
    Ok(data)
}

/// Cosines and sines, each frequency in both halves of the head, as Llama checkpoints have it.
/// Computed in f64: at long positions f32 angles are off.
fn rotary(shape: &Shape, device: Device) -> Result<(Tensor, Tensor), ModelError> {
    let half = shape.head_size / 2;
    let frequencies: Vec<f64> = (0..half)
        .map(|place| -2.0 * place as f64 / shape.head_size as f64)
        .map(|exponent| shape.rope_scaling.of(libm::pow(shape.rope_theta, exponent)))
        .collect();
    let mut tables = (Vec::new(), Vec::new());
    for position in 0..shape.positions {
        for place in 0..shape.head_size {
            let angle = position as f64 * frequencies[(place % half) as usize];
            tables.0.push(libm::cos(angle) as f32);
            tables.1.push(libm::sin(angle) as f32);
        }
    }
    let table = |data: &[f32]| {
        Tensor::f_from_slice(data)?.f_view([shape.positions, shape.head_size])?.f_to_device(device)
    };
    Ok((table(&tables.0)?, table(&tables.1)?))
}

/// Turns each pair (first half, second half) of a head by its position's angle.
fn rotate(heads: &Tensor, (cos, sin): &(Tensor, Tensor)) -> Result<Tensor, ModelError> {
    let half = heads.size()[3] / 2;
    let (first, second) = (heads.f_narrow(3, 0, half)?, heads.f_narrow(3, half, half)?);
    let turned = Tensor::f_cat(&[&second.f_neg()?, &first], 3)?;
    Ok(heads.f_mul(cos)?.f_add(&turned.f_mul(sin)?)?)
}
