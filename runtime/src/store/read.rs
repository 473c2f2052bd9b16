//! SQL into what recovery and replay need.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use headway_shared::digest::Digest;
use headway_shared::id::{GroupId, SampleId, SessionId, StepId};
use headway_shared::input::Input;
use headway_shared::time::Time;
use headway_shared::version::RolloutVersion;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::de::DeserializeOwned;

use super::rows::Question;
use super::write::number;
use super::{Database, StoreError, turns};
use crate::engine::Token;
use crate::tokenizer::Message;
use crate::trajectory::Part;

/// A snapshot as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSnapshot {
    /// How many inputs precede it.
    pub inputs: u64,
    /// The core.
    pub core: Vec<u8>,
    /// What the driver knew of work in flight.
    pub book: Vec<u8>,
}

/// An input as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredInput {
    /// Its number.
    pub seq: u64,
    /// When it was handled.
    pub at: Time,
    /// What it is.
    pub input: Input,
    /// The digest of the actions it caused.
    pub actions: Digest,
}

/// The payload of a sample that has not been resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveSample {
    /// The sample.
    pub id: SampleId,
    /// Its session.
    pub session: SessionId,
    /// What was asked: the last that was, where it is a trajectory.
    pub question: Arc<Question>,
    /// What was generated; empty: nothing yet.
    pub parts: Vec<Part>,
}

/// What recovery reads.
impl Database {
    /// The newest snapshot.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn newest_snapshot(&self) -> Result<Option<StoredSnapshot>, StoreError> {
        newest_snapshot(&self.connection)
    }

    /// Every input from `seq` on, in order, to `each`.
    ///
    /// # Errors
    /// What SQLite or `each` says; [`StoreError::Damaged`] for an input that is missing or is none.
    pub fn inputs_from(
        &self,
        seq: u64,
        each: impl FnMut(StoredInput) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        inputs_of(&self.connection, seq..u64::MAX, each)
    }

    /// The sessions that have not ended, with their names.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn live_sessions(&self) -> Result<Vec<(SessionId, String)>, StoreError> {
        let sql = "SELECT id, name FROM sessions WHERE ended = 0 ORDER BY id";
        let mut statement = self.connection.prepare(sql)?;
        let rows =
            statement.query_map([], |row| Ok((SessionId(unsigned(row, 0)?), row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The `most` latest groups with their names, the oldest first.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn latest_groups(&self, most: usize) -> Result<Vec<(GroupId, String)>, StoreError> {
        let sql = "SELECT id, name FROM groups ORDER BY id DESC LIMIT ?1";
        let mut statement = self.connection.prepare(sql)?;
        let read = |row: &Row<'_>| Ok((GroupId(unsigned(row, 0)?), row.get(1)?));
        let rows = statement.query_map([number(most as u64)], read)?;
        let mut groups: Vec<_> = rows.collect::<Result<_, _>>()?;
        groups.reverse();
        Ok(groups)
    }

    /// Whether a step made a version; `None`: it has not ended, or is unknown.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn step_ended(&self, step: StepId) -> Result<Option<bool>, StoreError> {
        let sql = "SELECT ok FROM steps WHERE id = ?1";
        let ok = self.connection.query_row(sql, [number(step.0)], |row| row.get(0)).optional()?;
        Ok(ok.flatten())
    }

    /// The samples that have not been resolved.
    ///
    /// # Errors
    /// What SQLite says; [`StoreError::Damaged`].
    pub fn live_samples(&self) -> Result<Vec<LiveSample>, StoreError> {
        let sql = "SELECT id, session, messages, metadata, prompt, tokens, logprobs, segments, \
                   response, next_state FROM samples WHERE fate IS NULL ORDER BY id";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut samples = Vec::new();
        while let Some(row) = rows.next()? {
            let mut sample = live_sample(row)?;
            if sample.parts.is_empty() {
                sample.parts = turns::read(&self.connection, sample.id)?;
            }
            samples.push(sample);
        }
        Ok(samples)
    }
}

pub(super) fn newest_snapshot(
    connection: &Connection,
) -> Result<Option<StoredSnapshot>, StoreError> {
    let sql = "SELECT inputs, core, book FROM snapshots ORDER BY inputs DESC LIMIT 1";
    let read = |row: &Row<'_>| {
        let (core, book) = (row.get(1)?, row.get(2)?);
        Ok(StoredSnapshot { inputs: unsigned(row, 0)?, core, book })
    };
    Ok(connection.query_row(sql, [], read).optional()?)
}

