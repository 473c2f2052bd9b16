//! How fast the policy in this process generates and trains: `benches/live/policy.py` runs this beside
//! `transformers` and PyTorch.
//!
//! `policy_speed CASE.json WEIGHTS` reads a case of `benches/live/policy.json`, writes random weights for the
//! peers to load, and prints, as JSON, the seconds of a generation of the whole batch and of a train step of it,
//! the best of several, and one generated sequence with its log-probabilities, for the peers to check.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use headway_runtime::clock::Clock;
use headway_runtime::engine::tch::TchEngine;
use headway_runtime::engine::{self, EngineCommand, EngineEvent, EngineLink, Generate, Sampling};
use headway_runtime::model::{Shape, file};
use headway_runtime::shared::config::PolicyTraining;
use headway_runtime::shared::id::{ReplicaId, RequestId, SampleId, StepId};
use headway_runtime::shared::ratio::Loss;
use headway_runtime::shared::time::{Span, Time};
use headway_runtime::shared::version::{DeployVersion, LearnerVersion, RolloutVersion};
use headway_runtime::trainer::tch::TchTrainer;
use headway_runtime::trainer::{self, TrainSample, TrainerCommand, TrainerEvent};
use serde::Deserialize;
use serde_json::json;
use tch::Device;

/// Each is measured so many times after one that is not counted.
const TIMES: u64 = 5;

#[derive(Deserialize)]
struct Case {
    shape: Shape,
    batch: u64,
    prompt: u64,
    new_tokens: u32,
}

/// A sequence: its prompt, and what was generated.
#[derive(Clone, Default)]
struct Sequence {
    prompt: Vec<u32>,
    ids: Vec<u32>,
    logprobs: Vec<f32>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(case), Some(weights)) = (arguments.next(), arguments.next()) else {
        return Err("usage: policy_speed CASE.json WEIGHTS".into());
    };
    let case: Case = serde_json::from_str(&std::fs::read_to_string(case)?)?;
    tch::set_num_threads(1);
    let random = Arc::new(case.shape.random(1));
    file::write(Path::new(&weights), &random, file::Header::default())?;

    let clock = Clock::from(Time::from_nanos(0));
    let slots = usize::try_from(case.batch)?;
    let served = TchEngine::new(
        case.shape.clone(),
        Device::Cpu,
        slots,
        random.clone(),
        DeployVersion::new(0),
    );
    let mut link = engine::spawn(ReplicaId(0), clock, slots, served)?;
    let mut generated = Vec::new();
    let generation = best(clock, |round| {
        generated = generate(&mut link, &case, round)?;
        Ok(())
    })?;

    let trained =
        TchTrainer { probe_interval: 0, ..TchTrainer::new(case.shape, Device::Cpu, random) };
    let mut link = trainer::spawn(clock, trained)?;
    if !matches!(link.events.blocking_recv(), Some(TrainerEvent::Up { .. })) {
        return Err("the trainer did not start".into());
    }
    let samples: Vec<TrainSample> = (0..).zip(&generated).map(|(id, s)| sample(id, s)).collect();
    let loss = Loss::of(&PolicyTraining::default());
    let step = best(clock, |round| {
        link.commands.blocking_send(TrainerCommand::Step {
            step: StepId(round),
            learner: LearnerVersion::new(u32::try_from(round)?),
            deploy: None,
            loss,
            updates: 1,
            samples: samples.clone(),
        })?;
        match link.events.blocking_recv() {
            Some(TrainerEvent::StepEnded { ok: true, .. }) => Ok(()),
            other => Err(format!("the step failed: {other:?}").into()),
        }
    })?;

    let first = generated.first().cloned().unwrap_or_default();
    println!(
        "{}",
        json!({
            "generate_sec": generation.as_secs_f64(),
            "step_sec": step.as_secs_f64(),
            "prompt": first.prompt,
            "ids": first.ids,
            "logprobs": first.logprobs,
        })
    );
    Ok(())
}

/// The shortest time.
fn best(
    clock: Clock,
    mut work: impl FnMut(u64) -> Result<(), Box<dyn Error>>,
) -> Result<Span, Box<dyn Error>> {
    let mut shortest = Span::MAX;
    for round in 0..=TIMES {
        let begin = clock.now();
        work(round)?;
        if round > 0 {
            shortest = shortest.min(clock.now().since(begin));
        }
    }
    Ok(shortest)
}

/// The whole batch, at once.
fn generate(
    link: &mut EngineLink,
    case: &Case,
    round: u64,
) -> Result<Vec<Sequence>, Box<dyn Error>> {
    let vocab = u64::try_from(case.shape.vocab)?;
    let mut sequences = vec![Sequence::default(); usize::try_from(case.batch)?];
    for (place, sequence) in (0..).zip(&mut sequences) {
        let prompt = (0..case.prompt).map(|at| u32::try_from((place * 31 + at * 17) % vocab));
        sequence.prompt = prompt.collect::<Result<_, _>>()?;
        let sampling = Sampling {
            max_tokens: case.new_tokens,
            temperature: 1.0,
            seed: round * case.batch + place,
            stop: Arc::new([]),
            stop_texts: Arc::new([]),
        };
        let generate = Generate {
            request: RequestId(place),
            attempt: u32::try_from(round)?,
            prompt: sequence.prompt.as_slice().into(),
            resume: Vec::new(),
            sampling,
        };
        link.commands.blocking_send(EngineCommand::Generate(Box::new(generate)))?;
    }
    let mut left = sequences.len();
    while left > 0 {
        match link.events.blocking_recv() {
            Some(EngineEvent::Tokens { tokens, .. }) => {
                for (request, _, token) in tokens {
                    let sequence = &mut sequences[usize::try_from(request.0)?];
                    sequence.ids.push(token.id);
                    sequence.logprobs.push(token.logprob);
                }
            }
            Some(EngineEvent::Ended { .. }) => left -= 1,
            Some(EngineEvent::Up { .. }) => {}
            other => return Err(format!("the engine says {other:?}").into()),
        }
    }
    Ok(sequences)
}

fn sample(id: u64, sequence: &Sequence) -> TrainSample {
    let prompt = sequence.prompt.len();
    let tokens: Vec<u32> = sequence.prompt.iter().chain(&sequence.ids).copied().collect();
    let mut logprobs = vec![0.0; prompt];
    logprobs.extend(&sequence.logprobs);
    TrainSample {
        id: SampleId(id),
        group: None,
        loss_mask: (0..tokens.len()).map(|place| place >= prompt).collect(),
        rollout_logprobs: logprobs,
        versions: vec![RolloutVersion::stamped_by(DeployVersion::new(0)); tokens.len()],
        tokens,
        reward: (id % 2) as f64,
        masked: false,
    }
}
