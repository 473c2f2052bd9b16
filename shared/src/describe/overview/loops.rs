//! The four loops.

use super::{Place, Row, Table, count, limit, millionths, seconds};
use crate::config::{
    Bound, Choice, Config, Correction, GateKind, GroupFilter, JudgeMode, JudgeNeeds, OverLimit,
    SampleUnit, Signal,
};

pub(super) fn table(config: &Config, place: Place<'_>) -> Table {
    Table {
        name: "loops",
        title: "The four loops",
        columns: &["loop", "takes", "gives", "how"],
        rows: vec![
            serving(config, place),
            environment(config),
            judging(config, place),
            training(config, place),
        ],
    }
}

fn row(name: &str, takes: &str, gives: &str, how: &[String]) -> Row {
    Row::new([name.to_owned(), takes.to_owned(), gives.to_owned(), how.join("; ")])
}

fn serving(config: &Config, place: Place<'_>) -> Row {
    let serving = &config.policy_serving;
    let mut how = Vec::new();
    if let Place::Live(settings) = place {
        let at = format!("{}:{}", serving.host, serving.port);
        how.push(format!("engine `{}`, clients at {at}", serving.engine));
        let urls = settings.map_or(&[][..], |settings| &settings.serving.engine_urls);
        if serving.engine != "tch" && !urls.is_empty() {
            how.push(format!("{} ({})", count(urls.len() as u32, "replica"), urls.join(", ")));
        }
    }
    how.push(format!("replica by `{}`", serving.routing.word()));
    how.push(gate(config));
    how.push(match serving.over_limit {
        OverLimit::Refuse => "beyond it: 429".to_owned(),
        OverLimit::Hold => format!("beyond it: held, {}", limit(serving.hold)),
        OverLimit::ServeOnly => "beyond it: served and not recorded".to_owned(),
    });
    if serving.max_concurrent_rollouts > 0 {
        how.push(format!("at most {}", count(serving.max_concurrent_rollouts, "rollout")));
    }
    how.push(format!("a turn: {}", limit(serving.generation_timeout)));
    row(
        "policy serving",
        "requests of agents and users",
        "generated turns, with log-probabilities: to the environment and the rollout queue",
        &how,
    )
    .measured(&[
        ("idle", "serving_idle_share"),
        ("running", "running_mean"),
        ("tokens/s", "generated_tokens_per_second"),
        ("refused", "refused_share"),
    ])
}

/// What the gate binds, in its own terms.
fn gate(config: &Config) -> String {
    let training = &config.policy_training;
    let gate = training.gate;
    let binds = match gate {
        GateKind::None => "no bound".to_owned(),
        GateKind::Sync => "one batch per version".to_owned(),
        GateKind::Openclaw => "closed from a full batch until its step has ended".to_owned(),
        GateKind::Verl => {
            format!("`staleness_threshold` {}", millionths(training.staleness_threshold))
        }
        GateKind::Roll => {
            format!("`async_generation_ratio` {}", millionths(training.async_generation_ratio))
        }
        GateKind::PipelineRl => format!("`max_lag_samples` {}", training.max_lag_samples),
        GateKind::OneStepOff | GateKind::SlimeTrainAsync => "one batch ahead".to_owned(),
        GateKind::Headway
        | GateKind::Areal
        | GateKind::PrimeRl
        | GateKind::Skyrl
        | GateKind::NemoRlWindow => {
            let adaptive = match config.adaptive.signal {
                Signal::Off => String::new(),
                signal => format!(
                    " at first, then {} to {} by `{}`",
                    config.adaptive.min,
                    config.adaptive.max,
                    signal.word()
                ),
            };
            format!("η {}{adaptive}", training.max_head_off_policyness)
        }
    };
    let strict = match (gate, training.bound) {
        (GateKind::Headway, Bound::Strict) => ", strict",
        (GateKind::Headway, Bound::Aggregate) => ", aggregate",
        _ => "",
    };
    format!("gate `{}`: {binds}{strict}", gate.word())
}

