//! `headway promote --live` to a `headway run` that is going on.

use std::fs;
use std::process::Output;

use crate::all::checkpoint;
use crate::all::live_run::{self, OPERATOR};
use crate::all::promote;
use crate::all::sglang_server::SglangServer;
use crate::all::support::{headway, stderr, succeed};

/// What the users' files do not say by their defaults must be tuned with.
const BETTER: [&str; 4] = [
    "stale_filter_steps=8",
    "max_head_off_policyness=3",
    "sync_mode=\"rolling\"",
    "queue.output.max_size=64",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_going_on_takes_a_tuned_configuration_and_gives_it_back() {
    let dir = live_run::folder();
    let answer = vec![checkpoint::END];
    let server = SglangServer::start(&dir.path().join("model"), move |_| answer.clone());
    let (process, url, _rest) = live_run::start(dir.path(), &server.url());
    let tuned = promote::folder(&promote::tuned(&BETTER));
    let ask = |args: &[&str], token: &str| {
        let mut command = headway(tuned.path());
        command.args(["promote", "--live", &url]).args(args).env("HEADWAY_ADMIN_TOKEN", token);
        command.output().unwrap()
    };
    let told = |output: &Output| {
        assert!(output.status.success(), "{}", stderr(output));
        String::from_utf8(output.stdout.clone()).unwrap()
    };
    let refused = |output: &Output, part: &str| {
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(output).contains(part), "{part}: {}", stderr(output));
    };

    refused(&ask(&["--rollback"], OPERATOR), "there is nothing to go back to");
    refused(&ask(&["tuned.toml"], "another"), "refuses the admin token (401)");
    refused(&ask(&["tuned.toml"], ""), "the variable HEADWAY_ADMIN_TOKEN holds no token");
    let asked = told(&ask(&["tuned.toml", "--dry-run"], OPERATOR));
    for part in [
        "  policy_training.max_head_off_policyness  2 -> 3 ",
        "  queue.output.max_size                    512 -> 64 ",
        "  policy_serving.sync_mode                 \"pause_drain\" -> \"rolling\" ",
    ] {
        assert!(asked.contains(part), "{part:?} is not in\n{asked}");
    }
    fs::write(tuned.path().join("token"), format!("{OPERATOR}\n")).unwrap();
    assert_eq!(told(&ask(&["tuned.toml", "--token-file", "token"], "")), asked);
    let again = ask(&["tuned.toml"], OPERATOR);
    assert_eq!(told(&again), "");
    assert!(stderr(&again).contains("what was tuned is in force"), "{}", stderr(&again));
    let back = told(&ask(&["--rollback"], OPERATOR));
    assert!(back.contains("  policy_training.max_head_off_policyness  3 -> 2 "), "{back}");
    assert_eq!(back.lines().count(), asked.lines().count());
    refused(&ask(&["--rollback"], OPERATOR), "there is nothing to go back to");

    drop(process);
    refused(&ask(&["tuned.toml"], OPERATOR), "nobody answers");
    // Killed, and yet what an operator changed is in the record.
    succeed(dir.path(), &["replay", "run.db"]);
}
