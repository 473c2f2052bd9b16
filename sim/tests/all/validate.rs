//! Predictions beside what recorded runs measured.

use headway_shared::config::Config;
use headway_shared::core::Scheduler;
use headway_shared::input::Input;
use headway_shared::record::RecordedRun;
use headway_shared::source::{Reported, RunSource, SourceError};
use headway_shared::time::{Span, Time};
use headway_sim::report::plot::draw_validation;
use headway_sim::run::{RunOptions, simulate};
use headway_sim::scenario::{Scenario, Warmup};
use headway_sim::validate::{
    MeasureError, Measured, Row, Run, Task, Tolerances, ValidateError, Validation, measure,
    validate,
};

use super::world_support::{Silent, load, recorded};

/// A judge that is seldom the bottleneck, turns of many lengths, and a bound of 2 versions.
const LAB: &str = r#"
[scenario]
name = "lab"
steps = 220
warmup_steps = 20

[policy_serving]
over_limit = "hold"

[reward_judging]
judge_needs = "turn"
judge_concurrency = 4

[policy_training]
batch_size = 8

[world.serving]
decode_base_sec = 0.01

[world.clients]
kind = "slots"
slots = 24
prompt_tokens = { kind = "constant", value = 50 }
output_tokens = { kind = "lognormal", mean = 100, sigma = 0.5 }

[world.judge]
vote = { kind = "lognormal", mean_sec = 0.3, sigma = 0.3 }

[world.trainer]
step = { kind = "lognormal", mean_sec = 1, sigma = 0.2 }

[world.weights]
load = { kind = "constant", sec = 0.1 }

[world.drift]
sigma0 = 0.02
a = 0.002
p = 1.5
sampled_tokens = 512
"#;

/// What is not known exactly of it: the judge.
const FITTED: &str = r#"
[calibration]
from = "lab.db"
parameters = [{ key = "world.judge.vote.mean_sec", value = 0.3, low = 0.2, high = 0.45 }]
"#;

/// The record of a run of the lab under some settings.
fn record(name: &str, set: &[&str]) -> RecordedRun {
    recorded(&load(LAB, set), name).0
}

fn measured(run: &dyn RunSource, scenario: &Scenario) -> Measured {
    measure(run, scenario.warmup).unwrap()
}

fn run(measured: Measured, set: &[&str]) -> Run {
    Run { measured, set: set.iter().map(|set| (*set).to_owned()).collect() }
}

/// A task with what most tests do not vary.
fn task<'a>(scenario: &'a Scenario, runs: &'a [Run], tolerances: &'a Tolerances) -> Task<'a> {
    let warmup = scenario.warmup;
    Task { scenario, runs, warmup, replications: 8, jobs: 2, tolerances, baseline: None }
}

fn compared(scenario: &Scenario, runs: &[Run]) -> Validation {
    validate(&task(scenario, runs, &Tolerances::default()), &Silent).unwrap()
}

fn row<'v>(validation: &'v Validation, run: usize, name: &str) -> &'v Row {
    let is = |row: &&Row| row.run == run && row.figure().name == name;
    validation.rows.iter().find(is).unwrap_or_else(|| panic!("{name} of {run} is not compared"))
}

fn missed(validation: &Validation, run: usize) -> Vec<&'static str> {
    let of = validation.misses().filter(|row| row.run == run);
    of.map(|row| row.figure().name).collect()
}

fn width(row: &Row) -> f64 {
    let (low, high) = row.prediction.unwrap().interval.unwrap();
    high - low
}

