//! `headway promote` into a file: what it changes, what it refuses, and the way back.

use std::fs;
use std::path::Path;
use std::process::Output;

use headway_shared::config::tuned::{Provenance, Tuned};
use headway_shared::config::{Config, Envelope, Layers, Range, load_guarded};
use headway_shared::digest::Digest;
use headway_shared::metrics::{METRICS, Metric};
use headway_shared::record::DECISION_VERSION;
use headway_shared::time::Span;
use headway_sim::scenario::Scenario;

use crate::all::support::{files, live, run, small, stderr, succeed};

/// As people write it; what stands in comments and spaces is theirs.
const CONFIG: &str = "\
# Our run. Ask Ada before you change the port.
[policy_serving]
host = \"0.0.0.0\"          # behind the proxy
port = 31000
weight_sync_pause = true   # users see 503

[policy_training]
max_head_offpolicyness = 2 # AReaL's name
batch_size=16

\t# The queues hold a night's work.
[queue]
max_size = 512
";

fn metric(name: &str) -> &'static Metric {
    METRICS.iter().find(|metric| metric.name == name).unwrap()
}

fn layers(sets: &[&str]) -> Layers {
    let text = fs::read_to_string(small()).unwrap();
    sets.iter().fold(Layers::new().toml("small.toml", text), |layers, set| layers.set(*set))
}

/// A tuned file of the small scenario, in which `sets` are better.
pub(crate) fn tuned(sets: &[&str]) -> Tuned {
    let load = |layers: &Layers| Scenario::load(layers, Path::new(".")).unwrap().0;
    let rate = metric("trained_samples_per_hour");
    let staleness = metric("staleness_head_p99");
    Tuned {
        provenance: Provenance {
            scenario: "small".into(),
            scenario_file: "small.toml".into(),
            scenario_digest: load(&layers(&["world.serving.replicas=3"])).digest(),
            overrides: vec!["--set world.serving.replicas=3".into(), "--seed 9".into()],
            seed: 9,
            replications: 16,
            runs: 240,
            headway: "0.1.0".into(),
            decision_version: DECISION_VERSION,
            maximize: rate.name.into(),
            subject_to: vec!["staleness_head_p99 <= 4".into()],
            space: vec!["policy_training.max_head_off_policyness=0,4".into()],
        },
        predicted: vec![(rate, 1200.0, 12.0), (staleness, 3.0, 0.5)],
        envelope: Envelope {
            window: Span::from_secs(600),
            ranges: vec![(rate, Range { low: 1100.0, high: 1300.0 })],
        },
        config: load(&layers(sets)).config,
    }
}

/// A folder with a tuned file, its scenario, and our configuration.
pub(crate) fn folder(tuned: &Tuned) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(small(), dir.path().join("small.toml")).unwrap();
    fs::write(dir.path().join("tuned.toml"), tuned.to_toml()).unwrap();
    fs::write(dir.path().join("config.toml"), CONFIG).unwrap();
    dir
}

const BETTER: [&str; 3] =
    ["max_head_off_policyness=3", "sync_mode=\"in_flight\"", "queue.max_size=64"];
const PROMOTE: [&str; 4] = ["promote", "tuned.toml", "--to", "config.toml"];
const BACK: [&str; 4] = ["promote", "--rollback", "--to", "config.toml"];

fn config(dir: &tempfile::TempDir) -> String {
    fs::read_to_string(dir.path().join("config.toml")).unwrap()
}

fn loaded(text: &str) -> Config {
    let loaded = load_guarded(&Layers::new().toml("config.toml", text), true);
    loaded.unwrap_or_else(|wrong| panic!("{wrong}\n{text}")).0
}

