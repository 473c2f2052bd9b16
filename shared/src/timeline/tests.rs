//! Timelines of worlds in which anything happens.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::action::Action;
use crate::config::Config;
use crate::core::Fate;
use crate::input::Input;
use crate::testing::{Choice, World};

/// What a sink was told.
#[derive(Default)]
struct Told {
    lanes: BTreeMap<Lane, Vec<(Time, Time, &'static str)>>,
    flows: BTreeMap<SampleId, Vec<(Time, Flow)>>,
    counters: BTreeMap<Counter, Vec<(Time, u32)>>,
    steps: u64,
}

impl Sink for Told {
    fn slice(&mut self, slice: &Slice<'_>) {
        let Slice { lane, start, end, what, ended, flows } = *slice;
        self.lanes.entry(lane).or_default().push((start, end, ended));
        self.steps += u64::from(matches!(what, What::Step { .. }) && ended == WHOLE);
        for (sample, flow) in flows {
            self.flows.entry(*sample).or_default().push((start, *flow));
        }
        let parts = match what {
            What::Turn { swaps, .. } => swaps.iter().map(|(at, _)| *at).collect(),
            What::Load { transferred, .. } => transferred.into_iter().collect(),
            _ => Vec::new(),
        };
        assert!(parts.is_sorted() && parts.iter().all(|at| (start..=end).contains(at)));
    }

    fn counter(&mut self, at: Time, counter: Counter, value: u32) {
        self.counters.entry(counter).or_default().push((at, value));
    }
}

/// What happened in a run, and its timeline.
#[derive(Default)]
struct Happened {
    generations: usize,
    votes: usize,
    trained: Vec<SampleId>,
    steps: u64,
    outstanding: u32,
}

fn play(choices: &[Choice]) -> (Happened, Told) {
    let mut config = Config::default();
    config.policy_training.batch_size = 2;
    let mut world = World::new(&config);
    let mut tracer = Tracer::new(&world.scheduler);
    let (mut happened, mut told) = (Happened::default(), Told::default());
    let mut start = World::start();
    let mut choices = choices.iter();
    loop {
        let next = start.next().or_else(|| choices.next().map(|choice| world.next(*choice)));
        let Some(input) = next else { break };
        let before = world.scheduler.ledger().steps;
        let actions = world.handle(&input);
        tracer.observe(world.now, &input, &actions, &world.scheduler, &mut told);
        let is = |what: fn(&Action) -> bool| actions.iter().filter(|action| what(action)).count();
        happened.generations += is(|action| matches!(action, Action::StartGeneration { .. }));
        happened.votes += is(|action| matches!(action, Action::StartVote { .. }));
        let resolved = world.scheduler.resolved().iter();
        let trained = resolved.filter(|resolved| resolved.fate == Fate::Trained);
        happened.trained.extend(trained.map(|resolved| resolved.sample.id));
        happened.steps += world.scheduler.ledger().steps - before;
        assert!(matches!(input, Input::StepEnded { .. }) || happened.steps == told.steps);
    }
    happened.outstanding = world.scheduler.gauges().outstanding;
    tracer.finish(&mut told);
    (happened, told)
}

proptest! {
    #[test]
    fn nothing_overlaps_in_a_lane_and_everything_that_started_is_told_once(
        choices in prop::collection::vec(any::<Choice>(), 1..300),
    ) {
        let (happened, told) = play(&choices);
        let count = |is: fn(&Lane) -> bool| -> usize {
            told.lanes.iter().filter(|(lane, _)| is(lane)).map(|(_, slices)| slices.len()).sum()
        };
        prop_assert_eq!(count(|lane| matches!(lane, Lane::Turn { .. })), happened.generations);
        prop_assert_eq!(count(|lane| matches!(lane, Lane::Judge { .. })), happened.votes);
        prop_assert_eq!(told.steps, happened.steps);
        for (lane, slices) in &told.lanes {
            for pair in slices.windows(2) {
                let ((_, before, _), (start, end, _)) = (pair[0], pair[1]);
                prop_assert!(before <= start && start <= end, "{:?}: {:?}", lane, pair);
            }
        }
    }

    #[test]
    fn the_way_of_every_trained_sample_leads_from_a_turn_to_a_step(
        choices in prop::collection::vec(any::<Choice>(), 1..300),
    ) {
        let (happened, told) = play(&choices);
        let mut ended = Vec::new();
        for (sample, flow) in &told.flows {
            let mut flow = flow.clone();
            // Slices are told when they are over; a vote may be over later than the one after it.
            flow.sort_by_key(|(at, _)| *at);
            prop_assert!(flow[0].1 == Flow::Begin, "{} {:?}", sample, flow);
            prop_assert!(flow[1..].iter().all(|(_, flow)| *flow != Flow::Begin));
            let ends = flow.iter().filter(|(_, flow)| *flow == Flow::End).count();
            prop_assert!(ends <= 1 && (ends == 0 || flow[flow.len() - 1].1 == Flow::End));
            ended.extend((ends == 1).then_some(*sample));
        }
        let mut trained = happened.trained;
        trained.sort();
        prop_assert_eq!(ended, trained);
    }

    #[test]
    fn a_counter_is_told_when_it_changes_and_once_for_an_instant(
        choices in prop::collection::vec(any::<Choice>(), 1..300),
    ) {
        let (happened, told) = play(&choices);
        for (counter, values) in &told.counters {
            for pair in values.windows(2) {
                prop_assert!(pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1, "{:?}", counter);
            }
        }
        let last = told.counters.get(&Counter::Outstanding).and_then(|values| values.last());
        prop_assert_eq!(last.map_or(0, |(_, value)| *value), happened.outstanding);
    }
}

#[test]
fn a_timeline_that_begins_in_the_middle_tells_what_was_under_way() {
    let config = Config::default();
    let mut world = World::new(&config);
    for input in World::start() {
        world.handle(&input);
    }
    let request = world.next((0, 1, 1000));
    world.handle(&request);
    let tracer = Tracer::new(&world.scheduler);
    let mut told = Told::default();
    tracer.finish(&mut told);
    let turns: Vec<_> =
        told.lanes.iter().filter(|(lane, _)| matches!(lane, Lane::Turn { .. })).collect();
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].1[0], (world.now, world.now, UNDER_WAY));
    assert!(told.flows.is_empty());
    let deploys =
        told.counters.keys().filter(|counter| matches!(counter, Counter::Deploy(_))).count();
    assert_eq!(deploys, 2);
}
