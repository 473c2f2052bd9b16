//! Faults, and what the world owes the core.

use std::collections::BTreeMap;

use headway_shared::action::{Action, Discard};
use headway_shared::input::{Finish, Input, WeightsEvent};
use headway_shared::time::Time;
use proptest::prelude::*;

use super::world_support::{Moment, SESSIONS, SLOTS, load, watch};

/// Names of pieces of work that an action starts and an input ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Generation(u64, u32),
    Environment(u64, u32),
    Vote(u64),
    Step(u64),
    Save(u64),
    Load(u64, u32),
}

/// How often each piece of work was started and ended. What a replica's death or a cancelled load
/// ends counts as ended.
fn works(moments: &[Moment]) -> BTreeMap<Work, (u32, u32)> {
    let mut works: BTreeMap<Work, (u32, u32)> = BTreeMap::new();
    let mut on_replica: BTreeMap<Work, u32> = BTreeMap::new();
    for (_, input, actions) in moments {
        let ended = match input {
            Input::GenerationEnded { request, attempt, .. } => {
                Some(Work::Generation(request.0, *attempt))
            }
            Input::EnvironmentEnded { session, attempt, .. } => {
                Some(Work::Environment(session.0, *attempt))
            }
            Input::VoteEnded { vote, .. } => Some(Work::Vote(vote.0)),
            Input::StepEnded { step, .. } => Some(Work::Step(step.0)),
            Input::Weights { publication, event } => match event {
                WeightsEvent::Saved | WeightsEvent::SaveFailed => Some(Work::Save(publication.0)),
                WeightsEvent::Transferred(_) => None,
                WeightsEvent::TransferFailed(replica)
                | WeightsEvent::Loaded(replica)
                | WeightsEvent::LoadFailed { replica, .. } => {
                    Some(Work::Load(publication.0, replica.0))
                }
            },
            _ => None,
        };
        if let Some(work) = ended {
            works.entry(work).or_default().1 += 1;
            on_replica.remove(&work);
        }
        if let Input::ReplicaDown { replica } = input {
            let lost: Vec<Work> = on_replica
                .iter()
                .filter(|(_, on)| **on == replica.0)
                .map(|(work, _)| *work)
                .collect();
            for work in lost {
                works.entry(work).or_default().1 += 1;
                on_replica.remove(&work);
            }
        }
        for action in actions {
            let started = match *action {
                Action::StartGeneration { request, attempt, replica, .. } => {
                    let work = Work::Generation(request.0, attempt);
                    on_replica.insert(work, replica.0);
                    Some(work)
                }
                Action::ResetEnvironment { session, attempt }
                | Action::StepEnvironment { session, attempt } => {
                    Some(Work::Environment(session.0, attempt))
                }
                Action::StartVote { vote, .. } => Some(Work::Vote(vote.0)),
                Action::StartStep { step, .. } => Some(Work::Step(step.0)),
                Action::Publish { publication, .. } => Some(Work::Save(publication.0)),
                Action::Load { publication, replica, .. } => {
                    let work = Work::Load(publication.0, replica.0);
                    on_replica.insert(work, replica.0);
                    Some(work)
                }
                _ => None,
            };
            if let Some(work) = started {
                works.entry(work).or_default().0 += 1;
            }
        }
    }
    works
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_start_has_one_terminal_input(
        seed in 0_u64..1000,
        slots in any::<bool>(),
        mode in prop::sample::select(vec!["pause_drain", "pause_abort", "pause_keep", "in_flight", "rolling"]),
        aborted in prop::sample::select(vec!["discard", "restart", "resume", "keep_as_final"]),
        mtbf in prop::sample::select(vec![0, 600]),
        failures in prop::sample::select(vec![0.0, 0.1]),
        quota in 0_u32..4,
    ) {
        let text = if slots { SLOTS } else { SESSIONS };
        let set = [
            format!("scenario.seed={seed}"),
            format!("sync_mode=\"{mode}\""),
            format!("aborted=\"{aborted}\""),
            "world.serving.replicas=3".to_owned(),
            "world.clients.retries.timeout_sec=30".to_owned(),
            "world.weights.save={ kind = \"exponential\", mean_sec = 2 }".to_owned(),
            "world.weights.transfer={ kind = \"exponential\", mean_sec = 2 }".to_owned(),
            "world.faults.replica_restart={ kind = \"exponential\", mean_sec = 60 }".to_owned(),
            format!("world.faults.replica_mtbf_sec={mtbf}"),
            format!("world.faults.failed_generation_share={failures}"),
            format!("world.faults.failed_step_share={failures}"),
            format!("world.faults.failed_save_share={failures}"),
            format!("world.faults.failed_transfer_share={failures}"),
            format!("world.faults.failed_load_share={failures}"),
            format!("world.judge.quota={quota}"),
            format!("world.judge.failed_share={failures}"),
        ];
        let set: Vec<&str> = set
            .iter()
            .map(String::as_str)
            .filter(|set| !(slots && set.contains("clients.retries")))
            .collect();
        let end = Time::from_secs(1800);
        let (moments, core) = watch(&load(text, &set), end);
        prop_assert!(core.ledger().steps > 3, "{} steps", core.ledger().steps);
        let mut open = 0;
        for (work, (started, ended)) in works(&moments) {
            prop_assert_eq!(started, 1, "{:?}", work);
            prop_assert!(ended <= 1, "{:?} ended {} times", work, ended);
            open += u32::from(ended == 0);
        }
        // What runs when the clock stops is open.
        let gauges = core.gauges();
        let running = gauges.running + gauges.votes + gauges.environments;
        prop_assert!(open <= running + u32::from(gauges.training) + 4, "{open} of {running}");
    }
}

