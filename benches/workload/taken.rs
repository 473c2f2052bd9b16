//! A run taken down in memory, and played again in halves: its core without the world, its world
//! without the core.

use headway_shared::action::Action;
use headway_shared::core::{Resolved, Sample, Scheduler};
use headway_shared::digest::Digest;
use headway_shared::id::SampleId;
use headway_shared::input::Input;
use headway_shared::time::Time;
use headway_sim::kernel::random::Key;
use headway_sim::run::{RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;
use headway_sim::world::{Named, World};

/// One input, and what it led to: ends of ranges in the lists of [`Taken`].
struct Told {
    at: Time,
    input: Input,
    actions: usize,
    resolved: usize,
}

/// A run.
#[derive(Default)]
pub(crate) struct Taken {
    told: Vec<Told>,
    actions: Vec<Action>,
    resolved: Vec<Resolved>,
    /// Samples that votes began for, and the tokens of each batch, in order.
    samples: Vec<Option<Sample>>,
    batches: Vec<u64>,
}

/// What the actions of a run name, one after the other.
struct Names<'a> {
    taken: &'a Taken,
    sample: usize,
    batch: usize,
}

impl Named for Names<'_> {
    fn sample(&self, _: SampleId) -> Option<&Sample> {
        self.taken.samples[self.sample].as_ref()
    }

    fn batch_tokens(&self) -> u64 {
        self.taken.batches[self.batch]
    }
}

impl Taken {
    /// Takes down the first `max_inputs` inputs of a run; 0: all.
    pub(crate) fn down(scenario: &Scenario, max_inputs: u64) -> Result<(Self, RunResult), String> {
        let mut taken = Self::default();
        let mut watch = |at: Time, input: &Input, actions: &[Action], core: &Scheduler| {
            for action in actions {
                match *action {
                    Action::StartVote { sample, .. } => {
                        taken.samples.push(core.sample(sample).cloned());
                    }
                    Action::StartStep { .. } => taken.batches.push(core.batch_tokens()),
                    _ => {}
                }
            }
            taken.actions.extend_from_slice(actions);
            taken.resolved.extend_from_slice(core.resolved());
            let (actions, resolved) = (taken.actions.len(), taken.resolved.len());
            taken.told.push(Told { at, input: input.clone(), actions, resolved });
        };
        let options = RunOptions { max_inputs, watch: Some(&mut watch), ..RunOptions::default() };
        let result = simulate(scenario, 0, options).map_err(|failure| failure.to_string())?;
        Ok((taken, result))
    }

    /// The core alone decides the inputs from `from` on again, after those before. How many
    /// actions it took from there.
    pub(crate) fn core(&self, scenario: &Scenario, from: usize) -> u64 {
        let mut core = Scheduler::new(scenario.config.clone());
        decide(&mut core, &self.told[..from]);
        decide_and_count(&mut core, &self.told[from..])
    }

    /// The world alone, which does what the core decided then.
    pub(crate) fn world(&self, scenario: &Scenario) -> Result<(), String> {
        let key = Key::new(scenario.seed, Digest::new(), 0);
        let mut world = World::new(&scenario.world, &scenario.config, key);
        let mut names = Names { taken: self, sample: 0, batch: 0 };
        let (mut action, mut resolved) = (0, 0);
        for told in &self.told {
            if matches!(told.input, Input::Tick) {
                while world.next_time().is_some_and(|event| event <= told.at) {
                    world.advance();
                }
                world.pass_until(told.at);
            } else {
                loop {
                    match world.next_input() {
                        Some(input) if input == told.input => break,
                        Some(_) => return Err("the world tells something else".to_owned()),
                        None if world.next_time().is_none() => return Err("it ends".to_owned()),
                        None => world.advance(),
                    }
                }
            }
            for &action in &self.actions[action..told.actions] {
                world.apply(action, &names);
                names.sample += usize::from(matches!(action, Action::StartVote { .. }));
                names.batch += usize::from(matches!(action, Action::StartStep { .. }));
            }
            world.forget(&self.resolved[resolved..told.resolved]);
            (action, resolved) = (told.actions, told.resolved);
        }
        Ok(())
    }

    /// World and core together, and nobody who counts: what both halves are compared with.
    pub(crate) fn both(&self, scenario: &Scenario) {
        let key = Key::new(scenario.seed, Digest::new(), 0);
        let mut world = World::new(&scenario.world, &scenario.config, key);
        let mut core = Scheduler::new(scenario.config.clone());
        let mut tick = None;
        for _ in 0..self.told.len() {
            let input = loop {
                if let Some(input) = world.next_input() {
                    break input;
                }
                match (world.next_time(), tick) {
                    (Some(event), tick) if tick.is_none_or(|tick| event <= tick) => world.advance(),
                    (_, Some(tick)) => {
                        world.pass_until(tick);
                        break Input::Tick;
                    }
                    _ => return,
                }
            };
            core.handle(world.now(), &input);
            while let Some(action) = core.poll_action() {
                world.apply(action, &core);
            }
            world.forget(core.resolved());
            tick = core.poll_timeout();
        }
    }

    pub(crate) fn inputs(&self) -> usize {
        self.told.len()
    }
}

fn decide(core: &mut Scheduler, told: &[Told]) -> u64 {
    let mut actions = 0;
    for Told { at, input, .. } in told {
        core.handle(*at, input);
        while let Some(action) = core.poll_action() {
            std::hint::black_box(action);
            actions += 1;
        }
        std::hint::black_box(core.poll_timeout());
    }
    actions
}

/// What `callgrind --toggle-collect` counts.
#[inline(never)]
fn decide_and_count(core: &mut Scheduler, told: &[Told]) -> u64 {
    decide(core, told)
}
