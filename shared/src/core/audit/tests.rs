//! The recount finds each counter that is off by one, and each list that holds what it should not.

use super::*;
use crate::config::{Config, DropPolicy, JudgeNeeds, OverLimit, SampleUnit, SyncMode};
use crate::id::{GroupId, ReplicaId, RequestId, SessionId, VoteId};
use crate::input::{Finish, Input, Request, Segment, Segments, TurnType, VoteOutcome};
use crate::time::{Span, Time};
use crate::version::{DeployVersion, RolloutVersion};

struct Driven {
    core: Scheduler,
    votes: u64,
}

impl Driven {
    fn new(edit: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        config.policy_serving.sync_mode = SyncMode::InFlight;
        config.policy_serving.over_limit = OverLimit::Hold;
        config.reward_judging.judge_needs = JudgeNeeds::Turn;
        config.reward_judging.judge_concurrency = 1;
        config.policy_training.max_head_off_policyness = 0;
        edit(&mut config);
        let mut driven = Self { core: Scheduler::new(config), votes: 0 };
        driven.give(&Input::ReplicaUp { replica: ReplicaId(0), deploy: DeployVersion::new(0) });
        driven
    }

    fn give(&mut self, input: &Input) {
        self.core.handle(Time::from_secs(1), input);
        while self.core.poll_action().is_some() {}
        assert_eq!(self.core.audit(), Ok(()), "{input:?}");
    }

    fn ask(&mut self, request: u64, session: u64, group: Option<u64>) {
        self.give(&Input::Request(Request {
            request: RequestId(request),
            session: SessionId(session),
            group: group.map(GroupId),
            turn: TurnType::Main,
            prompt_tokens: 10,
            streamed: false,
            last: false,
        }));
    }

    fn generated(&mut self, request: u64) {
        let segments =
            Segments::from_slice(&[Segment { version: RolloutVersion::new(0), tokens: 5 }]);
        self.give(&Input::GenerationEnded {
            request: RequestId(request),
            attempt: 1,
            finish: Finish::Stop,
            first_token: None,
            segments,
        });
    }

    fn scored(&mut self) {
        let vote = VoteId(self.votes);
        self.votes += 1;
        let outcome = VoteOutcome::Score(1_000_000);
        self.give(&Input::VoteEnded { vote, outcome, tokens: 1, judge_version: 0 });
    }
}

/// Three groups of two, and something at every place: group 0 has a scored member and one that is
/// generated, group 1 is ready, group 2 has one in judging and one before it; and a request is held.
fn groups() -> Scheduler {
    let mut driven = Driven::new(|config| {
        config.policy_training.group_size = 2;
        config.policy_training.min_group_size = 1;
        config.policy_training.straggler_wait = Span::from_secs(60);
        config.policy_training.group_timeout = Span::from_secs(600);
        config.policy_training.batch_size = 3;
        config.queue.rollout.drop_policy = DropPolicy::Reject;
        config.queue.output.drop_policy = DropPolicy::Reject;
    });
    for member in 0..6 {
        driven.ask(member, member, Some(member / 2));
    }
    for member in [2, 3, 0] {
        driven.generated(member);
        driven.scored();
    }
    driven.generated(4);
    driven.generated(5);
    driven.ask(6, 6, Some(3));
    driven.core
}

/// One trajectory that waits for its session's next turn, and one whose turn is generated.
fn trajectories() -> Scheduler {
    let mut driven = Driven::new(|config| {
        config.policy_training.sample_unit = SampleUnit::Session;
        config.policy_training.batch_size = 3;
    });
    driven.ask(0, 0, None);
    driven.ask(1, 1, None);
    driven.generated(0);
    driven.core
}

/// The sample of this kind.
fn of(core: &Scheduler, state: SampleState) -> Slot {
    core.samples.iter().find(|(_, entry)| entry.state == state).map(|(slot, _)| slot).unwrap()
}

fn turn(core: &Scheduler, request: u64) -> Slot {
    core.turn_of.get(request).unwrap()
}

