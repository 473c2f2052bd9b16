use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::ModelError;
use crate::engine::{WeightTensor, Weights};

/// The sizes of a transformer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Token ids are below this.
    pub vocab: i64,
    /// Width of the residual stream.
    pub hidden: i64,
    /// Blocks.
    pub layers: i64,
    /// Query heads.
    pub heads: i64,
    /// Key and value heads; divides `heads`.
    pub kv_heads: i64,
    /// Width of a head; even.
    pub head_size: i64,
    /// Width inside SwiGLU.
    pub mlp: i64,
    /// The longest sequence, in tokens.
    pub positions: i64,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// How those frequencies are stretched for long sequences.
    #[serde(default)]
    pub rope_scaling: RopeScaling,
    /// Added to the mean square in RMSNorm.
    pub norm_eps: f64,
    /// Queries, keys and values have biases, as in Qwen2.
    #[serde(default)]
    pub biases: bool,
    /// Queries and keys are normed, head by head, as in Qwen3.
    #[serde(default)]
    pub head_norms: bool,
    /// The output head is the embedding.
    #[serde(default)]
    pub tied: bool,
}

/// How the rotary frequencies of a checkpoint differ from powers of `rope_theta`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum RopeScaling {
    /// They do not.
    #[default]
    None,
    /// Each is divided by this factor.
    Linear {
        /// At least 1.
        factor: f64,
    },
    /// As Llama 3.1 has it: slow ones are divided by `factor`, fast ones are left alone, those between
    /// go over from one to the other.
    Llama3 {
        /// At least 1.
        factor: f64,
        /// A frequency that turns less than this often in `original` positions is slow.
        low: f64,
        /// One that turns more often than this is fast; above `low`.
        high: f64,
        /// The positions that the model was first trained for.
        original: f64,
    },
}

impl RopeScaling {
    /// What becomes of a frequency, in radians per position.
    pub(super) fn of(self, frequency: f64) -> f64 {
        match self {
            Self::None => frequency,
            Self::Linear { factor } => frequency / factor,
            Self::Llama3 { factor, low, high, original } => {
                let turns = original * frequency / std::f64::consts::TAU;
                let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                (1.0 - kept) * frequency / factor + kept * frequency
            }
        }
    }

    fn is_possible(self) -> bool {
        match self {
            Self::None => true,
            Self::Linear { factor } => factor.is_finite() && factor >= 1.0,
            Self::Llama3 { factor, low, high, original } => {
                let all = [factor, low, high, original];
                all.iter().all(|number| number.is_finite() && *number > 0.0)
                    && factor >= 1.0
                    && high > low
            }
        }
    }
}

/// The largest size of a model: products of two fit 64 bits.
const LARGEST: i64 = 1 << 24;

impl Shape {
    /// A small one for a CPU: two layers of width 64. The low base of the rotary frequencies suits
    /// sequences of up to some hundred tokens: neighbours are far enough apart to be told apart soon.
    #[must_use]
    pub fn tiny(vocab: i64, positions: i64) -> Self {
        Self {
            vocab,
            hidden: 64,
            layers: 2,
            heads: 4,
            kv_heads: 2,
            head_size: 16,
            mlp: 176,
            positions,
            rope_theta: 100.0,
            rope_scaling: RopeScaling::None,
            norm_eps: 1e-5,
            biases: false,
            head_norms: false,
            tied: false,
        }
    }

    /// Whether such a model can be.
    ///
    /// # Errors
    /// [`ModelError::Shape`] says what is wrong.
    pub fn check(&self) -> Result<(), ModelError> {
        let sizes = [
            self.vocab,
            self.hidden,
            self.layers,
            self.heads,
            self.kv_heads,
            self.head_size,
            self.mlp,
            self.positions,
        ];
        if sizes.iter().any(|&size| size < 1) {
            return Err(ModelError::Shape("every size is at least 1"));
        }
        if sizes.iter().any(|&size| size > LARGEST) {
            return Err(ModelError::Shape("no size is above 16777216"));
        }
        if self.heads % self.kv_heads != 0 {
            return Err(ModelError::Shape("`kv_heads` divides `heads`"));
        }
        if self.head_size % 2 != 0 {
            return Err(ModelError::Shape("`head_size` is even: positions rotate pairs"));
        }
        if !(self.rope_theta > 0.0 && self.norm_eps > 0.0) {
            return Err(ModelError::Shape("`rope_theta` and `norm_eps` are above 0"));
        }
        if !self.rope_scaling.is_possible() {
            return Err(ModelError::Shape(
                "`rope_scaling` has a factor of at least 1 and numbers above 0",
            ));
        }
        Ok(())
    }

