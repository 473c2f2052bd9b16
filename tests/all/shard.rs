//! A sweep in shards, joined again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use crate::all::support::{files, headway, run, small, stderr, succeed};

/// The file of runs.
const RUNS: &str = "shard.runs";

/// The words of a sweep of ten runs.
fn sweep<'a>(scenario: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["sweep", scenario, "--replications", "5"][..], more].concat()
}

/// The same bytes in the same files.
pub(super) fn same(one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>) {
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, bytes) in one {
        assert!(*bytes == other[name], "{name} differs");
    }
}

/// It was refused, and wrote nothing to stdout. What it said.
pub(super) fn refused(output: &Output) -> String {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty());
    said
}

pub(super) fn says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "it does not say {part:?}:\n{said}");
    }
}

#[test]
fn joined_shards_are_the_whole_sweep_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    let stdout = succeed(dir.path(), &sweep(scenario, &["--out", "whole", "--format", "json"]));
    let whole = files(&dir.path().join("whole"));
    // One shard, as many as do not divide ten, and more than there are runs.
    for of in [1, 3, 4, 13] {
        let out = format!("by-{of}");
        for number in 1..=of {
            let (shard, jobs) = (format!("{number}/{of}"), (1 + number % 3).to_string());
            let more = ["--shard", &shard, "--jobs", &jobs, "--out", &out];
            assert_eq!(succeed(dir.path(), &sweep(scenario, &more)), "");
        }
        let folder = |number: usize| format!("{out}/shard-{number}-of-{of}");
        // In some other order, some by their names, some by the folder that they are in.
        let named: Vec<String> = (1..=of).map(|place| folder(place * 5 % of + 1)).collect();
        let named: Vec<&str> = match of {
            4 => vec![&out],
            _ => named.iter().map(String::as_str).collect(),
        };
        let joined = format!("joined-{of}");
        let args = [&["merge", "--out", &joined, "--format", "json"][..], &named[..]].concat();
        assert_eq!(succeed(dir.path(), &args), stdout, "{of} shards");
        same(&files(&dir.path().join(joined)), &whole);
    }
}

#[test]
fn joined_shards_have_ratios_and_say_what_went_wrong_in_runs() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/drift-floor.toml");
    let scenario = scenario.to_str().unwrap();
    let sweep: Vec<&str> = "--replications 2 --set scenario.steps=8 --set scenario.warmup_steps=2 \
                            --over max_head_off_policyness=0,4"
        .split_whitespace()
        .collect();
    let sweep = [&["sweep", scenario][..], &sweep[..]].concat();
    let whole = run(dir.path(), &[&sweep[..], &["--out", "out"]].concat());
    for shard in ["1/2", "2/2"] {
        succeed(dir.path(), &[&sweep[..], &["--out", "shards", "--shard", shard]].concat());
    }
    let joined = run(dir.path(), &["merge", "shards", "--out", "out2"]);
    let (one, other) = (files(&dir.path().join("out")), files(&dir.path().join("out2")));
    same(&one, &other);
    assert!(one.contains_key("ratios.csv"));
    assert_eq!(joined.status.code(), whole.status.code());
    assert_eq!(joined.stdout, whole.stdout);
    assert_eq!(stderr(&joined).replace("out2", "out"), stderr(&whole));
}

/// The shards of the small sweep, in folders below `out`.
fn shards(dir: &Path, shards: &[&str], more: &[&str], out: &str) {
    let scenario = small();
    for shard in shards {
        let own = ["--shard", shard, "--out", out];
        succeed(dir, &sweep(scenario.to_str().unwrap(), &[&own[..], more].concat()));
    }
}

#[test]
fn what_is_no_whole_sweep_is_not_joined() {
    let dir = tempfile::tempdir().unwrap();
    let merge = |dirs: &[&str]| {
        let said = refused(&run(dir.path(), &[&["merge", "--out", "joined"][..], dirs].concat()));
        assert!(!dir.path().join("joined").exists());
        said
    };
    shards(dir.path(), &["1/6", "4/6"], &[], "out");
    let parts = ["shards 2, 3, 5, 6 of 6 are missing", "help: run what is missing:"];
    let said = merge(&["out"]);
    says(&said, &parts);
    let command = said.lines().find(|line| line.contains("--shard 2/6")).expect("a command");
    // The command that it says makes what is missing.
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    succeed(dir.path(), &words);
    says(&merge(&["out"]), &["shards 3, 5, 6 of 6 are missing"]);
    let twice = ["out", "out/shard-4-of-6"];
    says(&merge(&twice), &["shard 4/6 is given twice", "help: name each shard once"]);

    shards(dir.path(), &["2/3"], &[], "thirds");
    let parts = ["shard-2-of-3 is shard 2/3", "shard-1-of-6 is one of 6", "help: "];
    says(&merge(&["out/shard-1-of-6", "thirds"]), &parts);

    let other = |more: &[&str], part: &str| {
        shards(dir.path(), &["2/6"], more, "other");
        let said = merge(&["out/shard-1-of-6", "other"]);
        says(&said, &["is of another sweep than out/shard-1-of-6: ", part, "help: join shards"]);
    };
    other(&["--seed", "8"], "its seed is 8, not 7");
    other(&["--set", "batch_size=8"], "the scenario `small` has other settings (digest ");
    other(&["--over", "max_head_off_policyness=0,3"], "other values of");
    other(&["--over", "batch_size=8,16"], "it sweeps `policy_training.batch_size`, not ");

    succeed(dir.path(), &["sweep", small().to_str().unwrap(), "--out", "plain"]);
    says(&merge(&["plain"]), &["plain holds the results of a whole sweep, and no shard", "help: "]);
    fs::create_dir(dir.path().join("empty")).unwrap();
    says(&merge(&["empty"]), &["empty holds no shard of a sweep", "help: "]);
    says(&merge(&["nowhere"]), &["nowhere cannot be read", "help: "]);
}

