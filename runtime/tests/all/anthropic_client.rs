//! Anthropic's official Python client against the gateway.
//!
//! `make test` installs the client (`scripts/test_packages.sh`) and demands these tests; without it
//! they say that they were skipped.

use std::path::{Path, PathBuf};

use tokio::process::Child;

use crate::all::live::{Live, Setup, turn};
use crate::all::messages::{speaks_of_tools, with_tools};
use crate::all::official_clients::{CONFIG, outlast_a_sync_window, python, start, succeeds};
use crate::all::packages;

/// Where the client is installed; `None`: it is not, and need not be.
fn installed() -> Option<PathBuf> {
    packages::installed("anthropic", "the official Anthropic client")
}

/// Starts a case of `client.py`.
fn client(live: &Live, packages: &Path, case: &str) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/anthropic/client.py");
    python(packages, &[script.to_str().unwrap(), case, &live.url])
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_and_streamed_messages_and_errors() {
    let Some(packages) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let live = start(dir.path(), Setup::new(CONFIG)).await;
    for case in ["messages", "stream", "errors"] {
        succeeds(client(&live, &packages, case)).await;
    }
    // The one that was left early is not waited for.
    live.until(|status| status.gauges.running == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_called_and_answered() {
    let Some(packages) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let live = start(dir.path(), with_tools(CONFIG, dir.path())).await;
    live.engine.follows(speaks_of_tools);
    succeeds(client(&live, &packages, "tools")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_above_the_bound_is_a_rate_limit() {
    let Some(packages) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let text = CONFIG.replace("max_head_off_policyness = 4", "max_head_off_policyness = 0");
    let live = start(dir.path(), Setup::new(&text)).await;
    live.trainer.hold(true);
    for session in ["a", "b"] {
        let asked = live.post(&turn(session, "hello")).bearer_auth("key");
        assert_eq!(asked.send().await.unwrap().status(), 200);
    }
    succeeds(client(&live, &packages, "stale")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_retries_outlast_a_sync_window() {
    let Some(packages) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let live = start(dir.path(), Setup::new(CONFIG)).await;
    outlast_a_sync_window(&live, |case| client(&live, &packages, case)).await;
}

/// What the page says can be pasted, and prints what the page says.
#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_the_page_runs() {
    let Some(packages) = installed() else { return };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/gateway.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("```python\n").unwrap();
    let (example, rest) = rest.split_once("```").unwrap();
    let (_, rest) = rest.split_once("```text\n").unwrap();
    let (printed, _) = rest.split_once("```").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(CONFIG).start(dir.path()).await;
    assert!(example.contains("http://127.0.0.1:30000"), "{example}");
    let example = example.replace("http://127.0.0.1:30000", &live.url);
    assert_eq!(succeeds(python(&packages, &["-c", &example])).await, printed);
}
