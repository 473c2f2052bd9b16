//! Rows into SQL.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use headway_shared::id::{SessionId, VoteId};
use headway_shared::input::{Input, VoteOutcome};
use rusqlite::{CachedStatement, Connection, Result, Transaction, params};

use super::rows::{Question, Row};
use super::turns;
use super::writer::Keep;
use crate::engine::Token;
use crate::json;

/// Writes all rows in one transaction, at this time of day.
pub(super) fn commit(connection: &mut Connection, rows: &[Row], wall_ms: i64) -> Result<()> {
    let transaction = connection.transaction()?;
    let statements = Statements::new(&transaction);
    // Votes that begin and end in this transaction are written whole.
    let mut ends: BTreeMap<VoteId, &Row> = BTreeMap::new();
    for row in rows {
        if let Row::VoteEnded { vote, .. } = row {
            ends.entry(*vote).or_insert(row);
        }
    }
    let mut written = BTreeSet::new();
    let mut rows = rows;
    while let [row, rest @ ..] = rows {
        rows = rest;
        match (row, rest) {
            // Of a session that is over with the turn that began it, its end is written with its name.
            (Row::SessionNamed { id, name }, [Row::SessionEnded { id: ended }, rest @ ..])
                if id == ended =>
            {
                rows = rest;
                name_session(&statements, *id, name, true)?;
            }
            (Row::VoteStarted { vote, .. }, _) if ends.contains_key(vote) => {
                whole_vote(&statements, row, ends[vote])?;
                written.insert(*vote);
            }
            (Row::VoteEnded { vote, .. }, _) if written.remove(vote) => {}
            _ => write(&statements, row, wall_ms)?,
        }
    }
    drop(statements);
    transaction.commit()
}

