//! Is everything there that a live run needs, and is the running one healthy?
//!
//! It starts nothing: what can only be seen on a running system is looked at where one runs at the
//! configured address, and else skipped, visibly.

mod judging;
mod peer;
mod running;

use std::io;

use headway_shared::config::{Config, Settings};
use serde::Serialize;

use crate::secret::{ADMIN_TOKEN, API_KEY, Secret};
use peer::There;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As it should be.
    Passed,
    /// Not as it should be.
    Failed,
    /// It could not be looked at.
    Skipped,
}

impl Outcome {
    /// In a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Skipped => "skipped",
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    /// How it ended.
    pub result: Outcome,
    /// What was seen. Never a key or token.
    pub seen: String,
    /// What to do about it; empty where nothing is to be done.
    pub cure: String,
}

impl Finding {
    fn passed(check: &'static str, seen: impl Into<String>) -> Self {
        Self { check, result: Outcome::Passed, seen: seen.into(), cure: String::new() }
    }

    fn failed(check: &'static str, seen: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { check, result: Outcome::Failed, seen: seen.into(), cure: cure.into() }
    }

    fn skipped(check: &'static str, seen: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { check, result: Outcome::Skipped, seen: seen.into(), cure: cure.into() }
    }
}

const ADDRESS: &str = "address";
const FILES: &str = "both files agree";

/// Looks at everything, one after the other. `variable` looks up environment variables. The two
/// files have been read: where they contradict each other, that has failed.
pub async fn examine(
    config: &Config,
    settings: &Settings,
    variable: impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let pauses = if config.policy_serving.sync_mode.pauses() { "" } else { "no " };
    let mut findings = vec![Finding::passed(FILES, format!("{pauses}503 during a weight sync"))];
    findings.extend(judging::examine(config, settings, &variable).await);
    let (host, port) = (&config.policy_serving.host, config.policy_serving.port);
    let secret = |name| variable(name).and_then(|text| Secret::new(&text));
    let there = peer::look(host, port, secret(API_KEY)).await;
    findings.push(address(host, port, &there));
    findings.extend(match (there, secret(ADMIN_TOKEN)) {
        (There::Headway(_), None) => running::skipped(
            &format!("the admin API needs the token in {ADMIN_TOKEN}, which is not set"),
            &format!("export {ADMIN_TOKEN}, as the running Headway has it"),
        ),
        (There::Headway(peer), Some(token)) => {
            running::examine(&peer.operated_with(token), config, settings).await
        }
        (There::Nobody, _) => running::skipped(
            &format!("no Headway runs at {host}:{port}"),
            &format!("start `headway run` with the variable {ADMIN_TOKEN} set, and look again"),
        ),
        _ => running::skipped("needs the address", ""),
    });
    findings
}

/// The same for callers without a runtime of their own.
///
/// # Errors
/// What the operating system says where there can be none.
pub fn examine_and_wait(
    config: &Config,
    settings: &Settings,
    variable: impl Fn(&str) -> Option<String>,
) -> io::Result<Vec<Finding>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(examine(config, settings, variable)))
}

/// The findings as one JSON document.
#[must_use]
pub fn to_json(findings: &[Finding]) -> String {
    format!("{:#}\n", serde_json::json!({"checks": findings}))
}

fn address(host: &str, port: u16, there: &There) -> Finding {
    let other = "stop it, or choose another `policy_serving.port`";
    match there {
        There::Nobody => Finding::passed(ADDRESS, format!("{host}:{port} is free")),
        There::Headway(_) => {
            Finding::passed(ADDRESS, format!("a Headway answers at {host}:{port}"))
        }
        There::Locked => Finding::failed(
            ADDRESS,
            format!("a Headway at {host}:{port} does not accept our key"),
            format!("export {API_KEY}, as the running Headway has it"),
        ),
        There::Another => {
            Finding::failed(ADDRESS, format!("{host}:{port} is taken by another program"), other)
        }
        There::Unusable(why) => Finding::failed(
            ADDRESS,
            format!("{host}:{port}: {why}"),
            "choose another `policy_serving.host` or `policy_serving.port`",
        ),
    }
}
