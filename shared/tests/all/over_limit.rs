//! What happens to requests beyond the limit: refused, held, or served without recording.

use headway_shared::action::{Refusal, Reply};
use headway_shared::config::{DropPolicy, OverLimit, Routing, SyncMode};
use headway_shared::input::{Finish, Input, Operator, TurnType};

use super::harness::{Bench, Decision, GOOD, R0, R1, secs};

/// η = 0 and batches of 1: one place.
fn one_place(over_limit: OverLimit) -> Bench {
    Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 0;
        c.policy_training.batch_size = 1;
        c.policy_serving.over_limit = over_limit;
    })
}

#[test]
fn a_held_request_starts_when_a_place_is_free() {
    let mut bench = one_place(OverLimit::Hold);
    let first = bench.admit(0);
    let held = bench.request(1);
    assert_eq!(bench.decision(held), Decision::Held);
    assert_eq!(bench.core.ledger().held, 1);
    bench.finish_as(first, Finish::Failed, 0);
    assert!(matches!(bench.decision(held), Decision::Started { sample: Some(_), .. }));
    assert_eq!(bench.core.ledger().held, 0);
}

#[test]
fn held_requests_start_in_the_order_of_their_arrival() {
    let mut bench = one_place(OverLimit::Hold);
    let first = bench.admit(0);
    let (second, third) = (bench.request(1), bench.request(2));
    bench.finish_as(first, Finish::Failed, 0);
    assert!(matches!(bench.decision(second), Decision::Started { .. }));
    assert_eq!(bench.decision(third), Decision::Held);
}

#[test]
fn a_hold_expires_with_429() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 0;
        c.policy_training.batch_size = 1;
        c.policy_serving.over_limit = OverLimit::Hold;
        c.policy_serving.hold = secs(20);
    });
    bench.admit(0);
    let held = bench.request(1);
    bench.advance(secs(19));
    assert_eq!(bench.decision(held), Decision::Held);
    bench.advance(secs(1));
    bench.refused(held, Refusal::HoldExpired);
    assert_eq!(bench.core.gauges().held, 0);
}

#[test]
fn a_hold_of_zero_lasts_as_long_as_it_takes() {
    let mut bench = one_place(OverLimit::Hold);
    let first = bench.admit(0);
    let held = bench.request(1);
    bench.advance(secs(1000));
    assert_eq!(bench.decision(held), Decision::Held);
    bench.finish_as(first, Finish::Failed, 0);
    assert!(matches!(bench.decision(held), Decision::Started { .. }));
}

#[test]
fn a_client_that_leaves_while_it_is_held_lets_the_next_one_go_first() {
    let mut bench = one_place(OverLimit::Hold);
    let first = bench.admit(0);
    let (gone, next) = (bench.request(1), bench.request(2));
    bench.give(Input::ClientLeft { request: gone });
    assert_eq!(bench.core.ledger().left_while_held, 1);
    bench.finish_as(first, Finish::Failed, 0);
    assert_eq!(bench.decision(gone), Decision::Held, "it is never started");
    assert!(matches!(bench.decision(next), Decision::Started { .. }));
}

#[test]
fn a_held_request_delivers_its_next_state_at_once() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 0;
        c.policy_training.batch_size = 1;
        c.policy_serving.over_limit = OverLimit::Hold;
        c.reward_judging.judge_needs = headway_shared::config::JudgeNeeds::NextState;
    });
    let sample = bench.turn(0);
    let held = bench.request(0);
    assert_eq!(bench.decision(held), Decision::Held);
    assert_eq!(bench.votes_on(sample), 1);
}

#[test]
fn holding_covers_sync_windows_and_pauses() {
    let mut bench = Bench::new(|c| {
        c.policy_serving.over_limit = OverLimit::Hold;
        c.policy_serving.sync_mode = SyncMode::PauseDrain;
    });
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.end_step(true);
    bench.save();
    let held = bench.request(2);
    let side = bench.request_with(3, |request| request.turn = TurnType::Side);
    assert_eq!(bench.decision(held), Decision::Held);
    assert_eq!(bench.decision(side), Decision::Held);
    bench.load(R0);
    assert!(matches!(bench.decision(held), Decision::Started { .. }));
    assert!(matches!(bench.decision(side), Decision::Started { sample: None, .. }));

    bench.give(Input::Operator(Operator::Pause));
    let held = bench.request(4);
    assert_eq!(bench.decision(held), Decision::Held);
    bench.give(Input::Operator(Operator::Resume));
    assert!(matches!(bench.decision(held), Decision::Started { .. }));
}

#[test]
fn serve_only_serves_and_does_not_record() {
    let mut bench = one_place(OverLimit::ServeOnly);
    bench.admit(0);
    let served = bench.request(1);
    assert_eq!(bench.decision(served), Decision::Started { replica: R0, sample: None });
    bench.finish(served);
    assert_eq!(bench.reply(served), Some(Reply::Complete));
    assert_eq!(bench.core.ledger().served_only, 1);
    assert_eq!(bench.core.ledger().admitted, 1);
}

#[test]
fn serve_only_helps_where_a_queue_is_full_too() {
    let mut bench = Bench::new(|c| {
        c.policy_serving.over_limit = OverLimit::ServeOnly;
        c.queue.rollout.max_size = 2;
        c.queue.rollout.drop_policy = DropPolicy::Reject;
    });
    bench.admit(0);
    bench.admit(1);
    let served = bench.request(2);
    assert_eq!(bench.decision(served), Decision::Started { replica: R0, sample: None });
}

#[test]
fn serve_only_does_not_open_a_sync_window() {
    let mut bench = Bench::new(|c| {
        c.policy_serving.over_limit = OverLimit::ServeOnly;
        c.policy_serving.sync_mode = SyncMode::PauseDrain;
    });
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.end_step(true);
    bench.save();
    bench.refuses(2, Refusal::WeightSync);
}

#[test]
fn retry_after_is_at_most_a_minute_however_long_the_window() {
    // The bound itself is asserted on every refusal by the checker.
    let mut bench = Bench::new(|c| {
        c.policy_serving.sync_mode = SyncMode::PauseDrain;
        c.policy_serving.pause_timeout = secs(100_000);
        c.policy_serving.transfer_timeout = secs(100_000);
        c.policy_serving.load_timeout = secs(100_000);
        c.policy_training.max_head_off_policyness = 0;
    });
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.advance(secs(50_000));
    bench.refuses(2, Refusal::Stale);
    bench.end_step(true);
    bench.save();
    bench.advance(secs(50_000));
    bench.refuses(3, Refusal::WeightSync);
}

#[test]
fn a_newcomer_does_not_overtake_who_waits_for_a_place_elsewhere() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 0;
        c.policy_serving.over_limit = OverLimit::Hold;
        c.policy_serving.routing = Routing::SessionAffine;
    });
    bench.replica_up(R1, 0);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.request_with(9, |request| request.turn = TurnType::Side);
    bench.end_step(true);
    bench.save();
    bench.load(R1);
    // Session 0 goes back to R0, which has its new weights soon. R1 has them, and less to do.
    let [first, second] = [0, 5].map(|session| bench.request(session));
    assert_eq!([first, second].map(|held| bench.decision(held)), [Decision::Held; 2]);
    bench.load(R0);
    assert!(matches!(bench.decision(first), Decision::Started { replica: R0, .. }));
    assert!(matches!(bench.decision(second), Decision::Started { replica: R1, .. }));
}
