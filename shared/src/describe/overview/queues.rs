//! The queues between the loops.

use super::{Row, Table, count, limit, seconds};
use crate::config::{Choice, Config, DropPolicy, OverLimit, Queue};
use crate::time::Span;

pub(super) fn table(config: &Config) -> Table {
    let queues = &config.queue;
    let mut rows = vec![
        queue(
            "rollout queue",
            "generated, not yet judged",
            "policy serving",
            "reward judging",
            &queues.rollout,
        )
        .measured(&[
            ("mean", "rollout_queue_mean"),
            ("most", "rollout_queue_max"),
            ("wait p50", "rollout_queue_wait_seconds_p50"),
            ("wait p95", "rollout_queue_wait_seconds_p95"),
        ]),
        queue(
            "output queue",
            "scored, not yet trained",
            "reward judging",
            "policy training",
            &queues.output,
        )
        .measured(&[
            ("mean", "output_queue_mean"),
            ("most", "output_queue_max"),
            ("wait p50", "output_queue_wait_seconds_p50"),
            ("wait p95", "output_queue_wait_seconds_p95"),
        ]),
        channel(config),
    ];
    rows.extend(held(config));
    rows.extend(parked(config));
    Table {
        name: "queues",
        title: "The queues",
        columns: &["queue", "holds", "written by", "read by", "size", "order", "when full"],
        rows,
    }
}

fn queue(name: &str, holds: &str, writer: &str, reader: &str, settings: &Queue) -> Row {
    let full = match settings.drop_policy {
        DropPolicy::Reject => "room is reserved at admission; else 429",
        DropPolicy::Block => "a sample keeps the slot it has until there is room",
        DropPolicy::DropOldest => "the sample that entered first is discarded",
        DropPolicy::DropNewest => "the sample that would enter is discarded",
    };
    Row::new([
        name.to_owned(),
        holds.to_owned(),
        writer.to_owned(),
        reader.to_owned(),
        count(settings.max_size, "sample"),
        settings.queue_type.word().to_owned(),
        format!("`{}`: {full}", settings.drop_policy.word()),
    ])
}

/// The weights channel.
fn channel(config: &Config) -> Row {
    let interval = config.policy_training.publish_interval;
    let every =
        if interval == 1 { "every step".to_owned() } else { format!("every {interval} steps") };
    let cells = [
        "weights channel",
        "published weights",
        &format!("policy training, {every}"),
        "policy serving",
        "1 version",
        "latest wins",
        "the older version is never loaded",
    ];
    Row::new(cells.map(str::to_owned)).measured(&[("publications/h", "publications_per_hour")])
}

fn held(config: &Config) -> Option<Row> {
    let serving = &config.policy_serving;
    (serving.over_limit == OverLimit::Hold).then(|| {
        let cells = [
            "held requests",
            "requests that wait for a place",
            "the gate",
            "the gate",
            "no limit",
            "fifo",
            &format!("429 after {}", limit(serving.hold)),
        ];
        Row::new(cells.map(str::to_owned)).measured(&[("mean", "held_mean")])
    })
}

fn parked(config: &Config) -> Option<Row> {
    let after = config.policy_training.park_after;
    (after > Span::ZERO).then(|| {
        let cells = [
            "parked samples",
            &format!("turns that wait for their next state for more than {}", seconds(after)),
            "environment hosting",
            "the gate, when the next state comes",
            "no limit: they hold no place",
            "as next states come",
            "never full; too old or no place: `stale_parked`",
        ];
        Row::new(cells.map(str::to_owned))
            .measured(&[("mean", "parked_mean"), ("parked/h", "parkings_per_hour")])
    })
}
