//! How weights travel from the learner to the replicas.

use super::{Place, Row, Table, count, limit, seconds};
use crate::config::{Aborted, Choice, Config, KvOnSync, SyncMode};

pub(super) fn table(config: &Config, place: Place<'_>) -> Table {
    let serving = &config.policy_serving;
    let mut rows = vec![
        stage("export", export(config, place), limit(serving.save_timeout)),
        stage("clear the way", clear(config), way(config)),
        stage("transfer", transfer(config, place), limit(serving.transfer_timeout)),
        stage("load", load(config, place).to_owned(), limit(serving.load_timeout)),
    ];
    if let Some(turns) = in_flight(config) {
        rows.push(stage("turns in flight", turns, String::new()));
    }
    rows.push(stage(
        "a failure",
        format!(
            "{} after {}, then twice as long each time, at most 60 s; then the run ends",
            count(serving.publish_retries, "retry").replace("retrys", "retries"),
            seconds(serving.publish_retry_delay)
        ),
        String::new(),
    ));
    Table {
        name: "weights",
        title: "How weights are transported",
        columns: &["stage", "how", "at most"],
        rows,
    }
}

fn stage(stage: &str, how: String, most: String) -> Row {
    Row::new([stage.to_owned(), how, most])
}

fn export(config: &Config, place: Place<'_>) -> String {
    let (trainer, server) = (&*config.policy_training.engine, &*config.policy_serving.engine);
    match (place, trainer, server) {
        (Place::Simulated, ..) => "takes as long as `world.weights.save` says".to_owned(),
        (Place::Live(_), "tch", "tch") => {
            "the trainer copies its parameters, in this process".to_owned()
        }
        (Place::Live(_), "tch", _) => {
            "the trainer, in this process, writes a checkpoint beside the record".to_owned()
        }
        (Place::Live(_), engine, _) => {
            format!("the trainer (`{engine}`) writes a checkpoint and names its directory")
        }
    }
}

fn clear(config: &Config) -> String {
    match config.policy_serving.sync_mode {
        SyncMode::PauseDrain => {
            "new requests get 503; turns in flight may end, the rest is aborted"
        }
        SyncMode::PauseAbort => "new requests get 503; turns in flight are aborted",
        SyncMode::PauseKeep => "new requests get 503; turns in flight are frozen",
        SyncMode::InFlight => "nothing is stopped",
        SyncMode::Rolling => {
            "one replica at a time gets no new turns and is drained; the others serve"
        }
    }
    .to_owned()
}

fn way(config: &Config) -> String {
    let serving = &config.policy_serving;
    match serving.sync_mode {
        SyncMode::PauseDrain | SyncMode::Rolling => format!(
            "{}, then {} for aborted turns to stop",
            limit(serving.pause_timeout),
            limit(serving.abort_timeout)
        ),
        SyncMode::PauseAbort => limit(serving.abort_timeout),
        SyncMode::PauseKeep | SyncMode::InFlight => String::new(),
    }
}

fn transfer(config: &Config, place: Place<'_>) -> String {
    let how = match (place, config.policy_serving.engine.as_str()) {
        (Place::Simulated, _) => "takes as long as `world.weights.transfer` says",
        (Place::Live(_), "tch") => "an owned copy is handed to the engine's thread",
        (Place::Live(_), _) => "each server is told the directory, and reads it from disk",
    };
    match config.policy_serving.sync_mode {
        SyncMode::Rolling => format!("{how}; one replica after the other"),
        _ => format!("{how}; all replicas at once"),
    }
}

fn load(config: &Config, place: Place<'_>) -> &'static str {
    match (place, config.policy_serving.engine.as_str()) {
        (Place::Simulated, _) => "takes as long as `world.weights.load` says",
        (Place::Live(_), "tch") => {
            "a shadow copy is filled, and swapped in between two decode steps"
        }
        (Place::Live(_), _) => {
            "the server loads it, and is asked for its version; a load that breaks half-way leaves the \
             replica down until one succeeds"
        }
    }
}

/// What becomes of turns that meet new weights.
fn in_flight(config: &Config) -> Option<String> {
    let serving = &config.policy_serving;
    match serving.sync_mode {
        SyncMode::PauseKeep | SyncMode::InFlight => Some(
            match serving.kv_on_sync {
                KvOnSync::Recompute => {
                    "they go on under the new weights; their KV cache is computed again"
                }
                KvOnSync::Keep => {
                    "they go on under the new weights, with the KV cache of the old ones"
                }
            }
            .to_owned(),
        ),
        SyncMode::PauseDrain | SyncMode::PauseAbort | SyncMode::Rolling => {
            let how = match serving.aborted {
                Aborted::Discard => "its sample is discarded",
                Aborted::Restart => "it starts again from nothing",
                Aborted::Resume => "it goes on from its tokens, under the new weights",
                Aborted::KeepAsFinal => "it counts as complete",
            };
            Some(format!("an aborted turn: `{}`, {how}", serving.aborted.word()))
        }
    }
}
