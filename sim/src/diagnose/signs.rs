//! The three signs of a healthy run.

use super::evidence::Evidence;
use super::troubles::{climbs, failed_votes, is_stuck, longest_window};
use super::{FAILED_VOTES, percent, seconds};
use crate::report::number::short;

/// A sign of a healthy run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    /// What should hold.
    pub name: &'static str,
    /// Whether it does; `None`: the run does not say.
    pub holds: Option<bool>,
    /// What was seen.
    pub seen: String,
}

pub(super) fn of(evidence: &Evidence) -> [Sign; 3] {
    [votes(evidence), windows(evidence), difference(evidence)]
}

fn votes(evidence: &Evidence) -> Sign {
    let name = "judge votes come back concurrently and in time";
    let Some((late, refused)) = failed_votes(evidence) else {
        return Sign { name, holds: None, seen: "too few votes have ended".to_owned() };
    };
    let limit = evidence.config.as_ref().map(|config| config.reward_judging.judge_concurrency);
    let busy = evidence.get("judge_idle_share").map(|idle| 1.0 - idle);
    let at_once = limit.zip(busy).map_or_else(String::new, |(limit, busy)| {
        let votes = short(Some(busy * f64::from(limit)));
        format!("; {votes} of {limit} at once on average")
    });
    let seen =
        format!("{} timed out, {} failed otherwise{at_once}", percent(late), percent(refused));
    Sign { name, holds: Some(late < FAILED_VOTES && refused < FAILED_VOTES), seen }
}

fn windows(evidence: &Evidence) -> Sign {
    let name = "503 only inside a sync window, and 200 afterwards";
    let windows = evidence.events("closed_windows_per_hour");
    let seen = if windows < 0.5 {
        format!(
            "no window; {} of the requests met a 503",
            percent(evidence.count("refused_503_share"))
        )
    } else {
        let limit = longest_window(evidence)
            .map_or_else(String::new, |limit| format!(" (limits add up to {})", seconds(limit)));
        format!(
            "{} windows, the longest {}{limit}; {} publications arrived, {} failed",
            short(Some(windows.round())),
            seconds(evidence.count("closed_seconds_max")),
            short(Some(evidence.events("publications_per_hour").round())),
            short(Some(evidence.events("failed_publications_per_hour").round())),
        )
    };
    Sign { name, holds: Some(!is_stuck(evidence)), seen }
}

fn difference(evidence: &Evidence) -> Sign {
    let name = "train_rollout_logprob_abs_diff does not climb";
    let Some(course) = &evidence.course else {
        let seen = match evidence.get("train_rollout_logprob_abs_diff") {
            Some(mean) => format!("{} nats, and too few steps for a trend", short(Some(mean))),
            None => "it was not reported by enough steps".to_owned(),
        };
        return Sign { name, holds: None, seen };
    };
    let seen = format!(
        "{} nats over the newer half of {} steps, {} over the older half",
        short(Some(course.newer)),
        course.steps,
        short(Some(course.older)),
    );
    Sign { name, holds: Some(!climbs(course)), seen }
}
