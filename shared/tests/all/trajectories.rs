//! Samples that are whole sessions (`sample_unit = "session"`).

use headway_shared::action::{Action, Discard, OperatorReply, Refusal};
use headway_shared::config::{
    Config, GateKind, JudgeMode, OverLimit, Routing, SampleUnit, SyncMode,
};
use headway_shared::core::{STALENESS_PARTS, Sample, SampleState};
use headway_shared::id::{GroupId, SampleId, SessionId};
use headway_shared::input::{EnvironmentOutcome, Finish, Input, TurnType};

use super::harness::{Bench, Decision, GOOD, R0, R1, secs};

/// Batches of 2 trajectories, η = 2, weights swapped in flight.
pub(super) fn sessions(edit: impl FnOnce(&mut Config)) -> Bench {
    Bench::new(|c| {
        c.policy_training.sample_unit = SampleUnit::Session;
        edit(c);
    })
}

impl Bench {
    /// A turn of a session, of so many tokens after a prompt of so many.
    pub(super) fn say(&mut self, session: u64, prompt: u32, tokens: u32) -> SampleId {
        let request = self.request_with(session, |request| request.prompt_tokens = prompt);
        self.finish_as(request, Finish::Stop, tokens);
        self.sample_of(request)
    }

    /// A trajectory of one turn that is scored.
    pub(super) fn whole(&mut self, session: u64) -> SampleId {
        let sample = self.say(session, 10, 10);
        self.end_session(session);
        self.vote(sample, GOOD);
        sample
    }

    /// A step on trajectories of new sessions, and its weights everywhere.
    pub(super) fn step(&mut self) {
        while !self.training() {
            let session = self.fresh_session();
            self.whole(session);
        }
        self.end_step(true);
        self.publish();
    }

    fn fresh_session(&mut self) -> u64 {
        10_000 + self.core.ledger().offered
    }

    fn part(&self, sample: &Sample, name: &str) -> u32 {
        let index = STALENESS_PARTS.iter().position(|part| *part == name).expect("a part");
        sample.staleness_parts()[index]
    }
}

#[test]
fn all_turns_of_a_session_are_one_sample_that_is_judged_once_when_it_ends() {
    let mut bench = sessions(|_| {});
    let first = bench.say(1, 100, 10);
    let second = bench.say(1, 130, 20);
    let third = bench.say(1, 170, 5);
    assert_eq!((first, second), (second, third));
    assert_eq!(bench.core.ledger().count(SampleState::AwaitingSessionEnd), 1);
    assert_eq!(bench.votes_on(first), 0);
    bench.end_session(1);
    assert_eq!(bench.votes_on(first), 1);
    bench.vote(first, GOOD);
    bench.whole(2);
    bench.end_step(true);
    let sample = bench.trained_sample(first);
    assert_eq!((sample.turns, sample.tokens, sample.segments), (3, 35, 1));
    assert_eq!(sample.prompt_tokens, 140, "the last prompt, less what was generated before it");
    assert_eq!(bench.core.ledger().continued, 2);
    assert_eq!(bench.core.ledger().admitted, 2);
}

#[test]
fn a_turn_marked_as_the_last_ends_its_trajectory() {
    let mut bench = sessions(|_| {});
    let sample = bench.say(1, 10, 10);
    let last = bench.request_with(1, |request| request.last = true);
    bench.finish(last);
    assert_eq!(bench.votes_on(sample), 1);
}

#[test]
fn a_silent_session_ends_its_trajectory() {
    let mut bench = sessions(|c| c.environment_hosting.session_idle = secs(60));
    let sample = bench.say(1, 10, 10);
    bench.advance(secs(59));
    assert_eq!(bench.votes_on(sample), 0);
    bench.advance(secs(1));
    assert_eq!(bench.votes_on(sample), 1);
}

#[test]
fn a_session_that_ends_under_a_running_turn_is_judged_when_the_turn_is_over() {
    let mut bench = sessions(|_| {});
    let sample = bench.say(1, 10, 10);
    let running = bench.request(1);
    bench.end_session(1);
    assert_eq!(bench.votes_on(sample), 0);
    bench.finish(running);
    assert_eq!(bench.votes_on(sample), 1);
}

#[test]
fn a_new_session_of_the_same_name_is_a_new_sample() {
    let mut bench = sessions(|_| {});
    let first = bench.say(1, 10, 10);
    bench.end_session(1);
    let second = bench.say(1, 10, 10);
    assert_ne!(first, second);
    assert_eq!(bench.core.ledger().continued, 0);
}

