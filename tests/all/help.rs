//! Every option is explained.

use crate::all::support::{run, stderr, succeed};

#[test]
fn every_command_explains_its_options() {
    let shared = [
        "--set",
        "--config",
        "--settings",
        "--seed",
        "--format",
        "--out",
        "--jobs",
        "--replications",
    ];
    let options: &[(&str, &[&str], &[&str])] = &[
        ("simulate", &shared, &["--record", "--replication ", "--trace", "--timeline"]),
        ("sweep", &shared, &["--over", "0..16", "cases", "--shard", "K/N", "auto", "--resume"]),
        ("merge", &["--format", "--out"], &["<DIR>"]),
        ("compare", &shared, &["--set-a", "--set-b", "--case-a", "--case-b"]),
        ("tune", &shared, &["--maximize", "--subject-to", "--space", "--runs", "--window-sec"]),
        ("plan", &shared, &["--gpus", "--over", "--constraint", "--exhaustive"]),
        (
            "tournament",
            &shared,
            &["--workload", "--gates", "--sync-modes", "mild, heavy, sessions"],
        ),
        ("plot", &["--out"], &["<DIR|RUN>", "again"]),
        (
            "promote",
            &["--settings"],
            &["--to", "--live", "--scenario", "--dry-run", "--rollback", "HEADWAY_ADMIN_TOKEN"],
        ),
        ("guard", &["--format"], &["<TUNED|CONFIG>", "<RUN>", "--patience", "1: the run left"]),
        ("run", &["--config", "--settings", "--set"], &["--record", "--durability", "HEADWAY_LOG"]),
        (
            "replay",
            &["--format"],
            &[
                "<RECORD>",
                "--trace",
                "--timeline",
                "--until",
                "--state",
                "--explain",
                "--why",
                "90s",
            ],
        ),
        (
            "validate",
            &["--set", "--seed", "--format", "--out", "--jobs", "--replications"],
            &["--scenario", "--baseline", "--tolerance", "--warmup-steps", "<RUN[@KEY=VALUE...]>"],
        ),
        (
            "check",
            &["--set", "--config", "--seed", "--format", "--jobs"],
            &["[SCENARIO|RECORD]", "--results", "--bless", "--tolerance", "--junit", "github"],
        ),
        ("torture", &["--jobs", "--out"], &["--seeds", "--first", "--inputs", "1: a seed broke"]),
        ("describe", &["--set", "--config", "--settings", "--format"], &["--run", "markdown"]),
        ("init", &[], &["--from", "--kind", "--rule", "--force", "--yes"]),
        (
            "schema",
            &["--out"],
            &["config", "settings", "scenario", "tuned", "tournament", "golden"],
        ),
        ("completions", &[], &["bash", "zsh"]),
        ("man", &[], &["<DIR>"]),
        ("diagnose", &["--format"], &["<RUN|DIR>", "1: a cause was found"]),
        ("import", &[], &["azure-llm", "mooncake", "openclaw", "verl", "slime", "areal"]),
        ("export", &[], &["tensorboard", "csv"]),
        ("doctor", &["--set", "--config", "--settings", "--format"], &["HEADWAY_ADMIN_TOKEN"]),
    ];
    let dir = tempfile::tempdir().unwrap();
    let overview = succeed(dir.path(), &["--help"]);
    for (command, shared, own) in options {
        assert!(overview.contains(&format!("  {command} ")), "{command} is not listed");
        let help = succeed(dir.path(), &[command, "--help"]);
        for option in shared.iter().chain(*own) {
            assert!(help.contains(option), "{command} --help does not mention {option}:\n{help}");
        }
        assert!(help.contains("--quiet"), "{command} --help does not mention --quiet:\n{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{command} --help is wide");
    }
}

#[test]
fn without_a_command_the_commands_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("  simulate  "), "{}", stderr(&output));
}
