use headway_shared::action::Action;
use headway_shared::config::{Config, JudgeNeeds, SyncMode};
use headway_shared::core::Scheduler;
use headway_shared::id::{ReplicaId, RequestId, SessionId, StepId};
use headway_shared::input::{
    Finish, Input, Operator, Request, Segment, TurnType, VoteOutcome, WeightsEvent,
};
use headway_shared::rule::NoScore;
use headway_shared::time::{Span, Time};
use headway_shared::version::{DeployVersion, RolloutVersion};

use super::{INTERVAL, LOGPROB_DIFF, Narrator, Note};
use crate::judge::Trouble;
use crate::trainer::StepMetric;

/// A core and its narrator, in a time of its own.
struct Run {
    core: Scheduler,
    narrator: Narrator,
    now: Time,
    actions: Vec<Action>,
    requests: u64,
    training: Option<StepId>,
}

impl Run {
    fn new(edit: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        config.reward_judging.judge_needs = JudgeNeeds::Turn;
        config.policy_training.batch_size = 1;
        edit(&mut config);
        let core = Scheduler::new(config);
        let narrator = Narrator::new(&core, Time::ZERO, true);
        let (now, actions, training) = (Time::ZERO, vec![], None);
        let mut run = Self { core, narrator, now, actions, requests: 0, training };
        run.give(&Input::ReplicaUp { replica: ReplicaId(0), deploy: DeployVersion::new(0) });
        assert_eq!(run.notes(), [Note::ReplicaUp { replica: ReplicaId(0), version: 0 }]);
        run
    }

    fn give(&mut self, input: &Input) {
        let diff = StepMetric { name: LOGPROB_DIFF.into(), staleness: None, value: 0.25 };
        self.core.handle(self.now, input);
        self.actions = std::iter::from_fn(|| self.core.poll_action()).collect();
        let Self { narrator, actions, core, training, .. } = self;
        narrator.observe(self.now, input, actions, core, &[diff], *training);
        if let Input::StepEnded { .. } = input {
            *training = None;
        }
        let started = actions.iter().find_map(|action| match action {
            Action::StartStep { step, .. } => Some(*step),
            _ => None,
        });
        *training = started.or(*training);
    }

    fn ask(&mut self, turn: TurnType) -> RequestId {
        let request = RequestId(self.requests);
        self.requests += 1;
        let session = SessionId(request.0);
        let (prompt_tokens, streamed, last) = (9, false, true);
        self.give(&Input::Request(Request {
            request,
            session,
            group: None,
            turn,
            prompt_tokens,
            streamed,
            last,
        }));
        request
    }

    /// A main turn is generated and voted on; a step starts.
    fn train(&mut self) {
        let request = self.ask(TurnType::Main);
        let version = RolloutVersion::new(self.core.learner().number());
        self.give(&Input::GenerationEnded {
            request,
            attempt: 1,
            finish: Finish::Stop,
            first_token: Some(self.now),
            segments: [Segment { version, tokens: 3 }].into_iter().collect(),
        });
        let vote = self.actions.iter().find_map(|action| match action {
            Action::StartVote { vote, .. } => Some(*vote),
            _ => None,
        });
        let outcome = VoteOutcome::Score(1_000_000);
        let vote = vote.unwrap();
        self.give(&Input::VoteEnded { vote, outcome, tokens: 0, judge_version: 0 });
    }

    fn end_step(&mut self, ok: bool) {
        self.give(&Input::StepEnded { step: self.training.unwrap(), ok });
    }

    fn publishes(&mut self, event: WeightsEvent) {
        let publication = self.narrator.publication.unwrap().0;
        self.give(&Input::Weights { publication, event });
    }

    fn later(&mut self, seconds: u64) {
        self.now += Span::from_secs(seconds);
    }

    fn look(&mut self) -> Vec<Note> {
        self.narrator.look(self.now, &self.core);
        self.notes()
    }

    fn notes(&mut self) -> Vec<Note> {
        self.narrator.take()
    }
}

