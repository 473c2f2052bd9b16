//! Scenarios for the tests of the world, and a run that keeps everything.

use std::path::{Path, PathBuf};

use headway_shared::action::Action;
use headway_shared::config::{Diagnostics, Layers};
use headway_shared::core::Scheduler;
use headway_shared::digest::Digest;
use headway_shared::input::Input;
use headway_shared::record::RecordedRun;
use headway_shared::time::Time;
use headway_sim::kernel::random::Key;
use headway_sim::run::{RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;
use headway_sim::sweep::Progress;
pub(crate) use headway_sim::torture::{SESSIONS, SLOTS};
use headway_sim::world::World;

/// Nobody looks how far it is.
pub(crate) struct Silent;

impl Progress for Silent {
    fn run_ended(&self) {}
}

/// A scenario with assignments over it.
pub(crate) fn try_load(text: &str, set: &[&str]) -> Result<(Scenario, Diagnostics), Diagnostics> {
    let layers = set.iter().fold(Layers::new().toml("test.toml", text), |l, &set| l.set(set));
    Scenario::load(&layers, Path::new("."))
}

/// The same, where it must be fine.
pub(crate) fn load(text: &str, set: &[&str]) -> Scenario {
    match try_load(text, set) {
        Ok((scenario, _)) => scenario,
        Err(problems) => panic!("{problems}"),
    }
}

/// What is wrong with a scenario, as text.
pub(crate) fn problems(text: &str, set: &[&str]) -> String {
    match try_load(text, set) {
        Ok(_) => panic!("the scenario is accepted"),
        Err(problems) => problems.to_string(),
    }
}

/// A run of a scenario, and its record under this name.
pub(crate) fn recorded(scenario: &Scenario, name: &str) -> (RecordedRun, RunResult) {
    let mut bytes = Vec::new();
    let options = RunOptions { record: Some(&mut bytes), ..RunOptions::default() };
    let result = simulate(scenario, 0, options).unwrap();
    (RecordedRun::open(name, bytes).unwrap(), result)
}

/// The folder of the shipped scenarios.
pub(crate) fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(format!("{name}.toml"))
}

/// A shipped scenario.
pub(crate) fn load_shipped(name: &str) -> (Scenario, Diagnostics) {
    let path = shipped(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let layers = Layers::new().toml(format!("{name}.toml"), text);
    match Scenario::load(&layers, path.parent().unwrap()) {
        Ok(loaded) => loaded,
        Err(problems) => panic!("{problems}"),
    }
}

/// One input and what came of it.
pub(crate) type Moment = (Time, Input, Vec<Action>);

/// Runs the world against the core until `end`, and keeps everything.
pub(crate) fn watch(scenario: &Scenario, end: Time) -> (Vec<Moment>, Scheduler) {
    let mut core = Scheduler::new(scenario.config.clone());
    let key = Key::new(scenario.seed, Digest::new(), 0);
    let mut world = World::new(&scenario.world, &scenario.config, key);
    let mut moments = Vec::new();
    loop {
        let input = match world.next_input() {
            Some(input) => input,
            None => match (world.next_time(), core.poll_timeout()) {
                (Some(event), tick) if tick.is_none_or(|tick| event <= tick) => {
                    if event > end {
                        return (moments, core);
                    }
                    world.advance();
                    continue;
                }
                (_, Some(tick)) if tick <= end => {
                    world.pass_until(tick);
                    Input::Tick
                }
                _ => return (moments, core),
            },
        };
        core.handle(world.now(), &input);
        let actions: Vec<Action> = std::iter::from_fn(|| core.poll_action()).collect();
        for &action in &actions {
            world.apply(action, &core);
        }
        world.forget(core.resolved());
        moments.push((world.now(), input, actions));
    }
}
