//! A run that is handed other configurations over HTTP, under load, at many instants.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headway_runtime::secret::Secret;
use headway_runtime::store::replay;
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::all::checks::nothing_is_wrong;
use crate::all::live::{Live, Setup, query, turn};

const MODES: [&str; 5] = ["pause_drain", "pause_abort", "pause_keep", "in_flight", "rolling"];

fn text(mode: &str, eta: u32, queue: u32) -> String {
    format!(
        "[policy_serving]
        sync_mode = \"{mode}\"
        [reward_judging]
        judge_needs = \"turn\"
        [policy_training]
        batch_size = 2
        bound = \"strict\"
        max_head_off_policyness = {eta}
        [queue]
        max_size = {queue}\n"
    )
}

async fn start(dir: &tempfile::TempDir, text: &str) -> Live {
    let mut setup = Setup::new(text);
    setup.gateway.admin_token = Secret::new("token");
    setup.replicas = 2;
    setup.start(dir.path()).await
}

async fn post(live: &Live, query: &str, body: &str) -> Response {
    let request = live.client.post(format!("{}/admin/config{query}", live.url));
    request.bearer_auth("token").body(body.to_owned()).send().await.unwrap()
}

async fn in_force(live: &Live) -> String {
    let request = live.client.get(format!("{}/admin/config", live.url)).bearer_auth("token");
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/toml");
    response.text().await.unwrap()
}

async fn refused(live: &Live, query: &str, body: &str) -> String {
    let response = post(live, query, body).await;
    assert_eq!(response.status(), 400);
    let error: Value = response.json().await.unwrap();
    error["error"]["message"].as_str().unwrap().to_owned()
}

fn reconfigurations(live: &Live) -> i64 {
    query(&live.record, "SELECT count(*) FROM inputs WHERE input LIKE '%max_head_off_policyness%'")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_configuration_is_answered_with_what_changes_when() {
    let dir = tempfile::tempdir().unwrap();
    let live = start(&dir, &text("pause_drain", 4, 16)).await;
    let before = in_force(&live).await;
    for line in
        ["sync_mode = \"pause_drain\"", "max_head_off_policyness = 4", "pause_timeout_sec = 120"]
    {
        assert!(before.contains(&format!("\n{line}\n")), "{line} is not in\n{before}");
    }
    let next = text("in_flight", 1, 16);
    let change = json!([
        {"key": "policy_serving.sync_mode", "old": "pause_drain", "new": "in_flight",
         "effect": "next publication"},
        {"key": "policy_training.max_head_off_policyness", "old": 4, "new": 1,
         "effect": "next admission"},
    ]);
    let asked: Value = post(&live, "?dry_run=true", &next).await.json().await.unwrap();
    assert_eq!(asked, json!({"applied": false, "changed": change}));
    assert_eq!((in_force(&live).await, reconfigurations(&live)), (before.clone(), 0));
    let done: Value = post(&live, "", &next).await.json().await.unwrap();
    // Whoever has the answer finds the input on disk.
    assert_eq!(reconfigurations(&live), 1);
    assert_eq!(done, json!({"applied": true, "changed": change}));
    let guard = "[guard]\nwindow_sec = 600\n[guard.envelope]\njudge_idle_share = [0, 1]\n\
                 [guard.previous.policy_training]\nbatch_size = 4\n";
    let guarded: Value = post(&live, "?dry_run=false", &(next + guard)).await.json().await.unwrap();
    assert_eq!(guarded, json!({"applied": true, "changed": []}));
    let shown = in_force(&live).await;
    assert!(shown.contains("\n[guard.previous.policy_training]\nbatch_size = 4\n"), "{shown}");
    // What it shows is what it takes.
    let same: Value = post(&live, "", &shown).await.json().await.unwrap();
    assert_eq!(same, json!({"applied": true, "changed": []}));
    assert_eq!(in_force(&live).await, shown);
    assert_eq!(post(&live, "", &text("in_flight", 1, 16)).await.status(), 200);
    assert!(!in_force(&live).await.contains("[guard]"));
    let (ended, record) = live.end().await;
    ended.unwrap();
    nothing_is_wrong(&record);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_invalid_or_needs_a_restart_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let good = text("in_flight", 4, 16);
    let live = start(&dir, &good).await;
    let before = in_force(&live).await;
    let port = good.replace("[policy_serving]", "[policy_serving]\nport = 1");
    let unit = good.replace("batch_size", "sample_unit = \"session\"\nbatch_size");
    let envelope = "[guard]\nwindow_sec = 600\n[guard.envelope]\njudge_idle_shar = [0, 1]\n";
    for (body, parts) in [
        (good.replace("= 2", "= 0"), &["body:6:22: ", "`batch_size`", "help: "][..]),
        (good.replace("batch_size", "batch_sise"), &["did you mean `batch_size`?"]),
        (good.replace("= 16", "= 1"), &["body:6:", "queue"]),
        (format!("{good}[api]\n"), &["unknown key `api`"]),
        (format!("{good}{envelope}"), &["judge_idle_share"]),
        (good.replace(']', ""), &["body:1:"]),
        (port, &["`policy_serving.port` is 30000, and 1 needs a restart"]),
        (unit, &["`policy_training.sample_unit`", "needs a restart"]),
        (String::new(), &["no scheduling section"]),
    ] {
        for query in ["", "?dry_run=true"] {
            let said = refused(&live, query, &body).await;
            assert!(said.contains("nothing has changed"), "{said}");
            for part in parts {
                assert!(said.contains(part), "{part:?} is not in\n{said}");
            }
        }
    }
    refused(&live, "?dryrun=true", &good).await;
    let request = live.client.post(format!("{}/admin/config", live.url));
    assert_eq!(request.body(good).send().await.unwrap().status(), 401);
    assert_eq!((in_force(&live).await, reconfigurations(&live)), (before, 0));
}

/// Clients that ask again and again, until they are told to stop.
struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<BTreeSet<u64>>>,
}

