//! What a user who writes a scenario is told.

use std::path::Path;

use headway_shared::config::Layers;
use headway_sim::scenario::Scenario;

use super::world_support::{SESSIONS, SLOTS, load, load_shipped, problems, try_load};

#[test]
fn the_shipped_scenarios_load_without_a_finding_and_say_where_their_numbers_come_from() {
    for name in ["openclaw", "openclaw-own-gate", "areal-math", "applied-compute"] {
        let (scenario, warnings) = load_shipped(name);
        assert_eq!(warnings.to_string(), "", "{name}");
        assert_eq!(scenario.name, name);
        assert!(!scenario.sources.is_empty() && !scenario.assumed.is_empty(), "{name}");
        assert!(!scenario.title.is_empty() && !scenario.sweep.is_empty(), "{name}");
    }
}

#[test]
fn an_unknown_key_names_its_place_and_the_nearest_key() {
    let text = SLOTS.replace("slots = 8", "slot = 8");
    let problems = problems(&text, &[]);
    assert!(problems.contains("unknown key `slot` in [world.clients]"), "{problems}");
    assert!(problems.contains("did you mean `slots`?"), "{problems}");
    assert!(problems.contains("test.toml:18:1"), "{problems}");
}

#[test]
fn a_missing_distribution_shows_how_to_write_one() {
    let problems = problems(&SLOTS.replace("vote = { kind = \"constant\", sec = 1 }", ""), &[]);
    assert!(problems.contains("`vote` is missing in"), "{problems}");
    assert!(
        problems.contains("kind = \\\"constant\\\"") || problems.contains("kind = \"constant\"")
    );
}

#[test]
fn a_distribution_with_an_impossible_number_names_it() {
    let set = "world.judge.vote={ kind = \"lognormal\", median_sec = 18, p99_sec = 6 }";
    let problems = problems(SLOTS, &[set]);
    assert!(problems.contains("`p99_sec` is 6, but must be at least `median_sec`"), "{problems}");
}

#[test]
fn a_distribution_of_an_unknown_kind_names_the_nearest() {
    let set = "world.judge.vote={ kind = \"lognormel\", median_sec = 18, p99_sec = 60 }";
    let problems = problems(SLOTS, &[set]);
    assert!(problems.contains("did you mean `lognormal`?"), "{problems}");
    assert_eq!(problems.matches("help:").count(), 1, "{problems}");
}

#[test]
fn a_scenario_that_nothing_ends_is_refused() {
    let problems =
        problems(&SLOTS.replace("steps = 20", "").replace("duration_sec = 86400", ""), &[]);
    assert!(problems.contains("nothing ends this scenario"), "{problems}");
}

#[test]
fn a_name_that_is_no_folder_is_refused() {
    let problems = problems(SLOTS, &["scenario.name=\"../evil\""]);
    assert!(problems.contains("small letters, digits and dashes"), "{problems}");
}

#[test]
fn a_load_time_out_below_the_fastest_load_is_refused() {
    let load_of_ten = "world.weights.load={ kind = \"uniform\", min_sec = 10, max_sec = 20 }";
    let problems = problems(SLOTS, &[load_of_ten, "load_timeout_sec=5"]);
    assert!(
        problems.contains("`load_timeout_sec` is 5s, but the fastest load takes 10 s"),
        "{problems}"
    );
}

#[test]
fn a_pause_shorter_than_the_sync_is_warned_about() {
    let load_of_forty = "world.weights.load={ kind = \"constant\", sec = 40 }";
    let (_, warnings) = try_load(SLOTS, &[load_of_forty, "pause_timeout_sec=30"]).unwrap();
    let warnings = warnings.to_string();
    assert!(warnings.contains("a weight sync takes 40 s on average"), "{warnings}");
}

#[test]
fn a_judge_that_cannot_keep_up_is_warned_about_with_the_arithmetic() {
    let vote = "world.judge.vote={ kind = \"constant\", sec = 18 }";
    let set = [vote, "votes=3", "judge_concurrency=4", "batch_size=16"];
    let (_, warnings) = try_load(SLOTS, &set).unwrap();
    let warnings = warnings.to_string();
    assert!(
        warnings.contains(
            "with 4 votes at once, 3 votes a turn and 18 s a vote, it gives 800 votes or 267 \
             turns an hour, so a batch of 16 takes 216 s"
        ),
        "{warnings}"
    );
}

#[test]
fn more_votes_than_the_endpoint_serves_are_warned_about() {
    let set = ["world.judge.quota=4", "judge_concurrency=32", "judge_timeout_sec=7"];
    let (_, warnings) = try_load(SLOTS, &set).unwrap();
    let warnings = warnings.to_string();
    assert!(warnings.contains("votes will time out"), "{warnings}");
    assert!(warnings.contains("start with 2 to 4 votes at once"), "{warnings}");
}

