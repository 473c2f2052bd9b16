//! A rule as a judge.

use std::sync::Arc;

use headway_shared::rule::{Facts, Rule};

use super::{Case, Judge, Trouble, Verdict, Vote};

impl Judge for Rule {
    fn at_once(&self, case: &Case) -> Option<Verdict> {
        let facts = Facts {
            answer: &case.response,
            prompt: case.question.messages.last().map_or("", |message| &message.content),
            next_state: case.next_state.as_deref(),
            metadata: &case.question.metadata,
        };
        Some(match self.score(&facts) {
            Ok(score) => Verdict::score(score),
            Err(why) => Verdict::none(Trouble::Rule(Arc::new(why))),
        })
    }

    fn vote(&self, case: Case) -> Vote {
        let verdict = self.at_once(&case).unwrap_or(Verdict::none(Trouble::BrokenOff));
        Box::pin(async move { verdict })
    }
}
