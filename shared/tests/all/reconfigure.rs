//! The configuration changes in the middle of a run.

use headway_shared::action::{Action, Discard, OperatorReply, Refusal};
use headway_shared::config::{Bound, Config, DropPolicy, Queue, QueueOrder, SyncMode};
use headway_shared::core::SampleState;

use super::harness::{Bench, GOOD, R0, secs};
use super::sync_modes::publishing;

fn answered(bench: &Bench, reply: OperatorReply) -> bool {
    bench.did(|action| *action == Action::OperatorReply { reply })
}

#[test]
fn an_invalid_configuration_changes_nothing() {
    let breaks: [fn(&mut Config); 5] = [
        |c| c.policy_training.batch_size = 0,
        |c| c.policy_training.publish_interval = 9,
        |c| c.policy_training.batch_size = 1000,
        |c| c.policy_training.min_batch_size = 50,
        |c| c.reward_judging.judge_concurrency = 0,
    ];
    for edit in breaks {
        let mut bench = Bench::new(|_| {});
        bench.admit(0);
        let before = bench.core.config().clone();
        bench.reconfigure(edit);
        assert!(answered(&bench, OperatorReply::Rejected));
        assert_eq!(bench.last.len(), 1);
        assert_eq!(bench.core.config(), &before);
        for session in 1..6 {
            bench.admit(session);
        }
        bench.refuses(6, Refusal::Stale);
    }
}

#[test]
fn a_smaller_eta_binds_what_is_admitted_after() {
    let mut bench = Bench::new(|_| {});
    let requests: Vec<_> = (0..6).map(|session| bench.admit(session)).collect();
    bench.reconfigure(|c| c.policy_training.max_head_off_policyness = 1);
    assert!(answered(&bench, OperatorReply::Done));
    assert!(bench.discarded.is_empty());
    bench.refuses(6, Refusal::Stale);
    for request in &requests[..2] {
        bench.finish(*request);
        bench.vote(bench.sample_of(*request), GOOD);
    }
    bench.end_step(true);
    bench.publish();
    // Four are outstanding, and two batches are all there may be.
    bench.refuses(7, Refusal::Stale);
    bench.finish_as(requests[2], headway_shared::input::Finish::Failed, 0);
    bench.admit(8);
    bench.refuses(9, Refusal::Stale);
}

#[test]
fn a_tighter_bound_and_filter_spare_what_is_admitted() {
    let mut bench = Bench::new(|c| c.policy_training.bound = Bound::Aggregate);
    let early = bench.turn(0);
    bench.steps(2);
    bench.reconfigure(|c| {
        c.policy_training.bound = Bound::Strict;
        c.policy_training.max_head_off_policyness = 1;
        c.policy_training.stale_filter_steps = Some(1);
    });
    assert!(answered(&bench, OperatorReply::Done));
    assert_eq!(bench.fate(early), None);
    let late = bench.turn(1);
    bench.steps(2);
    assert_eq!(bench.fate(early), None, "admitted under the filter that was");
    assert_eq!(bench.fate(late), Some(Discard::Late), "and this one under the new one");
}

#[test]
fn a_shorter_load_time_out_ends_the_load_that_is_under_way() {
    let (mut bench, _) = publishing(SyncMode::InFlight, |c| {
        c.policy_serving.load_timeout = secs(500);
    });
    bench.save();
    bench.load_event(R0, headway_shared::input::WeightsEvent::Transferred(R0));
    bench.advance(secs(50));
    assert!(bench.is_up(R0));
    bench.reconfigure(|c| c.policy_serving.load_timeout = secs(20));
    bench.advance(secs(1));
    assert!(!bench.is_up(R0), "it may have half of its weights");
}

#[test]
fn a_larger_eta_lets_held_requests_in_at_once() {
    let mut bench = Bench::new(|c| {
        c.policy_serving.over_limit = headway_shared::config::OverLimit::Hold;
        c.policy_training.max_head_off_policyness = 0;
    });
    bench.admit(0);
    bench.admit(1);
    let held = bench.request(2);
    bench.reconfigure(|c| c.policy_training.max_head_off_policyness = 1);
    bench.sample_of(held);
}

#[test]
fn a_bigger_batch_waits_for_more_samples() {
    let mut bench = Bench::new(|_| {});
    bench.scored(0, GOOD);
    bench.reconfigure(|c| c.policy_training.batch_size = 4);
    bench.scored(1, GOOD);
    bench.scored(2, GOOD);
    assert!(!bench.training());
    bench.scored(3, GOOD);
    assert_eq!(bench.batch().len(), 4);
}

