//! The tournament: what is committed, what theory says of it, and that it is what the code makes.

use std::fs;

use headway_shared::config::SyncMode;
use headway_sim::report::csv::Csv;
use headway_sim::report::plot;
use headway_sim::scenario::Scenario;
use headway_sim::tournament::entrant::{ENTRANTS, Entrant};
use headway_sim::tournament::results::TournamentResults;
use headway_sim::tournament::{Task, page, play};

use super::committed;
use super::world_support::{Silent, load_shipped};

const WORKLOADS: [&str; 3] = ["tournament-mild", "tournament-heavy", "tournament-sessions"];
/// Workloads in which nothing is refused and nobody is waited for.
const BATCH_RL: [&str; 2] = ["tournament-mild", "tournament-heavy"];

fn entrants(names: &[&str]) -> Vec<&'static Entrant> {
    ENTRANTS.iter().filter(|entrant| names.contains(&entrant.name)).collect()
}

fn played(
    workloads: &[Scenario],
    names: &[&str],
    modes: &[SyncMode],
    replications: Option<u32>,
    jobs: usize,
) -> TournamentResults {
    let entrants = entrants(names);
    let task = Task { workloads, entrants: &entrants, modes, replications, jobs };
    TournamentResults::of(&play(&task, &Silent).unwrap(), &task)
}

/// A shipped workload with something set.
fn workload(name: &str, set: &[&str]) -> Scenario {
    let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    load_shipped(name).0.with_sets(&set).unwrap().0
}

const SHORT: [&str; 3] = ["scenario.steps=14", "scenario.warmup_steps=4", "scenario.warmup_sec=0"];

fn results() -> TournamentResults {
    let folder = committed::root().join("results/tournament");
    TournamentResults::read(&folder).unwrap().unwrap()
}

fn number(table: &Csv, row: usize, column: &str) -> f64 {
    table.value(row, column).unwrap_or_else(|| panic!("row {row} has no {column}"))
}

/// The rows of a gate that ran, as it is without what another system lends it.
fn rows(results: &TournamentResults, gate: &str) -> Vec<usize> {
    let native = |row: &usize| {
        let knob = results.table.text(*row, "knob");
        results.table.text(*row, "gate") == gate && !knob.ends_with("parking")
    };
    let all = WORKLOADS.iter().flat_map(|workload| results.rows_of(workload));
    let rows: Vec<usize> = all.filter(native).collect();
    assert!(!rows.is_empty(), "{gate} never ran");
    rows
}

/// The value of a knob's first key.
fn knob(results: &TournamentResults, row: usize) -> f64 {
    let knob = results.table.text(row, "knob");
    let value = knob.split_once('=').and_then(|(_, rest)| rest.split(' ').next());
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{knob} has a value"))
}

#[test]
fn every_gate_and_sync_mode_has_its_rows_and_what_did_not_run_says_why() {
    let results = results();
    let table = &results.table;
    let names: Vec<&str> =
        results.meta.workloads.iter().map(|workload| workload.name.as_str()).collect();
    assert_eq!(names, WORKLOADS);
    let mut expected = Vec::new();
    for name in WORKLOADS {
        let (scenario, _) = load_shipped(name);
        for entrant in &ENTRANTS {
            for knob in entrant.knobs(&scenario) {
                for mode in &results.meta.sync_modes {
                    let lead = [name, entrant.name, knob.label.as_str(), mode.as_str()];
                    expected.push(lead.map(str::to_owned));
                }
            }
        }
    }
    let lead = |row: usize| {
        ["workload", "gate", "knob", "sync_mode"].map(|column| table.text(row, column).to_owned())
    };
    let found: Vec<[String; 4]> = (0..table.rows.len()).map(lead).collect();
    assert_eq!(found, expected);
    for row in 0..table.rows.len() {
        if table.text(row, "status") != "ok" {
            assert!(!table.text(row, "note").is_empty(), "{:?}", lead(row));
            assert_eq!(table.text(row, "front"), "no", "{:?}", lead(row));
        }
    }
}