#[test]
fn a_damaged_or_foreign_shard_is_named_with_its_place_and_can_be_mended() {
    let dir = tempfile::tempdir().unwrap();
    shards(dir.path(), &["1/2", "2/2"], &[], "out");
    succeed(dir.path(), &["merge", "out", "--out", "before"]);
    let file = dir.path().join("out/shard-2-of-2").join(RUNS);
    let whole = fs::read(&file).unwrap();
    let merge = || refused(&run(dir.path(), &["merge", "out", "--out", "joined"]));
    let resume = |said: &str| {
        let command = said.lines().find_map(|line| line.split_once(": headway ")).expect("one");
        let words: Vec<&str> = command.1.split_whitespace().collect();
        run(dir.path(), &words)
    };

    fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    let said = merge();
    let place = format!("{RUNS} ends at byte {}, in the middle of a run", whole.len() - 1);
    says(&said, &[&place, "help: run again what is lost: headway sweep"]);
    says(&stderr(&resume(&said)), &["goes on: 4 of 5 runs are there"]);
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(&file, &changed).unwrap();
    let said = merge();
    says(&said, &[&format!("{RUNS} is damaged at byte "), "its digest is not that of its bytes"]);
    says(&stderr(&resume(&said)), &["goes on: 4 of 5 runs are there"]);
    succeed(dir.path(), &["merge", "out", "--out", "after"]);
    same(&files(&dir.path().join("after")), &files(&dir.path().join("before")));

    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(String::from_utf8_lossy(&whole).contains(&version));
    fs::write(&file, "something else").unwrap();
    says(&merge(), &["is no file of runs", "help: "]);
    fs::write(&file, "HWYRUNS9\n").unwrap();
    says(&merge(), &["has format 9; this build reads format 1", "help: "]);
}

#[test]
fn a_shard_is_taken_from_slurm_or_from_kubernetes() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let auto = |variables: &str| {
        let mut command = headway(dir.path());
        command.args(sweep(scenario.to_str().unwrap(), &["--shard", "auto"]));
        for variable in variables.split_whitespace() {
            let (name, value) = variable.split_once('=').unwrap();
            command.env(name.replace("TASK", "SLURM_ARRAY_TASK"), value);
        }
        command.output().unwrap()
    };
    let is = |variables: &str, shard: &str| {
        let output = auto(variables);
        assert!(output.status.success(), "{variables}: {}", stderr(&output));
        says(&stderr(&output), &[&format!("shard {shard}, ")]);
    };
    is("TASK_ID=3 TASK_MIN=1 TASK_MAX=4 TASK_COUNT=4 TASK_STEP=1", "3/4");
    is("TASK_ID=0 TASK_MIN=0 TASK_MAX=3 TASK_COUNT=4", "1/4");
    is("TASK_ID=9 TASK_MIN=1 TASK_MAX=13 TASK_COUNT=4 TASK_STEP=4", "3/4");
    is("TASK_ID=3 TASK_MIN=3 TASK_MAX=3 TASK_COUNT=1 HEADWAY_SHARDS=4", "3/4");
    is("JOB_COMPLETION_INDEX=0 HEADWAY_SHARDS=4", "1/4");
    is("JOB_COMPLETION_INDEX=3 HEADWAY_SHARDS=4", "4/4");

    let is_not = |variables: &str, part: &str| {
        says(&refused(&auto(variables)), &["--shard auto: ", part, "help: "]);
    };
    is_not("", "neither SLURM_ARRAY_TASK_ID (Slurm) nor JOB_COMPLETION_INDEX (Kubernetes) is set");
    is_not("TASK_ID=1 JOB_COMPLETION_INDEX=0", "both");
    is_not("TASK_ID=3 TASK_MIN=1 TASK_MAX=7 TASK_COUNT=3", "it has gaps");
    is_not("TASK_ID=4 TASK_MIN=1 TASK_MAX=7 TASK_COUNT=4 TASK_STEP=2", "which it is no task of");
    is_not("TASK_ID=5 TASK_MIN=1 TASK_MAX=4 TASK_COUNT=4", "which it is no task of");
    is_not("TASK_ID=1 TASK_MIN=1 TASK_MAX=4", "SLURM_ARRAY_TASK_COUNT is not set");
    is_not("TASK_ID=one TASK_MIN=1 TASK_MAX=4 TASK_COUNT=4", "SLURM_ARRAY_TASK_ID is `one`");
    is_not("TASK_ID=0 HEADWAY_SHARDS=4", "shards are numbered from 1 to 4");
    is_not("JOB_COMPLETION_INDEX=1", "HEADWAY_SHARDS is not set: how many shards are there?");
    is_not("JOB_COMPLETION_INDEX=4 HEADWAY_SHARDS=4", "there is no shard 5 of 4");
    is_not("JOB_COMPLETION_INDEX=0 HEADWAY_SHARDS=0", "a sweep has 1 to 100000 shards, not 0");
}