fn name_session(statements: &Statements<'_>, id: SessionId, name: &str, ended: bool) -> Result<()> {
    let sql = "INSERT INTO sessions (id, name, ended) VALUES (?1, ?2, ?3)";
    run(statements, sql, params![number(id.0), name, ended])
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

fn write(statements: &Statements<'_>, row: &Row, wall_ms: i64) -> Result<()> {
    match row {
        Row::Input { seq, at, input, actions } => {
            let text = json_of(&**input)?;
            run(
                statements,
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
        Row::SessionNamed { id, name } => name_session(statements, *id, name, false),
        Row::GroupNamed { id, name } => run(
            statements,
            "INSERT INTO groups (id, name) VALUES (?1, ?2)",
            params![number(id.0), name],
        ),
        Row::SessionEnded { id } => {
            run(statements, "UPDATE sessions SET ended = 1 WHERE id = ?1", params![number(id.0)])
        }
        Row::Admitted { .. } | Row::Generated { .. } => write_sample(statements, row),
        Row::Turn { .. } | Row::NextState { .. } => turns::write(statements, row),
        Row::VoteStarted { .. } | Row::VoteEnded { .. } => write_vote(statements, row),
        Row::Resolved { sample, step, fate, seq } => run(
            statements,
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
        Row::StepStarted { .. } | Row::StepEnded { .. } => write_step(statements, row),
        Row::Snapshot { inputs, core, book } => run(
            statements,
            "INSERT OR REPLACE INTO snapshots VALUES (?1, ?2, ?3)",
            params![number(*inputs), core, book],
        ),
    }
}

fn write_sample(statements: &Statements<'_>, row: &Row) -> Result<()> {
    match row {
        Row::Admitted { sample, request, session, group, seq, question } => run(
            statements,
            "INSERT INTO samples (id, request, session, \"group\", admitted, messages, metadata, \
             prompt) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                number(sample.0),
                number(request.0),
                number(session.0),
                group.map(|group| number(group.0)),
                number(*seq),
                messages(question)?,
                json_of(&question.metadata)?,
                json::ids(question.prompt.iter().copied())
            ],
        ),
        Row::Generated { sample, tokens, finish, response } => {
            let [ids, logprobs, segments] = token_columns(tokens)?;
            let finish = json_of(finish)?;
            run(
                statements,
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

fn write_vote(statements: &Statements<'_>, row: &Row) -> Result<()> {
    match row {
        Row::VoteStarted { vote, sample, seq } => run(
            statements,
            "INSERT INTO votes (id, sample, started) VALUES (?1, ?2, ?3)",
            params![number(vote.0), number(sample.0), number(*seq)],
        ),
        Row::VoteEnded { vote, seq, outcome, tokens, judge_version } => {
            let (name, value) = named(*outcome);
            run(
                statements,
                "UPDATE votes SET ended = ?2, outcome = ?3, score = ?4, tokens = ?5, \
                 judge_version = ?6 WHERE id = ?1 AND ended IS NULL",
                params![number(vote.0), number(*seq), name, value, tokens, judge_version],
            )
        }
        _ => Ok(()),
    }
}

/// A vote that has ended already.
fn whole_vote(statements: &Statements<'_>, started: &Row, ended: &Row) -> Result<()> {
    let (
        Row::VoteStarted { vote, sample, seq: start },
        Row::VoteEnded { seq, outcome, tokens, judge_version, .. },
    ) = (started, ended)
    else {
        return Ok(());
    };
    let (name, value) = named(*outcome);
    run(
        statements,
        "INSERT INTO votes (id, sample, started, ended, outcome, score, tokens, judge_version) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            number(vote.0),
            number(sample.0),
            number(*start),
            number(*seq),
            name,
            value,
            tokens,
            judge_version
        ],
    )
}

/// An outcome as it is stored, and its score.
fn named(outcome: VoteOutcome) -> (&'static str, Option<f64>) {
    match outcome {
        VoteOutcome::Score(value) => ("score", Some(score(value))),
        VoteOutcome::Invalid => ("invalid", None),
        VoteOutcome::Failed => ("failed", None),
    }
}

fn write_step(statements: &Statements<'_>, row: &Row) -> Result<()> {
    match row {
        Row::StepStarted { step, learner, samples, seq } => run(
            statements,
            "INSERT INTO steps (id, learner, samples, started) VALUES (?1, ?2, ?3, ?4)",
            params![number(step.0), learner.number(), json_of(samples)?, number(*seq)],
        ),
        Row::StepEnded { step, ok, metrics, seq } => {
            let sql = "UPDATE steps SET ended = ?2, ok = ?3 WHERE id = ?1 AND ended IS NULL";
            run(statements, sql, params![number(step.0), number(*seq), ok])?;
            metrics.iter().try_for_each(|metric| {
                run(
                    statements,
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

/// The statements of a transaction, each looked up once.
pub(super) struct Statements<'t> {
    transaction: &'t Transaction<'t>,
    known: RefCell<Vec<(&'static str, CachedStatement<'t>)>>,
}

impl<'t> Statements<'t> {
    fn new(transaction: &'t Transaction<'t>) -> Self {
        Self { transaction, known: RefCell::default() }
    }
}

pub(super) fn run(
    statements: &Statements<'_>,
    sql: &'static str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<()> {
    let mut known = statements.known.borrow_mut();
    // There are few, and a text that stands once in the program is told by its place.
    let known_at = known.iter().position(|(other, _)| std::ptr::eq(*other, sql));
    let at = known_at.unwrap_or(known.len());
    if known_at.is_none() {
        known.push((sql, statements.transaction.prepare_cached(sql)?));
    }
    known[at].1.execute(values).map(drop)
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

pub(super) fn messages(question: &Question) -> Result<String> {
    json_of(&question.messages)
}

/// Generated tokens, as they are stored: ids, log-probabilities, and runs of one version.
pub(super) fn token_columns(tokens: &[Token]) -> Result<[String; 3]> {
    let ids = json::ids(tokens.iter().map(|token| token.id));
    let logprobs: Vec<f32> = tokens.iter().map(|token| token.logprob).collect();
    let runs: Vec<(u32, u32)> = crate::engine::segments(tokens)
        .iter()
        .map(|segment| (segment.version.number(), segment.tokens))
        .collect();
    Ok([ids, json_of(&logprobs)?, json_of(&runs)?])
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

#[cfg(test)]
mod tests {
    use headway_shared::id::SampleId;
    use rusqlite::types::Value;

    use super::*;

    fn database() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("schema.sql")).unwrap();
        connection
    }

    /// All of a table.
    fn table(connection: &Connection, name: &str) -> Vec<Vec<Value>> {
        let mut statement = connection.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| (0..columns).map(|column| row.get(column)).collect();
        statement.query_map([], row).unwrap().collect::<Result<_>>().unwrap()
    }

    #[test]
    fn what_is_written_together_reads_as_if_written_row_by_row() {
        let vote = VoteId;
        let named = |id: u64| Row::SessionNamed { id: SessionId(id), name: format!("s{id}") };
        let over = |id: u64| Row::SessionEnded { id: SessionId(id) };
        let started = |id: u64, seq| Row::VoteStarted { vote: vote(id), sample: SampleId(id), seq };
        let ended = |id: u64, seq, outcome| Row::VoteEnded {
            vote: vote(id),
            seq,
            outcome,
            tokens: 7,
            judge_version: 2,
        };
        let rows = [
            named(0),
            over(0),
            named(1),
            named(2),
            over(1),
            started(0, 3),
            started(1, 3),
            started(2, 4),
            ended(1, 4, VoteOutcome::Score(500_000)),
            ended(0, 5, VoteOutcome::Failed),
            // Only the first end of a vote counts.
            ended(0, 6, VoteOutcome::Score(1_000_000)),
        ];
        let (mut together, mut apart) = (database(), database());
        commit(&mut together, &rows, 0).unwrap();
        for row in rows.chunks(1) {
            commit(&mut apart, row, 0).unwrap();
        }
        for name in ["sessions", "votes"] {
            assert_eq!(table(&together, name).len(), 3);
            assert_eq!(table(&together, name), table(&apart, name));
        }
    }
}
