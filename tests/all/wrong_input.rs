//! Wrong input is refused with its place and its remedy, and exit code 2.

use std::fs;

use crate::all::support::{run, small, stderr};

/// Runs `args`, with `SMALL` standing for the small scenario; it must be refused, and say all of
/// `parts`.
fn refused(args: &[&str], parts: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let args: Vec<&str> = args
        .iter()
        .map(|arg| if *arg == "SMALL" { scenario.to_str().unwrap() } else { arg })
        .collect();
    let output = run(dir.path(), &args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?} wrote to stdout");
    assert!(!said.contains("panicked"), "{said}");
    for part in parts {
        assert!(said.contains(part), "{args:?} does not say {part:?}:\n{said}");
    }
    assert!(!dir.path().join("out").exists(), "{args:?} wrote files");
}

#[test]
fn what_is_swept_is_checked() {
    let over = |text: &str, parts: &[&str]| refused(&["sweep", "SMALL", "--over", text], parts);
    over("max_head_of_policyness=0", &["--over:1:1:", "did you mean `max_head_off_policyness`"]);
    over("max_head_off_policyness", &["says no values", "help: write KEY=VALUES"]);
    over("max_head_off_policyness=0,,1", &["--over:1:27:", "a value is missing", "help: "]);
    over("max_head_off_policyness=4..x", &["`4..x` is no range", "help: "]);
    over("max_head_off_policyness=2..1", &["is empty", "help: "]);
    over("max_head_off_policyness=many", &["max_head_off_policyness", "help: "]);
    over("batch_size=0..100000", &["more than 10000", "help: "]);
}

#[test]
fn what_is_set_is_checked() {
    let set = |text: &str, parts: &[&str]| refused(&["simulate", "SMALL", "--set", text], parts);
    set("batch_size", &["--set:1:1:", "is no assignment", "help: "]);
    set("batch_sise=4", &["--set:1:1:", "did you mean `batch_size`"]);
    set("batch_size=lots", &["--set:1:12:", "help: "]);
    set("scenario.steps=-1", &["--set:1:16:", "help: "]);
}

#[test]
fn a_scenario_says_where_it_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let text =
        fs::read_to_string(small()).unwrap().replace("batch_size = 16", "batch_size = \"16\"");
    let line = 1 + text.lines().position(|line| line.starts_with("batch_size")).unwrap();
    fs::write(dir.path().join("wrong.toml"), text).unwrap();
    let output = run(dir.path(), &["sweep", "wrong.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let place = format!("wrong.toml:{line}:14:");
    assert!(stderr(&output).contains(&place), "no {place}: {}", stderr(&output));
    assert!(stderr(&output).contains("help: "), "{}", stderr(&output));
}

#[test]
fn files_and_folders_are_checked() {
    refused(&["sweep", "nothing.toml"], &["nothing.toml", "cannot be read", "help: "]);
    refused(&["simulate", "SMALL", "--config", "none.toml"], &["none.toml", "help: "]);
    refused(&["plot", "nowhere"], &["nowhere: cannot be read", "help: "]);
    refused(&["replay", "nothing.record"], &["nothing.record", "help: "]);
    refused(&["sweep", "SMALL", "--out", "/proc/nowhere"], &["/proc/nowhere", "--out DIR"]);
}

#[test]
fn a_folder_with_a_broken_table_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("sweep.json"), "{}").unwrap();
    let output = run(dir.path(), &["plot", "."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("sweep.json"), "{}", stderr(&output));
}

#[test]
fn two_equal_sides_are_no_comparison() {
    refused(&["compare", "SMALL"], &["A and B are the same", "--set-b KEY=VALUE"]);
    refused(&["compare", "SMALL", "--replications", "1"], &["--replications"]);
}

