//! A sweep goes on where it was killed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use headway_sim::sweep::journal::{FILE, Journal};

use crate::all::shard::{refused, same, says};
use crate::all::support::{files, headway, run, small, stderr, succeed};

/// How many runs those who are at work in a folder, or were, have kept.
fn kept(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let kept = |path| Some(Journal::parse(&fs::read(path).ok()?).ok()?.runs.len());
    entries.filter_map(|entry| kept(entry.ok()?.path().join(FILE))).sum()
}

/// Starts a sweep and kills it once it has kept a run; whether it was not done yet.
fn is_killed(dir: &Path, args: &[&str], folder: &Path) -> bool {
    let mut child = headway(dir)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let before = kept(folder);
    while kept(folder) <= before {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        thread::yield_now();
    }
    child.kill().expect("it can be killed");
    // A process that was killed has no exit code.
    child.wait().expect("it ends").code().is_none()
}

/// A sweep of the small scenario, killed in the middle, then resumed: `shard` of it, or all.
fn killed_and_resumed(shard: &[&str], subfolder: &str) {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let mut replications = 12_u32;
    let (count, folder) = loop {
        let (count, out) = (replications.to_string(), format!("out-{replications}"));
        let folder = dir.path().join(&out).join(subfolder);
        let args = ["sweep", scenario.to_str().unwrap(), "--replications", &count, "--out", &out];
        // A fast machine may be done before we are: then there is more to do.
        if is_killed(dir.path(), &[&args[..], &["--jobs", "1"], shard].concat(), &folder) {
            break (count, folder);
        }
        replications *= 2;
    };
    let done = kept(&folder);
    assert!(done > 0 && !folder.join(FILE).exists() && !folder.join("sweep.json").exists());
    let args = |out: &str| -> Vec<String> {
        let args = ["sweep", scenario.to_str().unwrap(), "--replications", &count, "--out", out];
        args.iter().chain(shard).map(|word| (*word).to_owned()).collect()
    };
    let (resumed, fresh) = (args(&format!("out-{count}")), args("fresh"));
    let output = headway(dir.path()).args(&resumed).arg("--resume").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let all = replications as usize * 2 / if shard.is_empty() { 1 } else { 2 };
    says(&stderr(&output), &[&format!("goes on: {done} of {all} runs are there\n")]);
    let whole = headway(dir.path()).args(&fresh).output().unwrap();
    assert_eq!(output.stdout, whole.stdout);
    let (one, other) = (files(&folder), files(&dir.path().join("fresh").join(subfolder)));
    match shard {
        [] => same(&one, &other),
        // Runs stand in the order in which they ended.
        _ => {
            assert_eq!(one.keys().collect::<Vec<_>>(), [FILE]);
            let runs = |bytes: &[u8]| Journal::parse(bytes).unwrap().runs;
            assert!(runs(&one[FILE]) == runs(&other[FILE]));
        }
    }
    // What is done is not run again; what the killed one left is gone.
    if !shard.is_empty() {
        let again = headway(dir.path()).args(&resumed).arg("--resume").output().unwrap();
        says(&stderr(&again), &[&format!("goes on: {all} of {all} runs are there\n")]);
    }
}

#[test]
fn a_killed_sweep_goes_on_and_gives_the_bytes_of_one_that_was_not() {
    killed_and_resumed(&[], "");
}

#[test]
fn a_killed_shard_goes_on() {
    killed_and_resumed(&["--shard", "2/2"], "shard-2-of-2");
}

/// The words of a sweep of twelve runs.
const TWELVE: [&str; 4] = ["--replications", "6", "--jobs", "1"];

#[cfg(unix)]
#[test]
fn a_sweep_that_found_the_disk_full_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let scenario = scenario.to_str().unwrap();
    let args = [&["sweep", scenario, "--out", "out"][..], &TWELVE[..]].concat();
    // A file of more than 16 blocks of 512 bytes cannot be written: the run that meets the limit
    // is torn.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_headway"))
        .args(&args)
        .current_dir(dir.path())
        .output()
        .expect("there is a shell");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    says(&said, &["what the runs gave could not be kept: ", "help: make room", "--resume"]);
    let done = kept(&dir.path().join("out"));
    assert!((1..12).contains(&done), "{done}");
    let resumed = run(dir.path(), &[&args[..], &["--resume"]].concat());
    says(&stderr(&resumed), &[&format!("goes on: {done} of 12 runs are there\n")]);
    let fresh = [&["sweep", scenario, "--out", "fresh"][..], &TWELVE[..]].concat();
    assert_eq!(succeed(dir.path(), &fresh).as_bytes(), resumed.stdout);
    same(&files(&dir.path().join("out")), &files(&dir.path().join("fresh")));
}

#[test]
fn only_the_same_sweep_is_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = small();
    let sweep = |more: &[&str]| {
        let args = ["sweep", scenario.to_str().unwrap(), "--replications", "2", "--out", "out"];
        run(dir.path(), &[&args[..], more].concat())
    };
    let begun = sweep(&["--resume"]);
    assert!(begun.status.success(), "{}", stderr(&begun));
    says(&stderr(&begun), &["nothing to go on with: the sweep begins\n"]);
    let whole = files(&dir.path().join("out"));

    // A result is there already, of another sweep.
    let said = refused(&sweep(&["--resume", "--seed", "8"]));
    says(&said, &["out/sweep.json: not of this sweep: its seed is 7, not 8", "help: "]);
    same(&files(&dir.path().join("out")), &whole);

    // A shard is there already, of another sweep.
    let shard = ["--shard", "1/2"];
    assert!(sweep(&shard).status.success());
    let other = [&shard[..], &["--resume", "--over", "batch_size=4,8"]].concat();
    let parts =
        ["shard-1-of-2/shard.runs: not of this sweep: it sweeps ", "help: give the command"];
    says(&refused(&sweep(&other)), &parts);
    // Without --resume it begins, and replaces what is there.
    let again = sweep(&["--shard", "1/2", "--over", "batch_size=4,8"]);
    assert!(again.status.success(), "{}", stderr(&again));
}
