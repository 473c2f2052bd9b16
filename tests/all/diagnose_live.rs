//! Live runs of a policy that learns, each with one cause of ratios that are far from 1 and no other:
//! what the diagnosis says of their records.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use headway_runtime::driver::{self, Parts, Recovery};
use headway_runtime::engine::tch::TchEngine;
use headway_runtime::engine::{
    self, Engine, EngineCommand, EngineEvent, EngineMailbox, Export, Weights,
};
use headway_runtime::environment::{Episode, Host, Operation, Options, State, Task};
use headway_runtime::model::{self, Shape};
use headway_runtime::tokenizer::Symbols;
use headway_runtime::trainer::tch::{AdamW, TchTrainer};
use headway_runtime::{gateway, store, trainer};
use headway_shared::config::{Layers, load_config};
use headway_shared::id::{ReplicaId, RequestId};
use headway_shared::rule::Rule;
use headway_shared::time::Span;
use headway_shared::version::DeployVersion;
use headway_sim::diagnose::{Diagnosis, Evidence, Named, diagnose};
use tokio::sync::{mpsc, oneshot};

use crate::all::support::{run, stderr};

/// A test that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(300);

/// Says a digit many times over.
#[derive(Clone, Copy)]
struct Echo {
    tokens: u32,
}

struct Digit(State);

impl Task for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn begin(&self, prompt: u64) -> Box<dyn Episode> {
        let content = (prompt * 7 % 10).to_string();
        let answer = content.repeat(self.tokens as usize);
        Box::new(Digit(State {
            role: "user",
            content,
            answer,
            max_tokens: self.tokens,
            last: true,
        }))
    }
}

impl Episode for Digit {
    fn reset(&mut self) -> Operation<'_, State> {
        let state = self.0.clone();
        Box::pin(async move { Ok(state) })
    }

    fn step<'a>(&'a mut self, _: &'a str) -> Operation<'a, Option<State>> {
        Box::pin(async { Ok(None) })
    }
}

/// What is wrong with what the engine says or holds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// It computes with weights of 8 significant bits.
    Rounded,
    /// Each token has the log-probability of the one before it, the first has none.
    Shifted,
    /// Every second turn has zeros for log-probabilities from its middle on.
    Padded,
}

/// An engine with a fault, as whoever wraps an engine may make it.
struct Faulty {
    engine: TchEngine,
    fault: Fault,
    /// How much longer a decode step takes.
    slower: Duration,
}

impl Engine for Faulty {
    fn run(mut self, mut mailbox: EngineMailbox) {
        let (sender, commands) = mpsc::channel(1024);
        // An engine that is slow waits until the tokens before have been taken.
        let (events, mut said) = mpsc::channel(if self.slower.is_zero() { 1024 } else { 1 });
        if self.fault == Fault::Rounded {
            self.engine.weights = rounded(&self.engine.weights);
        }
        let inner = EngineMailbox { commands, events, clock: mailbox.clock };
        let engine = self.engine;
        let serving = thread::spawn(move || engine.run(inner));
        let fault = self.fault;
        thread::spawn(move || {
            let mut over = false;
            while !over && let Some(mut command) = mailbox.commands.blocking_recv() {
                over = matches!(command, EngineCommand::Shutdown);
                if let EngineCommand::Load { weights: Export::Tensors(weights), .. } = &mut command
                    && fault == Fault::Rounded
                {
                    *weights = rounded(weights);
                }
                if sender.blocking_send(command).is_err() {
                    return;
                }
            }
        });
        let mut turns = Turns::default();
        while let Some(mut event) = said.blocking_recv() {
            turns.spoil(self.fault, &mut event);
            if matches!(event, EngineEvent::Tokens { .. }) {
                thread::sleep(self.slower);
            }
            if mailbox.events.blocking_send(event).is_err() {
                break;
            }
        }
        drop(said);
        serving.join().unwrap();
    }
}

