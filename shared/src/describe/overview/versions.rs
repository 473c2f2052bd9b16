//! The three distributions, and where their versions are written and read.

use super::{Place, Row, Table, count};
use crate::config::{
    Bound, Choice, Config, Correction, GateKind, QueueOrder, SampleUnit, SyncMode,
};

/// `pi_rollout`, `pi_learner`, `pi_deploy`.
pub(super) fn distributions(config: &Config) -> Table {
    Table {
        name: "distributions",
        title: "The distributions",
        columns: &[
            "distribution",
            "version",
            "parameters come from",
            "change",
            "read by",
            "latency",
        ],
        rows: vec![rollout(config), learner(config), deploy(config)],
    }
}

fn rollout(config: &Config) -> Row {
    let training = &config.policy_training;
    let mixes = match config.policy_serving.sync_mode {
        SyncMode::InFlight | SyncMode::PauseKeep => "with each swap under a turn",
        _ if config.policy_serving.aborted == crate::config::Aborted::Resume => {
            "where an aborted turn resumes"
        }
        _ => "never within a turn",
    };
    let reads = match training.correction {
        Correction::None => "the gate, the stale filter".to_owned(),
        correction => format!("the gate, the stale filter, the correction `{}`", correction.word()),
    };
    let late = match training.bound {
        Bound::Strict => ", and never more than η",
        Bound::Aggregate => "",
    };
    Row::new([
        "pi_rollout".to_owned(),
        "`RolloutVersion`, one for each segment of a sample".to_owned(),
        "what the replica held when it generated the token".to_owned(),
        mixes.to_owned(),
        reads,
        format!("staleness: learner - rollout at the start of the train step{late}"),
    ])
    .measured(&[
        ("staleness mean", "staleness_head_mean"),
        ("p99", "staleness_head_p99"),
        ("most", "staleness_head_max"),
        ("age", "age_seconds_mean"),
        ("mixed", "mixed_version_share"),
    ])
}

fn learner(config: &Config) -> Row {
    let updates = config.policy_training.updates_per_step;
    Row::new([
        "pi_learner".to_owned(),
        "`LearnerVersion`: train steps that have ended".to_owned(),
        "the optimizer".to_owned(),
        format!("every train step ({})", count(updates, "update")),
        "the train step, the export of weights".to_owned(),
        "none: it is the newest".to_owned(),
    ])
    .measured(&[("steps/h", "steps_per_hour")])
}

fn deploy(config: &Config) -> Row {
    let interval = config.policy_training.publish_interval;
    let change = match interval {
        1 => "every train step".to_owned(),
        _ => format!("every {interval} train steps"),
    };
    Row::new([
        "pi_deploy".to_owned(),
        "`DeployVersion`, one for each replica".to_owned(),
        "the newest weights that were published and loaded".to_owned(),
        format!("{change}, by `{}`", config.policy_serving.sync_mode.word()),
        "the engine of the replica, the gate".to_owned(),
        "publish lag: learner - deploy".to_owned(),
    ])
    .measured(&[
        ("publish lag", "publish_lag_mean"),
        ("serving skew", "serving_skew_mean"),
        ("503 window", "closed_seconds_mean"),
        ("longest", "closed_seconds_max"),
    ])
}