#[test]
fn later_turns_need_no_place_and_pass_a_shut_gate() {
    for over_limit in [OverLimit::Refuse, OverLimit::Hold, OverLimit::ServeOnly] {
        let mut bench = sessions(|c| {
            c.policy_training.max_head_off_policyness = 0;
            c.policy_serving.over_limit = over_limit;
        });
        let sample = bench.say(1, 10, 10);
        bench.say(2, 10, 10);
        let third = bench.request(3);
        assert!(!matches!(bench.decision(third), Decision::Started { sample: Some(_), .. }));
        assert_eq!(bench.say(1, 20, 10), sample, "{over_limit:?}");
    }
}

#[test]
fn side_turns_do_not_belong_to_the_trajectory() {
    let mut bench = sessions(|_| {});
    let sample = bench.say(1, 10, 10);
    let side = bench.request_with(1, |request| request.turn = TurnType::Side);
    bench.finish_as(side, Finish::Stop, 500);
    bench.end_session(1);
    assert_eq!(bench.core.sample(sample).expect("alive").tokens, 10);
}

#[test]
fn max_concurrent_rollouts_counts_trajectories_until_their_session_ends() {
    let mut bench = sessions(|c| c.policy_serving.max_concurrent_rollouts = 1);
    let sample = bench.say(1, 10, 10);
    bench.refuses(2, Refusal::Concurrency);
    assert_eq!(bench.say(1, 20, 10), sample, "a session in the middle does not wait");
    bench.refuses(2, Refusal::Concurrency);
    bench.end_session(1);
    bench.admit(2);
}

#[test]
fn sync_judging_keeps_the_slot_until_the_trajectory_is_judged() {
    let mut bench = sessions(|c| {
        c.policy_serving.max_concurrent_rollouts = 1;
        c.reward_judging.mode = JudgeMode::Sync;
    });
    let sample = bench.say(1, 10, 10);
    bench.end_session(1);
    bench.refuses(2, Refusal::Concurrency);
    bench.vote(sample, GOOD);
    bench.admit(2);
}

#[test]
fn judging_each_turn_has_no_effect_on_trajectories() {
    let mut bench = sessions(|c| {
        c.reward_judging.fire_on_turn_end = true;
        c.reward_judging.at_least_one = true;
        c.reward_judging.zero_score = headway_shared::config::ZeroScore::Discard;
    });
    let sample = bench.say(1, 10, 10);
    assert_eq!(bench.votes_on(sample), 0);
    bench.end_session(1);
    bench.vote(sample, 0);
    assert_eq!(bench.fate(sample), Some(Discard::ZeroScore));
}

#[test]
fn versions_may_rise_between_turns_in_every_mode_and_the_head_never_moves() {
    for mode in [SyncMode::PauseDrain, SyncMode::Rolling, SyncMode::InFlight] {
        let mut bench = sessions(|c| c.policy_serving.sync_mode = mode);
        let sample = bench.say(1, 10, 10);
        bench.step();
        bench.say(1, 20, 10);
        bench.say(1, 30, 10);
        bench.step();
        bench.say(1, 40, 10);
        bench.end_session(1);
        bench.vote(sample, GOOD);
        bench.step();
        let sample = bench.trained_sample(sample);
        assert_eq!((sample.head.number(), sample.tail.number()), (0, 2), "{mode:?}");
        assert_eq!((sample.segments, sample.turns), (3, 4));
        assert_eq!(sample.staleness_token_sum(), 10 * 2 + 20 + 10 - 10, "{mode:?}");
        assert_eq!(sample.staleness_head(), 2);
    }
}

#[test]
fn within_a_turn_versions_rise_only_where_the_mode_mixes() {
    let mut bench = sessions(|c| c.policy_serving.sync_mode = SyncMode::InFlight);
    let sample = bench.say(1, 10, 10);
    let across = bench.request(1);
    bench.step();
    bench.finish(across);
    bench.end_session(1);
    bench.vote(sample, GOOD);
    bench.step();
    assert_eq!(bench.trained_sample(sample).segments, 2);

    let mut bench = sessions(|c| c.policy_serving.sync_mode = SyncMode::PauseDrain);
    bench.say(1, 10, 10);
    let stamped = bench.request(1);
    let attempt = bench.watch.attempt(stamped).expect("it runs");
    let segments = super::harness::spread(&[0, 1], 10);
    let sample = bench.sample_of(stamped);
    bench.give(Input::GenerationEnded {
        request: stamped,
        attempt,
        finish: Finish::Stop,
        first_token: None,
        segments,
    });
    assert_eq!(bench.fate(sample), Some(Discard::BadStamp));
}