#[test]
fn staleness_is_what_each_rule_promises() {
    let results = results();
    let table = &results.table;
    let each = |gate: &str, check: &dyn Fn(usize) -> bool| {
        for row in rows(&results, gate) {
            assert!(check(row), "{gate}: {:?}", &table.rows[row][..14]);
        }
    };
    let age = |row: usize, which: &str| number(table, row, &format!("staleness_head_{which}"));
    each("sync", &|row| age(row, "max") == 0.0);
    each("one_step_off", &|row| age(row, "mean") == 1.0 && age(row, "max") == 1.0);
    each("slime_train_async", &|row| age(row, "max") <= knob(&results, row));
    for gate in ["headway_strict", "headway_wait", "roll", "prime_rl", "nemo_rl_window"] {
        each(gate, &|row| {
            let above = number(table, row, "staleness_above_bound_share");
            above == 0.0 && age(row, "max") <= libm::ceil(knob(&results, row))
        });
    }
    // A mean, not a bound: stragglers exceed η, and those that follow them gain what they lost.
    for gate in ["headway", "areal", "skyrl"] {
        each(gate, &|row| age(row, "mean") <= knob(&results, row) + 0.05);
    }
}

#[test]
fn without_a_bound_samples_are_as_old_as_the_queue_makes_them() {
    let results = results();
    let table = &results.table;
    let (scenario, _) = load_shipped(BATCH_RL[0]);
    let batch = scenario.config.samples_per_batch() as f64;
    let queue = f64::from(scenario.config.queue.output.max_size) / batch;
    let in_flight = |row: &usize| {
        table.text(*row, "sync_mode") == "in_flight" && table.text(*row, "workload") == BATCH_RL[0]
    };
    let none: Vec<usize> = rows(&results, "none").into_iter().filter(in_flight).collect();
    let unbounded = *none.last().unwrap();
    assert_eq!(table.text(unbounded, "knob"), "");
    // The queue is full, and what is generated meanwhile grows older with it.
    assert!(number(table, unbounded, "staleness_head_mean") > queue);
    let ages: Vec<f64> =
        none.iter().map(|&row| number(table, row, "staleness_head_mean")).collect();
    assert!(ages.is_sorted(), "a longer queue makes them older: {ages:?}");
}

#[test]
fn areal_is_headway_by_another_name_where_nothing_is_rejected() {
    let results = results();
    let table = &results.table;
    let find = |workload: &str, gate: &str, knob: &str, mode: &str| {
        results.rows_of(workload).into_iter().find(|&row| {
            ["gate", "knob", "sync_mode"].map(|column| table.text(row, column))
                == [gate, knob, mode]
        })
    };
    for workload in BATCH_RL {
        for mode in &results.meta.sync_modes {
            for eta in ["1", "2", "4", "8"] {
                let knob = format!("max_head_off_policyness={eta}");
                let theirs = find(workload, "areal", &knob, mode).unwrap();
                let ours = format!("{knob} queue_type=admission_order");
                let ours = find(workload, "headway", &ours, mode).unwrap();
                for column in
                    ["trained_samples_per_hour", "staleness_head_mean", "staleness_head_p99"]
                {
                    assert_eq!(
                        table.text(theirs, column),
                        table.text(ours, column),
                        "{knob} {mode}"
                    );
                }
            }
        }
    }
}

#[test]
fn effective_samples_are_no_more_than_trained_ones_and_marked() {
    let results = results();
    let table = &results.table;
    for row in WORKLOADS.iter().flat_map(|workload| results.rows_of(workload)) {
        let (trained, effective) = (
            number(table, row, "trained_samples_per_hour"),
            number(table, row, "ess_samples_per_hour"),
        );
        assert!(effective <= trained && effective > 0.0);
        assert_eq!(table.text(row, "drift"), "uncalibrated");
    }
}

