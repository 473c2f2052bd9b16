//! `tune`: what it finds, beside what the whole grid holds.

use std::path::Path;

use headway_shared::config::tuned::Tuned;
use headway_shared::config::{Diagnostics, Layers};
use headway_sim::run::{RunOptions, simulate};
use headway_sim::scenario::Scenario;
use headway_sim::stats::paired_difference;
use headway_sim::sweep::{Axis, Planned, grid, replicate};
use headway_sim::tune::aim::Aim;
use headway_sim::tune::results::TuneResults;
use headway_sim::tune::{Task, TuneError, Tuning, space, tune};

use super::world_support::{Silent, load};

/// Two replicas, a trainer that is about as fast, and a judge that is a little slow.
const SMALL: &str = r#"
[scenario]
name = "small"
steps = 40
duration_sec = 1e6
warmup_steps = 8
replications = 4

[reward_judging]
judge_needs = "turn"
judge_concurrency = 8

[policy_serving]
over_limit = "hold"
hold_sec = 0

[policy_training]
batch_size = 8
max_head_off_policyness = 2

[world.serving]
replicas = 2
decode_base_sec = 0.05
decode_per_sequence_sec = 0.002
max_batch = 16

[world.clients]
kind = "slots"
slots = 40
prompt_tokens = { kind = "constant", value = 50 }
output_tokens = { kind = "lognormal", mean = 100, sigma = 0.8 }
max_output_tokens = 1000

[world.judge]
vote = { kind = "lognormal", mean_sec = 2, sigma = 0.5 }

[world.trainer]
step = { kind = "lognormal", median_sec = 4, p99_sec = 8 }

[world.weights]
save = { kind = "constant", sec = 0.5 }
transfer = { kind = "constant", sec = 0.2 }
load = { kind = "constant", sec = 1 }
"#;

const RATE: &str = "trained_samples_per_hour";

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn aim(scenario: &Scenario, metric: &str, kept: &[&str]) -> Aim {
    Aim::parse(scenario, metric, &texts(kept)).unwrap()
}

fn axes(scenario: &Scenario, expressions: &[&str]) -> Vec<Axis> {
    space::axes(scenario, &texts(expressions)).unwrap()
}

fn task<'a>(scenario: &'a Scenario, aim: &'a Aim, axes: &'a [Axis]) -> Task<'a> {
    Task {
        scenario,
        warnings: Diagnostics::default(),
        aim,
        axes,
        replications: scenario.replications,
        budget: None,
        window: None,
        jobs: 2,
    }
}

fn tuned(task: &Task<'_>) -> Tuning {
    tune(task, &Silent).unwrap()
}

/// The values of the axes of what was chosen.
fn choice(tuning: &Tuning) -> Vec<&str> {
    let chosen = tuning.chosen.unwrap();
    tuning.candidates[chosen].values.iter().map(String::as_str).collect()
}

/// What the best point of the whole grid has of a metric, replication by replication: the one with
/// the highest mean that keeps `staleness_head_p99` within a limit. Points that do not fit are left
/// out.
fn best_of_the_grid(scenario: &Scenario, axes: &[Axis], metric: &str, most: f64) -> Vec<f64> {
    let planned = |choices: Vec<&headway_sim::sweep::Choice>| {
        let set = choices.iter().flat_map(|choice| choice.set.iter().cloned()).collect();
        Planned::new(scenario, Vec::new(), set).ok()
    };
    let points: Vec<Planned> = grid(axes).into_iter().filter_map(planned).collect();
    let run = |point: usize, replication: u32| {
        let result = simulate(&points[point].scenario, replication, RunOptions::default()).unwrap();
        ["staleness_head_p99", metric].map(|name| result.summary.get(name).unwrap())
    };
    let runs = replicate(points.len(), 0..scenario.replications, 2, run, || {}).unwrap();
    let mean = |runs: &[[f64; 2]], which: usize| {
        runs.iter().map(|run| run[which]).sum::<f64>() / runs.len() as f64
    };
    let fit = runs.into_iter().filter(|runs| mean(runs, 0) <= most);
    let best = fit.max_by(|one, other| mean(one, 1).total_cmp(&mean(other, 1)));
    best.unwrap().iter().map(|run| run[1]).collect()
}

