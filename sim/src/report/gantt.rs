//! A timeline as text, for a terminal: a row for each loop, a column for a stretch of time.

use std::collections::BTreeMap;
use std::fmt::Write;

use headway_shared::id::ReplicaId;
use headway_shared::time::{Span, Time};
use headway_shared::timeline::{Counter, Lane, Sink, Slice};

use super::number;

/// Stretches that are kept of each row. When a run is longer, two become one.
const BINS: u64 = 4096;

/// How full a column is, the lowest for anything above nothing.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Replicas that have a row each; where there are more, they share one.
const REPLICAS: usize = 12;

/// The narrowest timeline that says anything, in columns of time.
const NARROWEST: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Replica(ReplicaId),
    Environments,
    Judge,
    Trainer,
    Export,
    Weights,
    Closed,
    RolloutQueue,
    OutputQueue,
    Outstanding,
}

/// A level over time.
#[derive(Clone, Debug, Default)]
struct Level {
    /// Level times nanoseconds, stretch by stretch.
    sums: Vec<u128>,
    /// The most at once.
    most: u32,
}

impl Level {
    fn add(&mut self, width: u64, from: u64, to: u64, level: u32) {
        let mut at = from;
        while at < to {
            let bin = at / width;
            let end = to.min((bin + 1) * width);
            let index = bin as usize;
            if self.sums.len() <= index {
                self.sums.resize(index + 1, 0);
            }
            self.sums[index] += u128::from(end - at) * u128::from(level);
            at = end;
        }
    }

    fn halve(&mut self) {
        self.sums = self.sums.chunks(2).map(|pair| pair.iter().sum()).collect();
    }

    /// The mean of each of `columns` equal parts of `end`, in units of level.
    fn columns(&self, width: u64, end: u64, columns: usize) -> Vec<f64> {
        let column = end.div_ceil(columns as u64).max(1);
        let mut sums = vec![0_u128; columns];
        for (bin, sum) in self.sums.iter().enumerate().filter(|(_, sum)| **sum > 0) {
            let from = bin as u64 * width;
            let to = (from + width).min(end);
            let length = to.saturating_sub(from).max(1);
            let mut at = from;
            while at < to {
                let index = at / column;
                let stop = to.min((index + 1) * column);
                // What lies in a stretch is spread over it evenly.
                sums[index as usize] += sum * u128::from(stop - at) / u128::from(length);
                at = stop;
            }
        }
        let length =
            |index: u64| ((index + 1) * column).min(end).saturating_sub(index * column).max(1);
        (0..).zip(sums).map(|(index, sum)| sum as f64 / length(index) as f64).collect()
    }
}

/// Collects a timeline for [`text`](Self::text), in memory that does not grow with the run.
#[derive(Clone, Debug)]
pub struct Gantt {
    /// The length of a stretch in nanoseconds.
    width: u64,
    end: u64,
    rows: BTreeMap<Row, Level>,
    /// Counters that are in force, and since when.
    levels: BTreeMap<Row, (u64, u32)>,
    /// When each learner version began.
    learner: Vec<(u64, u32)>,
}

impl Default for Gantt {
    fn default() -> Self {
        Self {
            width: 1_000_000,
            end: 0,
            rows: BTreeMap::new(),
            levels: BTreeMap::new(),
            learner: Vec::new(),
        }
    }
}

impl Gantt {
    fn reach(&mut self, at: u64) {
        self.end = self.end.max(at);
        while at / self.width >= BINS {
            self.width *= 2;
            self.rows.values_mut().for_each(Level::halve);
        }
    }

    fn add(&mut self, row: Row, from: u64, to: u64, level: u32) {
        self.reach(to);
        let width = self.width;
        self.rows.entry(row).or_default().add(width, from, to, level);
    }

    fn level(&mut self, row: Row, at: u64, level: u32) {
        let (since, before) = self.levels.insert(row, (at, level)).unwrap_or_default();
        self.add(row, since, at, before);
        let most = &mut self.rows.entry(row).or_default().most;
        *most = level.max(*most);
    }

