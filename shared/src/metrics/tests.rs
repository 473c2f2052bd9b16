//! Small runs driven by hand, whose metrics are known.

use proptest::prelude::*;

use super::*;
use crate::action::Action;
use crate::config::{Config, JudgeNeeds};
use crate::core::{STALENESS_PARTS, Scheduler};
use crate::id::{PublicationId, ReplicaId, RequestId, SessionId, StepId, VoteId};
use crate::input::{Finish, Input, Request, Segment, TurnType, VoteOutcome, WeightsEvent};
use crate::testing::World;
use crate::time::{Span, Time};
use crate::version::{DeployVersion, RolloutVersion};

const REPLICA: ReplicaId = ReplicaId(0);

/// A run with one replica, whose world is the test.
struct Run {
    scheduler: Scheduler,
    observer: Observer,
}

impl Run {
    fn new(config: &Config) -> Self {
        let mut run = Self {
            scheduler: Scheduler::new(config.clone()),
            observer: Observer::new(config, Span::from_secs(1)),
        };
        run.at(0, &Input::ReplicaUp { replica: REPLICA, deploy: DeployVersion::new(0) });
        run
    }

    fn at(&mut self, secs: u64, input: &Input) -> Vec<Action> {
        let now = Time::from_secs(secs);
        self.scheduler.handle(now, input);
        let actions: Vec<_> = std::iter::from_fn(|| self.scheduler.poll_action()).collect();
        self.observer.observe(now, input, &actions, &self.scheduler);
        actions
    }

    fn request(&mut self, secs: u64, id: u64) -> Vec<Action> {
        let request = Request {
            request: RequestId(id),
            session: SessionId(id),
            group: None,
            turn: TurnType::Main,
            prompt_tokens: 10,
            streamed: false,
            last: false,
        };
        self.at(secs, &Input::Request(request))
    }

    fn generated(&mut self, secs: u64, id: u64, tokens: u32, first_token: u64) -> Vec<Action> {
        let segment = Segment { version: RolloutVersion::new(0), tokens };
        let input = Input::GenerationEnded {
            request: RequestId(id),
            attempt: 1,
            finish: Finish::Stop,
            first_token: Some(Time::from_secs(first_token)),
            segments: std::iter::once(segment).collect(),
        };
        self.at(secs, &input)
    }

    fn vote(&mut self, secs: u64, vote: VoteId) -> Vec<Action> {
        let outcome = VoteOutcome::Score(1_000_000);
        self.at(secs, &Input::VoteEnded { vote, outcome, tokens: 50, judge_version: 0 })
    }

    fn step_ended(&mut self, secs: u64, step: StepId) -> Vec<Action> {
        self.at(secs, &Input::StepEnded { step, ok: true })
    }

    fn weights(&mut self, secs: u64, publication: PublicationId, event: WeightsEvent) {
        self.at(secs, &Input::Weights { publication, event });
    }

    fn summary(&self, secs: u64) -> Summary {
        self.observer.summary(Time::from_secs(secs), &self.scheduler)
    }
}

fn vote_of(actions: &[Action]) -> VoteId {
    let vote = actions.iter().find_map(|action| match action {
        Action::StartVote { vote, .. } => Some(*vote),
        _ => None,
    });
    vote.expect("a vote")
}

fn step_of(actions: &[Action]) -> StepId {
    let step = actions.iter().find_map(|action| match action {
        Action::StartStep { step, .. } => Some(*step),
        _ => None,
    });
    step.expect("a step")
}

fn publication_of(actions: &[Action]) -> PublicationId {
    let publication = actions.iter().find_map(|action| match action {
        Action::Publish { publication, .. } => Some(*publication),
        _ => None,
    });
    publication.expect("a publication")
}

/// One sample per step, judged by its turn alone.
fn config() -> Config {
    let mut config = Config::default();
    config.policy_training.batch_size = 1;
    config.reward_judging.judge_needs = JudgeNeeds::Turn;
    config
}

/// One sample: admitted at 10 s, first token at 12 s, generated at 20 s, judged at 23 s, trained
/// from 23 s to 33 s.
fn one_sample() -> (Run, PublicationId) {
    let mut run = Run::new(&config());
    run.request(10, 1);
    let vote = vote_of(&run.generated(20, 1, 100, 12));
    let step = step_of(&run.vote(23, vote));
    let publication = publication_of(&run.step_ended(33, step));
    (run, publication)
}

fn close(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value - expected).abs() < 1e-9)
}