/// The weights as bf16 has them.
fn rounded(weights: &Weights) -> Arc<Weights> {
    let mut weights = weights.clone();
    let all = weights.tensors.iter_mut().flat_map(|tensor| &mut tensor.data);
    all.for_each(|x| *x = f32::from_bits(x.to_bits().wrapping_add(0x8000) & 0xffff_0000));
    Arc::new(weights)
}

/// How many tokens each turn has, and the log-probability of its last one.
#[derive(Default)]
struct Turns(BTreeMap<RequestId, (u32, f32)>);

impl Turns {
    fn spoil(&mut self, fault: Fault, event: &mut EngineEvent) {
        let EngineEvent::Tokens { tokens, .. } = event else { return };
        for (request, _, token) in tokens {
            let (count, before) = self.0.entry(*request).or_default();
            let own = token.logprob;
            token.logprob = match fault {
                Fault::Shifted => *before,
                Fault::Padded if request.0 % 2 == 0 && *count >= 12 => 0.0,
                _ => own,
            };
            (*count, *before) = (*count + 1, own);
        }
    }
}

/// A run.
struct Setup {
    /// Keys of `[policy_training]` and of `[policy_serving]`, beyond those of all.
    training: &'static str,
    serving: &'static str,
    fault: Fault,
    slower: Duration,
    sessions: u32,
    tokens: u32,
    learning_rate: f64,
    steps: u64,
}

/// Samples are fresh, weights are computed again, and the policy moves slowly.
const HEALTHY: Setup = Setup {
    training: "max_head_off_policyness = 2",
    serving: "sync_mode = \"in_flight\"",
    fault: Fault::None,
    slower: Duration::ZERO,
    sessions: 32,
    tokens: 24,
    learning_rate: 1e-4,
    steps: 24,
};

impl Setup {
    /// Runs it, and reads its record as `headway diagnose` does.
    async fn diagnose(&self, dir: &Path) -> (Evidence, Diagnosis) {
        let record = dir.join("run.db");
        let text = format!(
            "
            [policy_serving]
            engine = \"tch\"
            over_limit = \"hold\"
            {}
            [reward_judging]
            judge_needs = \"turn\"
            judge_concurrency = 64
            [queue]
            max_size = 8192
            [policy_training]
            engine = \"tch\"
            group_size = 4
            batch_size = 4
            {}
            ",
            self.serving, self.training
        );
        let (config, _) = load_config(&Layers::new().toml("config.toml", text)).unwrap();
        let recovery = Recovery::open(&record, config.clone()).unwrap();
        let clock = recovery.clock();
        model::one_thread();
        let symbols = Arc::new(Symbols::new("0123456789"));
        let shape = Shape::tiny(i64::from(symbols.vocabulary()), i64::from(self.tokens) + 16);
        let fresh = opinionated(&shape);
        let device = model::device("cpu").unwrap();
        let version = DeployVersion::new(0);
        let engine = TchEngine::new(shape.clone(), device, 64, fresh.clone(), version);
        let engine = Faulty { engine, fault: self.fault, slower: self.slower };
        let mut learner = TchTrainer::new(shape, device, fresh);
        learner.probe_interval = 4;
        learner.optimizer = AdamW { learning_rate: self.learning_rate, ..AdamW::default() };
        let parts = Parts {
            tokenizer: symbols.clone(),
            judge: Arc::new(Rule::read("agreement(answer, metadata.answer)").unwrap()),
            engines: vec![engine::spawn(ReplicaId(0), clock, 1024, engine).unwrap()],
            trainer: trainer::spawn(clock, learner).unwrap(),
        };
        let (mut driver, run) =
            driver::start(recovery, parts, driver::Options::default()).await.unwrap();
        let (listener, address) = gateway::listen("127.0.0.1", 0).await.unwrap();
        let router = gateway::router(driver.clone(), symbols, gateway::Options::default());
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(gateway::serve(listener, router, async { drop(stopped.await) }));
        let options = Options {
            base_url: format!("http://{address}"),
            sessions: self.sessions,
            group_size: 4,
            ..Options::default()
        };
        let task = Echo { tokens: self.tokens };
        let host = Host::new(task, options, config.environment_hosting.clone()).unwrap();
        let wanted = self.steps;
        let enough = driver.until(|status| status.ledger.steps >= wanted || status.error.is_some());
        let reached = tokio::time::timeout(PATIENCE, host.run(async { drop(enough.await) })).await;
        reached.expect("it makes its steps in time");
        driver.shut_down(Span::from_secs(30)).await;
        run.await.unwrap().unwrap();
        drop(stop);
        let evidence = Evidence::of_run(&store::RecordedRun::open(&record).unwrap()).unwrap();
        let diagnosis = diagnose(&evidence);
        (evidence, diagnosis)
    }
}

