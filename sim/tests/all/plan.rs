//! `plan` in worlds whose best split is known.

use std::path::Path;

use headway_shared::config::{Layers, Table};
use headway_sim::plan::results::PlanResults;
use headway_sim::plan::split::{Place, smallest, splits};
use headway_sim::plan::{PlanError, Planning, Task, plan};
use headway_sim::scenario::{Layout, Scenario};
use headway_sim::sweep::{Axis, over};

use super::world_support::{Silent, load};

/// A replica holds two turns of 10 s: S of them give 0.2 * S samples a second. A step on 8 samples
/// of 150 tokens takes 40 / T seconds on T GPUs, which takes 0.2 * T samples a second. So N GPUs
/// are best split in halves, and give 0.1 * N samples a second.
const HALVES: &str = r#"
[scenario]
name = "halves"
steps = 60
duration_sec = 1e6
warmup_steps = 20
replications = 2

[reward_judging]
judge_needs = "turn"
judge_concurrency = 1000

[policy_serving]
sync_mode = "pause_keep"
over_limit = "hold"
hold_sec = 0

[policy_training]
batch_size = 8
max_head_off_policyness = 4

[world.serving]
decode_base_sec = 0.1
max_batch = 2

[world.clients]
kind = "slots"
slots = 100
prompt_tokens = { kind = "constant", value = 50 }
output_tokens = { kind = "constant", value = 100 }

[world.judge]
vote = { kind = "constant", sec = 0 }

[world.trainer]
sec_per_token = 0.033333333333
gpus = 1
"#;

/// The number of the line that begins so.
fn line(text: &str, start: &str) -> usize {
    1 + text.lines().position(|line| line.starts_with(start)).unwrap()
}

fn axes(expressions: &[&str]) -> Vec<Axis> {
    let expressions: Vec<String> = expressions.iter().map(|text| (*text).to_owned()).collect();
    over::parse(&expressions, Table::EMPTY, &[]).unwrap()
}

fn task<'a>(scenario: &'a Scenario, gpus: u32, axes: &'a [Axis]) -> Task<'a> {
    Task { scenario, gpus, axes, constraints: &[], replications: 2, exhaustive: false, jobs: 2 }
}

fn planned(scenario: &Scenario, gpus: u32) -> Planning {
    plan(&task(scenario, gpus, &[]), &Silent).unwrap()
}

/// The chosen split's label and its samples per second.
fn choice(planning: &Planning) -> (String, f64) {
    let chosen = &planning.options[planning.chosen.unwrap()];
    (chosen.candidate.split.label(), chosen.effective.unwrap().mean / 3600.0)
}

fn gain(planning: &Planning, place: Place) -> f64 {
    planning.gains.iter().find(|gain| gain.place == place).unwrap().per_gpu.unwrap().mean
}

#[test]
fn halves_are_found_with_the_throughput_that_arithmetic_gives() {
    let (split, rate) = choice(&planned(&load(HALVES, &[]), 8));
    assert_eq!(split, "4+4");
    assert!((rate - 0.8).abs() < 0.02, "{rate}");
}

#[test]
fn one_more_gpu_helps_where_the_bottleneck_is_and_nowhere_else() {
    let scenario = load(HALVES, &[]);
    let planning = planned(&scenario, 7);
    assert_eq!(choice(&planning).0, "3+4", "of two that are as fast, the one with less staleness");
    assert!((gain(&planning, Place::Serving) - 1.0 / 3.0).abs() < 0.03);
    assert!(gain(&planning, Place::Trainer).abs() < 0.01);
    let verdict = planning.verdict(&task(&scenario, 7, &[]));
    let lines: Vec<&str> = verdict.iter().map(String::as_str).collect();
    let [.., take, bottleneck, more] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(take.starts_with("take 3 serving + 4 trainer GPUs at η = 4: "), "{take}");
    assert!(bottleneck.starts_with("bottleneck: serving"), "{bottleneck}");
    assert!(more.starts_with("one more GPU: serving +3"), "{more}");
}