/// Asserts that the choice is as good as the best of the whole grid, as far as chance lets one
/// tell, and that it took a quarter of the grid's runs at most.
fn assert_as_good_as_the_grid(scenario: &Scenario, expressions: &[&str], most: u32) {
    let axes = axes(scenario, expressions);
    let aim = aim(scenario, RATE, &[&format!("staleness_head_p99 <= {most}")]);
    let tuning = tuned(&task(scenario, &aim, &axes));
    let chosen = &tuning.candidates[tuning.chosen.unwrap()];
    let grid = tuning.points * u64::from(scenario.replications);
    assert!(tuning.runs * 4 <= grid, "{} of {grid} runs", tuning.runs);
    let found: Vec<f64> = chosen.runs.iter().map(|run| run.summary.get(RATE).unwrap()).collect();
    let best = best_of_the_grid(scenario, &axes, RATE, f64::from(most));
    let more = paired_difference(&found, &best).unwrap();
    let clear = more.mean > 0.0 && more.excludes_zero();
    assert!(!clear, "{:?} has {found:?}, the grid {best:?}", chosen.values);
    let staleness = chosen.metric("staleness_head_p99").unwrap();
    assert!(staleness.mean <= f64::from(most), "{staleness:?}");
}

#[test]
fn it_finds_what_the_whole_grid_holds_in_a_quarter_of_its_runs() {
    let space = [
        "max_head_off_policyness=0,1,2,3,4,6",
        "publish_interval=1,2,4",
        "sync_mode=pause_drain,pause_abort,in_flight",
        "judge_concurrency=2,8,16",
    ];
    for (seed, most) in [(1, 2), (2, 4), (3, 1)] {
        let scenario = load(SMALL, &[&format!("scenario.seed={seed}")]);
        assert_as_good_as_the_grid(&scenario, &space, most);
    }
}

/// Takes minutes: run by hand with `cargo test --release -p headway-sim -- --ignored openclaw`.
#[test]
#[ignore = "the whole grid takes minutes"]
fn it_finds_what_the_whole_grid_of_openclaw_holds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/openclaw.toml");
    let scenario = load(&std::fs::read_to_string(path).unwrap(), &[]);
    let space = [
        "max_head_off_policyness=0,1,2,4,8",
        "bound=aggregate,strict",
        "publish_interval=1,2,4",
        "sync_mode=pause_drain,pause_keep,in_flight,rolling",
        "max_batch_wait_sec=0,60",
    ];
    assert_as_good_as_the_grid(&scenario, &space, 4);
}

#[test]
fn a_throughput_without_a_bound_on_staleness_is_refused_with_what_to_add() {
    let scenario = load(SMALL, &[]);
    let refused = |metric: &str, kept: &[&str]| {
        Aim::parse(&scenario, metric, &texts(kept)).unwrap_err().to_string()
    };
    for kept in [&[][..], &["staleness_head_p99 >= 1"], &["serving_idle_share <= 0.5"]] {
        let said = refused(RATE, kept);
        assert!(said.starts_with("--maximize:1:1: `trained_samples_per_hour` grows for"), "{said}");
        assert!(said.contains("help: add --subject-to 'staleness_head_p99<=2'"), "{said}");
    }
    assert!(refused("steps_per_hour", &[]).contains("grows for ever"));
    assert!(refused("trained_sample_per_hour", &[]).contains("did you mean `trained_samples_per"));
    assert!(refused(RATE, &["stalenes_head_p99<=4"]).contains("--subject-to:1:1: "));
    assert!(refused("ess_samples_per_hour", &[]).contains("no [world.drift]"));
    assert!(refused(RATE, &["clipped_fraction <= 0.1"]).contains("no [world.drift]"));
    // A share does not grow for ever, and a bound on staleness is enough.
    for (metric, kept) in [("refused_share", &[][..]), (RATE, &["staleness_tail_mean<2"])] {
        assert!(Aim::parse(&scenario, metric, &texts(kept)).is_ok(), "{metric}");
    }
    let drift = "[world.drift]\nsigma0 = 0.02\nper_step = 1e-5\n";
    if let Ok((scenario, _)) =
        Scenario::load(&Layers::new().toml("t", format!("{SMALL}\n{drift}")), Path::new("."))
    {
        let kept = texts(&["clipped_fraction <= 0.1"]);
        assert!(Aim::parse(&scenario, RATE, &kept).is_ok());
    }
}