#[test]
fn a_run_of_one_sample_has_the_metrics_worked_out_by_hand() {
    let (run, _) = one_sample();
    let summary = run.summary(100);
    for (name, expected) in [
        ("duration_seconds", 100.0),
        ("serving_idle_share", 0.9),
        ("judge_idle_share", 1.0 - 3.0 / (4.0 * 100.0)),
        ("trainer_idle_share", 0.9),
        ("offered_per_hour", 36.0),
        ("admitted_per_hour", 36.0),
        ("trained_samples_per_hour", 36.0),
        ("trained_tokens_per_second", 1.0),
        ("generated_tokens_per_second", 1.0),
        ("wasted_token_share", 0.0),
        ("steps_per_hour", 36.0),
        ("staleness_head_mean", 0.0),
        ("staleness_head_max", 0.0),
        ("staleness_tail_mean", 0.0),
        ("staleness_token_mean", 0.0),
        ("staleness_above_bound_share", 0.0),
        ("age_seconds_mean", 3.0),
        ("age_seconds_max", 3.0),
        ("part_seconds_first_token", 2.0),
        ("part_seconds_generating", 8.0),
        ("part_seconds_judging", 3.0),
        ("part_seconds_output_queue", 0.0),
        ("running_mean", 0.1),
        ("running_max", 1.0),
        ("outstanding_mean", 0.23),
        ("judge_calls_per_hour", 36.0),
        ("judge_tokens_per_hour", 1800.0),
        ("failed_vote_share", 0.0),
        ("length_ratio", 1.0),
        ("length_distance", 0.0),
        ("mixed_version_share", 0.0),
        ("discarded_share", 0.0),
        ("refused_share", 0.0),
    ] {
        assert!(close(summary.get(name), expected), "{name}: {:?}", summary.get(name));
    }
    assert_eq!(summary.staleness().iter().collect::<Vec<_>>(), [(0, 1)]);
}

#[test]
fn a_sample_that_waited_through_a_step_is_one_version_old_and_its_parts_say_where() {
    let mut run = Run::new(&config());
    run.request(1, 1);
    run.request(1, 2);
    let first = vote_of(&run.generated(10, 1, 100, 2));
    let second = vote_of(&run.generated(10, 2, 100, 2));
    let step = step_of(&run.vote(11, first));
    run.vote(12, second);
    let actions = run.step_ended(21, step);
    run.step_ended(31, step_of(&actions));
    let summary = run.summary(40);
    assert_eq!(summary.staleness().iter().collect::<Vec<_>>(), [(0, 1), (1, 1)]);
    assert_eq!(summary.get("staleness_head_mean"), Some(0.5));
    assert_eq!(summary.get("staleness_part_output_queue"), Some(0.5));
    assert_eq!(summary.get("output_queue_wait_seconds_p50"), Some(0.0));
    assert!(
        summary.get("output_queue_wait_seconds_p95").is_some_and(|p95| (8.93..=9.0).contains(&p95))
    );
    let parts = summary.staleness_part_sums();
    assert_eq!(u128::from(parts.iter().sum::<u64>()), summary.staleness().sum());
    assert_eq!(parts[STALENESS_PARTS.len() - 1], 1);
}

/// Of two samples the long one is discarded: it is 1.5 times as long as both on average.
#[test]
fn what_is_discarded_has_its_lengths_compared_by_reason() {
    let mut run = Run::new(&config());
    run.request(1, 1);
    run.request(1, 2);
    let short = vote_of(&run.generated(10, 1, 20, 2));
    let long = vote_of(&run.generated(10, 2, 60, 2));
    run.vote(11, short);
    run.at(
        12,
        &Input::VoteEnded {
            vote: long,
            outcome: VoteOutcome::Invalid,
            tokens: 0,
            judge_version: 0,
        },
    );
    let summary = run.summary(40);
    assert!(close(summary.get("length_ratio_judge_failed"), 1.5));
    assert!(close(summary.get("length_distance_judge_failed"), 0.5));
    assert_eq!(summary.get("length_ratio_late"), None);
}

#[test]
fn a_window_of_three_seconds_counts_as_three_seconds() {
    let (mut run, publication) = one_sample();
    run.weights(40, publication, WeightsEvent::Saved);
    run.weights(42, publication, WeightsEvent::Transferred(REPLICA));
    run.weights(43, publication, WeightsEvent::Loaded(REPLICA));
    let summary = run.summary(100);
    assert!(close(summary.get("closed_share"), 0.03));
    assert!(close(summary.get("closed_windows_per_hour"), 36.0));
    assert!(close(summary.get("closed_seconds_mean"), 3.0));
    assert!(close(summary.get("closed_seconds_max"), 3.0));
    assert!(close(summary.get("publish_lag_mean"), 0.1), "one version, from 33 s to 43 s");
    assert!(close(summary.get("publications_per_hour"), 36.0));
}

#[test]
fn tokens_of_a_discarded_sample_are_wasted() {
    let mut config = config();
    config.reward_judging.judge_needs = JudgeNeeds::NextState;
    let mut run = Run::new(&config);
    run.request(1, 1);
    run.generated(5, 1, 40, 2);
    run.at(9, &Input::SessionEnded { session: SessionId(1) });
    let summary = run.summary(10);
    assert_eq!(summary.get("wasted_token_share"), Some(1.0));
    assert_eq!(summary.get("wasted_tokens_per_second"), Some(4.0));
    assert_eq!(summary.get("discarded_no_next_state_share"), Some(1.0));
    assert_eq!(summary.get("discarded_share"), Some(1.0));
    assert_eq!(summary.get("staleness_head_mean"), None, "nothing was trained");
}