#[test]
fn runs_of_the_scenario_itself_are_predicted_under_their_own_configurations() {
    let scenario = load(LAB, &[]);
    let settings: [&[&str]; 3] =
        [&[], &["max_head_off_policyness=0"], &["max_head_off_policyness=6", "batch_size=4"]];
    let runs = settings.map(|set| run(measured(&record("own", set), &scenario), &[]));
    let validation = compared(&scenario, &runs);
    for place in 0..runs.len() {
        assert_eq!(missed(&validation, place), [""; 0], "run {place}");
        assert_eq!(validation.runs[place].notes, [""; 0], "run {place}");
    }
    assert!(validation.is_good());
    let judged = validation.rows.iter().filter_map(Row::is_inside);
    let (inside, all) = judged.fold((0, 0), |(inside, all), is| (inside + u32::from(is), all + 1));
    assert!(f64::from(inside) > 0.8 * f64::from(all), "{inside} of {all} inside");
    assert_eq!(validation.keys, ["max_head_off_policyness", "batch_size"]);
    assert_eq!(validation.runs[2].settings, ["6", "4"]);
    let tight = row(&validation, 1, "staleness_head_mean");
    assert_eq!((tight.measured, tight.prediction.unwrap().value), (Some(0.0), 0.0));
    assert!(row(&validation, 2, "staleness_head_mean").measured > Some(1.0));
}

#[test]
fn a_run_of_another_world_is_missed_where_it_differs_and_the_warning_says_what_to_set() {
    let scenario = load(LAB, &[]);
    let slow = "world.judge.vote.mean_sec=3";
    let measured = measured(&record("slow-judge", &[slow]), &scenario);
    let runs = [run(measured.clone(), &[]), run(measured, &[slow])];
    let validation = compared(&scenario, &runs);
    let misses = missed(&validation, 0);
    for name in ["trained_samples_per_hour", "steps_per_hour", "staleness_part_judge_queue"] {
        assert!(misses.contains(&name), "{misses:?}");
    }
    let [note] = &validation.runs[0].notes[..] else { panic!("{:?}", validation.runs[0].notes) };
    assert!(note.starts_with("its world differs: vote_seconds_mean is 3"), "{note}");
    assert!(note.ends_with("set world.judge.vote"), "{note}");
    assert!(!validation.is_good());
    // What is said of the second run is what was recorded.
    assert_eq!((missed(&validation, 1), validation.runs[1].notes.len()), (vec![], 0));
    assert_eq!(validation.keys, ["world.judge.vote.mean_sec"]);
    assert_eq!(validation.runs[1].settings, ["3"]);
}

#[test]
fn what_is_unknown_of_the_numbers_widens_the_interval() {
    let [exact, fitted] = [LAB.to_owned(), format!("{LAB}{FITTED}")].map(|text| load(&text, &[]));
    let run = [run(measured(&record("own", &[]), &exact), &[])];
    let [exact, fitted] = [exact, fitted].map(|scenario| compared(&scenario, &run));
    assert_eq!((exact.uncertain, fitted.uncertain), (0, 1));
    assert_eq!(fitted.fitted_to, "lab.db");
    let of = |validation: &Validation, name| width(row(validation, 0, name));
    let vote = "vote_seconds_mean";
    assert!(of(&fitted, vote) > 5.0 * of(&exact, vote));
    // 0.2 to 0.45 at 8 replications: the t quantile of 7 degrees of freedom, not the normal one.
    assert!((0.2..0.45).contains(&of(&fitted, vote)), "{}", of(&fitted, vote));
    let tokens = "turn_tokens_mean";
    assert!(of(&fitted, tokens) < 1.5 * of(&exact, tokens));
}

#[test]
fn what_is_set_takes_the_place_of_a_fitted_number() {
    let scenario = load(&format!("{LAB}{FITTED}"), &[]);
    let measured = measured(&record("own", &["world.judge.vote.mean_sec=1"]), &scenario);
    let runs = [run(measured, &["world.judge.vote.mean_sec=1"])];
    let validation = compared(&scenario, &runs);
    let vote = row(&validation, 0, "vote_seconds_mean");
    assert_eq!(vote.is_inside(), Some(true));
    assert!(width(vote) < 0.1, "{}", width(vote));
}

