//! Work: what actions start and inputs end.
//!
//! Every action that starts work has exactly one terminal input. [`Works`] follows a run and finds
//! where that does not hold.

use std::collections::BTreeMap;
use std::fmt;

use crate::action::Action;
use crate::id::{PublicationId, ReplicaId, RequestId, SessionId, StepId, VoteId};
use crate::input::{Input, WeightsEvent};

/// Something that a driver was told to do, and whose end it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    /// An attempt of a turn.
    Generation {
        /// The request.
        request: RequestId,
        /// The attempt.
        attempt: u32,
    },
    /// A reset or step of an environment.
    Environment {
        /// The session.
        session: SessionId,
        /// The attempt.
        attempt: u32,
    },
    /// A vote.
    Vote(VoteId),
    /// A train step.
    Step(StepId),
    /// The export of weights.
    Save(PublicationId),
    /// The transfer and load of weights on a replica.
    Load {
        /// The publication.
        publication: PublicationId,
        /// The replica.
        replica: ReplicaId,
    },
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generation { request, attempt } => {
                write!(f, "generation of request {}, attempt {attempt}", request.0)
            }
            Self::Environment { session, attempt } => {
                write!(f, "environment of session {}, attempt {attempt}", session.0)
            }
            Self::Vote(vote) => write!(f, "vote {}", vote.0),
            Self::Step(step) => write!(f, "train step {}", step.0),
            Self::Save(publication) => write!(f, "export of publication {}", publication.0),
            Self::Load { publication, replica } => {
                write!(f, "load of publication {} on replica {}", publication.0, replica.0)
            }
        }
    }
}

impl Work {
    /// What an action starts.
    #[must_use]
    pub fn started_by(action: &Action) -> Option<Self> {
        match *action {
            Action::StartGeneration { request, attempt, .. } => {
                Some(Self::Generation { request, attempt })
            }
            Action::ResetEnvironment { session, attempt }
            | Action::StepEnvironment { session, attempt } => {
                Some(Self::Environment { session, attempt })
            }
            Action::StartVote { vote, .. } => Some(Self::Vote(vote)),
            Action::StartStep { step, .. } => Some(Self::Step(step)),
            Action::Publish { publication, .. } => Some(Self::Save(publication)),
            Action::Load { publication, replica, .. } => Some(Self::Load { publication, replica }),
            _ => None,
        }
    }

    /// What an input ends. [`ReplicaDown`](Input::ReplicaDown) ends all that ran on the replica.
    #[must_use]
    pub fn ended_by(input: &Input) -> Option<Self> {
        match *input {
            Input::GenerationEnded { request, attempt, .. } => {
                Some(Self::Generation { request, attempt })
            }
            Input::EnvironmentEnded { session, attempt, .. } => {
                Some(Self::Environment { session, attempt })
            }
            Input::VoteEnded { vote, .. } => Some(Self::Vote(vote)),
            Input::StepEnded { step, .. } => Some(Self::Step(step)),
            Input::Weights { publication, event } => match event {
                WeightsEvent::Saved | WeightsEvent::SaveFailed => Some(Self::Save(publication)),
                WeightsEvent::Transferred(_) => None,
                WeightsEvent::TransferFailed(replica)
                | WeightsEvent::Loaded(replica)
                | WeightsEvent::LoadFailed { replica, .. } => {
                    Some(Self::Load { publication, replica })
                }
            },
            _ => None,
        }
    }

    fn cancelled_by(action: &Action) -> Option<Self> {
        match *action {
            Action::CancelVote { vote } => Some(Self::Vote(vote)),
            Action::CancelEnvironment { session, attempt } => {
                Some(Self::Environment { session, attempt })
            }
            Action::CancelLoad { publication, replica } => {
                Some(Self::Load { publication, replica })
            }
            Action::CancelStep { step } => Some(Self::Step(step)),
            _ => None,
        }
    }
}

/// Work that has started and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// The input whose action started it; `None`: it had started before the first input here.
    pub since: Option<u64>,
    /// Where it runs, if it dies with a replica.
    pub replica: Option<ReplicaId>,
    /// The core has said that its outcome no longer matters.
    pub cancelled: bool,
}

/// An end or start that does not fit what is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The input ends what never started, or has ended before.
    NotUnderWay(Work),
    /// An action starts what is under way.
    StartedTwice(Work),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUnderWay(work) => {
                write!(f, "it ends the {work}, which never started or has ended before")
            }
            Self::StartedTwice(work) => write!(f, "it starts the {work}, which is under way"),
        }
    }
}

/// The work that is under way, from input to input.
#[derive(Clone, Debug, Default)]
pub struct Works {
    open: BTreeMap<Work, Open>,
    started: u64,
    /// It did not see the beginning: what is unknown may have started before.
    from_the_middle: bool,
}

impl Works {
    /// Begins where this work is under way.
    #[must_use]
    pub fn from_the_middle(under_way: impl IntoIterator<Item = (Work, Option<ReplicaId>)>) -> Self {
        let open = |(work, replica)| (work, Open { since: None, replica, cancelled: false });
        Self { open: under_way.into_iter().map(open).collect(), started: 0, from_the_middle: true }
    }

