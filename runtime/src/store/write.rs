//! Rows into SQL.

use headway_shared::input::{Input, VoteOutcome};
use rusqlite::{Connection, Result, Transaction, params};
use serde_json::json;

use super::rows::{Question, Row};
use super::turns;
use super::writer::Keep;
use crate::engine::Token;

/// Writes all rows in one transaction, at this time of day.
pub(super) fn commit(connection: &mut Connection, rows: &[Row], wall_ms: i64) -> Result<()> {
    let transaction = connection.transaction()?;
    for row in rows {
        write(&transaction, row, wall_ms)?;
    }
    transaction.commit()
}

/// Deletes all snapshots but the newest, and, unless all inputs are kept, the inputs before
/// the oldest of these: replay then begins there.
pub(super) fn trim(connection: &mut Connection, keep: Keep) -> Result<()> {
    let transaction = connection.transaction()?;
    let oldest = "SELECT inputs FROM snapshots ORDER BY inputs DESC LIMIT 1 OFFSET ?1";
    let offset = keep.snapshots.saturating_sub(1);
    if !keep.inputs {
        transaction.execute(&format!("DELETE FROM inputs WHERE seq < ({oldest})"), [offset])?;
    }
    // What this decision version began with is where its replay begins.
    let delete = format!(
        "DELETE FROM snapshots WHERE inputs < ({oldest}) \
         AND inputs NOT IN (SELECT from_input FROM epochs)"
    );
    transaction.execute(&delete, [offset])?;
    transaction.commit()
}

fn write(transaction: &Transaction<'_>, row: &Row, wall_ms: i64) -> Result<()> {
    match row {
        Row::Input { seq, at, input, actions } => {
            let text = json_of(&**input)?;
            run(
                transaction,
                "INSERT INTO inputs VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    number(*seq),
                    number(at.as_nanos()),
                    wall_ms,
                    kind(input),
                    text,
                    actions.to_string()
                ],
            )
        }
        Row::SessionNamed { id, name } => run(
            transaction,
            "INSERT INTO sessions (id, name) VALUES (?1, ?2)",
            params![number(id.0), name],
        ),
        Row::GroupNamed { id, name } => run(
            transaction,
            "INSERT INTO groups (id, name) VALUES (?1, ?2)",
            params![number(id.0), name],
        ),
        Row::SessionEnded { id } => {
            run(transaction, "UPDATE sessions SET ended = 1 WHERE id = ?1", params![number(id.0)])
        }
        Row::Admitted { .. } | Row::Generated { .. } => write_sample(transaction, row),
        Row::Turn { .. } | Row::NextState { .. } => turns::write(transaction, row),
        Row::VoteStarted { .. } | Row::VoteEnded { .. } => write_vote(transaction, row),
        Row::Resolved { sample, step, fate, seq } => run(
            transaction,
            "UPDATE samples SET score = ?2, masked = ?3, fate = ?4, step = ?5, staleness = ?6, \
             resolved = ?7 WHERE id = ?1",
            params![
                number(sample.id.0),
                score(sample.score),
                sample.masked,
                fate,
                step.map(|step| number(step.0)),
                step.map(|_| sample.staleness_head()),
                number(*seq)
            ],
        ),
        Row::StepStarted { .. } | Row::StepEnded { .. } => write_step(transaction, row),
        Row::Snapshot { inputs, core, book } => run(
            transaction,
            "INSERT OR REPLACE INTO snapshots VALUES (?1, ?2, ?3)",
            params![number(*inputs), core, book],
        ),
    }
}

fn write_sample(transaction: &Transaction<'_>, row: &Row) -> Result<()> {
    match row {
        Row::Admitted { sample, request, session, group, seq, question } => run(
            transaction,
            "INSERT INTO samples (id, request, session, \"group\", admitted, messages, metadata, \
             prompt) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                number(sample.0),
                number(request.0),
                number(session.0),
                group.map(|group| number(group.0)),
                number(*seq),
                messages(question),
                json_of(&question.metadata)?,
                json_of(&*question.prompt)?
            ],
        ),
        Row::Generated { sample, tokens, finish, response } => {
            let [ids, logprobs, segments] = token_columns(tokens)?;
            let finish = json_of(finish)?;
            run(
                transaction,
                "UPDATE samples SET tokens = ?2, logprobs = ?3, segments = ?4, finish = ?5, \
                 response = ?6 WHERE id = ?1",
                params![
                    number(sample.0),
                    ids,
                    logprobs,
                    segments,
                    finish.trim_matches('"'),
                    &**response
                ],
            )
        }
        _ => Ok(()),
    }
}

