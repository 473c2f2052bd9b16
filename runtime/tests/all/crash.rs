//! Killed at any place, a run goes on: what was acknowledged is in the record exactly once.
//!
//! The killed run is a process of its own: this test binary, told to run [`serve`] alone.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headway_runtime::driver::Point;
use headway_runtime::store::replay;
use reqwest::StatusCode;
use serde_json::Value;

use crate::all::checks::nothing_is_wrong;
use crate::all::live::{SMALL, Setup, client, query, turn};

const FOLDER: &str = "HEADWAY_TEST_FOLDER";
const PLACE: &str = "HEADWAY_TEST_CRASH";

/// How a process ends that aborts.
const SIGABRT: i32 = 6;

const POINTS: [Point; 8] = [
    Point::BeforeAppend,
    Point::AfterAppend,
    Point::BeforeCommit,
    Point::AfterCommit,
    Point::BeforeReply,
    Point::AfterReply,
    Point::BeforeLease,
    Point::AfterLease,
];

/// Serves until it is killed, or kills itself when it passes a point for the n-th time.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the tests below as a process of its own"]
async fn serve() {
    let folder = std::env::var(FOLDER).unwrap();
    let place = std::env::var(PLACE).unwrap();
    let numbers: Vec<u64> = place.split(' ').map(|number| number.parse().unwrap()).collect();
    let (point, times) = (POINTS.get(numbers[0] as usize).copied(), numbers[1]);
    let passed = AtomicU64::new(0);
    let mut setup = Setup::new(SMALL);
    setup.checkpoints = true;
    setup.driver.snapshot_every = 20;
    setup.driver.probe = Some(Arc::new(move |here| {
        if Some(here) == point && passed.fetch_add(1, Ordering::SeqCst) + 1 == times {
            std::process::abort();
        }
    }));
    let live = setup.start(Path::new(&folder)).await;
    println!("serves at {}", live.url);
    std::future::pending::<()>().await;
}

/// Starts the process; its URL once it serves, or `None` if it was killed before.
fn start(folder: &Path, place: &str) -> (Child, Option<String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "all::crash::serve", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .env(PLACE, place)
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

/// Asks turn after turn until the process is gone or so many are answered; the samples that were
/// acknowledged.
async fn talk(url: &str, name: &str, turns: usize) -> Vec<u64> {
    let client = client();
    let mut acknowledged = Vec::new();
    for number in 0..turns {
        let body = turn(&format!("{name}-{number}"), "hello");
        let request = client.post(format!("{url}/v1/chat/completions")).json(&body);
        let Ok(response) = request.send().await else { break };
        if response.status() == StatusCode::OK
            && let Ok(body) = response.json::<Value>().await
        {
            acknowledged.push(body["sample_id"].as_u64().unwrap());
        }
    }
    acknowledged
}

/// What must hold of every record, however often its run was killed.
fn check(record: &Path, acknowledged: &[u64]) {
    let unique: BTreeSet<u64> = acknowledged.iter().copied().collect();
    assert_eq!(unique.len(), acknowledged.len(), "no sample is acknowledged twice");
    for id in &unique {
        let found: i64 = query(
            record,
            &format!("SELECT count(*) FROM samples WHERE id = {id} AND tokens IS NOT NULL"),
        );
        assert_eq!(found, 1, "sample {id} was acknowledged");
    }
    let twice: i64 = query(
        record,
        "SELECT count(*) FROM (SELECT value FROM steps, json_each(samples) WHERE ok = 1
         GROUP BY value HAVING count(*) > 1)",
    );
    assert_eq!(twice, 0, "no sample is trained twice");
    let backwards: i64 = query(
        record,
        "SELECT count(*) FROM (SELECT learner - lag(learner) OVER (ORDER BY id) AS d FROM steps)
         WHERE d < 0",
    );
    assert_eq!(backwards, 0, "versions never go backwards");
    let unjudged: i64 = query(record, "SELECT count(*) FROM votes WHERE ended IS NULL");
    assert_eq!(unjudged, 0, "every vote has ended");
    replay(record).unwrap();
    nothing_is_wrong(record);
}

/// Restarts the run in this process, lets it train, and checks its record.
async fn revive(folder: &Path, acknowledged: &[u64]) {
    let mut setup = Setup::new(SMALL);
    setup.checkpoints = true;
    let live = setup.start(folder).await;
    let steps = live.driver.status().ledger.steps;
    // Until the newest weights are loaded, the gate can have no place.
    for round in 0..1000 {
        talk(&live.url, &format!("after-{round}"), 4).await;
        if live.driver.status().ledger.steps > steps {
            break;
        }
    }
    live.until(|status| status.ledger.steps > steps).await;
    live.until(|status| status.gauges.votes == 0).await;
    let (ended, record) = live.end().await;
    ended.unwrap();
    check(&record, acknowledged);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_killed_at_a_named_point_loses_nothing_that_was_acknowledged() {
    for (index, point) in POINTS.iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let mut acknowledged = Vec::new();
        for times in [3, 4] {
            let (mut child, url) = start(dir.path(), &format!("{index} {times}"));
            if let Some(url) = url {
                acknowledged.extend(talk(&url, &format!("{point:?}-{times}"), 100).await);
            }
            // Where it still lives, it is ended in another way than by its own hand.
            child.kill().unwrap();
            let aborted = child.wait().unwrap().signal() == Some(SIGABRT);
            assert!(aborted, "{point:?} was not passed {times} times");
        }
        revive(dir.path(), &acknowledged).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_killed_at_any_instant_loses_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..10 {
        let (mut child, url) = start(dir.path(), "99 0");
        let url = url.unwrap();
        let talks: Vec<_> = (0..4)
            .map(|client| {
                let (url, name) = (url.clone(), format!("{round}-{client}"));
                tokio::spawn(async move { talk(&url, &name, 1000).await })
            })
            .collect();
        // Some turns in: a different place each time.
        let few = talk(&url, &format!("{round}"), 3 + 2 * round).await;
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(few);
        for talk in talks {
            acknowledged.extend(talk.await.unwrap());
        }
    }
    revive(dir.path(), &acknowledged).await;
}
