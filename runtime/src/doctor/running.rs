//! What only a running system shows: a sync window, and whether engine and trainer agree.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headway_shared::config::{Choice, Config, Settings};
use headway_shared::time::{Span, Time};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::Finding;
use super::peer::Peer;
use crate::clock::Clock;
use crate::driver::LOGPROB_DIFF;
use crate::secret::ADMIN_TOKEN;

const WINDOW: &str = "sync window";
const DIFFERENCE: &str = "log-prob difference";

/// Clients that ask all the while.
const CLIENTS: usize = 4;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);
/// What a sync may take beyond its own time limits.
const SLACK: Span = Span::from_secs(10);
/// The trend of the difference is that of so many steps at most.
const STEPS: usize = 16;
/// Fewer steps show no trend.
const FEWEST_STEPS: usize = 4;
/// The difference climbs where its mean over the newer half of the steps is so many times that over
/// the older half, and above [`NOTEWORTHY`].
const CLIMB: f64 = 1.5;
/// A smaller difference is nothing to act upon.
const NOTEWORTHY: f64 = 0.02;

pub(super) fn skipped(why: &str, cure: &str) -> Vec<Finding> {
    [WINDOW, DIFFERENCE].map(|check| Finding::skipped(check, why, cure)).into()
}

pub(super) async fn examine(peer: &Peer, config: &Config, settings: &Settings) -> Vec<Finding> {
    match peer.get("/admin/state").await {
        Ok((StatusCode::OK, _)) => {
            vec![window(peer, config).await, difference(peer, settings).await]
        }
        Ok((StatusCode::NOT_FOUND, _)) => skipped(
            "the running Headway has no admin API",
            &format!("start it with the variable {ADMIN_TOKEN} set"),
        ),
        Ok((status, _)) => {
            let seen = format!("the admin API answers {}", status.as_u16());
            let cure = format!("export {ADMIN_TOKEN}, as the running Headway has it");
            [WINDOW, DIFFERENCE].map(|check| Finding::failed(check, &*seen, &*cure)).into()
        }
        Err(_) => {
            let cure = "look at its log: its driver may be blocked";
            [WINDOW, DIFFERENCE]
                .map(|check| Finding::failed(check, "the admin API does not answer", cure))
                .into()
        }
    }
}

/// What clients were answered.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    served: u32,
    /// 503, because weights are updated.
    window: u32,
    /// Anything else.
    others: u32,
}

/// Clients that ask again and again until they are told to stop.
struct Clients {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<Answers>>,
}

