//! What `config.json` says of a model.

use serde_json::{Value, json};

use crate::model::{RopeScaling, Shape};

/// The shape of a model; the error says which key is wrong, and what there is.
pub(super) fn shape(config: &Value) -> Result<Shape, String> {
    let family = Family::of(config)?;
    refuse(config, family)?;
    let (hidden, heads) = (size(config, "hidden_size")?, size(config, "num_attention_heads")?);
    let head_size = match &config["head_dim"] {
        Value::Null if heads > 0 => hidden / heads,
        Value::Null => 0,
        _ => size(config, "head_dim")?,
    };
    let kv_heads = match &config["num_key_value_heads"] {
        Value::Null => heads,
        _ => size(config, "num_key_value_heads")?,
    };
    let (rope_theta, rope_scaling) = rope(config)?;
    Ok(Shape {
        vocab: size(config, "vocab_size")?,
        hidden,
        layers: size(config, "num_hidden_layers")?,
        heads,
        kv_heads,
        head_size,
        mlp: size(config, "intermediate_size")?,
        positions: size(config, "max_position_embeddings")?,
        rope_theta,
        rope_scaling,
        norm_eps: number(config, "rms_norm_eps")?,
        biases: family == Family::Qwen2,
        head_norms: family == Family::Qwen3,
        tied: flag(config, "tie_word_embeddings")?,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Llama,
    Qwen2,
    Qwen3,
}

impl Family {
    fn of(config: &Value) -> Result<Self, String> {
        match config["model_type"].as_str() {
            Some("llama") => Ok(Self::Llama),
            Some("qwen2") => Ok(Self::Qwen2),
            Some("qwen3") => Ok(Self::Qwen3),
            _ => Err(format!(
                "`model_type` is {}, which is not built in: there are \"llama\", \"qwen2\" and \
                 \"qwen3\"",
                shown(&config["model_type"])
            )),
        }
    }
}

/// What would make it another model than the one that is built in.
fn refuse(config: &Value, family: Family) -> Result<(), String> {
    let act = &config["hidden_act"];
    if !act.is_null() && act != "silu" {
        return Err(format!("`hidden_act` is {}: only \"silu\" is built in", shown(act)));
    }
    for key in ["mlp_bias", "use_sliding_window", "attention_bias"] {
        // Qwen2 has its biases whatever the key says.
        if flag(config, key)? && !(key == "attention_bias" && family == Family::Qwen2) {
            return Err(format!("`{key}` is true, which is not built in"));
        }
    }
    let kinds = config["layer_types"].as_array().into_iter().flatten();
    match kinds.into_iter().find(|kind| *kind != "full_attention") {
        Some(other) => Err(format!(
            "`layer_types` holds {}: only \"full_attention\" is built in",
            shown(other)
        )),
        None if config.get("quantization_config").is_some_and(|given| !given.is_null()) => {
            Err("`quantization_config`: quantized weights are not built in".to_owned())
        }
        None => Ok(()),
    }
}

/// The base of the rotary frequencies and how they are stretched. Older files have `rope_theta` and
/// `rope_scaling`, newer ones `rope_parameters` with both.
fn rope(config: &Value) -> Result<(f64, RopeScaling), String> {
    let (key, given) = match (&config["rope_parameters"], &config["rope_scaling"]) {
        (Value::Null, old) => ("rope_scaling", old),
        (new, _) => ("rope_parameters", new),
    };
    let theta = match (&given["rope_theta"], &config["rope_theta"]) {
        (Value::Null, Value::Null) => 10_000.0,
        (Value::Null, _) => number(config, "rope_theta")?,
        _ => number(given, "rope_theta")?,
    };
    if given.is_null() {
        return Ok((theta, RopeScaling::None));
    }
    let kind = match &given["rope_type"] {
        Value::Null => &given["type"],
        kind => kind,
    };
    let scaling = match kind.as_str() {
        Some("default") => RopeScaling::None,
        Some("linear") => RopeScaling::Linear { factor: number(given, "factor")? },
        Some("llama3") => RopeScaling::Llama3 {
            factor: number(given, "factor")?,
            low: number(given, "low_freq_factor")?,
            high: number(given, "high_freq_factor")?,
            original: number(given, "original_max_position_embeddings")?,
        },
        _ => {
            return Err(format!(
                "`{key}` has the type {}, which is not built in: there are \"default\", \
                 \"linear\" and \"llama3\"; without the key, positions are not stretched",
                shown(kind)
            ));
        }
    };
    Ok((theta, scaling))
}

/// The same configuration of weights that are written as f32.
pub(super) fn in_floats(mut config: Value) -> Value {
    if let Some(keys) = config.as_object_mut() {
        keys.remove("torch_dtype");
        keys.insert("dtype".to_owned(), json!("float32"));
    }
    config
}

fn size(config: &Value, key: &str) -> Result<i64, String> {
    let given = &config[key];
    given.as_i64().ok_or_else(|| format!("`{key}` is {}, not a whole number", shown(given)))
}

fn number(config: &Value, key: &str) -> Result<f64, String> {
    let given = &config[key];
    given.as_f64().ok_or_else(|| format!("`{key}` is {}, not a number", shown(given)))
}

fn flag(config: &Value, key: &str) -> Result<bool, String> {
    match &config[key] {
        Value::Null => Ok(false),
        given => {
            given.as_bool().ok_or_else(|| format!("`{key}` is {}, not true or false", shown(given)))
        }
    }
}

/// A value, or the beginning of it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "not there".to_owned(),
        value => {
            let text = value.to_string();
            let short: String = text.chars().take(60).collect();
            if short.len() < text.len() { format!("{short}...") } else { text }
        }
    }
}
