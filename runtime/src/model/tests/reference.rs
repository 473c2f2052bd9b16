//! The same transformer again, in plain loops over f64, written from the formulas and sharing
//! nothing with the libtorch one but tensor names.

use crate::engine::Weights;
use crate::model::Shape;

pub(super) struct Reference<'a> {
    pub(super) shape: &'a Shape,
    pub(super) weights: &'a Weights,
}

type Row = Vec<f64>;

impl Reference<'_> {
    /// Logits behind each token.
    pub(super) fn logits(&self, tokens: &[u32]) -> Vec<Row> {
        let hidden = self.shape.hidden as usize;
        let embedding = self.tensor("model.embed_tokens");
        let mut states: Vec<Row> = tokens
            .iter()
            .map(|&id| {
                let start = id as usize * hidden;
                embedding[start..start + hidden].iter().map(|&x| f64::from(x)).collect()
            })
            .collect();
        for layer in 0..self.shape.layers {
            let name = |part: &str| format!("model.layers.{layer}.{part}");
            let normed = self.norm(&states, &name("input_layernorm"));
            add(&mut states, &self.attention(&normed, &name("self_attn")));
            let normed = self.norm(&states, &name("post_attention_layernorm"));
            let gate = self.linear(&normed, &name("mlp.gate_proj"));
            let up = self.linear(&normed, &name("mlp.up_proj"));
            let inner: Vec<Row> = gate
                .iter()
                .zip(&up)
                .map(|(gate, up)| {
                    gate.iter().zip(up).map(|(g, u)| g / (1.0 + libm::exp(-g)) * u).collect()
                })
                .collect();
            add(&mut states, &self.linear(&inner, &name("mlp.down_proj")));
        }
        self.linear(&self.norm(&states, "model.norm"), "lm_head")
    }

    fn attention(&self, states: &[Row], name: &str) -> Vec<Row> {
        let size = self.shape.head_size as usize;
        let shared = (self.shape.heads / self.shape.kv_heads) as usize;
        let queries = self.rotated(self.linear(states, &format!("{name}.q_proj")));
        let keys = self.rotated(self.linear(states, &format!("{name}.k_proj")));
        let values = self.linear(states, &format!("{name}.v_proj"));
        let mut mixed = vec![vec![0.0; queries[0].len()]; states.len()];
        for (now, mixed) in mixed.iter_mut().enumerate() {
            for head in 0..self.shape.heads as usize {
                let own = head * size..(head + 1) * size;
                let group = head / shared * size..(head / shared + 1) * size;
                let score = |then: usize| {
                    let key = &keys[then][group.clone()];
                    dot(&queries[now][own.clone()], key) / libm::sqrt(size as f64)
                };
                let scores: Row = (0..=now).map(score).collect();
                let total: f64 = scores.iter().map(|&s| libm::exp(s)).sum();
                for (then, score) in scores.iter().enumerate() {
                    let share = libm::exp(*score) / total;
                    for (place, value) in values[then][group.clone()].iter().enumerate() {
                        mixed[head * size + place] += share * value;
                    }
                }
            }
        }
        self.linear(&mixed, &format!("{name}.o_proj"))
    }

    /// Element i and i + half of each head are a point that turns by position * theta^(-2i/size).
    fn rotated(&self, mut rows: Vec<Row>) -> Vec<Row> {
        let size = self.shape.head_size as usize;
        for (position, row) in rows.iter_mut().enumerate() {
            for head in row.chunks_mut(size) {
                for i in 0..size / 2 {
                    let power = -2.0 * i as f64 / size as f64;
                    let angle = position as f64 * libm::pow(self.shape.rope_theta, power);
                    let (x, y) = (head[i], head[i + size / 2]);
                    head[i] = x * libm::cos(angle) - y * libm::sin(angle);
                    head[i + size / 2] = y * libm::cos(angle) + x * libm::sin(angle);
                }
            }
        }
        rows
    }

    fn norm(&self, rows: &[Row], name: &str) -> Vec<Row> {
        let gains = self.tensor(name);
        let normed = |row: &Row| {
            let square = dot(row, row) / row.len() as f64;
            let scale = 1.0 / libm::sqrt(square + self.shape.norm_eps);
            row.iter().zip(gains).map(|(x, &gain)| x * scale * f64::from(gain)).collect()
        };
        rows.iter().map(normed).collect()
    }

    fn linear(&self, rows: &[Row], name: &str) -> Vec<Row> {
        let matrix = self.tensor(name);
        let product = |row: &Row| {
            let output = |weights: &[f32]| {
                weights.iter().zip(row).map(|(&weight, x)| f64::from(weight) * x).sum()
            };
            matrix.chunks(row.len()).map(output).collect()
        };
        rows.iter().map(product).collect()
    }

    fn tensor(&self, name: &str) -> &[f32] {
        let name = format!("{name}.weight");
        &self.weights.tensors.iter().find(|tensor| tensor.name == name).unwrap().data
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(rows: &mut [Row], more: &[Row]) {
    for (row, more) in rows.iter_mut().zip(more) {
        row.iter_mut().zip(more).for_each(|(x, y)| *x += y);
    }
}