/// Two short runs that differ in a key, compared by so many threads.
fn of_two(jobs: usize) -> Validation {
    let scenario = load(&format!("{LAB}{FITTED}"), &["scenario.steps=60"]);
    let runs = [
        run(measured(&record("first", &["scenario.steps=60"]), &scenario), &[]),
        run(
            measured(&record("second", &["scenario.steps=60", "batch_size=4"]), &scenario),
            &["world.judge.vote.mean_sec=0.3"],
        ),
    ];
    let tolerances = Tolerances::default();
    let task = Task { jobs, replications: 3, ..task(&scenario, &runs, &tolerances) };
    validate(&task, &Silent).unwrap()
}

/// The files of a small validation.
pub(crate) fn some_files() -> Vec<(String, Vec<u8>)> {
    of_two(0).files().unwrap()
}

#[test]
fn what_its_files_hold_has_the_verdicts_of_the_validation() {
    let validation = of_two(0);
    let stored = validation.as_stored().unwrap();
    assert_eq!(stored.files().unwrap().len(), 2);
    let verdicts = |of: &Validation| -> Vec<_> {
        of.rows.iter().map(|row| (row.run, row.figure, row.is_inside(), row.is_within())).collect()
    };
    assert_eq!(verdicts(&stored), verdicts(&validation));
    assert_eq!(stored.runs.len(), 2);
    for (one, other) in stored.runs.iter().zip(&validation.runs) {
        assert_eq!((&one.name, &one.settings), (&other.name, &other.settings));
        assert_eq!((&one.notes, &one.failed), (&other.notes, &other.failed));
    }
    assert_eq!((&stored.keys, &stored.about), (&validation.keys, &validation.about));
    assert_eq!(stored.as_stored().unwrap(), stored, "what is read is what was written");
}

#[test]
fn a_validation_is_the_same_on_any_number_of_threads() {
    let files = |jobs: usize| {
        let validation = of_two(jobs);
        (validation.files().unwrap(), draw_validation(&validation).unwrap())
    };
    assert_eq!(files(1), files(3));
}

/// A record with numbers that its train steps reported.
struct Reporting {
    run: RecordedRun,
    reported: Vec<Reported>,
}

impl Reporting {
    /// The same ratio in every step, or so many times another.
    fn new(run: RecordedRun, p99: impl Fn(usize) -> f64) -> Self {
        let mut steps = Vec::new();
        run.inputs(&mut |_, input| {
            if let Input::StepEnded { step, ok: true } = input {
                steps.push(*step);
            }
        })
        .unwrap();
        let reported = steps.into_iter().enumerate().map(|(place, step)| Reported {
            step,
            name: "learner_rollout_p99".into(),
            staleness: None,
            value: p99(place),
        });
        Self { reported: reported.collect(), run }
    }
}

impl RunSource for Reporting {
    fn name(&self) -> String {
        self.run.name()
    }
    fn config(&self) -> &Config {
        self.run.config()
    }
    fn core(&self) -> Result<Scheduler, SourceError> {
        self.run.core()
    }
    fn inputs(&self, each: &mut dyn FnMut(Time, &Input)) -> Result<(), SourceError> {
        self.run.inputs(each)
    }
    fn reported(&self) -> Result<Vec<Reported>, SourceError> {
        Ok(self.reported.clone())
    }
}

