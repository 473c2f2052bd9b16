//! A streamed answer of `/generate`, piece by piece.

use headway_shared::input::Finish;
use headway_shared::version::RolloutVersion;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::engine::Token;
use crate::engine::remote::lines::{Lines, LongLine};
use crate::engine::remote::{self, Piece, version_of};

/// Why a stream cannot be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    LongLine(#[from] LongLine),
    #[error("a piece is no answer of /generate: {0}")]
    Garbage(&'static str),
    #[error("the server reports an error of code {0}")]
    Error(String),
    #[error("tokens came without the label of their weights (`weight_version`)")]
    Unlabelled,
    #[error(
        "tokens came with the label {0:?}, which is none of Headway's: who updated the server?"
    )]
    Foreign(String),
    #[error("{listed} log-probabilities came for {counted} tokens, of which {known} were known")]
    Count { known: usize, listed: usize, counted: usize },
    #[error("the turn ended with {0:?}")]
    Finish(String),
}

#[derive(Deserialize)]
struct Chunk {
    meta_info: Option<Meta>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Meta {
    finish_reason: Option<Reason>,
    weight_version: Option<String>,
    completion_tokens: Option<usize>,
    #[serde(default)]
    output_token_logprobs: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
struct Reason {
    #[serde(rename = "type")]
    kind: String,
}

/// Log-probability (JSON has none that is no number: null), id, and the text, where it was asked
/// for.
#[derive(Deserialize)]
struct Entry(
    Option<f32>,
    u32,
    #[serde(default)]
    #[expect(dead_code, reason = "it is there or not, and skipped")]
    Option<IgnoredAny>,
);

/// Reads a stream.
#[derive(Debug, Default)]
pub(in crate::engine) struct Reader {
    lines: Lines,
    /// Tokens that came.
    known: usize,
}

impl remote::Reader for Reader {
    fn push(&mut self, bytes: &[u8]) -> Result<Vec<Piece>, String> {
        self.pieces(bytes).map_err(|broken| broken.to_string())
    }
}

impl Reader {
    fn pieces(&mut self, bytes: &[u8]) -> Result<Vec<Piece>, Broken> {
        let lines = self.lines.push(bytes)?;
        lines.iter().map(|data| self.piece(data)).collect()
    }

    fn piece(&mut self, data: &str) -> Result<Piece, Broken> {
        // Neither the piece nor the server's message is shown: they hold what was said.
        let chunk: Chunk =
            serde_json::from_str(data).map_err(|_| Broken::Garbage("it is not of that form"))?;
        if let Some(error) = chunk.error {
            return Err(Broken::Error(error["code"].to_string()));
        }
        let meta = chunk.meta_info.ok_or(Broken::Garbage("it has no `meta_info`"))?;
        let finish = match meta.finish_reason.as_ref().map(|reason| reason.kind.as_str()) {
            None => None,
            Some("stop") => Some(Finish::Stop),
            Some("length") => Some(Finish::Length),
            Some("abort") => Some(Finish::Aborted),
            Some(other) => return Err(Broken::Finish(other.to_owned())),
        };
        let entries = meta.output_token_logprobs.unwrap_or_default();
        // A turn that is aborted before it began has neither tokens nor their number.
        let counted = meta.completion_tokens.unwrap_or(if finish == Some(Finish::Aborted) {
            self.known
        } else {
            entries.len()
        });
        let fresh = self.fresh(&entries, counted)?;
        if fresh.is_empty() {
            return Ok(Piece { finish, ..Piece::default() });
        }
        let label = meta.weight_version.ok_or(Broken::Unlabelled)?;
        let version = version_of(&label).ok_or(Broken::Foreign(label))?;
        let version = RolloutVersion::stamped_by(version);
        let tokens = fresh.iter().map(|&Entry(logprob, id, _)| {
            // Rounding can put a certain token above 0.
            let logprob = logprob.map_or(f32::NAN, |logprob| logprob.min(0.0));
            Token { id, logprob, version }
        });
        let tokens: Vec<Token> = tokens.collect();
        self.known = counted;
        Ok(Piece { at: None, tokens, finish })
    }

    /// The entries that were not known. Servers list all tokens of the turn in each piece, or with
    /// `--incremental-streaming-output` its new ones alone; which, their number tells. Anything else
    /// is not made to fit: log-probabilities that belong to other tokens look like drift.
    fn fresh<'e>(&self, entries: &'e [Entry], counted: usize) -> Result<&'e [Entry], Broken> {
        let (known, listed) = (self.known, entries.len());
        if listed == counted && known <= counted {
            Ok(&entries[known..])
        } else if known + listed == counted {
            Ok(entries)
        } else if counted == known && listed == 0 {
            Ok(&[])
        } else {
            Err(Broken::Count { known, listed, counted })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn piece(ids: &[u32], counted: usize, label: &str, finish: Option<&str>) -> String {
        let list: Vec<Value> = ids.iter().map(|id| json!([-0.5, id, null])).collect();
        let value = json!({"text": "", "meta_info": {
            "finish_reason": finish.map(|kind| json!({"type": kind})),
            "weight_version": label,
            "completion_tokens": counted,
            "output_token_logprobs": list,
        }});
        format!("data: {value}\n\n")
    }

    fn read(text: &str) -> Result<Vec<(u32, u32)>, Broken> {
        let mut reader = Reader::default();
        let mut tokens = Vec::new();
        // However the connection cuts it.
        for part in text.as_bytes().chunks(7) {
            for piece in reader.pieces(part)? {
                tokens.extend(piece.tokens.iter().map(|token| (token.id, token.version.number())));
            }
        }
        Ok(tokens)
    }

    #[test]
    fn tokens_are_the_same_whether_pieces_hold_all_or_the_new_ones() {
        let all = [piece(&[1, 2], 2, "headway-3", None), piece(&[1, 2, 9], 3, "headway-4", None)];
        let new = [piece(&[1, 2], 2, "headway-3", None), piece(&[9], 3, "headway-4", None)];
        assert_eq!(read(&all.concat()).unwrap(), [(1, 3), (2, 3), (9, 4)]);
        assert_eq!(read(&new.concat()).unwrap(), [(1, 3), (2, 3), (9, 4)]);
    }

    #[test]
    fn log_probabilities_that_do_not_fit_their_tokens_are_never_padded() {
        let text = piece(&[1, 2], 2, "headway-3", None) + &piece(&[9, 8], 3, "headway-3", None);
        assert_eq!(read(&text), Err(Broken::Count { known: 2, listed: 2, counted: 3 }));
        let none = piece(&[], 2, "headway-3", None);
        assert_eq!(read(&none), Err(Broken::Count { known: 0, listed: 0, counted: 2 }));
    }

    #[test]
    fn a_label_is_read_and_never_guessed() {
        let foreign = piece(&[1], 1, "default", None);
        assert_eq!(read(&foreign), Err(Broken::Foreign("default".to_owned())));
        let none =
            r#"data: {"meta_info": {"completion_tokens": 1, "output_token_logprobs": [[-1, 5]]}}"#;
        assert_eq!(read(&format!("{none}\n")), Err(Broken::Unlabelled));
    }

    #[test]
    fn an_abort_keeps_what_was_there() {
        let mut reader = Reader::default();
        reader.pieces(piece(&[1], 1, "headway-0", None).as_bytes()).unwrap();
        let pieces =
            reader.pieces(piece(&[1, 2], 2, "headway-0", Some("abort")).as_bytes()).unwrap();
        assert_eq!((pieces[0].tokens.len(), pieces[0].finish), (1, Some(Finish::Aborted)));
        let bare = "data: {\"meta_info\": {\"finish_reason\": {\"type\": \"abort\"}}}\n";
        let pieces = reader.pieces(bare.as_bytes()).unwrap();
        assert_eq!((pieces[0].tokens.len(), pieces[0].finish), (0, Some(Finish::Aborted)));
    }

    #[test]
    fn garbage_is_named() {
        assert!(matches!(read("data: {\"text\": 1\n"), Err(Broken::Garbage(_))));
        assert!(matches!(read("data: {}\n"), Err(Broken::Garbage(_))));
        let error = "data: {\"error\": {\"message\": \"my secret prompt\", \"code\": 400}}\n";
        assert_eq!(read(error), Err(Broken::Error("400".to_owned())), "its message is not shown");
    }

    #[test]
    fn a_log_probability_that_is_no_number_stays_none() {
        let text = piece(&[5], 1, "headway-0", None).replace("-0.5", "null");
        let pieces = Reader::default().pieces(text.as_bytes()).unwrap();
        assert!(pieces[0].tokens[0].logprob.is_nan());
    }

    proptest::proptest! {
        /// What it believes has a version, and a log-probability for each token.
        #[test]
        fn no_bytes_of_a_server_make_it_panic(
            at in 0..400_usize,
            gone in 0..60_usize,
            new in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40),
            cut in 1..64_usize,
        ) {
            let whole = piece(&[1, 2], 2, "headway-3", None) + &piece(&[9], 3, "headway-4", Some("stop"));
            let mut bytes = whole.into_bytes();
            let at = at.min(bytes.len());
            let end = (at + gone).min(bytes.len());
            drop(bytes.splice(at..end, new));
            let mut reader = Reader::default();
            for part in bytes.chunks(cut) {
                let Ok(pieces) = reader.pieces(part) else { break };
                for token in pieces.iter().flat_map(|piece| &piece.tokens) {
                    proptest::prop_assert!(token.logprob.is_nan() || token.logprob <= 0.0);
                }
            }
        }
    }
}