#[test]
fn lost_completions_are_found_by_the_time_out() {
    let set = ["world.faults.lost_completion_share=0.2", "generation_timeout_sec=60"];
    let (moments, core) = watch(&load(SLOTS, &set), Time::from_secs(3000));
    let lost = core.ledger().discarded[Discard::GenerationFailed.index()];
    assert!(lost > 0 && core.ledger().trained > 10 * u64::from(lost > 0), "{lost} lost");
    let aborts = moments.iter().flat_map(|(.., actions)| actions);
    assert!(aborts.filter(|a| matches!(a, Action::AbortGeneration { .. })).count() as u64 >= lost);
}

#[test]
fn a_completion_reported_twice_is_counted_once() {
    let (_, core) =
        watch(&load(SLOTS, &["world.faults.duplicate_completion_share=1"]), Time::from_secs(1000));
    assert!(core.ledger().trained > 50);
    assert!(core.ledger().ignored >= core.ledger().trained);
}

#[test]
fn a_resumed_turn_keeps_its_tokens_and_mixes_versions() {
    let set = ["sync_mode=\"pause_abort\"", "aborted=\"resume\"", "world.trainer.step.sec=17"];
    let (moments, _) = watch(&load(SLOTS, &set), Time::from_secs(2000));
    let mut mixed = 0;
    for (_, input, _) in &moments {
        if let Input::GenerationEnded { finish: Finish::Stop, segments, .. } = input {
            let tokens: u32 = segments.iter().map(|segment| segment.tokens).sum();
            assert_eq!(tokens, 100);
            mixed += u32::from(segments.len() > 1);
        }
    }
    assert!(mixed > 5, "{mixed} turns mix");
}

#[test]
fn a_replica_that_dies_comes_back_with_the_newest_saved_weights() {
    let fault = "world.faults.at=[{ time_sec = 300, kind = \"replica_down\", replica = 0, \
                 lasting_sec = 50 }]";
    let (moments, core) = watch(&load(SLOTS, &[fault]), Time::from_secs(600));
    let down = moments.iter().find(|(_, input, _)| matches!(input, Input::ReplicaDown { .. }));
    assert_eq!(down.map(|(time, ..)| *time), Some(Time::from_secs(300)));
    let ups: Vec<_> = moments
        .iter()
        .filter_map(|(time, input, _)| match input {
            Input::ReplicaUp { deploy, .. } => Some((*time, *deploy)),
            _ => None,
        })
        .collect();
    assert_eq!(ups[1].0, Time::from_secs(350));
    assert!(ups[1].1.number() > 0);
    assert!(core.ledger().steps > 20);
}

#[test]
fn elastic_replicas_come_and_go() {
    let faults = "world.faults.at=[{ time_sec = 100, kind = \"replica_up\", replica = 1 }, \
                  { time_sec = 300, kind = \"replica_down\", replica = 0 }]";
    let (moments, core) = watch(&load(SLOTS, &[faults]), Time::from_secs(600));
    let used: Vec<u32> = moments
        .iter()
        .filter(|(time, ..)| *time > Time::from_secs(310))
        .flat_map(|(.., actions)| actions)
        .filter_map(|action| match action {
            Action::StartGeneration { replica, .. } => Some(replica.0),
            _ => None,
        })
        .collect();
    assert!(used.len() > 20 && used.iter().all(|replica| *replica == 1));
    assert_eq!(core.gauges().replicas_up, 1);
}

#[test]
fn a_rollback_gives_a_new_version_and_training_goes_on() {
    let fault = "world.faults.at=[{ time_sec = 600, kind = \"rollback\", steps = 20 }]";
    let (moments, core) = watch(&load(SLOTS, &[fault]), Time::from_secs(1200));
    let restored = moments.iter().find(|(_, input, _)| matches!(input, Input::Restored { .. }));
    assert_eq!(restored.map(|(time, ..)| *time), Some(Time::from_secs(600)));
    let after = moments.iter().filter(|(time, input, _)| {
        *time > Time::from_secs(610) && matches!(input, Input::StepEnded { ok: true, .. })
    });
    assert!(after.count() > 20);
    assert!(core.ledger().steps > 40);
}

#[test]
fn a_judge_that_hangs_answers_nothing_until_it_is_back() {
    let fault = "world.faults.at=[{ time_sec = 100, kind = \"judge_hang\", lasting_sec = 200 }]";
    let set = [fault, "judge_timeout_sec=1000"];
    let (moments, _) = watch(&load(SLOTS, &set), Time::from_secs(600));
    let answers = |from: u64, to: u64| {
        let within = |time: &Time| *time >= Time::from_secs(from) && *time < Time::from_secs(to);
        moments
            .iter()
            .filter(|(time, input, _)| within(time) && matches!(input, Input::VoteEnded { .. }))
            .count()
    };
    assert_eq!(answers(100, 300), 0);
    assert!(answers(0, 100) > 10 && answers(300, 600) > 10);
}

#[test]
fn a_reconfiguration_takes_effect_in_the_middle_of_a_run() {
    let fault =
        "world.faults.at=[{ time_sec = 500, kind = \"reconfigure\", set = [\"batch_size=2\"] }]";
    let (moments, _) = watch(&load(SLOTS, &[fault]), Time::from_secs(1000));
    for (time, _, actions) in &moments {
        for action in actions {
            if let Action::StartStep { samples, .. } = action {
                let expected = if *time <= Time::from_secs(500) { 4 } else { 2 };
                assert_eq!(*samples, expected, "at {time}");
            }
        }
    }
}
