//! A rule as a judge.

use std::sync::Arc;

use headway_shared::rule::{Facts, Rule};

use super::{Case, Judge, Trouble, Verdict, Vote};

impl Judge for Rule {
    fn vote(&self, case: Case) -> Vote {
        let facts = Facts {
            answer: &case.response,
            prompt: case.question.messages.last().map_or("", |message| &message.content),
            next_state: case.next_state.as_deref(),
            metadata: &case.question.metadata,
        };
        let verdict = match self.score(&facts) {
            Ok(score) => Verdict::score(score),
            Err(why) => Verdict::none(Trouble::Rule(Arc::new(why))),
        };
        Box::pin(async move { verdict })
    }
}
