//! Which policy generated which tokens of each sample.

use std::collections::BTreeMap;

use headway_shared::action::{Action, Reply};
use headway_shared::id::{RequestId, SampleId};
use headway_shared::input::{Finish, Input, Segment};

/// The segments of samples that have left no ledger yet.
///
/// A sample's are those of its turns, in the order in which they ended; a turn's are those that its
/// last attempt reports, for a resumed one reports the tokens of those before it again.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments {
    /// The sample and the attempt of each turn that is being generated for one.
    turns: BTreeMap<RequestId, (SampleId, u32)>,
    samples: BTreeMap<SampleId, Vec<Segment>>,
}

impl Segments {
    /// The core handled `input`, and these actions came of it.
    pub(super) fn observe(&mut self, input: &Input, actions: &[Action]) {
        if let Input::GenerationEnded { request, attempt, finish, segments, .. } = input
            && let Some(&(sample, current)) = self.turns.get(request)
            && current == *attempt
        {
            let kept = Action::Reply { request: *request, reply: Reply::Partial };
            let whole = match finish {
                Finish::Stop | Finish::Length => true,
                Finish::Aborted => actions.contains(&kept),
                Finish::Failed => false,
            };
            if whole {
                self.turns.remove(request);
                // A sample that is gone has no more use for them.
                if let Some(all) = self.samples.get_mut(&sample) {
                    append(all, segments);
                }
            }
        }
        if let Input::ClientLeft { request } = input {
            self.turns.remove(request);
        }
        for action in actions {
            match *action {
                Action::StartGeneration { request, attempt, sample: Some(sample), .. } => {
                    self.turns.insert(request, (sample, attempt));
                    self.samples.entry(sample).or_default();
                }
                // What goes on for a client that reads along is for no sample any more.
                Action::StartGeneration { request, .. } | Action::Reply { request, .. } => {
                    self.turns.remove(&request);
                }
                _ => {}
            }
        }
    }

    /// The segments of a sample, which is forgotten.
    pub(super) fn take(&mut self, sample: SampleId) -> Vec<Segment> {
        self.samples.remove(&sample).unwrap_or_default()
    }
}

/// Puts a turn's segments behind those before it; neighbours of one version become one.
fn append(all: &mut Vec<Segment>, more: &[Segment]) {
    for segment in more.iter().filter(|segment| segment.tokens > 0) {
        match all.last_mut().filter(|last| last.version == segment.version) {
            Some(last) => last.tokens = last.tokens.saturating_add(segment.tokens),
            None => all.push(*segment),
        }
    }
}