#[test]
fn a_request_beyond_the_bound_counts_as_offered_and_refused() {
    let mut config = config();
    config.policy_training.max_head_off_policyness = 0;
    let mut run = Run::new(&config);
    run.request(1, 1);
    run.request(2, 2);
    let summary = run.summary(10);
    assert_eq!(summary.get("refused_stale_share"), Some(0.5));
    assert_eq!(summary.get("refused_share"), Some(0.5));
    assert!(close(summary.get("offered_per_hour"), 720.0));
    assert!(close(summary.get("admitted_per_hour"), 360.0));
}

#[test]
fn the_warm_up_is_forgotten_but_not_what_it_left_in_flight() {
    let mut run = Run::new(&config());
    run.request(1, 1);
    let vote = vote_of(&run.generated(10, 1, 100, 2));
    run.request(11, 2);
    run.observer.reset(Time::from_secs(20), &run.scheduler);
    run.vote(30, vote);
    run.generated(30, 2, 60, 12);
    let summary = run.summary(40);
    assert_eq!(summary.get("duration_seconds"), Some(20.0));
    assert_eq!(summary.get("offered_per_hour"), Some(0.0));
    assert!(close(summary.get("generated_tokens_per_second"), 3.0));
    assert!(close(summary.get("serving_idle_share"), 0.5));
    assert!(close(summary.get("judge_tokens_per_hour"), 9000.0));
    assert_eq!(summary.series().rows().len(), 41, "the series covers the warm-up");
}

#[test]
fn without_observations_a_metric_is_undefined_and_never_nan() {
    let config = config();
    let observer = Observer::new(&config, Span::ZERO);
    let scheduler = Scheduler::new(config);
    let summary = observer.summary(Time::ZERO, &scheduler);
    for (metric, value) in summary.values() {
        assert!(value.is_none() || metric.name == "duration_seconds", "{}", metric.name);
    }
    assert_eq!(summary.get("no_such_metric"), None);
    assert_eq!(summary.series().rows(), []);
}

#[test]
fn the_series_shows_the_run_second_by_second() {
    let (run, _) = one_sample();
    let summary = run.summary(40);
    let column = |name| Row::COLUMNS.iter().position(|column| *column == name).unwrap();
    let value = |secs: usize, name| summary.series().rows()[secs].values()[column(name)];
    assert_eq!((value(9, "running"), value(10, "running")), (Some(0.0), Some(1.0)));
    assert_eq!((value(22, "votes"), value(23, "votes")), (Some(1.0), Some(0.0)));
    assert_eq!((value(23, "training"), value(33, "training")), (Some(1.0), Some(0.0)));
    assert_eq!((value(32, "trained"), value(33, "trained")), (Some(0.0), Some(1.0)));
    assert_eq!((value(32, "learner"), value(33, "learner")), (Some(0.0), Some(1.0)));
    assert_eq!((value(32, "publish_lag"), value(33, "publish_lag")), (Some(0.0), Some(1.0)));
}

/// A world in which everything is short of something.
fn tight() -> Config {
    let mut config = Config::default();
    config.policy_training.batch_size = 2;
    config.policy_serving.aborted = crate::config::Aborted::Resume;
    config.reward_judging.votes = 3;
    config.reward_judging.judge_timeout = Span::from_secs(5);
    config.queue.output.max_size = 4;
    config
}

proptest! {
    #[test]
    fn whatever_happens_the_metrics_are_sound(
        choices in prop::collection::vec(any::<(u8, u8, u16)>(), 0..400),
        warmup in 0..200_usize,
    ) {
        let mut world = World::new(&tight());
        let mut observer = Observer::new(&tight(), Span::from_secs(7));
        let mut start: Vec<_> = World::start().collect();
        for (index, choice) in choices.into_iter().enumerate() {
            let input = start.pop().unwrap_or_else(|| world.next(choice));
            let actions = world.handle(&input);
            observer.observe(world.now, &input, &actions, &world.scheduler);
            if index == warmup {
                observer.reset(world.now, &world.scheduler);
            }
        }
        let end = world.now + Span::from_secs(1);
        let summary = observer.summary(end, &world.scheduler);
        for (metric, value) in summary.values() {
            let Some(value) = value else { continue };
            prop_assert!(value.is_finite() && value >= 0.0, "{}: {}", metric.name, value);
            prop_assert!(metric.kind != Kind::Share || value <= 1.0, "{}: {}", metric.name, value);
        }
        let parts: u64 = summary.staleness_part_sums().iter().sum();
        prop_assert_eq!(u128::from(parts), summary.staleness().sum());
    }
}
