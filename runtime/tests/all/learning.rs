//! A policy that really learns: an engine and a trainer, driven by hand, without the core.
//!
//! Reverse two digits: the reward is the share of digits that are right. Sixteen prompts of eight
//! answers per step, from random weights, learning rate 1e-3.

use std::collections::VecDeque;
use std::sync::Arc;

use headway_runtime::clock::Clock;
use headway_runtime::engine::tch::TchEngine;
use headway_runtime::engine::{
    self, EngineCommand, EngineEvent, EngineLink, Generate, Sampling, Token,
};
use headway_runtime::model::Shape;
use headway_runtime::trainer::tch::TchTrainer;
use headway_runtime::trainer::{
    self, StepMetric, TrainSample, TrainerCommand, TrainerEvent, TrainerLink,
};
use headway_shared::action::InFlight;
use headway_shared::config::{Correction, KvOnSync};
use headway_shared::id::{GroupId, PublicationId, ReplicaId, RequestId, SampleId, StepId};
use headway_shared::ratio::Loss;
use headway_shared::time::Time;
use headway_shared::version::{DeployVersion, LearnerVersion, RolloutVersion};

const PROMPTS: u64 = 16;
const ANSWERS: u64 = 8;
const DIGITS: usize = 2;
/// Ten digits, then the marks around a prompt.
const VOCAB: i64 = 16;
const BEGIN: u32 = 10;
const ANSWER: u32 = 11;

struct World {
    engine: EngineLink,
    trainer: TrainerLink,
    seed: u64,
    requests: u64,
    /// The learner's.
    version: u32,
    publications: u64,
}

/// What a step of the loop showed.
struct Seen {
    reward: f64,
    metrics: Vec<StepMetric>,
}

impl World {
    fn start(seed: u64) -> Self {
        tch::set_num_threads(1);
        let shape = Shape::tiny(VOCAB, 16);
        let weights = Arc::new(shape.random(seed));
        let clock = Clock::from(Time::from_nanos(0));
        let serving = TchEngine::new(
            shape.clone(),
            tch::Device::Cpu,
            (PROMPTS * ANSWERS) as usize,
            Arc::clone(&weights),
            DeployVersion::new(0),
        );
        let engine = engine::spawn(ReplicaId(0), clock, 1024, serving).unwrap();
        let learner = TchTrainer::new(shape, tch::Device::Cpu, weights);
        let trainer = trainer::spawn(clock, learner).unwrap();
        Self { engine, trainer, seed, requests: 0, version: 0, publications: 0 }
    }

