//! Wrong configurations through the real binary: each is refused with its place, its text and its
//! remedy, and nothing is written.

use std::fs;
use std::path::Path;

use crate::all::support::{files, live, run, small, stderr};

/// A mistake in the small scenario.
struct Mistake {
    /// What is written there.
    from: &'static str,
    /// What is written instead.
    to: &'static str,
    /// The line that is shown, and in it what is underlined.
    shown: &'static str,
    /// What is wrong with it.
    says: &'static str,
    /// What to write instead.
    help: &'static str,
}

const fn mistake(
    from: &'static str,
    to: &'static str,
    shown: &'static str,
    says: &'static str,
    help: &'static str,
) -> Mistake {
    Mistake { from, to, shown, says, help }
}

/// Keys and their values.
const KEYS: &[Mistake] = &[
    mistake(
        "batch_size = 16",
        "batch_sise = 16",
        "«batch_sise» = 16",
        "unknown key `batch_sise` in [policy_training]",
        "did you mean `batch_size`?",
    ),
    mistake("[queue]", "[queu]", "[«queu»]", "unknown key `queu`", "did you mean `queue`?"),
    mistake(
        "max_size = 512",
        "max_size = 512\npark_after_sec = 60",
        "«park_after_sec» = 60",
        "unknown key `park_after_sec` in [queue]",
        "`park_after_sec` stands under [policy_training]",
    ),
    mistake(
        "duration_sec = 7200",
        "duration_hours = 2",
        "«duration_hours» = 2",
        "unknown key `duration_hours` in [scenario]",
        "did you mean `duration_sec`?",
    ),
    mistake(
        "pause_timeout_sec = 120",
        "pause_timeout_sec = \"2m\"",
        "pause_timeout_sec = «\"2m\"»",
        "`pause_timeout_sec` must be a number, not text",
        "write `pause_timeout_sec = 120`",
    ),
    mistake(
        "fire_on_turn_end = true",
        "fire_on_turn_end = \"false\"",
        "fire_on_turn_end = «\"false\"»",
        "`fire_on_turn_end` must be true or false, not text",
        "write `fire_on_turn_end = false`",
    ),
    mistake(
        "sweep = [\"max_head_off_policyness=0,2\"]",
        "sweep = \"max_head_off_policyness=0,2\"",
        "sweep = «\"max_head_off_policyness=0,2\"»",
        "`sweep` must be a list of texts, not text",
        "write `sweep = [\"max_head_off_policyness=0,2\"]`",
    ),
    mistake(
        "set = [\"gate=headway\"]",
        "set = [7]",
        "set = [«7»]",
        "`set` must be a list of texts; this is a whole number",
        "write \"7\", in quotes",
    ),
    mistake(
        "batch_size = 16",
        "batch_size = \"16\"",
        "batch_size = «\"16\"»",
        "`batch_size` must be a whole number, not text",
        "write `batch_size = 16`",
    ),
    mistake(
        "batch_size = 16",
        "batch_size = 1.5",
        "batch_size = «1.5»",
        "`batch_size` must be a whole number, not a decimal number",
        "write `batch_size = 2`",
    ),
    mistake(
        "batch_size = 16",
        "batch_size = 0",
        "batch_size = «0»",
        "`batch_size` must be above 0",
        "write `batch_size = 1` or more",
    ),
    mistake(
        "pause_timeout_sec = 120",
        "pause_timeout_sec = -3",
        "pause_timeout_sec = «-3»",
        "`pause_timeout_sec` must be between 0 and 1000000000",
        "choose a number from 0",
    ),
    mistake(
        "pause_timeout_sec = 120",
        "pause_timeout_sec = nan",
        "pause_timeout_sec = «nan»",
        "`pause_timeout_sec` must be a finite number",
        "write `pause_timeout_sec = 120`",
    ),
    mistake(
        "\"reject\"",
        "\"wait\"",
        "drop_policy = «\"wait\"»",
        "`drop_policy` cannot be \"wait\"",
        "write one of reject, block, drop_oldest, drop_newest",
    ),
    mistake(
        "queue_type = \"fifo\"",
        "queue_type = fifo",
        "queue_type = «fifo»",
        "`fifo` is no value",
        "text stands in quotes: \"fifo\"",
    ),
    mistake(
        "batch_size = 16",
        "batch_size = 16\nbatch_size = 32",
        "«batch_size» = 32",
        "`batch_size` is given twice",
        "keep one of them",
    ),
    mistake(
        "name = \"small\"",
        "name = \"Small world\"",
        "name = «\"Small world\"»",
        "\"Small world\" is no name of a scenario",
        "write small letters, digits and dashes",
    ),
];

