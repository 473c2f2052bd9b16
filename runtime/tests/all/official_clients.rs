//! What the tests of the official Python clients have in common.

use std::path::Path;
use std::process::Stdio;

use headway_runtime::secret::Secret;
use tokio::process::{Child, Command};

use super::live::{Live, Setup, turn};

pub(super) const CONFIG: &str = "
    [policy_serving]
    sync_mode = \"pause_drain\"
    [reward_judging]
    judge_needs = \"turn\"
    [policy_training]
    batch_size = 2
    max_head_off_policyness = 4
";

/// Starts a run whose gateway asks for a key.
pub(super) async fn start(dir: &Path, mut setup: Setup) -> Live {
    setup.gateway.api_key = Secret::new("key");
    setup.start(dir).await
}

/// Starts Python where these packages are.
pub(super) fn python(packages: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new("python3");
    command.arg("-B").args(arguments).env("PYTHONPATH", packages).kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for its end, and gives what it printed.
pub(super) async fn succeeds(client: Child) -> String {
    let output = client.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// In a sync window the case `refused` is refused, and `retries` is served once it is over. `client`
/// starts a case.
pub(super) async fn outlast_a_sync_window(live: &Live, client: impl Fn(&str) -> Child) {
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
    succeeds(client("refused")).await;
    let before = live.driver.status().ledger.refused_total();
    let retrying = client("retries");
    live.until(|status| status.ledger.refused_total() > before).await;
    live.engine.hold(false);
    assert_eq!(running.await.unwrap().unwrap().status(), 200);
    succeeds(retrying).await;
}