/// The snapshot behind so many inputs, if there is one.
pub(super) fn snapshot_at(
    connection: &Connection,
    inputs: u64,
) -> Result<Option<Vec<u8>>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT core FROM snapshots WHERE inputs = ?1")?;
    Ok(statement.query_row([number(inputs)], |row| row.get(0)).optional()?)
}

/// The inputs of a range, of which none may be missing but at the end of the record.
pub(super) fn inputs_of(
    connection: &Connection,
    range: Range<u64>,
    mut each: impl FnMut(StoredInput) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let sql = "SELECT seq, time_ns, input, actions FROM inputs \
               WHERE seq >= ?1 AND seq < ?2 ORDER BY seq";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([number(range.start), number(range.end)])?;
    let mut expected = range.start;
    while let Some(row) = rows.next()? {
        let damaged =
            || StoreError::Damaged { place: format!("input {expected} or its digest is none") };
        let seq = unsigned(row, 0)?;
        if seq != expected {
            let place = format!("input {expected} is missing, the next is input {seq}");
            return Err(StoreError::Damaged { place });
        }
        let input: String = row.get(2)?;
        let digest: String = row.get(3)?;
        each(StoredInput {
            seq: expected,
            at: Time::from_nanos(unsigned(row, 1)?),
            input: serde_json::from_str(&input).map_err(|_| damaged())?,
            actions: u64::from_str_radix(&digest, 16)
                .map(Digest::from_value)
                .map_err(|_| damaged())?,
        })?;
        expected += 1;
    }
    Ok(())
}

fn live_sample(row: &Row<'_>) -> Result<LiveSample, StoreError> {
    let id = unsigned(row, 0)?;
    let messages: Vec<BTreeMap<String, String>> = json(row, 2, id)?;
    let metadata = json(row, 3, id)?;
    let prompt: Arc<[u32]> = json::<Vec<u32>>(row, 4, id)?.into();
    let tokens = tokens_of(row, 5)
        .map_err(|_| StoreError::Damaged { place: format!("the tokens of sample {id}") })?;
    let messages = messages
        .into_iter()
        .map(|mut message| {
            let mut take = |key| message.remove(key).unwrap_or_default();
            Message { role: take("role"), content: take("content") }
        })
        .collect();
    let text = |column| row.get::<_, Option<String>>(column);
    let (response, next_state) = (text(8)?.unwrap_or_default(), text(9)?);
    let whole = (!tokens.is_empty()).then(|| Part {
        sequence: 0,
        prompt: prompt.clone(),
        tokens: tokens.into(),
        response: response.into(),
        next_state: next_state.map(Arc::from),
    });
    Ok(LiveSample {
        id: SampleId(id),
        session: SessionId(unsigned(row, 1)?),
        question: Arc::new(Question { messages, metadata, prompt }),
        parts: whole.into_iter().collect(),
    })
}

/// Generated tokens, from three columns in a row: ids, log-probabilities, and runs of one version.
pub(super) fn tokens_of(row: &Row<'_>, column: usize) -> Result<Vec<Token>, StoreError> {
    let ids: Vec<u32> = json(row, column, 0)?;
    let logprobs: Vec<f32> = json(row, column + 1, 0)?;
    let segments: Vec<(u32, u32)> = json(row, column + 2, 0)?;
    let versions = segments
        .iter()
        .flat_map(|&(version, tokens)| std::iter::repeat_n(version, tokens as usize))
        .map(RolloutVersion::new);
    let tokens: Vec<Token> = ids
        .iter()
        .zip(&logprobs)
        .zip(versions)
        .map(|((&id, &logprob), version)| Token { id, logprob, version })
        .collect();
    let stamped: usize = segments.iter().map(|&(_, tokens)| tokens as usize).sum();
    if ids.len() != logprobs.len() || ids.len() != stamped {
        return Err(StoreError::Damaged { place: "tokens".to_owned() });
    }
    Ok(tokens)
}

/// A JSON column; NULL is an empty one.
fn json<T: DeserializeOwned + Default>(
    row: &Row<'_>,
    column: usize,
    sample: u64,
) -> Result<T, StoreError> {
    let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(T::default()) };
    serde_json::from_str(&text)
        .map_err(|_| StoreError::Damaged { place: format!("sample {sample}") })
}

pub(super) fn unsigned(row: &Row<'_>, column: usize) -> Result<u64, rusqlite::Error> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}