#[test]
fn asynchronous_training_on_too_few_gpus_is_slower_than_synchronous() {
    // The trainer takes four, which leaves one replica: 0.2 samples a second. Shared in time, five
    // replicas generate 8 turns in 10 s, and five GPUs train them in 8 s.
    let scenario = load(HALVES, &["plan.min_trainer_gpus=4"]);
    let few = planned(&scenario, 5);
    let (split, rate) = choice(&few);
    assert_eq!(split, "5 time-shared");
    assert!((rate - 8.0 / 18.0).abs() < 0.01, "{rate}");
    let said = few.verdict(&task(&scenario, 5, &[]));
    assert!(said[0].contains("1 serving + 4 trainer GPUs at η = 4 is slower, by 5"), "{said:?}");
    // On more of them it is the other way round.
    let (split, rate) = choice(&planned(&scenario, 12));
    assert_eq!(split, "6+6");
    assert!((rate - 1.2).abs() < 0.03, "{rate}");
}

#[test]
fn a_changeover_and_a_slower_trainer_are_paid_where_time_is_shared() {
    let set = ["plan.layouts=[\"time_shared\"]", "plan.switch_sec=2", "plan.time_shared_speed=0.5"];
    // 10 s of generating, 2 * 5 s of training, two changes.
    let (_, rate) = choice(&planned(&load(HALVES, &set), 8));
    assert!((rate - 8.0 / 24.0).abs() < 0.01, "{rate}");
}

#[test]
fn side_by_side_both_loops_are_slower_while_a_step_runs() {
    let set = ["plan.layouts=[\"colocated\"]", "plan.colocated_speed=0.5"];
    // A step of 5 s takes 10 s, and is all that ever runs: serving keeps half of 1.6 samples/s.
    let (split, rate) = choice(&planned(&load(HALVES, &set), 8));
    assert_eq!(split, "8 colocated");
    assert!((rate - 0.8).abs() < 0.03, "{rate}");
}

#[test]
fn the_search_ranks_as_every_split_simulated_does() {
    let scenario = load(HALVES, &["scenario.steps=30", "scenario.warmup_steps=10"]);
    let axes = axes(&["max_head_off_policyness=0,1,4"]);
    let searched = plan(&task(&scenario, 24, &axes), &Silent).unwrap();
    let every = plan(&Task { exhaustive: true, ..task(&scenario, 24, &axes) }, &Silent).unwrap();
    assert!(searched.options.len() < every.options.len());
    assert_eq!(every.options.len(), every.candidates);
    assert_eq!(choice(&searched), choice(&every));
    // Nothing that the search left out is faster than what it found.
    let best = |planning: &Planning| {
        let rates = planning.options.iter().map(|option| option.effective.unwrap().mean);
        rates.fold(0.0, f64::max)
    };
    assert_eq!(best(&searched), best(&every));
}

/// The files of a small plan.
pub(super) fn some_files() -> Vec<(String, Vec<u8>)> {
    let scenario = load(HALVES, &["scenario.steps=12", "scenario.warmup_steps=4"]);
    let axes = axes(&["max_head_off_policyness=0,2"]);
    let task = Task { jobs: 1, ..task(&scenario, 4, &axes) };
    PlanResults::of(&plan(&task, &Silent).unwrap(), &task).files().unwrap()
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let scenario = load(HALVES, &["scenario.steps=20", "scenario.warmup_steps=5"]);
    let axes = axes(&["max_head_off_policyness=0,2"]);
    let files = |jobs: usize| {
        let task = Task { jobs, ..task(&scenario, 6, &axes) };
        PlanResults::of(&plan(&task, &Silent).unwrap(), &task).files().unwrap()
    };
    assert_eq!(files(1), files(2));
}

#[test]
fn constraints_decide_what_can_be_chosen() {
    let slow = load(HALVES, &["plan.constraints=[\"staleness_head_mean <= 0\"]"]);
    let axes = axes(&["max_head_off_policyness=0,4"]);
    let strict = plan(&task(&slow, 8, &axes), &Silent).unwrap();
    let chosen = &strict.options[strict.chosen.unwrap()];
    assert_eq!(chosen.metric("staleness_head_mean").unwrap().mean, 0.0);
    assert!(strict.options.iter().any(|option| option.breaks == [0]));

    let scenario = load(HALVES, &["plan.constraints=[\"trained_samples_per_hour >= 1e6\"]"]);
    let none = planned(&scenario, 8);
    assert_eq!(none.chosen, None);
    let said = none.verdict(&task(&scenario, 8, &[])).join("\n");
    assert!(said.contains("4 serving + 4 trainer GPUs at η = 4 breaks"), "{said}");
    assert!(said.contains("trained_samples_per_hour >= 1000000: it is 2,8"), "{said}");
}

