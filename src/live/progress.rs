//! How a run is, in one line.

use std::path::PathBuf;
use std::time::Duration;

use headway_runtime::driver::{DriverHandle, Status};
use headway_runtime::shared::action::Refusal;
use headway_runtime::store::{self, Recent};
use headway_sim::report::number;
use indicatif::ProgressBar;

use crate::progress::{self, Show};
use crate::terminal;

/// So many steps are "now".
const RECENT: u32 = 10;

/// Shows how a run is, for as long as it is polled: a line that changes on a terminal, else a line
/// now and then.
pub(crate) async fn show(driver: DriverHandle, record: PathBuf, goal: Option<u64>) {
    if progress::is_quiet() {
        return std::future::pending().await;
    }
    let lively = Show::now() == Show::Bar;
    let first = driver.status();
    let bar = lively.then(ProgressBar::new_spinner);
    let pause = Duration::from_millis(if lively { 500 } else { 10_000 });
    loop {
        tokio::time::sleep(pause).await;
        let record = record.clone();
        // The next look may go better.
        let recent = tokio::task::spawn_blocking(move || store::recent(&record, RECENT)).await;
        let recent = recent.ok().and_then(Result::ok).flatten();
        let status = driver.status();
        let text = line(&status, recent, goal) + &time_left(&first, &status, goal);
        match &bar {
            Some(bar) => bar.set_message(text),
            None => terminal::note(&text),
        }
    }
}

/// The time that is left to the goal, at the rate of the steps since `first`.
fn time_left(first: &Status, status: &Status, goal: Option<u64>) -> String {
    let steps = status.ledger.steps.saturating_sub(first.ledger.steps);
    let Some(rest) = goal.map(|goal| goal.saturating_sub(status.ledger.steps)) else {
        return String::new();
    };
    if steps == 0 {
        return String::new();
    }
    let per_step = status.now.since(first.now).as_secs_f64() / steps as f64;
    let left = Duration::try_from_secs_f64(per_step * rest as f64).unwrap_or(Duration::MAX);
    format!(" | {:.1} steps/min, {} left", 60.0 / per_step.max(1e-9), progress::left(left))
}

fn line(status: &Status, recent: Option<Recent>, goal: Option<u64>) -> String {
    let goal = goal.map_or_else(String::new, |goal| format!("/{goal}"));
    let step = format!("step {}{goal}", status.ledger.steps);
    let refused = |code: u16| -> u64 {
        let reasons = Refusal::ALL.iter().filter(|reason| reason.status() == code);
        reasons.map(|reason| status.ledger.refused[reason.index()]).sum()
    };
    let refused = format!("503: {}, 429: {}", refused(503), refused(429));
    let Some(recent) = recent else {
        return format!("{step} | {refused} | waits for {}", status.waits_for);
    };
    let short = |value: f64| number::short(Some(value));
    format!(
        "{step} | reward {:.2} | staleness {:.1}, max {} | {refused} | {} tokens/s",
        recent.reward,
        recent.staleness,
        recent.staleness_max,
        short(recent.tokens_per_sec.round()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_learning_goes() {
        let recent =
            Recent { reward: 0.419, staleness: 1.96, staleness_max: 4, tokens_per_sec: 1234.4 };
        let mut status = Status {
            now: Default::default(),
            learner: Default::default(),
            gauges: Default::default(),
            ledger: Default::default(),
            waits_for: "turns".to_owned(),
            inputs: 0,
            committed: 0,
            publication_wished: false,
            bound_move: None,
            failed_votes: Default::default(),
            kept: Default::default(),
            strays: 0,
            error: None,
            ending: false,
            guard: None,
        };
        assert_eq!(
            line(&status, Some(recent), Some(400)),
            "step 0/400 | reward 0.42 | staleness 2.0, max 4 | 503: 0, 429: 0 | 1,234 tokens/s"
        );
        assert_eq!(line(&status, None, None), "step 0 | 503: 0, 429: 0 | waits for turns");
        let first = status.clone();
        assert_eq!(time_left(&first, &status, Some(400)), "");
        status.now = headway_runtime::shared::time::Time::from_secs(30);
        status.ledger.steps = 10;
        assert_eq!(time_left(&first, &status, Some(400)), " | 20.0 steps/min, 19m 30s left");
        assert_eq!(time_left(&first, &status, None), "");
    }
}
