//! The doctor, with a scripted judge and a scripted run.

use axum::http::StatusCode;
use headway_runtime::doctor::{Finding, Outcome, examine};
use headway_runtime::secret::Secret;
use headway_runtime::shared::config::{Config, Layers, Settings, load_live};
use headway_runtime::trainer::StepMetric;
use serde_json::json;
use tokio::net::TcpListener;

use crate::all::engine::LoadScript;
use crate::all::judges::{self, Script};
use crate::all::live::{Live, Setup, turn};

const TEXT: &str = "
    [reward_judging]
    judge_needs = \"turn\"
    [policy_training]
    batch_size = 1
    max_head_off_policyness = 4
";

/// Both files, for a judge and a gateway at these addresses.
fn files(judge: &str, port: u16, judging: &str) -> (Config, Settings) {
    let text = format!("[policy_serving]\nport = {port}\n[reward_judging]\n{judging}");
    let settings = json!({
        "api": {"base_url": judge, "api_key_env": "JUDGE_KEY"},
        "judge": {"model": "grader"},
    });
    let layers =
        Layers::new().toml("config.toml", text).json("settings.json", settings.to_string());
    let loaded = load_live(&layers).unwrap();
    let (config, settings) = (loaded.config, loaded.settings);
    (config, settings)
}

fn variables(name: &str) -> Option<String> {
    let value = match name {
        "JUDGE_KEY" => "judge-key",
        "HEADWAY_API_KEY" => "api-key",
        "HEADWAY_ADMIN_TOKEN" => "admin-token",
        _ => return None,
    };
    Some(value.to_owned())
}

async fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// What is found of the judge, and no run is there.
async fn of_judge(script: Script, judging: &str) -> Vec<Finding> {
    let (url, _) = judges::endpoint(script).await;
    let (config, settings) = files(&url, free_port().await, judging);
    examine(&config, &settings, variables).await
}

