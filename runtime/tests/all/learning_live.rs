//! The whole loop with a policy that learns: sessions of a task over HTTP, the gateway, the driver,
//! its record, the engine and the trainer in libtorch.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use headway_runtime::driver::{self, Parts, Recovery};
use headway_runtime::engine::tch::TchEngine;
use headway_runtime::environment::{Host, Lookup, Options};
use headway_runtime::model::{self, Shape};
use headway_runtime::shared::id::ReplicaId;
use headway_runtime::shared::rule::Rule;
use headway_runtime::shared::time::Span;
use headway_runtime::shared::version::DeployVersion;
use headway_runtime::store::{StepRow, replay, steps};
use headway_runtime::tokenizer::Symbols;
use headway_runtime::trainer::tch::TchTrainer;
use headway_runtime::{engine, gateway, trainer};
use tokio::sync::oneshot;

use crate::all::live::config;

/// A test that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(300);

fn settings(eta: u32) -> String {
    format!(
        "
        [policy_serving]
        weight_sync_pause = true
        over_limit = \"hold\"
        [reward_judging]
        judge_needs = \"turn\"
        judge_concurrency = 64
        [policy_training]
        batch_size = 16
        group_size = 8
        max_head_off_policyness = {eta}
        correction_high = 1.25
        [queue]
        max_size = 8192
    "
    )
}

/// Learns for so many steps; gives them, and the record.
async fn learn(dir: &Path, eta: u32, seed: u64, wanted: u64) -> (Vec<StepRow>, PathBuf) {
    let record = dir.join("run.db");
    let config = config(&settings(eta));
    let recovery = Recovery::open(&record, config.clone()).unwrap();
    let clock = recovery.clock();
    model::one_thread();
    let symbols = Arc::new(Symbols::new(Lookup::SYMBOLS));
    let shape = Shape::tiny(i64::from(symbols.vocabulary()), 32);
    let fresh = Arc::new(shape.random(seed));
    let (cpu, version) = (tch::Device::Cpu, DeployVersion::new(0));
    let serving = TchEngine::new(shape.clone(), cpu, 64, fresh.clone(), version);
    let parts = Parts {
        tokenizer: symbols.clone(),
        judge: Arc::new(Rule::read("agreement(answer, metadata.answer)").unwrap()),
        engines: vec![engine::spawn(ReplicaId(0), clock, 1024, serving).unwrap()],
        trainer: trainer::spawn(clock, TchTrainer::new(shape, cpu, fresh)).unwrap(),
    };
    let (mut driver, run) =
        driver::start(recovery, parts, driver::Options::default()).await.unwrap();
    let (listener, address) = gateway::listen("127.0.0.1", 0).await.unwrap();
    let router = gateway::router(driver.clone(), symbols, gateway::Options::default());
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(gateway::serve(listener, router, async { drop(stopped.await) }));
    let options = Options {
        base_url: format!("http://{address}"),
        sessions: 192,
        group_size: 8,
        seed,
        ..Options::default()
    };
    let host = Host::new(Lookup::new(seed), options, config.environment_hosting.clone()).unwrap();
    let enough = driver.until(|status| status.ledger.steps >= wanted || status.error.is_some());
    let reached = tokio::time::timeout(PATIENCE, host.run(async { drop(enough.await) })).await;
    reached.expect("it learns in time");
    driver.shut_down(Span::from_secs(30)).await;
    run.await.unwrap().unwrap();
    drop(stop);
    let counts = host.counts();
    assert_eq!((counts.given_up, counts.broken, counts.unrecorded), (0, 0, 0));
    (steps(&record).unwrap(), record)
}

fn mean(steps: &[StepRow], metric: &str) -> f64 {
    steps.iter().map(|step| step.metrics[metric]).sum::<f64>() / steps.len() as f64
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_learns_a_task_through_the_gateway_and_its_record_replays() {
    let dir = tempfile::tempdir().unwrap();
    let (steps, record) = learn(dir.path(), 0, 1, 60).await;
    let (first, last) = (mean(&steps[..4], "reward_mean"), mean(&steps[54..60], "reward_mean"));
    assert!(first < 0.12, "chance is 1 in 16: {first}");
    assert!(last > 0.25, "{last}");
    // On-policy, one update a step: what was recorded is what the trainer computes.
    for step in &steps {
        assert!(step.staleness.iter().all(|staleness| *staleness == 0));
        assert!((step.metrics["learner_rollout_max"] - 1.0).abs() < 1e-4, "{step:?}");
        assert!(step.metrics["train_rollout_logprob_abs_diff"] < 1e-4, "{step:?}");
    }
    assert!(
        steps.iter().all(|step| step.scores.contains_key("1") || step.scores.contains_key("2"))
    );
    replay(&record).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_that_wait_eight_versions_are_off_the_policy() {
    let dir = tempfile::tempdir().unwrap();
    let (steps, record) = learn(dir.path(), 8, 2, 40).await;
    let late = &steps[30..40];
    let oldest = late.iter().flat_map(|step| &step.staleness).max().unwrap();
    assert!(*oldest >= 4, "the queue holds batches of up to 8 versions: {oldest}");
    assert!(mean(late, "train_rollout_logprob_abs_diff") > 1e-3);
    assert!(mean(late, "learner_rollout_p99") > 1.01);
    replay(&record).unwrap();
}
