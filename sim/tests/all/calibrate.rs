//! A simulated run that is recorded and calibrated gives back the numbers of its world.

use std::fs;

use headway_shared::config::Layers;
use headway_sim::calibrate::estimate::Item;
use headway_sim::calibrate::fit::Parameter;
use headway_sim::calibrate::measured::measure;
use headway_sim::calibrate::{Calibrated, Choice, Options, calibrate};
use headway_sim::run::{RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;

use super::world_support::{recorded, try_load};

/// Online sessions: every family of law, a judge, a trainer, weights.
const TALK: &str = r#"
[scenario]
name = "talk"
duration_sec = 1000000
steps = 250

[policy_serving]
sync_mode = "in_flight"
kv_on_sync = "keep"

[reward_judging]
judge_concurrency = 256

[policy_training]
batch_size = 16
max_head_off_policyness = 8

[queue]
max_size = 4096

[world.serving]
replicas = 2
decode_base_sec = 0.02
decode_per_sequence_sec = 0.002
prefill_tokens_per_sec = 4000

[world.clients]
kind = "sessions"
arrivals = { kind = "poisson", per_hour = 600 }
turns = { kind = "uniform", min = 1, max = 6 }
prompt_tokens = { kind = "lognormal", median = 500, sigma = 0.5 }
growth_tokens = { kind = "exponential", mean = 80 }
output_tokens = { kind = "gamma", shape = 2, mean = 120 }
think = { kind = "exponential", mean_sec = 20 }
done_share = 0.7
side_share = 0.1
streamed_share = 0.4

[world.judge]
vote = { kind = "lognormal", median_sec = 3, sigma = 0.6 }
verdict_tokens = { kind = "constant", value = 40 }
invalid_share = 0.05
failed_share = 0.03
positive_share = 0.5
negative_share = 0.2

[world.trainer]
step = { kind = "gamma", shape = 8, mean_sec = 24 }

[world.weights]
save = { kind = "constant", sec = 0.5 }
transfer = { kind = "uniform", min_sec = 0.2, max_sec = 0.6 }
load = { kind = "pareto", min_sec = 0.4, alpha = 4 }
"#;

fn calibrated_as(scenario: &Scenario, options: Options) -> (Calibrated, RunResult) {
    let (run, result) = recorded(scenario, "run.record");
    let measured = measure(&run).unwrap();
    let options = Options { name: "again".to_owned(), ..options };
    (calibrate(Some(("run.record", &measured)), &options).unwrap(), result)
}

/// A scenario, recorded and calibrated.
fn calibrated(text: &str, set: &[&str]) -> Calibrated {
    calibrated_as(&try_load(text, set).unwrap().0, Options::default()).0
}

/// The scenario that came of it, the number of its warnings, and the folder that its columns are in.
fn loaded(found: &Calibrated) -> (Scenario, usize, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in &found.files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let layers = Layers::new().toml("again.toml", found.scenario.as_str());
    let (scenario, warnings) = Scenario::load(&layers, folder.path())
        .unwrap_or_else(|problems| panic!("{problems}\n{}", found.scenario));
    (scenario, warnings.items.len(), folder)
}

fn item<'f>(found: &'f Calibrated, key: &str) -> &'f Item {
    let of =
        |item: &&Item| item.values.iter().any(|(name, _)| format!("{}.{name}", item.table) == key);
    found.items.iter().find(of).unwrap_or_else(|| panic!("no {key} in\n{}", found.scenario))
}

fn parameter(found: &Calibrated, path: &str) -> Parameter {
    let all = found.items.iter().flat_map(|item| &item.parameters);
    let parameter = all.clone().find(|(name, _)| name == path).map(|(_, parameter)| *parameter);
    parameter.unwrap_or_else(|| panic!("no {path} in\n{}", found.scenario))
}

/// Within twice the 90% interval, and within this part of the truth.
fn near(found: &Calibrated, path: &str, truth: f64, part: f64) {
    let Parameter { value, low, high } = parameter(found, path);
    assert!((value / truth - 1.0).abs() <= part, "{path}: {value}, but {truth} is true");
    let wide = 1e-6 * truth + 2.0 * (high - value).max(value - low);
    assert!((value - truth).abs() <= wide, "{path}: {low} to {high}, but {truth} is true");
}

fn value<'f>(found: &'f Calibrated, key: &str) -> &'f str {
    let name = key.rsplit('.').next().unwrap();
    let values = &item(found, key).values;
    &values.iter().find(|(of, _)| *of == name).unwrap().1
}