fn refused(note: &Note) -> Option<String> {
    match note {
        Note::Refused { counts } => Some(counts.to_string()),
        _ => None,
    }
}

#[test]
fn a_step_is_said_with_what_it_trained_and_the_difference_where_it_is_wanted() {
    for wanted in [true, false] {
        let mut run = Run::new(|_| {});
        run.narrator.logprob_diff = wanted;
        run.train();
        run.end_step(true);
        let notes = run.notes();
        let Some(Note::Step(step)) = notes.first() else { panic!("{notes:?}") };
        assert_eq!((step.version, step.samples, step.staleness_max), (1, 1, 0));
        assert_eq!(step.reward_mean, 1.0);
        assert_eq!(step.logprob_diff, wanted.then_some(0.25));
        assert_eq!(run.narrator.steps().len(), 1);
    }
}

#[test]
fn the_end_of_a_step_that_is_not_under_way_is_no_step() {
    let mut run = Run::new(|_| {});
    run.train();
    let step = run.training.unwrap();
    run.end_step(true);
    run.notes();
    run.give(&Input::StepEnded { step, ok: false });
    assert!(!run.notes().iter().any(|note| matches!(note, Note::Step(_))));
    assert_eq!(run.narrator.steps().len(), 1);
}

#[test]
fn refusals_are_said_at_once_where_they_are_new_and_then_summed_up() {
    let mut run = Run::new(|_| {});
    run.give(&Input::Operator(Operator::Pause));
    run.notes();
    run.ask(TurnType::Main);
    assert_eq!(run.notes().iter().find_map(refused).as_deref(), Some("1 paused"));
    for _ in 0..5 {
        run.ask(TurnType::Main);
    }
    assert_eq!(run.notes(), []);
    run.now += INTERVAL;
    run.ask(TurnType::Main);
    assert_eq!(run.notes().iter().find_map(refused).as_deref(), Some("6 paused"));
    run.ask(TurnType::Main);
    run.narrator.finish(run.now);
    assert_eq!(run.notes().iter().find_map(refused).as_deref(), Some("1 paused"));
}

#[test]
fn a_sync_window_is_said_with_its_length() {
    let mut run = Run::new(|_| {});
    run.train();
    run.end_step(true);
    run.notes();
    run.publishes(WeightsEvent::Saved);
    run.later(2);
    run.publishes(WeightsEvent::Transferred(ReplicaId(0)));
    run.later(3);
    run.publishes(WeightsEvent::Loaded(ReplicaId(0)));
    let notes = run.notes();
    let [Note::Published { version: 1, window, .. }] = &notes[..] else { panic!("{notes:?}") };
    assert_eq!(*window, Some(Span::from_secs(5)));
}

#[test]
fn a_publication_is_said_by_its_own_name_where_the_next_begins_when_it_ends() {
    let mut run = Run::new(|c| c.policy_serving.sync_mode = SyncMode::InFlight);
    run.train();
    run.train();
    run.give(&Input::StepEnded { step: StepId(0), ok: true });
    run.give(&Input::StepEnded { step: StepId(1), ok: true });
    run.notes();
    for expected in [1, 2] {
        run.publishes(WeightsEvent::Saved);
        run.publishes(WeightsEvent::Transferred(ReplicaId(0)));
        run.publishes(WeightsEvent::Loaded(ReplicaId(0)));
        let notes = run.notes();
        let [Note::Published { version, .. }] = &notes[..] else { panic!("{notes:?}") };
        assert_eq!(*version, expected);
    }
}

#[test]
fn a_failed_load_is_said_with_what_becomes_of_its_publication() {
    let mut run = Run::new(|c| c.policy_serving.publish_retries = 0);
    run.train();
    run.end_step(true);
    run.publishes(WeightsEvent::Saved);
    run.notes();
    run.publishes(WeightsEvent::LoadFailed { replica: ReplicaId(0), intact: true });
    let notes = run.notes();
    let [Note::WeightsFailed { .. }, Note::Failed { why }, Note::PublicationFailed { again, .. }] =
        &notes[..]
    else {
        panic!("{notes:?}")
    };
    assert!(why.starts_with("publication failed 1 times in a row") && !again, "{why}");
}

