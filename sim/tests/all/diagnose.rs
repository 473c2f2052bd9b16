//! Diagnoses of simulated runs: troubles and their cures, and each cause of ratios alone.

use headway_sim::diagnose::{Diagnosis, Evidence, Named, diagnose};
use headway_sim::report::results::Kind;
use headway_sim::scenario::Scenario;
use headway_sim::sweep::{Plan, Progress};

use super::world_support::{SLOTS, load, load_shipped, recorded};

struct Quiet;

impl Progress for Quiet {
    fn run_ended(&self) {}
}

/// As `headway simulate` and then `headway diagnose DIR` see it.
fn folder(scenario: &Scenario) -> (Evidence, Diagnosis) {
    let plan = Plan::new(Kind::Run, scenario, &[], 0..1).unwrap();
    let outcome = plan.run(1, None::<Vec<u8>>, &Quiet).unwrap();
    let evidence = Evidence::of_results(&outcome.results).unwrap();
    let diagnosis = diagnose(&evidence);
    (evidence, diagnosis)
}

/// As `headway simulate --record` and then `headway diagnose RUN` see it.
fn record(scenario: &Scenario) -> (Evidence, Diagnosis) {
    let evidence = Evidence::of_run(&recorded(scenario, "run.record").0).unwrap();
    let diagnosis = diagnose(&evidence);
    (evidence, diagnosis)
}

fn names(diagnosis: &Diagnosis) -> Vec<Named> {
    diagnosis.findings.iter().map(|finding| finding.named).collect()
}

/// A trouble and its cures, from the folder and from the record.
fn trouble(name: &str, expected: &[Named], cures: &[&str]) {
    let (scenario, _) = load_shipped(name);
    let (_, found) = folder(&scenario);
    assert_eq!(names(&found), expected, "{name}: {:?}", found.findings);
    for cure in cures {
        let (scenario, _) = load_shipped(cure);
        for (_, cured) in [folder(&scenario), record(&scenario)] {
            assert_eq!(names(&cured), [], "{cure}: {:?}", cured.findings);
            assert!(cured.signs.iter().all(|sign| sign.holds != Some(false)), "{cure}");
        }
    }
    let (_, found) = record(&scenario);
    // A record of a simulation has no ratios.
    let without: Vec<Named> = expected
        .iter()
        .copied()
        .filter(|named| !named.is_of_ratios() && *named != Named::DifferenceClimbs)
        .collect();
    assert_eq!(names(&found), without, "{name}: {:?}", found.findings);
}

#[test]
fn a_503_that_never_ends_is_named_and_its_cure_is_not() {
    let cures = ["trouble-503-never-ends-cured"];
    trouble("trouble-503-never-ends", &[Named::SyncNeverEnds], &cures);
    let (scenario, _) = load_shipped("trouble-503-never-ends");
    let finding = folder(&scenario).1.findings.remove(0);
    let setting = &finding.settings[0];
    assert_eq!((setting.key, &*setting.now), ("policy_serving.transfer_timeout_sec", "30 s"));
}

#[test]
fn votes_that_time_out_are_told_from_votes_that_are_refused() {
    let cures = ["trouble-judge-times-out-cured"];
    trouble("trouble-judge-times-out", &[Named::JudgeTimesOut], &cures);
    let cures = ["trouble-silence-after-start-cured"];
    trouble("trouble-silence-after-start", &[Named::JudgeSilent], &cures);
}

#[test]
fn a_full_queue_is_named_and_neither_of_its_cures_is() {
    let cures = ["trouble-queue-full-cured", "trouble-queue-full-cured-by-block"];
    trouble("trouble-queue-full", &[Named::QueueFull], &cures);
}

#[test]
fn a_difference_that_climbs_is_named_with_age_behind_it() {
    let cures = ["trouble-logprob-diff-climbs-cured"];
    let expected = [Named::DifferenceClimbs, Named::Age];
    trouble("trouble-logprob-diff-climbs", &expected, &cures);
}

/// A large policy at a small learning rate, in two engines of one precision.
const CALM: [&str; 6] = [
    "world.drift.sigma0=0.03",
    "world.drift.a=0.00001",
    "world.drift.p=1",
    "scenario.steps=150",
    "max_head_off_policyness=2",
    "over_limit=hold",
];

