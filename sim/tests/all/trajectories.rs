//! Sessions as samples in the simulated world.

use headway_shared::core::{Fate, Sample, Scheduler};
use headway_shared::input::{Input, VoteOutcome};
use headway_shared::record::{Entry, Reader};
use headway_sim::run::{Ended, RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;

use super::world_support::{SESSIONS, SLOTS, load, watch};

/// Episodes of three turns in environments, each a sample.
const EPISODES: &[&str] = &[
    "sample_unit=\"session\"",
    "world.clients.environment=true",
    "world.clients.turns={ kind = \"constant\", value = 3 }",
    "world.clients.growth_tokens={ kind = \"constant\", value = 20 }",
    "world.environment.step={ kind = \"exponential\", mean_sec = 5 }",
];

fn run(scenario: &Scenario) -> RunResult {
    simulate(scenario, 0, RunOptions::default()).unwrap()
}

/// The samples that a run trained, with its core recounted after every input.
fn trained(scenario: &Scenario, max_inputs: u64) -> (RunResult, Vec<Sample>) {
    let mut record = Vec::new();
    let options = RunOptions { record: Some(&mut record), max_inputs, ..RunOptions::default() };
    let result = simulate(scenario, 0, options).unwrap();
    let reader = Reader::open(record.as_slice()).unwrap();
    let mut core = Scheduler::new(reader.header().config.clone());
    let mut samples = Vec::new();
    for entry in reader {
        let Entry::Input { at, input, .. } = entry.unwrap() else { continue };
        core.handle(at, &input);
        while core.poll_action().is_some() {}
        assert_eq!(core.audit(), Ok(()), "at {at}, after {input:?}");
        let done = core.resolved().iter().filter(|resolved| resolved.fate == Fate::Trained);
        samples.extend(done.map(|resolved| resolved.sample.clone()));
    }
    (result, samples)
}

#[test]
fn episodes_in_environments_are_trained_whole() {
    let (result, samples) = trained(&load(SLOTS, EPISODES), 0);
    assert_eq!(result.ended, Ended::Steps);
    assert_eq!(samples.len(), 80);
    for sample in samples {
        assert_eq!((sample.turns, sample.tokens), (3, 300));
        assert_eq!(sample.prompt_tokens, 50 + 2 * 20, "its prompt, and two next states");
    }
    assert_eq!(result.summary.get("turns_per_sample_mean"), Some(3.0));
    assert_eq!(result.summary.get("wasted_token_share"), Some(0.0));
}

#[test]
fn the_judge_reads_a_trajectory_once_and_whole() {
    let scenario = load(SLOTS, EPISODES);
    let (moments, core) = watch(&scenario, headway_shared::time::Time::from_secs(2000));
    let votes = moments.iter().filter_map(|(_, input, _)| match input {
        Input::VoteEnded { outcome: VoteOutcome::Score(_), tokens, .. } => Some(*tokens),
        _ => None,
    });
    let votes: Vec<u32> = votes.collect();
    assert!(votes.len() > 20);
    // And writes its verdict.
    assert!(votes.iter().all(|&tokens| tokens >= 390), "{votes:?}");
    assert!(core.ledger().votes <= core.ledger().admitted);
}

#[test]
fn groups_of_episodes_train_with_every_slot_on_the_next_member() {
    let grouped = ["group_size=4", "min_group_size=4", "batch_size=2"];
    let set: Vec<&str> = EPISODES.iter().chain(&grouped).copied().collect();
    let (result, samples) = trained(&load(SLOTS, &set), 0);
    assert_eq!(result.ended, Ended::Steps);
    assert_eq!(samples.len(), 20 * 8);
    let of_first = samples.iter().filter(|sample| sample.group.is_some_and(|group| group.0 == 0));
    assert_eq!(of_first.count(), 4);
}

#[test]
fn two_groups_of_eight_episodes_train_at_eta_zero_while_a_third_prompt_waits() {
    let grouped = [
        "group_size=8",
        "min_group_size=8",
        "batch_size=2",
        "max_head_off_policyness=0",
        "world.clients.slots=24",
    ];
    for over_limit in ["over_limit=\"refuse\"", "over_limit=\"hold\""] {
        let set: Vec<&str> = EPISODES.iter().chain(&grouped).copied().chain([over_limit]).collect();
        let result = run(&load(SLOTS, &set));
        assert_eq!(result.ended, Ended::Steps, "{over_limit}");
        assert_eq!(result.summary.get("staleness_head_max"), Some(0.0));
    }
}

#[test]
fn sessions_of_people_are_samples_too() {
    // Who leaves without a word holds a place until then.
    let set = ["sample_unit=\"session\"", "session_idle_sec=120"];
    let (result, samples) = trained(&load(SESSIONS, &set), 0);
    assert!(samples.len() > 100, "{}", samples.len());
    assert!(samples.iter().any(|sample| sample.turns > 3));
    let mean = result.summary.get("turns_per_sample_mean").unwrap();
    assert!((2.5..4.5).contains(&mean), "{mean}");
}

/// Twenty turns a session, a batch of sixteen at η = 2, scored when the session ends.
#[test]
fn long_sessions_make_progress_within_their_bound_whatever_a_sample_is() {
    let long = [
        "world.clients.slots=64",
        "world.clients.environment=true",
        "world.clients.turns={ kind = \"constant\", value = 20 }",
        "world.clients.growth_tokens={ kind = \"constant\", value = 20 }",
        "world.environment.step={ kind = \"lognormal\", median_sec = 1, p99_sec = 10 }",
        "world.serving.replicas=4",
        "world.serving.decode_base_sec=0.01",
        "batch_size=16",
        "max_head_off_policyness=2",
        "fire_on_turn_end=false",
        "judge_concurrency=64",
        "queue.max_size=4096",
        "scenario.steps=12",
    ];
    let tails = "world.clients.output_tokens={ kind = \"lognormal\", median = 60, p99 = 600 }";
    for unit in ["turn", "session"] {
        for bound in ["aggregate", "strict"] {
            for late in ["discard", "wait"] {
                let unit_set = format!("sample_unit=\"{unit}\"");
                let bound_set = format!("bound=\"{bound}\"");
                let late_set = format!("late=\"{late}\"");
                let mut set = long.to_vec();
                set.extend([tails, &unit_set, &bound_set, &late_set]);
                let result = run(&load(SLOTS, &set));
                let what = format!("{unit}, {bound}, {late}");
                assert_eq!(result.ended, Ended::Steps, "{what}");
                let worst = result.summary.get("staleness_head_max").unwrap();
                assert!(bound == "aggregate" || worst <= 2.0, "{what}: {worst}");
                let turns = result.summary.get("turns_per_sample_mean");
                assert_eq!(turns, Some(if unit == "turn" { 1.0 } else { 20.0 }), "{what}");
            }
        }
    }
}

#[test]
fn what_is_late_is_wasted_with_all_its_turns() {
    let strict = [
        "bound=\"strict\"",
        "max_head_off_policyness=1",
        "world.clients.slots=32",
        "world.clients.output_tokens={ kind = \"lognormal\", median = 60, p99 = 2000 }",
        "scenario.steps=60",
    ];
    let set: Vec<&str> = EPISODES.iter().chain(&strict).copied().collect();
    let result = run(&load(SLOTS, &set));
    assert_eq!(result.ended, Ended::Steps);
    assert!(result.summary.get("discarded_late_share").unwrap() > 0.01);
    let (generated, trained, wasted) = (
        result.summary.get("generated_tokens_per_second").unwrap(),
        result.summary.get("trained_tokens_per_second").unwrap(),
        result.summary.get("wasted_tokens_per_second").unwrap(),
    );
    assert!(wasted > 0.0);
    // The rest is what is under way at the end.
    let rest = generated - trained - wasted;
    assert!(rest >= 0.0 && rest < 0.2 * generated, "{generated} {trained} {wasted}");
}
