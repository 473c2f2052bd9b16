//! What a sample consists of: generated turns, joined to the token sequences they are trained as.
//!
//! A turn goes on with a sequence where its prompt begins with that sequence, id by id: then the
//! ids in between are what its environment or user said, and what was sampled before is what was
//! sampled, never text that was tokenised again. Where no sequence is such a beginning (the client
//! shortened or rewrote the history, a chat template renders an answer otherwise than it was
//! sampled, or two turns were under way side by side), the turn begins a sequence of its own: its
//! tokens were sampled after that prompt and no other, and their log-probabilities belong to it.
//! The sequences of a sample share its score.

use std::sync::Arc;

use headway_shared::core::Sample;

use crate::engine::Token;
use crate::trainer::TrainSample;

/// A generated turn of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which of the sample's sequences it belongs to, from 0.
    pub sequence: u32,
    /// The ids that it adds to this sequence before its own: its whole prompt, where it begins the
    /// sequence.
    pub prompt: Arc<[u32]>,
    /// What was generated.
    pub tokens: Arc<[Token]>,
    /// Its text.
    pub response: Arc<str>,
    /// What followed it.
    pub next_state: Option<Arc<str>>,
}

impl Part {
    /// A turn after `prompt`, which goes on with the longest sequence of `parts` that its prompt
    /// begins with.
    #[must_use]
    pub fn after(parts: &[Self], prompt: &[u32], tokens: Arc<[Token]>, response: Arc<str>) -> Self {
        let sequences = sequences(parts);
        let fitting = (0..sequences).filter_map(|sequence| {
            Some((prompt.len() - rest_of(parts, sequence, prompt)?.len(), sequence))
        });
        let (read, sequence) = fitting.max().unwrap_or((0, sequences));
        Self { sequence, prompt: prompt[read..].into(), tokens, response, next_state: None }
    }
}

/// How many sequences there are.
fn sequences(parts: &[Part]) -> u32 {
    parts.iter().map(|part| part.sequence + 1).max().unwrap_or(0)
}

/// What a prompt has beyond a sequence; `None`: it does not begin with it.
fn rest_of<'a>(parts: &[Part], sequence: u32, prompt: &'a [u32]) -> Option<&'a [u32]> {
    let mut rest = prompt;
    for part in parts.iter().filter(|part| part.sequence == sequence) {
        rest = rest.strip_prefix(&*part.prompt)?;
        let sampled = rest.get(..part.tokens.len())?;
        if sampled.iter().zip(&*part.tokens).any(|(&id, token)| id != token.id) {
            return None;
        }
        rest = &rest[part.tokens.len()..];
    }
    Some(rest)
}

/// A sample as the trainer sees it: one sequence, or several that share its identity, group and
/// score. Only generated tokens carry loss.
pub fn train_samples(sample: &Sample, parts: &[Part]) -> Vec<TrainSample> {
    (0..sequences(parts)).map(|sequence| train_sample(sample, parts, sequence)).collect()
}

fn train_sample(sample: &Sample, parts: &[Part], sequence: u32) -> TrainSample {
    let mut whole = TrainSample {
        id: sample.id,
        group: sample.group,
        tokens: Vec::new(),
        loss_mask: Vec::new(),
        rollout_logprobs: Vec::new(),
        versions: Vec::new(),
        reward: f64::from(sample.score) / 1e6,
        masked: sample.masked,
    };
    for part in parts.iter().filter(|part| part.sequence == sequence) {
        whole.tokens.extend(&*part.prompt);
        whole.tokens.extend(part.tokens.iter().map(|token| token.id));
        let given = part.prompt.len();
        let upto = whole.tokens.len();
        whole.loss_mask.resize(upto - part.tokens.len(), false);
        whole.loss_mask.resize(upto, true);
        whole.rollout_logprobs.extend(std::iter::repeat_n(0.0, given));
        whole.rollout_logprobs.extend(part.tokens.iter().map(|token| token.logprob));
        whole.versions.extend(std::iter::repeat_n(sample.head, given));
        whole.versions.extend(part.tokens.iter().map(|token| token.version));
    }
    whole
}

#[cfg(test)]
mod tests {
    use headway_shared::version::RolloutVersion;
    use proptest::prelude::*;

    use super::*;

    fn tokens(ids: &[u32]) -> Arc<[Token]> {
        let version = RolloutVersion::new(0);
        ids.iter().map(|&id| Token { id, logprob: -0.5, version }).collect()
    }

    /// The turns with these prompts and answers: the sequence of each and the ids it adds.
    fn joined(turns: &[(&[u32], &[u32])]) -> Vec<(u32, Vec<u32>)> {
        let mut parts = Vec::new();
        for (prompt, answer) in turns {
            let part = Part::after(&parts, prompt, tokens(answer), "".into());
            parts.push(part);
        }
        parts.iter().map(|part| (part.sequence, part.prompt.to_vec())).collect()
    }

    #[test]
    fn a_turn_goes_on_where_its_prompt_begins_with_what_was_sampled() {
        let turns: [(&[u32], &[u32]); 3] =
            [(&[1], &[2, 3]), (&[1, 2, 3, 9], &[4]), (&[1, 2, 3, 9, 4], &[5])];
        assert_eq!(joined(&turns), [(0, vec![1]), (0, vec![9]), (0, vec![])]);
    }

    #[test]
    fn a_turn_after_other_ids_begins_a_sequence_of_its_own() {
        // Told again in other ids, shortened, and going on with the first of two.
        let turns: [(&[u32], &[u32]); 4] =
            [(&[1], &[2, 3]), (&[1, 7, 9], &[4]), (&[1, 2], &[5]), (&[1, 2, 3, 8], &[6])];
        let expected = [(0, vec![1]), (1, vec![1, 7, 9]), (2, vec![1, 2]), (0, vec![8])];
        assert_eq!(joined(&turns), expected);
    }

    #[test]
    fn of_two_turns_side_by_side_the_next_goes_on_with_the_one_it_has_read() {
        let turns: [(&[u32], &[u32]); 3] = [(&[1], &[2]), (&[1], &[3]), (&[1, 3, 9], &[4])];
        assert_eq!(joined(&turns), [(0, vec![1]), (1, vec![1]), (1, vec![9])]);
    }

    proptest! {
        /// Whatever the prompts: each turn's tokens stand behind exactly its prompt.
        #[test]
        fn every_turn_is_trained_after_the_prompt_it_was_sampled_after(
            turns in prop::collection::vec(
                (prop::collection::vec(0..2_u32, 0..6), prop::collection::vec(0..2_u32, 1..3)),
                1..8,
            ),
        ) {
            let mut parts: Vec<Part> = Vec::new();
            for (prompt, answer) in &turns {
                let part = Part::after(&parts, prompt, tokens(answer), "".into());
                let mut before: Vec<u32> = Vec::new();
                for earlier in parts.iter().filter(|p| p.sequence == part.sequence) {
                    before.extend(&*earlier.prompt);
                    before.extend(earlier.tokens.iter().map(|token| token.id));
                }
                before.extend(&*part.prompt);
                prop_assert_eq!(&before, prompt);
                parts.push(part);
            }
        }
    }
}
