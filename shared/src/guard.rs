//! The guard: compares a run, window by window, with the envelope that it was promoted with.
//!
//! Like an [`Observer`], a driver shows it each input that the core handled, with the actions that
//! came of it. It decides what a deviation leads to; the driver says so and, told to, goes back to
//! the previous configuration by an input of its own, which is recorded like any other.

use std::fmt;

use crate::action::Action;
use crate::config::{Config, Envelope, GuardSettings, OnDeviation, Range};
use crate::core::Scheduler;
use crate::input::{Input, Operator};
use crate::metrics::{Metric, Observer, Summary};
use crate::time::{Span, Time};

/// The metrics of an envelope, in the order in which they are shown.
pub const WATCHED: &[&str] = &[
    "trained_samples_per_hour",
    "staleness_head_mean",
    "staleness_head_p95",
    "refused_stale_share",
    "refused_503_share",
    "discarded_share",
    "serving_idle_share",
    "judge_idle_share",
    "trainer_idle_share",
    "part_seconds_generating",
    "part_seconds_judge_queue",
    "part_seconds_judging",
    "part_seconds_output_queue",
];

/// The metrics of a run, window by window.
#[derive(Clone, Debug)]
pub struct Windows {
    length: Span,
    observer: Observer,
    began: Time,
    ends: Time,
}

impl Windows {
    /// Windows of this length, one after the other from [`Time::ZERO`].
    #[must_use]
    pub fn new(config: &Config, length: Span) -> Self {
        Self {
            length,
            observer: Observer::new(config, Span::ZERO),
            began: Time::ZERO,
            ends: Time::ZERO + length,
        }
    }

    /// `scheduler` has handled `input` at `now`, and gave `actions`. A window ends with the first
    /// input at or after its end, which it includes: its summary, over the time that it really took.
    pub fn observe(
        &mut self,
        now: Time,
        input: &Input,
        actions: &[Action],
        scheduler: &Scheduler,
    ) -> Option<Summary> {
        self.observer.observe(now, input, actions, scheduler);
        self.pass(now, scheduler)
    }

    /// When the window ends.
    #[must_use]
    pub const fn due(&self) -> Time {
        self.ends
    }

    /// Nothing has happened since, and it is `now`: the window's summary, if it has ended.
    pub fn pass(&mut self, now: Time, scheduler: &Scheduler) -> Option<Summary> {
        if now < self.ends {
            return None;
        }
        let summary = self.observer.summary(now, scheduler);
        self.restart(now, scheduler);
        Some(summary)
    }

    /// Forgets the window: a new one begins now.
    pub fn restart(&mut self, now: Time, scheduler: &Scheduler) {
        self.observer.reset(now, scheduler);
        (self.began, self.ends) = (now, now + self.length);
    }
}

/// A metric in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Which.
    pub metric: &'static Metric,
    /// Its value; `None`: it was undefined in that window, and is not judged.
    pub value: Option<f64>,
    /// What it is held to.
    pub range: Range,
    /// In how many windows in a row, this one the last, it was outside.
    pub outside: u32,
}

/// What a window led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The run settles: it is not judged yet.
    Settling,
    /// Every metric is within its range.
    Within,
    /// Some are not, and the guard is patient.
    Outside,
    /// Some have been outside for as long as the guard is patient.
    Deviates,
    /// The same, and the run is to go back to the previous configuration.
    RollBack,
}

impl Verdict {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Settling => "settling",
            Self::Within => "within",
            Self::Outside => "outside",
            Self::Deviates => "deviates",
            Self::RollBack => "roll_back",
        }
    }
}

/// A window that was judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// When it ended.
    pub at: Time,
    /// What it led to.
    pub verdict: Verdict,
    /// What was measured in it; empty while the run settles.
    pub readings: Vec<Reading>,
}

impl Report {
    /// The metrics that were outside.
    pub fn outside(&self) -> impl Iterator<Item = &Reading> {
        self.readings.iter().filter(|reading| reading.outside > 0)
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { metric, value, range: Range { low, high }, outside } = self;
        let unit = if metric.unit.is_empty() { String::new() } else { format!(" {}", metric.unit) };
        match value {
            Some(value) => write!(f, "{} is {}{unit}", metric.name, Short(*value))?,
            None => write!(f, "{} was", metric.name)?,
        }
        write!(f, ", outside {} to {} for {outside} windows", Short(*low), Short(*high))
    }
}

/// A number with at most four decimals.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.4}", self.0);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        f.write_str(if text == "-0" { "0" } else { text })
    }
}

impl fmt::Display for Report {
    /// What was outside, one after the other.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.outside().enumerate().try_for_each(|(index, reading)| {
            write!(f, "{}{reading}", if index == 0 { "" } else { "; " })
        })
    }
}

