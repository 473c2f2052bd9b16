//! The tokenizer and chat template of a tiny checkpoint in Hugging Face's format: a byte-level BPE
//! of all bytes and one merge, cut as Qwen cuts text, with a ChatML template.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

/// The token of `he`.
pub(crate) const HE: u32 = 256;
/// Opens a message.
pub(crate) const START: u32 = 257;
/// Ends a message.
pub(crate) const END: u32 = 258;

/// With a look-ahead, as Qwen's and Llama's have it.
const CUT: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const TEMPLATE: &str = "{%- for message in messages %}
    {%- if message.role not in ['system', 'user', 'assistant', 'tool'] %}
        {{- raise_exception('there is no role ' ~ message.role) }}
    {%- endif %}
    {{- '<|im_start|>' + message['role'] + '\\n' + message.content.strip() + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
";

/// The letter that stands for a byte in a byte-level vocabulary: itself where it can be printed,
/// else the next letter from U+0100 on.
fn letter(byte: u8) -> char {
    let shown = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if shown(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !shown(other)).count();
    char::from_u32(256 + u32::try_from(before).unwrap()).unwrap()
}

/// Writes its files into a directory.
pub(crate) fn write(dir: &Path) {
    write_with(dir, TEMPLATE);
}

/// The same with another chat template.
pub(crate) fn write_with(dir: &Path, template: &str) {
    let mut vocabulary: Map<String, Value> =
        (0..=255).map(|byte| (letter(byte).to_string(), json!(byte))).collect();
    vocabulary.insert("he".to_owned(), json!(HE));
    let special = |id: u32, content: &str| {
        json!({
            "id": id, "content": content, "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true,
        })
    };
    let bytes = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false,
    });
    let cut = json!({
        "type": "Split", "pattern": {"Regex": CUT}, "behavior": "Isolated", "invert": false,
    });
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [special(START, "<|im_start|>"), special(END, "<|im_end|>")],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [cut, bytes]},
        "post_processor": null,
        "decoder": bytes,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false,
            "vocab": vocabulary, "merges": [["h", "e"]],
        },
    });
    fs::write(dir.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let config = json!({"eos_token": "<|im_end|>", "bos_token": null, "chat_template": template});
    fs::write(dir.join("tokenizer_config.json"), config.to_string()).unwrap();
}
