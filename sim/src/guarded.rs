//! A recorded run held to an envelope after the fact: what would its guard have said?

use headway_shared::config::{GuardSettings, OnDeviation, Range};
use headway_shared::guard::{Found, Guard, Verdict};
use headway_shared::metrics::{Metric, Observer};
use headway_shared::source::{RunSource, SourceError, follow};
use headway_shared::time::Span;
use serde_json::{Value, json};

use crate::report::csv::Csv;
use crate::report::number;

/// A metric of the envelope over a whole run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Which.
    pub metric: &'static Metric,
    /// What its windows are held to.
    pub range: Range,
    /// Its value over everything that was judged; `None`: undefined there.
    pub whole: Option<f64>,
    /// The smallest value in a window that was judged, and the largest.
    pub windows: Option<[f64; 2]>,
    /// In how many windows it was defined.
    pub judged: u64,
    /// In how many of them it was outside.
    pub outside: u64,
}

impl Line {
    /// The value over everything that was judged is within the range.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.whole.is_none_or(|whole| self.range.contains(whole))
    }
}

/// A run, held to an envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// What a guard would have found.
    pub found: Found,
    /// A line per metric, in the order of the envelope.
    pub lines: Vec<Line>,
}

/// Holds a recorded run to an envelope. It rolls nothing back: every window is judged.
///
/// # Errors
/// The run cannot be read.
pub fn hold(run: &dyn RunSource, settings: &GuardSettings) -> Result<Held, SourceError> {
    let settings = GuardSettings { on_deviation: OnDeviation::Log, ..settings.clone() };
    let ranges = settings.envelope.ranges.iter();
    let mut lines: Vec<Line> = ranges
        .map(|&(metric, range)| Line {
            metric,
            range,
            whole: None,
            windows: None,
            judged: 0,
            outside: 0,
        })
        .collect();
    let mut guard: Option<Guard> = None;
    let mut whole = Observer::new(run.config(), Span::ZERO);
    follow(run, &mut |at, input, actions, core| {
        whole.observe(at, input, actions, core);
        // The run begins with its first input.
        let guard = guard.get_or_insert_with(|| Guard::new(settings.clone(), at, core));
        let Some(report) = guard.observe(at, input, actions, core) else { return };
        if report.verdict == Verdict::Settling {
            whole.reset(at, core);
            return;
        }
        let summary = whole.summary(at, core);
        for (line, reading) in lines.iter_mut().zip(&report.readings) {
            line.whole = summary.get(line.metric.name);
            let Some(value) = reading.value else { continue };
            line.judged += 1;
            line.outside += u64::from(!line.range.contains(value));
            let [low, high] = line.windows.unwrap_or([value; 2]);
            line.windows = Some([low.min(value), high.max(value)]);
        }
    })?;
    let found = guard.map(|guard| guard.found().clone()).unwrap_or_default();
    Ok(Held { found, lines })
}

/// A row per metric.
#[must_use]
pub fn csv(held: &Held) -> Csv {
    let header = [
        "metric",
        "low",
        "high",
        "whole_run",
        "inside",
        "window_min",
        "window_max",
        "windows",
        "windows_outside",
    ];
    let mut csv = Csv::new(header.map(str::to_owned).to_vec());
    for line in &held.lines {
        let [low, high] = line.windows.map_or([None; 2], |windows| windows.map(Some));
        csv.rows.push(vec![
            line.metric.name.to_owned(),
            number::text(line.range.low),
            number::text(line.range.high),
            number::cell(line.whole),
            if line.whole.is_some() { line.holds().to_string() } else { String::new() },
            number::cell(low),
            number::cell(high),
            line.judged.to_string(),
            line.outside.to_string(),
        ]);
    }
    csv
}

/// Everything as a JSON document. Numbers have six significant digits; what is undefined is null.
#[must_use]
pub fn json(run: &str, held: &Held) -> Value {
    let Found { judged, outside, deviations, deviation, .. } = &held.found;
    let lines = held.lines.iter().map(|line| {
        json!({
            "metric": line.metric.name,
            "low": number::json(Some(line.range.low)),
            "high": number::json(Some(line.range.high)),
            "whole_run": number::json(line.whole),
            "inside": line.whole.map(|_| line.holds()),
            "windows": line.judged,
            "windows_outside": line.outside,
        })
    });
    json!({
        "run": run,
        "windows": judged,
        "windows_outside": outside,
        "deviations": deviations,
        "first_deviation": deviation.as_ref().map(|report| report.to_string()),
        "metrics": lines.collect::<Vec<_>>(),
    })
}
