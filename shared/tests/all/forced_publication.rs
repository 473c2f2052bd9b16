//! An operator wishes for a publication.

use headway_shared::action::{Action, OperatorReply, Refusal};
use headway_shared::config::SyncMode;
use headway_shared::input::{Input, Operator, WeightsEvent};

use super::harness::{Bench, GOOD, R0, R1};
use super::sync_modes::{loads, publishing};

fn publishes(bench: &Bench) -> usize {
    bench.last.iter().filter(|action| matches!(action, Action::Publish { .. })).count()
}

fn wish(bench: &mut Bench) {
    bench.give(Input::Operator(Operator::Publish));
    let done = Action::OperatorReply { reply: OperatorReply::Done };
    assert!(bench.did(|action| *action == done));
}

#[test]
fn it_loads_every_replica_whether_or_not_it_lacks_weights_and_is_a_window_like_any_other() {
    let mut bench = Bench::new(|c| c.policy_serving.sync_mode = SyncMode::PauseDrain);
    bench.replica_up(R1, 0);
    wish(&mut bench);
    assert_eq!(publishes(&bench), 1);
    assert!(bench.core.publication_wished() && !bench.core.in_sync_window());
    bench.save();
    assert_eq!(loads(&bench).len(), 2);
    assert!(bench.core.in_sync_window());
    bench.refuses(1, Refusal::WeightSync);
    bench.load(R0);
    bench.refuses(2, Refusal::WeightSync);
    bench.load(R1);
    bench.admit(3);
    assert!(!bench.core.publication_wished());
    assert_eq!(bench.core.ledger().publications, 1);
    assert_eq!(publishes(&bench), 0, "one wish, one publication");
}

#[test]
fn while_another_is_under_way_it_waits_for_its_end() {
    let (mut bench, [a, b]) = publishing(SyncMode::PauseDrain, |_| {});
    wish(&mut bench);
    assert_eq!(publishes(&bench), 0);
    bench.save();
    bench.finish(a);
    bench.finish(b);
    bench.load(R0);
    assert_eq!(publishes(&bench), 1, "the wished one follows");
    bench.save();
    bench.load(R0);
    assert_eq!((bench.core.ledger().publications, bench.core.publication_wished()), (2, false));
}

#[test]
fn it_is_over_though_the_next_publication_follows_at_once() {
    let mut bench = Bench::new(|_| {});
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    wish(&mut bench);
    bench.end_step(true);
    bench.save();
    bench.load(R0);
    assert_eq!(publishes(&bench), 1, "of the version that was made meanwhile");
    assert!(!bench.core.publication_wished());
}

#[test]
fn one_that_fails_is_tried_again_on_every_replica() {
    let mut bench = Bench::new(|_| {});
    wish(&mut bench);
    bench.save();
    bench.weights(WeightsEvent::LoadFailed { replica: R0, intact: true });
    assert_eq!(bench.core.ledger().failed_publications, 1);
    assert!(bench.core.publication_wished());
    let delay = bench.core.config().policy_serving.publish_retry_delay;
    bench.advance(delay);
    assert_eq!(publishes(&bench), 1);
    bench.save();
    assert_eq!(loads(&bench).len(), 1, "it lacks nothing, and loads again");
    bench.load(R0);
    assert!(!bench.core.publication_wished());
}

#[test]
fn it_survives_a_snapshot_and_ends_with_the_run() {
    let (mut bench, _) = publishing(SyncMode::InFlight, |_| {});
    wish(&mut bench);
    let bytes = headway_shared::snapshot::to_bytes(&bench.core).unwrap();
    let restored = headway_shared::snapshot::from_bytes(&bytes).unwrap();
    assert!(restored.publication_wished());
    bench.give(Input::CommitFailed);
    bench.give(Input::Operator(Operator::Publish));
    let rejected = Action::OperatorReply { reply: OperatorReply::Rejected };
    assert!(bench.did(|action| *action == rejected));
}

#[test]
fn what_trains_is_not_changed_by_it() {
    let mut bench = Bench::new(|_| {});
    bench.scored(0, GOOD);
    wish(&mut bench);
    bench.save();
    bench.load(R0);
    bench.scored(1, GOOD);
    assert!(bench.training());
}

#[test]
fn one_that_reaches_nobody_is_still_wished_for() {
    let mut bench = Bench::new(|_| {});
    wish(&mut bench);
    bench.save();
    bench.replica_down(R0);
    assert_eq!((bench.core.ledger().publications, publishes(&bench)), (0, 0));
    assert!(bench.core.publication_wished());
    bench.replica_up(R0, 0);
    assert_eq!(publishes(&bench), 1, "there is a replica again");
    bench.save();
    bench.load(R0);
    assert_eq!((bench.core.ledger().publications, bench.core.publication_wished()), (1, false));
}
