//! Killed at any place, a run goes on: what was acknowledged is in the record exactly once.
//!
//! The killed run is a process of its own: this test binary, told to run [`serve`] alone.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headway_runtime::driver::Point;
use headway_runtime::store::{Durability, replay};
use reqwest::StatusCode;
use serde_json::Value;

use crate::all::checks::nothing_is_wrong;
use crate::all::live::{SMALL, Setup, client, query, turn};
use crate::all::process::{FOLDER, start};

const SERVE: &str = "all::crash::serve";
const PLACE: &str = "HEADWAY_TEST_CRASH";
/// Set: commits survive the process, not the machine.
const PROCESS: &str = "HEADWAY_TEST_DURABILITY_PROCESS";

/// How a process ends that aborts.
const SIGABRT: i32 = 6;

const POINTS: [Point; 11] = [
    Point::BeforeAppend,
    Point::AfterAppend,
    Point::BeforeCommit,
    Point::AfterCommit,
    Point::BeforeReply,
    Point::AfterReply,
    Point::BeforeLease,
    Point::AfterLease,
    Point::BeforeCheckpoint,
    Point::BeforeRename,
    Point::AfterRename,
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
    if std::env::var_os(PROCESS).is_some() {
        setup.driver.durability = Durability::Process;
    }
    setup.driver.probe = Some(Arc::new(move |here| {
        if Some(here) == point && passed.fetch_add(1, Ordering::SeqCst) + 1 == times {
            std::process::abort();
        }
    }));
    let live = setup.start(Path::new(&folder)).await;
    println!("serves at {}", live.url);
    std::future::pending::<()>().await;
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
    let asking = async {
        for round in 0.. {
            talk(&live.url, &format!("after-{round}"), 4).await;
        }
    };
    tokio::select! {
        _ = live.until(|status| status.ledger.steps > steps) => {}
        () = asking => {}
    }
    live.until(|status| status.gauges.votes == 0).await;
    let driver = live.driver.clone();
    let (ended, record) = live.end().await;
    ended.unwrap();
    let ledger = driver.status().ledger;
    let discarded = ledger.discarded.iter().sum::<u64>();
    let accounted = ledger.trained + discarded + ledger.outstanding() + ledger.parked();
    assert_eq!(ledger.admitted, accounted, "the ledger balances");
    let count = |what: &str| -> i64 {
        query(&record, &format!("SELECT count(*) FROM samples WHERE {what}"))
    };
    assert_eq!(count("true"), ledger.admitted.cast_signed(), "as the record does");
    assert_eq!(count("fate = 'trained'"), ledger.trained.cast_signed());
    check(&record, acknowledged);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_killed_at_a_named_point_loses_nothing_that_was_acknowledged() {
    for (index, point) in POINTS.iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let mut acknowledged = Vec::new();
        for times in [3, 4] {
            let place = format!("{index} {times}");
            let (mut child, url) =
                start(SERVE, &[(FOLDER, dir.path().as_os_str()), (PLACE, place.as_ref())]);
            if let Some(url) = url {
                // Until it is gone: how many turns that takes depends on the machine.
                let name = format!("{point:?}-{times}");
                acknowledged.extend(talk(&url, &name, 10_000).await);
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
    let mut place = 1;
    for round in 0..20 {
        // Every other time with commits that do not wait for the disk.
        let mut how = vec![(FOLDER, dir.path().as_os_str()), (PLACE, "99 0".as_ref())];
        how.extend((round % 2 == 1).then_some((PROCESS, "1".as_ref())));
        let (mut child, url) = start(SERVE, &how);
        let url = url.unwrap();
        let talks: Vec<_> = (0..4)
            .map(|client| {
                let (url, name) = (url.clone(), format!("{round}-{client}"));
                tokio::spawn(async move { talk(&url, &name, 1000).await })
            })
            .collect();
        // Some turns in, as many as chance says: what the process does just then, nobody knows.
        place = place * 5 % 37;
        let few = talk(&url, &format!("{round}"), place).await;
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(few);
        for talk in talks {
            acknowledged.extend(talk.await.unwrap());
        }
    }
    revive(dir.path(), &acknowledged).await;
}
