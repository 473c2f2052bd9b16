mod reference;

use tch::Device;

use super::*;
use crate::engine::Weights;
use reference::Reference;

/// Sizes that are all different, so that no two can be mixed up.
fn shape() -> Shape {
    Shape {
        vocab: 19,
        hidden: 24,
        layers: 3,
        heads: 6,
        kv_heads: 2,
        head_size: 8,
        mlp: 40,
        positions: 48,
        rope_theta: 500.0,
        ..Shape::tiny(19, 48)
    }
}

/// Random weights with gains that are not 1 and a head whose logits are not tiny.
fn weights(shape: &Shape, seed: u64) -> Weights {
    let mut weights = shape.random(seed);
    for tensor in &mut weights.tensors {
        if tensor.shape.len() == 1 {
            for (place, gain) in tensor.data.iter_mut().enumerate() {
                *gain = 0.5 + (place % 7) as f32 / 5.0;
            }
        }
        if tensor.name == "lm_head.weight" {
            tensor.data.iter_mut().for_each(|x| *x *= 20.0);
        }
    }
    weights
}

fn sequence(length: usize, seed: u32) -> Vec<u32> {
    (0..length as u32).map(|place| (place * 7 + seed * 5 + place * place) % 19).collect()
}

#[track_caller]
fn agree(got: &[f32], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((f64::from(*got) - want).abs() < 1e-4, "{got} is not {want}");
    }
}

#[test]
fn full_pass_cached_decoding_and_plain_loops_agree() {
    let shape = shape();
    let weights = weights(&shape, 7);
    let net = Net::new(&shape, &weights, crate::model::test_device()).unwrap();
    let reference = Reference { shape: &shape, weights: &weights };
    let lengths = [40, 11, 23];
    let sequences: Vec<Vec<u32>> =
        lengths.iter().enumerate().map(|(seed, &length)| sequence(length, seed as u32)).collect();
    let wanted: Vec<Vec<Vec<f64>>> = sequences.iter().map(|s| reference.logits(s)).collect();
    let spread = wanted[0][5].iter().copied().fold(f64::MIN, f64::max)
        - wanted[0][5].iter().copied().fold(f64::MAX, f64::min);
    assert!(spread > 1.0, "logits that are all alike would prove nothing: {spread}");

    let slices: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
    let full = net.full(&padded(&slices, crate::model::test_device()).unwrap()).unwrap();
    for (row, wanted) in wanted.iter().enumerate() {
        for (place, wanted) in wanted.iter().enumerate() {
            let got = full.get(row as i64).get(place as i64);
            agree(&net::floats(&got).unwrap(), wanted);
        }
    }

    // Each sequence begins with a prompt of its own length; slots are used out of order.
    let mut cache = Cache::new(&net, 5).unwrap();
    let (slots, prompts) = ([4, 0, 2], [9, 3, 16]);
    for row in 0..3 {
        let prompt = &sequences[row][..prompts[row]];
        let got = cache.prefill(&net, &[slots[row]], &[prompt]).unwrap();
        agree(&net::floats(&got).unwrap(), &wanted[row][prompts[row] - 1]);
    }
    for step in 0..24 {
        let running: Vec<usize> =
            (0..3).filter(|&row| prompts[row] + step < lengths[row]).collect();
        let places: Vec<usize> = running.iter().map(|&row| prompts[row] + step).collect();
        let tokens: Vec<u32> =
            running.iter().zip(&places).map(|(&row, &place)| sequences[row][place]).collect();
        let of: Vec<usize> = running.iter().map(|&row| slots[row]).collect();
        let got = cache.decode(&net, &of, &tokens, &places).unwrap();
        for (index, (&row, &place)) in running.iter().zip(&places).enumerate() {
            agree(&net::floats(&got.get(index as i64)).unwrap(), &wanted[row][place]);
        }
    }
}

#[test]
fn weights_come_back_from_a_device_and_from_a_file_as_they_were() {
    let shape = shape();
    let weights = weights(&shape, 1);
    let net = Net::new(&shape, &weights, crate::model::test_device()).unwrap();
    assert_eq!(net.weights().unwrap(), weights);
    assert_eq!(net.snapshot().unwrap().weights().unwrap(), weights);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    let header = [("version".to_owned(), "12".to_owned())].into_iter().collect();
    file::write(&path, &weights, header).unwrap();
    let (read, header) = file::read(&path).unwrap();
    assert_eq!(header["version"], "12");
    let net = Net::new(&shape, &read, crate::model::test_device()).unwrap();
    assert_eq!(net.weights().unwrap(), weights);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no half-written file stays");
}

#[test]
fn a_file_that_is_cut_off_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    file::write(&path, &shape().random(1), file::Header::default()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = file::read(&path).unwrap_err().to_string();
    assert!(error.starts_with(&path.display().to_string()), "{error}");
}

#[test]
fn weights_that_do_not_fit_are_named() {
    let shape = shape();
    let error_of = |spoil: fn(&mut Weights)| {
        let mut weights = shape.random(1);
        spoil(&mut weights);
        Net::new(&shape, &weights, crate::model::test_device()).unwrap_err().to_string()
    };
    let missing = error_of(|weights| {
        weights.tensors.retain(|tensor| tensor.name != "model.norm.weight");
    });
    assert_eq!(missing, "the weights hold no tensor `model.norm.weight`");
    let extent = error_of(|weights| weights.tensors[0].shape = vec![24, 19]);
    assert_eq!(extent, "tensor `model.embed_tokens.weight` is [24, 19], the model needs [19, 24]");
    let infinite = error_of(|weights| weights.tensors[3].data[5] = f32::NAN);
    assert_eq!(
        infinite,
        "tensor `model.layers.0.self_attn.k_proj.weight` holds a number that is not finite"
    );
}

#[test]
fn a_shape_that_cannot_be_is_refused() {
    let refused = |shape: Shape| shape.check().unwrap_err().to_string();
    assert!(refused(Shape { kv_heads: 4, ..shape() }).contains("`kv_heads` divides `heads`"));
    assert!(refused(Shape { head_size: 7, ..shape() }).contains("even"));
    assert!(refused(Shape { layers: 0, ..shape() }).contains("at least 1"));
    assert!(refused(Shape { norm_eps: f64::NAN, ..shape() }).contains("above 0"));
}

#[test]
fn a_device_is_named_or_the_names_are_told() {
    assert_eq!(device("cpu"), Ok(Device::Cpu));
    assert!(device("gpu").unwrap_err().contains("write `cpu`, `cuda` or `cuda:N`"));
    let gpus = tch::Cuda::device_count();
    assert!(device(&format!("cuda:{gpus}")).unwrap_err().contains(&format!("sees {gpus} GPUs")));
}

#[test]
fn the_first_policy_is_nearly_uniform_and_the_same_for_a_seed() {
    let shape = Shape::tiny(16, 32);
    let net = Net::new(&shape, &shape.random(3), crate::model::test_device()).unwrap();
    let tokens = padded(&[&[1, 2, 3, 4, 5, 6]], crate::model::test_device()).unwrap();
    let probabilities = net.full(&tokens).unwrap().softmax(-1, tch::Kind::Float);
    for p in net::floats(&probabilities).unwrap() {
        assert!((0.02..0.2).contains(&p), "{p}");
    }
    assert_eq!(shape.random(3), shape.random(3));
    assert_ne!(shape.random(3), shape.random(4));
}