impl Clients {
    fn start(peer: &Peer) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let client = || {
            let (peer, stop) = (peer.clone(), stop.clone());
            tokio::spawn(async move {
                let mut answers = Answers::default();
                while !stop.load(Ordering::Relaxed) {
                    match peer.side_turn().await {
                        Ok((StatusCode::OK, _)) => answers.served += 1,
                        Ok((StatusCode::SERVICE_UNAVAILABLE, code)) if code == "weight_sync" => {
                            answers.window += 1;
                        }
                        Ok(_) | Err(_) => answers.others += 1,
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                answers
            })
        };
        Self { tasks: (0..CLIENTS).map(|_| client()).collect(), stop }
    }

    async fn stop(self) -> Answers {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Answers::default();
        for task in self.tasks {
            let answers = task.await.unwrap_or_default();
            all.served += answers.served;
            all.window += answers.window;
            all.others += answers.others;
        }
        all
    }
}

/// Asks for a publication, with clients asking for turns all the while.
async fn window(peer: &Peer, config: &Config) -> Finding {
    let before = peer.side_turn().await;
    let Ok((StatusCode::OK, _)) = before else {
        return Finding::failed(WINDOW, format!("before it: {}", told(&before)), unready(&before));
    };
    let failures_before = count(peer, "failed_publications").await;
    let clients = Clients::start(peer);
    let clock = Clock::from(Time::ZERO);
    let asked = peer.post("/admin/publish", &json!({})).await;
    let done = matches!(asked, Ok((StatusCode::OK, _))) && ends(peer, config, &clock).await;
    let took = clock.now().as_secs_f64();
    let answers = clients.stop().await;
    let after = peer.side_turn().await;
    let failures = count(peer, "failed_publications").await.saturating_sub(failures_before);
    judge_window(config, &after, answers, done, took, failures)
}

/// Waits for the end of the publication; whether it came within its own time limits.
async fn ends(peer: &Peer, config: &Config, clock: &Clock) -> bool {
    let serving = &config.policy_serving;
    let limits = [
        serving.save_timeout,
        serving.pause_timeout,
        serving.abort_timeout,
        serving.transfer_timeout,
        serving.load_timeout,
        SLACK,
    ];
    let limit = limits.iter().fold(Time::ZERO, |sum, limit| sum + *limit);
    while clock.now() < limit {
        let state = peer.get("/admin/state").await;
        if state.is_ok_and(|(_, state)| state["publication_wished"] == false) {
            return true;
        }
        tokio::time::sleep(PAUSE).await;
    }
    false
}

async fn count(peer: &Peer, counter: &str) -> u64 {
    let ledger = peer.get("/admin/ledger").await;
    ledger.ok().and_then(|(_, ledger)| ledger[counter].as_u64()).unwrap_or(0)
}

type Told = reqwest::Result<(StatusCode, String)>;

fn judge_window(
    config: &Config,
    after: &Told,
    answers: Answers,
    done: bool,
    took: f64,
    failures: u64,
) -> Finding {
    let Answers { served, window, others } = answers;
    let mode = config.policy_serving.sync_mode;
    let mut seen = format!(
        "`{}` in {took:.2} s: {window} answers of 503 inside, {served} of 200, then {}",
        mode.word(),
        told(after)
    );
    if failures > 0 {
        seen += &format!("; {failures} publications failed and were tried again");
    }
    let reopened = matches!(after, Ok((StatusCode::OK, _)));
    let cure = if !done {
        "the sync does not end: look at the log for the replica that does not load, and set \
         `pause_timeout_sec` and `load_timeout_sec` above what a load takes"
    } else if !reopened {
        "the gate has not reopened: /readyz says why"
    } else if failures > 0 {
        "look at the log for what failed: saving, transfer or load"
    } else if window > 0 && !mode.pauses() {
        "this mode never answers 503: the running Headway has another configuration"
    } else if others > 0 {
        seen += &format!("; {others} answers of other errors");
        "look at the log of the running Headway"
    } else {
        if window == 0 && mode.pauses() {
            seen += " (the window was shorter than the time between two requests)";
        }
        return Finding::passed(WINDOW, seen);
    };
    Finding::failed(WINDOW, seen, cure)
}

fn told(told: &Told) -> String {
    match told {
        Ok((StatusCode::OK, _)) => "200".to_owned(),
        Ok((status, code)) => format!("{} {code}", status.as_u16()),
        Err(_) => "no answer".to_owned(),
    }
}

fn unready(before: &Told) -> &'static str {
    match before {
        Ok((_, code)) if code == "paused" => "resume the run: POST /admin/resume",
        Ok((_, code)) if code == "no_replica" => "look at the log for why no replica serves",
        Ok((StatusCode::SERVICE_UNAVAILABLE, _)) => "/readyz says why it does not serve",
        _ => "look at the log of the running Headway",
    }
}

/// Reads the difference of the newest steps.
async fn difference(peer: &Peer, settings: &Settings) -> Finding {
    if !settings.logging.log_rollout_logprob_diff {
        let cure = "write `\"log_rollout_logprob_diff\": true` under `logging` in settings.json";
        return Finding::skipped(DIFFERENCE, "`log_rollout_logprob_diff` is false", cure);
    }
    let Ok((StatusCode::OK, body)) = peer.get("/admin/steps").await else {
        let cure = "look at the log of the running Headway";
        return Finding::failed(DIFFERENCE, "/admin/steps does not answer", cure);
    };
    let steps = body["steps"].as_array().map_or(&[][..], Vec::as_slice);
    let values: Vec<f64> = steps.iter().filter_map(|step| step[LOGPROB_DIFF].as_f64()).collect();
    let values = &values[values.len().saturating_sub(STEPS)..];
    let (Some(last), false) = (values.last(), values.is_empty()) else {
        let why =
            if steps.is_empty() { "no step has ended yet" } else { "no step has measured it" };
        return Finding::skipped(DIFFERENCE, why, "look again when steps have ended");
    };
    trend(values, *last, steps.last().unwrap_or(&Value::Null))
}

fn trend(values: &[f64], last: f64, step: &Value) -> Finding {
    let number = &step["step"];
    if values.len() < FEWEST_STEPS {
        return Finding::passed(DIFFERENCE, format!("{last:.4} in step {number}; no trend yet"));
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (older, newer) = values.split_at(values.len() / 2);
    let (older, newer) = (mean(older), mean(newer));
    let seen = format!(
        "{last:.4} in step {number}; mean {older:.4} in the older half of {} steps, {newer:.4} in \
         the newer",
        values.len()
    );
    if newer > NOTEWORTHY && newer > CLIMB * older {
        let cure = "it climbs: lower `stale_filter_steps` and `max_head_off_policyness`, and watch \
                    it fall; where it is as large at staleness 0, the two engines compute differently";
        return Finding::failed(DIFFERENCE, seen, cure);
    }
    Finding::passed(DIFFERENCE, seen)
}
