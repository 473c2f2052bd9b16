use headway_shared::id::RequestId;
use headway_shared::input::Finish;

use crate::engine::{Generate, Sampling};
use crate::model::Shape;

/// A turn being generated.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) request: RequestId,
    pub(super) attempt: u32,
    pub(super) sampling: Sampling,
    /// Its row in the cache; `None`: it waits.
    pub(super) slot: Option<usize>,
    /// The prompt, then what was generated.
    tokens: Vec<u32>,
    /// Where the generated ones begin.
    prompt: usize,
}

impl Sequence {
    pub(super) fn new(generate: Generate) -> Self {
        let mut tokens = generate.prompt.to_vec();
        tokens.extend(generate.resume.iter().map(|token| token.id));
        Self {
            request: generate.request,
            attempt: generate.attempt,
            sampling: generate.sampling,
            slot: None,
            tokens,
            prompt: generate.prompt.len(),
        }
    }

    pub(super) fn is(&self, request: RequestId, attempt: u32) -> bool {
        self.request == request && self.attempt == attempt
    }

    pub(super) fn all(&self) -> &[u32] {
        &self.tokens
    }

    /// Those whose keys and values the cache holds, while it runs: all but the newest, which the
    /// next step feeds.
    pub(super) fn cached(&self) -> &[u32] {
        &self.tokens[..self.tokens.len() - 1]
    }

    pub(super) fn last(&self) -> u32 {
        self.tokens[self.tokens.len() - 1]
    }

    /// How many tokens were generated.
    pub(super) fn drawn(&self) -> usize {
        self.tokens.len() - self.prompt
    }

    pub(super) fn push(&mut self, id: u32) {
        self.tokens.push(id);
    }

    /// How it has ended, if it has: failed where the model cannot take it.
    pub(super) fn finished(&self, shape: &Shape) -> Option<Finish> {
        let generated = &self.tokens[self.prompt..];
        let ends = |stop: &Vec<u32>| !stop.is_empty() && generated.ends_with(stop);
        if !generated.is_empty() && self.sampling.stop.iter().any(ends) {
            return Some(Finish::Stop);
        }
        let positions = usize::try_from(shape.positions).unwrap_or(0);
        let full =
            self.tokens.len() >= positions || generated.len() >= self.sampling.max_tokens as usize;
        let known = self.tokens.iter().all(|&id| i64::from(id) < shape.vocab);
        if self.prompt == 0 || self.prompt >= positions || !known {
            Some(Finish::Failed)
        } else if full {
            Some(Finish::Length)
        } else {
            None
        }
    }
}
