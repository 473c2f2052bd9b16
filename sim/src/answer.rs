//! What a result comes to: the question that it was made for, the answer in words, and what speaks
//! for it, from its numbers and their intervals.
//!
//! Nothing is said that the numbers do not carry. A difference counts where the interval of the paired
//! difference leaves 0 out; where intervals are missing or too wide the answer is that there is none yet.
//! The thresholds are the constants of these modules, and `docs/report.md` lists them.

mod live;
mod loops;
mod plan;
mod run;
mod sweep;
mod tournament;
mod tune;
mod validate;

use crate::report::number;
use crate::report::results::{Kind, Results};
use crate::stats::Estimate;

pub use live::of_live;
pub use loops::{BUSY, Loop, Loops};
pub use plan::of_plan;
pub use sweep::{BLUR, WORTH};
pub use tournament::of_tournament;
pub(crate) use tournament::winners;
pub use tune::of_tune;
pub use validate::of_validation;

/// What is to be known where ratios were fitted to nothing.
const UNCALIBRATED: &str = "Importance ratios and effective samples come from a model of drift that is uncalibrated: nothing \
     was fitted to a run, and the answer does not rest on them.";

/// A question with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What somebody wants to know.
    pub question: String,
    /// The answer, in a sentence or two.
    pub answer: String,
    /// Whether it is one; else it says why there is none.
    pub is_known: bool,
    /// What speaks for it, and what else it means.
    pub because: Vec<String>,
    /// What is to be known before anybody relies on it.
    pub but: Vec<String>,
    /// The row of the result's table that was chosen, where one was.
    pub chosen: Option<usize>,
}

/// The answer of a sweep or of one simulated run.
#[must_use]
pub fn of_results(results: &Results) -> Answer {
    let mut answer = match results.meta.kind {
        Kind::Sweep => sweep::of(results),
        Kind::Run => run::of(results),
    };
    if results.meta.drift.as_deref() == Some("uncalibrated") {
        answer.but.push(UNCALIBRATED.into());
    }
    answer.but.extend(results.meta.about.as_ref().and_then(|about| about.assumptions()));
    answer
}

/// `η = 4`
pub(crate) fn setting(key: &str, value: &str) -> String {
    crate::plan::setting(key, value)
}

/// A mean with the half-width of its interval.
fn with_interval(value: Estimate) -> String {
    number::interval(Some(value.mean), value.half_width)
}

/// The same of a share of 1, as a percentage.
fn percent(value: Estimate) -> String {
    let half = value.half_width.map(|half| half * 100.0);
    match half {
        Some(half) if half > 0.0 => {
            format!("{}%", number::interval(Some(value.mean * 100.0), Some(half)))
        }
        _ => number::percent(Some(value.mean)),
    }
}

/// A sentence: its first letter large, unless it begins with a name, and a full stop at its end.
fn sentence(text: &str) -> String {
    let stop = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    let first = text.split([' ', ':']).next().unwrap_or_default();
    match first.bytes().all(|letter| letter.is_ascii_alphabetic()) {
        true => format!("{}{stop}", upper(text)),
        false => format!("{text}{stop}"),
    }
}

/// The same text with a large letter at its beginning.
fn upper(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Words in a row: `a`, `a and b`, `a, b and c`.
fn joined(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_sentences_and_rows() {
        assert_eq!(sentence("take η = 4"), "Take η = 4.");
        assert_eq!(sentence("η = 2 is as good"), "η = 2 is as good.");
        assert_eq!(sentence("steps_per_hour binds"), "steps_per_hour binds.");
        assert_eq!(sentence(""), ".");
        let words = ["a", "b", "c"].map(str::to_owned);
        assert_eq!((joined(&words), joined(&words[..2])), ("a, b and c".into(), "a and b".into()));
    }

    #[test]
    fn a_share_is_a_percentage_with_its_interval() {
        let share = |half_width| Estimate { mean: 0.1234, half_width, count: 8 };
        assert_eq!(percent(share(Some(0.012))), "12.3 ±1.2%");
        assert_eq!(percent(share(None)), "12.3%");
    }
}