fn environment(config: &Config) -> Row {
    let hosting = &config.environment_hosting;
    let slots = match hosting.max_envs {
        0 => "any number at once".to_owned(),
        slots => format!("{} at once", count(slots, "environment")),
    };
    let idle = match hosting.session_idle.as_nanos() {
        0 => "a silent session stays".to_owned(),
        _ => format!("a session that is silent for {} ends", seconds(hosting.session_idle)),
    };
    let how = [
        slots,
        format!(
            "a reset: {}, a step: {}",
            limit(hosting.reset_timeout),
            limit(hosting.step_timeout)
        ),
        format!("{} of each", count(hosting.retries, "retry").replace("retrys", "retries")),
        idle,
    ];
    row(
        "environment hosting",
        "generated turns",
        "the next state of a session: a user's reply, a tool's output",
        &how,
    )
    .measured(&[("next state", "part_seconds_next_state")])
}

fn judging(config: &Config, place: Place<'_>) -> Row {
    let judging = &config.reward_judging;
    let mut how = Vec::new();
    if let Place::Live(settings) = place {
        how.push(match (judging.rule.as_str(), settings) {
            ("", None) => "the endpoint of `settings.json`".to_owned(),
            ("", Some(settings)) => {
                format!("`{}` at {}", settings.judge.model, settings.api.base_url)
            }
            (rule, _) => format!("rule `{rule}`"),
        });
    }
    how.push(match judging.judge_needs {
        JudgeNeeds::NextState => "judges a turn by what followed it".to_owned(),
        JudgeNeeds::Turn => "judges a turn by itself".to_owned(),
    });
    how.push(
        if judging.fire_on_turn_end { "as soon as that is there" } else { "when its session ends" }
            .to_owned(),
    );
    how.push(match judging.votes {
        1 => "1 vote".to_owned(),
        votes => format!(
            "{votes} votes, `{}`, at least {} valid",
            judging.aggregate.word(),
            judging.min_votes
        ),
    });
    how.push(format!("{} in flight", count(judging.judge_concurrency, "vote")));
    how.push(format!("a vote: {}", limit(judging.judge_timeout)));
    how.push(match judging.mode {
        JudgeMode::Async => "never blocks a rollout".to_owned(),
        JudgeMode::Sync => "a turn keeps its slot until it is judged".to_owned(),
    });
    row(
        "reward judging",
        "turns, from the rollout queue",
        "scored samples, into the output queue",
        &how,
    )
    .measured(&[
        ("idle", "judge_idle_share"),
        ("judging", "part_seconds_judging"),
        ("calls/h", "judge_calls_per_hour"),
        ("failed", "failed_vote_share"),
    ])
}

fn training(config: &Config, place: Place<'_>) -> Row {
    let training = &config.policy_training;
    let mut how = Vec::new();
    if let Place::Live(_) = place {
        how.push(format!("engine `{}`", training.engine));
    }
    let unit = match training.sample_unit {
        SampleUnit::Turn => "turn",
        SampleUnit::Session => "trajectory",
    };
    how.push(match training.group_size {
        1 => format!(
            "a batch is {}",
            count(training.batch_size, unit).replace("jectorys", "jectories")
        ),
        size => {
            format!(
                "a batch is {} of {size}, a sample is a {unit}",
                count(training.batch_size, "group")
            )
        }
    });
    if training.filter != GroupFilter::None {
        how.push(format!("filter `{}`", training.filter.word()));
    }
    how.push(format!("{} a step", count(training.updates_per_step, "update")));
    how.push(match training.correction {
        Correction::None => "no correction".to_owned(),
        correction => format!("correction `{}`", correction.word()),
    });
    row(
        "policy training",
        "scored samples, from the output queue",
        "new weights, through the weights channel",
        &how,
    )
    .measured(&[
        ("idle", "trainer_idle_share"),
        ("steps/h", "steps_per_hour"),
        ("samples/h", "trained_samples_per_hour"),
    ])
}