/// Rules between keys: what cannot be meant, and what would stall.
const RULES: &[Mistake] = &[
    mistake(
        "max_size = 512",
        "max_size = 8",
        "batch_size = «16»",
        "a batch of 16 samples does not fit into the output queue of 8",
        "write `max_size = 16` or more",
    ),
    mistake(
        "batch_size = 16",
        "batch_size = 16\nmin_batch_size = 17",
        "min_batch_size = «17»",
        "`min_batch_size` is 17, above a `batch_size` of 16",
        "write `min_batch_size = 16` or less",
    ),
    mistake(
        "max_head_off_policyness = 4",
        "max_head_off_policyness = 4\nstale_filter_steps = 2",
        "stale_filter_steps = «2»",
        "`stale_filter_steps` is 2, below η = 4",
        "write `stale_filter_steps = 4` or more",
    ),
    mistake(
        "max_head_off_policyness = 4",
        "max_head_off_policyness = 4\npublish_interval = 6",
        "max_head_off_policyness = «4»",
        "with η = 4 the samples of one version last for 5 train steps, but weights are published after 6",
        "write `max_head_off_policyness = 5` or more",
    ),
    mistake(
        "pause_timeout_sec = 120",
        "pause_timeout_sec = 120\nsync_mode = \"in_flight\"",
        "weight_sync_pause = «true»",
        "`weight_sync_pause` contradicts `sync_mode` (wrong.toml:23)",
        "keep one of them",
    ),
    mistake(
        "min_votes = 2",
        "min_votes = 4",
        "min_votes = «4»",
        "`min_votes` is 4 with 3 votes a sample",
        "write `min_votes = 3` or less",
    ),
    mistake(
        "pause_timeout_sec = 120",
        "pause_timeout_sec = 120\nload_timeout_sec = 1",
        "load_timeout_sec = «1»",
        "`load_timeout_sec` is 1s, but the fastest load takes 3 s",
        "write more than 3 s",
    ),
    mistake(
        "vote = { kind = \"lognormal\", mean_sec = 18, sigma = 0.5 }",
        "vote = { kind = \"constant\", sec = 100 }",
        "judge_timeout_sec = «90»",
        "`judge_timeout_sec` is 90s, but the fastest vote takes 100 s",
        "write more than 100 s",
    ),
    mistake(
        "steps = 12",
        "steps = 2",
        "warmup_steps = «2»",
        "the run is over before its warm-up of 2 train steps: it ends after 2",
        "write `warmup_steps = 1` or less",
    ),
];

