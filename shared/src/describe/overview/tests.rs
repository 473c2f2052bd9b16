//! What the tables say of a configuration.

use super::*;
use crate::config::{Layers, load_config};
use crate::metrics::METRICS;

fn tables(sets: &[&str]) -> Vec<Table> {
    let layers = sets.iter().fold(Layers::new(), |layers, set| layers.set(*set));
    let (config, _) = load_config(&layers).unwrap_or_else(|error| panic!("{error}"));
    overview(&config, Place::Live(None))
}

/// The row of a table whose first cell is this.
fn row(tables: &[Table], table: &str, first: &str) -> String {
    let table = tables.iter().find(|of| of.name == table).unwrap();
    let row = table.rows.iter().find(|row| row.cells[0] == first);
    row.unwrap_or_else(|| panic!("{first} is not in {table:#?}")).cells.join(" | ")
}

#[test]
fn every_row_has_a_cell_for_each_column_and_names_metrics_that_there_are() {
    for place in [Place::Live(None), Place::Simulated] {
        for table in overview(&Config::default(), place) {
            for row in &table.rows {
                assert_eq!(row.cells.len(), table.columns.len(), "{row:?}");
                for (_, name) in row.measured {
                    assert!(METRICS.iter().any(|metric| metric.name == *name), "{name}");
                }
            }
        }
    }
}

#[test]
fn a_queue_is_shown_with_writer_reader_size_and_drop_policy() {
    let tables = tables(&["queue.output.max_size=77", "queue.output.drop_policy=drop_oldest"]);
    assert_eq!(
        row(&tables, "queues", "output queue"),
        "output queue | scored, not yet trained | reward judging | policy training | 77 samples | \
         fifo | `drop_oldest`: the sample that entered first is discarded"
    );
    assert!(
        row(&tables, "queues", "rollout queue")
            .contains("| policy serving | reward judging | 512 samples |")
    );
    assert!(row(&tables, "queues", "weights channel").contains("latest wins"));
}

#[test]
fn what_is_not_set_has_no_row_and_what_is_has_one() {
    let first = |tables: &[Table], name: &str| -> Vec<String> {
        let table = tables.iter().find(|table| table.name == name).unwrap();
        table.rows.iter().map(|row| row.cells[0].clone()).collect()
    };
    let plain = tables(&[]);
    assert_eq!(first(&plain, "queues"), ["rollout queue", "output queue", "weights channel"]);
    let more = tables(&["over_limit=hold", "hold_sec=20", "park_after_sec=90"]);
    assert!(row(&more, "queues", "held requests").contains("429 after 20 s"));
    assert!(row(&more, "queues", "parked samples").contains("more than 90 s"));
    let swept = tables(&["bound=strict", "stale_filter_steps=8"]);
    let sweeps =
        first(&swept, "versions").iter().filter(|when| when.contains("has a new version")).count();
    assert_eq!(sweeps, 2);
}

#[test]
fn each_distribution_says_where_it_comes_from_and_how_often_it_changes() {
    let tables =
        tables(&["publish_interval=2", "policy_serving.sync_mode=in_flight", "updates_per_step=4"]);
    assert!(
        row(&tables, "distributions", "pi_deploy").contains("every 2 train steps, by `in_flight`")
    );
    assert!(row(&tables, "distributions", "pi_learner").contains("every train step (4 updates)"));
    assert!(row(&tables, "distributions", "pi_rollout").contains("with each swap under a turn"));
    assert!(row(&tables, "weights", "clear the way").contains("nothing is stopped"));
    assert!(row(&tables, "queues", "weights channel").contains("every 2 steps"));
}

#[test]
fn a_loop_says_what_binds_it() {
    let tables = tables(&[
        "gate=verl",
        "staleness_threshold=0.25",
        "queue.output.drop_policy=drop_oldest",
        "votes=3",
    ]);
    assert!(
        row(&tables, "loops", "policy serving")
            .contains("gate `verl`: `staleness_threshold` 0.25;")
    );
    let judging = row(&tables, "loops", "reward judging");
    assert!(
        judging.contains("3 votes, `majority`, at least 2 valid; 4 votes in flight"),
        "{judging}"
    );
}