/// What a guard has found so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Windows judged.
    pub judged: u64,
    /// Of these, windows in which something was outside.
    pub outside: u64,
    /// How often the run began to deviate.
    pub deviations: u64,
    /// The run deviates now.
    pub deviating: bool,
    /// The newest window.
    pub last: Option<Report>,
    /// The window with which the newest deviation began.
    pub deviation: Option<Report>,
    /// The run was told to go back; since then nothing is judged.
    pub rolled_back: bool,
}

/// Holds a run to its envelope.
#[derive(Clone, Debug)]
pub struct Guard {
    settings: GuardSettings,
    windows: Windows,
    /// Windows that begin before this are not judged.
    settled: Time,
    /// By metric of the envelope: windows in a row outside.
    outside: Vec<u32>,
    found: Found,
}

impl Guard {
    /// The guard of a run that begins at [`Time::ZERO`], or of one that goes on at `now`.
    #[must_use]
    pub fn new(settings: GuardSettings, now: Time, scheduler: &Scheduler) -> Self {
        let mut windows = Windows::new(scheduler.config(), settings.envelope.window);
        windows.restart(now, scheduler);
        Self {
            windows,
            settled: now + settings.settle,
            outside: vec![0; settings.envelope.ranges.len()],
            found: Found::default(),
            settings,
        }
    }

    /// What the run is held to.
    #[must_use]
    pub const fn envelope(&self) -> &Envelope {
        &self.settings.envelope
    }

    /// What it has found so far.
    #[must_use]
    pub const fn found(&self) -> &Found {
        &self.found
    }

    /// `scheduler` has handled `input` at `now`, and gave `actions`. The report of the window that
    /// ended with it, if one did.
    pub fn observe(
        &mut self,
        now: Time,
        input: &Input,
        actions: &[Action],
        scheduler: &Scheduler,
    ) -> Option<Report> {
        let began = self.windows.began;
        let summary = self.windows.observe(now, input, actions, scheduler);
        if unsettles(input) {
            self.settled = now + self.settings.settle;
            self.outside.fill(0);
            self.found.deviating = false;
            self.windows.restart(now, scheduler);
            return None;
        }
        self.judge(began, now, &summary?)
    }

    /// When it wants to be told that nothing has happened; `None`: it judges no more.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        (!self.found.rolled_back).then_some(self.windows.due())
    }

    /// Nothing has happened since, and it is `now`.
    pub fn pass(&mut self, now: Time, scheduler: &Scheduler) -> Option<Report> {
        let began = self.windows.began;
        let summary = self.windows.pass(now, scheduler)?;
        self.judge(began, now, &summary)
    }

    /// The configuration to go back to, once a report said so: from then on nothing is judged.
    #[must_use]
    pub fn previous(&self) -> Option<&Config> {
        self.settings.previous.as_deref()
    }

    fn judge(&mut self, began: Time, at: Time, summary: &Summary) -> Option<Report> {
        if self.found.rolled_back {
            return None;
        }
        if began < self.settled {
            let report = Report { at, verdict: Verdict::Settling, readings: Vec::new() };
            return Some(self.note(report));
        }
        let ranges = self.settings.envelope.ranges.iter();
        let readings: Vec<Reading> = ranges
            .zip(&mut self.outside)
            .map(|(&(metric, range), outside)| {
                let value = summary.get(metric.name);
                // What is undefined says nothing, for or against.
                if let Some(value) = value {
                    *outside = if range.contains(value) { 0 } else { outside.saturating_add(1) };
                }
                Reading { metric, value, range, outside: *outside }
            })
            .collect();
        let longest = readings.iter().map(|reading| reading.outside).max().unwrap_or(0);
        let verdict = match longest {
            0 => Verdict::Within,
            windows if windows < self.settings.patience => Verdict::Outside,
            _ if self.settings.on_deviation == OnDeviation::Rollback => Verdict::RollBack,
            _ => Verdict::Deviates,
        };
        Some(self.note(Report { at, verdict, readings }))
    }

    fn note(&mut self, report: Report) -> Report {
        let found = &mut self.found;
        found.judged += u64::from(report.verdict != Verdict::Settling);
        found.outside += u64::from(report.outside().next().is_some());
        let deviates = matches!(report.verdict, Verdict::Deviates | Verdict::RollBack);
        if deviates && !found.deviating {
            found.deviations += 1;
            found.deviation = Some(report.clone());
        }
        // While some metric is still outside, or nothing is judged, it has not come back.
        found.deviating = deviates || (found.deviating && report.verdict == Verdict::Outside);
        found.rolled_back = report.verdict == Verdict::RollBack;
        found.last = Some(report.clone());
        report
    }
}

/// Someone has changed something: what is measured across it is nobody's prediction.
fn unsettles(input: &Input) -> bool {
    match input {
        Input::Restored { .. } => true,
        Input::Operator(operator) => !matches!(operator, Operator::Publish),
        _ => false,
    }
}
