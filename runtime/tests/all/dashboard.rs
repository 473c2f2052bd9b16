//! The page that shows a run.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use headway_runtime::gateway::Dashboard;
use headway_runtime::secret::Secret;
use headway_runtime::shared::config::OnDeviation;
use headway_runtime::shared::input::Operator;
use headway_runtime::shared::time::Span;
use serde_json::Value;

use crate::all::guard::guard;
use crate::all::live::{Live, SMALL, Setup, config, turn};
use crate::all::packages;
use crate::all::process::{self, FOLDER};

const TOKEN: &str = "an-operators-token";
/// The variable that says at which port the run of a process is to serve.
const PORT: &str = "HEADWAY_TEST_PORT";

fn setup(dir: &Path) -> Setup {
    let mut setup = Setup::new(SMALL);
    setup.gateway.admin_token = Secret::new(TOKEN);
    setup.gateway.dashboard = Some(Dashboard::new(dir.join("run.db")));
    setup
}

async fn events(live: &Live, token: &str) -> reqwest::Response {
    let request = live.client.get(format!("{}/dashboard/events", live.url));
    request.bearer_auth(token).send().await.unwrap()
}

/// The next event of a stream: its name and its data.
async fn next(stream: &mut reqwest::Response, rest: &mut String) -> Option<(String, Value)> {
    loop {
        if let Some((event, more)) = rest.split_once("\n\n") {
            let (name, data) = event.strip_prefix("event: ")?.split_once("\ndata: ")?;
            let found = (name.to_owned(), serde_json::from_str(data).unwrap());
            *rest = more.to_owned();
            return Some(found);
        }
        let piece = tokio::time::timeout(Duration::from_secs(20), stream.chunk()).await.unwrap();
        rest.push_str(str::from_utf8(&piece.ok()??).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_there_only_where_it_is_wished_for_and_there_is_a_token() {
    for (wished, token, status) in [(false, true, 404), (true, false, 404), (true, true, 200)] {
        let dir = tempfile::tempdir().unwrap();
        let mut setup = setup(dir.path());
        setup.gateway.dashboard = setup.gateway.dashboard.filter(|_| wished);
        setup.gateway.admin_token = setup.gateway.admin_token.filter(|_| token);
        let live = setup.start(dir.path()).await;
        for path in ["/dashboard", "/dashboard/script.js", "/dashboard/style.css"] {
            assert_eq!(live.get(path).await.status(), status, "{path}");
        }
        if status == 200 {
            let page = live.get("/dashboard").await;
            let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
            assert!(
                policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
                "{policy}"
            );
            assert_eq!(events(&live, "another").await.status(), 401);
            assert_eq!(live.get("/dashboard/events").await.status(), 401);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_the_steps_of_the_record_and_ends_with_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let live = setup(dir.path()).start(dir.path()).await;
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.steps == 1 && status.committed == status.inputs).await;
    let mut stream = events(&live, TOKEN).await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut rest = String::new();
    let (name, history) = next(&mut stream, &mut rest).await.unwrap();
    let step = &history["steps"][0];
    assert_eq!(
        (name.as_str(), &step["samples"], &step["reward_mean"]),
        ("history", &2.into(), &1.0.into())
    );
    let (name, snapshot) = next(&mut stream, &mut rest).await.unwrap();
    assert_eq!((name.as_str(), &snapshot["steps"]), ("snapshot", &serde_json::json!([])));
    assert_eq!(snapshot["staleness"], serde_json::json!([[0, 2]]));
    assert_eq!(snapshot["replicas"][0]["up"], true);
    for session in ["c", "d"] {
        live.answer(&turn(session, "hello")).await;
    }
    let new = loop {
        let (_, snapshot) = next(&mut stream, &mut rest).await.unwrap();
        if let Some(step) = snapshot["steps"].get(0) {
            break step["step"].clone();
        }
    };
    assert_eq!(new, 1, "each step once");
    // The run ends in order although somebody looks, and so does the gateway.
    let served = live.served;
    live.driver.shut_down(Span::from_secs(10)).await;
    live.run.await.unwrap().unwrap();
    let closed = tokio::spawn(served.close(Duration::from_secs(60)));
    let mut last = String::new();
    while let Some((name, _)) = next(&mut stream, &mut rest).await {
        last = name;
    }
    assert_eq!(last, "ended");
    tokio::time::timeout(Duration::from_secs(20), closed).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_opened_late_is_told_what_was_refused_before() {
    let dir = tempfile::tempdir().unwrap();
    let text = SMALL.replace("max_head_off_policyness = 4", "max_head_off_policyness = 0");
    let live = Setup { config: config(&text), ..setup(dir.path()) }.start(dir.path()).await;
    live.trainer.hold(true);
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    for session in ["c", "d", "e"] {
        assert_eq!(live.ask(&turn(session, "hello")).await.status(), 429);
    }
    live.driver.operate(Operator::Pause).await.unwrap();
    assert_eq!(live.ask(&turn("f", "hello")).await.status(), 503);
    // Two pages, the second later: both are told the same.
    for _ in 0..2 {
        let mut stream = events(&live, TOKEN).await;
        let mut rest = String::new();
        let snapshot = loop {
            let (name, event) = next(&mut stream, &mut rest).await.unwrap();
            if name == "snapshot" {
                break event;
            }
        };
        let bars = snapshot["refusals"]["bars"].as_array().unwrap();
        let sum = |code: usize| bars.iter().filter_map(|bar| bar[code].as_u64()).sum::<u64>();
        assert_eq!((sum(1), sum(2)), (3, 1), "{bars:?}");
        assert_eq!(snapshot["refused"], serde_json::json!({"429": 3, "503": 1}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn so_many_may_look_at_once_and_who_leaves_makes_room() {
    let dir = tempfile::tempdir().unwrap();
    let live = setup(dir.path()).start(dir.path()).await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        let stream = events(&live, TOKEN).await;
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }
    let refused = events(&live, TOKEN).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
    drop(streams);
    while events(&live, TOKEN).await.status() != 200 {}
}

/// What Grafana would ask for is there.
#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_for_grafana_asks_for_metrics_that_a_run_has() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/grafana/headway.json");
    let text = std::fs::read_to_string(place).unwrap();
    let board: Value = serde_json::from_str(&text).unwrap();
    let mut wanted: Vec<&str> = text
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("headway_"))
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    assert!(wanted.len() > 30 && board["panels"].as_array().unwrap().len() > 15, "{wanted:?}");
    let dir = tempfile::tempdir().unwrap();
    let mut setup = setup(dir.path());
    setup.driver.guard = Some(guard(OnDeviation::Log));
    let live = setup.start(dir.path()).await;
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.publications == 1 && status.guard.is_some()).await;
    let page = live.get("/metrics").await.text().await.unwrap();
    for metric in wanted {
        let has =
            |line: &str| line.strip_prefix(metric).is_some_and(|rest| rest.starts_with([' ', '{']));
        assert!(page.lines().any(has), "{metric} is not in\n{page}");
    }
}

/// Not a test: the run of [`in_a_browser`], in a process of its own that can be killed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs in a process of its own"]
async fn a_run_to_look_at() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = PathBuf::from(folder);
    let mut setup = setup(&folder);
    setup.port = std::env::var(PORT).unwrap().parse().unwrap();
    let live = setup.start(&folder).await;
    println!("serves at {}", live.url);
    std::future::pending::<()>().await;
}

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The browser of this machine; `None`: there is none, and need not be.
fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = names.into_iter().find_map(|name| {
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|place| place.exists())
    });
    if found.is_none() {
        let said = "there is no Chromium: run scripts/test_browser.sh";
        assert!(std::env::var_os("HEADWAY_TEST_ALL").is_none(), "{said}");
        eprintln!("SKIPPED: {said}");
    }
    found
}

#[test]
fn in_a_browser() {
    let Some(packages) = packages::installed("playwright", "Playwright") else { return };
    let Some(browser) = browser() else { return };
    let dir = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = port.to_string();
    let start = || {
        let variables = [(FOLDER, dir.path().as_os_str()), (PORT, OsStr::new(&port))];
        let (child, url) = process::start("all::dashboard::a_run_to_look_at", &variables);
        (Ends(child), url.expect("it serves"))
    };
    let (run, url) = start();
    let mut run = Some(run);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/dashboard.py");
    let mut command = Command::new("python3");
    command.arg("-B").arg(script).arg(url).arg(TOKEN).arg(browser).env("PYTHONPATH", packages);
    let mut page = Ends(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let (mut orders, mut answers) = (page.0.stdout.take().unwrap(), page.0.stdin.take().unwrap());
    for order in BufReader::new(&mut orders).lines().map_while(Result::ok) {
        match order.as_str() {
            "kill" => drop(run.take()),
            "start" => run = Some(start().0),
            other => panic!("{other}"),
        }
        answers.write_all(b"done\n").unwrap();
    }
    assert!(page.0.wait().unwrap().success(), "see what it has written");
}
