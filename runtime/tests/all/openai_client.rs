//! OpenAI's official Python client against the gateway.
//!
//! `make test` installs the client (`scripts/test_packages.sh`) and demands these tests; without it
//! they say that they were skipped.

use std::path::{Path, PathBuf};

use tokio::process::Child;

use crate::all::live::{Live, Setup};
use crate::all::messages::{speaks_of_tools, with_tools};
use crate::all::official_clients::{CONFIG, outlast_a_sync_window, python, start, succeeds};
use crate::all::packages;

/// Where the client is installed; `None`: it is not, and need not be.
fn installed() -> Option<PathBuf> {
    packages::installed("openai", "the official OpenAI client")
}

/// Starts a case of `client.py`.
fn client(live: &Live, packages: &Path, case: &str) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openai/client.py");
    python(packages, &[script.to_str().unwrap(), case, &format!("{}/v1", live.url)])
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_and_streamed_answers_and_errors() {
    let Some(packages) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let live = start(dir.path(), Setup::new(CONFIG)).await;
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
    let live = start(dir.path(), with_tools(CONFIG, dir.path())).await;
    live.engine.follows(speaks_of_tools);
    succeeds(client(&live, &packages, "tools")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_retries_outlast_a_sync_window() {
    let Some(packages) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let live = start(dir.path(), Setup::new(CONFIG)).await;
    outlast_a_sync_window(&live, |case| client(&live, &packages, case)).await;
}
