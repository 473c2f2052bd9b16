//! The happy path of each sync mode.

use headway_shared::action::{Action, Discard, InFlight, Refusal, Reply};
use headway_shared::config::{Aborted, Config, KvOnSync, OverLimit, SyncMode};
use headway_shared::id::{ReplicaId, RequestId, SampleId};
use headway_shared::input::{Finish, WeightsEvent};

use super::harness::{Bench, Decision, GOOD, R0, R1, secs};

/// A step is done and its publication begins, while two turns run.
pub(crate) fn publishing(
    mode: SyncMode,
    edit: impl FnOnce(&mut Config),
) -> (Bench, [RequestId; 2]) {
    let mut bench = Bench::new(|c| {
        c.policy_serving.sync_mode = mode;
        c.policy_training.max_head_off_policyness = 9;
        edit(c);
    });
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    let running = [bench.admit(2), bench.admit(3)];
    bench.end_step(true);
    assert!(bench.did(|action| matches!(action, Action::Publish { .. })));
    (bench, running)
}

pub(crate) fn loads(bench: &Bench) -> Vec<(ReplicaId, InFlight)> {
    let load = |action: &Action| match *action {
        Action::Load { replica, in_flight, .. } => Some((replica, in_flight)),
        _ => None,
    };
    bench.last.iter().filter_map(load).collect()
}

pub(crate) fn aborts(bench: &Bench) -> usize {
    bench.last.iter().filter(|action| matches!(action, Action::AbortGeneration { .. })).count()
}

#[test]
fn saving_closes_nothing() {
    for mode in [SyncMode::PauseDrain, SyncMode::PauseAbort, SyncMode::PauseKeep] {
        let (mut bench, _) = publishing(mode, |_| {});
        bench.admit(4);
    }
}

#[test]
fn pause_drain_waits_for_what_runs_then_loads_then_reopens() {
    let (mut bench, [a, b]) = publishing(SyncMode::PauseDrain, |_| {});
    bench.save();
    bench.refuses(4, Refusal::WeightSync);
    assert_eq!((loads(&bench).len(), aborts(&bench)), (0, 0));
    bench.finish(a);
    assert!(loads(&bench).is_empty());
    bench.finish(b);
    assert_eq!(loads(&bench), [(R0, InFlight::Drained)]);
    bench.refuses(5, Refusal::WeightSync);
    bench.load(R0);
    assert_eq!(bench.deployed(R0), 1);
    bench.admit(6);
    assert_eq!(bench.core.ledger().publications, 1);
}

#[test]
fn pause_drain_aborts_what_does_not_end_in_time() {
    let (mut bench, [a, b]) = publishing(SyncMode::PauseDrain, |c| {
        c.policy_serving.pause_timeout = secs(60);
        c.policy_serving.aborted = Aborted::Restart;
    });
    bench.save();
    bench.finish(a);
    bench.advance(secs(61));
    assert!(bench.watch.generations[&(b, 1)].aborted);
    bench.finish_as(b, Finish::Aborted, 3);
    assert_eq!(loads(&bench), [(R0, InFlight::Drained)]);
    bench.load(R0);
    assert_eq!(bench.watch.attempt(b), Some(2), "it starts again");
    bench.finish(b);
    let sample = bench.core.sample(bench.sample_of(b)).expect("outstanding");
    assert_eq!((sample.head.number(), sample.segments), (1, 1));
}

#[test]
fn pause_abort_aborts_at_once() {
    let (mut bench, [a, b]) = publishing(SyncMode::PauseAbort, |_| {});
    bench.save();
    assert_eq!(aborts(&bench), 2);
    bench.finish_as(a, Finish::Aborted, 3);
    assert!(loads(&bench).is_empty());
    bench.finish_as(b, Finish::Aborted, 3);
    assert_eq!(loads(&bench), [(R0, InFlight::Drained)]);
    bench.refuses(4, Refusal::WeightSync);
    bench.load(R0);
    assert_eq!(bench.watch.generations.len(), 2, "both start again");
    bench.admit(5);
}

#[test]
fn pause_keep_freezes_what_runs_and_goes_on_with_mixed_segments() {
    let (mut bench, [a, _]) = publishing(SyncMode::PauseKeep, |_| {});
    bench.save();
    assert_eq!(loads(&bench), [(R0, InFlight::Frozen)]);
    assert_eq!(aborts(&bench), 0);
    bench.refuses(4, Refusal::WeightSync);
    bench.load(R0);
    bench.admit(5);
    bench.finish(a);
    let sample = bench.core.sample(bench.sample_of(a)).expect("outstanding");
    assert_eq!((sample.head.number(), sample.tail.number(), sample.segments), (0, 1, 2));
}