#[test]
fn reported_ratios_are_compared_with_the_mean_over_steps_and_scored_against_the_fitted_run() {
    let scenario = load(LAB, &[]);
    let name = "learner_rollout_step_p99";
    let loose = "max_head_off_policyness=8";
    // The middle of a few runs: one alone may lie at the end of the interval.
    let predicted = |set: &[&str]| {
        let scenario = load(LAB, set);
        let of = |replication: u32| {
            let result = simulate(&scenario, replication, RunOptions::default()).unwrap();
            result.summary.get(name).unwrap()
        };
        (9..13).map(of).sum::<f64>() / 4.0
    };
    let (fitted, other) = (predicted(&[]), predicted(&[loose]));
    assert!(other > fitted + 0.02, "an older sample is further off: {fitted} {other}");
    // The steps of the warm-up say something else, which does not count.
    let with = |set: &[&str], p99: f64| {
        Reporting::new(record("run", set), move |step| match step {
            0..20 => 9.0,
            step => p99 + 0.001 * (step % 5) as f64 - 0.002,
        })
    };
    let baseline = measured(&with(&[], fitted), &scenario);
    let runs = [
        run(measured(&with(&[loose], other), &scenario), &[]),
        run(measured(&with(&[loose], other + 1.0), &scenario), &[]),
    ];
    let tolerances = Tolerances::default();
    let at = |runs: &[Run]| {
        let task = Task { baseline: Some(&baseline), ..task(&scenario, runs, &tolerances) };
        validate(&task, &Silent).unwrap()
    };
    let validation = at(&runs);
    let good = row(&validation, 0, name);
    assert!((good.measured.unwrap() - other).abs() < 1e-3, "{:?}", good.measured);
    assert_eq!(good.is_within(), Some(true), "{good:?}");
    assert!(missed(&validation, 1).contains(&name), "{:?}", missed(&validation, 1));
    let scores = at(&runs[..1]).scores;
    let [score] = &scores[..] else { panic!("{scores:?}") };
    assert!(score.predicted < 0.5 * score.baseline.unwrap(), "{score:?}");
    let names: Vec<String> =
        draw_validation(&validation).unwrap().into_iter().map(|picture| picture.name).collect();
    assert_eq!(names, ["validation", "validation-ratios", "validation-idle"]);
}

#[test]
fn a_scheduling_key_cannot_be_set() {
    let scenario = load(LAB, &[]);
    let runs = [run(measured(&record("own", &[]), &scenario), &["judge_concurrency=9"])];
    let tolerances = Tolerances::default();
    let task = task(&scenario, &runs, &tolerances);
    let error = validate(&task, &Silent).unwrap_err();
    assert!(matches!(error, ValidateError::Scheduling { .. }));
    let expected = "own: `judge_concurrency=9` changes the scheduling sections";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn a_run_that_is_over_before_its_warm_up_is_not_compared() {
    let warmup = Warmup { steps: 220, time: Span::ZERO };
    let error = measure(&record("short", &[]), warmup).unwrap_err();
    assert!(matches!(error, MeasureError::Short { .. }));
    assert_eq!(error.to_string(), "the run made 220 train steps, and the warm-up takes 220 steps");
}

#[test]
fn a_world_that_cannot_do_what_the_run_did_is_a_failure_with_its_reason() {
    let scenario = load(LAB, &["world.judge.hang_share=1", "judge_timeout_sec=30"]);
    let runs = [run(measured(&record("own", &["scenario.steps=40"]), &scenario), &[])];
    let tolerances = Tolerances::default();
    let task = Task { replications: 2, ..task(&scenario, &runs, &tolerances) };
    let validation = validate(&task, &Silent).unwrap();
    assert!(!validation.is_good());
    let (what, count) = validation.runs[0].failed.clone().unwrap();
    assert_eq!(count, 2);
    assert!(what.contains("train steps in"), "{what}");
}

#[test]
fn a_pause_that_is_not_resumed_is_the_end_of_a_run() {
    let steps = |faults: &str| {
        let set = ["scenario.steps=0", "scenario.duration_sec=200", faults];
        let run = record("run.db", &set);
        measured(&run, &load(LAB, &set)).steps
    };
    let pause = "{ time_sec = 100, kind = \"operator_pause\" }";
    let resume = "{ time_sec = 101, kind = \"operator_resume\" }";
    let whole = steps("world.faults.at=[]");
    let paused = steps(&format!("world.faults.at=[{pause}]"));
    let resumed = steps(&format!("world.faults.at=[{pause}, {resume}]"));
    assert!((4 * whole..6 * whole).contains(&(10 * paused)), "{paused} of {whole}");
    // What was ready when it was paused is trained then.
    assert!(resumed + 4 >= whole, "{resumed} of {whole}");
}