#[test]
fn the_parts_of_staleness_add_up_and_waiting_between_turns_is_not_generating() {
    let mut bench = sessions(|c| c.policy_training.max_head_off_policyness = 8);
    let sample = bench.say(1, 10, 10);
    bench.advance(secs(30));
    bench.step();
    bench.advance(secs(30));
    let across = bench.request(1);
    bench.advance(secs(7));
    bench.step();
    bench.finish(across);
    bench.step();
    bench.advance(secs(40));
    bench.end_session(1);
    bench.vote(sample, GOOD);
    bench.step();
    let sample = bench.trained_sample(sample).clone();
    assert_eq!(sample.staleness_head(), 3);
    assert_eq!(sample.staleness_parts().iter().sum::<u32>(), 3);
    assert_eq!(bench.part(&sample, "next_state"), 2, "before the second turn, and after it");
    assert_eq!(bench.part(&sample, "generating"), 1, "during the second turn");
    assert_eq!(sample.time_parts()[1], secs(7));
    assert_eq!(sample.time_parts()[2], secs(100));
}

#[test]
fn a_later_turn_never_goes_on_with_older_weights() {
    let mut bench = sessions(|c| {
        c.policy_serving.routing = Routing::LeastLoaded;
        c.policy_training.publish_interval = 2;
    });
    bench.step();
    bench.step();
    assert_eq!(bench.deployed(R0), 2);
    let sample = bench.say(1, 10, 10);
    bench.step();
    bench.replica_down(R0);
    bench.replica_up(R1, 1);
    // R1 lags by 2 and is about to get new weights; until then the turn waits, and is not refused.
    let waits = bench.request(1);
    assert_eq!(bench.decision(waits), Decision::Held);
    bench.publish();
    bench.finish(waits);
    assert_eq!(bench.sample_of(waits), sample);
    assert_eq!(bench.core.sample(sample).expect("alive").tail.number(), 3);
}

#[test]
fn newer_weights_are_published_for_a_turn_that_can_start_nowhere_without_them() {
    let mut bench = sessions(|c| {
        c.policy_training.publish_interval = 3;
        c.policy_training.max_head_off_policyness = 4;
    });
    (0..3).for_each(|_| bench.step());
    let sample = bench.say(1, 10, 10);
    bench.replica_down(R0);
    // Not so old that a publication is due.
    bench.replica_up(R1, 2);
    let waits = bench.request(1);
    assert_eq!(bench.decision(waits), Decision::Held);
    assert!(bench.watch.saving, "a publication is on its way");
    bench.publish();
    bench.finish(waits);
    assert_eq!(bench.sample_of(waits), sample);
}

#[test]
fn a_trajectory_lives_in_its_environment_until_it_is_done() {
    let mut bench = sessions(|c| c.environment_hosting.max_envs = 1);
    bench.give(Input::SessionStarted { session: SessionId(1) });
    bench.environment(1, EnvironmentOutcome::Ready);
    let sample = bench.say(1, 10, 10);
    bench.environment(1, EnvironmentOutcome::Ready);
    assert_eq!(bench.say(1, 30, 10), sample);
    bench.environment(1, EnvironmentOutcome::Done);
    assert_eq!(bench.votes_on(sample), 1);
}

#[test]
fn two_turns_of_a_session_at_once_belong_to_one_trajectory() {
    let mut bench = sessions(|_| {});
    let one = bench.admit(1);
    let two = bench.request(1);
    assert_eq!(bench.sample_of(one), bench.sample_of(two));
    bench.finish_as(two, Finish::Stop, 5);
    bench.end_session(1);
    let sample = bench.sample_of(one);
    assert_eq!(bench.votes_on(sample), 0, "one of them still runs");
    bench.finish_as(one, Finish::Stop, 7);
    assert_eq!(bench.votes_on(sample), 1);
    assert_eq!(bench.core.sample(sample).expect("alive").tokens, 12);
}

#[test]
fn a_second_turn_that_is_held_with_the_first_starts_when_the_first_is_admitted() {
    let mut bench = sessions(|c| {
        c.policy_training.batch_size = 1;
        c.policy_training.max_head_off_policyness = 0;
        c.policy_serving.over_limit = OverLimit::Hold;
    });
    let now = bench.say(1, 10, 10);
    let first = bench.request(2);
    let behind = bench.request(3);
    let second = bench.request(2);
    for held in [first, behind, second] {
        assert_eq!(bench.decision(held), Decision::Held);
    }
    bench.end_session(1);
    bench.vote(now, GOOD);
    bench.end_step(true);
    bench.publish();
    assert_eq!(bench.sample_of(first), bench.sample_of(second));
    assert_eq!(bench.decision(behind), Decision::Held);
}