#[test]
fn of_what_is_as_good_the_least_stale_wins_and_then_what_changes_least() {
    let scenario = load(SMALL, &[]);
    // The same for every candidate.
    let aim = aim(&scenario, "turns_per_sample_mean", &[]);
    let eta = axes(&scenario, &["max_head_off_policyness=4,2,1,0"]);
    let tuning = tuned(&task(&scenario, &aim, &eta));
    assert_eq!(choice(&tuning), ["0"]);
    // Nothing reads it, so that all its values are one candidate by several names.
    let idle = axes(&scenario, &["correction_high=1.1,1.2,1.4"]);
    let tuning = tuned(&task(&scenario, &aim, &idle));
    assert_eq!(choice(&tuning), ["1.2"], "as it is");
    assert!(tuning.candidates.iter().skip(1).all(|candidate| candidate.same_as == Some(0)));
}

/// The files of a small search.
pub(super) fn some_files() -> Vec<(String, Vec<u8>)> {
    let scenario = load(SMALL, &["scenario.steps=16", "scenario.replications=2"]);
    let aim = aim(&scenario, RATE, &["staleness_head_p99<=2"]);
    let axes = axes(&scenario, &["max_head_off_policyness=0,2"]);
    let task = Task { jobs: 1, ..task(&scenario, &aim, &axes) };
    TuneResults::of(&tuned(&task), &task).files().unwrap()
}

#[test]
fn any_number_of_threads_gives_the_same_files() {
    let scenario = load(SMALL, &[]);
    let aim = aim(&scenario, RATE, &["staleness_head_p99<=2"]);
    let axes =
        axes(&scenario, &["max_head_off_policyness=0,1,2,3", "sync_mode=pause_drain,rolling"]);
    let made = |jobs: usize| {
        let task = Task { jobs, ..task(&scenario, &aim, &axes) };
        let tuning = tuned(&task);
        let files = TuneResults::of(&tuning, &task).files().unwrap();
        (files, tuning.tuned(&task, "small.toml", &[]).unwrap().to_toml())
    };
    let alone = made(1);
    assert_eq!(made(3), alone);
    assert_eq!(made(1), alone);
}

#[test]
fn where_nothing_keeps_the_constraints_the_nearest_is_named_and_by_how_much_it_fails() {
    let scenario = load(SMALL, &[]);
    let aim = aim(&scenario, RATE, &["staleness_head_p99<=4", "trained_samples_per_hour>=1e6"]);
    let axes = axes(&scenario, &["max_head_off_policyness=0,1,2"]);
    let task = task(&scenario, &aim, &axes);
    let tuning = tuned(&task);
    assert_eq!((tuning.chosen, tuning.predicted.is_none()), (None, true));
    assert!(tuning.tuned(&task, "small.toml", &[]).is_none());
    let verdict = tuning.verdict(&task);
    let said = &verdict[verdict.len() - 2];
    let start = "nothing that was tried keeps every constraint; the nearest is \
                 trained_samples_per_hour >= 1000000: it is ";
    assert!(said.starts_with(start) && said.ends_with(" beyond"), "{said}");
}

#[test]
fn combinations_that_do_not_fit_are_skipped_and_counted() {
    let scenario = load(SMALL, &[]);
    let aim = aim(&scenario, RATE, &["staleness_head_p99<=4"]);
    let some = axes(&scenario, &["max_head_off_policyness=0,1,2", "publish_interval=1,4"]);
    let tuning = tuned(&task(&scenario, &aim, &some));
    assert!(tuning.chosen.is_some() && tuning.unfit > 0, "{}", tuning.unfit);
    let none = axes(&scenario, &["publish_interval=4,5"]);
    let error = tune(&task(&scenario, &aim, &none), &Silent).unwrap_err();
    assert!(matches!(&error, TuneError::Misfit(misfit) if misfit.set.len() == 1), "{error}");
}

