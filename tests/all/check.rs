//! Scenarios are compared with what was accepted of them.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::all::blessed;
use crate::all::support::{files, run, small, stderr, succeed};

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("stdout is text")
}

fn check(folder: &Path, more: &[&str]) -> Output {
    let small = small();
    let fixed = ["check", small.to_str().unwrap(), "--results", "goldens"];
    run(folder, &[&fixed[..], more].concat())
}

/// A folder with a golden of the small scenario.
fn blessed() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let output = check(dir.path(), &["--bless"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("small: accepted: "), "{}", stdout(&output));
    dir
}

#[test]
fn a_scenario_without_a_golden_fails_and_says_how_to_accept_it() {
    let dir = tempfile::tempdir().unwrap();
    let output = check(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.starts_with("small: it has no golden in goldens\n  help: accept"), "{said}");
    assert!(said.contains("--results goldens --bless"), "{said}");
}

#[test]
fn what_was_accepted_passes_on_any_number_of_threads_and_accepting_it_again_writes_nothing() {
    let dir = blessed();
    let golden = files(&dir.path().join("goldens"));
    assert_eq!(golden.keys().collect::<Vec<_>>(), ["small.json", "small.log.z"]);
    for jobs in ["1", "2"] {
        let output = check(dir.path(), &["--jobs", jobs]);
        assert!(output.status.success(), "{}", stdout(&output));
        assert!(stdout(&output).starts_with("small: as accepted ("), "{}", stdout(&output));
    }
    let when = fs::metadata(dir.path().join("goldens/small.json")).unwrap().modified().unwrap();
    assert!(check(dir.path(), &["--bless"]).status.success());
    let again = fs::metadata(dir.path().join("goldens/small.json")).unwrap().modified().unwrap();
    assert_eq!((when, golden), (again, files(&dir.path().join("goldens"))));
    // Another folder, from nothing: the same bytes.
    assert_eq!(files(&blessed().path().join("goldens")), files(&dir.path().join("goldens")));
}

