//! What each setting of the trainer, the weights and shared hardware does to a run.

use headway_shared::action::Action;
use headway_shared::input::{Input, WeightsEvent};
use headway_shared::time::{Span, Time};

use super::world_support::{Moment, SLOTS, load, watch};

fn run(set: &[&str]) -> Vec<Moment> {
    watch(&load(SLOTS, set), Time::from_secs(1200)).0
}

/// From the action that starts something to the input that ends it, each time.
fn spans(
    moments: &[Moment],
    starts: impl Fn(&Action) -> bool,
    ends: impl Fn(&Input) -> bool,
) -> Vec<Span> {
    let (mut since, mut spans) = (None, Vec::new());
    for (now, input, actions) in moments {
        if ends(input)
            && let Some(since) = since.take()
        {
            spans.push(now.since(since));
        }
        if actions.iter().any(&starts) {
            since.get_or_insert(*now);
        }
    }
    spans
}

fn steps(moments: &[Moment]) -> Vec<u64> {
    let starts = |action: &Action| matches!(action, Action::StartStep { .. });
    let spans = spans(moments, starts, |input| matches!(input, Input::StepEnded { .. }));
    spans.iter().map(|span| span.as_nanos() / 1_000_000_000).collect()
}

#[test]
fn evaluations_and_checkpoints_lengthen_their_steps() {
    let moments = run(&[
        "world.trainer.evaluate_every_steps=3",
        "world.trainer.evaluate={ kind = \"constant\", sec = 7 }",
        "world.trainer.checkpoint_every_steps=2",
        "world.trainer.checkpoint={ kind = \"constant\", sec = 20 }",
    ]);
    assert_eq!(steps(&moments)[..6], [5, 25, 12, 25, 5, 32]);
}

#[test]
fn a_paused_trainer_takes_longer_over_one_step() {
    let pause = "world.faults.at=[{ time_sec = 100, kind = \"trainer_pause\", lasting_sec = 60 }]";
    let steps = steps(&run(&[pause]));
    assert_eq!(steps.iter().filter(|step| **step == 65).count(), 1);
    assert!(steps.iter().all(|step| [5, 65].contains(step)), "{steps:?}");
}

#[test]
fn copies_over_a_shared_link_come_one_after_the_other() {
    let arrivals = |shared: &str| {
        let moments = run(&[
            "world.serving.replicas=3",
            "world.weights.size_gb=40",
            "world.weights.link_gb_per_sec=10",
            shared,
        ]);
        let saved = moments.iter().find(|(_, input, _)| {
            matches!(input, Input::Weights { event: WeightsEvent::Saved, .. })
        });
        // The replicas are drained before they fetch: count from the first that has fetched.
        let fetched: Vec<Time> = moments
            .iter()
            .filter(|(_, input, _)| {
                matches!(input, Input::Weights { event: WeightsEvent::Transferred(_), .. })
            })
            .map(|(time, ..)| *time)
            .take(3)
            .collect();
        assert!(saved.is_some_and(|(time, ..)| fetched[0].since(*time) >= Span::from_secs(4)));
        fetched[2].since(fetched[0])
    };
    assert_eq!(arrivals("world.weights.shared_link=false"), Span::ZERO);
    assert_eq!(arrivals("world.weights.shared_link=true"), Span::from_secs(8));
}

#[test]
fn a_load_that_hangs_is_given_up_and_tried_again() {
    let hang = "world.faults.at=[{ time_sec = 50, kind = \"load_hangs\" }]";
    let moments = run(&[hang, "load_timeout_sec=30"]);
    let mut actions = moments.iter().flat_map(|(.., actions)| actions);
    let cancelled = actions.by_ref().find(|action| matches!(action, Action::CancelLoad { .. }));
    assert!(cancelled.is_some());
    assert!(actions.any(|action| matches!(action, Action::Load { .. })), "and loads again");
    let last = moments.iter().rev().find(|(_, input, _)| matches!(input, Input::StepEnded { .. }));
    assert!(last.is_some_and(|(time, ..)| *time > Time::from_secs(1100)), "training goes on");
}

#[test]
fn hardware_shared_with_the_trainer_generates_more_slowly() {
    let longest = |speed: &str| {
        let set = [speed, "world.clients.slots=1", "batch_size=1", "world.trainer.step.sec=300"];
        let moments = run(&set);
        let starts = |action: &Action| matches!(action, Action::StartGeneration { .. });
        let ends = |input: &Input| matches!(input, Input::GenerationEnded { .. });
        spans(&moments, starts, ends).into_iter().max().unwrap()
    };
    let alone = longest("world.serving.speed_during_step=1");
    assert_eq!(alone, Span::from_secs(10));
    assert_eq!(longest("world.serving.speed_during_step=0.5"), Span::from_secs(20));
}
