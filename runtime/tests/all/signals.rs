//! SIGTERM, SIGSTOP and the clocks, with real processes.

use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use headway_runtime::shared::time::Span;
use headway_runtime::signals::Signals;
use headway_runtime::store::replay;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::all::live::{SMALL, Setup, client, query, turn};
use crate::all::process::{FOLDER, signal, start};

const SERVE: &str = "all::signals::serve";
const WITHIN: &str = "HEADWAY_TEST_WITHIN_MS";

/// No turn runs into its own time limit.
fn setup() -> Setup {
    let serving = "[policy_serving]\n generation_timeout_sec = 100";
    let mut setup = Setup::new(&SMALL.replace("[policy_serving]", serving));
    setup.checkpoints = true;
    setup
}

/// Serves until it is told to end; the exit code is 0 if the run ended well.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the tests below as a process of its own"]
async fn serve() {
    let folder = std::env::var(FOLDER).unwrap();
    let within: u64 = std::env::var(WITHIN).unwrap().parse().unwrap();
    let mut signals = Signals::catch().unwrap();
    let mut setup = setup();
    if within == 0 {
        let limit = "[policy_serving]\n generation_timeout_sec = 0.2\n abort_timeout_sec = 0.2";
        setup = Setup::new(&SMALL.replace("[policy_serving]", limit));
    }
    let live = setup.start(Path::new(&folder)).await;
    println!("serves at {}", live.url);
    let within = Span::from_nanos(within * 1_000_000);
    signals.until_told(&live.driver, |_| false).await;
    signals.end(live.driver.clone(), live.run, within).await.unwrap().unwrap();
    live.served.close(Duration::from_millis(200)).await;
}

fn begin(dir: &tempfile::TempDir, within: u64) -> (Child, String) {
    let within = within.to_string();
    let folder = (FOLDER, dir.path().as_os_str());
    let (child, url) = start(SERVE, &[folder, (WITHIN, within.as_ref())]);
    (child, url.unwrap())
}

async fn ask(url: &str, session: &str, text: &str) -> reqwest::Response {
    ask_as("main", url, session, text).await
}

async fn ask_as(kind: &str, url: &str, session: &str, text: &str) -> reqwest::Response {
    let mut body = turn(session, text);
    body["turn_type"] = kind.into();
    client().post(format!("{url}/v1/chat/completions")).json(&body).send().await.unwrap()
}

/// Waits for the end of a process on a thread that may wait.
async fn ended(mut child: Child) -> ExitStatus {
    tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap()
}

