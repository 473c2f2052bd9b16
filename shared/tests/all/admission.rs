//! The gate, and which replica a request goes to.

use headway_shared::action::{Action, Discard, Refusal};
use headway_shared::config::{JudgeNeeds, Routing, SyncMode};
use headway_shared::core::SampleState;
use headway_shared::id::{ReplicaId, RequestId};
use headway_shared::input::{Finish, Input, TurnType};

use super::harness::{Bench, Decision, GOOD, R0, R1, secs};

fn admits(bench: &mut Bench, sessions: std::ops::Range<u64>) {
    for session in sessions {
        bench.admit(session);
    }
}

fn replica_of(bench: &Bench, request: RequestId) -> ReplicaId {
    match bench.decision(request) {
        Decision::Started { replica, .. } => replica,
        other => panic!("not started: {other:?}"),
    }
}

#[test]
fn the_gate_admits_eta_plus_one_batches_and_no_more() {
    let mut bench = Bench::new(|_| {});
    admits(&mut bench, 0..6);
    bench.refuses(6, Refusal::Stale);
    assert_eq!(bench.core.gauges().outstanding, 6);
}

#[test]
fn publish_lag_takes_places_away() {
    let mut bench = Bench::new(|_| {});
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.end_step(true);
    admits(&mut bench, 2..6);
    bench.refuses(6, Refusal::Stale);
    bench.publish();
    admits(&mut bench, 7..9);
    bench.refuses(9, Refusal::Stale);
}

#[test]
fn the_batch_in_training_counts_as_outstanding() {
    let mut bench = Bench::new(|_| {});
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    assert!(bench.training());
    admits(&mut bench, 2..6);
    bench.refuses(6, Refusal::Stale);
}

#[test]
fn a_discarded_sample_frees_its_place_at_once() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 0);
    let first = bench.admit(0);
    bench.admit(1);
    bench.refuses(2, Refusal::Stale);
    bench.finish_as(first, Finish::Failed, 0);
    bench.admit(3);
    bench.refuses(4, Refusal::Stale);
}

#[test]
fn a_refused_request_still_delivers_the_next_state() {
    let mut bench = Bench::new(|c| {
        c.reward_judging.judge_needs = JudgeNeeds::NextState;
        c.policy_training.max_head_off_policyness = 0;
        c.policy_training.batch_size = 1;
    });
    let sample = bench.turn(0);
    assert_eq!(bench.votes_on(sample), 0);
    bench.refuses(0, Refusal::Stale);
    assert_eq!(bench.votes_on(sample), 1);
}

#[test]
fn a_refused_last_request_ends_its_session() {
    let mut bench = Bench::new(|c| {
        c.reward_judging.fire_on_turn_end = false;
        c.policy_training.max_head_off_policyness = 0;
        c.policy_training.batch_size = 1;
        c.policy_serving.max_concurrent_rollouts = 1;
    });
    let waiting = bench.turn(0);
    assert_eq!(bench.core.ledger().count(SampleState::AwaitingSessionEnd), 1);
    bench.give(Input::Operator(headway_shared::input::Operator::Pause));
    let last = bench.request_with(0, |request| request.last = true);
    bench.refused(last, Refusal::Paused);
    assert_eq!(bench.votes_on(waiting), 1);
}

#[test]
fn a_request_id_used_twice_is_ignored_and_counted() {
    let mut bench = Bench::new(|_| {});
    let request = bench.admit(0);
    let ignored = bench.core.ledger().ignored;
    let again = Input::Request(headway_shared::input::Request {
        request,
        session: headway_shared::id::SessionId(9),
        group: None,
        turn: TurnType::Main,
        prompt_tokens: 1,
        streamed: false,
        last: false,
    });
    bench.give(again);
    assert!(bench.last.is_empty());
    assert_eq!(bench.core.ledger().ignored, ignored + 1);
    assert_eq!(bench.core.ledger().offered, 1);
}

#[test]
fn without_a_replica_a_request_is_refused_and_told_so() {
    let mut bench = Bench::bare(super::harness::small());
    bench.refuses(0, Refusal::NoReplica);
    bench.replica_up(R0, 0);
    bench.admit(1);
    bench.replica_down(R0);
    bench.refuses(2, Refusal::NoReplica);
}

#[test]
fn the_least_loaded_replica_takes_a_request_and_ties_go_to_the_lowest() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 9);
    bench.replica_up(R1, 0);
    let placed: Vec<_> = (0..4)
        .map(|session| {
            let request = bench.admit(session);
            replica_of(&bench, request)
        })
        .collect();
    assert_eq!(placed, [R0, R1, R0, R1]);
}

#[test]
fn affine_routing_goes_back_to_the_session_s_replica() {
    let mut bench = Bench::new(|c| {
        c.policy_serving.routing = Routing::SessionAffine;
        c.policy_training.max_head_off_policyness = 9;
    });
    bench.replica_up(R1, 0);
    bench.admit(0);
    let first = bench.admit(1);
    assert_eq!(replica_of(&bench, first), R1);
    bench.finish(first);
    bench.admit(2);
    bench.admit(3);
    let second = bench.admit(1);
    assert_eq!(replica_of(&bench, second), R1);
}

