//! What is in flight, and which ids were given out: what a restart has to know beyond the core.

use std::collections::{BTreeMap, BTreeSet};

use headway_shared::action::Action;
use headway_shared::id::{PublicationId, ReplicaId, RequestId, StepId, VoteId};
use headway_shared::input::{EnvironmentOutcome, Input, Operator, WeightsEvent};
use headway_shared::input::{Finish, Segments, VoteOutcome};
use serde::{Deserialize, Serialize};

use crate::store::StoreError;

/// A request that has not been answered, or still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    /// Its attempt, and where it runs.
    running: Option<(u32, ReplicaId)>,
    /// Its client wants no answer any more.
    answered: bool,
}

/// Follows inputs and actions as they are recorded, so that after a crash the tail of the record
/// says what was under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Book {
    pub(crate) next_request: u64,
    pub(crate) next_session: u64,
    pub(crate) next_group: u64,
    /// An operator has paused the run.
    pub(crate) paused: bool,
    /// The step that is training.
    pub(crate) step: Option<StepId>,
    /// The publication that is being saved.
    pub(crate) saving: Option<PublicationId>,
    requests: BTreeMap<RequestId, Open>,
    votes: BTreeSet<VoteId>,
    replicas: BTreeSet<ReplicaId>,
}

impl Book {
    /// As it is stored with a snapshot: JSON, of which a later build may know more.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Numbers and words have a form as JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// As it was stored behind so many inputs; the first records had it in postcard.
    pub(crate) fn from_bytes(bytes: &[u8], inputs: u64) -> Result<Self, StoreError> {
        let json = serde_json::from_slice(bytes).ok();
        let read = json.or_else(|| postcard::from_bytes(bytes).ok());
        let place = || format!("the snapshot behind {inputs} inputs, in what was in flight");
        read.ok_or_else(|| StoreError::Damaged { place: place() })
    }

    /// The core has handled an input.
    pub(crate) fn observe(&mut self, input: &Input, actions: &[Action]) {
        self.note(input);
        actions.iter().for_each(|action| self.act(*action));
        if let Input::ClientLeft { request } = input {
            self.answered(*request);
        }
    }

    fn note(&mut self, input: &Input) {
        match input {
            Input::Request(request) => {
                self.requests.insert(request.request, Open::default());
                self.next_request = self.next_request.max(request.request.0 + 1);
                self.next_session = self.next_session.max(request.session.0 + 1);
                let group = request.group.map_or(0, |group| group.0 + 1);
                self.next_group = self.next_group.max(group);
            }
            Input::GenerationEnded { request, attempt, .. } => self.stopped(*request, *attempt),
            Input::VoteEnded { vote, .. } => drop(self.votes.remove(vote)),
            Input::StepEnded { step, .. } if self.step == Some(*step) => self.step = None,
            Input::Restored { .. } => self.step = None,
            Input::Weights {
                publication,
                event: WeightsEvent::Saved | WeightsEvent::SaveFailed,
            } if self.saving == Some(*publication) => {
                self.saving = None;
            }
            Input::ReplicaUp { replica, .. } => drop(self.replicas.insert(*replica)),
            Input::ReplicaDown { replica } => self.replica_down(*replica),
            Input::Operator(Operator::Pause) => self.paused = true,
            Input::Operator(Operator::Resume) => self.paused = false,
            _ => {}
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::StartGeneration { request, attempt, replica, .. } => {
                self.requests.entry(request).or_default().running = Some((attempt, replica));
            }
            Action::Refuse { request, .. } | Action::Reply { request, .. } => {
                self.answered(request);
            }
            Action::StartVote { vote, .. } => drop(self.votes.insert(vote)),
            Action::StartStep { step, .. } => self.step = Some(step),
            Action::CancelStep { .. } => self.step = None,
            Action::Publish { publication, .. } => self.saving = Some(publication),
            _ => {}
        }
    }

    fn stopped(&mut self, request: RequestId, attempt: u32) {
        let Some(open) = self.requests.get_mut(&request) else { return };
        if open.running.is_some_and(|(running, _)| running == attempt) {
            open.running = None;
            if open.answered {
                self.requests.remove(&request);
            }
        }
    }

    fn answered(&mut self, request: RequestId) {
        let Some(open) = self.requests.get_mut(&request) else { return };
        open.answered = true;
        if open.running.is_none() {
            self.requests.remove(&request);
        }
    }

    fn replica_down(&mut self, replica: ReplicaId) {
        self.replicas.remove(&replica);
        self.requests.retain(|_, open| {
            if open.running.is_some_and(|(_, place)| place == replica) {
                open.running = None;
            }
            open.running.is_some() || !open.answered
        });
    }

    /// The inputs that end all turns and replicas: first who only waits, so that nothing is started
    /// for them when a place becomes free.
    pub(crate) fn turn_ends(&self) -> Vec<Input> {
        let waiting = self.requests.iter().filter(|(_, open)| open.running.is_none());
        let left = waiting.map(|(&request, _)| Input::ClientLeft { request });
        let failed = self.requests.iter().filter_map(|(&request, open)| {
            let (attempt, _) = open.running?;
            let (finish, segments) = (Finish::Failed, Segments::new());
            Some(Input::GenerationEnded { request, attempt, finish, first_token: None, segments })
        });
        let down = self.replicas.iter().map(|&replica| Input::ReplicaDown { replica });
        left.chain(failed).chain(down).collect()
    }

    /// How many requests are open.
    pub(crate) fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Forgets answered requests whose end will not come.
    pub(crate) fn forget(&mut self, over: impl Fn(RequestId) -> bool) {
        self.requests.retain(|&request, open| !open.answered || !over(request));
    }

    /// The replicas whose processes are there.
    pub(crate) fn replicas(&self) -> impl Iterator<Item = ReplicaId> {
        self.replicas.iter().copied()
    }

    /// The inputs that end all work in flight but for the train step, of which the trainer knows
    /// more: what a crash leaves.
    pub(crate) fn ends(&self) -> Vec<Input> {
        let mut ends = self.turn_ends();
        let (outcome, tokens, judge_version) = (VoteOutcome::Failed, 0, 0);
        let votes = self.votes.iter();
        ends.extend(votes.map(|&vote| Input::VoteEnded { vote, outcome, tokens, judge_version }));
        let event = WeightsEvent::SaveFailed;
        ends.extend(self.saving.map(|publication| Input::Weights { publication, event }));
        ends
    }
}

/// The failure input of an environment: this driver hosts none.
pub(crate) fn no_environment(action: Action) -> Option<Input> {
    match action {
        Action::ResetEnvironment { session, attempt }
        | Action::StepEnvironment { session, attempt } => {
            Some(Input::EnvironmentEnded { session, attempt, outcome: EnvironmentOutcome::Failed })
        }
        _ => None,
    }
}
