//! A run that is killed in the middle of sessions goes on with them.
//!
//! The killed run is a process of its own: this test binary, told to run [`serve`] alone.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headway_runtime::driver::Point;
use serde_json::Value;

use crate::all::checks::nothing_is_wrong;
use crate::all::live::{Setup, client, query};
use crate::all::trajectories::{Agent, TRAJECTORIES};

const FOLDER: &str = "HEADWAY_TEST_FOLDER";
/// How often `BeforeCommit` is passed before the process ends; 0: it is killed from outside.
const COMMITS: &str = "HEADWAY_TEST_COMMITS";

pub(super) fn setup() -> Setup {
    let mut setup = Setup::new(TRAJECTORIES);
    setup.checkpoints = true;
    setup.driver.snapshot_every = 5;
    setup
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the tests below as a process of its own"]
async fn serve() {
    let folder = std::env::var(FOLDER).unwrap();
    let last: u64 = std::env::var(COMMITS).unwrap().parse().unwrap();
    let passed = AtomicU64::new(0);
    let mut setup = setup();
    setup.driver.probe = Some(Arc::new(move |here| {
        if here == Point::BeforeCommit && passed.fetch_add(1, Ordering::SeqCst) + 1 == last {
            std::process::abort();
        }
    }));
    let live = setup.start(Path::new(&folder)).await;
    println!("serves at {}", live.url);
    std::future::pending::<()>().await;
}

pub(super) fn start(folder: &Path, commits: u64) -> (Child, Option<String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "all::trajectories_killed::serve", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .env(COMMITS, commits.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("serves at ")?.1.to_owned()));
    (child, url)
}

/// Asks one turn; its answer, unless the process is gone.
pub(super) async fn ask(url: &str, body: &Value) -> Option<Value> {
    let request = client().post(format!("{url}/v1/chat/completions")).json(body);
    let response = request.send().await.ok()?;
    if response.status() != 200 {
        return None;
    }
    response.json().await.ok()
}

/// The number of the request that was answered.
fn request(answer: &Value) -> i64 {
    answer["id"].as_str().unwrap().strip_prefix("chatcmpl-").unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_after_a_kill_between_two_turns() {
    let dir = tempfile::tempdir().unwrap();
    let (mut child, url) = start(dir.path(), 0);
    let url = url.unwrap();
    let mut agent = Agent::new("a");
    for text in ["one", "two"] {
        let body = agent.asks(text, false);
        let answer = ask(&url, &body).await.unwrap();
        agent.hears(&answer);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let live = setup().start(dir.path()).await;
    let answer = live.answer(&agent.asks("three", true)).await;
    assert_eq!(answer["sample_id"], 0);
    live.until(|status| status.ledger.trained == 1).await;
    let batch = live.trainer.batches().remove(0);
    assert_eq!(batch.len(), 1);
    let generated = batch[0].loss_mask.iter().filter(|&&mask| mask).count();
    assert_eq!(generated, "one|two|three|".len());
    let (ended, record) = live.end().await;
    ended.unwrap();
    let states: String = query(&record, "SELECT group_concat(next_state) FROM turns");
    assert_eq!(states, "two,three");
    nothing_is_wrong(&record);
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_that_were_acknowledged_are_recorded_once_wherever_the_run_is_killed() {
    for commits in [3, 4, 5, 6, 8] {
        let dir = tempfile::tempdir().unwrap();
        let (mut child, url) = start(dir.path(), commits);
        let mut acknowledged = Vec::new();
        let mut agents = ["a", "b", "c"].map(Agent::new);
        for turn in 0..9 {
            let agent = &mut agents[turn % 3];
            let Some(url) = &url else { break };
            let body = agent.asks("hello", turn >= 6);
            let Some(answer) = ask(url, &body).await else { break };
            agent.hears(&answer);
            if answer["sample_id"] != Value::Null {
                acknowledged.push(request(&answer));
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let live = setup().start(dir.path()).await;
        let mut again = Agent::new("again");
        let answer = live.answer(&again.asks("hello", true)).await;
        acknowledged.push(request(&answer));
        live.until(|status| status.ledger.trained > 0 && !status.gauges.training).await;
        let (ended, record) = live.end().await;
        ended.unwrap();
        for request in acknowledged {
            let sql = format!("SELECT count(*) FROM turns WHERE request = {request}");
            assert_eq!(query::<i64>(&record, &sql), 1, "request {request}, killed at {commits}");
        }
        nothing_is_wrong(&record);
    }
}