fn write_vote(transaction: &Transaction<'_>, row: &Row) -> Result<()> {
    match row {
        Row::VoteStarted { vote, sample, seq } => run(
            transaction,
            "INSERT INTO votes (id, sample, started) VALUES (?1, ?2, ?3)",
            params![number(vote.0), number(sample.0), number(*seq)],
        ),
        Row::VoteEnded { vote, seq, outcome, tokens, judge_version } => {
            let (name, value) = match outcome {
                VoteOutcome::Score(value) => ("score", Some(score(*value))),
                VoteOutcome::Invalid => ("invalid", None),
                VoteOutcome::Failed => ("failed", None),
            };
            run(
                transaction,
                "UPDATE votes SET ended = ?2, outcome = ?3, score = ?4, tokens = ?5, \
                 judge_version = ?6 WHERE id = ?1 AND ended IS NULL",
                params![number(vote.0), number(*seq), name, value, tokens, judge_version],
            )
        }
        _ => Ok(()),
    }
}

fn write_step(transaction: &Transaction<'_>, row: &Row) -> Result<()> {
    match row {
        Row::StepStarted { step, learner, samples, seq } => run(
            transaction,
            "INSERT INTO steps (id, learner, samples, started) VALUES (?1, ?2, ?3, ?4)",
            params![number(step.0), learner.number(), json_of(samples)?, number(*seq)],
        ),
        Row::StepEnded { step, ok, metrics, seq } => {
            let sql = "UPDATE steps SET ended = ?2, ok = ?3 WHERE id = ?1 AND ended IS NULL";
            run(transaction, sql, params![number(step.0), number(*seq), ok])?;
            metrics.iter().try_for_each(|metric| {
                run(
                    transaction,
                    "INSERT OR REPLACE INTO step_metrics VALUES (?1, ?2, ?3, ?4)",
                    params![
                        number(step.0),
                        &*metric.name,
                        metric.staleness.map_or(-1, i64::from),
                        metric.value
                    ],
                )
            })
        }
        _ => Ok(()),
    }
}

pub(super) fn run(
    transaction: &Transaction<'_>,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<()> {
    transaction.prepare_cached(sql)?.execute(values).map(drop)
}

/// SQLite's integers are signed: ids and times stay below 2^63.
pub(super) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn score(millionths: i32) -> f64 {
    f64::from(millionths) / 1e6
}

pub(super) fn json_of(value: &(impl serde::Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

pub(super) fn messages(question: &Question) -> String {
    let list: Vec<_> = question
        .messages
        .iter()
        .map(|message| json!({"role": message.role, "content": message.content}))
        .collect();
    json!(list).to_string()
}

/// Generated tokens, as they are stored: ids, log-probabilities, and runs of one version.
pub(super) fn token_columns(tokens: &[Token]) -> Result<[String; 3]> {
    let ids: Vec<u32> = tokens.iter().map(|token| token.id).collect();
    let logprobs: Vec<f32> = tokens.iter().map(|token| token.logprob).collect();
    let runs: Vec<(u32, u32)> = crate::engine::segments(tokens)
        .iter()
        .map(|segment| (segment.version.number(), segment.tokens))
        .collect();
    Ok([json_of(&ids)?, json_of(&logprobs)?, json_of(&runs)?])
}

fn kind(input: &Input) -> &'static str {
    match input {
        Input::Request(_) => "request",
        Input::ClientLeft { .. } => "client_left",
        Input::SessionStarted { .. } => "session_started",
        Input::NextState { .. } => "next_state",
        Input::SessionEnded { .. } => "session_ended",
        Input::SourceExhausted => "source_exhausted",
        Input::GenerationEnded { .. } => "generation_ended",
        Input::EnvironmentEnded { .. } => "environment_ended",
        Input::VoteEnded { .. } => "vote_ended",
        Input::StepEnded { .. } => "step_ended",
        Input::Weights { .. } => "weights",
        Input::ReplicaUp { .. } => "replica_up",
        Input::ReplicaDown { .. } => "replica_down",
        Input::Checkpointed { .. } => "checkpointed",
        Input::Restored { .. } => "restored",
        Input::CommitFailed => "commit_failed",
        Input::Operator(_) => "operator",
        Input::Tick => "tick",
        Input::Measured(_) => "measured",
    }
}
