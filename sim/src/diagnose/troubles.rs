//! Five troubles that users meet, each with its cure.

use headway_shared::action::RunError;
use headway_shared::config::{Config, GateKind};
use headway_shared::time::Span;

use super::causes::bounds;
use super::evidence::Evidence;
use super::{
    CLIMB, CLIMB_ABOVE, Course, FAILED_VOTES, FEW_VOTES, Finding, Named, QUEUE_FULL, Setting,
    percent, seconds, word,
};
use crate::report::number::short;

/// The troubles that there are.
pub(super) fn find(evidence: &Evidence) -> Vec<Finding> {
    let found = [
        sync_never_ends(evidence),
        judge_times_out(evidence),
        judge_silent(evidence),
        queue_full(evidence),
        difference_climbs(evidence),
    ];
    found.into_iter().flatten().collect()
}

fn limit(get: fn(&Config) -> Span) -> impl Fn(&Config) -> String {
    move |config| seconds(get(config).as_secs_f64())
}

/// The longest that requests may be refused with 503 in one weight sync, in seconds; `None` where
/// that is unknown, or no limit of ours.
pub(super) fn longest_window(evidence: &Evidence) -> Option<f64> {
    let config = evidence.config.as_ref()?;
    let serving = &config.policy_serving;
    let limits = [
        serving.pause_timeout,
        serving.abort_timeout,
        serving.transfer_timeout,
        serving.load_timeout,
    ];
    // The gate of OpenClaw closes until a batch is there.
    let ours = config.policy_training.gate != GateKind::Openclaw;
    (ours && limits.iter().all(|limit| *limit > Span::ZERO))
        .then(|| limits.iter().map(|limit| limit.as_secs_f64()).sum())
}

/// More publications fail than arrive, or a window outlasts its own limits.
pub(super) fn is_stuck(evidence: &Evidence) -> bool {
    let failed = evidence.events("failed_publications_per_hour");
    let arrived = evidence.events("publications_per_hour");
    let outlasts = longest_window(evidence)
        .is_some_and(|limit| evidence.count("closed_seconds_max") > limit + 1.0);
    let given_up = matches!(evidence.error, Some(RunError::PublicationFailed { .. }));
    given_up || outlasts || (failed >= 1.5 && failed > arrived)
}

fn sync_never_ends(evidence: &Evidence) -> Option<Finding> {
    if !is_stuck(evidence) {
        return None;
    }
    let mut said = vec![
        format!(
            "{} publications failed and {} arrived",
            short(Some(evidence.events("failed_publications_per_hour"))),
            short(Some(evidence.events("publications_per_hour"))),
        ),
        format!(
            "requests are refused with 503 in {} of the time, {} windows an hour, at most {} long",
            percent(evidence.count("closed_share")),
            short(Some(evidence.count("closed_windows_per_hour"))),
            seconds(evidence.count("closed_seconds_max")),
        ),
        format!(
            "of the requests {} met a 503, and {} a 429 because replicas lag behind the bound",
            percent(evidence.count("refused_503_share")),
            percent(evidence.count("refused_stale_share")),
        ),
    ];
    if let Some(error) = evidence.error {
        said.push(format!("the run ended: {error}"));
    }
    let config = evidence.config.as_ref();
    let more = "120 or more: longer than a weight sync takes";
    let settings = vec![
        Setting::of(
            config,
            "policy_serving.transfer_timeout_sec",
            limit(|config| config.policy_serving.transfer_timeout),
            more,
        ),
        Setting::of(
            config,
            "policy_serving.pause_timeout_sec",
            limit(|config| config.policy_serving.pause_timeout),
            more,
        ),
        Setting::of(
            config,
            "policy_serving.load_timeout_sec",
            limit(|config| config.policy_serving.load_timeout),
            more,
        ),
    ];
    Some(Finding { named: Named::SyncNeverEnds, evidence: said, settings })
}

/// Shares of the votes that ended: given up at their time limit, and failed otherwise. `None` where
/// there are too few of them.
pub(super) fn failed_votes(evidence: &Evidence) -> Option<(f64, f64)> {
    if evidence.events("judge_calls_per_hour") < FEW_VOTES {
        return None;
    }
    let late = evidence.count("timed_out_vote_share");
    Some((late, (evidence.get("failed_vote_share")? - late).max(0.0)))
}