#[test]
fn every_family_of_law_comes_back() {
    let found = calibrated(TALK, &[]);
    let family = |key: &str| item(&found, key).family;
    assert_eq!(family("world.judge.vote"), "lognormal");
    assert_eq!(family("world.trainer.step"), "gamma");
    assert_eq!(family("world.weights.save"), "constant");
    assert_eq!(family("world.weights.transfer"), "uniform");
    assert_eq!(family("world.weights.load"), "pareto");
    assert_eq!(family("world.clients.think"), "exponential");
    assert_eq!(family("world.clients.output_tokens"), "gamma");
    assert_eq!(family("world.clients.prompt_tokens"), "lognormal");
    near(&found, "world.judge.vote.median_sec", 3.0, 0.05);
    near(&found, "world.judge.vote.sigma", 0.6, 0.05);
    near(&found, "world.trainer.step.mean_sec", 24.0, 0.1);
    near(&found, "world.weights.save.sec", 0.5, 1e-6);
    near(&found, "world.weights.load.min_sec", 0.4, 0.01);
    near(&found, "world.clients.think.mean_sec", 20.0, 0.06);
    near(&found, "world.clients.output_tokens.mean", 120.0, 0.05);
    near(&found, "world.clients.prompt_tokens.median", 500.0, 0.06);
    near(&found, "world.clients.growth_tokens.mean", 80.0, 0.06);
}

#[test]
fn shares_and_arrivals_come_back() {
    let found = calibrated(TALK, &[]);
    assert_eq!(value(&found, "world.clients.arrivals.kind"), "\"poisson\"");
    near(&found, "world.clients.arrivals.per_hour", 600.0, 0.08);
    near(&found, "world.clients.done_share", 0.7, 0.06);
    near(&found, "world.clients.side_share", 0.1, 0.15);
    near(&found, "world.clients.streamed_share", 0.4, 0.06);
    near(&found, "world.judge.invalid_share", 0.05, 0.25);
    near(&found, "world.judge.failed_share", 0.03, 0.3);
    near(&found, "world.judge.positive_share", 0.5, 0.05);
    near(&found, "world.judge.negative_share", 0.2, 0.1);
    near(&found, "world.judge.verdict_tokens.value", 40.0, 1e-6);
    assert_eq!(value(&found, "world.serving.replicas"), "2");
    assert!(!found.scenario.contains("[world.faults]"), "nothing broke");
}

#[test]
fn the_decode_law_and_prefill_come_back() {
    let found = calibrated(TALK, &[]);
    near(&found, "world.serving.decode_base_sec", 0.02, 0.03);
    near(&found, "world.serving.decode_per_sequence_sec", 0.002, 0.06);
    near(&found, "world.serving.prefill_tokens_per_sec", 4000.0, 0.03);
    assert!(item(&found, "world.serving.decode_base_sec").r_squared.unwrap() > 0.99);
    assert!(!found.scenario.contains("speed_during") && !found.scenario.contains("max_batch"));
}

#[test]
fn what_slows_decoding_and_what_limits_it_come_back() {
    let set = ["world.serving.speed_during_step=0.6", "world.serving.prefill_tokens_per_sec=0"];
    let found = calibrated(TALK, &set);
    near(&found, "world.serving.speed_during_step", 0.6, 0.05);
    near(&found, "world.serving.decode_base_sec", 0.02, 0.08);
    assert!(!found.scenario.contains("prefill_tokens_per_sec"));
    let set = ["world.serving.max_batch=3", "world.serving.replicas=1"];
    let found = calibrated(TALK, &set);
    assert_eq!(value(&found, "world.serving.max_batch"), "3");
    near(&found, "world.serving.prefill_tokens_per_sec", 4000.0, 0.05);
}

#[test]
fn a_train_step_by_tokens_comes_back_as_a_line() {
    let law = "step = { kind = \"gamma\", shape = 8, mean_sec = 24 }";
    assert!(TALK.contains(law));
    let found = calibrated(&TALK.replace(law, "base_sec = 4\nsec_per_token = 0.0006"), &[]);
    let line = item(&found, "world.trainer.base_sec");
    assert_eq!((line.family, value(&found, "world.trainer.base_sec")), ("line", "4"));
    near(&found, "world.trainer.sec_per_token", 0.0006, 1e-6);
    assert!(line.r_squared.unwrap() > 0.999);
}