/// Some rows again, in every workload: all of their numbers.
#[test]
fn the_committed_rows_are_what_the_code_makes() {
    let committed = results();
    let some = [
        ("tournament-mild", "one_step_off", SyncMode::PauseKeep),
        ("tournament-heavy", "sync", SyncMode::InFlight),
        ("tournament-sessions", "openclaw", SyncMode::Rolling),
    ];
    for (name, gate, mode) in some {
        let (workload, _) = load_shipped(name);
        let again = played(&[workload], &[gate], &[mode], None, 0).table;
        let table = &committed.table;
        assert_eq!(again.header, table.header, "run `headway tournament` again");
        for row in &again.rows {
            let akin = |other: &&Vec<String>| other[..4] == row[..4];
            let other = table.rows.iter().find(akin).unwrap();
            for (column, (new, old)) in again.header.iter().zip(row.iter().zip(other)) {
                // Fronts are of the whole field.
                if !column.ends_with("front") {
                    assert_eq!(new, old, "{name} {gate} {column}: run `headway tournament` again");
                }
            }
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let workloads = [workload("tournament-mild", &SHORT), workload("tournament-sessions", &SHORT)];
    let modes = [SyncMode::InFlight, SyncMode::PauseDrain];
    let files = |jobs| {
        let results = played(&workloads, &["sync", "pipeline_rl"], &modes, Some(2), jobs);
        let pictures = plot::draw_tournament(&results).unwrap();
        let names: Vec<String> = pictures.iter().map(|picture| picture.name.clone()).collect();
        assert_eq!(names[..2], ["tournament-mild-front", "tournament-mild-gates"]);
        (results.files().unwrap(), pictures, page::markdown(&results))
    };
    assert!(files(1) == files(3));
}

#[test]
fn what_cannot_be_configured_has_a_row_with_the_reason_and_the_rest_plays() {
    let set = [&SHORT[..], &["policy_training.publish_interval=3"]].concat();
    let workloads = [workload("tournament-mild", &set)];
    let results = played(&workloads, &["headway", "sync"], &[SyncMode::InFlight], Some(2), 0);
    let table = &results.table;
    let row = |gate: &str, knob: &str| {
        let is = |&row: &usize| table.text(row, "gate") == gate && table.text(row, "knob") == knob;
        (0..table.rows.len()).find(is).unwrap()
    };
    let shut = row("headway", "max_head_off_policyness=0");
    for invalid in [shut, row("sync", "")] {
        assert_eq!(table.text(invalid, "status"), "invalid");
        assert!(table.text(invalid, "note").len() > 20, "{}", table.text(invalid, "note"));
        assert_eq!(table.value(invalid, "trained_samples_per_hour"), None);
    }
    assert_eq!(table.text(row("headway", "max_head_off_policyness=4"), "status"), "ok");
    let told = page::not_run(&results).markdown();
    assert!(told.contains("| `sync` | 1 | invalid |"), "{told}");
}

/// The page ends with tables that are printed from the committed table, and shows its pictures.
#[test]
fn the_page_and_the_pictures_are_those_of_the_committed_table() {
    const PAGE: &str = "docs/tournament.md";
    const MARK: &str = "<!-- What follows is printed from the code: `make bless`. -->\n\n";
    let results = results();
    let text = fs::read_to_string(committed::root().join(PAGE)).unwrap();
    let (by_hand, _) = text.split_once(MARK).expect("the page has its mark");
    committed::check(PAGE, &format!("{by_hand}{MARK}{}", page::markdown(&results)));
    for picture in plot::draw_tournament(&results).unwrap() {
        let file = format!("results/tournament/{}.svg", picture.name);
        committed::check(&file, &picture.svg);
        assert!(by_hand.contains(&file), "the page shows {file}");
    }
}

/// The row of a workload, gate, knob and sync mode.
fn row(results: &TournamentResults, workload: &str, lead: [&str; 3]) -> usize {
    let is = |row: &usize| {
        ["gate", "knob", "sync_mode"].map(|column| results.table.text(*row, column)) == lead
    };
    results.rows_of(workload).into_iter().find(is).unwrap_or_else(|| panic!("no {lead:?}"))
}

/// The highest throughput of a workload with a p99 of at most `limit`, of all rows or of those
/// whose trained lengths are the workload's.
fn fastest(results: &TournamentResults, workload: &str, limit: f64, biased: bool) -> f64 {
    let table = &results.table;
    let rows = results.rows_of(workload).into_iter();
    rows.filter(|&row| number(table, row, "staleness_head_p99") <= limit)
        .filter(|&row| biased || !results.is_biased(row))
        .map(|row| number(table, row, "trained_samples_per_hour"))
        .fold(0.0, f64::max)
}

/// What docs/tournament.md says in words.
#[test]
fn what_the_page_concludes_is_in_the_table() {
    let results = results();
    let table = &results.table;
    let [mild, heavy, sessions] = WORKLOADS;
    let rate = |row: usize| number(table, row, "trained_samples_per_hour");
    let p99 = |row: usize| number(table, row, "staleness_head_p99");
    let eta = |eta: u32| format!("max_head_off_policyness={eta}");
    let ordered = |value: u32| format!("{} queue_type=admission_order", eta(value));
    let at =
        |workload: &str, gate: &str, knob: &str| row(&results, workload, [gate, knob, "in_flight"]);

    // Even lengths: at 4 the counting gate in the order of admission is as fast as any to 2%, and
    // in the order of arrival it breaks the limit; at 2 it cannot keep the limit, and waiting can.
    let ours = at(mild, "headway", &ordered(4));
    assert!(rate(ours) > 0.98 * fastest(&results, mild, 4.0, true) && p99(ours) <= 4.0);
    assert!(p99(at(mild, "headway", &eta(4))) > 4.0);
    assert!(p99(at(mild, "headway", &ordered(2))) > 2.0);
    let waits = at(mild, "headway_wait", &ordered(2));
    assert!(rate(waits) >= 0.999 * fastest(&results, mild, 2.0, true));
    // Throwing away costs little there, and cancelling at a small bound much.
    assert!(number(table, at(mild, "prime_rl", &eta(1)), "wasted_token_share") > 0.5);
    // Twice the throughput of one step off.
    assert!(rate(ours) > 2.0 * rate(at(mild, "one_step_off", "")));

    // A heavy tail: the fastest within 1, 2, 4 and 8 are biased, the others about half as fast.
    for (limit, share) in [(1.0, 0.5), (2.0, 0.5), (4.0, 0.5), (8.0, 0.8)] {
        let unbiased = fastest(&results, heavy, limit, false);
        assert!(unbiased < share * fastest(&results, heavy, limit, true), "{limit}");
    }
    let cancels = at(heavy, "prime_rl", &eta(1));
    assert!(number(table, cancels, "wasted_token_share") > 0.7);
    assert!(number(table, cancels, "trained_length_ratio") < 0.6);
    // Where aggregate bounds lose: a p99 of three times η, with a mean of η.
    for value in [1, 2, 4] {
        let ours = at(heavy, "headway", &ordered(value));
        assert!(p99(ours) >= 3.0 * f64::from(value));
        assert!((number(table, ours, "staleness_head_mean") - f64::from(value)).abs() < 0.05);
    }
    // The discarding rules are alike.
    let strict = [
        at(heavy, "headway_strict", &eta(4)),
        at(heavy, "roll", "async_generation_ratio=4"),
        at(heavy, "prime_rl", &eta(4)),
    ];
    let slowest = strict.iter().map(|&row| rate(row)).fold(f64::INFINITY, f64::min);
    assert!(slowest > 0.95 * fastest(&results, heavy, 4.0, true));

    // Sessions: parking nearly doubles what a count of 2 lets through, whoever counts, and takes
    // the tail away; the synchronous gate gains sevenfold.
    let parked =
        row(&results, sessions, ["areal", "max_head_off_policyness=2 parking", "in_flight"]);
    let bare = at(sessions, "areal", &eta(2));
    assert!(rate(parked) > 1.8 * rate(bare));
    assert!(
        number(table, bare, "staleness_head_max")
            > 3.0 * number(table, parked, "staleness_head_max")
    );
    assert!(rate(at(sessions, "sync", "parking")) > 6.0 * rate(at(sessions, "sync", "")));
    assert!(results.is_biased(at(sessions, "prime_rl", &eta(4))));
    assert!(number(table, at(sessions, "openclaw", ""), "wasted_token_share") > 0.25);

    // Sync modes: where turns are long, whoever waits for their end loses a quarter and more.
    for workload in [mild, heavy] {
        for mode in ["pause_drain", "rolling"] {
            let slow = row(&results, workload, ["headway", &eta(4), mode]);
            assert!(
                rate(slow) < 0.75 * rate(at(workload, "headway", &eta(4))),
                "{workload} {mode}"
            );
        }
    }
    for mode in ["pause_drain", "pause_abort", "pause_keep", "rolling"] {
        let other = row(&results, sessions, ["headway", &eta(4), mode]);
        assert!(rate(other) > 0.95 * rate(at(sessions, "headway", &eta(4))), "{mode}");
    }
    // At the published drift staleness costs next to nothing.
    for row in WORKLOADS.iter().flat_map(|workload| results.rows_of(workload)) {
        assert!(number(table, row, "ess_samples_per_hour") > 0.99 * rate(row));
    }
}
