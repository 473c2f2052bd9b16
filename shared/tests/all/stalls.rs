//! What a run that stands still is said to wait for.

use headway_shared::action::RunError;
use headway_shared::config::{Config, GateKind, JudgeNeeds, OverLimit, SyncMode};
use headway_shared::core::Stall;
use headway_shared::input::{Input, Operator, TurnType};

use super::harness::{Bench, GOOD, R0, small};

/// What blocks, and the loop it is in.
#[track_caller]
fn blocks(bench: &Bench, stall: Stall, place: &str) {
    assert_eq!(bench.core.stall(), stall);
    let said = stall.to_string();
    assert!(said.starts_with(&format!("{place} blocks: ")), "{said}");
}

fn side_turn(bench: &mut Bench) {
    let request = bench.request_with(99, |request| request.turn = TurnType::Side);
    bench.finish(request);
}

#[test]
fn without_a_replica_that_serves_nothing_else_matters() {
    let mut bench = Bench::bare(small());
    blocks(&bench, Stall::NoReplica, "policy serving");
    bench.replica_up(R0, 0);
    bench.turn(0);
    bench.replica_down(R0);
    blocks(&bench, Stall::NoReplica, "policy serving");
}

#[test]
fn without_a_main_turn_clients_block() {
    let mut bench = Bench::new(|_| {});
    blocks(&bench, Stall::NoMainRequest, "clients");
    side_turn(&mut bench);
    blocks(&bench, Stall::NoMainRequest, "clients");
    bench.scored(0, GOOD);
    blocks(&bench, Stall::Batch { ready: 1, batch: 2 }, "policy training");
}

#[test]
fn a_sample_blocks_where_it_is() {
    let mut bench = Bench::new(|config| {
        config.reward_judging.judge_needs = JudgeNeeds::NextState;
        config.policy_training.group_size = 2;
    });
    let request = bench.admit_in(0, 0);
    blocks(&bench, Stall::Serving { samples: 1 }, "policy serving");
    bench.finish(request);
    blocks(&bench, Stall::Environment { samples: 1 }, "environment hosting");
    bench.next_state(0);
    blocks(&bench, Stall::Judging { samples: 1, votes: 1 }, "reward judging");
    bench.vote(bench.sample_of(request), GOOD);
    blocks(&bench, Stall::GroupMates { samples: 1 }, "policy training");
}

#[test]
fn where_most_samples_are_blocks() {
    let mut bench = Bench::new(|config| config.reward_judging.judge_concurrency = 1);
    bench.turn(0);
    bench.turn(1);
    bench.admit(2);
    blocks(&bench, Stall::Judging { samples: 2, votes: 1 }, "reward judging");
    bench.admit(3);
    bench.admit(4);
    blocks(&bench, Stall::Serving { samples: 3 }, "policy serving");
}

#[test]
fn a_step_blocks_until_it_ends() {
    let mut bench = Bench::new(|_| {});
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    blocks(&bench, Stall::Step, "policy training");
    bench.end_step(true);
    blocks(&bench, Stall::Batch { ready: 0, batch: 2 }, "policy training");
}

/// All places are taken by a lag of the weights, and a request waits for one.
fn held_at_the_gate(edit: impl FnOnce(&mut Config)) -> Bench {
    let mut bench = Bench::new(|config| {
        config.policy_training.max_head_off_policyness = 0;
        config.policy_serving.over_limit = OverLimit::Hold;
        edit(config);
    });
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    bench.end_step(true);
    bench.request(2);
    bench
}

#[test]
fn a_gate_without_a_place_blocks_who_waits_for_one() {
    let bench = held_at_the_gate(|_| {});
    let gate = GateKind::Headway;
    blocks(&bench, Stall::Gate { gate, held: 1 }, "policy serving");
}

#[test]
fn a_sync_window_blocks_before_the_gate_does() {
    let mut bench = held_at_the_gate(|config| {
        config.policy_serving.sync_mode = SyncMode::PauseDrain;
    });
    bench.save();
    blocks(&bench, Stall::Publishing, "policy serving");
}

/// The push waits for the next batch, and the batch, once it is there, for the push.
#[test]
fn a_batch_that_waits_for_a_push_waits_for_weights() {
    let mut bench = Bench::new(|config| {
        config.policy_training.gate = GateKind::SlimeTrainAsync;
    });
    while bench.core.stall() != Stall::Publishing {
        assert!(bench.learner() < 9, "{}", bench.core.stall());
        let session = bench.fresh();
        bench.scored(session, GOOD);
        if bench.training() {
            bench.end_step(true);
        }
    }
    assert!(bench.watch.saving, "the weights are on their way");
}

#[test]
fn an_operator_and_the_end_are_named_before_all_else() {
    let mut bench = Bench::new(|_| {});
    bench.admit(0);
    bench.give(Input::Operator(Operator::Pause));
    blocks(&bench, Stall::Paused, "the run");
    bench.give(Input::CommitFailed);
    blocks(&bench, Stall::Ended(RunError::CommitFailed), "the run");
}
