use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::select;

use super::super::decode::Decoder;
use super::*;

const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN_2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// What merges in the vocabularies of these tests, from the left.
const WORDS: [&str; 16] = [
    "the", " the", "Ġ", " key", "is", " is", "\n\n", "    ", "'s", "123", "中文", " 中", "é",
    "ing", "\r\n", "…",
];

fn bytes_level(pattern: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": pattern})
}

fn split(pattern: &str) -> Value {
    let split = json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
    json!({"type": "Sequence", "pretokenizers": [split, bytes_level(false)]})
}

fn mark(id: usize, content: &str, special: bool, normalized: bool) -> Value {
    json!({
        "id": id, "content": content, "special": special, "normalized": normalized,
        "single_word": false, "lstrip": false, "rstrip": false,
    })
}

/// A tokenizer as its file has it.
fn file(cut: &Value, normalizer: &Value) -> Value {
    let letters = letters();
    let mut vocabulary: Vec<String> = letters.iter().map(char::to_string).collect();
    let mut merges = Vec::new();
    for word in WORDS {
        let mut whole = String::new();
        for letter in word.bytes().map(|byte| letters[usize::from(byte)].to_string()) {
            let longer = format!("{whole}{letter}");
            if !whole.is_empty() && !vocabulary.contains(&longer) {
                merges.push(json!([whole, letter]));
                vocabulary.push(longer.clone());
            }
            whole = longer;
        }
    }
    let size = vocabulary.len();
    let ids: serde_json::Map<String, Value> =
        vocabulary.into_iter().enumerate().map(|(id, token)| (token, json!(id))).collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [
            mark(size, "<|im_start|>", true, false),
            mark(size + 1, "<|im_end|>", true, false),
            mark(size + 2, "<|im", true, false),
            mark(size + 3, "<tool_call>", false, false),
            mark(size + 4, "<tool", false, true),
            mark(size + 5, "｜▁｜", true, false),
        ],
        "normalizer": normalizer, "pre_tokenizer": cut, "post_processor": bytes_level(false),
        "decoder": bytes_level(true),
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": false, "vocab": ids, "merges": merges,
        },
    })
}

fn model(file: &Value) -> Model {
    file.to_string().parse().unwrap()
}

/// All forms that are read.
static FORMS: LazyLock<Vec<(Model, Encoder)>> = LazyLock::new(|| {
    let cuts = [bytes_level(true), split(LLAMA_3), split(QWEN_2), split(TEKKEN)];
    let both =
        |cut| [Value::Null, json!({"type": "NFC"})].map(|normalizer| file(&cut, &normalizer));
    let with = |file| {
        let model = model(&file);
        let encoder = Encoder::of(&model).unwrap();
        (model, encoder)
    };
    cuts.into_iter().flat_map(both).map(with).collect()
});

fn plain(model: &Model, text: &str) -> Vec<u32> {
    model.encode_fast(text, false).unwrap().get_ids().to_vec()
}

/// Text in which whatever patterns look for stands beside everything else.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => select(&[
            " ", "  ", "\n", "\r\n", "\t", "\u{a0}", "\u{3000}", "\u{2028}", "\u{85}", "the", " the",
            "key", "'s", "'S", "'ſ", "'ll", "'", "12", "3456", "½", "٣", "中文", "，", "e\u{301}", "é",
            "\u{1112}\u{1161}\u{11ab}", "한", "\u{0344}", "…", "😀", "👩\u{200d}🚀", "_", "-", "/", "ǅ", "ʰ",
            "<|im_start|>", "<|im_end|>", "<|im", "<|", "|>", "<tool_call>", "<tool", "</tool_call>",
            "｜▁｜", "｜", "\0", "\u{feff}",
        ][..]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "[a-z ]{1,12}",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn ids_are_those_of_the_library_whether_words_are_new_or_known(
        texts in prop::collection::vec(text(), 1..4),
    ) {
        for (model, encoder) in FORMS.iter() {
            for text in texts.iter().chain(&texts) {
                prop_assert_eq!(encoder.ids(model, text), Some(plain(model, text)), "{:?}", text);
            }
        }
    }

    #[test]
    fn text_is_that_of_the_library(ids in prop::collection::vec(0..340_u32, 0..20)) {
        let model = model(&file(&bytes_level(true), &Value::Null));
        let decoder = Decoder::of(&model).unwrap();
        let size = u32::try_from(model.get_vocab_size(true)).unwrap();
        match decoder.text(&ids) {
            Some(text) => prop_assert_eq!(text, model.decode(&ids, true).unwrap()),
            None => prop_assert!(ids.iter().any(|id| *id >= size)),
        }
    }
}

