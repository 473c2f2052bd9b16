//! A bound that follows what the trainer reports, live: it moves, a restart keeps it, and a replay
//! moves it alike.

use std::path::Path;

use headway_runtime::secret::Secret;
use headway_runtime::store::replay;
use headway_runtime::trainer::StepMetric;
use serde_json::Value;

use crate::all::checks::nothing_is_wrong;
use crate::all::live::{Live, SMALL, Setup, query, turn};

const ADAPTIVE: &str = "
    [policy_training.adaptive]
    signal = \"logprob_abs_diff\"
    target = 0.05
    max = 6
    every_steps = 1
";

fn setup() -> Setup {
    let mut setup = Setup::new(&format!("{SMALL}{ADAPTIVE}"));
    setup.checkpoints = true;
    setup.driver.snapshot_every = 50;
    setup.gateway.admin_token = Secret::new("token");
    setup
}

fn measures(live: &Live, diff: f64) {
    let name = "train_rollout_logprob_abs_diff".into();
    live.trainer.measures(vec![StepMetric { name, staleness: None, value: diff }]);
}

/// Asks turn after turn until the bound is this.
async fn until_bound(live: &Live, name: &str, bound: u32) {
    let asking = async {
        for round in 0.. {
            // Some are refused: the bound binds.
            live.ask(&turn(&format!("{name}-{round}"), "hello")).await;
        }
    };
    tokio::select! {
        _ = live.until(|status| status.gauges.bound == bound) => {}
        () = asking => {}
    }
}

async fn state(live: &Live) -> Value {
    let request = live.client.get(format!("{}/admin/state", live.url)).bearer_auth("token");
    request.send().await.unwrap().json().await.unwrap()
}

async fn ended_well(live: Live) {
    let (ended, record) = live.end().await;
    ended.unwrap();
    replay(&record).unwrap();
    nothing_is_wrong(&record);
}

async fn begin(dir: &Path) -> Live {
    let live = setup().start(dir).await;
    assert_eq!(live.driver.status().gauges.bound, 4, "where it begins");
    measures(&live, 0.2);
    until_bound(&live, "first", 2).await;
    live
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bound_follows_the_trainers_report_and_everyone_can_see_it() {
    let dir = tempfile::tempdir().unwrap();
    let live = begin(dir.path()).await;
    let seen = state(&live).await;
    assert_eq!(seen["bound"], 2, "{seen}");
    assert_eq!(seen["bound_last_move"]["from"], 4);
    assert_eq!(seen["bound_last_move"]["signal"], 0.2);
    measures(&live, 0.01);
    until_bound(&live, "second", 3).await;
    let text = live.get("/metrics").await.text().await.unwrap();
    for line in ["headway_bound_raised_total 1", "headway_bound_lowered_total 1"] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    let told: i64 = query(&live.record, "SELECT count(*) FROM inputs WHERE kind = 'measured'");
    assert!(told > 0);
    ended_well(live).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_on_with_the_bound_that_was_in_force() {
    let dir = tempfile::tempdir().unwrap();
    ended_well(begin(dir.path()).await).await;
    let live = setup().start(dir.path()).await;
    assert_eq!(live.driver.status().gauges.bound, 2, "the configuration says 4");
    measures(&live, 0.01);
    until_bound(&live, "again", 3).await;
    ended_well(live).await;
}
