//! The shipped scripts of clusters run the command line that there is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::all::blessed;
use crate::all::shard::same;
use crate::all::support::{files, headway, small, stderr, succeed};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name)
}

/// The words of a container's list in a manifest, and the value of a variable that it sets.
fn container(manifest: &str) -> (Vec<String>, Option<String>) {
    let text = blessed::text(manifest);
    let words = text.lines().skip_while(|line| line.trim() != "args:").skip(1);
    let words = words.map_while(|line| line.trim().strip_prefix("- "));
    let words = words.map(|word| word.trim_matches('"').to_owned()).collect();
    let mut lines = text.lines().skip_while(|line| line.trim() != "- name: HEADWAY_SHARDS");
    let shards = lines.nth(1).and_then(|line| line.trim().strip_prefix("value: "));
    (words, shards.map(|shards| shards.trim_matches('"').to_owned()))
}

/// The files of a folder, without the folders of shards beside them.
fn results(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        }
    }
    files(folder)
}

#[test]
fn the_pods_of_the_manifests_make_the_bytes_of_one_sweep() {
    let dir = tempfile::tempdir().unwrap();
    let (words, shards) = container("scripts/kubernetes/sweep.yaml");
    let shards: u32 = shards.expect("the manifest says how many shards there are").parse().unwrap();
    let text = blessed::text("scripts/kubernetes/sweep.yaml");
    assert!(text.contains(&format!("\n  completions: {shards}\n")));
    let scenario = small();
    // What is mounted there, and a sweep that is short here.
    let here = |word: &str| match word {
        "/scenario/scenario.toml" => scenario.to_str().unwrap().to_owned(),
        "/results" => dir.path().join("results").to_str().unwrap().to_owned(),
        "max_head_off_policyness=0..16" => "max_head_off_policyness=0..4".to_owned(),
        other => other.to_owned(),
    };
    let words: Vec<String> = words.iter().map(|word| here(word)).collect();
    for index in (0..shards).rev() {
        let output = headway(dir.path())
            .args(&words)
            .env("JOB_COMPLETION_INDEX", index.to_string())
            .env("HEADWAY_SHARDS", shards.to_string())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let (words, _) = container("scripts/kubernetes/merge.yaml");
    let words: Vec<String> = words.iter().map(|word| here(word)).collect();
    let joined = succeed(dir.path(), &words.iter().map(String::as_str).collect::<Vec<_>>());
    let over = ["--over", "max_head_off_policyness=0..4", "--out", "whole"];
    let whole = [&["sweep", scenario.to_str().unwrap()][..], &over[..]].concat();
    assert_eq!(succeed(dir.path(), &whole), joined);
    same(&results(&dir.path().join("results")), &files(&dir.path().join("whole")));
}

#[cfg(unix)]
#[test]
fn the_tasks_of_the_slurm_scripts_make_the_bytes_of_one_sweep() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    let job = |name: &str, words: &[&str], task: u32| {
        let mut command = Command::new("sh");
        command.arg(script(name)).args(words).current_dir(dir.path());
        command.env("HEADWAY", env!("CARGO_BIN_EXE_headway"));
        let array = [("ID", task), ("MIN", 1), ("MAX", 2), ("COUNT", 2), ("STEP", 1)];
        command.envs(
            array.map(|(name, value)| (format!("SLURM_ARRAY_TASK_{name}"), value.to_string())),
        );
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    };
    for task in [2, 1] {
        job("slurm/sweep.sbatch", &["out", scenario, "--replications", "1"], task);
    }
    let joined = job("slurm/merge.sbatch", &["out"], 1);
    let whole = ["sweep", scenario, "--replications", "1", "--out", "whole"];
    assert_eq!(succeed(dir.path(), &whole).into_bytes(), joined);
    same(&results(&dir.path().join("out")), &files(&dir.path().join("whole")));
}