#[test]
fn a_prompt_as_it_is_sent_has_the_ids_of_the_library() {
    let page = include_str!("../../../../../docs/performance.md");
    for (model, encoder) in FORMS.iter() {
        let text = format!("<|im_start|>user\n{page}<|im_end|>\n<|im_start|>assistant\n");
        assert_eq!(encoder.ids(model, &text).unwrap(), plain(model, &text));
    }
}

/// What each changes, alone, makes a tokenizer one that is left to the library.
#[test]
fn what_is_not_known_is_left_to_the_library() {
    let good = file(&split(QWEN_2), &json!({"type": "NFC"}));
    assert!(Encoder::of(&model(&good)).is_some());
    let changed = |pointer: &str, to: Value| {
        let mut file = good.clone();
        *file.pointer_mut(pointer).unwrap() = to;
        Encoder::of(&model(&file)).is_none()
    };
    let pattern = "/pre_tokenizer/pretokenizers/0/pattern/Regex";
    let regex = |pattern: &str| json!(format!("{pattern}{SPACE}"));
    assert!(changed(pattern, regex(r"\p{N}{1,3}+| ?[^\s\p{N}]++")), "possessive");
    assert!(changed(pattern, regex(r"a(?=b)|\p{L}+")), "looks ahead");
    assert!(changed(pattern, regex(r"(?<!a)b|\p{L}+")), "looks behind");
    assert!(changed(pattern, regex(r"(a)\1|\p{L}+")), "refers back");
    assert!(changed(pattern, regex(r"\h+")), "other libraries' classes");
    assert!(changed(pattern, json!(r"\p{L}+|\s+")), "ends otherwise");
    assert!(changed("/pre_tokenizer/pretokenizers/0/behavior", json!("Removed")));
    assert!(changed("/pre_tokenizer/pretokenizers/0/invert", json!(true)));
    assert!(changed("/pre_tokenizer/pretokenizers/1/add_prefix_space", json!(true)));
    assert!(changed("/pre_tokenizer/pretokenizers/1/use_regex", json!(true)));
    assert!(changed("/pre_tokenizer", json!({"type": "Whitespace"})));
    assert!(changed("/normalizer", json!({"type": "Lowercase"})));
    assert!(changed("/added_tokens/0/lstrip", json!(true)));
    assert!(changed("/added_tokens/0/rstrip", json!(true)));
    assert!(changed("/added_tokens/3/single_word", json!(true)));
    assert!(changed("/model/dropout", json!(0.5)));
    let cut =
        json!({"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"});
    assert!(changed("/truncation", cut));
    let adds = json!({"type": "BertProcessing", "sep": ["a", 1], "cls": ["b", 2]});
    assert!(changed("/post_processor", adds));
}

#[test]
fn a_run_of_space_without_end_is_left_to_the_library() {
    let (model, encoder) = &FORMS[2];
    assert_eq!(encoder.ids(model, &" ".repeat(LONGEST_WORD + 2)), None);
    let text = " ".repeat(1000);
    assert_eq!(encoder.ids(model, &text), Some(plain(model, &text)));
}
