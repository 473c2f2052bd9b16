//! JSON schemas, completions and man pages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value};

use crate::all::blessed;
use crate::all::support::{files, live, small, succeed};

const SCRIPT: &str = "tests/schema/validate.py";

/// Where the Python package `jsonschema` is, which comes with schemathesis; `None`: it is not installed,
/// and need not be.
fn validator() -> Option<PathBuf> {
    let place = blessed::root().join("target/schemathesis");
    if place.join("installed.txt").exists() {
        return Some(place);
    }
    let said = "jsonschema is not installed: run scripts/test_packages.sh";
    assert!(std::env::var_os("HEADWAY_TEST_ALL").is_none(), "{said}");
    eprintln!("SKIPPED: {said}");
    None
}

/// What is wrong with each of these files by a schema, a line for each that is wrong.
fn wrong(packages: &Path, schema: &Path, files: &[PathBuf]) -> String {
    let output = Command::new("python3")
        .env("PYTHONPATH", packages)
        .arg(blessed::root().join(SCRIPT))
        .arg(schema)
        .args(files)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Files that must not validate, each with the schema and what is wrong.
const WRONG: [(&str, &str, &str); 9] = [
    ("config", "[policy_training]\nbatch_sise = 4\n", "batch_sise"),
    ("config", "[queue]\nmax_size = \"many\"\n", "many"),
    ("config", "[queue]\ndrop_policy = \"rejects\"\n", "rejects"),
    ("config", "[policy_serving]\nport = 65536\n", "65536"),
    ("config", "[world]\n", "world"),
    ("scenario", "[scenario]\nsteps = 4\n", "name"),
    ("scenario", "[world.judge]\nvote = { kind = \"constant\", seconds = 1 }\n", "seconds"),
    ("scenario", "[world.judge]\nvote = { kind = \"normal\" }\n", "normal"),
    ("scenario", "[[world.faults.at]]\nkind = \"replica_down\"\n", "time_sec"),
];

#[test]
fn every_shipped_file_is_as_its_schema_says_and_wrong_ones_are_not() {
    let Some(packages) = validator() else { return };
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["schema", "--out", "schemas"]);
    let schema = |kind: &str| dir.path().join("schemas").join(format!("{kind}.schema.json"));

    let root = blessed::root();
    let mut scenarios = blessed::scenarios();
    scenarios.push(small());
    succeed(dir.path(), &["init", "new"]);
    scenarios.push(dir.path().join("new/scenario.toml"));
    assert_eq!(wrong(&packages, &schema("scenario"), &scenarios), "");
    let configs = [
        live("config.toml"),
        root.join("scenarios/live/config.toml"),
        root.join("scenarios/live/judged.toml"),
        dir.path().join("new/config.toml"),
    ];
    assert_eq!(wrong(&packages, &schema("config"), &configs), "");
    let settings = [
        live("settings.json"),
        root.join("scenarios/live/settings.json"),
        root.join("scenarios/live/judged.json"),
        dir.path().join("new/settings.json"),
    ];
    assert_eq!(wrong(&packages, &schema("settings"), &settings), "");
    let tuned = [root.join("results/promote/tuned.toml")];
    assert_eq!(wrong(&packages, &schema("tuned"), &tuned), "");

    for (kind, text, what) in WRONG {
        let file = dir.path().join("wrong.toml");
        fs::write(&file, text).unwrap();
        let said = wrong(&packages, &schema(kind), &[file]);
        assert!(said.contains(what), "{kind} takes {text:?}: {said:?}");
    }
}

/// Which schema a JSON file of a result has.
fn kind_of(path: &Path) -> Option<&'static str> {
    let folder = path.parent()?.file_name()?.to_str()?;
    Some(match path.file_name()?.to_str()? {
        "run.json" | "sweep.json" => "result",
        "plan.json" => "plan",
        "tune.json" => "tune",
        "tournament.json" => "tournament",
        "validation.json" => "validation",
        _ if folder == "check" => "golden",
        _ => return None,
    })
}

/// The JSON files in a folder and in those within it, by their schema.
fn documents(folder: &Path, found: &mut BTreeMap<&'static str, Vec<PathBuf>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            let kind = kind_of(&path);
            let kind = kind.unwrap_or_else(|| panic!("{} has no schema", path.display()));
            found.entry(kind).or_default().push(path);
        }
    }
}

