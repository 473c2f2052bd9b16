//! `headway run` as a process of its own with the files that users have, unchanged: engine `sglang`
//! and engine `megatron`, each as a server and a client that speak the protocol.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::all::checkpoint;
use crate::all::sglang_server::SglangServer;
use crate::all::support::{headway, live, run, stderr, succeed};

const KEY: &str = "the-key-that-is-never-shown";
/// The admin token of every run here.
pub(crate) const OPERATOR: &str = "the-operator-is-never-shown-either";
/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with the users' files and the directory of the served model.
pub(crate) fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["config.toml", "settings.json"] {
        fs::copy(live(name), dir.path().join(name)).unwrap();
    }
    fs::create_dir(dir.path().join("model")).unwrap();
    checkpoint::write(&dir.path().join("model"));
    dir
}

const FILES: [&str; 5] = ["run", "--config", "config.toml", "--settings", "settings.json"];

/// Ends the process with the test.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the run; the address that it serves at.
pub(crate) fn start(
    dir: &Path,
    engine: &str,
) -> (Process, String, BufReader<std::process::ChildStderr>) {
    let child = headway(dir)
        .args(FILES)
        .args(["--set", "policy_serving.port=0"])
        .args(["--set", &format!("api.base_url={engine}/v1")])
        .env("JUDGE_API_KEY", KEY)
        .env("HEADWAY_ADMIN_TOKEN", OPERATOR)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut process = Process(child.unwrap());
    let mut lines = BufReader::new(process.0.stderr.take().unwrap());
    let mut said = String::new();
    loop {
        let from = said.len();
        assert!(lines.read_line(&mut said).unwrap() > 0, "it ended: {said}");
        if let Some((_, rest)) = said[from..].split_once("http://0.0.0.0:") {
            let port = rest.split('/').next().unwrap();
            return (process, format!("http://127.0.0.1:{port}"), lines);
        }
    }
}

/// One turn after another of one session, as an agent asks that tries again when it is refused.
async fn talk(client: &Client, url: &str, turns: usize) {
    for number in 0..turns {
        let body = json!({
            "messages": [{"role": "user", "content": format!("turn {number}")}],
            "session_id": "agent", "turn_type": "main",
        });
        loop {
            let request = client.post(format!("{url}/v1/chat/completions")).json(&body);
            let response = request.send().await.unwrap();
            match response.status() {
                StatusCode::OK => break,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                other => panic!("{other}: {}", response.text().await.unwrap()),
            }
        }
    }
}

/// Trains so many steps, and writes each version's weights.
async fn train(client: &Client, url: &str, dir: &Path, steps: u64) -> Vec<Value> {
    let call = async |path: &str, body: Value| {
        let request = client.post(format!("{url}/trainer/{path}")).bearer_auth(KEY);
        request.json(&body).send().await.unwrap()
    };
    let mut tasks = Vec::new();
    while (tasks.len() as u64) < steps {
        let pull = json!({"trainer": "megatron", "version": tasks.len(), "wait_sec": 30});
        let response = call("pull", pull).await;
        if response.status() == StatusCode::NO_CONTENT {
            continue;
        }
        let task: Value = response.json().await.unwrap();
        assert_eq!(task["task"], "train", "{task}");
        let weights = dir.join(format!("weights-{}", tasks.len() + 1));
        fs::create_dir(&weights).unwrap();
        let report = json!({
            "version": task["version"], "batch": task["batch"], "lease": task["lease"],
            "metrics": {"train_rollout_logprob_abs_diff": 0.01}, "weights": weights,
        });
        let said: Value = call("report", report).await.json().await.unwrap();
        assert_eq!(said["counted"], true, "{said}");
        tasks.push(task);
    }
    tasks
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_files_serve_judge_and_train_and_the_record_replays() {
    let dir = folder();
    let answer = [b"all right".map(u32::from).to_vec(), vec![checkpoint::END]].concat();
    let server = SglangServer::start(&dir.path().join("model"), move |_| answer.clone());
    let engine = server.url();
    let (mut process, url, mut rest) = start(dir.path(), &engine);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::new();
    let work = async {
        // Each turn is judged when the next one shows what followed it.
        tokio::join!(talk(&client, &url, 33), train(&client, &url, dir.path(), 2)).1
    };
    let tasks = tokio::time::timeout(PATIENCE, work).await.unwrap();
    let size = tasks[0]["samples"].as_array().unwrap().len();
    assert_eq!(size, 16);
    let sample = &tasks[0]["samples"][0];
    assert_eq!(sample["reward"], 1.0);
    assert_eq!(sample["tokens"][0], checkpoint::START);

    let pid = process.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let ended = tokio::task::spawn_blocking(move || {
        let mut said = String::new();
        rest.read_to_string(&mut said).unwrap();
        (process.0.wait().unwrap(), said)
    });
    let (status, said) = tokio::time::timeout(PATIENCE, ended).await.unwrap().unwrap();
    assert!(status.success(), "{said}");
    assert!(said.contains("2 steps, 32 samples trained"), "{said}");
    assert!(!said.contains(KEY) && !said.contains(OPERATOR));
    let replayed = succeed(dir.path(), &["replay", "run.db"]);
    assert!(replayed.contains("inputs"), "{replayed}");
}

#[test]
fn an_engine_that_there_is_not_is_named_with_those_that_there_are() {
    let dir = folder();
    let with = |set: &str| {
        let output = run(dir.path(), &[&FILES[..], &["--set", set]].concat());
        assert_eq!(output.status.code(), Some(2));
        stderr(&output)
    };
    let said = with("policy_serving.engine=tgi");
    assert!(said.contains("--set:1:23: there is no engine \"tgi\""), "{said}");
    assert!(said.contains("\"sglang\", \"vllm\""), "{said}");
    let said = with("policy_serving.engine=vlm");
    assert!(said.contains("did you mean \"vllm\"?"), "{said}");
    let said = with("policy_training.engine=verl");
    assert!(said.contains("\"verl\"") && said.contains("\"megatron\""), "{said}");
    if !cfg!(feature = "torch") {
        let said = with("policy_serving.engine=tch");
        assert!(said.contains("--features torch"), "{said}");
    }
    assert!(!dir.path().join("run.db").exists(), "nothing is begun");
}

#[test]
fn what_is_missing_at_the_start_is_named() {
    let dir = folder();
    let unset = headway(dir.path()).args(FILES).env_remove("JUDGE_API_KEY").output().unwrap();
    assert_eq!(unset.status.code(), Some(2));
    assert!(stderr(&unset).contains("JUDGE_API_KEY"), "{}", stderr(&unset));
    let nobody = ["--set", "api.base_url=http://127.0.0.1:9", "--set", "policy_serving.port=0"];
    let gone =
        headway(dir.path()).args(FILES).args(nobody).env("JUDGE_API_KEY", KEY).output().unwrap();
    assert_eq!(gone.status.code(), Some(2));
    let said = stderr(&gone);
    assert!(said.contains("start the engine first") && said.contains("engine_urls"), "{said}");
    assert!(!dir.path().join("run.db").exists(), "nothing is begun");
}