    /// The timeline up to `end`, no wider than `width` characters if that leaves room for any time
    /// at all; without colours and control characters.
    #[must_use]
    pub fn text(mut self, end: Time, width: usize) -> String {
        let end = end.as_nanos().max(self.end).max(1);
        for (row, (since, level)) in std::mem::take(&mut self.levels) {
            self.add(row, since, end, level);
        }
        self.reach(end);
        let rows = self.named_rows();
        let wide = |texts: &mut dyn Iterator<Item = &String>| {
            texts.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        let names = wide(&mut rows.iter().map(|(name, ..)| name)).max("learner".len());
        let scales = wide(&mut rows.iter().map(|(_, scale, _)| scale));
        let columns = width.saturating_sub(names + scales + 4).max(NARROWEST);
        let mut text = String::new();
        let column = Time::from_nanos(end.div_ceil(columns as u64)).since(Time::ZERO);
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{:names$}  {}", "", axis(end, columns));
        for (name, scale, level) in &rows {
            let cells: String = level
                .columns(self.width, end, columns)
                .into_iter()
                .map(|mean| cell(mean, level.most))
                .collect();
            let _ = writeln!(text, "{name:names$}  {cells}  {scale}");
        }
        if !self.learner.is_empty() {
            let versions = versions(&self.learner, end, columns);
            let line = format!("{:names$}  {versions}", "learner");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let _ =
            writeln!(text, "a column is {}; a full one is what stands behind it", length(column));
        text
    }

    /// Each row with its name, and what a full column of it is.
    fn named_rows(&self) -> Vec<(String, String, Level)> {
        let replicas = self.rows.keys().filter(|row| matches!(row, Row::Replica(_))).count();
        let mut together = Level::default();
        let mut rows = Vec::new();
        for (row, level) in &self.rows {
            let most = number::short(Some(f64::from(level.most)));
            let counted = |what: &str| (format!("{most} {what}"), level.clone());
            let always = || ("all the time".to_owned(), Level { most: 1, ..level.clone() });
            let (name, (scale, level)) = match row {
                Row::Replica(_) if replicas > REPLICAS => {
                    together.sums.resize(together.sums.len().max(level.sums.len()), 0);
                    for (sum, more) in together.sums.iter_mut().zip(&level.sums) {
                        *sum += more;
                    }
                    together.most += level.most;
                    continue;
                }
                Row::Replica(replica) => (format!("replica {}", replica.0), counted("turns")),
                Row::Environments => ("environments".to_owned(), counted("at work")),
                Row::Judge => ("judge".to_owned(), counted("votes")),
                Row::Trainer => ("trainer".to_owned(), always()),
                Row::Export => ("export".to_owned(), always()),
                Row::Weights => {
                    let most = replicas.max(1) as u32;
                    let level = Level { most, ..level.clone() };
                    ("loading".to_owned(), (format!("{most} replicas"), level))
                }
                Row::Closed => ("503".to_owned(), always()),
                Row::RolloutQueue => ("rollout queue".to_owned(), counted("samples")),
                Row::OutputQueue => ("output queue".to_owned(), counted("samples")),
                Row::Outstanding => ("outstanding".to_owned(), counted("samples")),
            };
            rows.push((name, scale, level));
        }
        if together.most > 0 {
            let most = number::short(Some(f64::from(together.most)));
            rows.insert(0, (format!("{replicas} replicas"), format!("{most} turns"), together));
        }
        rows
    }
}

impl Sink for Gantt {
    fn slice(&mut self, slice: &Slice<'_>) {
        let (row, slot) = match slice.lane {
            Lane::Turn { replica, slot } => (Row::Replica(replica), slot),
            Lane::Environment { slot } => (Row::Environments, slot),
            Lane::Judge { slot } => (Row::Judge, slot),
            Lane::Trainer => (Row::Trainer, 0),
            Lane::Weights { .. } => (Row::Weights, 0),
            Lane::Export => (Row::Export, 0),
            Lane::Window => (Row::Closed, 0),
        };
        self.add(row, slice.start.as_nanos(), slice.end.as_nanos(), 1);
        let most = &mut self.rows.entry(row).or_default().most;
        *most = slot.saturating_add(1).max(*most);
    }

    fn counter(&mut self, at: Time, counter: Counter, value: u32) {
        let at = at.as_nanos();
        match counter {
            Counter::RolloutQueue => self.level(Row::RolloutQueue, at, value),
            Counter::OutputQueue => self.level(Row::OutputQueue, at, value),
            Counter::Outstanding => self.level(Row::Outstanding, at, value),
            Counter::Learner => self.learner.push((at, value)),
            _ => {}
        }
    }
}

/// A column of a row whose most is `most`.
fn cell(mean: f64, most: u32) -> char {
    if mean <= 0.0 || most == 0 {
        return ' ';
    }
    let level = (mean / f64::from(most) * LEVELS.len() as f64) as usize;
    LEVELS[level.min(LEVELS.len() - 1)]
}

/// Times at the start of each quarter.
fn axis(end: u64, columns: usize) -> String {
    let mut text = String::new();
    for quarter in 0..4_u64 {
        let at = columns * quarter as usize / 4;
        let label = length(Time::from_nanos(end / 4 * quarter).since(Time::ZERO));
        let used = text.chars().count();
        if used > at || at + 1 + label.len() > columns {
            continue;
        }
        let _ = write!(text, "{:gap$}|{label}", "", gap = at - used);
    }
    text
}

/// Versions where they begin, as many as there is room for.
fn versions(learner: &[(u64, u32)], end: u64, columns: usize) -> String {
    let mut text = String::from("0");
    for (at, version) in learner {
        let column = (u128::from(*at) * columns as u128 / u128::from(end)) as usize;
        let label = version.to_string();
        let used = text.chars().count();
        if column > used && column + label.len() <= columns {
            let _ = write!(text, "{:gap$}{label}", "", gap = column - used);
        }
    }
    text
}

/// A length of time in the two units that say most about it: `1h 12m`, `2m 24s`, `3.5s`.
fn length(span: Span) -> String {
    let seconds = span.as_secs_f64();
    let whole = seconds as u64;
    let two = |big: u64, unit: &str, small: u64, part: &str| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit} {small}{part}"),
    };
    match whole {
        0..60 => format!("{}s", number::short(Some(seconds))),
        60..3600 => two(whole / 60, "m", whole % 60, "s"),
        3600..86_400 => two(whole / 3600, "h", whole % 3600 / 60, "m"),
        _ => two(whole / 86_400, "d", whole % 86_400 / 3600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use headway_shared::timeline::What;

    use super::*;

    fn level(gantt: &mut Gantt, from: u64, to: u64) {
        let (start, end) = (Time::from_secs(from), Time::from_secs(to));
        let what = What::Window { sync: true };
        let slice = Slice { lane: Lane::Window, start, end, what, ended: "whole", flows: &[] };
        gantt.slice(&slice);
    }

    #[test]
    fn a_column_is_as_full_as_its_time_was() {
        let mut gantt = Gantt::default();
        level(&mut gantt, 25, 50);
        level(&mut gantt, 90, 91);
        let text = gantt.text(Time::from_secs(100), 60);
        let row = text.lines().find(|line| line.starts_with("503")).unwrap();
        let cells: String = row.chars().skip("learner".len() + 2).take(37).collect();
        assert_eq!(cells.trim_end_matches(' ').chars().count(), 34, "{text}");
        // From a quarter into the tenth of 37 columns to the middle of the nineteenth.
        assert!(cells.contains(" ▇████████▄ "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    }

    #[test]
    fn a_run_of_months_is_as_wide_as_one_of_seconds() {
        let mut gantt = Gantt::default();
        for day in 0..90 {
            level(&mut gantt, day * 86_400, day * 86_400 + 43_200);
        }
        let text = gantt.text(Time::from_secs(90 * 86_400), 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let row = text.lines().find(|line| line.starts_with("503")).unwrap();
        assert!(row.contains("▄▄") || row.contains("▅▅"), "half of the time: {text}");
    }

    #[test]
    fn lengths_of_time_have_two_units() {
        for (seconds, text) in
            [(0, "0s"), (59, "59s"), (144, "2m 24s"), (3600, "1h"), (90_000, "1d 1h")]
        {
            assert_eq!(length(Span::from_secs(seconds)), text);
        }
        assert_eq!(length(Span::from_millis(3500)), "3.5s");
    }
}