#[test]
fn numbers_of_options_are_checked() {
    refused(&["sweep", "SMALL", "--replications", "0"], &["--replications"]);
    refused(&["sweep", "SMALL", "--seed", "many"], &["--seed"]);
    refused(&["sweep", "SMALL", "--jobs", "0"], &["--jobs", "1..=512"]);
    refused(&["sweep", "SMALL", "--jobs", "100000"], &["--jobs", "1..=512"]);
    refused(&["sweep", "SMALL", "--format", "xml"], &["--format", "table, json, csv"]);
}

/// Runs `args` in a folder with `files`; it must be refused. Gives what it said.
fn said_in(files: &[(&str, &[u8])], args: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    fs::copy(small(), dir.path().join("small.toml")).unwrap();
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    let output = run(dir.path(), args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

#[test]
fn a_file_that_is_none_or_another_one_is_named_with_what_to_name_instead() {
    for (args, what, help) in [
        (&["simulate", "smal.toml"][..], "smal.toml: cannot be read: ", "did you mean small.toml?"),
        (&["simulate", "folder"], "folder: cannot be read: this is a folder", "name a file in it"),
        (&["simulate", "no/such.toml"], "no/such.toml: cannot be read", "there is no folder no"),
        (&["replay", "folder"], "folder: cannot be read: this is a folder", "name a file in it"),
        (
            &["simulate", "small.toml", "--out", "small.toml"],
            "small.toml: cannot be written: this is a file",
            "--out DIR",
        ),
        (
            &["simulate", "small.toml", "--trace", "folder"],
            "folder: cannot be written: this is a folder",
            "--trace folder/trace.json",
        ),
        (&["plot", "nowhere"], "nowhere: cannot be read: ", "name a file that exists"),
        (
            &["guard", "small.toml", "small.toml"],
            "it has neither [tuned] nor [guard]",
            "tuned.toml",
        ),
        (&["tournament", "--workload", "mil"], "no workload and no file `mil`", "mean `mild`?"),
    ] {
        let said = said_in(&[], args);
        assert!(said.contains(what), "{args:?}: {said}");
        let found = said.lines().any(|line| line.starts_with("help: ") && line.contains(help));
        assert!(found, "{args:?}: {said}");
    }
}

#[test]
fn bytes_that_are_no_text_are_named_with_their_place_or_what_they_are() {
    let wrong = b"[scenario]\nname = \"\xc3\xa9\xff\"\n";
    let said = said_in(&[("wrong.toml", wrong)], &["simulate", "wrong.toml"]);
    assert!(said.starts_with("wrong.toml:2:10: not UTF-8 text: byte 0xFF"), "{said}");
    for record in [&b"SQLite format 3\0\xff"[..], b"HEADWAY\n\x01\x00\xff"] {
        let said = said_in(&[("run.db", record)], &["simulate", "run.db"]);
        assert!(said.contains("run.db: this is the record of a run"), "{said}");
        assert!(said.contains("`headway replay`"), "{said}");
    }
}

#[test]
fn what_a_scenario_sweeps_is_wrong_in_its_file() {
    let text = fs::read_to_string(small()).unwrap();
    let text = text.replace("[\"max_head_off_policyness=0,2\"]", "[\"max_head_of_policyness=0\"]");
    let said = said_in(&[("wrong.toml", text.as_bytes())], &["sweep", "wrong.toml"]);
    assert!(said.starts_with("wrong.toml, sweep of [scenario]:1:1: unknown key"), "{said}");
    assert!(said.contains("did you mean `max_head_off_policyness`?"), "{said}");
}

#[test]
fn a_number_on_the_command_line_is_named_with_what_numbers_there_are() {
    for (args, tip) in [
        (["--seed", "-1"], "write a whole number, 0 or more"),
        (["--replications", "0"], "write a whole number from 1 to 100000"),
    ] {
        let said = said_in(&[], &["simulate", "small.toml", args[0], args[1]]);
        assert!(said.contains(&format!("invalid value '{}'", args[1])), "{said}");
        assert!(said.contains(tip), "{said}");
    }
    let said = said_in(&[], &["environment", "localhost", "--config", "small.toml"]);
    assert!(said.contains("write it with its scheme"), "{said}");
}
