//! The train steps of a record, one row each: what a table or a plot of a run shows.

use std::collections::BTreeMap;
use std::path::Path;

use headway_shared::action::Action;
use headway_shared::core::Scheduler;
use headway_shared::input::Input;
use headway_shared::snapshot;
use headway_shared::time::Time;
use rusqlite::Connection;

use super::{StoreError, open_to_read, read};

/// A train step that made a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepRow {
    /// Its ordinal.
    pub step: u64,
    /// When it ended.
    pub at: Time,
    /// Samples that it trained.
    pub samples: u64,
    /// Mean score by what the samples' `metadata.turn` says; empty where it says nothing.
    pub scores: BTreeMap<String, f64>,
    /// Staleness of the samples' first tokens, sorted.
    pub staleness: Vec<u32>,
    /// What the trainer measured of the whole step.
    pub metrics: BTreeMap<String, f64>,
    /// Requests answered with 429 since the step before.
    pub too_many: u64,
    /// Requests answered with 503 since the step before.
    pub unavailable: u64,
}

/// The last steps of a run, while it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Recent {
    /// Mean of what their samples are worth.
    pub reward: f64,
    /// Mean staleness of their tokens.
    pub staleness: f64,
    /// The oldest of these.
    pub staleness_max: u32,
    /// Tokens trained per second.
    pub tokens_per_sec: f64,
}

/// Every step of a record that made a version. Refusals are decisions of the core: they come from a
/// replay of the inputs.
///
/// # Errors
/// As [`replay`](super::replay), but for decisions, which are not compared.
pub fn steps(path: &Path) -> Result<Vec<StepRow>, StoreError> {
    let (connection, config) = open_to_read(path)?;
    let mut steps = BTreeMap::new();
    let (mut scheduler, from) = match read::oldest_snapshot(&connection)? {
        Some(first) if !has_first_input(&connection)? => {
            let damaged = |_| StoreError::Damaged { place: "the oldest snapshot".to_owned() };
            (snapshot::from_bytes(&first.core).map_err(damaged)?, first.inputs)
        }
        _ => (Scheduler::new(config), 0),
    };
    let (mut too_many, mut unavailable) = (0, 0);
    read::inputs_from(&connection, from, |stored| {
        scheduler.handle(stored.at, &stored.input);
        while let Some(action) = scheduler.poll_action() {
            if let Action::Refuse { reason, .. } = action {
                too_many += u64::from(reason.status() == 429);
                unavailable += u64::from(reason.status() == 503);
            }
        }
        if let Input::StepEnded { step, ok: true } = stored.input {
            let (too_many, unavailable) =
                (std::mem::take(&mut too_many), std::mem::take(&mut unavailable));
            let at = stored.at;
            let row = StepRow { step: step.0, at, too_many, unavailable, ..StepRow::default() };
            steps.insert(step.0, row);
        }
        Ok(())
    })?;
    add_samples(&connection, &mut steps)?;
    add_metrics(&connection, &mut steps)?;
    Ok(steps.into_values().collect())
}

fn has_first_input(connection: &Connection) -> Result<bool, StoreError> {
    let sql = "SELECT count(*) FROM inputs WHERE seq = 0";
    Ok(connection.query_row(sql, [], |row| row.get::<_, u32>(0))? == 1)
}

fn add_samples(
    connection: &Connection,
    steps: &mut BTreeMap<u64, StepRow>,
) -> Result<(), StoreError> {
    let sql = "SELECT step, staleness, score, json_extract(metadata, '$.turn') FROM samples
               WHERE step IS NOT NULL ORDER BY step, staleness";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut counts: BTreeMap<(u64, String), u32> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let number = row.get::<_, i64>(0)?.cast_unsigned();
        let Some(step) = steps.get_mut(&number) else { continue };
        step.samples += 1;
        step.staleness.extend(row.get::<_, Option<u32>>(1)?);
        let (score, turn): (Option<f64>, Option<String>) = (row.get(2)?, row.get(3)?);
        if let (Some(score), Some(turn)) = (score, turn) {
            let count = counts.entry((number, turn.clone())).or_default();
            *count += 1;
            let mean = step.scores.entry(turn).or_default();
            *mean += (score - *mean) / f64::from(*count);
        }
    }
    Ok(())
}

fn add_metrics(
    connection: &Connection,
    steps: &mut BTreeMap<u64, StepRow>,
) -> Result<(), StoreError> {
    let sql = "SELECT step, name, value FROM step_metrics
               WHERE staleness = -1 AND value IS NOT NULL";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(step) = steps.get_mut(&row.get::<_, i64>(0)?.cast_unsigned()) {
            step.metrics.insert(row.get(1)?, row.get(2)?);
        }
    }
    Ok(())
}

/// The `count` last steps that have been recorded; `None`: there is none.
///
/// # Errors
/// What SQLite says.
pub fn recent(path: &Path, count: u32) -> Result<Option<Recent>, StoreError> {
    let (connection, _) = open_to_read(path)?;
    let range: (Option<i64>, Option<i64>) = connection.query_row(
        "SELECT min(id), max(id) FROM (SELECT id FROM steps WHERE ok = 1 ORDER BY id DESC LIMIT ?1)",
        [count],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let (Some(first), Some(last)) = range else { return Ok(None) };
    let of = |sql: &str| -> Result<f64, StoreError> {
        let value: Option<f64> = connection.query_row(sql, [first, last], |row| row.get(0))?;
        Ok(value.unwrap_or(0.0))
    };
    let tokens = of("SELECT sum(value) FROM step_metrics
                     WHERE step > ?1 AND step <= ?2 AND name = 'trained_tokens'")?;
    let seconds = of("SELECT (max(time_ns) - min(time_ns)) / 1e9 FROM inputs
                      WHERE seq IN (SELECT ended FROM steps WHERE id IN (?1, ?2))")?;
    let (staleness, oldest) = connection.query_row(
        "SELECT sum(staleness * value) / sum(value), max(staleness) FROM step_metrics
         WHERE step BETWEEN ?1 AND ?2 AND name = 'learner_rollout_tokens' AND staleness >= 0",
        [first, last],
        |row| Ok((row.get::<_, Option<f64>>(0)?, row.get::<_, Option<u32>>(1)?)),
    )?;
    Ok(Some(Recent {
        reward: of("SELECT avg(value) FROM step_metrics
                    WHERE step BETWEEN ?1 AND ?2 AND name = 'reward_mean'")?,
        staleness: staleness.unwrap_or(0.0),
        staleness_max: oldest.unwrap_or(0),
        tokens_per_sec: if seconds > 0.0 { tokens / seconds } else { 0.0 },
    }))
}

/// How many sessions a record knows.
///
/// # Errors
/// What SQLite says.
pub fn count_sessions(path: &Path) -> Result<u64, StoreError> {
    let (connection, _) = open_to_read(path)?;
    let count = connection.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0));
    Ok(i64::cast_unsigned(count?))
}
