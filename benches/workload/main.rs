//! One measurement of `make bench`: runs what it is told, and prints what that took as JSON.
//!
//! ```text
//! headway-bench-workload heap|kernel queue|network EVENTS
//! headway-bench-workload run|shares|decisions SCENARIO INPUTS [KEY=VALUE...]
//! ```
//!
//! INPUTS of 0 means the whole run. `run` repeats it until a second of CPU is over.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is what the program is for")]

use std::path::Path;
use std::process::ExitCode;

use headway_shared::config::Layers;
use headway_sim::run::{RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;
use serde_json::{Value, json};

use self::clock::{cpu_sec, seconds_of};
use self::kernel_models::{Kind, Model};
use self::taken::Taken;

mod clock;
mod kernel;
#[path = "../kernel_models.rs"]
mod kernel_models;
mod taken;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let given = match words[..] {
        [what @ ("run" | "shares" | "decisions"), path, inputs, ref sets @ ..] => {
            whole(what, path, inputs, sets)
        }
        [engine, model, count] => event_loop(engine, model, count),
        _ => Err("tell me what to run: see the program's first lines".to_owned()),
    };
    match given {
        Ok(value) => {
            println!("{value}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word} is no number"))
}

fn event_loop(engine: &str, model: &str, count: &str) -> Result<Value, String> {
    let kind = match model {
        "queue" => Kind::Queue,
        "network" => Kind::Network,
        _ => return Err(format!("{model}: queue or network")),
    };
    let events = number(count)?;
    let mut model = Model::new(kind, events);
    let began = cpu_sec();
    match engine {
        "heap" => kernel::heap(&mut model),
        "kernel" => kernel::kernel(&mut model),
        _ => return Err(format!("{engine}: heap or kernel")),
    }
    let taken = cpu_sec() - began;
    Ok(json!({ "events": events, "served": model.served(), "cpu_sec": taken }))
}

fn whole(what: &str, path: &str, inputs: &str, sets: &[&str]) -> Result<Value, String> {
    let max_inputs = number(inputs)?;
    let scenario = load(path, sets)?;
    match what {
        "run" => run(&scenario, max_inputs),
        "shares" => shares(&scenario, max_inputs),
        _ => decisions(&scenario, max_inputs),
    }
}

fn load(path: &str, sets: &[&str]) -> Result<Scenario, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let folder = Path::new(path).parent().unwrap_or(Path::new("."));
    let layers = sets.iter().fold(Layers::new().toml(path, text), |layers, set| layers.set(*set));
    match Scenario::load(&layers, folder) {
        Ok((scenario, _)) => Ok(scenario),
        Err(problems) => Err(problems.to_string()),
    }
}

fn counts(result: &RunResult) -> Value {
    json!({
        "world_events": result.world_events,
        "inputs": result.inputs,
        "actions": result.actions,
        "trained": result.trained,
        "simulated_sec": result.end.as_secs_f64(),
    })
}

fn simulated(scenario: &Scenario, max_inputs: u64) -> Result<RunResult, String> {
    let options = RunOptions { max_inputs, ..RunOptions::default() };
    simulate(scenario, 0, options).map_err(|failure| failure.to_string())
}

fn run(scenario: &Scenario, max_inputs: u64) -> Result<Value, String> {
    let mut last = None;
    let seconds = seconds_of(|| last = Some(simulated(scenario, max_inputs)));
    let result = last.unwrap_or_else(|| simulated(scenario, max_inputs))?;
    let mut value = counts(&result);
    value["cpu_sec"] = json!(seconds);
    Ok(value)
}

/// What each part of a run takes.
fn shares(scenario: &Scenario, max_inputs: u64) -> Result<Value, String> {
    let (taken, result) = Taken::down(scenario, max_inputs)?;
    let mut value = counts(&result);
    taken.world(scenario)?;
    value["world_sec"] = json!(seconds_of(|| drop(taken.world(scenario))));
    value["core_sec"] = json!(seconds_of(|| {
        std::hint::black_box(taken.core(scenario, 0));
    }));
    value["both_sec"] = json!(seconds_of(|| taken.both(scenario)));
    value["cpu_sec"] = json!(seconds_of(|| drop(simulated(scenario, max_inputs))));
    Ok(value)
}

/// The core alone over the second half of the inputs, for an instruction counter.
fn decisions(scenario: &Scenario, max_inputs: u64) -> Result<Value, String> {
    let (taken, _) = Taken::down(scenario, max_inputs)?;
    let from = taken.inputs() / 2;
    let actions = taken.core(scenario, from);
    Ok(json!({ "inputs": taken.inputs() - from, "actions": actions }))
}