#[test]
fn the_members_of_a_group_are_sessions_and_the_seat_is_the_sessions() {
    let mut bench = sessions(|c| {
        c.policy_training.batch_size = 1;
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 2;
    });
    let one = bench.turn_in(1, 7);
    let later = bench.request_in(1, 7);
    bench.finish(later);
    assert_eq!(bench.sample_of(later), one);
    let wrong = bench.request_in(1, 8);
    bench.refused(wrong, Refusal::BadGroup);
    let two = bench.turn_in(2, 7);
    let third = bench.request_in(3, 7);
    bench.refused(third, Refusal::BadGroup);
    for (session, sample) in [(1, one), (2, two)] {
        bench.end_session(session);
        bench.vote(sample, GOOD);
    }
    bench.end_step(true);
    assert_eq!(bench.trained_sample(one).group, Some(GroupId(7)));
    assert!(bench.was_trained(two));
}

#[test]
fn two_first_turns_at_once_take_one_seat() {
    let mut bench = sessions(|c| {
        c.policy_training.batch_size = 1;
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 2;
        c.policy_training.max_head_off_policyness = 0;
        c.policy_serving.over_limit = OverLimit::Hold;
    });
    bench.admit_in(1, 7);
    bench.admit_in(2, 7);
    let [a, b] = [3, 3].map(|session| bench.request_in(session, 8));
    let mate = bench.request_in(4, 8);
    for held in [a, b, mate] {
        assert_eq!(bench.decision(held), Decision::Held);
    }
    let crowd = bench.request_in(5, 8);
    bench.refused(crowd, Refusal::BadGroup);
    let again = bench.request_in(3, 8);
    assert_eq!(bench.decision(again), Decision::Held, "its session has a seat in the full group");
    let elsewhere = bench.request_in(3, 9);
    bench.refused(elsewhere, Refusal::BadGroup);
}

#[test]
fn interleaved_groups_of_eight_sessions_make_progress_at_eta_zero() {
    let mut bench = sessions(|c| {
        c.policy_training.batch_size = 2;
        c.policy_training.group_size = 8;
        c.policy_training.min_group_size = 8;
        c.policy_training.max_head_off_policyness = 0;
        c.policy_serving.over_limit = OverLimit::Hold;
    });
    // Three prompts, member by member: only two groups have a place.
    let requests: Vec<_> =
        (0..24_u64).map(|session| (session, bench.request_in(session, session % 3))).collect();
    for turn in 0..3 {
        for &(session, first) in requests.iter().filter(|(session, _)| session % 3 < 2) {
            let request = if turn == 0 { first } else { bench.request_in(session, session % 3) };
            bench.finish(request);
        }
    }
    for &(session, request) in requests.iter().filter(|(session, _)| session % 3 < 2) {
        bench.end_session(session);
        bench.vote(bench.sample_of(request), GOOD);
    }
    assert_eq!(bench.batch().len(), 16);
    bench.end_step(true);
    bench.publish();
    let third = requests.iter().filter(|(session, _)| session % 3 == 2);
    for (_, request) in third {
        assert!(matches!(bench.decision(*request), Decision::Started { sample: Some(_), .. }));
    }
}

#[test]
fn what_a_sample_is_does_not_change_within_a_run() {
    let mut bench = sessions(|_| {});
    bench.reconfigure(|c| {
        c.policy_training.sample_unit = SampleUnit::Turn;
        c.policy_training.batch_size = 5;
    });
    let reply = OperatorReply::Rejected;
    assert!(bench.did(|action| *action == Action::OperatorReply { reply }));
    assert_eq!(bench.core.config().policy_training.batch_size, 2);
}

#[test]
fn openclaws_window_answers_later_turns_with_503_too() {
    let mut bench = sessions(|c| c.policy_training.gate = GateKind::Openclaw);
    bench.say(1, 10, 10);
    for session in [2, 3, 4, 5] {
        bench.say(session, 10, 10);
    }
    for session in [2, 3, 4, 5] {
        bench.end_session(session);
    }
    for sample in bench.watch.votes.values().copied().collect::<Vec<_>>() {
        bench.vote(sample, GOOD);
    }
    bench.refuses(1, Refusal::WeightSync);
}

#[test]
fn a_later_turn_waits_for_the_idle_replica_that_is_loading_what_it_needs() {
    let mut bench = sessions(|_| {});
    bench.replica_up(R1, 0);
    bench.whole(1);
    bench.whole(2);
    bench.end_step(true);
    bench.save();
    let side = |bench: &mut Bench, session| {
        bench.request_with(session, |request| request.turn = TurnType::Side)
    };
    let on_first = side(&mut bench, 3);
    bench.load(R1);
    let sample = bench.say(4, 10, 10);
    side(&mut bench, 5);
    bench.finish(on_first);
    let waits = bench.request(4);
    assert_eq!(bench.decision(waits), Decision::Held);
    bench.load(R0);
    assert_eq!(bench.decision(waits), Decision::Started { replica: R0, sample: Some(sample) });
}