/// A closed population with groups and three votes.
const LOOP: &str = r#"
[scenario]
name = "loop"
duration_sec = 1000000
steps = 150

[reward_judging]
judge_needs = "turn"
judge_concurrency = 64
judge_timeout_sec = 20

[policy_training]
batch_size = 8
group_size = 4
max_head_off_policyness = 4

[queue]
max_size = 4096

[world.serving]
decode_base_sec = 0.01

[world.clients]
kind = "sessions"
arrivals = { kind = "users", users = 48, pause = { kind = "exponential", mean_sec = 2 } }
prompt_tokens = { kind = "constant", value = 64 }
output_tokens = { kind = "lognormal", median = 300, sigma = 0.8 }
max_output_tokens = 600

[world.clients.retries]
max_retries = 1000

[world.judge]
vote = { kind = "exponential", mean_sec = 1 }
positive_share = 0.5
solved_share = 0.2
hopeless_share = 0.1

[world.trainer]
step = { kind = "constant", sec = 6 }
"#;

#[test]
fn a_fixed_population_its_limits_and_its_prompts_come_back() {
    let scenario = try_load(LOOP, &[]).unwrap().0;
    let found =
        calibrated_as(&scenario, Options { clients: Choice::Users, ..Options::default() }).0;
    let users: f64 = value(&found, "world.clients.arrivals.users").parse().unwrap();
    assert!((users - 48.0).abs() <= 3.0, "{users} users");
    // Who paused is not known, only how many: the mean is right, the law is not.
    let pause = item(&found, "world.clients.arrivals.pause").mean().unwrap();
    assert!((pause - 2.0).abs() < 0.1, "{pause} s");
    assert_eq!(value(&found, "world.clients.max_output_tokens"), "600");
    near(&found, "world.clients.output_tokens.median", 300.0, 0.05);
    near(&found, "world.clients.output_tokens.sigma", 0.8, 0.06);
    assert_eq!(value(&found, "world.clients.retries.max_retries"), "1000");
    near(&found, "world.judge.solved_share", 0.2, 0.2);
    near(&found, "world.judge.hopeless_share", 0.1, 0.3);
    near(&found, "world.judge.positive_share", 0.5, 0.06);
    assert!(found.notes.iter().any(|note| note.contains("`agreement` is 1")));
}

#[test]
fn rewards_that_rise_come_back_as_they_were_drawn() {
    let set = [
        "world.judge.positive_share=0.1",
        "world.judge.positive_growth=0.04",
        "world.judge.prompt_spread=1",
        "world.judge.solved_share=0",
        "world.judge.hopeless_share=0",
    ];
    let found = calibrated(LOOP, &set);
    near(&found, "world.judge.positive_growth", 0.04, 0.15);
    for (key, truth) in [("positive_share", 0.1), ("prompt_spread", 1.0)] {
        let value: f64 = value(&found, &format!("world.judge.{key}")).parse().unwrap();
        assert!((value / truth - 1.0).abs() < 0.3, "{key}: {value}");
    }
    assert!(!found.scenario.contains("solved_share"), "{}", found.scenario);
}

#[test]
fn a_population_is_seen_to_be_fixed_where_it_does_not_pause() {
    let pause = ", pause = { kind = \"exponential\", mean_sec = 2 }";
    let found = calibrated(&LOOP.replace(pause, ""), &[]);
    assert_eq!(value(&found, "world.clients.arrivals.kind"), "\"users\"");
    assert_eq!(value(&found, "world.clients.arrivals.users"), "48");
    assert!(!found.scenario.contains("pause ="), "{}", found.scenario);
}

#[test]
fn votes_that_are_cut_short_do_not_shorten_their_law() {
    let set = [
        "reward_judging.votes=3",
        "world.judge.agreement=0.8",
        "world.judge.solved_share=0",
        "world.judge.hopeless_share=0",
        "world.judge.hang_share=0.02",
    ];
    let found = calibrated(LOOP, &set);
    let vote = item(&found, "world.judge.vote");
    assert!(vote.cut > vote.count / 10, "a third vote is cancelled when two agree");
    near(&found, "world.judge.vote.mean_sec", 1.0, 0.04);
    near(&found, "world.judge.agreement", 0.8, 0.05);
    near(&found, "world.judge.hang_share", 0.02, 0.3);
}

