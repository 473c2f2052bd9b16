//! Ids to text as `tokenizers` does it for byte-level vocabularies, without a text for each token.

use tokenizers::Tokenizer as Model;

use super::bytes::bytes;
use crate::utf8;

/// The bytes of all tokens.
#[derive(Debug)]
pub(super) struct Decoder {
    bytes: Vec<u8>,
    /// Where those of each id end; none of a special token are shown.
    ends: Vec<u32>,
}

impl Decoder {
    /// For this tokenizer, if it decodes bytes alone.
    pub(super) fn of(model: &Model) -> Option<Self> {
        let decoder = serde_json::to_value(model.get_decoder()?).ok()?;
        if decoder["type"] != "ByteLevel" {
            return None;
        }
        let byte = bytes();
        let special = model.get_added_vocabulary();
        let mut made = Self { bytes: Vec::new(), ends: Vec::new() };
        // Where numbers are left out, there are higher ones, which the library is asked for.
        for id in 0..u32::try_from(model.get_vocab_size(true)).ok()? {
            let token = model.id_to_token(id).filter(|token| !special.is_special_token(token));
            let token = token.unwrap_or_default();
            match token.chars().map(&byte).collect::<Option<Vec<u8>>>() {
                Some(bytes) => made.bytes.extend(bytes),
                None => made.bytes.extend(token.bytes()),
            }
            made.ends.push(u32::try_from(made.bytes.len()).ok()?);
        }
        Some(made)
    }

    /// The text of ids without special tokens; `None`: the library is to say it.
    pub(super) fn text(&self, ids: &[u32]) -> Option<String> {
        let mut text = Vec::with_capacity(ids.len() * 4);
        for &id in ids {
            let id = id as usize;
            let end = *self.ends.get(id)? as usize;
            let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
            text.extend_from_slice(&self.bytes[start..end]);
        }
        Some(utf8::lossy(text))
    }
}
