//! The Python package for slime, `python/headway-slime`: its own tests, its types, and a trainer's
//! process that is killed and started again, against a run whose trainer is outside.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use headway_runtime::shared::time::Span;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::all::engine::script;
use crate::all::live::query;
use crate::all::outside::{Run, text};
use crate::all::packages::installed;
use crate::all::sglang_server::SglangServer;

/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/headway-slime")
}

fn python() -> Command {
    let mut command = Command::new("python3");
    command.arg("-B").current_dir(package()).env("PYTHONPATH", "src:tests/stubs:.");
    command.kill_on_drop(true);
    command
}

async fn succeeds(mut command: Command) {
    let output = command.output().await.unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[tokio::test]
async fn its_own_tests_pass() {
    let mut tests = python();
    tests.args(["-m", "unittest", "discover", "-t", ".", "-s", "tests"]);
    succeeds(tests).await;
}

#[tokio::test]
async fn its_types_hold() {
    let Some(packages) = installed("mypy", "mypy") else { return };
    let mut check = python();
    check.env("PYTHONPATH", packages).args(["-m", "mypy", "--no-incremental"]);
    succeeds(check).await;
}

/// A job of slime, which says what it does, and waits to be told to go on.
struct Job {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
    told: ChildStdin,
}

impl Job {
    fn start(run: &Run, dir: &Path, rollouts: u32) -> Self {
        let mut command = python();
        command.args(["-m", "tests.live"]).arg(dir).arg(rollouts.to_string());
        command.env("HEADWAY_URL", &run.url).env("HEADWAY_TRAINER_TOKEN", "trainer-token");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let told = child.stdin.take().unwrap();
        Self { child, said, told }
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.said.next_line()).await.unwrap();
        let line = line.unwrap().expect("the job ended with an error, which stands above");
        serde_json::from_str(&line).unwrap()
    }

    /// Lets it go on until it has done this.
    async fn until(&mut self, what: &str) -> Value {
        loop {
            let did = self.next().await;
            if did["did"] == what {
                return did;
            }
            self.go_on().await;
        }
    }

    async fn go_on(&mut self) {
        self.told.write_all(b"\n").await.unwrap();
    }

    /// As the kernel does it when memory is short: nothing is cleaned up.
    async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

struct World {
    dir: tempfile::TempDir,
    server: SglangServer,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = SglangServer::start(dir.path(), |prompt| script(prompt).0);
        Self { dir, server }
    }

    async fn run(&self) -> Run {
        let (text, engines) = (text("sync_mode = \"in_flight\""), [self.server.url()]);
        let run = Run::start(self.dir.path(), &text, &engines, Span::from_secs(60)).await;
        run.until(|status| status.gauges.replicas_up == 1).await;
        run
    }

    fn job(&self, run: &Run, rollouts: u32) -> Job {
        Job::start(run, self.dir.path(), rollouts)
    }
}