#[test]
fn a_space_is_read_with_the_place_of_what_is_wrong() {
    let scenario = load(SMALL, &[]);
    let refused =
        |expressions: &[&str]| space::axes(&scenario, &texts(expressions)).unwrap_err().to_string();
    let near = refused(&["policy_training.max_head_off_policynes=1"]);
    assert!(near.contains("did you mean `policy_training.max_head_off_policyness`?"), "{near}");
    let world = refused(&["world.serving.replicas=1,2"]);
    assert!(world.contains("is no key of the scheduling sections"), "{world}");
    let value = refused(&["sync_mode=pause_drain,pause_drian"]);
    assert!(value.starts_with("--space:1:11: `sync_mode` cannot be"), "{value}");
    let twice = refused(&["queue.max_size=1,2", "queue.output.max_size=4"]);
    assert!(twice.contains("is swept twice"), "{twice}");
    assert!(refused(&["cases"]).contains("no cases"));
    // A space may be larger than any grid that could be run.
    let wide = ["max_head_off_policyness=0..999", "publish_interval=1..999"];
    assert!(space::axes(&scenario, &texts(&wide)).is_ok());
}

#[test]
fn the_default_space_holds_what_has_an_effect_around_what_there_is() {
    let keys = |set: &[&str]| -> Vec<String> {
        let scenario = load(SMALL, set);
        let axes = axes(&scenario, &[]);
        let last = |axis: &Axis| axis.key.rsplit('.').next().unwrap_or("").to_owned();
        axes.iter().map(last).collect()
    };
    assert_eq!(
        keys(&[]),
        [
            "max_head_off_policyness",
            "bound",
            "publish_interval",
            "sync_mode",
            "max_size",
            "judge_concurrency",
            "max_batch_wait_sec"
        ]
    );
    let synchronous = ["gate=sync", "max_head_off_policyness=0"];
    assert_eq!(keys(&synchronous), keys(&[])[3..], "the gate bounds it, and publishes each step");
    assert_eq!(keys(&["gate=roll", "async_generation_ratio=2"])[0], "async_generation_ratio");
    let instant = keys(&["world.judge.vote={ kind = \"constant\", sec = 0 }"]);
    assert!(!instant.contains(&"judge_concurrency".to_owned()), "{instant:?}");
    let two_queues = keys(&["queue.output.max_size=64"]);
    assert_eq!(two_queues.iter().filter(|key| *key == "max_size").count(), 2, "{two_queues:?}");
    let expressions = |set: &[&str]| space::default_space(&load(SMALL, set)).join(" ");
    assert!(!expressions(&["world.serving.replicas=1"]).contains("rolling"));
    assert!(expressions(&[]).contains("max_head_off_policyness=0,1,2,4,8 "));
    assert!(expressions(&["max_head_off_policyness=10"]).contains("=0,1,2,4,5,8,10,20 "));
}

#[test]
fn a_tuned_file_comes_back_with_an_envelope_around_its_means() {
    let scenario = load(SMALL, &[]);
    let aim = aim(&scenario, RATE, &["staleness_head_p99<=2"]);
    let axes = axes(&scenario, &["max_head_off_policyness=1,2,4"]);
    let task = Task { window: None, ..task(&scenario, &aim, &axes) };
    let written = tuned(&task).tuned(&task, "small.toml", &texts(&["--seed 1"])).unwrap();
    let (read, warnings) = Tuned::load("tuned.toml", &written.to_toml()).unwrap();
    assert_eq!(read, written);
    assert!(warnings.is_empty(), "{warnings}");
    for (metric, range) in &written.envelope.ranges {
        let mean = written.predicted.iter().find(|(other, ..)| other == metric);
        let &(_, mean, _) = mean.unwrap();
        let slack = 0.5 * (range.high - range.low) + 1e-9;
        assert!(range.low - slack <= mean && mean <= range.high + slack, "{metric:?} {range:?}");
        assert!(range.low >= 0.0, "{metric:?} {range:?}");
    }
    let error = tune(
        &Task { window: Some(headway_shared::time::Span::from_secs(1_000_000)), ..task },
        &Silent,
    );
    assert!(error.unwrap_err().to_string().contains("write a shorter --window-sec"));
}
