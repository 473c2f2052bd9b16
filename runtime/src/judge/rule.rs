//! A judge that follows a rule: for tasks whose answers can be checked.

use headway_shared::input::VoteOutcome;
use regex::Regex;

use super::{Case, Judge, Verdict, Vote};

/// Key of a request's `metadata` that holds the expected answer.
const ANSWER: &str = "answer";
const FULL_SCORE: i32 = 1_000_000;

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule(Law);

#[derive(Clone, Debug)]
enum Law {
    Exact,
    Response(Regex),
    NextState(Regex),
}

/// The pattern of a rule is none.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the pattern of the judge's rule: {0}")]
pub struct RuleError(#[from] regex::Error);

impl Rule {
    /// 1 where the response is the `answer` of the request's `metadata`, white space around both
    /// aside, else 0; no vote where the request names no answer.
    #[must_use]
    pub const fn exact() -> Self {
        Self(Law::Exact)
    }

    /// 1 where the pattern is found in the response, else 0.
    ///
    /// # Errors
    /// The text is no regular expression.
    pub fn response(pattern: &str) -> Result<Self, RuleError> {
        Ok(Self(Law::Response(Regex::new(pattern)?)))
    }

    /// 1 where the pattern is found in what followed the turn, else 0; no vote where nothing did.
    ///
    /// # Errors
    /// The text is no regular expression.
    pub fn next_state(pattern: &str) -> Result<Self, RuleError> {
        Ok(Self(Law::NextState(Regex::new(pattern)?)))
    }

    fn holds(&self, case: &Case) -> Option<bool> {
        match &self.0 {
            Law::Exact => {
                let answer = case.question.metadata.get(ANSWER)?;
                Some(case.response.trim() == answer.trim())
            }
            Law::Response(pattern) => Some(pattern.is_match(&case.response)),
            Law::NextState(pattern) => Some(pattern.is_match(case.next_state.as_deref()?)),
        }
    }
}

impl Judge for Rule {
    fn vote(&self, case: Case) -> Vote {
        let outcome = match self.holds(&case) {
            Some(true) => VoteOutcome::Score(FULL_SCORE),
            Some(false) => VoteOutcome::Score(0),
            None => VoteOutcome::Invalid,
        };
        Box::pin(async move { Verdict { outcome, tokens: 0, judge_version: 0 } })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::Question;

    fn case(response: &str, answer: Option<&str>, next_state: Option<&str>) -> Case {
        let metadata = answer.map(|answer| ("answer".to_owned(), answer.to_owned()));
        let metadata = metadata.into_iter().collect();
        Case {
            question: Arc::new(Question { messages: vec![], metadata, prompt: Arc::from([]) }),
            response: response.into(),
            next_state: next_state.map(Arc::from),
        }
    }

    #[test]
    fn an_exact_rule_compares_with_the_answer_that_the_request_named() {
        let rule = Rule::exact();
        assert_eq!(rule.holds(&case(" 42\n", Some("42"), None)), Some(true));
        assert_eq!(rule.holds(&case("43", Some("42"), None)), Some(false));
        assert_eq!(rule.holds(&case("42", None, None)), None);
    }

    #[test]
    fn a_pattern_is_looked_for_in_the_response_or_in_what_followed() {
        let found = Rule::response(r"\b4\d\b").unwrap();
        assert_eq!(found.holds(&case("it is 42.", None, None)), Some(true));
        assert_eq!(found.holds(&case("it is 142.", None, None)), Some(false));
        let thanked = Rule::next_state("(?i)thanks").unwrap();
        assert_eq!(thanked.holds(&case("x", None, Some("Thanks!"))), Some(true));
        assert_eq!(thanked.holds(&case("thanks", None, Some("no"))), Some(false));
        assert_eq!(thanked.holds(&case("thanks", None, None)), None);
        assert!(Rule::response("(").is_err());
    }
}