#[test]
fn two_replicas_at_different_versions_have_different_capacities() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 1);
    bench.replicas_apart();
    assert_eq!((bench.deployed(R0), bench.deployed(R1)), (1, 0));
    let placed: Vec<_> = (2..6)
        .map(|session| {
            let request = bench.admit(session);
            replica_of(&bench, request)
        })
        .collect();
    assert_eq!(placed, [R0, R1, R0, R0], "the second place is the last that lag 1 leaves");
    bench.refuses(6, Refusal::Stale);
}

#[test]
fn side_requests_are_served_when_the_gate_is_closed_and_never_train() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 0;
        c.policy_serving.max_concurrent_rollouts = 2;
    });
    admits(&mut bench, 0..2);
    bench.refuses(2, Refusal::Stale);
    let side = bench.request_with(3, |request| request.turn = TurnType::Side);
    assert_eq!(bench.decision(side), Decision::Started { replica: R0, sample: None });
    bench.finish(side);
    assert!(bench.reply(side).is_some());
    assert_eq!(bench.core.ledger().admitted, 2);
    assert_eq!(bench.core.ledger().side_offered, 1);
}

#[test]
fn side_requests_are_refused_in_a_sync_window() {
    let mut bench = Bench::new(|c| c.policy_serving.sync_mode = SyncMode::PauseDrain);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.end_step(true);
    bench.save();
    let side = bench.request_with(3, |request| request.turn = TurnType::Side);
    bench.refused(side, Refusal::WeightSync);
    assert_eq!(bench.core.ledger().side_refused, 1);
}

#[test]
fn a_side_request_delivers_the_next_state_too() {
    let mut bench = Bench::new(|c| c.reward_judging.judge_needs = JudgeNeeds::NextState);
    let sample = bench.turn(0);
    bench.request_with(0, |request| request.turn = TurnType::Side);
    assert_eq!(bench.votes_on(sample), 1);
}

#[test]
fn max_concurrent_rollouts_caps_what_runs() {
    let mut bench = Bench::new(|c| c.policy_serving.max_concurrent_rollouts = 2);
    let first = bench.admit(0);
    bench.admit(1);
    bench.refuses(2, Refusal::Concurrency);
    bench.finish(first);
    bench.admit(3);
}

#[test]
fn a_paused_run_refuses_and_goes_on_when_resumed() {
    use headway_shared::input::Operator;
    let mut bench = Bench::new(|_| {});
    let running = bench.admit(0);
    bench.give(Input::Operator(Operator::Pause));
    assert!(bench.did(|action| matches!(action, Action::OperatorReply { .. })));
    assert!(bench.core.gauges().closed);
    bench.refuses(1, Refusal::Paused);
    bench.finish(running);
    assert_eq!(bench.votes_on(bench.sample_of(running)), 1, "what is admitted goes on");
    bench.give(Input::Operator(Operator::Resume));
    bench.admit(2);
}

#[test]
fn a_client_that_leaves_frees_its_place_and_its_engine() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 0);
    let request = bench.admit(0);
    bench.admit(1);
    bench.give(Input::ClientLeft { request });
    assert!(bench.did(|action| matches!(action, Action::AbortGeneration { .. })));
    assert_eq!(bench.fate(bench.sample_of(request)), Some(Discard::ClientLeft));
    bench.admit(2);
    bench.finish_as(request, Finish::Aborted, 3);
    assert_eq!(bench.discarded.len(), 1, "the late end changes nothing");
}

#[test]
fn a_client_that_leaves_after_its_turn_changes_nothing() {
    let mut bench = Bench::new(|_| {});
    let request = bench.admit(0);
    bench.finish(request);
    bench.give(Input::ClientLeft { request });
    assert!(bench.last.is_empty());
    bench.vote(bench.sample_of(request), GOOD);
    assert!(bench.discarded.is_empty());
}

#[test]
fn a_generation_without_an_answer_is_given_up() {
    let mut bench = Bench::new(|c| c.policy_serving.generation_timeout = secs(60));
    let request = bench.admit(0);
    bench.advance(secs(61));
    assert_eq!(bench.fate(bench.sample_of(request)), Some(Discard::GenerationFailed));
    assert_eq!(bench.reply(request), Some(headway_shared::action::Reply::Failed));
    bench.advance(secs(100));
    let ignored = bench.core.ledger().ignored;
    bench.finish(request);
    assert_eq!(bench.core.ledger().ignored, ignored + 1, "it answers far too late");
}

#[test]
fn a_turn_without_tokens_is_discarded_as_empty() {
    let mut bench = Bench::new(|_| {});
    let request = bench.admit(0);
    bench.finish_as(request, Finish::Stop, 0);
    assert_eq!(bench.fate(bench.sample_of(request)), Some(Discard::Empty));
    assert_eq!(bench.core.gauges().outstanding, 0);
}