/// Each place where a version is written or read.
pub(super) fn places(config: &Config, place: Place<'_>) -> Table {
    let mut rows = vec![
        at("a train step ends", "writes", "learner", "the learner's version rises by 1"),
        at("a publication begins", "reads", "learner", "which version is exported"),
        at("a replica has loaded", "writes", "deploy", "what this replica holds"),
        at("a token is generated", "writes", "rollout", stamp(config, place)),
        at("a request asks for a place", "reads", "learner, deploy", gate(config)),
        at(
            "a turn ends",
            "reads",
            "deploy, rollout",
            "serving skew; stamps that cannot be are discarded as `bad_stamp`",
        ),
        at("a vote ends", "writes", "judge", "the judge's version, kept with the score"),
    ];
    rows.extend(orders(config));
    rows.extend(sweeps(config));
    rows.push(at(
        "a train step starts",
        "reads",
        "learner, rollout",
        match config.policy_training.sample_unit {
            SampleUnit::Turn => "staleness of the sample: head (first token), tail, token mean",
            SampleUnit::Session => {
                "staleness of the trajectory: head (its first token), tail, token mean"
            }
        },
    ));
    if config.policy_training.correction != Correction::None {
        rows.push(at(
            "the loss is computed",
            "reads",
            "rollout",
            "log-probabilities that were recorded with the tokens: the ratio that the correction bounds",
        ));
    }
    rows.push(at(
        "after a rollback",
        "reads",
        "rollout",
        "samples of weights that are gone: `lost_weights`",
    ));
    if let Place::Live(_) = place {
        rows.push(at(
            "an answer leaves the gateway",
            "reads",
            "rollout",
            "`policy_versions`, and the headers `X-Policy-Version` and `X-Policy-Versions`",
        ));
    }
    Table {
        name: "versions",
        title: "Where versions are written and read",
        columns: &["when", "does", "version", "what for"],
        rows,
    }
}

fn at(when: &str, does: &str, version: &str, what: &str) -> Row {
    Row::new([when, does, version, what].map(str::to_owned))
}

/// How a token gets its version.
fn stamp(config: &Config, place: Place<'_>) -> &'static str {
    match (place, config.policy_serving.engine.as_str()) {
        (Place::Simulated, _) => "stamped by the simulated replica",
        (Place::Live(_), "tch") => "stamped by the engine in this process",
        (Place::Live(_), "sglang") => {
            "the server's label `headway-VERSION`, piece by piece of its stream"
        }
        (Place::Live(_), "vllm") => {
            "the server's label `headway-VERSION`, which its last piece gives for each stretch of tokens"
        }
        (Place::Live(_), _) => "stamped by the engine, once",
    }
}

fn gate(config: &Config) -> &'static str {
    match config.policy_training.gate {
        GateKind::Headway => "(η + 1 - publish lag) * B - outstanding",
        GateKind::Areal => {
            "AReaL's: the version of the replica counts, and what was accepted since the start"
        }
        GateKind::Skyrl => "SkyRL's: (η + 1 + version) * B, less what was accepted and what runs",
        GateKind::Roll | GateKind::PrimeRl | GateKind::NemoRlWindow => {
            "how old what is under way may grow"
        }
        GateKind::Verl | GateKind::Openclaw | GateKind::Sync => {
            "whether new weights have come since it was closed"
        }
        GateKind::PipelineRl | GateKind::OneStepOff | GateKind::SlimeTrainAsync => {
            "one batch more for each version"
        }
        GateKind::None => "nothing: it has no bound",
    }
}

fn orders(config: &Config) -> Option<Row> {
    let by_version =
        |order| matches!(order, QueueOrder::OldestVersionFirst | QueueOrder::FreshestFirst);
    let queues = [("rollout", &config.queue.rollout), ("output", &config.queue.output)];
    let ordered: Vec<String> = queues
        .iter()
        .filter(|(_, queue)| by_version(queue.queue_type))
        .map(|(name, queue)| format!("the {name} queue, `{}`", queue.queue_type.word()))
        .collect();
    (!ordered.is_empty()).then(|| {
        at(
            "a queue is read",
            "reads",
            "rollout",
            &format!("the order of {}", ordered.join(" and ")),
        )
    })
}

/// What is swept at each new learner version.
fn sweeps(config: &Config) -> Vec<Row> {
    let training = &config.policy_training;
    let mut rows = Vec::new();
    let when = "the learner has a new version";
    if training.bound == Bound::Strict {
        let what = format!("whatever would be older than η: `late = \"{}\"`", training.late.word());
        rows.push(at(when, "reads", "learner, rollout", &what));
    }
    if let Some(steps) = training.stale_filter_steps {
        let what =
            format!("`stale_filter_steps`: what is older than {steps} versions is discarded");
        rows.push(at(when, "reads", "learner, rollout", &what));
    }
    rows
}