/// The world.
const WORLD: &[Mistake] = &[
    mistake(
        "tool_share = 0.6",
        "tool_share = 1.5",
        "tool_share = «1.5»",
        "`tool_share` must be between 0 and 1",
        "choose a number from 0 to 1",
    ),
    mistake(
        "tool_share = 0.6",
        "tool_share = 60",
        "tool_share = «60»",
        "`tool_share` must be between 0 and 1",
        "choose a number from 0 to 1: write `tool_share = 0.6` for 60%",
    ),
    mistake(
        "arrivals = { kind = \"poisson\", per_hour = 150 }",
        "arrivals = 150",
        "arrivals = «150»",
        "`arrivals` must be a table, not a whole number",
        "write `arrivals = { kind = \"poisson\", per_hour = 150 }`",
    ),
    mistake(
        "save = { kind = \"constant\", sec = 2 }",
        "save = 2.5",
        "save = «2.5»",
        "`save` must be a table, not a decimal number",
        "write `save = { kind = \"constant\", sec = 2.5 }`",
    ),
    mistake(
        "think = { kind = \"lognormal\", median_sec = 30, p99_sec = 600 }",
        "think = { kind = \"lognormal\", median_sec = 30, p99_sec = 20 }",
        "think = { kind = \"lognormal\", median_sec = 30, p99_sec = «20» }",
        "`p99_sec` is 20, but must be at least `median_sec`",
        "write a number at least 30, or choose another `kind`",
    ),
    mistake(
        "think = { kind = \"lognormal\", median_sec = 30, p99_sec = 600 }",
        "think = { kind = \"lognormal\", median_sec = 30 }",
        "«think» = { kind = \"lognormal\", median_sec = 30 }",
        "`p99_sec` is missing in world.clients.think",
        "add `p99_sec = 300`",
    ),
    mistake(
        "think = { kind = \"lognormal\", median_sec = 30, p99_sec = 600 }",
        "think = { kind = \"lognormal\", median_sec = 30, p99_sec = 600, sigma = 1 }",
        "think = { kind = \"lognormal\", median_sec = 30, p99_sec = «600», sigma = 1 }",
        "`sigma` and `p99_sec` both say how wide it is",
        "keep one of them",
    ),
    mistake(
        "replicas = 2",
        "replicas = 0",
        "replicas = «0»",
        "`replicas` must be between 1 and 10000",
        "choose a number from 1",
    ),
    mistake(
        "think = { kind = \"lognormal\", median_sec = 30, p99_sec = 600 }",
        "think = { kind = \"lognormale\", median_sec = 30, p99_sec = 600 }",
        "think = { kind = «\"lognormale\"», median_sec = 30, p99_sec = 600 }",
        "`kind` cannot be \"lognormale\"",
        "did you mean `lognormal`?",
    ),
    mistake(
        "think = { kind = \"lognormal\", median_sec = 30, p99_sec = 600 }",
        "think = { kind = \"lognormal\", median_sec = 30, p99 = 600 }",
        "think = { kind = \"lognormal\", median_sec = 30, «p99» = 600 }",
        "unknown key `p99` in [world.clients.think]",
        "did you mean `p99_sec`?",
    ),
    mistake(
        "vote = { kind = \"lognormal\", mean_sec = 18, sigma = 0.5 }",
        "",
        "[world.«judge»]",
        "`vote` is missing in world.judge",
        "add `vote = { kind",
    ),
    mistake(
        "negative_share = 0.35",
        "negative_share = 0.65",
        "negative_share = «0.65»",
        "`positive_share` and `negative_share` are more than 1 together",
        "write `negative_share = 0.55` or less: the rest of the samples deserve 0",
    ),
    mistake(
        "load = { kind = \"constant\", sec = 3 }",
        "load = { kind = \"constant\", sec = -3 }",
        "load = { kind = \"constant\", sec = «-3» }",
        "`sec` is -3, but must be from 0",
        "write a number from 0 to 1e15, or choose another `kind`",
    ),
    mistake(
        "side_share = 0.1",
        "side_share = 1",
        "side_share = «1»",
        "nothing can be trained: every turn is marked `side`",
        "write a `side_share` below 1",
    ),
];

/// Files that are not there, or have no such column.
const TRACES: &[Mistake] = &[
    mistake(
        "arrivals = { kind = \"poisson\", per_hour = 150 }",
        "arrivals = { kind = \"replay\", file = \"none.csv\", column = \"at\" }",
        "arrivals = { kind = \"replay\", file = «\"none.csv\"», column = \"at\" }",
        "cannot read none.csv: ",
        "name a CSV file; a path starts from the scenario's folder",
    ),
    mistake(
        "arrivals = { kind = \"poisson\", per_hour = 150 }",
        "arrivals = { kind = \"replay\", file = \"good.csv\", column = \"when\" }",
        "arrivals = { kind = \"replay\", file = \"good.csv\", column = «\"when\"» }",
        "there is no column `when` in good.csv",
        "its columns are at, tokens",
    ),
];

#[test]
fn every_mistake_in_a_scenario_is_shown_with_its_remedy() {
    let good = fs::read_to_string(small()).unwrap();
    for Mistake { from, to, shown, says, help } in
        [KEYS, RULES, WORLD, TRACES].into_iter().flatten()
    {
        assert!(good.contains(from), "the scenario has no {from}");
        let dir = tempfile::tempdir().unwrap();
        let text = good.replacen(from, to, 1);
        fs::write(dir.path().join("wrong.toml"), &text).unwrap();
        fs::write(dir.path().join("good.csv"), "at,tokens\n0,1\n5,1\n").unwrap();
        let said = refused(dir.path(), &["sweep", "wrong.toml"]);
        assert!(said.contains(&finding("wrong.toml", &text, shown, says)), "{shown}:\n{said}");
        assert!(underlined(&said, shown), "{shown}:\n{said}");
        assert!(has_help(&said, help), "{shown}:\n{said}");
    }
}

#[test]
fn a_trace_is_wrong_at_its_own_file_and_line() {
    let replay = "arrivals = { kind = \"replay\", file = \"trace.csv\", column = \"at\" }";
    let poisson = "arrivals = { kind = \"poisson\", per_hour = 150 }";
    let good = fs::read_to_string(small()).unwrap().replacen(poisson, replay, 1);
    let cases: [(&str, &str, &str, &str); 4] = [
        ("", "trace.csv:1:1: the file is empty", "", "write a header with `at`"),
        ("at,tokens\n", "trace.csv:1:1: no rows", "at,tokens", "add at least one row"),
        (
            "at,tokens\n0,1\nsoon,1\n",
            "trace.csv:3:1: `soon` is no `at`",
            "soon,1",
            "write a number",
        ),
        ("at\n5\n0\n", "wrong.toml:54:", replay, "sort the file"),
    ];
    for (trace, place, line, help) in cases {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("wrong.toml"), &good).unwrap();
        fs::write(dir.path().join("trace.csv"), trace).unwrap();
        let said = refused(dir.path(), &["simulate", "wrong.toml"]);
        assert!(said.contains(place) && said.contains(line), "{trace:?}:\n{said}");
        assert!(has_help(&said, help), "{trace:?}:\n{said}");
    }
}