/// Random weights with a large head: a policy that prefers some symbols, unlike a fresh one.
fn opinionated(shape: &Shape) -> Arc<Weights> {
    let mut weights = shape.random(1);
    let head = weights.tensors.iter_mut().filter(|tensor| tensor.name == "lm_head.weight");
    head.flat_map(|tensor| &mut tensor.data).for_each(|x| *x *= 10.0);
    Arc::new(weights)
}

fn named(diagnosis: &Diagnosis) -> Vec<Named> {
    let of_ratios = |named: &Named| named.is_of_ratios();
    diagnosis.findings.iter().map(|finding| finding.named).filter(of_ratios).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_run_has_no_cause() {
    let dir = tempfile::tempdir().unwrap();
    let (evidence, diagnosis) = HEALTHY.diagnose(dir.path()).await;
    assert_eq!(diagnosis.findings, []);
    assert!(diagnosis.signs.iter().all(|sign| sign.holds == Some(true)), "{:?}", diagnosis.signs);
    let spread = diagnosis.spread.unwrap();
    assert!(spread.floor.sqrt() < 1e-4, "one process, one precision: {spread:?}");
    assert!(evidence.waits.unwrap().percentile(50).unwrap() > 0.0);
    let output = run(dir.path(), &["diagnose", "run.db"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.ends_with("no cause found: nothing is wrong\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_queue_is_age() {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup {
        training: "max_head_off_policyness = 16",
        sessions: 256,
        learning_rate: 1e-3,
        steps: 40,
        ..HEALTHY
    };
    let (_, diagnosis) = setup.diagnose(dir.path()).await;
    assert_eq!(named(&diagnosis), [Named::Age], "{diagnosis:?}");
    let output = run(dir.path(), &["diagnose", ".", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let causes = document["causes"].as_array().unwrap();
    assert_eq!(causes.last().unwrap()["cause"], "age");
    let key = &causes.last().unwrap()["settings"][0]["key"];
    assert_eq!(*key, "policy_training.max_head_off_policyness");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_of_older_weights_is_mixing() {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup {
        training: "max_head_off_policyness = 4",
        serving: "sync_mode = \"in_flight\"\nkv_on_sync = \"keep\"",
        // Weights change several times while a turn is generated, however fast the machine is.
        tokens: 48,
        slower: Duration::from_millis(5),
        ..HEALTHY
    };
    let (_, diagnosis) = setup.diagnose(dir.path()).await;
    assert_eq!(named(&diagnosis), [Named::Mixing], "{diagnosis:?}");
    assert_eq!(diagnosis.findings[0].settings[0].key, "policy_serving.kv_on_sync");
}

#[tokio::test(flavor = "multi_thread")]
async fn rounded_weights_are_numerics() {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup { fault: Fault::Rounded, ..HEALTHY };
    let (_, diagnosis) = setup.diagnose(dir.path()).await;
    assert_eq!(named(&diagnosis), [Named::Numerics], "{diagnosis:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn log_probabilities_of_other_tokens_and_zeros_are_labels() {
    for (fault, remedy) in [(Fault::Shifted, "tokenisation"), (Fault::Padded, "padding")] {
        let dir = tempfile::tempdir().unwrap();
        let setup = Setup { fault, ..HEALTHY };
        let (_, diagnosis) = setup.diagnose(dir.path()).await;
        assert_eq!(named(&diagnosis), [Named::Labels], "{fault:?}: {diagnosis:?}");
        assert_eq!(diagnosis.findings.last().unwrap().settings[0].key, remedy);
    }
}