fn judge_times_out(evidence: &Evidence) -> Option<Finding> {
    let (late, _) = failed_votes(evidence).filter(|(late, _)| *late >= FAILED_VOTES)?;
    let config = evidence.config.as_ref();
    let votes = |config: &Config| config.reward_judging.judge_concurrency.to_string();
    let said = vec![
        format!("{} of the votes were given up at their time limit", percent(late)),
        judged(evidence),
    ];
    let settings = vec![
        Setting::of(
            config,
            "reward_judging.judge_concurrency",
            votes,
            "2 to 4, then up as long as votes end in time: more at once than the endpoint serves \
             wait in its queue",
        ),
        Setting::of(
            config,
            "reward_judging.judge_timeout_sec",
            limit(|config| config.reward_judging.judge_timeout),
            "longer than a vote takes while so many are asked for at once",
        ),
    ];
    Some(Finding { named: Named::JudgeTimesOut, evidence: said, settings })
}

fn judge_silent(evidence: &Evidence) -> Option<Finding> {
    let (_, refused) = failed_votes(evidence).filter(|(_, refused)| *refused >= FAILED_VOTES)?;
    let trained = evidence.count("trained_samples_per_hour");
    let said = vec![
        format!("{} of the votes failed without reaching their time limit", percent(refused)),
        judged(evidence),
        format!(
            "{} samples an hour were admitted and {} trained",
            short(Some(evidence.count("admitted_per_hour"))),
            short(Some(trained)),
        ),
    ];
    let settings = vec![
        Setting::new(
            "api.api_key_env",
            "",
            "the name of a variable that is exported where the judge is asked; `headway doctor` asks \
             for one vote",
        ),
        Setting::new("api.base_url, judge.model", "", "an endpoint that serves this model"),
    ];
    Some(Finding { named: Named::JudgeSilent, evidence: said, settings })
}

fn judged(evidence: &Evidence) -> String {
    format!(
        "{} votes an hour; {} of the samples were discarded for want of valid votes",
        short(Some(evidence.count("judge_calls_per_hour"))),
        percent(evidence.count("discarded_judge_failed_share")),
    )
}

fn queue_full(evidence: &Evidence) -> Option<Finding> {
    let refused = evidence.count("refused_queue_full_share");
    if refused < QUEUE_FULL {
        return None;
    }
    let said = vec![
        format!("{} of the requests were refused because a queue had no room", percent(refused)),
        format!(
            "the rollout queue held {} samples at most, the output queue {}; {} were outstanding",
            short(evidence.get("rollout_queue_max")),
            short(evidence.get("output_queue_max")),
            short(evidence.get("outstanding_max")),
        ),
    ];
    let config = evidence.config.as_ref();
    let size = |config: &Config| {
        let (rollout, output) = (config.queue.rollout.max_size, config.queue.output.max_size);
        if rollout == output { rollout.to_string() } else { format!("{rollout} and {output}") }
    };
    let settings = vec![
        Setting::of(
            config,
            "queue.max_size",
            size,
            "larger: 512 leaves admission to the staleness bound",
        ),
        Setting::of(
            config,
            "queue.drop_policy",
            |config| word(config.queue.rollout.drop_policy),
            "\"block\", which slows the rollout instead of refusing",
        ),
    ];
    Some(Finding { named: Named::QueueFull, evidence: said, settings })
}

/// It climbs, and stands above what engines differ by.
pub(super) fn climbs(course: &Course) -> bool {
    course.newer > CLIMB_ABOVE && course.newer > CLIMB * course.older
}

fn difference_climbs(evidence: &Evidence) -> Option<Finding> {
    let course = evidence.course.as_ref().filter(|course| climbs(course))?;
    let said = vec![
        format!(
            "over the newer half of {} steps it is {} nats on average, over the older half {}",
            course.steps,
            short(Some(course.newer)),
            short(Some(course.older)),
        ),
        format!(
            "trained samples are {} versions old on average, at most {}",
            short(evidence.get("staleness_head_mean")),
            short(evidence.get("staleness_head_max")),
        ),
    ];
    let settings = bounds(evidence.config.as_ref());
    Some(Finding { named: Named::DifferenceClimbs, evidence: said, settings })
}