#[test]
fn worlds_in_which_nothing_can_be_trained_are_refused() {
    let empty = "world.clients.output_tokens={ kind = \"constant\", value = 0 }";
    let failing = ["world.clients.environment=true", "world.environment.failure_share=1"];
    for set in [&["judge_needs=\"next_state\""][..], &["world.clients.limit=3"], &[empty], &failing]
    {
        assert!(problems(SLOTS, set).contains("nothing can be trained"), "{set:?}");
    }
    let side = problems(SESSIONS, &["world.clients.side_share=1"]);
    assert!(side.contains("nothing can be trained: every turn is marked `side`"), "{side}");
}

#[test]
fn a_column_is_read_from_a_file_and_its_faults_are_reported_at_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let vote = "world.judge.vote={ kind = \"replay\", file = \"t.csv\", column = \"sec\" }";
    let load = |content: Option<&str>| {
        let path = folder.path().join("t.csv");
        match content {
            Some(content) => std::fs::write(&path, content).unwrap(),
            None => drop(std::fs::remove_file(&path)),
        }
        let layers = Layers::new().toml("test.toml", SLOTS).set(vote);
        Scenario::load(&layers, folder.path())
            .map(|(scenario, _)| scenario)
            .map_err(|problems| problems.to_string())
    };
    let good = load(Some("id,sec\n1,2.5\n2,3\n")).unwrap();
    let same = load(Some("sec\n2.5\n3\n")).unwrap();
    assert_eq!(good.digest(), same.digest(), "the same numbers make the same scenario");
    let other = load(Some("sec\n2.5\n4\n")).unwrap();
    assert_ne!(good.digest(), other.digest());

    let bad = load(Some("id,sec\n1,2.5\n2,soon\n")).unwrap_err();
    assert!(bad.contains("t.csv:3:1: `soon` is no `sec`"), "{bad}");
    let after_blanks = load(Some("id,sec\n1,2.5\n\n\n2,soon\n")).unwrap_err();
    assert!(after_blanks.contains("t.csv:5:1: `soon` is no `sec`"), "{after_blanks}");
    assert!(load(Some("")).unwrap_err().contains("the file is empty"));
    assert!(load(Some("id,sec\n")).unwrap_err().contains("no rows"));
    let column = load(Some("id,secs\n1,2\n")).unwrap_err();
    assert!(column.contains("no column `sec`"), "{column}");
    assert!(column.contains("did you mean `secs`?"), "{column}");
    let missing = load(None).unwrap_err();
    assert!(missing.contains("cannot read") && missing.contains("t.csv"), "{missing}");
}

#[test]
fn an_assignment_over_a_scenario_changes_it_and_its_digest() {
    let scenario = load(SLOTS, &[]);
    let (changed, _) = scenario.with_set("world.trainer.step.sec=7").unwrap();
    assert_ne!(scenario.digest(), changed.digest());
    let (again, _) = changed.with_set("world.trainer.step.sec=5").unwrap();
    assert_eq!(scenario.digest(), again.digest());
    let (short, _) = scenario.with_set("max_head_off_policyness=7").unwrap();
    assert_eq!(short.config.policy_training.max_head_off_policyness, 7);
    let typo = scenario.with_set("max_head_of_policyness=7").unwrap_err().to_string();
    assert!(typo.contains("max_head_off_policyness"), "{typo}");
}

#[test]
fn a_live_configuration_laid_over_a_scenario_wins() {
    let live = r#"
[policy_serving]
engine = "sglang"
host = "0.0.0.0"
port = 30000
weight_sync_pause = true
pause_timeout_sec = 120

[reward_judging]
mode = "async"
judge_concurrency = 4
judge_timeout_sec = 30
fire_on_turn_end = true

[policy_training]
engine = "megatron"
max_head_off_policyness = 2
stale_filter_steps = 8
queue_type = "fifo"

[queue]
max_size = 512
drop_policy = "reject"
"#;
    let path = super::world_support::shipped("openclaw");
    let text = std::fs::read_to_string(path).unwrap();
    let layers = Layers::new().toml("openclaw.toml", text).toml("config.toml", live);
    let (scenario, warnings) = Scenario::load(&layers, Path::new(".")).unwrap();
    assert_eq!(scenario.config.policy_training.stale_filter_steps, Some(8));
    assert_eq!(scenario.config.policy_training.max_head_off_policyness, 2);
    // Four votes at once are too few for this world: that is what the user should learn.
    let warnings = warnings.to_string();
    assert!(warnings.contains("config.toml:11:"), "{warnings}");
    assert!(warnings.contains("800 votes or 267 turns an hour"), "{warnings}");
}

#[test]
fn the_seed_and_the_texts_are_no_part_of_the_digest() {
    let scenario = load(SLOTS, &[]);
    let other = load(SLOTS, &["scenario.seed=9", "scenario.title=\"Another\""]);
    assert_eq!(scenario.digest(), other.digest());
}
