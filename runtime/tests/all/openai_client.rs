//! OpenAI's official Python client against the gateway.
//!
//! `make test` installs the client (`scripts/test_packages.sh`) and demands these tests; without it
//! they say that they were skipped.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use headway_runtime::secret::Secret;
use tokio::process::Command;

use crate::all::live::{Live, Setup, turn};
use crate::all::messages::{speaks_of_tools, with_tools};
use crate::all::packages;

const CONFIG: &str = "
    [policy_serving]
    sync_mode = \"pause_drain\"
    [reward_judging]
    judge_needs = \"turn\"
    [policy_training]
    batch_size = 2
    max_head_off_policyness = 4
";

/// Where the client is installed; `None`: it is not, and need not be.
fn installed() -> Option<PathBuf> {
    packages::installed("openai", "the official OpenAI client")
}

async fn start(dir: &Path) -> Live {
    let mut setup = Setup::new(CONFIG);
    setup.gateway.api_key = Secret::new("key");
    setup.start(dir).await
}

/// Starts a case of `client.py`.
fn client(live: &Live, packages: &Path, case: &str) -> tokio::process::Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openai/client.py");
    let mut command = Command::new("python3");
    command.arg("-B").arg(script).arg(case).arg(format!("{}/v1", live.url));
    command.env("PYTHONPATH", packages).kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

async fn succeeds(client: tokio::process::Child) {
    let output = client.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_and_streamed_answers_and_errors() {
    let Some(packages) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let live = start(dir.path()).await;
    for case in ["chat", "stream", "errors"] {
        succeeds(client(&live, &packages, case)).await;
    }
    // The one that was left early is not waited for.
    live.until(|status| status.gauges.running == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_called_and_answered() {
    let Some(packages) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut setup = with_tools(CONFIG, dir.path());
    setup.gateway.api_key = Secret::new("key");
    let live = setup.start(dir.path()).await;
    live.engine.follows(speaks_of_tools);
    succeeds(client(&live, &packages, "tools")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_retries_outlast_a_sync_window() {
    let Some(packages) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let live = start(dir.path()).await;
    let ask = |session| live.post(&turn(session, "hello")).bearer_auth("key").send();
    // A turn that runs keeps the window of the first publication open.
    live.trainer.hold(true);
    for session in ["a", "b"] {
        assert_eq!(ask(session).await.unwrap().status(), 200);
    }
    live.engine.hold(true);
    let running = tokio::spawn(ask("c"));
    live.engine.wait_for_turns(1);
    live.trainer.hold(false);
    live.until(|status| status.gauges.closed).await;
    succeeds(client(&live, &packages, "refused")).await;
    let before = live.driver.status().ledger.refused_total();
    let retrying = client(&live, &packages, "retries");
    live.until(|status| status.ledger.refused_total() > before).await;
    live.engine.hold(false);
    assert_eq!(running.await.unwrap().unwrap().status(), 200);
    succeeds(retrying).await;
}