#[test]
fn a_smaller_batch_trains_at_once() {
    let mut bench = Bench::new(|c| c.policy_training.batch_size = 4);
    for session in 0..3 {
        bench.scored(session, GOOD);
    }
    bench.reconfigure(|c| c.policy_training.batch_size = 2);
    assert_eq!(bench.batch().len(), 2);
}

#[test]
fn a_bigger_batch_does_not_disturb_the_step_under_way() {
    let mut bench = Bench::new(|_| {});
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.reconfigure(|c| c.policy_training.batch_size = 8);
    assert_eq!(bench.batch().len(), 2);
    bench.end_step(false);
    assert_eq!(bench.discarded.len(), 0);
    for session in 2..10 {
        if !bench.training() {
            bench.scored(session, GOOD);
        }
    }
    bench.end_step(true);
    assert!(bench.learner() == 1 && bench.trained.len() >= 2);
}

#[test]
fn another_sync_mode_in_mid_publication_leaves_no_window_open() {
    let modes = [
        SyncMode::PauseDrain,
        SyncMode::PauseAbort,
        SyncMode::PauseKeep,
        SyncMode::InFlight,
        SyncMode::Rolling,
    ];
    for before in modes {
        for after in modes {
            for moment in 0..3 {
                change_mode(before, after, moment);
            }
        }
    }
}

/// Changes the mode before the save (0), after it (1), or when the load has begun (2).
fn change_mode(before: SyncMode, after: SyncMode, moment: u32) {
    let (mut bench, _) = publishing(before, |_| {});
    let change = |bench: &mut Bench| {
        bench.reconfigure(|c| c.policy_serving.sync_mode = after);
        assert!(answered(bench, OperatorReply::Done));
    };
    if moment == 0 {
        change(&mut bench);
    }
    bench.save();
    if moment == 1 {
        change(&mut bench);
    }
    end_what_runs(&mut bench);
    if bench.watch.loading().is_some() {
        bench.load_event(R0, headway_shared::input::WeightsEvent::Transferred(R0));
        if moment == 2 {
            change(&mut bench);
        }
        bench.load_event(R0, headway_shared::input::WeightsEvent::Loaded(R0));
    }
    bench.advance(secs(1000));
    bench.publish();
    assert_eq!(bench.deployed(R0), 1, "{before:?} to {after:?} at {moment}");
    bench.admit(50);
}

fn end_what_runs(bench: &mut Bench) {
    let running: Vec<_> = bench.watch.generations.keys().copied().collect();
    for (request, attempt) in running {
        let aborted = bench.watch.generations[&(request, attempt)].aborted;
        let finish = if aborted {
            headway_shared::input::Finish::Aborted
        } else {
            headway_shared::input::Finish::Stop
        };
        bench.finish_attempt(request, attempt, finish, 5);
    }
}

#[test]
fn a_queue_shrunk_below_its_length_loses_nothing_and_takes_nothing() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.reward_judging.judge_concurrency = 1;
    });
    let samples: Vec<_> = (0..5).map(|session| bench.turn(session)).collect();
    assert_eq!(bench.core.gauges().rollout_queue, 4);
    bench.reconfigure(|c| c.queue.rollout.max_size = 2);
    assert_eq!(bench.core.gauges().rollout_queue, 4);
    bench.refuses(5, Refusal::QueueFull);
    bench.vote(samples[0], GOOD);
    bench.vote(samples[1], GOOD);
    bench.end_step(true);
    assert_eq!(bench.core.gauges().rollout_queue, 2);
    bench.refuses(6, Refusal::QueueFull);
    bench.vote(samples[2], GOOD);
    bench.admit(7);
    bench.refuses(8, Refusal::QueueFull);
    assert!(bench.discarded.is_empty());
}

#[test]
fn what_has_no_room_in_a_shrunk_queue_waits_in_front_of_it() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.reward_judging.judge_concurrency = 1;
    });
    let running: Vec<_> = (0..5).map(|session| bench.admit(session)).collect();
    bench.reconfigure(|c| c.queue.rollout.max_size = 2);
    for request in &running {
        bench.finish(*request);
    }
    assert!(bench.core.gauges().rollout_queue <= 2);
    assert!(bench.discarded.is_empty());
    for request in &running {
        bench.vote(bench.sample_of(*request), GOOD);
    }
    assert_eq!(bench.core.ledger().count(SampleState::RolloutBlocked), 0);
    assert_eq!(bench.core.gauges().outstanding, 5);
}

