//! Checkpoints of `transformers`: tiny ones of each family, with what it computes with them
//! (`scripts/checkpoint_fixtures.py` made both).

use std::fs;
use std::path::{Path, PathBuf};

use headway_runtime::model::{HuggingFaceModel, Kind, Net, padded};
use headway_runtime::tokenizer::{HuggingFace, Message, Tokenizer};
use serde_json::{Value, json};
use tch::Device;

use crate::all::damage::damages;

const FAMILIES: [&str; 3] = ["qwen2", "qwen3", "llama"];
const LONGEST: u32 = 200;

fn place(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checkpoints").join(family)
}

fn json_of(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn open(dir: &Path) -> HuggingFaceModel {
    HuggingFaceModel::open(dir, LONGEST).unwrap()
}

/// The logits behind the last four tokens of what `expected.json` asks.
fn logits(dir: &Path, expected: &Value, kind: Kind) -> Vec<Vec<f32>> {
    let model = open(dir);
    let weights = model.weights().unwrap();
    let net = Net::of_kind(model.shape(), &weights, Device::Cpu, kind).unwrap();
    let ids: Vec<u32> = serde_json::from_value(expected["ids"].clone()).unwrap();
    let all = net.full(&padded(&[&ids], Device::Cpu).unwrap()).unwrap();
    let length = ids.len() as i64;
    let row = |place: i64| Vec::try_from(all.get(0).get(place).to_kind(Kind::Float)).unwrap();
    (length - 4..length).map(row).collect()
}

#[track_caller]
fn agree(got: &[Vec<f32>], expected: &Value, within: f32) {
    let wanted: Vec<Vec<f32>> = serde_json::from_value(expected["logits"].clone()).unwrap();
    assert_eq!(got.len(), wanted.len());
    let spread = |row: &[f32]| row.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    assert!(spread(&wanted[0]) > 1.0, "logits that are all alike would prove nothing");
    for (got, wanted) in got.iter().zip(&wanted) {
        assert_eq!(got.len(), wanted.len());
        for (got, wanted) in got.iter().zip(wanted) {
            assert!((got - wanted).abs() < within, "{got} is not {wanted}");
        }
    }
}

#[test]
fn logits_are_those_of_transformers() {
    for family in FAMILIES {
        let expected = json_of(&place(family).join("expected.json"));
        agree(&logits(&place(family), &expected, Kind::Float), &expected, 1e-4);
    }
}

#[test]
fn sixteen_bits_are_near_to_them() {
    for family in FAMILIES {
        let expected = json_of(&place(family).join("expected.json"));
        agree(&logits(&place(family), &expected, Kind::BFloat16), &expected, 0.25);
    }
}

#[test]
fn a_conversation_becomes_the_text_and_the_ids_that_transformers_makes_of_it() {
    for family in FAMILIES {
        let expected = json_of(&place(family).join("expected.json"));
        let tokenizer = HuggingFace::load(&place(family)).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let messages = expected["messages"].as_array().unwrap().iter();
        let messages: Vec<Message> = messages
            .map(|message| Message {
                role: text(&message["role"]),
                content: text(&message["content"]),
            })
            .collect();
        let ids = tokenizer.prompt(&messages).unwrap();
        assert_eq!(json!(ids), expected["ids"], "{family}");
        let rendered = tokenizer.encode(expected["text"].as_str().unwrap());
        assert_eq!(rendered, ids, "{family}: the text of the template");
    }
}

#[test]
fn what_is_saved_is_read_again_as_it_was_and_replaces_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    for family in FAMILIES {
        let model = open(&place(family));
        let mut weights = model.weights().unwrap();
        weights.tensors[0].data[0] = 7.0;
        let to = folder.path().join("version-1");
        model.save(&to, &weights).unwrap();
        let again = open(&to);
        assert_eq!(again.shape(), model.shape());
        assert_eq!(again.weights().unwrap(), weights);
        assert_eq!(json_of(&to.join("config.json"))["dtype"], "float32");
        HuggingFace::load(&to).unwrap();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half-written stays");
}

#[test]
fn a_long_context_is_cut_to_what_is_asked_for() {
    let shape =
        |longest| HuggingFaceModel::open(&place("llama"), longest).unwrap().shape().positions;
    assert_eq!((shape(100), shape(10_000)), (100, 256));
}

/// A copy of a checkpoint whose configuration was changed; what is said of it.
fn changed(family: &str, change: impl FnOnce(&mut Value)) -> Result<HuggingFaceModel, String> {
    let folder = tempfile::tempdir().unwrap();
    let mut config = json_of(&place(family).join("config.json"));
    change(&mut config);
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    HuggingFaceModel::open(folder.path(), LONGEST).map_err(|error| error.to_string())
}

#[test]
fn what_is_not_built_in_is_refused_with_its_key() {
    type Change = fn(&mut Value);
    let cases: [(Change, &[&str]); 8] = [
        (|config| config["model_type"] = json!("mixtral"), &["model_type", "mixtral", "qwen3"]),
        (
            |config| config["rope_parameters"]["rope_type"] = json!("yarn"),
            &["rope_parameters", "yarn", "llama3"],
        ),
        (|config| config["hidden_act"] = json!("gelu"), &["hidden_act", "gelu", "silu"]),
        (|config| config["mlp_bias"] = json!(true), &["mlp_bias"]),
        (|config| config["layer_types"] = json!(["sliding_attention"]), &["layer_types"]),
        (|config| config["quantization_config"] = json!({}), &["quantization_config"]),
        (|config| config["hidden_size"] = json!("16"), &["hidden_size", "whole number"]),
        (|config| config["num_attention_heads"] = json!(3), &["kv_heads"]),
    ];
    for (change, words) in cases {
        let error = changed("llama", change).unwrap_err();
        assert!(error.contains("config.json"), "{error}");
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[test]
fn the_spelling_of_older_files_means_the_same() {
    let old = changed("llama", |config| {
        let keys = config.as_object_mut().unwrap();
        let mut rope = keys.remove("rope_parameters").unwrap();
        keys.insert("rope_theta".to_owned(), rope["rope_theta"].take());
        rope["type"] = rope["rope_type"].take();
        keys.insert("rope_scaling".to_owned(), rope);
        keys.remove("head_dim");
    });
    assert_eq!(old.unwrap().shape(), open(&place("llama")).shape());
}

#[test]
fn files_that_are_missing_are_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let error = HuggingFaceModel::open(folder.path(), LONGEST).unwrap_err().to_string();
    assert!(error.contains("config.json"), "{error}");
    fs::copy(place("qwen3").join("config.json"), folder.path().join("config.json")).unwrap();
    let error = open(folder.path()).weights().unwrap_err().to_string();
    assert!(error.contains("model.safetensors") && error.contains("save_pretrained"), "{error}");
    let index = folder.path().join("model.safetensors.index.json");
    for wrong in ["../model.safetensors", "/etc/passwd", ""] {
        fs::write(&index, json!({"weight_map": {"a": wrong}}).to_string()).unwrap();
        let error = open(folder.path()).weights().unwrap_err().to_string();
        assert!(error.contains("no file beside it"), "{wrong}: {error}");
    }
    // A shard alone holds not all.
    let shard = "model-00001-of-00003.safetensors";
    fs::copy(place("qwen3").join(shard), folder.path().join(shard)).unwrap();
    fs::write(&index, json!({"weight_map": {"a": shard}}).to_string()).unwrap();
    let error = open(folder.path()).weights().unwrap_err().to_string();
    assert!(error.contains("hold no tensor `model."), "{error}");
}

#[test]
fn a_damaged_checkpoint_is_loaded_or_named() {
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(place("qwen3")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
    }
    let names = ["config.json", "model.safetensors.index.json", "model-00002-of-00003.safetensors"];
    let files = names.map(|name| (dir.path().join(name), fs::read(dir.path().join(name)).unwrap()));
    let load = || {
        let model = HuggingFaceModel::open(dir.path(), LONGEST)?;
        let weights = model.weights()?;
        Net::new(model.shape(), &weights, Device::Cpu)
    };
    load().unwrap();
    for (which, damage) in damages(200) {
        println!("{damage:?}");
        let (path, whole) = &files[which.index(files.len())];
        fs::write(path, damage.of(whole)).unwrap();
        if let Err(error) = load() {
            assert!(!error.to_string().is_empty());
        }
        fs::write(path, whole).unwrap();
    }
}