/// It must refuse with this exit code, say all of `parts`, and leave every file as it is.
fn refuses(dir: &tempfile::TempDir, args: &[&str], code: i32, parts: &[&str]) -> Output {
    let before = files(dir.path());
    let output = run(dir.path(), args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for part in parts {
        assert!(said.contains(part), "it does not say {part:?}:\n{said}");
    }
    assert!(said.contains("help: ") && !said.contains("panicked"), "{said}");
    assert_eq!(files(dir.path()), before);
    output
}

#[test]
fn a_promotion_changes_what_was_tuned_and_keeps_the_rest() {
    let tuned = tuned(&BETTER);
    let dir = folder(&tuned);
    let told = succeed(dir.path(), &PROMOTE);
    for part in [
        "  policy_training.max_head_off_policyness  2 -> 3 ",
        "next admission\n",
        "\n-max_head_offpolicyness = 2 # AReaL's name\n+max_head_offpolicyness = 3 # AReaL's name\n",
        "\n+[guard]\n",
    ] {
        assert!(told.contains(part), "{part:?} is not in\n{told}");
    }
    let text = config(&dir);
    // It was all defaults, which is something to go back to.
    assert!(text.ends_with("\n[guard.previous]\n"), "{text}");
    assert!(!text.contains("[guard.previous.policy_serving]"), "which is as it is anyway: {text}");
    let ours = text.split("\n[guard]\n").next().unwrap();
    for line in CONFIG.lines() {
        let changed = line
            .replace("= 2 #", "= 3 #")
            .replace("= 512", "= 64")
            .replace("weight_sync_pause = true ", "weight_sync_pause = false ");
        assert!(ours.contains(&changed), "{changed:?} is not in\n{text}");
    }
    let (now, mut wished) = (loaded(&text), tuned.config);
    assert_eq!(now.policy_serving.port, 31000, "what only a restart changes is the file's");
    (wished.policy_serving.port, wished.policy_serving.host) = (31000, "0.0.0.0".into());
    assert_eq!(now, wished);
    // Once more: nothing to do, and the way back is what it was.
    assert_eq!(succeed(dir.path(), &PROMOTE), "");
    assert_eq!(config(&dir), text);
    let copies = files(dir.path()).into_keys().filter(|name| name.contains("before")).count();
    assert_eq!(copies, 1);
    let settings = live("settings.json");
    let with = [&PROMOTE[..], &["--settings", settings.to_str().unwrap()]].concat();
    refuses(&dir, &with, 2, &["`pause_on_weight_sync` contradicts `weight_sync_pause`"]);
}

/// Tuned with what the live run does now, as people would: its own promotion changes that file.
#[test]
fn a_file_that_was_tuned_with_can_be_promoted_to_again_and_again() {
    let load = |layers: &Layers| Scenario::load(layers, Path::new(".")).unwrap().0;
    let over = layers(&[]).toml("config.toml", CONFIG);
    let mut tuned = tuned(&[]);
    tuned.provenance.overrides = vec!["--config config.toml".into()];
    tuned.provenance.scenario_digest = load(&over).digest();
    tuned.config = load(&over.set("max_head_off_policyness=3")).config;
    let dir = folder(&tuned);
    let told = succeed(dir.path(), &PROMOTE);
    assert!(told.contains("policy_training.max_head_off_policyness  2 -> 3 "), "{told}");
    let text = config(&dir);
    assert_eq!(succeed(dir.path(), &PROMOTE), "");
    fs::write(dir.path().join("config.toml"), text.replace("= 512", "= 400")).unwrap();
    assert!(succeed(dir.path(), &PROMOTE).contains("-max_size = 400\n+max_size = 512\n"));
    fs::copy(small(), dir.path().join("small.toml")).unwrap();
    let other = fs::read_to_string(small()).unwrap().replace("replicas = 2", "replicas = 4");
    fs::write(dir.path().join("small.toml"), other).unwrap();
    refuses(&dir, &PROMOTE, 2, &["is not the scenario that was tuned"]);
}

#[test]
fn a_dry_run_says_the_same_and_writes_nothing() {
    let dir = folder(&tuned(&BETTER));
    let before = files(dir.path());
    let told = succeed(dir.path(), &[&PROMOTE[..], &["--dry-run"]].concat());
    assert_eq!(files(dir.path()), before);
    assert_eq!(succeed(dir.path(), &PROMOTE), told);
    let promoted = files(dir.path());
    let back = succeed(dir.path(), &[&BACK[..], &["--dry-run"]].concat());
    assert!(back.contains("\n+max_head_offpolicyness = 2 # AReaL's name\n"), "{back}");
    assert_eq!(files(dir.path()), promoted);
}

#[test]
fn each_rollback_undoes_one_promotion() {
    let dir = folder(&tuned(&BETTER));
    succeed(dir.path(), &PROMOTE);
    let once = config(&dir);
    let second = tuned(&["max_head_off_policyness=4", "batch_size=8"]);
    fs::write(dir.path().join("tuned.toml"), second.to_toml()).unwrap();
    succeed(dir.path(), &PROMOTE);
    assert_eq!(loaded(&config(&dir)).policy_training.max_head_off_policyness, 4);
    let edited = config(&dir) + "# a night later\n";
    fs::write(dir.path().join("config.toml"), &edited).unwrap();
    succeed(dir.path(), &BACK);
    assert_eq!(config(&dir), once);
    succeed(dir.path(), &BACK);
    assert_eq!(config(&dir), CONFIG);
    refuses(&dir, &BACK, 2, &["there is nothing to go back to"]);
    // What was undone is kept, what people wrote into it too.
    let kept = fs::read_to_string(dir.path().join("config.toml.before-rollback")).unwrap();
    assert_eq!(kept, edited);
}

#[test]
fn a_key_that_would_be_lost_is_a_refusal() {
    let dir = folder(&tuned(&BETTER));
    let text = CONFIG.replace("batch_size", "stale_filter_steps = 9\nbatch_size")
        + "[environment_hosting]\nretries = 7 # flaky tools\n";
    fs::write(dir.path().join("config.toml"), text).unwrap();
    refuses(
        &dir,
        &PROMOTE,
        2,
        &[
            "config.toml:9:22: `stale_filter_steps` would be lost: it is 9 here",
            "config.toml:16:11: `retries` would be lost: it is 7 here, and tuned.toml was tuned with \
             its default, 1",
            "--set environment_hosting.retries=7",
        ],
    );
    let text = CONFIG.replace("batch_size", "sample_unit = \"session\"\nbatch_size");
    fs::write(dir.path().join("config.toml"), text).unwrap();
    refuses(&dir, &PROMOTE, 2, &["`sample_unit` is \"session\" here, and \"turn\" in tuned.toml"]);
}

#[test]
fn what_no_longer_holds_is_a_refusal() {
    let mut other = tuned(&BETTER);
    other.provenance.subject_to.push("trained_samples_per_hour > 1201".into());
    let dir = folder(&other);
    let broken = "trained_samples_per_hour > 1201 does not hold: it predicts 1200 ± 12";
    refuses(&dir, &PROMOTE, 1, &[broken]);
    other.provenance.subject_to = vec!["judge_idle_share <= 0.5".into()];
    fs::write(dir.path().join("tuned.toml"), other.to_toml()).unwrap();
    refuses(&dir, &PROMOTE, 1, &["it predicts nothing"]);
    other.provenance.subject_to.clear();
    other.provenance.decision_version += 1;
    fs::write(dir.path().join("tuned.toml"), other.to_toml()).unwrap();
    refuses(&dir, &PROMOTE, 2, &["decides as version"]);
    other.provenance.decision_version -= 1;
    other.provenance.scenario_digest = Digest::of(b"another");
    fs::write(dir.path().join("tuned.toml"), other.to_toml()).unwrap();
    let not = "small.toml (with --set world.serving.replicas=3 --seed 9) is not the scenario";
    refuses(&dir, &PROMOTE, 2, &[not]);
    // The scenario has moved, and has changed.
    fs::write(dir.path().join("tuned.toml"), tuned(&BETTER).to_toml()).unwrap();
    fs::rename(dir.path().join("small.toml"), dir.path().join("moved.toml")).unwrap();
    refuses(&dir, &PROMOTE, 2, &["small.toml, is not there", "--scenario FILE"]);
    let named = [&PROMOTE[..], &["--scenario", "moved.toml", "--dry-run"]].concat();
    succeed(dir.path(), &named);
    let changed = fs::read_to_string(small()).unwrap().replace("batch_size = 16", "batch_size = 8");
    fs::write(dir.path().join("moved.toml"), changed).unwrap();
    refuses(&dir, &named, 2, &["moved.toml (with", "is not the scenario that was tuned"]);
}

#[test]
fn files_that_are_broken_or_others_are_refusals() {
    let dir = folder(&tuned(&BETTER));
    let text = fs::read_to_string(dir.path().join("tuned.toml")).unwrap();
    let write = |text: &str| fs::write(dir.path().join("tuned.toml"), text).unwrap();
    let cut = &text[..text.len() * 2 / 3];
    for (other, part) in [
        (text.replace("max_head_off_policyness = 3", "max_head_off_policyness = 2"), "edited"),
        (cut.rsplit_once('\n').unwrap().0.to_owned(), "tuned.toml:"),
        (fs::read_to_string(small()).unwrap(), "this is a scenario"),
        (CONFIG.to_owned(), "this is a configuration"),
        (String::new(), "no tuned file"),
        ("{\"tuned\": 1}".to_owned(), "TOML"),
    ] {
        write(&other);
        refuses(&dir, &PROMOTE, 2, &[part]);
    }
    refuses(&dir, &["promote", "none.toml", "--to", "config.toml"], 2, &["none.toml"]);
    write(&text);
    refuses(&dir, &["promote", "tuned.toml", "--to", "none.toml"], 2, &["none.toml"]);
    for wrong in ["[policy_training]\nbatch_size = 0\n", "[policy_training\n", "batch_size = 4\n"] {
        fs::write(dir.path().join("config.toml"), wrong).unwrap();
        refuses(&dir, &PROMOTE, 2, &["config.toml:"]);
    }
    // There is no place for a key in a table that is a list.
    fs::write(dir.path().join("config.toml"), "[[guard]]\nwindow_sec = 600\n").unwrap();
    refuses(&dir, &PROMOTE, 2, &["config.toml:1:"]);
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_what_is_protected_stays_as_it_is() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = folder(&tuned(&BETTER));
    fs::create_dir(dir.path().join("etc")).unwrap();
    let real = dir.path().join("etc/config.toml");
    fs::rename(dir.path().join("config.toml"), &real).unwrap();
    symlink("etc/config.toml", dir.path().join("config.toml")).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    succeed(dir.path(), &PROMOTE);
    let link = fs::symlink_metadata(dir.path().join("config.toml")).unwrap();
    assert!(link.is_symlink());
    assert_ne!(fs::read_to_string(&real).unwrap(), CONFIG);
    assert_eq!(files(&dir.path().join("etc")).len(), 2, "the copy stands beside the file itself");
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
    succeed(dir.path(), &BACK);
    assert_eq!(fs::read_to_string(&real).unwrap(), CONFIG);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o400)).unwrap();
    let output = run(dir.path(), &PROMOTE);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("write-protected") && said.contains("it is as it was"), "{said}");
    assert_eq!(fs::read_to_string(&real).unwrap(), CONFIG);
    assert_eq!(files(&dir.path().join("etc")).len(), 2, "nothing new is left");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    // Root may write anywhere.
    fs::set_permissions(real.parent().unwrap(), fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(dir.path().join("etc/probe"), "").is_err() {
        let output = run(dir.path(), &PROMOTE);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("cannot be replaced"), "{}", stderr(&output));
        assert_eq!(fs::read_to_string(&real).unwrap(), CONFIG);
    } else {
        eprintln!("skipped: this user may write to any folder");
    }
    fs::set_permissions(real.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn what_is_asked_must_make_sense() {
    let dir = folder(&tuned(&BETTER));
    for args in [
        &["promote", "tuned.toml"][..],
        &["promote", "--to", "config.toml"],
        &["promote", "tuned.toml", "--rollback", "--to", "config.toml"],
    ] {
        assert_eq!(run(dir.path(), args).status.code(), Some(2), "{args:?}");
    }
}
