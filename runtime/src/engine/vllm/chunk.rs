//! A streamed answer of `/inference/v1/generate`, piece by piece.

use headway_shared::input::Finish;
use headway_shared::time::Time;
use headway_shared::version::RolloutVersion;
use serde::Deserialize;
use serde_json::Value;

use crate::engine::Token;
use crate::engine::remote::lines::{Lines, LongLine};
use crate::engine::remote::{self, Piece, Standing, version_of};

/// Why a stream cannot be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    LongLine(#[from] LongLine),
    #[error("a piece is no answer of /inference/v1/generate: {0}")]
    Garbage(&'static str),
    #[error("the server reports an error of code {0}")]
    Error(String),
    #[error("{logprobs} log-probabilities came for {tokens} tokens")]
    Count { tokens: usize, logprobs: usize },
    #[error("a log-probability is that of another token")]
    OtherToken,
    #[error("the turn ended with {0:?}")]
    Finish(String),
    #[error("the turn ended without the labels of its weights (`weight_versions`)")]
    Unlabelled,
    #[error(
        "tokens came with the label {0:?}, which is none of Headway's: who updated the server?"
    )]
    Foreign(String),
    #[error("the labels are of other tokens than those that came")]
    Spans,
    #[error("tokens of version {stamped} were made with version {said}: who updated the server?")]
    Stamp { stamped: u32, said: u32 },
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    token_ids: Option<Vec<u32>>,
    logprobs: Option<Logprobs>,
    finish_reason: Option<String>,
    weight_versions: Option<Vec<Span>>,
}

#[derive(Deserialize)]
struct Logprobs {
    content: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    token_id: u32,
    /// JSON has none that is no number: null.
    logprob: Option<f32>,
}

#[derive(Deserialize)]
struct Span {
    version: String,
    start: usize,
    end: usize,
}

/// Where vLLM has no log-probability of a token, it sends this or less.
const NONE: f32 = -9000.0;

/// Reads a stream.
#[derive(Debug)]
pub(in crate::engine) struct Reader {
    lines: Lines,
    standing: Standing,
    /// The stamps that were given.
    stamped: Vec<RolloutVersion>,
    /// What came later, and when: its versions are known at the end.
    kept: Vec<(Time, Vec<(u32, f32)>)>,
}

impl remote::Reader for Reader {
    fn push(&mut self, bytes: &[u8]) -> Result<Vec<Piece>, String> {
        self.pieces(bytes).map_err(|broken| broken.to_string())
    }
}

impl Reader {
    pub(super) fn new(standing: Standing) -> Self {
        Self { lines: Lines::default(), standing, stamped: Vec::new(), kept: Vec::new() }
    }

    fn pieces(&mut self, bytes: &[u8]) -> Result<Vec<Piece>, Broken> {
        let mut pieces = Vec::new();
        for data in self.lines.push(bytes)? {
            self.piece(&data, &mut pieces)?;
        }
        Ok(pieces)
    }

    fn piece(&mut self, data: &str, pieces: &mut Vec<Piece>) -> Result<(), Broken> {
        // Neither the piece nor the server's message is shown: they hold what was said.
        let chunk: Chunk =
            serde_json::from_str(data).map_err(|_| Broken::Garbage("it is not of that form"))?;
        if let Some(error) = chunk.error {
            return Err(Broken::Error(error["code"].to_string()));
        }
        for choice in chunk.choices {
            let finish = match choice.finish_reason.as_deref() {
                None => None,
                Some("stop") => Some(Finish::Stop),
                Some("length") => Some(Finish::Length),
                Some("abort") => Some(Finish::Aborted),
                Some(other) => return Err(Broken::Finish(other.to_owned())),
            };
            self.take(tokens(&choice)?, pieces);
            if finish.is_some() {
                self.end(choice.weight_versions, pieces)?;
                pieces.push(Piece { finish, ..Piece::default() });
            }
        }
        Ok(())
    }

    /// Stamps tokens, or keeps them back.
    fn take(&mut self, tokens: Vec<(u32, f32)>, pieces: &mut Vec<Piece>) {
        if tokens.is_empty() {
            return;
        }
        let certain = self.standing.certain().filter(|_| self.kept.is_empty());
        let Some(deploy) = certain else {
            return self.kept.push((self.standing.now(), tokens));
        };
        let version = RolloutVersion::stamped_by(deploy);
        self.stamped.resize(self.stamped.len() + tokens.len(), version);
        let tokens = tokens.into_iter().map(|(id, logprob)| Token { id, logprob, version });
        pieces.push(Piece { tokens: tokens.collect(), ..Piece::default() });
    }

    /// The turn is over: what its labels say of the stamps that were given, and of what was kept back.
    fn end(&mut self, spans: Option<Vec<Span>>, pieces: &mut Vec<Piece>) -> Result<(), Broken> {
        let count =
            self.stamped.len() + self.kept.iter().map(|(_, part)| part.len()).sum::<usize>();
        let spans = match spans {
            None if count > 0 => return Err(Broken::Unlabelled),
            spans => spans.unwrap_or_default(),
        };
        let versions = versions(spans, count)?;
        for (stamped, said) in self.stamped.iter().zip(&versions) {
            if stamped != said {
                let (stamped, said) = (stamped.number(), said.number());
                return Err(Broken::Stamp { stamped, said });
            }
        }
        let mut rest = versions.into_iter().skip(self.stamped.len());
        for (at, part) in std::mem::take(&mut self.kept) {
            let tokens = part.into_iter().zip(rest.by_ref());
            let tokens =
                tokens.map(|((id, logprob), version)| Token { id, logprob, version }).collect();
            pieces.push(Piece { at: Some(at), tokens, finish: None });
        }
        Ok(())
    }
}

/// The version of each of a turn's tokens. The spans must be of all of them, in order.
fn versions(spans: Vec<Span>, count: usize) -> Result<Vec<RolloutVersion>, Broken> {
    let mut versions: Vec<RolloutVersion> = Vec::new();
    for span in spans {
        if span.start != versions.len() || span.end < span.start || span.end > count {
            return Err(Broken::Spans);
        }
        let version = version_of(&span.version).ok_or(Broken::Foreign(span.version))?;
        versions.resize(span.end, RolloutVersion::stamped_by(version));
    }
    if versions.len() == count { Ok(versions) } else { Err(Broken::Spans) }
}

/// Ids with their log-probabilities. What does not fit is not made to fit: log-probabilities that
/// belong to other tokens look like drift.
fn tokens(choice: &Choice) -> Result<Vec<(u32, f32)>, Broken> {
    let ids = choice.token_ids.as_deref().unwrap_or_default();
    let content = choice.logprobs.as_ref().and_then(|logprobs| logprobs.content.as_deref());
    let entries = content.unwrap_or_default();
    if ids.len() != entries.len() {
        return Err(Broken::Count { tokens: ids.len(), logprobs: entries.len() });
    }
    let pairs = ids.iter().zip(entries).map(|(&id, entry)| {
        if entry.token_id != id {
            return Err(Broken::OtherToken);
        }
        let logprob = entry.logprob.filter(|logprob| *logprob > NONE);
        // Rounding can put a certain token above 0.
        Ok((id, logprob.map_or(f32::NAN, |logprob| logprob.min(0.0))))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests;