#[test]
fn the_loop_that_blocks_is_named_when_it_persists_and_ever_more_rarely() {
    let mut run = Run::new(|_| {});
    run.later(29);
    assert_eq!(run.look(), []);
    run.later(1);
    let notes = run.look();
    let [Note::Blocked { stall, expected: true, only_side: None, .. }] = &notes[..] else {
        panic!("{notes:?}")
    };
    assert_eq!(stall, "clients blocks: no main turn has been asked for");
    run.later(59);
    assert_eq!(run.look(), []);
    run.later(1);
    assert_eq!(run.look().len(), 1);
    assert_eq!(run.narrator.due(), run.now + Span::from_secs(120));
    // Another loop: said when it is looked at, and soon again.
    run.ask(TurnType::Main);
    run.later(120);
    let notes = run.look();
    let [Note::Blocked { stall, expected: false, since, .. }] = &notes[..] else {
        panic!("{notes:?}")
    };
    assert_eq!(stall, "policy serving blocks: 1 samples are being generated");
    assert_eq!(*since, Span::from_secs(210));
    assert_eq!(run.narrator.due(), run.now + Span::from_secs(30));
}

#[test]
fn a_step_begins_the_patience_anew() {
    let mut run = Run::new(|_| {});
    run.later(20);
    run.train();
    run.end_step(true);
    run.notes();
    run.later(29);
    assert_eq!(run.look(), []);
}

#[test]
fn traffic_of_side_turns_alone_is_called_so() {
    let mut run = Run::new(|_| {});
    for _ in 0..3 {
        run.ask(TurnType::Side);
    }
    run.notes();
    run.later(30);
    let notes = run.look();
    assert!(
        matches!(notes[..], [Note::Blocked { only_side: Some(3), expected: false, .. }]),
        "{notes:?}"
    );
}

#[test]
fn failed_votes_are_counted_by_kind_and_summed_up_with_the_last_reason() {
    let mut run = Run::new(|_| {});
    let trouble = |status| Trouble::Status(status);
    run.narrator.trouble(run.now, trouble(500));
    assert_eq!(run.notes().len(), 1);
    run.narrator.trouble(run.now, trouble(429));
    run.narrator.trouble(run.now, trouble(429));
    assert_eq!(run.notes(), []);
    let missing = Trouble::Rule(NoScore::NoMetadata("answer".to_owned()).into());
    run.narrator.trouble(run.now, missing);
    let notes = run.notes();
    let [Note::VotesFailed { counts, last }] = &notes[..] else { panic!("{notes:?}") };
    assert_eq!(counts.to_string(), "2 status, 1 rule");
    let last = last.as_ref().unwrap().to_string();
    assert_eq!(last, "the rule gives no score: the request has no metadata.answer");
    assert_eq!(run.narrator.failed_votes().iter().sum::<u64>(), 4);
}

#[test]
fn a_vote_that_the_core_gives_up_is_a_failed_one() {
    let mut run = Run::new(|c| {
        c.reward_judging.judge_timeout = Span::from_secs(5);
        c.reward_judging.judge_retries = 0;
    });
    let request = run.ask(TurnType::Main);
    run.give(&Input::GenerationEnded {
        request,
        attempt: 1,
        finish: Finish::Stop,
        first_token: Some(run.now),
        segments: [Segment { version: RolloutVersion::new(0), tokens: 3 }].into_iter().collect(),
    });
    run.notes();
    run.later(5);
    run.give(&Input::Tick);
    let notes = run.notes();
    let [Note::VotesFailed { counts, .. }] = &notes[..] else { panic!("{notes:?}") };
    assert_eq!(counts.to_string(), "1 timed_out");
}