#[test]
fn in_flight_never_closes_and_swaps_under_what_runs() {
    let (mut bench, [a, _]) =
        publishing(SyncMode::InFlight, |c| c.policy_serving.kv_on_sync = KvOnSync::Keep);
    bench.save();
    assert_eq!(loads(&bench), [(R0, InFlight::Running)]);
    let kept = |action: &Action| matches!(action, Action::Load { kv: KvOnSync::Keep, .. });
    assert!(bench.did(kept));
    bench.admit(4);
    bench.load(R0);
    bench.finish(a);
    let sample = bench.core.sample(bench.sample_of(a)).expect("outstanding");
    assert_eq!((sample.segments, sample.serving_skew()), (2, 1));
}

/// Two requests are held for the weights that both replicas load.
fn waiting_while_two_replicas_load() -> (Bench, [RequestId; 2]) {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 0;
        c.policy_serving.over_limit = OverLimit::Hold;
    });
    bench.replica_up(R1, 0);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    let waiting = [bench.request(2), bench.request(3)];
    bench.end_step(true);
    bench.save();
    (bench, waiting)
}

#[test]
fn what_waits_for_new_weights_is_spread_over_all_replicas_that_load_them() {
    let (mut bench, waiting) = waiting_while_two_replicas_load();
    let started = |bench: &Bench, request| match bench.decision(request) {
        Decision::Started { replica, .. } => Some(replica),
        _ => None,
    };
    bench.load(R0);
    assert_eq!(waiting.map(|request| started(&bench, request)), [Some(R0), None]);
    bench.load(R1);
    assert_eq!(waiting.map(|request| started(&bench, request)), [Some(R0), Some(R1)]);
}

#[test]
fn a_load_that_fails_keeps_nothing_waiting_for_its_replica() {
    let (mut bench, waiting) = waiting_while_two_replicas_load();
    bench.load(R0);
    bench.load_event(R1, WeightsEvent::TransferFailed(R1));
    for request in waiting {
        assert!(matches!(bench.decision(request), Decision::Started { replica: R0, .. }));
    }
}

#[test]
fn rolling_loads_one_replica_at_a_time_while_the_others_serve() {
    let mut bench = Bench::new(|c| {
        c.policy_serving.sync_mode = SyncMode::Rolling;
        c.policy_training.max_head_off_policyness = 9;
    });
    bench.replica_up(R1, 0);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    let running = [bench.admit(2), bench.admit(3)];
    bench.end_step(true);
    bench.save();
    assert!(loads(&bench).is_empty(), "the first is drained");
    for session in 4..7 {
        bench.admit(session);
    }
    let on = |bench: &Bench, request: RequestId| match bench.decision(request) {
        Decision::Started { replica, .. } => replica,
        other => panic!("{other:?}"),
    };
    let first = if on(&bench, running[0]) == R0 { running } else { [running[1], running[0]] };
    bench.finish(first[0]);
    assert_eq!(loads(&bench), [(R0, InFlight::Drained)]);
    bench.load(R0);
    assert_eq!((bench.deployed(R0), bench.deployed(R1)), (1, 0));
    let now_new = bench.admit(7);
    assert_eq!(on(&bench, now_new), R0);
    let left: Vec<RequestId> =
        bench.watch.generations.keys().map(|(request, _)| *request).collect();
    for request in left {
        if on(&bench, request) == R1 {
            bench.finish(request);
        }
    }
    assert_eq!(bench.watch.loading(), Some(R1));
    bench.load(R1);
    assert_eq!(bench.deployed(R1), 1);
    assert_eq!(bench.core.ledger().publications, 1);
}

#[test]
fn rolling_with_one_replica_closes_for_as_long_as_it_loads() {
    let (mut bench, [a, b]) = publishing(SyncMode::Rolling, |_| {});
    bench.save();
    bench.finish(a);
    bench.finish(b);
    bench.refuses(4, Refusal::WeightSync);
    bench.load(R0);
    bench.admit(5);
}

#[test]
fn weights_are_published_after_every_publish_interval_steps() {
    let mut bench = Bench::new(|c| c.policy_training.publish_interval = 2);
    for step in 1..=4_u64 {
        while !bench.training() {
            bench.scored(100 + step, GOOD);
        }
        bench.end_step(true);
        let published = bench.did(|action| matches!(action, Action::Publish { .. }));
        assert_eq!(published, step % 2 == 0, "after step {step}");
        bench.publish();
    }
    assert_eq!(bench.deployed(R0), 4);
}

#[test]
fn what_becomes_due_during_a_publication_follows_it_with_the_newest_version() {
    let (mut bench, _) = publishing(SyncMode::InFlight, |_| {});
    for step in 0..2 {
        bench.scored(10 + step, GOOD);
        bench.scored(20 + step, GOOD);
        bench.end_step(true);
        assert!(!bench.did(|action| matches!(action, Action::Publish { .. })));
    }
    bench.save();
    bench.load(R0);
    let newest = |action: &Action| matches!(action, Action::Publish { version, .. } if version.number() == 3);
    assert!(bench.did(newest));
}

