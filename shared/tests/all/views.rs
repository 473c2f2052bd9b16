//! What can be asked of the core while it runs.

use headway_shared::action::Refusal;
use headway_shared::config::OverLimit;
use headway_shared::id::SessionId;
use headway_shared::input::Input;

use super::harness::{Bench, Decision, GOOD, main_request, secs};

#[test]
fn a_request_a_session_and_a_publication_are_known_while_they_are_there() {
    let mut bench = Bench::new(|_| {});
    let turn = bench.admit(1);
    assert!(bench.core.knows(turn) && bench.core.session_is_open(SessionId(1)));
    let other = bench.admit(2);
    assert_eq!(bench.core.requests(), 2);
    bench.finish(turn);
    bench.vote(bench.sample_of(turn), GOOD);
    bench.end_session(1);
    assert!(!bench.core.knows(turn) && !bench.core.session_is_open(SessionId(1)));
    assert_eq!((bench.core.requests(), bench.core.publication()), (1, None));
    bench.finish(other);
    bench.vote(bench.sample_of(other), GOOD);
    bench.end_step(true);
    assert_eq!(bench.core.publication(), bench.watch.publication);
    assert!(bench.core.publication().is_some());
}

#[test]
fn what_a_request_would_meet_is_told_without_asking_it() {
    let mut bench = Bench::new(|config| {
        config.policy_training.max_head_off_policyness = 0;
        config.policy_serving.over_limit = OverLimit::Hold;
    });
    let running = bench.admit(0);
    let would = bench.core.deliberate(bench.now, &main_request(900, 900)).expect("it is new");
    assert_eq!((would.main, would.needs_place, would.verdict, would.behind), (true, true, None, 0));
    bench.admit(1);
    let would = bench.core.deliberate(bench.now, &main_request(900, 900)).expect("it is new");
    assert_eq!(would.verdict, Some(Refusal::Stale));
    assert_eq!(bench.core.requests(), 2, "nothing was asked");
    assert_eq!(
        bench.core.deliberate(bench.now, &main_request(running.0, running.0)),
        None,
        "it is there"
    );
    let held = bench.request(2);
    let would = bench.core.deliberate(bench.now, &main_request(900, 900)).expect("it is new");
    assert_eq!((would.verdict, would.behind), (Some(Refusal::Stale), 1));
    let waits = bench.core.deliberate_again(bench.now, held).expect("it waits");
    assert_eq!((waits.request, waits.main, waits.verdict), (held, true, Some(Refusal::Stale)));
    assert_eq!(bench.core.deliberate_again(bench.now, running), None, "it waits for nothing");
}

/// Of a group without a place one request waits for all: when it leaves, the next one does.
#[test]
fn a_group_waits_on_when_the_request_leaves_that_was_held_for_it() {
    let mut bench = Bench::new(|config| {
        config.policy_training.group_size = 2;
        config.policy_training.min_group_size = 1;
        config.policy_training.batch_size = 1;
        config.policy_training.max_head_off_policyness = 0;
        config.policy_serving.over_limit = OverLimit::Hold;
        config.policy_serving.hold = secs(1000);
    });
    let first = [0, 1].map(|session| bench.admit_in(session, 0));
    let [leaves, stays] = [2, 3].map(|session| bench.request_in(session, 1));
    bench.give(Input::ClientLeft { request: leaves });
    for request in first {
        bench.finish(request);
        bench.vote(bench.sample_of(request), GOOD);
    }
    bench.end_step(true);
    bench.publish();
    assert!(matches!(bench.decision(stays), Decision::Started { sample: Some(_), .. }));
}