/// The order of the output queue is a rule of the core: which samples a step takes.
#[test]
fn another_queue_order_is_shown_at_the_first_step_that_takes_other_samples() {
    let dir = blessed();
    let output = check(dir.path(), &["--set", "queue_type=lifo"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stdout(&output);
    for expected in [
        "small: decisions differ, first at input ",
        "  the first decision that differs: input ",
        "\n    accepted:\n",
        "\n    -   of the samples ",
        "\n    +   of the samples ",
        "\n    the state before it:\n",
        "gate headway: places = (η 4 + 1 - publish lag ",
        "output queue: ",
        "ledger: ",
        "metrics that moved:\n",
        "--bless\n",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in\n{said}");
    }
}

#[test]
fn a_gate_that_admits_one_less_is_shown_with_its_formula() {
    let dir = blessed();
    let output = check(dir.path(), &["--set", "max_head_off_policyness=0", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = &document["cases"][0]["difference"]["first"];
    assert_eq!(first["how"], "decision");
    assert!(first["input"].as_str().unwrap().contains("arrives"), "{first}");
    assert!(first["accepted"][0].as_str().unwrap().starts_with("start request "), "{first}");
    assert!(first["now"][0].as_str().unwrap().contains("429, stale"), "{first}");
    assert_eq!(first["state"]["gate"], "headway");
    let places = |replica: &serde_json::Value| replica["capacity"]["places"].as_i64().unwrap();
    let replicas = first["state"]["replicas"].as_array().unwrap();
    assert!(replicas.iter().all(|replica| places(replica) <= 0), "{first}");
}

#[test]
fn another_world_is_told_from_another_rule() {
    let dir = blessed();
    let output = check(dir.path(), &["--set", "world.judge.invalid_share=0.5"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stdout(&output);
    assert!(said.contains("the simulated world has changed, not a rule of the core"), "{said}");
    let output = check(dir.path(), &["--seed", "8"]);
    assert!(stdout(&output).contains("the seed is 8, and was 7"), "{}", stdout(&output));
}

#[test]
fn a_difference_behind_the_log_is_narrowed_to_a_block() {
    let dir = tempfile::tempdir().unwrap();
    assert!(check(dir.path(), &["--bless", "--log-inputs", "10"]).status.success());
    assert!(check(dir.path(), &[]).status.success());
    let output = check(dir.path(), &["--set", "queue_type=lifo"]);
    let said = stdout(&output);
    assert!(said.contains("small: decisions differ, first between inputs "), "{said}");
    assert!(said.contains("with a --log-inputs above "), "{said}");
}

#[test]
fn a_tolerance_lets_metrics_move_and_a_pinned_length_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    assert!(check(dir.path(), &["--bless", "--max-inputs", "500"]).status.success());
    let output = check(dir.path(), &[]);
    assert!(stdout(&output).contains("(500 inputs, its first, digest "), "{}", stdout(&output));
    let other = ["--set", "queue_type=lifo"];
    assert_eq!(check(dir.path(), &other).status.code(), Some(1));
    let within = [&other[..], &["--tolerance", "100%"]].concat();
    let said = stdout(&check(dir.path(), &within));
    assert!(
        said.contains("within the tolerance of 100%") || said.contains("metrics moved"),
        "{said}"
    );
    let output = check(dir.path(), &["--tolerance", "7"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_damaged_golden_is_wrong_input_and_accepting_replaces_it_whole() {
    let dir = blessed();
    let goldens = dir.path().join("goldens");
    let good = files(&goldens);
    for name in ["small.json", "small.log.z"] {
        let mut bytes = good[name].clone();
        let middle = bytes.len() / 2;
        bytes.truncate(middle);
        fs::write(goldens.join(name), bytes).unwrap();
        let output = check(dir.path(), &[]);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", stdout(&output));
        let said = stderr(&output);
        assert!(said.contains(&format!("goldens: {name} is damaged: ")), "{said}");
        assert!(said.contains("help: restore it from version control, or accept"), "{said}");
        assert!(check(dir.path(), &["--bless"]).status.success());
        assert_eq!(files(&goldens), good);
    }
    // What cannot be written leaves what was there.
    fs::write(dir.path().join("file"), "no folder").unwrap();
    let small = small();
    let args = ["check", small.to_str().unwrap(), "--bless", "--results", "file"];
    let output = run(dir.path(), &args);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("with --results DIR"), "{}", stderr(&output));
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"no folder");
}

#[test]
fn continuous_integration_gets_junit_and_annotations() {
    let dir = blessed();
    let args = ["--set", "queue_type=lifo", "--junit", "out/check.xml", "--format", "github"];
    let output = check(dir.path(), &args);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stdout(&output);
    let annotation = said.lines().last().unwrap();
    assert!(annotation.starts_with("::error file="), "{annotation}");
    assert!(annotation.contains(",title=headway check%3A small::decisions differ"), "{annotation}");
    let xml = fs::read_to_string(dir.path().join("out/check.xml")).unwrap();
    assert!(xml.contains("tests=\"1\" failures=\"1\""), "{xml}");
    assert!(xml.contains("name=\"small\""), "{xml}");
    let output = check(dir.path(), &["--junit", "out/check.xml"]);
    assert!(output.status.success());
    let xml = fs::read_to_string(dir.path().join("out/check.xml")).unwrap();
    assert!(xml.contains("failures=\"0\"") && !xml.contains("<failure"), "{xml}");
}

#[test]
fn without_arguments_every_scenario_of_the_folder_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), &["check"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("help: name scenarios or records, or run it where"));
    fs::create_dir(dir.path().join("scenarios")).unwrap();
    fs::copy(small(), dir.path().join("scenarios/one.toml")).unwrap();
    let text = fs::read_to_string(small()).unwrap();
    let other = text.replace("name = \"small\"", "name = \"other\"");
    fs::write(dir.path().join("scenarios/two.toml"), other).unwrap();
    succeed(dir.path(), &["check", "--bless"]);
    fs::write(dir.path().join("results/check/old.json"), "{}").unwrap();
    let output = run(dir.path(), &["check"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).ends_with("2 of 2 as they should be\n"), "{}", stdout(&output));
    assert!(stderr(&output).contains("results/check/old.json: there is no such scenario"));
    fs::copy(small(), dir.path().join("scenarios/twin.toml")).unwrap();
    let output = run(dir.path(), &["check"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("are both called small"), "{}", stderr(&output));
    let output = run(dir.path(), &["check", "scenarios/one.toml", "--bless", "--seed", "3"]);
    assert_eq!(output.status.code(), Some(2), "what is accepted is the scenario as it is");
}

const PAGE: &str = "docs/check.md";

/// The body of the first block of the page in a language.
fn block(language: &str) -> String {
    let text = blessed::text(PAGE);
    let (_, rest) = text.split_once(&format!("```{language}\n")).expect("the page has it");
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_pages_example_prints_what_it_shows() {
    let (text, shown) = (blessed::text(PAGE), block("console"));
    let line = shown.lines().next().unwrap();
    let arguments: Vec<&str> = line.strip_prefix("$ headway ").unwrap().split(' ').collect();
    let output = run(blessed::root(), &arguments);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let fresh = format!("{line}\n{}", stdout(&output));
    blessed::check(PAGE, &text.replace(&shown, &fresh));
}

/// The shell snippet as it stands, and every command that the workflow runs, with a scenario of one's
/// own.
#[test]
fn the_pages_snippet_and_workflow_run() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("scenarios")).unwrap();
    fs::copy(small(), dir.path().join("scenarios/ours.toml")).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_headway")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let shell = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-e", "-c", script]).current_dir(dir.path()).env("PATH", &path);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{script}: {}", stderr(&output));
    };
    shell(&block("sh"));
    let workflow = block("yaml");
    let commands: Vec<&str> = workflow
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("- run: "))
        .filter(|command| command.starts_with("headway "))
        .collect();
    assert!(!commands.is_empty());
    commands.into_iter().for_each(shell);
    assert!(dir.path().join("check.xml").exists());
}
