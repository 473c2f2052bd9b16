//! The turns of trajectories: written as they end, read back for a run that goes on.

use std::sync::Arc;

use headway_shared::id::SampleId;
use rusqlite::{Connection, Result, params};

use super::StoreError;
use super::read::tokens_of;
use super::rows::Row;
use super::write::{Statements, json_of, messages, number, run, token_columns};
use crate::json;
use crate::trajectory::Part;

/// The row of a turn stays; that of its sample says what its judge sees: the last turn.
pub(super) fn write(statements: &Statements<'_>, row: &Row) -> Result<()> {
    match row {
        Row::Turn { sample, turn, request, seq, question, part, finish } => {
            let [ids, logprobs, segments] = token_columns(&part.tokens)?;
            let finish = json_of(finish)?;
            let finish = finish.trim_matches('"');
            run(
                statements,
                "INSERT INTO turns VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, NULL)",
                params![
                    number(sample.0),
                    number(*turn as u64),
                    part.sequence,
                    number(request.0),
                    number(*seq),
                    json::ids(part.prompt.iter().copied()),
                    ids,
                    logprobs,
                    segments,
                    finish,
                    &*part.response
                ],
            )?;
            run(
                statements,
                "UPDATE samples SET request = ?2, messages = ?3, metadata = ?4, finish = ?5, \
                 response = ?6, next_state = NULL WHERE id = ?1",
                params![
                    number(sample.0),
                    number(request.0),
                    messages(question)?,
                    json_of(&question.metadata)?,
                    finish,
                    &*part.response
                ],
            )
        }
        Row::NextState { sample, turn, text } => {
            let sql = "UPDATE samples SET next_state = ?2 WHERE id = ?1";
            run(statements, sql, params![number(sample.0), &**text])?;
            let Some(turn) = turn else { return Ok(()) };
            let sql = "UPDATE turns SET next_state = ?3 WHERE sample = ?1 AND turn = ?2";
            run(statements, sql, params![number(sample.0), number(*turn as u64), &**text])
        }
        _ => Ok(()),
    }
}

/// The turns of a sample, in the order in which they ended.
pub(super) fn read(connection: &Connection, sample: SampleId) -> Result<Vec<Part>, StoreError> {
    let sql = "SELECT sequence, prompt, tokens, logprobs, segments, response, next_state \
               FROM turns WHERE sample = ?1 ORDER BY turn";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([number(sample.0)])?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        let place = || StoreError::Damaged {
            place: format!("turn {} of sample {}", parts.len(), sample.0),
        };
        let prompt: String = row.get(1)?;
        let prompt: Vec<u32> = serde_json::from_str(&prompt).map_err(|_| place())?;
        let tokens = tokens_of(row, 2).map_err(|_| place())?;
        parts.push(Part {
            sequence: row.get(0)?,
            prompt: prompt.into(),
            tokens: tokens.into(),
            response: row.get::<_, String>(5)?.into(),
            next_state: row.get::<_, Option<String>>(6)?.map(Arc::from),
        });
    }
    Ok(parts)
}