#[test]
fn live_files_that_contradict_each_other_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let config = fs::read_to_string(live("config.toml")).unwrap();
    let text = fs::read_to_string(live("settings.json")).unwrap();
    let text = text.replace("\"pause_on_weight_sync\": true", "\"pause_on_weight_sync\": false");
    fs::write(dir.path().join("config.toml"), config).unwrap();
    fs::write(dir.path().join("settings.json"), &text).unwrap();
    let small = small();
    let said = refused(
        dir.path(),
        &[
            "simulate",
            small.to_str().unwrap(),
            "--config",
            "config.toml",
            "--settings",
            "settings.json",
        ],
    );
    let shown = "\"pause_on_weight_sync\": «false»";
    let says = "`pause_on_weight_sync` contradicts `weight_sync_pause` (config.toml:5)";
    assert!(said.contains(&finding("settings.json", &text, shown, says)), "{said}");
    assert!(has_help(&said, "write `\"pause_on_weight_sync\": true`"), "{said}");
}

#[test]
fn a_configuration_is_no_scenario_and_that_is_one_finding() {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(live("config.toml"), dir.path().join("config.toml")).unwrap();
    for command in ["simulate", "sweep"] {
        let said = refused(dir.path(), &[command, "config.toml", "--seed", "3"]);
        assert!(said.starts_with("config.toml:1:1: this is no scenario"), "{said}");
        assert!(has_help(&said, "--config config.toml"), "{said}");
        assert_eq!(said.matches("help: ").count(), 1, "{said}");
    }
}

#[test]
fn a_broken_file_is_one_finding() {
    let dir = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(small()).unwrap().replace("[queue]", "[queue");
    fs::write(dir.path().join("wrong.toml"), text.replace("\"async\"", "async")).unwrap();
    let said = refused(dir.path(), &["simulate", "wrong.toml"]);
    assert_eq!(said.matches("help: ").count(), 1, "{said}");
}

#[test]
fn a_point_that_does_not_fit_is_named_with_those_that_do() {
    let dir = tempfile::tempdir().unwrap();
    let small = small();
    let args = ["sweep", small.to_str().unwrap(), "--set", "stale_filter_steps=4"];
    let over = ["--over", "max_head_off_policyness=0,4,8,16"];
    let said = refused(dir.path(), &[&args[..], &over].concat());
    assert!(said.starts_with("with policy_training.max_head_off_policyness=8:\n"), "{said}");
    let fitting = "--over policy_training.max_head_off_policyness=0,4\n";
    assert!(said.contains(fitting), "{said}");
}

/// `file:line:column: says`, of a line with a mark.
fn finding(file: &str, text: &str, shown: &str, says: &str) -> String {
    let marked = shown.find('«').expect("something is marked");
    let line = shown.replace(['«', '»'], "");
    let at = text.lines().position(|other| other.trim() == line).expect("the line is there");
    let indent = text.lines().nth(at).map_or(0, |other| other.len() - other.trim_start().len());
    format!("{file}:{}:{}: {says}", at + 1, indent + marked + 1)
}

/// Whether a line is shown with what is marked in it underlined.
fn underlined(said: &str, shown: &str) -> bool {
    let (before, rest) = shown.split_once('«').expect("something is marked");
    let (marked, _) = rest.split_once('»').expect("the mark ends");
    let line = shown.replace(['«', '»'], "");
    let under = format!("{}{}", " ".repeat(before.len()), "^".repeat(marked.len()));
    said.contains(&format!("    {line}\n    {under}\n"))
}

fn has_help(said: &str, help: &str) -> bool {
    said.lines().any(|line| line.starts_with("help: ") && line.contains(help))
}

/// Runs `args`: exit code 2, nothing on stdout, nothing written. Gives what was said.
fn refused(dir: &Path, args: &[&str]) -> String {
    let before = files(dir);
    let output = run(dir, args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?} wrote to stdout");
    assert_eq!(files(dir), before, "{args:?} wrote files");
    said
}