#[test]
fn every_split_uses_what_there_is_and_replicas_and_trainers_are_whole() {
    let set = [
        "world.serving.gpus_per_replica=4",
        "world.judge.gpus_per_replica=2",
        "world.judge.quota=8",
        "plan.gpus_multiple=8",
    ];
    let scenario = load(HALVES, &set);
    let all = splits(&scenario, 32);
    assert!(all.iter().any(|split| split.label() == "20+4+8"), "{all:?}");
    for split in &all {
        assert!(split.used() <= 32 && split.serving_replicas > 0 && split.judge_replicas > 0);
        assert_eq!(split.trainer_gpus % 8, 0);
        assert!(32 - split.used() < 8 || split.layout != Layout::Disaggregated, "{split:?}");
    }
    let least = smallest(&scenario).unwrap();
    assert_eq!((least.layout, least.used()), (Layout::TimeShared, 10));
    assert!(splits(&scenario, 9).is_empty());
}

#[test]
fn a_judge_replica_more_serves_more_votes() {
    // A vote takes 10 s at a judge that serves two at once: as fast as a replica of the policy.
    let set = [
        "world.judge.vote.sec=10",
        "world.judge.gpus_per_replica=1",
        "world.judge.quota=2",
        "plan.layouts=[\"disaggregated\"]",
    ];
    let planning = planned(&load(HALVES, &set), 9);
    let (split, rate) = choice(&planning);
    assert_eq!(split, "3+3+3");
    assert!((rate - 0.6).abs() < 0.02, "{rate}");
}

/// What is wrong, as text.
fn refused(set: &[&str], gpus: u32) -> String {
    let scenario = load(HALVES, set);
    plan(&task(&scenario, gpus, &[]), &Silent).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn what_cannot_be_planned_is_refused_with_the_remedy() {
    let fixed = HALVES.replace(
        "sec_per_token = 0.033333333333\ngpus = 1",
        "step = { kind = \"constant\", sec = 5 }",
    );
    let scenario = load(&fixed, &[]);
    let error = plan(&task(&scenario, 8, &[]), &Silent).map(|_| ()).unwrap_err();
    assert!(matches!(error, PlanError::Scenario(_)));
    let said = error.to_string();
    let place = line(&fixed, "step =");
    let wrong = format!("test.toml:{place}:8: a step takes this time on any number of GPUs");
    assert!(said.starts_with(&wrong), "{said}");
    assert!(said.contains("`sec_per_token = 0.0333333`"), "{said}");

    let said = refused(&["plan.min_trainer_gpus=8", "plan.layouts=[\"disaggregated\"]"], 8);
    assert!(said.contains("the smallest plan takes 9 GPUs: 1 serving + 8 trainer GPUs"), "{said}");
    assert!(said.contains("help: write --gpus 9"), "{said}");
    let said = refused(&["world.judge.gpus_per_replica=1"], 8);
    assert!(said.contains("nothing says how much it can do") && said.contains("`quota = 16`"));
}

#[test]
fn a_wrong_plan_table_is_refused_at_its_place() {
    let problems = |table: &str| {
        let layers = Layers::new().toml("test.toml", format!("{HALVES}\n[plan]\n{table}\n"));
        Scenario::load(&layers, Path::new(".")).map(|_| ()).unwrap_err().to_string()
    };
    let said = problems("constraints = [\"stalenes_head_p99 <= 4\"]");
    let place = line(HALVES, "gpus = 1") + 3;
    let wrong = format!("test.toml:{place}:16: `stalenes_head_p99` is no metric");
    assert!(said.starts_with(&wrong), "{said}");
    assert!(said.contains("did you mean `staleness_head_p99`?"), "{said}");
    assert!(problems("layouts = [\"mixed\"]").contains("write one of disaggregated, colocated"));
    assert!(problems("layouts = [\"colocated\"]").contains("add `colocated_speed = 0.5`"));
    assert!(problems("layouts = []").contains("no layout is left"));
    assert!(problems("gpus_multipel = 8").contains("did you mean `gpus_multiple`?"));
}

#[test]
fn what_a_plan_says_changes_no_run() {
    let set = ["plan.switch_sec=3", "world.serving.gpus_per_replica=4", "plan.gpus_multiple=8"];
    assert_eq!(load(HALVES, &[]).digest(), load(HALVES, &set).digest());
    let three = ["world.judge.quota=2", "world.judge.replicas=3"];
    assert_eq!(load(HALVES, &three).world.judge.quota, 6);
}