#[test]
fn the_choice_of_clients_overrides_what_is_seen() {
    let scenario = try_load(LOOP, &[]).unwrap().0;
    let options = Options { clients: Choice::Poisson, ..Options::default() };
    let (found, _) = calibrated_as(&scenario, options);
    assert_eq!(value(&found, "world.clients.arrivals.kind"), "\"poisson\"");
    let options = Options { clients: Choice::Replay, ..Options::default() };
    let (found, _) = calibrated_as(&scenario, options);
    assert_eq!(value(&found, "world.clients.arrivals.kind"), "\"replay\"");
    assert!(found.files.iter().any(|(name, _)| name == "again-clients-arrivals.csv"));
    loaded(&found);
}

#[test]
fn hosted_environments_and_faults_come_back() {
    let set = [
        "world.clients={ kind = \"slots\", slots = 24, environment = true, \
         turns = { kind = \"uniform\", min = 2, max = 4 }, \
         prompt_tokens = { kind = \"constant\", value = 100 }, \
         output_tokens = { kind = \"exponential\", mean = 100 } }",
        "policy_training.group_size=1",
        "policy_training.batch_size=16",
        "world.environment={ reset = { kind = \"constant\", sec = 3 }, \
         step = { kind = \"exponential\", mean_sec = 5 }, failure_share = 0.05 }",
        "world.faults={ failed_step_share = 0.1, failed_generation_share = 0.02, \
         replica_mtbf_sec = 400, replica_restart = { kind = \"constant\", sec = 30 } }",
        "world.serving.replicas=2",
    ];
    let mut scenario = try_load(LOOP, &[]).unwrap().0;
    let sets: Vec<String> = set.iter().map(|&set| set.to_owned()).collect();
    scenario = scenario.with_sets(&sets).unwrap_or_else(|problems| panic!("{problems}")).0;
    let (found, _) = calibrated_as(&scenario, Options::default());
    assert_eq!(value(&found, "world.clients.kind"), "\"slots\"");
    assert_eq!(value(&found, "world.clients.slots"), "24");
    near(&found, "world.environment.reset.sec", 3.0, 1e-6);
    near(&found, "world.environment.step.mean_sec", 5.0, 0.08);
    near(&found, "world.environment.failure_share", 0.05, 0.25);
    near(&found, "world.faults.failed_step_share", 0.1, 0.6);
    near(&found, "world.faults.failed_generation_share", 0.02, 0.5);
    near(&found, "world.faults.replica_mtbf_sec", 400.0, 0.6);
    near(&found, "world.faults.replica_restart.sec", 30.0, 1e-6);
}

/// Throughput and staleness of the original and of what was fitted to its record.
fn agree(text: &str, within: f64) {
    let scenario = try_load(text, &[]).unwrap().0;
    let (found, _) = calibrated_as(&scenario, Options::default());
    let (again, warnings, _folder) = loaded(&found);
    assert_eq!(warnings, 0, "{}", found.scenario);
    assert_eq!(again.config, scenario.config);
    let warmup = format!("scenario.warmup_steps={}", again.warmup.steps);
    let (scenario, _) = scenario.with_set(&warmup).unwrap();
    let mean = |scenario: &Scenario, metric: &str| {
        let runs = [1, 2].map(|replication| {
            let result = simulate(scenario, replication, RunOptions::default()).unwrap();
            result.summary.get(metric).unwrap()
        });
        f64::midpoint(runs[0], runs[1])
    };
    for metric in ["trained_samples_per_hour", "staleness_head_mean"] {
        let (original, fitted) = (mean(&scenario, metric), mean(&again, metric));
        let apart = (fitted / original - 1.0).abs();
        assert!(apart < within, "{metric}: {original} and {fitted}\n{}", found.scenario);
    }
}

#[test]
fn a_calibrated_scenario_runs_as_the_original_does() {
    let calm = TALK.replace("per_hour = 600", "per_hour = 200");
    agree(&calm, 0.08);
    agree(LOOP, 0.06);
}