#[test]
fn a_shrunk_blocking_queue_keeps_what_waits_until_there_is_room() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.queue.output =
            Queue { max_size: 8, queue_type: QueueOrder::Fifo, drop_policy: DropPolicy::Block };
    });
    for session in 0..8 {
        bench.scored(session, GOOD);
    }
    assert_eq!(bench.core.gauges().output_queue, 6);
    bench.reconfigure(|c| c.queue.output.max_size = 2);
    bench.scored(8, GOOD);
    assert_eq!(bench.core.gauges().output_queue, 6);
    assert_eq!(bench.core.ledger().count(SampleState::OutputBlocked), 1);
    bench.end_step(true);
    bench.end_step(true);
    assert_eq!(bench.core.gauges().output_queue, 2);
    bench.end_step(true);
    assert_eq!(bench.core.gauges().output_queue, 1, "the blocked one went in");
    assert_eq!(bench.core.ledger().count(SampleState::OutputBlocked), 0);
}

#[test]
fn fewer_judges_end_the_votes_under_way_and_start_fewer() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 9);
    let samples: Vec<_> = (0..6).map(|session| bench.turn(session)).collect();
    assert_eq!(bench.watch.votes.len(), 4);
    bench.reconfigure(|c| c.reward_judging.judge_concurrency = 1);
    for sample in &samples[..3] {
        bench.vote(*sample, GOOD);
    }
    assert_eq!(bench.watch.votes.len(), 1);
    assert_eq!(bench.votes_on(samples[4]), 0);
    bench.vote(samples[3], GOOD);
    assert_eq!(bench.votes_on(samples[4]), 1);
}

#[test]
fn everything_that_is_there_before_a_reconfiguration_trains_after_it() {
    let mut bench = Bench::new(|c| c.policy_training.max_head_off_policyness = 9);
    let samples: Vec<_> = (0..6).map(|session| bench.scored(session, GOOD)).collect();
    bench.reconfigure(|c| {
        c.policy_training.gate = headway_shared::config::GateKind::None;
        c.queue.output.queue_type = QueueOrder::Lifo;
    });
    for _ in 0..3 {
        bench.end_step(true);
        bench.publish();
    }
    assert!(samples.iter().all(|sample| bench.was_trained(*sample)));
}

#[test]
fn what_blocks_in_front_of_a_queue_keeps_to_its_new_size() {
    use DropPolicy::{Block, DropNewest, DropOldest, Reject};
    for policy in [Block, Reject, DropNewest, DropOldest] {
        let mut bench = Bench::new(|c| {
            c.policy_training.max_head_off_policyness = 9;
            c.reward_judging.judge_concurrency = 8;
            c.queue.output =
                Queue { max_size: 2, queue_type: QueueOrder::Fifo, drop_policy: Block };
        });
        for session in 0..9 {
            bench.scored(session, GOOD);
        }
        assert_eq!(bench.core.ledger().count(SampleState::OutputBlocked), 5);
        bench.reconfigure(|c| {
            c.queue.output.max_size = 3;
            c.queue.output.drop_policy = policy;
        });
        assert!(answered(&bench, OperatorReply::Done));
        assert!(bench.core.gauges().output_queue <= 3, "{policy:?}");
        // The checker watches the queue's length from here on.
        while bench.training() {
            bench.end_step(true);
        }
        assert_eq!(bench.core.ledger().count(SampleState::OutputBlocked), 0, "{policy:?}");
    }
}

#[test]
fn a_queue_that_reserves_room_from_now_on_counts_those_that_wait_for_room_already() {
    let mut bench = Bench::new(|c| {
        c.policy_training.max_head_off_policyness = 9;
        c.reward_judging.judge_concurrency = 1;
        c.queue.rollout =
            Queue { max_size: 2, queue_type: QueueOrder::Fifo, drop_policy: DropPolicy::Block };
    });
    let samples: Vec<_> = (0..4).map(|session| bench.turn(session)).collect();
    assert_eq!(bench.core.ledger().count(SampleState::RolloutBlocked), 1);
    bench.reconfigure(|c| c.queue.rollout.drop_policy = DropPolicy::Reject);
    bench.refuses(4, Refusal::QueueFull);
    bench.vote(samples[0], GOOD);
    bench.refuses(5, Refusal::QueueFull);
    bench.vote(samples[1], GOOD);
    bench.admit(6);
}
