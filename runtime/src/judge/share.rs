//! A judge for tasks whose answers can be partly right.

use headway_shared::input::{Score, VoteOutcome};

use super::{Case, Judge, Verdict, Vote};

/// Key of a request's `metadata` that holds the expected answer.
const ANSWER: &str = "answer";
const FULL_SCORE: u64 = 1_000_000;

/// The share of the characters of the request's `metadata.answer` that the response has at their
/// places; no vote where the request names no answer. A policy that knows nothing yet is right here
/// and there, so that it can learn from the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share;

impl Share {
    fn score(case: &Case) -> Option<Score> {
        let answer = case.question.metadata.get(ANSWER).filter(|answer| !answer.is_empty())?;
        let right = answer.chars().zip(case.response.chars()).filter(|(a, b)| a == b).count();
        let all = answer.chars().count();
        i32::try_from(FULL_SCORE * right as u64 / all as u64).ok()
    }
}

impl Judge for Share {
    fn vote(&self, case: Case) -> Vote {
        let outcome = Self::score(&case).map_or(VoteOutcome::Invalid, VoteOutcome::Score);
        Box::pin(async move { Verdict { outcome, tokens: 0, judge_version: 0 } })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::Question;

    #[test]
    fn counts_the_characters_that_stand_at_their_places() {
        let score = |answer: Option<&str>, response: &str| {
            let metadata = answer.map(|answer| ("answer".to_owned(), answer.to_owned()));
            let metadata = metadata.into_iter().collect();
            let question = Question { messages: vec![], metadata, prompt: Arc::from([]) };
            let response = response.into();
            Share::score(&Case { question: Arc::new(question), response, next_state: None })
        };
        assert_eq!(score(Some("?47"), "?47"), Some(1_000_000));
        assert_eq!(score(Some("?47"), "?74"), Some(333_333));
        assert_eq!(score(Some("?47"), "47"), Some(0));
        assert_eq!(score(Some("?47"), ""), Some(0));
        assert_eq!(score(Some("✓"), "✓ and more"), Some(1_000_000));
        assert_eq!(score(Some(""), "x"), None);
        assert_eq!(score(None, "x"), None);
    }
}
