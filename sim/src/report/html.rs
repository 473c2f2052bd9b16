//! A result as one page that needs nothing beside it: the question and its answer first, then plots,
//! tables, and where it comes from.
//!
//! The page is the same bytes wherever and on however many threads it is made. It fetches nothing: its
//! style and its script are in it, and its policy forbids everything else. Every text is escaped.

mod figure;
mod live;
mod metrics;
mod page;
mod search;
mod single;
mod sweep;
mod table;
mod tournament;
mod validation;

use super::plot::Picture;
use super::results::{Kind, Results};
use crate::answer;

pub use live::{Live, of_live};
pub use search::{of_plan, of_tune};
pub use tournament::of_tournament;
pub use validation::of_validation;

/// The name of the page beside a result's other files.
pub const FILE: &str = "report.html";

/// The page of a sweep, or of one simulated run.
#[must_use]
pub fn of_results(results: &Results, pictures: &[Picture]) -> String {
    let answer = answer::of_results(results);
    match results.meta.kind {
        Kind::Sweep => sweep::page(results, &answer, pictures),
        Kind::Run => single::page(results, &answer, pictures),
    }
}

/// Text inside an element or a quoted attribute.
fn escape(text: &str) -> String {
    super::plot::escape(text)
}

#[cfg(test)]
mod tests;
