//! The guard in the simulator: a run is held to the envelope of a healthy one.

use headway_shared::guard::{Found, Verdict, WATCHED, Windows};
use headway_shared::metrics::Summary;
use headway_shared::record::Reader;
use headway_shared::replay::replay;
use headway_shared::time::{Span, Time};
use headway_sim::run::{RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;

use crate::all::world_support::{SESSIONS, SLOTS, load};

const WINDOW: u64 = 200;
/// Whole hours, and as many steps as fit.
const LONG: [&str; 3] = ["steps=100000", "duration_sec=7200", "max_head_off_policyness=4"];
/// Five times slower than before, from here to the end.
const SLOW_FROM: u64 = 3600;
const SLOW: &str =
    "world.faults.at=[{ time_sec = 3600, kind = \"judge_slow\", lasting_sec = 7200, factor = 5 }]";

/// The metrics of a run's windows after the first, and the run.
fn windows(scenario: &Scenario, window: u64) -> (Vec<Summary>, RunResult) {
    let (mut windows, mut summaries) =
        (Windows::new(&scenario.config, Span::from_secs(window)), Vec::new());
    let mut watch = |now, input: &_, actions: &[_], core: &_| {
        summaries.extend(windows.observe(now, input, actions, core));
    };
    let options = RunOptions { watch: Some(&mut watch), ..RunOptions::default() };
    let result = simulate(scenario, 0, options).unwrap();
    (summaries, result)
}

/// `[guard]` with the range that each metric had in the windows of a healthy run, and a little more.
fn envelope(healthy: &[Summary]) -> Vec<String> {
    let mut set = vec![format!("guard.window_sec={WINDOW}")];
    for name in WATCHED {
        let values: Vec<f64> = healthy.iter().filter_map(|summary| summary.get(name)).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if low <= high {
            let room = 0.1 * (high - low).max(0.1 * high.abs());
            set.push(format!("guard.envelope.{name}=[{:?}, {:?}]", low - room, high + room));
        }
    }
    set
}

fn guarded(more: &[&str]) -> Scenario {
    let (healthy, _) = windows(&load(SLOTS, &LONG), WINDOW);
    let guard = envelope(&healthy[1..]);
    let set: Vec<&str> = LONG.iter().copied().chain(guard.iter().map(String::as_str)).collect();
    load(SLOTS, &[&set, more].concat())
}

fn run(scenario: &Scenario) -> Found {
    simulate(scenario, 0, RunOptions::default()).unwrap().guard.unwrap()
}

#[test]
fn a_run_that_does_what_was_predicted_never_deviates() {
    let found = run(&guarded(&[]));
    assert_eq!((found.deviations, found.outside, found.rolled_back), (0, 0, false));
    assert!(found.judged >= 7200 / WINDOW - 2, "{found:?}");
}

#[test]
fn a_judge_that_becomes_five_times_slower_is_noticed_within_three_windows() {
    let found = run(&guarded(&[SLOW]));
    let report = found.deviation.unwrap();
    assert_eq!((report.verdict, found.deviations, found.deviating), (Verdict::Deviates, 1, true));
    let noticed = report.at.since(Time::from_secs(SLOW_FROM));
    assert!(noticed <= Span::from_secs(3 * WINDOW), "after {noticed}");
    let judging = report.outside().find(|reading| reading.metric.name == "part_seconds_judging");
    assert!((judging.unwrap().value.unwrap() - 5.0).abs() < 0.5);
    assert!(report.to_string().contains("part_seconds_judging is 5 s, outside 0.99 to 1.01"));
}

#[test]
fn a_guard_that_may_goes_back_once_and_the_record_replays() {
    let back = "guard.previous={ policy_training = { batch_size = 4, max_head_off_policyness = 1 }, \
                reward_judging = { judge_needs = \"turn\" } }";
    let scenario = guarded(&[SLOW, back, "guard.on_deviation=rollback"]);
    let (mut record, mut etas) = (Vec::new(), Vec::new());
    let mut watch = |now: Time, _: &_, _: &[_], core: &headway_shared::core::Scheduler| {
        let eta = core.config().policy_training.max_head_off_policyness;
        if etas.last().is_none_or(|(_, last)| *last != eta) {
            etas.push((now, eta));
        }
    };
    let options =
        RunOptions { record: Some(&mut record), watch: Some(&mut watch), ..RunOptions::default() };
    let result = simulate(&scenario, 0, options).unwrap();
    let found = result.guard.unwrap();
    let report = found.deviation.unwrap();
    assert!(found.rolled_back && report.verdict == Verdict::RollBack);
    // At once, once, and for good.
    assert_eq!(etas, [(Time::ZERO, 4), (report.at, 1)]);
    let replayed = replay(Reader::open(record.as_slice()).unwrap()).unwrap();
    assert_eq!(replayed.decisions.digest, result.digest);
    assert_eq!(found.last.unwrap().at, report.at, "nothing is judged afterwards");
}

#[test]
fn what_an_operator_changes_is_not_judged_until_it_has_settled() {
    let change = "world.faults.at=[{ time_sec = 3600, kind = \"reconfigure\", \
                  set = [\"max_head_off_policyness=4\"] }]";
    let settle = format!("guard.settle_sec={}", 10 * WINDOW);
    let found = run(&guarded(&[change, &settle]));
    assert_eq!(found.deviations, 0);
    // Ten windows at the start and ten after the change.
    assert!(found.judged <= 7200 / WINDOW - 18, "{found:?}");
}

#[test]
fn windows_share_out_a_run_without_loss() {
    let scenario = load(SESSIONS, &[]);
    let mut windows = Windows::new(&scenario.config, Span::from_secs(600));
    let (mut parts, mut whole) = ([0.0; 2], [0.0; 2]);
    let mut watch = |now, input: &_, actions: &[_], core: &headway_shared::core::Scheduler| {
        let Some(window) = windows.observe(now, input, actions, core) else { return };
        let hours = window.get("duration_seconds").unwrap() / 3600.0;
        parts[0] += window.get("offered_per_hour").unwrap() * hours;
        parts[1] += window.get("trained_samples_per_hour").unwrap() * hours;
        whole = [core.ledger().offered, core.ledger().trained].map(|count| count as f64);
    };
    let options = RunOptions { watch: Some(&mut watch), ..RunOptions::default() };
    simulate(&scenario, 0, options).unwrap();
    assert!(whole[1] > 100.0);
    assert!(parts.iter().zip(whole).all(|(part, all)| (part - all).abs() < 1e-6), "{parts:?}");
}

#[test]
fn a_window_s_means_are_those_of_its_own_samples() {
    let (windows, result) = windows(&load(SLOTS, &LONG), WINDOW);
    let trained = |summary: &Summary| summary.staleness().total() as f64;
    let weighted: f64 = windows
        .iter()
        .filter_map(|window| Some(trained(window) * window.get("staleness_head_mean")?))
        .sum();
    let samples: f64 = windows.iter().map(trained).sum();
    let whole = result.summary.get("staleness_head_mean").unwrap();
    assert!((weighted / samples - whole).abs() < 0.05, "{} and {whole}", weighted / samples);
}