impl Load {
    fn start(live: &Live, clients: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |number: usize| {
            let (client, url, stop) = (live.client.clone(), live.url.clone(), stop.clone());
            tokio::spawn(async move {
                let mut samples = BTreeSet::new();
                for count in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let body = turn(&format!("{number}-{count}"), &format!("long:{}", count % 7));
                    if let Some(sample) = ask(&client, &url, &body, &stop).await {
                        assert!(samples.insert(sample), "one sample, answered twice");
                    }
                }
                samples
            })
        };
        Self { clients: (0..clients).map(client).collect(), stop }
    }

    /// The samples that were answered.
    async fn stop(self) -> BTreeSet<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = BTreeSet::new();
        for client in self.clients {
            all.extend(client.await.unwrap());
        }
        all
    }
}

/// Asks until it is served or told to stop; the sample that the turn became.
async fn ask(client: &Client, url: &str, body: &Value, stop: &AtomicBool) -> Option<u64> {
    while !stop.load(Ordering::Relaxed) {
        let request = client.post(format!("{url}/v1/chat/completions")).json(body);
        let response = request.send().await.unwrap();
        match response.status() {
            StatusCode::OK => {
                let answer: Value = response.json().await.unwrap();
                return answer["sample_id"].as_u64();
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            status => panic!("{status}: {}", response.text().await.unwrap()),
        }
    }
    None
}

/// Each mode to each other one, by edges of the complete graph that follow each other.
fn tour() -> Vec<usize> {
    let mut places = vec![0];
    for step in 1..MODES.len() {
        for _ in 0..MODES.len() {
            places.push((places[places.len() - 1] + step) % MODES.len());
        }
    }
    places
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_under_load_is_switched_at_many_instants_and_loses_nothing() {
    let tour = tour();
    let pairs: BTreeSet<_> = tour.windows(2).map(|pair| (pair[0], pair[1])).collect();
    assert_eq!(pairs.len(), MODES.len() * (MODES.len() - 1));
    let dir = tempfile::tempdir().unwrap();
    let live = start(&dir, &text(MODES[0], 0, 16)).await;
    let load = Load::start(&live, 5);
    for (round, &mode) in (0_u64..).zip(&tour) {
        // Somewhere in the middle of steps, publications, windows and turns; it goes on each time.
        let at = live.driver.status().inputs + 3 + round * 11 % 37;
        live.until(|status| status.inputs >= at).await;
        let eta = [0, 4, 1][round as usize % 3];
        let queue = [16, 2, 5, 9][round as usize % 4];
        let response = post(&live, "", &text(MODES[mode], eta, queue)).await;
        assert_eq!(response.status(), 200);
    }
    let steps = live.driver.status().ledger.steps;
    live.until(|status| status.ledger.steps >= steps + 3).await;
    let answered = load.stop().await;
    let (ended, record) = live.end().await;
    ended.unwrap();
    nothing_is_wrong(&record);
    let report = replay(&record).unwrap();
    assert!(report.decisions.inputs > 0);
    let kept: i64 = query(&record, "SELECT count(*) FROM samples");
    let resolved: i64 = query(&record, "SELECT count(*) FROM samples WHERE fate IS NOT NULL");
    assert!(resolved > 0 && kept >= answered.len() as i64, "{resolved} of {kept}");
    for sample in &answered {
        let found: i64 =
            query(&record, &format!("SELECT count(*) FROM samples WHERE id = {sample}"));
        assert_eq!(found, 1, "sample {sample} was answered, and is lost");
    }
    assert_eq!(above_their_eta(&record), Vec::<(i64, i64, i64)>::new());
}

/// Trained samples that are older than η was when they were admitted.
fn above_their_eta(record: &std::path::Path) -> Vec<(i64, i64, i64)> {
    let connection = rusqlite::Connection::open(record).unwrap();
    let rows = |sql: &str| {
        let mut statement = connection.prepare(sql).unwrap();
        let columns = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let rows: Vec<(i64, i64, String)> =
            statement.query_map([], columns).unwrap().map(Result::unwrap).collect();
        rows
    };
    let eta = |input: &str| -> i64 {
        let (_, rest) = input.split_once("\"max_head_off_policyness\":").unwrap();
        rest[..rest.find([',', '}']).unwrap()].trim().parse().unwrap()
    };
    let switches: Vec<(i64, i64)> =
        rows("SELECT seq, 0, input FROM inputs WHERE input LIKE '%max_head_off_policyness%'")
            .iter()
            .map(|(seq, _, input)| (*seq, eta(input)))
            .collect();
    assert!(switches.len() >= 20);
    let trained = rows("SELECT admitted, staleness, '' FROM samples WHERE fate = 'trained'");
    assert!(!trained.is_empty());
    let bound = |admitted: i64| {
        let before = switches.iter().rev().find(|(seq, _)| *seq <= admitted);
        before.map_or(0, |(_, eta)| *eta)
    };
    let over =
        trained.iter().map(|&(admitted, staleness, _)| (admitted, staleness, bound(admitted)));
    over.filter(|(_, staleness, bound)| staleness > bound).collect()
}