    /// Every tensor of the model, with its extent, in a fixed order.
    #[must_use]
    pub fn tensors(&self) -> Vec<(String, Vec<i64>)> {
        let (queries, keys) = (self.heads * self.head_size, self.kv_heads * self.head_size);
        let mut all = vec![("model.embed_tokens.weight".to_owned(), vec![self.vocab, self.hidden])];
        for layer in 0..self.layers {
            let mut add = |name: &str, extent: Vec<i64>| {
                let kind = if name.ends_with(".bias") { "" } else { ".weight" };
                all.push((format!("model.layers.{layer}.{name}{kind}"), extent));
            };
            add("input_layernorm", vec![self.hidden]);
            add("self_attn.q_proj", vec![queries, self.hidden]);
            add("self_attn.k_proj", vec![keys, self.hidden]);
            add("self_attn.v_proj", vec![keys, self.hidden]);
            add("self_attn.o_proj", vec![self.hidden, queries]);
            add("post_attention_layernorm", vec![self.hidden]);
            add("mlp.gate_proj", vec![self.mlp, self.hidden]);
            add("mlp.up_proj", vec![self.mlp, self.hidden]);
            add("mlp.down_proj", vec![self.hidden, self.mlp]);
            if self.biases {
                add("self_attn.q_proj.bias", vec![queries]);
                add("self_attn.k_proj.bias", vec![keys]);
                add("self_attn.v_proj.bias", vec![keys]);
            }
            if self.head_norms {
                add("self_attn.q_norm", vec![self.head_size]);
                add("self_attn.k_norm", vec![self.head_size]);
            }
        }
        all.push(("model.norm.weight".to_owned(), vec![self.hidden]));
        if !self.tied {
            all.push(("lm_head.weight".to_owned(), vec![self.vocab, self.hidden]));
        }
        all
    }

    /// How many of [`tensors`](Self::tensors) each layer has.
    pub(super) fn per_layer(&self) -> usize {
        9 + if self.biases { 3 } else { 0 } + if self.head_norms { 2 } else { 0 }
    }

    /// How many numbers all weights are.
    #[must_use]
    pub fn parameters(&self) -> i64 {
        self.tensors().iter().map(|(_, extent)| extent.iter().product::<i64>()).sum()
    }

    /// Random weights: gains 1, biases 0, matrices normal with variance 1/inputs, those that end in the
    /// residual stream scaled down by its depth. The head is small, so that the first policy is
    /// nearly uniform. Equal seeds, equal weights, on any platform.
    #[must_use]
    pub fn random(&self, seed: u64) -> Weights {
        let tensors = self.tensors().into_iter().enumerate().map(|(place, (name, shape))| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(place as u64);
            let count = usize::try_from(shape.iter().product::<i64>()).unwrap_or(0);
            let data = match *shape.as_slice() {
                [_] if name.ends_with(".bias") => vec![0.0; count],
                [_] => vec![1.0; count],
                _ => {
                    let scale = self.scale(&name, shape[1]);
                    (0..count).map(|_| (scale * normal(&mut random)) as f32).collect()
                }
            };
            WeightTensor { name, shape, data }
        });
        Weights { tensors: tensors.collect() }
    }

    fn scale(&self, name: &str, inputs: i64) -> f64 {
        if name == "lm_head.weight" {
            return 0.02;
        }
        let depth = if name.contains("o_proj") || name.contains("down_proj") {
            2.0 * self.layers as f64
        } else {
            1.0
        };
        1.0 / libm::sqrt(inputs as f64 * depth)
    }
}

/// A standard normal number, by Box and Muller.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let (radius, turn) = (unit(random.next_u64()), unit(random.next_u64()));
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(std::f64::consts::TAU * turn)
}