    /// Lets the engine answer a batch of prompts.
    fn generate(&mut self) -> Vec<TrainSample> {
        let first = self.requests;
        let mut prompts = Vec::new();
        for place in 0..PROMPTS * ANSWERS {
            let group = (first + place) / ANSWERS;
            let number = mix(self.seed << 32 | group) % 10_000;
            let digit = |n: u32| (number / 10_u64.pow(n) % 10) as u32;
            let mut prompt = vec![BEGIN];
            prompt.extend((0..DIGITS as u32).map(digit));
            prompt.push(ANSWER);
            let generate = Generate {
                request: RequestId(first + place),
                attempt: 1,
                prompt: prompt.as_slice().into(),
                resume: Vec::new(),
                sampling: Sampling {
                    max_tokens: DIGITS as u32,
                    temperature: 1.0,
                    seed: mix(first + place),
                    stop: Arc::new([]),
                    stop_texts: Arc::new([]),
                },
            };
            self.engine
                .commands
                .blocking_send(EngineCommand::Generate(Box::new(generate)))
                .unwrap();
            prompts.push(prompt);
        }
        self.requests += PROMPTS * ANSWERS;
        let mut answers: Vec<Vec<Token>> = vec![Vec::new(); prompts.len()];
        let mut ended = 0;
        while ended < prompts.len() {
            match self.engine.events.blocking_recv().unwrap() {
                EngineEvent::Tokens { tokens, .. } => {
                    for (request, _, token) in tokens {
                        answers[(request.0 - first) as usize].push(token);
                    }
                }
                EngineEvent::Ended { .. } => ended += 1,
                EngineEvent::Up { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        let samples = prompts.iter().zip(&answers).enumerate();
        samples.map(|(n, (prompt, answer))| sample(first + n as u64, prompt, answer)).collect()
    }

    fn train(&mut self, samples: Vec<TrainSample>) -> Vec<StepMetric> {
        let command = TrainerCommand::Step {
            step: StepId(u64::from(self.version)),
            learner: LearnerVersion::new(self.version),
            deploy: Some(DeployVersion::new(self.version)),
            loss: Loss { correction: Correction::PpoClip, low: 0.8, high: 1.25 },
            updates: 1,
            samples,
        };
        self.trainer.commands.blocking_send(command).unwrap();
        self.version += 1;
        loop {
            match self.trainer.events.blocking_recv().unwrap() {
                TrainerEvent::StepEnded { ok: true, metrics, .. } => return metrics,
                TrainerEvent::Up { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Brings the learner's weights to the engine.
    fn publish(&mut self) {
        self.publications += 1;
        let publication = PublicationId(self.publications);
        let version = LearnerVersion::new(self.version);
        self.trainer.commands.blocking_send(TrainerCommand::Save { publication, version }).unwrap();
        let weights = match self.trainer.events.blocking_recv().unwrap() {
            TrainerEvent::Saved { weights, .. } => weights,
            other => panic!("{other:?}"),
        };
        let load = EngineCommand::Load {
            publication,
            version: DeployVersion::of(version),
            weights,
            in_flight: InFlight::Drained,
            kv: KvOnSync::Recompute,
        };
        self.engine.commands.blocking_send(load).unwrap();
        while self.engine.events.blocking_recv().unwrap() != (EngineEvent::Loaded { publication }) {
        }
    }

    /// Trains on batches that are `lag` versions old, once there are so many; `steps` of them.
    fn learn(&mut self, lag: usize, steps: usize) -> Vec<Seen> {
        let mut waiting = VecDeque::new();
        let mut seen = Vec::new();
        while seen.len() < steps {
            let samples = self.generate();
            let reward = samples.iter().map(|sample| sample.reward).sum::<f64>();
            let reward = reward / samples.len() as f64;
            waiting.push_back(samples);
            if waiting.len() > lag {
                let metrics = self.train(waiting.pop_front().unwrap());
                self.publish();
                seen.push(Seen { reward, metrics });
            }
        }
        seen
    }
}

fn sample(id: u64, prompt: &[u32], answer: &[Token]) -> TrainSample {
    assert_eq!(answer.len(), DIGITS);
    let right = answer.iter().zip(prompt[1..=DIGITS].iter().rev());
    let right = right.filter(|(token, digit)| token.id == **digit).count();
    let before = prompt.len();
    let mut sample = TrainSample {
        id: SampleId(id),
        group: Some(GroupId(id / ANSWERS)),
        tokens: prompt.to_vec(),
        loss_mask: vec![false; before],
        rollout_logprobs: vec![0.0; before],
        versions: vec![RolloutVersion::new(0); before],
        reward: right as f64 / DIGITS as f64,
        masked: false,
    };
    for token in answer {
        sample.tokens.push(token.id);
        sample.loss_mask.push(true);
        sample.rollout_logprobs.push(token.logprob);
        sample.versions.push(token.version);
    }
    sample
}

/// Scatters numbers (SplitMix64's finisher).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn reward(seen: &[Seen]) -> f64 {
    seen.iter().map(|step| step.reward).sum::<f64>() / seen.len() as f64
}

fn worst(seen: &[Seen], name: &str) -> f64 {
    let values = seen.iter().flat_map(|step| &step.metrics);
    let of_name = values.filter(|metric| metric.name == name && metric.staleness.is_none());
    of_name.map(|metric| metric.value).fold(f64::MIN, f64::max)
}

#[test]
fn a_policy_learns_to_reverse_digits() {
    let seen = World::start(1).learn(0, 160);
    let (first, last) = (reward(&seen[..5]), reward(&seen[150..]));
    assert!(first < 0.15, "chance is 1 in 16: {first}");
    assert!(last > 0.85, "{last}");
    // Synchronous, one update per step: what was recorded is what the trainer computes.
    assert!((worst(&seen, "learner_rollout_max") - 1.0).abs() < 1e-4);
    assert!(worst(&seen, "train_rollout_logprob_abs_diff") < 1e-4);
}

#[test]
fn it_learns_from_samples_that_are_eight_versions_old() {
    let seen = World::start(2).learn(8, 200);
    let (first, last) = (reward(&seen[..5]), reward(&seen[190..]));
    assert!(first < 0.15 && last > 0.85, "{first} {last}");
    // The batches were eight versions old, so ratios spread.
    let steady = &seen[20..];
    assert!(worst(steady, "learner_rollout_p99") > 1.1);
    assert!(worst(steady, "train_rollout_logprob_abs_diff") > 1e-2);
}
