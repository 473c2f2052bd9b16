//! A snapshot and the tail of inputs are the whole run.

use headway_shared::config::Config;
use headway_shared::core::Scheduler;
use headway_shared::digest::Digest;
use headway_shared::input::{Input, Operator};
use headway_shared::time::Time;
use proptest::prelude::*;

use super::harness::{Plan, World, any_plan, sane_config};
use super::hostile::{Seed, input, seeds};
use super::properties::cases;

/// The digest of the actions that one input causes.
pub(crate) fn step(core: &mut Scheduler, now: Time, input: &Input) -> Digest {
    core.handle(now, input);
    let mut digest = Digest::new();
    while let Some(action) = core.poll_action() {
        action.digest_into(&mut digest);
    }
    digest.fold(core.poll_timeout().map_or(u64::MAX, Time::as_nanos));
    digest
}

pub(crate) fn bytes(core: &Scheduler) -> Vec<u8> {
    postcard::to_stdvec(core).expect("a scheduler can be written")
}

pub(crate) fn thawed(bytes: &[u8]) -> Scheduler {
    postcard::from_bytes(bytes).expect("and read")
}

/// The inputs of a world with faults, senseless inputs and reconfigurations.
pub(crate) fn recorded(
    config: Config,
    others: &[Config],
    plan: Plan,
    seeds: &[Seed],
    count: usize,
) -> Vec<(Time, Input)> {
    let mut world = World::new(config, plan);
    let mut next = 1_000_000;
    let mut seeds = seeds.iter().cycle();
    let mut turns = 0;
    while world.bench.record.len() < count && world.turn() {
        turns += 1;
        if turns % 5 == 0 {
            let seed = *seeds.next().expect("a cycle");
            let odd = input(seed, world.bench.now, &world.bench.watch, &mut next);
            world.give(odd);
        }
        if turns % 30 == 0 {
            let config = Box::new(others[turns / 30 % others.len()].clone());
            world.give(Input::Operator(Operator::Reconfigure(config)));
        }
    }
    std::mem::take(&mut world.bench.record)
}

proptest! {
    #![proptest_config(cases(12, 4))]

    #[test]
    fn a_snapshot_at_every_input_and_its_tail_are_the_full_run(
        config in sane_config(),
        others in prop::collection::vec(sane_config(), 2),
        plan in any_plan(),
        seeds in seeds(40),
    ) {
        let inputs = recorded(config.clone(), &others, plan, &seeds, 120);
        let mut core = Scheduler::new(config);
        let mut snapshots = Vec::new();
        let mut digests = Vec::new();
        for (now, input) in &inputs {
            snapshots.push(bytes(&core));
            digests.push(step(&mut core, *now, input));
        }
        let end = bytes(&core);
        for (index, snapshot) in snapshots.iter().enumerate() {
            let mut core = thawed(snapshot);
            for (offset, (now, input)) in inputs[index..].iter().enumerate() {
                let digest = step(&mut core, *now, input);
                prop_assert_eq!(digest, digests[index + offset], "{} after {}", offset, index);
            }
            prop_assert_eq!(&bytes(&core), &end, "the tail of {}", index);
        }
    }
}

proptest! {
    #![proptest_config(cases(60, 5))]

    #[test]
    fn a_scheduler_that_is_thawed_before_every_input_decides_the_same(
        config in sane_config(),
        others in prop::collection::vec(sane_config(), 3),
        plan in any_plan(),
        seeds in seeds(60),
    ) {
        let inputs = recorded(config.clone(), &others, plan, &seeds, 500);
        let mut warm = Scheduler::new(config);
        let mut thaw = warm.clone();
        for (now, input) in &inputs {
            thaw = thawed(&bytes(&thaw));
            prop_assert_eq!(step(&mut warm, *now, input), step(&mut thaw, *now, input));
        }
        prop_assert_eq!(bytes(&warm), bytes(&thaw));
    }
}