fn ratios(set: &[&str]) -> Diagnosis {
    folder(&load(SLOTS, &[&CALM[..], set].concat())).1
}

#[test]
fn without_a_cause_none_is_named() {
    let calm = ratios(&[]);
    assert_eq!(names(&calm), [], "{:?}", calm.findings);
    assert_eq!(calm.signs[2].holds, Some(true));
}

#[test]
fn a_long_queue_is_age() {
    let age = [
        "world.clients.slots=64",
        "max_head_off_policyness=16",
        "world.drift.a=0.004",
        "world.drift.p=1.3",
        "scenario.warmup_steps=30",
    ];
    let found = ratios(&age);
    assert_eq!(names(&found), [Named::Age], "{:?}", found.findings);
    let keys: Vec<_> = found.findings[0].settings.iter().map(|setting| setting.key).collect();
    assert!(keys.contains(&"queue.output.max_size"), "{keys:?}");
}

#[test]
fn turns_that_outlast_many_publications_are_mixing() {
    let mixing = [
        "sync_mode=in_flight",
        "world.clients.slots=64",
        "world.clients.output_tokens={ kind = \"uniform\", min = 1000, max = 3000 }",
        "max_head_off_policyness=32",
        "world.trainer.step={ kind = \"constant\", sec = 1 }",
        "world.drift.a=0.01",
        "scenario.warmup_steps=30",
    ];
    let found = ratios(&mixing);
    assert_eq!(names(&found), [Named::Mixing], "{:?}", found.findings);
}

#[test]
fn low_precision_is_numerics() {
    let found = ratios(&["world.drift.sigma0=0.15", "max_head_off_policyness=0"]);
    assert_eq!(names(&found), [Named::Numerics], "{:?}", found.findings);
}

#[test]
fn labels_of_other_tokens_and_zeros_are_labels() {
    let shifted = ratios(&["world.drift.shifted_share=0.1"]);
    assert_eq!(names(&shifted), [Named::Labels], "{:?}", shifted.findings);
    assert_eq!(shifted.findings[0].settings[0].key, "tokenisation");
    let padded = ratios(&["world.drift.padded_share=0.1"]);
    assert_eq!(names(&padded), [Named::Labels], "{:?}", padded.findings);
    assert_eq!(padded.findings[0].settings[0].key, "padding");
}

#[test]
fn the_cases_of_the_floor_scenario_are_told_apart() {
    let (floor, _) = load_shipped("drift-floor");
    let case = |set: &[&str]| {
        let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
        names(&folder(&floor.with_sets(&set).unwrap().0).1)
    };
    assert_eq!(case(&[]), []);
    assert_eq!(case(&["world.drift.sigma0=0.1"]), [Named::Numerics]);
    assert_eq!(case(&["world.drift.shifted_share=0.02"]), [Named::Labels]);
    assert_eq!(case(&["world.drift.padded_share=0.02"]), [Named::Labels]);
}

#[test]
fn a_record_and_a_folder_of_one_run_agree_and_the_record_has_the_ages() {
    let scenario = load(SLOTS, &["max_head_off_policyness=4"]);
    let ((folder, _), (record, _)) = (folder(&scenario), record(&scenario));
    for name in ["staleness_head_mean", "age_seconds_p95", "staleness_part_output_queue"] {
        assert!((folder.get(name).unwrap() - record.get(name).unwrap()).abs() < 1e-3, "{name}");
    }
    assert_eq!(folder.config, record.config);
    assert!(folder.waits.is_none());
    let waits = record.waits.unwrap();
    let trained: u64 = waits.bars().iter().map(|bar| bar.samples).sum();
    assert_eq!(trained, 20 * 4);
    let oldest = waits.bars().last().unwrap().to;
    assert!(
        oldest > waits.percentile(100).unwrap() && oldest <= 2.0 * waits.percentile(100).unwrap()
    );
}

#[test]
fn a_sweep_is_no_run() {
    let scenario = load(SLOTS, &[]);
    let plan = Plan::new(Kind::Sweep, &scenario, &[], 0..1).unwrap();
    let outcome = plan.run(1, None::<Vec<u8>>, &Quiet).unwrap();
    let error = Evidence::of_results(&outcome.results).unwrap_err();
    assert_eq!(error.to_string(), "it holds a sweep, whose points are different runs");
}