/// What becomes of turns that a pause aborts after three tokens.
fn aborted(policy: Aborted, streamed: bool, tokens: u32) -> (Bench, RequestId) {
    let mut bench = Bench::new(|c| {
        c.policy_serving.sync_mode = SyncMode::PauseAbort;
        c.policy_serving.aborted = policy;
        c.policy_training.max_head_off_policyness = 9;
    });
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    let request = bench.request_with(2, |request| request.streamed = streamed);
    bench.end_step(true);
    bench.save();
    bench.finish_as(request, Finish::Aborted, tokens);
    bench.load(R0);
    (bench, request)
}

#[test]
fn an_aborted_turn_is_discarded_and_its_client_is_told() {
    for (streamed, reply) in [(false, Reply::Failed), (true, Reply::Partial)] {
        let (bench, request) = aborted(Aborted::Discard, streamed, 3);
        let fate = bench.fate(bench.sample_of(request));
        assert_eq!(fate, Some(headway_shared::action::Discard::Aborted));
        assert_eq!(bench.reply(request), Some(reply));
    }
}

#[test]
fn an_aborted_turn_starts_again_from_nothing() {
    let (mut bench, request) = aborted(Aborted::Restart, false, 3);
    assert_eq!(bench.reply(request), None);
    let again = |action: &Action| {
        matches!(action, Action::StartGeneration { attempt: 2, resume: false, .. })
    };
    assert!(bench.log.iter().any(again));
    bench.finish(request);
    let sample = bench.core.sample(bench.sample_of(request)).expect("outstanding");
    assert_eq!((sample.head.number(), sample.segments), (1, 1));
}

#[test]
fn what_a_client_has_read_is_not_taken_back() {
    let (mut bench, request) = aborted(Aborted::Restart, true, 3);
    let resumed = |action: &Action| {
        matches!(action, Action::StartGeneration { attempt: 2, resume: true, .. })
    };
    assert!(bench.log.iter().any(resumed), "a streamed turn goes on");
    bench.finish(request);
    let sample = bench.core.sample(bench.sample_of(request)).expect("outstanding");
    assert_eq!((sample.head.number(), sample.segments), (0, 2));

    let (bench, _) = aborted(Aborted::Restart, true, 0);
    assert!(!bench.log.iter().any(resumed), "nothing was read yet");
}

#[test]
fn an_aborted_turn_goes_on_from_its_tokens() {
    let (mut bench, request) = aborted(Aborted::Resume, false, 3);
    bench.finish(request);
    let sample = bench.core.sample(bench.sample_of(request)).expect("outstanding");
    assert_eq!((sample.head.number(), sample.tail.number()), (0, 1));
}

#[test]
fn an_aborted_turn_is_kept_as_final_if_it_has_tokens() {
    let (bench, request) = aborted(Aborted::KeepAsFinal, false, 3);
    assert_eq!(bench.votes_on(bench.sample_of(request)), 1);
    assert!(bench.reply(request).is_some());
    let (bench, request) = aborted(Aborted::KeepAsFinal, false, 0);
    let fate = bench.fate(bench.sample_of(request));
    assert_eq!(fate, Some(headway_shared::action::Discard::Aborted));
}

/// A turn that the first version's publication aborts before its first token, and its sample.
fn aborted_at_once(
    aborted: Aborted,
    edit: impl FnOnce(&mut Config),
) -> (Bench, RequestId, SampleId) {
    let mut bench = Bench::new(|c| {
        c.policy_serving.sync_mode = SyncMode::PauseAbort;
        c.policy_serving.aborted = aborted;
        edit(c);
    });
    let running = bench.admit(9);
    let sample = bench.sample_of(running);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.end_step(true);
    bench.save();
    bench.finish_as(running, Finish::Aborted, 0);
    (bench, running, sample)
}

/// Or it would be discarded with the weights that it no longer has a token of. Without a token there
/// is nothing to resume, either.
#[test]
fn a_turn_that_starts_again_is_as_old_as_its_new_weights() {
    for aborted in [Aborted::Restart, Aborted::Resume] {
        let (mut bench, running, sample) = aborted_at_once(aborted, |c| {
            c.policy_training.max_head_off_policyness = 1;
            c.policy_training.stale_filter_steps = Some(1);
        });
        bench.load(R0);
        bench.scored(2, GOOD);
        bench.scored(3, GOOD);
        bench.end_step(true);
        assert_eq!((bench.learner(), bench.deployed(R0)), (2, 1));
        assert_eq!(bench.fate(sample), None, "one version old");
        bench.finish(running);
        bench.vote(sample, GOOD);
        bench.scored(4, GOOD);
        assert!(bench.batch().contains(&sample));
    }
}

#[test]
fn an_aborted_turn_without_a_token_is_no_final_one() {
    let (bench, running, sample) = aborted_at_once(Aborted::KeepAsFinal, |_| {});
    assert_eq!(bench.fate(sample), Some(Discard::Aborted));
    assert_eq!(bench.reply(running), Some(Reply::Failed));
}