#[test]
fn a_calibrated_scenario_says_what_it_was_fitted_to() {
    let scenario = try_load(TALK, &["scenario.steps=40"]).unwrap().0;
    let (found, result) = calibrated_as(&scenario, Options::default());
    let (again, _, _folder) = loaded(&found);
    assert!(again.sources[0].starts_with("fitted to run.record: "), "{:?}", again.sources);
    assert!(again.sources[0].contains(&result.digest.to_string()), "{:?}", again.sources);
    assert_eq!((again.steps, again.warmup.steps), (Some(40), 4));
    let calibration = again.calibration.clone().unwrap();
    assert_eq!(calibration.from, "run.record");
    // Each of its parameters is a key that can be set.
    for parameter in &calibration.parameters {
        assert!(parameter.low <= parameter.value && parameter.value <= parameter.high);
        let set = format!("{}={}", parameter.key, parameter.value);
        again.with_set(&set).unwrap_or_else(|problems| panic!("{problems}"));
    }
    assert!(again.drift.is_none());
    assert!(found.notes.iter().any(|note| note.contains("no lag probe")));
}

#[test]
fn what_no_law_fits_is_drawn_from_its_values() {
    let folder = tempfile::tempdir().unwrap();
    let values: String = (0..50).map(|row| if row % 3 == 0 { "9\n" } else { "1\n" }).collect();
    fs::write(folder.path().join("votes.csv"), format!("secs\n{values}")).unwrap();
    let vote = "vote = { kind = \"empirical\", file = \"votes.csv\", column = \"secs\" }";
    let text = LOOP.replace("vote = { kind = \"exponential\", mean_sec = 1 }", vote);
    let layers = Layers::new().toml("loop.toml", text);
    let scenario = Scenario::load(&layers, folder.path()).unwrap().0;
    let (found, _) = calibrated_as(&scenario, Options::default());
    assert_eq!(item(&found, "world.judge.vote").family, "empirical");
    let (name, bytes) = &found.files[0];
    assert_eq!(name, "again-judge-vote.csv");
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(
        text.starts_with("seconds\n")
            && text.lines().skip(1).all(|cell| cell == "1" || cell == "9")
    );
    let law = &loaded(&found).0.world.judge.latency;
    assert!(format!("{law:?}").contains("Empirical"), "{law:?}");
}

#[test]
fn a_record_in_which_nothing_happened_cannot_be_calibrated() {
    let none = headway_sim::calibrate::measured::Measured::default();
    let error = calibrate(Some(("run.record", &none)), &Options::default()).unwrap_err();
    assert!(error.to_string().contains("the record has no inputs\nhelp: "), "{error}");
    let scenario = try_load(TALK, &["scenario.steps=10"]).unwrap().0;
    let measured = measure(&recorded(&scenario, "run.record").0).unwrap();
    let options = Options { warmup_steps: Some(10), ..Options::default() };
    let error = calibrate(Some(("run.record", &measured)), &options).unwrap_err();
    assert!(error.to_string().contains("10 train steps, and 10 are dropped"), "{error}");
    assert!(error.to_string().contains("help: write --warmup-steps 1"), "{error}");
}

#[test]
fn columns_alone_make_a_scenario_that_says_what_it_assumes() {
    use headway_sim::calibrate::Measurements;
    use headway_sim::calibrate::column::Latency;
    let latency = Latency::find("judge").unwrap();
    let values = (0..200).map(|row| 1.0 + f64::from(row % 20)).collect();
    let columns = vec![Measurements { latency, from: "log.csv:secs".to_owned(), values }];
    let options = Options { name: "columns".to_owned(), columns, ..Options::default() };
    let found = calibrate(None, &options).unwrap();
    let (scenario, _, _folder) = loaded(&found);
    assert!(scenario.assumed.iter().any(|text| text.starts_with("a train step takes 30 s")));
    assert!(!scenario.assumed.iter().any(|text| text.contains("vote")));
    assert_eq!(scenario.sources, ["vote of the judge fitted to log.csv:secs"]);
    assert!(simulate(&scenario, 0, RunOptions::default()).unwrap().trained > 0);
}

#[test]
fn an_interval_that_leaves_out_its_value_is_refused() {
    let with = |parameter: &str| format!("{LOOP}\n[calibration]\nparameters = [{parameter}]\n");
    let text = with("{ key = \"world.judge.vote.mean_sec\", value = 1, low = 1.1, high = 1.3 }");
    let error = try_load(&text, &[]).unwrap_err().to_string();
    assert!(error.contains("1 is outside its interval, 1.1 to 1.3"), "{error}");
    assert!(error.contains("`from` is missing in calibration"), "{error}");
    let error = try_load(&with("{ value = 1 }"), &[]).unwrap_err().to_string();
    assert!(error.contains("`key` is missing") && error.contains("`high` is missing"), "{error}");
}
