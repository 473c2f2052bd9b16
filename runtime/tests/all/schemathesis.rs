//! schemathesis against the gateway: requests made from `/openapi.json`, right and wrong ones, and
//! every answer held against it.
//!
//! `make test` installs it (`scripts/test_packages.sh`) and demands this test; without it, it says
//! that it was skipped.

use std::fs;
use std::path::Path;

use headway_runtime::gateway;
use headway_runtime::secret::Secret;
use headway_runtime::shared::time::Span;
use tokio::process::Command;

use crate::all::engine::script;
use crate::all::outside::{Run, text};
use crate::all::packages::installed;
use crate::all::sglang_server::SglangServer;

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_as_the_description_says() {
    let Some(packages) = installed("schemathesis", "schemathesis") else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = SglangServer::start(dir.path(), |prompt| script(prompt).0);
    let options = gateway::Options {
        api_key: Secret::new("key"),
        admin_token: Secret::new("operator"),
        dashboard: Some(gateway::Dashboard::new(dir.path().join("run.db"))),
        max_tokens: 64,
        ..gateway::Options::default()
    };
    let engines = [server.url()];
    let run = Run::start_as(
        dir.path(),
        &text("sync_mode = \"in_flight\""),
        &engines,
        Span::from_secs(60),
        options,
    )
    .await;
    run.until(|status| status.gauges.replicas_up == 1).await;
    // It looks for its files where it runs, and leaves some there.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis");
    for name in ["schemathesis.toml", "hooks.py"] {
        fs::copy(folder.join(name), dir.path().join(name)).unwrap();
    }
    let output = Command::new("python3")
        .args(["-B", "-m", "schemathesis.cli", "--no-color", "run"])
        .arg(format!("{}/openapi.json", run.url))
        .current_dir(dir.path())
        .env("PYTHONPATH", packages)
        .env("HEADWAY_TEST_KEY", "key")
        .env("HEADWAY_TEST_ADMIN", "operator")
        .env("HEADWAY_TEST_TRAINER", "trainer-token")
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    // It goes on, and ends in order.
    let status = run.driver.status();
    assert!(status.ledger.offered > 0, "no main turn was asked for");
    run.end().await;
}
