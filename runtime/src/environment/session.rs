//! One session, from its reset to its end.

use std::future::Future;
use std::time::Duration;

use headway_shared::digest::mix;
use headway_shared::time::Span;
use serde_json::{Value, json};

use super::agent::{Ask, NoAnswer};
use super::host::Shared;
use super::{Episode, Failed, State};

/// Why a session was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// Its environment failed.
    Environment(String),
    /// The gateway did not answer.
    Gateway(String),
}

/// Plays the session with this ordinal.
pub(super) async fn play(shared: &Shared, ordinal: u64) -> Result<(), GivenUp> {
    let options = &shared.options;
    let size = u64::from(options.group_size.max(1));
    let (prompt, member) = (options.first_prompt + ordinal / size, ordinal % size);
    let name = format!("{}-{prompt}-{member}", shared.task.name());
    let mut episode = shared.task.begin(prompt);
    let mut state = reset(shared, &mut *episode).await?;
    let mut messages: Vec<Value> = Vec::new();
    for turn in 1_u32.. {
        messages.push(json!({"role": state.role, "content": state.content}));
        let luck = mix(options.seed ^ mix(prompt << 16 ^ member << 8 ^ u64::from(turn)));
        let group = (size > 1).then(|| group(shared, prompt, turn));
        let said = ask(shared, &name, group.as_deref(), &messages, &state, turn, luck).await?;
        shared.counters.change(|counts| counts.turns += 1);
        if state.last {
            break;
        }
        match step(shared, &mut *episode, &said).await? {
            Some(next) => state = next,
            None => break,
        }
        messages.push(json!({"role": "assistant", "content": said}));
    }
    Ok(())
}

/// The group of a turn: what is compared with each other are turns of one prompt.
fn group(shared: &Shared, prompt: u64, turn: u32) -> String {
    let name = shared.task.name();
    match shared.options.group_per_turn {
        true => format!("{name}-{prompt}/{turn}"),
        false => format!("{name}-{prompt}"),
    }
}

async fn ask(
    shared: &Shared,
    name: &str,
    group: Option<&str>,
    messages: &[Value],
    state: &State,
    turn: u32,
    luck: u64,
) -> Result<String, GivenUp> {
    let body = json!({
        "model": "policy",
        "messages": messages,
        "max_tokens": state.max_tokens,
        "seed": (luck >> 1).cast_signed(),
        "metadata": {"answer": state.answer, "turn": turn.to_string()},
    });
    let ask = Ask { session: name, group, main: true, last: state.last, body: &body, luck };
    let asked = shared.agent.ask(&ask, &shared.counters).await;
    let asked = match asked {
        // Its member of the group has failed before; the session still goes on.
        Err(NoAnswer::GroupClosed) => {
            shared.counters.change(|counts| counts.unrecorded += 1);
            shared.agent.ask(&Ask { main: false, group: None, ..ask }, &shared.counters).await
        }
        asked => asked,
    };
    asked.map_err(|why| match why {
        NoAnswer::GroupClosed => GivenUp::Gateway("its group is closed".to_owned()),
        NoAnswer::GivenUp(why) => GivenUp::Gateway(why),
    })
}

async fn reset(shared: &Shared, episode: &mut dyn Episode) -> Result<State, GivenUp> {
    let limit = shared.hosting.reset_timeout;
    let mut tries = 0;
    loop {
        match within(limit, episode.reset()).await {
            Ok(state) => return Ok(state),
            Err(failed) => tries = again(shared, tries, failed)?,
        }
    }
}

async fn step(
    shared: &Shared,
    episode: &mut dyn Episode,
    said: &str,
) -> Result<Option<State>, GivenUp> {
    let limit = shared.hosting.step_timeout;
    let mut tries = 0;
    loop {
        match within(limit, episode.step(said)).await {
            Ok(next) => return Ok(next),
            Err(failed) => tries = again(shared, tries, failed)?,
        }
    }
}

/// Counts a failure; where it was the last, the session is given up.
fn again(shared: &Shared, tries: u32, failed: Failed) -> Result<u32, GivenUp> {
    shared.counters.change(|counts| counts.failed_operations += 1);
    match tries < shared.hosting.retries {
        true => Ok(tries + 1),
        false => Err(GivenUp::Environment(failed.0)),
    }
}

async fn within<T>(
    limit: Span,
    operation: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    if limit == Span::ZERO {
        return operation.await;
    }
    let limit = Duration::from_nanos(limit.as_nanos());
    let late = |_| Failed(format!("it took longer than {limit:?}"));
    tokio::time::timeout(limit, operation).await.map_err(late)?
}
