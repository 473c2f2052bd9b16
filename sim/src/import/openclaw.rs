//! The record files of OpenClaw-RL (`OPENCLAW_RECORD_FILE`): a JSON object per line and turn, with
//! its session, when it ended, to the second, and the message that came next.
//!
//! It holds no token counts and no versions, so that lengths and staleness cannot be taken from it.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};

use super::json::{Object, shown};
use super::lines::Lines;
use super::time::{TICKS_PER_SEC, seconds, ticks};
use super::{ImportError, Problem};

/// A line holds a whole conversation.
const LONGEST: usize = 64 << 20;

/// Which table is made of the turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenClawTable {
    /// `arrival_sec,turns`: a row per session, in the order of their first turns' ends.
    Sessions,
    /// `session,turn,between_sec,next_state`: a row per turn after the first of its session.
    Turns,
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenClawReport {
    /// Sessions.
    pub sessions: u64,
    /// Turns of all of them.
    pub turns: u64,
    /// Rows of the table.
    pub rows: u64,
}

struct Turn {
    /// Ordinal of its session, in the order of the file.
    session: u64,
    ticks: u64,
    /// The role of the message that came next.
    next_state: &'static str,
}

/// Turns the records into a table. `between_sec` is from the end of one turn to the end of the
/// next: the pause of the user or the tool, and then the serving of the next turn.
///
/// # Errors
/// The records cannot be read or are wrong (line and remedy are said), nothing is left for the
/// table, or it cannot be written.
pub fn import_openclaw(
    reader: impl BufRead,
    mut writer: impl Write,
    table: OpenClawTable,
) -> Result<OpenClawReport, ImportError> {
    let (sessions, turns) = read(reader)?;
    let mut report = OpenClawReport { sessions, turns: turns.len() as u64, rows: 0 };
    report.rows = match table {
        OpenClawTable::Sessions => write_sessions(&mut writer, &turns),
        OpenClawTable::Turns => write_turns(&mut writer, &turns),
    }
    .map_err(ImportError::Write)?;
    if report.rows == 0 {
        let problem = if turns.is_empty() { Problem::Empty } else { Problem::OneTurnEach };
        return Err(ImportError::Wrong { line: 1, column: 1, problem });
    }
    writer.flush().map_err(ImportError::Write)?;
    Ok(report)
}

fn read(reader: impl BufRead) -> Result<(u64, Vec<Turn>), ImportError> {
    let mut lines = Lines::up_to(LONGEST, reader);
    let mut sessions = BTreeMap::new();
    let mut turns = Vec::new();
    while let Some(line) = lines.next()? {
        let record = Object::read(&line)?;
        let when = record.text("timestamp")?;
        let wrong = || record.wrong("timestamp", Problem::Time { found: when.into() });
        let ticks = ticks(when).ok_or_else(wrong)?;
        let next = sessions.len() as u64;
        let session = *sessions.entry(record.text("session_id")?.to_owned()).or_insert(next);
        let next_state = match record.values().get("next_state") {
            None | Some(serde_json::Value::Null) => "none",
            Some(state) => match state.get("role").and_then(serde_json::Value::as_str) {
                Some("user") => "user",
                Some("tool") => "tool",
                Some(_) => "other",
                None => {
                    let problem = Problem::Text { found: shown(Some(state)), key: "next_state" };
                    return Err(record.wrong("next_state", problem));
                }
            },
        };
        turns.push(Turn { session, ticks, next_state });
    }
    // A record is written when its next state comes, so that the file is not in order of time.
    turns.sort_by_key(|turn| turn.ticks);
    Ok((sessions.len() as u64, turns))
}

fn write_sessions(writer: &mut impl Write, turns: &[Turn]) -> std::io::Result<u64> {
    writeln!(writer, "arrival_sec,turns")?;
    let mut counts = BTreeMap::<u64, u64>::new();
    for turn in turns {
        *counts.entry(turn.session).or_default() += 1;
    }
    let first = turns.first().map_or(0, |turn| turn.ticks);
    let rows = counts.len() as u64;
    for turn in turns {
        if let Some(count) = counts.remove(&turn.session) {
            writeln!(writer, "{},{count}", seconds(turn.ticks - first))?;
        }
    }
    Ok(rows)
}

fn write_turns(writer: &mut impl Write, turns: &[Turn]) -> std::io::Result<u64> {
    writeln!(writer, "session,turn,between_sec,next_state")?;
    let mut last = BTreeMap::<u64, (u64, u64, &str)>::new();
    let mut rows = 0;
    for turn in turns {
        let number = match last.get(&turn.session) {
            None => 1,
            Some((number, ticks, next_state)) => {
                rows += 1;
                let between = (turn.ticks - ticks) / TICKS_PER_SEC;
                let (session, number) = (turn.session, number + 1);
                writeln!(writer, "{session},{number},{between},{next_state}")?;
                number
            }
        };
        last.insert(turn.session, (number, turn.ticks, turn.next_state));
    }
    Ok(rows)
}
