//! The train steps of a record, one row each: what a table or a plot of a run shows.

use std::collections::BTreeMap;
use std::path::Path;

use headway_shared::action::Action;
use headway_shared::core::Scheduler;
use headway_shared::input::Input;
use headway_shared::snapshot;
use headway_shared::time::Time;
use rusqlite::Connection;

use super::stretch::{first_snapshot, stretches};
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
/// replay of the inputs, and are 0 where another decision version decided.
///
/// # Errors
/// As [`replay`](super::replay), but for decisions, which are not compared.
pub fn steps(path: &Path) -> Result<Vec<StepRow>, StoreError> {
    let (connection, config) = open_to_read(path)?;
    let mut steps = BTreeMap::new();
    for stretch in stretches(&connection)? {
        let mut scheduler = match first_snapshot(&connection, &stretch)? {
            _ if !stretch.is_ours() => None,
            None => Some(Scheduler::new(config.clone())),
            Some(first) => {
                let damaged = |_| StoreError::Damaged { place: "a snapshot".to_owned() };
                Some(snapshot::from_bytes(&first.core).map_err(damaged)?)
            }
        };
        let mut row = StepRow::default();
        read::inputs_of(&connection, stretch.from..stretch.to, |stored| {
            if let Some(scheduler) = &mut scheduler {
                scheduler.handle(stored.at, &stored.input);
                std::iter::from_fn(|| scheduler.poll_action()).for_each(|action| row.note(action));
            }
            if let Input::StepEnded { step, ok: true } = stored.input {
                let ended = StepRow { step: step.0, at: stored.at, ..std::mem::take(&mut row) };
                steps.insert(step.0, ended);
            }
            Ok(())
        })?;
    }
    add_samples(&connection, &mut steps)?;
    add_metrics(&connection, &mut steps)?;
    Ok(steps.into_values().collect())
}

impl StepRow {
    /// Counts a refusal.
    fn note(&mut self, action: Action) {
        if let Action::Refuse { reason, .. } = action {
            self.too_many += u64::from(reason.status() == 429);
            self.unavailable += u64::from(reason.status() == 503);
        }
    }
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

/// A train step that made a version, as briefly as a curve needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PastStep {
    /// Its ordinal.
    pub step: u64,
    /// When it ended.
    pub at: Time,
    /// The version that it made.
    pub version: u32,
    /// Samples that it trained.
    pub samples: u32,
    /// Mean staleness of their first tokens.
    pub staleness_mean: f64,
    /// The largest.
    pub staleness_max: u32,
    /// Their mean score.
    pub reward_mean: f64,
}

/// The `most` last steps of a record that made a version, oldest first. Other than [`steps`], it
/// replays nothing.
///
/// # Errors
/// What SQLite says.
pub fn past_steps(path: &Path, most: u32) -> Result<Vec<PastStep>, StoreError> {
    let (connection, _) = open_to_read(path)?;
    let sql = "SELECT s.id, i.time_ns, s.learner + 1, count(*), avg(a.staleness),
                      max(a.staleness), avg(a.score)
               FROM (SELECT * FROM steps WHERE ok = 1 ORDER BY id DESC LIMIT ?1) s
               JOIN inputs i ON i.seq = s.ended
               JOIN json_each(s.samples) j
               JOIN samples a ON a.id = j.value AND a.step = s.id
               GROUP BY s.id ORDER BY s.id";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([most], |row| {
        Ok(PastStep {
            step: row.get::<_, i64>(0)?.cast_unsigned(),
            at: Time::from_nanos(row.get::<_, i64>(1)?.cast_unsigned()),
            version: row.get(2)?,
            samples: row.get(3)?,
            staleness_mean: row.get::<_, Option<f64>>(4)?.unwrap_or(0.0),
            staleness_max: row.get::<_, Option<u32>>(5)?.unwrap_or(0),
            reward_mean: row.get::<_, Option<f64>>(6)?.unwrap_or(0.0),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
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