type Damage = (&'static str, fn(&mut Scheduler));

fn assert_found(core: &Scheduler, damages: &[Damage]) {
    assert_eq!(core.audit(), Ok(()));
    for (what, damage) in damages {
        let mut core = core.clone();
        damage(&mut core);
        assert!(core.audit().is_err(), "{what}");
    }
}

#[test]
fn a_counter_that_is_off_is_found() {
    assert_found(
        &groups(),
        &[
            ("states", |core| {
                let count = &mut core.ledger.in_state;
                count[SampleState::Judging as usize] += 1;
                count[SampleState::GroupWait as usize] -= 1;
            }),
            ("places", |core| core.places += 1),
            ("ready places", |core| core.places_ready += 1),
            ("occupied slots", |core| core.occupied += 1),
            ("environments", |core| core.environments += 1),
            ("held requests", |core| {
                core.ledger.held += 1;
                core.ledger.offered += 1;
            }),
            ("room in the rollout queue", |core| core.rollout.reserved += 1),
            ("room in the output queue", |core| core.output.reserved += 1),
            ("samples in the rollout queue", |core| core.rollout.samples += 1),
            ("entries of the rollout queue", |core| core.rollout.entries += 1),
            ("samples in the output queue", |core| core.output.samples += 1),
            ("entries of the output queue", |core| core.output.entries += 1),
            ("a session's turns", |core| {
                let session = core.turns[turn(core, 1)].session;
                core.sessions[session].turns += 1;
            }),
            ("a session's samples", |core| {
                let session = core.turns[turn(core, 1)].session;
                core.sessions[session].samples += 1;
            }),
        ],
    );
}

#[test]
fn a_state_that_its_place_contradicts_is_found() {
    fn into(core: &mut Scheduler, from: SampleState, to: SampleState) {
        let slot = of(core, from);
        core.in_state(slot, to);
    }
    assert_found(
        &groups(),
        &[
            ("in the rollout queue", |core| {
                into(core, SampleState::RolloutQueue, SampleState::GroupWait);
            }),
            ("in the output queue", |core| {
                into(core, SampleState::OutputQueue, SampleState::GroupWait);
            }),
            ("without a vote", |core| {
                let ballot = core.samples[of(core, SampleState::Judging)].ballot;
                core.ballots[ballot].in_flight[0] = NONE;
            }),
            ("a vote of a closed ballot", |core| {
                let ballot = core.samples[of(core, SampleState::Judging)].ballot;
                core.ballots.remove(ballot);
            }),
            ("a session that is over", |core| {
                let session = core.open_session(SessionId(99));
                core.sessions[session].ended = true;
            }),
            ("a turn of a session that is gone", |core| {
                core.sessions.remove(core.turns[turn(core, 6)].session);
            }),
            ("a sample that no age has", |core| {
                let slot = of(core, SampleState::Judging);
                core.ages.remove(slot, 0, false);
            }),
            ("an age that counts as exempt", |core| {
                let slot = of(core, SampleState::Judging);
                core.samples[slot].exempt = true;
            }),
            ("a sample from the future", |core| {
                let slot = of(core, SampleState::Judging);
                core.samples[slot].sample.head = RolloutVersion::new(1);
            }),
            ("a replica from the future", |core| {
                core.replicas[0].deploy = DeployVersion::new(1);
            }),
        ],
    );
}

#[test]
fn a_group_among_the_wrong_timers_is_found() {
    fn group(core: &mut Scheduler, id: u64) -> &mut super::super::state::Group {
        let slot = core.group_of.get(id).unwrap();
        &mut core.groups[slot]
    }
    let core = groups();
    let all = [group(&mut core.clone(), 0).enough_since, group(&mut core.clone(), 1).enough_since];
    assert!(all[0].is_some() && all[1].is_none(), "it waits for a straggler");
    assert_found(
        &core,
        &[
            ("a group without a timer", |core| group(core, 0).timed = false),
            ("a ready group with one", |core| group(core, 1).timed = true),
            ("a group that waits for no straggler", |core| group(core, 0).enough_since = None),
            ("one that has too few to wait", |core| {
                group(core, 2).enough_since = Some(Time::ZERO);
            }),
            ("too many group timers", |core| {
                let slot = core.group_of.get(1).unwrap();
                core.group_timers.push_back(&mut core.group_links, slot);
            }),
            ("too many timers of stragglers", |core| {
                let slot = core.group_of.get(1).unwrap();
                core.straggler_timers.push_back(&mut core.straggler_links, slot);
            }),
            ("a dead group with a place", |core| group(core, 1).dead = true),
        ],
    );
}

#[test]
fn a_trajectory_that_its_session_or_turns_do_not_know_is_found() {
    let core = trajectories();
    assert_found(
        &core,
        &[
            ("a turn that no sample lists", |core| {
                let slot = of(core, SampleState::Generating);
                core.samples[slot].turns = super::super::slab::List::default();
            }),
            ("a turn of another sample", |core| {
                let slot = turn(core, 1);
                core.turns[slot].sample = of(core, SampleState::AwaitingSessionEnd);
            }),
            ("a trajectory that is gone", |core| {
                let session = core.samples[of(core, SampleState::Generating)].session;
                core.sessions[session].trajectory = 99;
            }),
            ("another session's trajectory", |core| {
                let [waits, runs] = [SampleState::AwaitingSessionEnd, SampleState::Generating]
                    .map(|state| core.samples[of(core, state)].session);
                core.sessions[runs].trajectory = core.sessions[waits].trajectory;
            }),
            ("a trajectory without its slot", |core| {
                let slot = of(core, SampleState::Generating);
                core.samples[slot].keeps_slot = false;
                core.occupied -= 1;
            }),
            ("one that waits while it is generated", |core| {
                let slot = of(core, SampleState::Generating);
                core.in_state(slot, SampleState::AwaitingSessionEnd);
            }),
        ],
    );
}