fn ids(samples: &Value) -> Vec<u64> {
    let samples = samples.as_array().unwrap();
    samples.iter().map(|sample| sample["metadata"]["headway_id"].as_u64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_have_their_versions_log_probs_and_masks_and_the_engine_gets_the_weights() {
    let world = World::new();
    let run = world.run().await;
    let mut job = world.job(&run, 2);
    run.turns("a", 2).await;
    let pulled = job.until("pulled").await;
    let sample = &pulled["samples"][0];
    // The script answers "hello" with its five letters and an end.
    assert_eq!(sample["response_length"], 6);
    assert_eq!(sample["loss_mask"], json!([1, 1, 1, 1, 1, 1]));
    let tokens: Vec<u64> = serde_json::from_value(sample["tokens"].clone()).unwrap();
    assert!(tokens.ends_with(&[104, 101, 108, 108, 111, 256]), "{tokens:?}");
    let log_probs: Vec<f64> = serde_json::from_value(sample["rollout_log_probs"].clone()).unwrap();
    assert!(log_probs.len() == 6 && log_probs.iter().all(|value| *value < 0.0), "{log_probs:?}");
    assert_eq!((&sample["weight_versions"], &sample["reward"]), (&json!(["0"]), &json!(1.0)));
    assert_eq!(pulled["metrics"]["headway/staleness_max"], 0.0);
    job.go_on().await;
    job.until("saved").await;
    run.until_published(1).await;
    assert_eq!(world.server.label(), "headway-1");
    run.until(|status| status.committed == status.inputs).await;
    let name = "SELECT value FROM step_metrics WHERE name = 'train_rollout_logprob_abs_diff'";
    assert_eq!(query::<f64>(&run.record, name), 0.125);
    job.go_on().await;
    run.turns("b", 2).await;
    let pulled = job.until("pulled").await;
    assert_eq!(pulled["metrics"]["headway/version"], 1.0);
    assert_eq!(pulled["samples"][1]["weight_versions"], json!(["1"]));
    job.go_on().await;
    job.until("all").await;
    let status = run.until(|status| status.ledger.steps == 2).await;
    assert_eq!((status.ledger.trained, status.learner.number()), (4, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_killed_anywhere_loses_nothing_and_trains_nothing_twice() {
    let world = World::new();
    let run = world.run().await;
    let mut trained = Vec::new();
    // Of each step, where it is killed first; the killed step of a checkpoint is done.
    for (rollout, at) in ["pulled", "trained", "checkpoint", "weights", "saved"].iter().enumerate()
    {
        let mut job = world.job(&run, 6);
        run.turns(at, 2).await;
        let pulled = job.until("pulled").await;
        assert_eq!(pulled["rollout"], rollout, "{at}");
        let batch = ids(&pulled["samples"]);
        if *at != "pulled" {
            job.go_on().await;
            job.until(at).await;
        }
        job.kill().await;
        trained.extend(batch.clone());
        match *at {
            "pulled" | "trained" => {
                let mut job = world.job(&run, 6);
                let again = job.until("pulled").await;
                assert_eq!(ids(&again["samples"]), batch, "{at}: the same task, at once");
                job.go_on().await;
                job.until("saved").await;
                job.kill().await;
            }
            // Its weights for the engines are not written: slime's tools convert the checkpoint.
            "checkpoint" => {
                let mut job = world.job(&run, 6);
                let ended = tokio::time::timeout(PATIENCE, job.child.wait()).await.unwrap();
                assert!(!ended.unwrap().success(), "it says so, and pulls nothing");
                let place = world.dir.path().join("hf").join(rollout.to_string());
                std::fs::create_dir_all(&place).unwrap();
                std::fs::write(place.join("a.safetensors"), "weights").unwrap();
                let index = r#"{"weight_map": {"a": "a.safetensors"}}"#;
                std::fs::write(place.join("model.safetensors.index.json"), index).unwrap();
            }
            _ => {}
        }
    }
    let mut job = world.job(&run, 6);
    run.turns("last", 2).await;
    let all = job.until("all").await;
    let kept: Vec<u64> = serde_json::from_value(all["trained"].clone()).unwrap();
    assert_eq!(kept[..10], trained, "what the checkpoints hold is what was handed out, in order");
    let mut once = kept.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), 12, "{kept:?}");
    let status = run.until(|status| status.ledger.steps == 6).await;
    assert_eq!((status.ledger.trained, status.ledger.failed_steps), (12, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_both_in_the_middle_of_a_step_gives_the_same_batch() {
    let world = World::new();
    let run = world.run().await;
    run.turns("a", 2).await;
    let mut job = world.job(&run, 1);
    let pulled = job.until("pulled").await;
    run.end().await;
    job.kill().await;
    let run = world.run().await;
    let mut job = world.job(&run, 1);
    let again = job.until("pulled").await;
    assert_eq!(ids(&again["samples"]), ids(&pulled["samples"]));
    job.go_on().await;
    job.until("all").await;
    assert_eq!(run.until(|status| status.ledger.steps == 1).await.ledger.trained, 2);
}