    /// The core has handled input `seq`, which caused these actions; what does not fit, in order.
    pub fn observe(&mut self, seq: u64, input: &Input, actions: &[Action]) -> Vec<Misfit> {
        let mut misfits = Vec::new();
        if let Some(work) = Work::ended_by(input)
            && self.open.remove(&work).is_none()
            && !self.from_the_middle
        {
            misfits.push(Misfit::NotUnderWay(work));
        }
        if let Input::ReplicaDown { replica } = *input {
            self.open.retain(|_, open| open.replica != Some(replica));
        }
        // An older checkpoint voids the step that was training.
        if let Input::Restored { .. } = *input {
            for (_, open) in self.open.iter_mut().filter(|(work, _)| matches!(work, Work::Step(_)))
            {
                open.cancelled = true;
            }
        }
        for action in actions {
            if let Some(open) = Work::cancelled_by(action).and_then(|work| self.open.get_mut(&work))
            {
                open.cancelled = true;
            }
            if let Some(work) = Work::started_by(action) {
                let replica = replica_of(action);
                self.forget_abandoned(&work);
                self.started += 1;
                let open = Open { since: Some(seq), replica, cancelled: false };
                if self.open.insert(work, open).is_some() {
                    misfits.push(Misfit::StartedTwice(work));
                }
            }
        }
        misfits
    }

    /// Of a load that was abandoned, nothing more need be said: the next one on its replica
    /// replaces it.
    fn forget_abandoned(&mut self, next: &Work) {
        if let Work::Load { replica, .. } = *next {
            self.open.retain(|work, open| {
                let load = matches!(*work, Work::Load { replica: other, .. } if other == replica);
                !(load && open.cancelled)
            });
        }
    }

    /// How much work has started.
    #[must_use]
    pub const fn started(&self) -> u64 {
        self.started
    }

    /// What is under way. Loads and steps that were abandoned are not: their end may come or not.
    pub fn open(&self) -> impl Iterator<Item = (Work, Open)> {
        let abandoned = |work: &Work, open: &Open| {
            matches!(work, Work::Load { .. } | Work::Step(_)) && open.cancelled
        };
        let all = self.open.iter().map(|(&work, &open)| (work, open));
        all.filter(move |(work, open)| !abandoned(work, open))
    }
}

fn replica_of(action: &Action) -> Option<ReplicaId> {
    match *action {
        Action::StartGeneration { replica, .. } | Action::Load { replica, .. } => Some(replica),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Finish, Segments, VoteOutcome};

    const VOTE: VoteId = VoteId(3);
    const ENDS: Input =
        Input::VoteEnded { vote: VOTE, outcome: VoteOutcome::Failed, tokens: 0, judge_version: 0 };

    fn start_vote() -> Action {
        Action::StartVote { vote: VOTE, sample: crate::id::SampleId(0) }
    }

    #[test]
    fn work_starts_once_and_ends_once() {
        let mut works = Works::default();
        assert_eq!(works.observe(0, &ENDS, &[]), [Misfit::NotUnderWay(Work::Vote(VOTE))]);
        assert_eq!(works.observe(1, &Input::Tick, &[start_vote()]), []);
        assert_eq!(works.open().next().map(|(_, open)| open.since), Some(Some(1)));
        let again = works.observe(2, &Input::Tick, &[start_vote()]);
        assert_eq!(again, [Misfit::StartedTwice(Work::Vote(VOTE))]);
        assert_eq!(works.observe(3, &ENDS, &[]), []);
        assert_eq!(works.observe(4, &ENDS, &[]), [Misfit::NotUnderWay(Work::Vote(VOTE))]);
    }

    #[test]
    fn a_replica_that_goes_down_ends_what_ran_on_it() {
        let mut works = Works::default();
        let (request, replica) = (RequestId(1), ReplicaId(2));
        let start =
            Action::StartGeneration { request, attempt: 1, replica, sample: None, resume: false };
        let other = ReplicaId(3);
        works.observe(0, &Input::Tick, &[start, start_vote()]);
        works.observe(1, &Input::ReplicaDown { replica: other }, &[]);
        assert_eq!(works.open().count(), 2);
        works.observe(2, &Input::ReplicaDown { replica }, &[]);
        assert_eq!(works.open().map(|(work, _)| work).collect::<Vec<_>>(), [Work::Vote(VOTE)]);
        let (finish, segments) = (Finish::Failed, Segments::new());
        let late =
            Input::GenerationEnded { request, attempt: 1, finish, first_token: None, segments };
        assert_eq!(works.observe(3, &late, &[]).len(), 1);
    }

    #[test]
    fn a_step_that_an_older_checkpoint_voids_may_end_or_not() {
        use crate::version::LearnerVersion;
        let mut works = Works::default();
        let (step, learner) = (crate::id::StepId(4), LearnerVersion::new(7));
        works.observe(0, &Input::Tick, &[Action::StartStep { step, learner, samples: 2 }]);
        assert_eq!(works.open().count(), 1);
        works.observe(1, &Input::Restored { checkpoint: LearnerVersion::new(5) }, &[]);
        assert_eq!(works.open().count(), 0);
        assert_eq!(works.observe(2, &Input::StepEnded { step, ok: false }, &[]), []);
    }

    #[test]
    fn from_the_middle_nothing_is_said_of_what_began_before() {
        let mut works = Works::from_the_middle([]);
        assert_eq!(works.observe(9, &ENDS, &[]), []);
    }
}