/// One result of each command that writes one, and what it prints as JSON.
fn results(dir: &Path) {
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    let printed = dir.join("made/printed");
    fs::create_dir_all(&printed).unwrap();
    let make = |args: &[&str], more: &[&str], file: &str| {
        let said = succeed(dir, &[args, more, &["--format", "json"]].concat());
        fs::write(printed.join(file), said).unwrap();
    };
    make(&["simulate", scenario, "--record", "--out", "made/run"], &[], "run.json");
    make(&["sweep", scenario, "--out", "made/sweep"], &[], "sweep.json");
    let space = ["--space", "max_head_off_policyness=0,2", "--subject-to", "staleness_head_p99<=9"];
    make(&["tune", scenario, "--out", "made/tune"], &space, "tune.json");
    make(&["plan", scenario, "--gpus", "4", "--out", "made/plan"], &[], "plan.json");
    let gates =
        ["--gates", "headway,sync", "--sync-modes", "in_flight", "--out", "made/tournament"];
    make(&["tournament", "--workload", scenario], &gates, "tournament.json");
    let loose = ["--tolerance", "*=none", "--warmup-steps", "2", "--replications", "2"];
    let of =
        ["validate", "made/run/run.record", "--scenario", scenario, "--out", "made/validation"];
    make(&of, &loose, "validation.json");
    succeed(dir, &["check", scenario, "--bless", "--results", "made/check"]);
}

#[test]
fn every_json_file_of_a_result_is_as_its_schema_says_and_a_wrong_one_is_not() {
    let Some(packages) = validator() else { return };
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["schema", "--out", "schemas"]);
    let schema = |kind: &str| dir.path().join("schemas").join(format!("{kind}.schema.json"));
    results(dir.path());
    let mut found = BTreeMap::new();
    documents(&dir.path().join("made"), &mut found);
    let kinds = ["golden", "plan", "result", "tournament", "tune", "validation"];
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), kinds);
    documents(&blessed::root().join("results"), &mut found);
    for (kind, files) in &found {
        assert_eq!(wrong(&packages, &schema(kind), files), "", "{kind}");
        let text = fs::read_to_string(&files[0]).unwrap();
        let document: Map<String, Value> = serde_json::from_str(&text).unwrap();
        let (mut more, mut less) = (document.clone(), document.clone());
        more.insert("scenarios".into(), 1.into());
        let first = less.keys().next().cloned().unwrap();
        less.shift_remove(&first);
        let missing = format!("'{first}' is a required");
        for (document, said) in [(more, "'scenarios' was unexpected"), (less, missing.as_str())] {
            let file = dir.path().join("wrong.json");
            fs::write(&file, Value::Object(document).to_string()).unwrap();
            let found = wrong(&packages, &schema(kind), &[file]);
            assert!(found.contains(said), "{kind}: {found:?}");
        }
    }
}

#[test]
fn the_files_of_the_readme_and_the_pages_are_as_the_schema_says() {
    let Some(packages) = validator() else { return };
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["schema", "--out", "schemas"]);
    let mut checked = 0;
    for page in [
        "README.md",
        "docs/configuration.md",
        "docs/adaptive.md",
        "docs/engines.md",
        "docs/scenarios.md",
    ] {
        let text = blessed::text(page);
        for block in text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let file = dir.path().join("example.toml");
            fs::write(&file, block).unwrap();
            let kind = if block.contains("[scenario]") || block.contains("[world") {
                "scenario"
            } else {
                "config"
            };
            let schema = dir.path().join("schemas").join(format!("{kind}.schema.json"));
            assert_eq!(wrong(&packages, &schema, &[file]), "", "{page}:\n{block}");
            checked += 1;
        }
    }
    assert!(checked > 3, "{checked}");
}

#[test]
fn a_schema_explains_its_keys() {
    let dir = tempfile::tempdir().unwrap();
    let schema = |kind: &str| -> Value {
        serde_json::from_str(&succeed(dir.path(), &["schema", kind])).unwrap()
    };
    let scenario = schema("scenario");
    let world = &scenario["properties"]["world"]["properties"];
    let about = |value: &Value| value["description"].as_str().unwrap_or_default().to_owned();
    assert!(
        about(&world["serving"]["properties"]["replicas"]).starts_with("Replicas at the start.")
    );
    assert!(
        about(&world["clients"]["properties"]["think"]).contains("seconds from the end of a turn")
    );
    let at = &world["faults"]["properties"]["at"]["items"]["properties"];
    assert!(at["kind"]["enum"].as_array().unwrap().contains(&"rollback".into()), "{at}");
    assert!(
        about(&schema("settings")["properties"]["api"]["properties"]["base_url"]).contains("/v1")
    );
    let queue = &schema("config")["properties"]["queue"]["properties"]["max_size"];
    assert!(about(queue).ends_with("Default: 512."), "{queue}");
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let help = succeed(dir.path(), &["--help"]);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = succeed(dir.path(), &["completions", shell]);
        for word in ["simulate", "describe", "--trace", "--max-inputs"] {
            // Fish writes options without their dashes.
            assert!(script.contains(word.trim_start_matches('-')), "{shell}: {word}");
        }
    }
    succeed(dir.path(), &["man", "man"]);
    let pages = files(&dir.path().join("man"));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    for command in listed.filter_map(|line| line.split_whitespace().next()) {
        assert!(
            command == "help" || pages.contains_key(&format!("headway-{command}.1")),
            "{command}"
        );
    }
    let simulate = String::from_utf8_lossy(&pages["headway-simulate.1"]).into_owned();
    assert!(simulate.contains("replications") && simulate.starts_with(".ie"), "{simulate}");
}