fn find<'f>(findings: &'f [Finding], check: &str) -> &'f Finding {
    let found = findings.iter().find(|finding| finding.check == check);
    let found = found.unwrap_or_else(|| panic!("{check} is not in {findings:#?}"));
    assert_eq!(
        found.cure.is_empty(),
        found.result == Outcome::Passed || found.seen.starts_with("needs")
    );
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_judge_passes_with_its_latencies_and_what_needs_a_run_is_skipped() {
    let findings = of_judge(|_| judges::says("\\boxed{1}"), "judge_concurrency = 7").await;
    assert!(
        find(&findings, "judge's votes at once").seen.starts_with("7 of 7 votes in time, p50 ")
    );
    for check in ["both files agree", "judge's key", "judge's endpoint", "address"] {
        assert_eq!(find(&findings, check).result, Outcome::Passed, "{findings:#?}");
    }
    for check in ["sync window", "log-prob difference"] {
        let skipped = find(&findings, check);
        assert_eq!(skipped.result, Outcome::Skipped);
        assert!(skipped.cure.contains("headway run"), "{skipped:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_trouble_of_a_judge_has_its_cure() {
    let cases: [(Script, &str, &str); 6] = [
        (|_| Some((StatusCode::UNAUTHORIZED, String::new())), "status 401", "JUDGE_KEY"),
        (|_| Some((StatusCode::NOT_FOUND, String::new())), "status 404", "api.base_url"),
        (
            |_| Some((StatusCode::TOO_MANY_REQUESTS, String::new())),
            "status 429",
            "judge_concurrency",
        ),
        (
            |_| Some((StatusCode::OK, "<html>".to_owned())),
            "no chat completion",
            "OpenAI-compatible",
        ),
        (|_| judges::says("fine"), "no \\boxed", "judge.max_tokens"),
        (|_| None, "no answer within `judge_timeout_sec`", "judge_timeout_sec"),
    ];
    for (script, seen, cure) in cases {
        let findings = of_judge(script, "judge_timeout_sec = 2").await;
        let found = find(&findings, "judge's endpoint");
        assert_eq!(found.result, Outcome::Failed, "{findings:#?}");
        assert!(found.seen.contains(seen) && found.cure.contains(cure), "{found:?}");
        assert_eq!(find(&findings, "judge's votes at once").result, Outcome::Skipped);
        assert!(!format!("{findings:?}").contains("judge-key"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_judge_that_is_good_for_one_and_not_for_many_is_found_out() {
    let findings = of_judge(
        |number| if number < 3 { judges::says("\\boxed{0}") } else { None },
        "judge_concurrency = 6\njudge_timeout_sec = 2",
    )
    .await;
    let found = find(&findings, "judge's votes at once");
    assert_eq!(found.result, Outcome::Failed);
    assert!(found.seen.starts_with("2 of 6 votes in time"), "{found:?}");
    assert!(found.seen.ends_with(", 4 timed_out"), "{found:?}");
    assert!(found.cure.contains("lower `judge_concurrency`"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_judge_that_is_not_there_and_a_key_that_is_not_exported_are_named() {
    let nobody = format!("http://127.0.0.1:{}", free_port().await);
    let (config, settings) = files(&nobody, free_port().await, "");
    let findings = examine(&config, &settings, variables).await;
    let found = find(&findings, "judge's endpoint");
    assert!(found.seen.contains("is not reached") && found.cure.contains("start the endpoint"));
    let findings = examine(&config, &settings, |_| None).await;
    let found = find(&findings, "judge's key");
    assert_eq!(found.result, Outcome::Failed);
    assert!(found.cure.contains("export JUDGE_KEY"), "{found:?}");
}

/// A run with a key and a token, and the doctor's files for it.
async fn run(dir: &tempfile::TempDir, serving: &str) -> (Live, Config, Settings) {
    let mut setup = Setup::new(&format!("[policy_serving]\n{serving}\n{TEXT}"));
    setup.gateway.api_key = Secret::new("api-key");
    setup.gateway.admin_token = Secret::new("admin-token");
    let live = setup.start(dir.path()).await;
    let port: u16 = live.url.rsplit(':').next().unwrap().parse().unwrap();
    let text = format!(
        "[policy_serving]\nport = {port}\n{serving}\n[reward_judging]\nrule = 'exact'\n\
         judge_needs = 'turn'"
    );
    let layers = Layers::new().toml("config.toml", text).json("settings.json", "{}");
    let loaded = load_live(&layers).unwrap();
    let (config, settings) = (loaded.config, loaded.settings);
    (live, config, settings)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_sync_window_answers_503_inside_and_200_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let (live, config, settings) = run(&dir, "sync_mode = 'pause_drain'").await;
    // The window stays open until a client has seen it.
    live.engine.loads(LoadScript::Waits);
    let doctor = tokio::spawn(async move { examine(&config, &settings, variables).await });
    live.until(|status| status.ledger.side_refused >= 3).await;
    live.engine.loads(LoadScript::Good);
    let findings = doctor.await.unwrap();
    let found = find(&findings, "sync window");
    assert_eq!(found.result, Outcome::Passed, "{findings:#?}");
    assert!(found.seen.contains(" answers of 503 inside") && found.seen.ends_with("then 200"));
    assert!(!found.seen.contains(": 0 answers of 503"), "{found:?}");
    let status = live.driver.status();
    assert_eq!((status.ledger.publications, status.ledger.admitted), (1, 0));
    assert!(find(&findings, "address").seen.contains("a Headway answers"));
    assert_eq!(find(&findings, "log-prob difference").seen, "no step has ended yet");
    let (ended, record) = live.end().await;
    ended.unwrap();
    headway_runtime::store::replay(&record).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_fails_or_a_paused_run_fails_the_check() {
    let dir = tempfile::tempdir().unwrap();
    let (live, config, settings) =
        run(&dir, "sync_mode = 'in_flight'\npublish_retry_delay_sec = 0.2").await;
    live.engine.loads(LoadScript::Fails);
    let (of, with) = (config.clone(), settings.clone());
    let doctor = tokio::spawn(async move { examine(&of, &with, variables).await });
    live.until(|status| status.ledger.failed_publications >= 1).await;
    live.engine.loads(LoadScript::Good);
    let findings = doctor.await.unwrap();
    let found = find(&findings, "sync window");
    assert_eq!(found.result, Outcome::Failed, "{findings:#?}");
    assert!(found.seen.contains("failed and were tried again"), "{found:?}");
    live.driver.operate(headway_runtime::shared::input::Operator::Pause).await;
    let findings = examine(&config, &settings, variables).await;
    let found = find(&findings, "sync window");
    assert_eq!(found.seen, "before it: 503 paused");
    assert!(found.cure.contains("/admin/resume"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_keys_and_other_programs_at_the_address_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let (_live, config, settings) = run(&dir, "").await;
    let wrong = |name: &str| Some(format!("{}-wrong", variables(name)?));
    let found = examine(&config, &settings, wrong).await;
    assert!(find(&found, "address").cure.contains("HEADWAY_API_KEY"), "{found:#?}");
    let token = |name: &str| variables(name).map(|text| text.replace("admin", "other"));
    let found = examine(&config, &settings, token).await;
    assert_eq!(find(&found, "sync window").seen, "the admin API answers 401");
    let none = |name: &str| variables(name).filter(|text| text != "admin-token");
    let found = examine(&config, &settings, none).await;
    assert_eq!(find(&found, "sync window").result, Outcome::Skipped);
    let (url, _) = judges::endpoint(|_| judges::says("")).await;
    let port = url.rsplit(':').next().unwrap().parse().unwrap();
    let (config, settings) = files(&url, port, "rule = 'exact'\njudge_needs = 'turn'");
    let found = examine(&config, &settings, variables).await;
    assert!(find(&found, "address").seen.contains("another program"), "{found:#?}");
}

/// Trains so many steps, whose log-prob differences are these.
async fn train(live: &Live, differences: &[f64]) {
    for (number, &value) in differences.iter().enumerate() {
        let name = "train_rollout_logprob_abs_diff";
        live.trainer.measures(vec![StepMetric { name: name.into(), staleness: None, value }]);
        let body = turn(&format!("{number}"), "hello");
        let response = live.post(&body).bearer_auth("api-key").send().await.unwrap();
        assert_eq!(response.status(), 200);
        live.until(|status| status.ledger.steps == number as u64 + 1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_difference_that_climbs_is_told_from_one_that_does_not() {
    for (differences, result) in [
        ([0.1, 0.1, 0.11, 0.1, 0.1, 0.1], Outcome::Passed),
        ([0.01, 0.02, 0.03, 0.05, 0.08, 0.13], Outcome::Failed),
        // Too small to matter.
        ([1e-5, 1e-5, 1e-5, 1e-3, 1e-3, 1e-3], Outcome::Passed),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (live, config, settings) = run(&dir, "sync_mode = 'in_flight'").await;
        train(&live, &differences).await;
        let findings = examine(&config, &settings, variables).await;
        let found = find(&findings, "log-prob difference");
        assert_eq!(found.result, result, "{found:?}");
        assert!(found.seen.starts_with(&format!("{:.4} in step 5", differences[5])), "{found:?}");
        if result == Outcome::Failed {
            assert!(found.cure.contains("`stale_filter_steps`"), "{found:?}");
        }
    }
}
