//! A judge's rule: a small expression over a turn, for tasks whose answers can be checked.
//!
//! ```text
//! exact
//! matches(answer, "\b4\d\b") and not contains(lower(next_state), "wrong")
//! clamp(1 - abs(number(capture(answer, "= (-?\d+)")) - number(metadata.answer)) / 10, 0, 1)
//! if has(metadata.bonus) then 2 else 1
//! ```
//!
//! An expression is a text, a number, or true or false; which, is known when it is [read](Rule::read),
//! so that nothing but its values can go wrong later. It has no loops and a bounded size, and
//! patterns are matched in linear time: a rule always ends. It gives a score: a number, or 1 for
//! true and 0 for false. Where it can give none, as where there is no number to be read, it says
//! [why](NoScore).
//!
//! | | |
//! |---|---|
//! | texts | `answer`, `next_state`, `prompt`, `metadata.KEY`, `metadata["KEY"]`, `"..."`, `'...'` (a backslash is a backslash) |
//! | of texts | `trim(t)`, `lower(t)`, `capture(t, "pattern")`, `capture(t, "pattern", 2)` |
//! | numbers | `1.5`, `number(t)`, `length(t)`, `agreement(t, u)`, `+ - * /`, `abs(n)`, `min(n, m)`, `max(n, m)`, `clamp(n, low, high)` |
//! | true or false | `exact`, `true`, `false`, `== !=`, `< <= > >=`, `contains(t, u)`, `starts_with(t, u)`, `ends_with(t, u)`, `matches(t, "pattern")`, `has(metadata.KEY)`, `and`, `or`, `not` |
//! | any | `if TRUTH then A else B`; `default(A, B)`: B where A cannot be computed |

mod evaluate;
mod function;
mod lex;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use evaluate::{number, truth};
use parse::{Expression, Parser};

use crate::input::Score;

/// The longest rule, in bytes.
pub const MOST_BYTES: usize = 4096;
/// The most parts (names, texts, numbers, operations) of a rule.
pub const MOST_PARTS: usize = 256;
/// The largest score, and the smallest below 0.
pub const MOST_SCORE: f64 = 2000.0;

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    expression: Expression,
    reads_next_state: bool,
}

/// What is wrong with the text of a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RuleError {
    /// The bytes of the text that it is about.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

/// What a rule judges.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The turn's text.
    pub answer: &'a str,
    /// The message that the turn answers: the last one of its conversation.
    pub prompt: &'a str,
    /// What followed the turn, where that is known.
    pub next_state: Option<&'a str>,
    /// What the turn's request said about itself.
    pub metadata: &'a BTreeMap<String, String>,
}

/// Why a rule gives no score. It names keys of the metadata, and never shows a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoScore {
    /// The request's metadata lacks a key.
    #[error("the request has no metadata.{0}")]
    NoMetadata(String),
    /// Nothing is known to have followed the turn.
    #[error("the turn has no next state")]
    NoNextState,
    /// A text is no number.
    #[error("number(): the text is no number")]
    NotANumber,
    /// A pattern was not found, or its group took no part.
    #[error("capture(): the pattern is not found")]
    NotFound,
    /// Something was divided by 0.
    #[error("a division by 0")]
    DividedByZero,
    /// A number is beyond what can be represented.
    #[error("a number is beyond all bounds")]
    Overflow,
    /// The score is above [`MOST_SCORE`] or below its negative.
    #[error("the score is not between -2000 and 2000")]
    OutOfRange,
}

impl Rule {
    /// The rule `exact`: 1 where the answer is the request's `metadata.answer`, white space around
    /// both aside, else 0.
    #[must_use]
    pub fn exact() -> Self {
        Self { expression: function::exact(), reads_next_state: false }
    }

    /// Reads the text of a rule.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn read(text: &str) -> Result<Self, RuleError> {
        let (expression, reads_next_state) = Parser::read(text)?;
        if let Expression::Text(_) = expression {
            return Err(RuleError {
                at: 0..text.len(),
                message: "the rule gives a text, and a score is a number".to_owned(),
                help: "compare it, as in `answer == metadata.answer`, or read a number from it \
                       with `number(...)`"
                    .to_owned(),
            });
        }
        Ok(Self { expression, reads_next_state })
    }

    /// Whether it asks for what followed the turn.
    #[must_use]
    pub const fn reads_next_state(&self) -> bool {
        self.reads_next_state
    }

    /// The score that it gives, in millionths.
    ///
    /// # Errors
    /// It gives none.
    pub fn score(&self, facts: &Facts<'_>) -> Result<Score, NoScore> {
        let score = match &self.expression {
            Expression::Truth(expression) => f64::from(u8::from(truth(expression, facts)?)),
            Expression::Number(expression) => number(expression, facts)?,
            // No rule is read that gives a text.
            Expression::Text(_) => return Err(NoScore::NotANumber),
        };
        if score.abs() > MOST_SCORE {
            return Err(NoScore::OutOfRange);
        }
        // At most 2e9, which fits.
        Ok((score * 1e6).round() as Score)
    }
}