/// The record of a run that ended in order: its last snapshot is of its last input, its checkpoint
/// of its last version, and nothing is on its way but what waits.
fn is_clean(dir: &tempfile::TempDir) {
    let record = dir.path().join("run.db");
    let inputs: i64 = query(&record, "SELECT count(*) FROM inputs");
    let last: i64 = query(&record, "SELECT max(inputs) FROM snapshots");
    assert_eq!(last, inputs);
    let unanswered: i64 =
        query(&record, "SELECT count(*) FROM samples WHERE tokens IS NULL AND fate IS NULL");
    assert_eq!(unanswered, 0);
    let version: i64 = query(&record, "SELECT max(learner) + 1 FROM steps WHERE ok = 1");
    let checkpoint = std::fs::read_to_string(dir.path().join("checkpoint")).unwrap();
    assert_eq!(checkpoint.split(' ').next().unwrap(), version.to_string());
    replay(&record).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_told_to_end_answers_what_ends_in_time_and_leaves_a_clean_record() {
    let dir = tempfile::tempdir().unwrap();
    let (child, url) = begin(&dir, 300);
    for session in ["a", "b"] {
        assert_eq!(ask(&url, session, "hello").await.status(), 200);
    }
    // One turn never ends; one client never finishes its request.
    let never = {
        let url = url.clone();
        tokio::spawn(async move { ask(&url, "c", "hang").await })
    };
    let mut half = TcpStream::connect(url.trim_start_matches("http://")).await.unwrap();
    half.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nhost:").await.unwrap();
    until(&url, "waits_for", "policy serving blocks: 1 samples are being generated").await;
    signal(&child, "TERM");
    assert_eq!(never.await.unwrap().status(), 500, "aborted, and its client knows");
    assert_eq!(ended(child).await.code(), Some(0));
    is_clean(&dir);
    drop(half);
    let fate: String =
        query(&dir.path().join("run.db"), "SELECT fate FROM samples WHERE response IS NULL");
    assert_eq!(fate, "generation_failed");
    // And it goes on.
    let (child, url) = begin(&dir, 300);
    assert_eq!(ask(&url, "d", "hello").await.status(), 200);
    signal(&child, "INT");
    assert_eq!(ended(child).await.code(), Some(0));
    is_clean(&dir);
}

/// Waits until `/readyz` says so.
async fn until(url: &str, key: &str, wished: &str) {
    for _ in 0..10_000 {
        let ready: Value =
            client().get(format!("{url}/readyz")).send().await.unwrap().json().await.unwrap();
        if ready[key] == wished {
            return;
        }
    }
    panic!("it never says {wished}");
}

#[tokio::test(flavor = "multi_thread")]
async fn told_a_second_time_it_ends_at_once_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let (child, url) = begin(&dir, 600_000);
    for session in ["a", "b"] {
        assert_eq!(ask(&url, session, "hello").await.status(), 200);
    }
    let never = {
        let url = url.clone();
        tokio::spawn(async move { ask(&url, "c", "hang").await })
    };
    until(&url, "waits_for", "policy serving blocks: 1 samples are being generated").await;
    signal(&child, "TERM");
    until(&url, "reason", "the run is ending").await;
    assert_eq!(ask(&url, "d", "hello").await.status(), 503, "it admits nothing");
    signal(&child, "TERM");
    assert_eq!(never.await.unwrap().status(), 500);
    assert_eq!(ended(child).await.code(), Some(0));
    is_clean(&dir);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_pause_longer_than_every_limit_what_is_due_times_out_and_the_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (mut child, url) = begin(&dir, 0);
    let never: Vec<_> = (0..50)
        .map(|number| {
            let url = url.clone();
            tokio::spawn(async move { ask_as("side", &url, &format!("c{number}"), "hang").await })
        })
        .collect();
    signal(&child, "STOP");
    // The pause is what is tested; a longer one would only show more of it.
    tokio::time::sleep(Duration::from_millis(600)).await;
    signal(&child, "CONT");
    for answer in never {
        assert_eq!(answer.await.unwrap().status(), 500);
    }
    for session in ["a", "b"] {
        assert_eq!(ask(&url, session, "hello").await.status(), 200);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let record = dir.path().join("run.db");
    let ticks: i64 = query(&record, "SELECT count(*) FROM inputs WHERE kind = 'tick'");
    assert!(ticks <= 150, "{ticks} ticks: no more than there were time limits");
    replay(&record).unwrap();
}

static WALL: AtomicI64 = AtomicI64::new(1_700_000_000_000);

#[tokio::test(flavor = "multi_thread")]
async fn a_wall_clock_that_jumps_changes_nothing_but_its_column() {
    const YEAR: i64 = 365 * 86_400_000;
    let start = || {
        let mut setup = setup();
        setup.driver.wall = || WALL.load(Ordering::SeqCst);
        setup
    };
    let dir = tempfile::tempdir().unwrap();
    let mut record = None;
    for (process, jumps) in [[0, -YEAR], [10 * YEAR, -30 * YEAR]].iter().enumerate() {
        let live = start().start(dir.path()).await;
        for (turns, jump) in jumps.iter().enumerate() {
            WALL.fetch_add(*jump, Ordering::SeqCst);
            live.answer(&turn(&format!("{process}-{turns}"), "hello")).await;
        }
        let steps = process as u64 + 1;
        live.until(|status| status.ledger.steps == steps).await;
        WALL.fetch_sub(YEAR, Ordering::SeqCst);
        let (ended, path) = live.end().await;
        ended.unwrap();
        record = Some(path);
    }
    let record = record.unwrap();
    let back = |column: &str| -> i64 {
        let sql = format!(
            "SELECT count(*) FROM (SELECT {column} - lag({column}) OVER (ORDER BY seq) AS d
             FROM inputs) WHERE d < 0"
        );
        query(&record, &sql)
    };
    assert_eq!(back("time_ns"), 0, "the run's time never goes back");
    assert!(back("wall_ms") >= 2);
    assert_eq!(replay(&record).unwrap().decisions.inputs, {
        let inputs: i64 = query(&record, "SELECT count(*) FROM inputs");
        inputs.cast_unsigned()
    });
}
