//! Progress on stderr: a bar on a terminal, a line now and then where a CI system reads along, else
//! nothing.

use std::env;
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use headway_sim::sweep::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::terminal;

/// `--quiet` was given.
static QUIET: AtomicBool = AtomicBool::new(false);

/// A run counts so much, so that one that is under way can count in part.
const RUN: i64 = 1000;

/// What takes less is over before anyone asks how far it is.
const SHORT: Duration = Duration::from_secs(1);

/// A log of CI gets a line after this time, and the next when as much time as has passed has passed
/// again.
const FIRST_LINE: Duration = Duration::from_secs(60);

/// From now on there is no progress, and nothing is said of what went well.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether that was asked for.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Where progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// Nowhere.
    Nothing,
    /// In a line of a terminal that changes.
    Bar,
    /// In lines of a log.
    Lines,
}

impl Show {
    /// As this process is called.
    pub(crate) fn now() -> Self {
        let set = |name: &str| env::var(name).ok();
        Self::of(
            is_quiet(),
            io::stderr().is_terminal(),
            set("TERM").as_deref(),
            set("CI").as_deref(),
        )
    }

    /// `term` and `ci` are the variables of the environment; `CI` is what CI systems set.
    fn of(quiet: bool, is_terminal: bool, term: Option<&str>, ci: Option<&str>) -> Self {
        let in_ci = ci.is_some_and(|ci| !matches!(ci, "" | "0" | "false"));
        match (quiet, is_terminal && term != Some("dumb"), in_ci) {
            (true, ..) => Self::Nothing,
            (false, true, _) => Self::Bar,
            (false, false, true) => Self::Lines,
            (false, false, false) => Self::Nothing,
        }
    }
}

/// How far something is, with its rate and the time that is left; it disappears when it is dropped.
pub(crate) struct Bar {
    show: Show,
    /// Counts, and draws where it is to.
    bar: ProgressBar,
    /// Runs that have ended, and parts of those that have not, in parts of [`RUN`].
    ended: AtomicI64,
    parts: AtomicI64,
    next_line: Mutex<Duration>,
    /// What is counted, such as `runs`.
    what: &'static str,
}

impl Bar {
    /// A bar for `runs` runs.
    pub(crate) fn new(runs: usize) -> Self {
        Self::of(runs, "runs")
    }

    /// A bar for so many of `what`.
    pub(crate) fn of(count: usize, what: &'static str) -> Self {
        let show = Show::now();
        // It draws from its second on.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_length((count as i64 * RUN) as u64);
        bar.set_style(style(what));
        Self {
            show,
            bar,
            ended: AtomicI64::new(0),
            parts: AtomicI64::new(0),
            next_line: Mutex::new(FIRST_LINE),
            what,
        }
    }

    /// So many more have ended.
    pub(crate) fn ended(&self, count: u64) {
        self.ended.fetch_add(count as i64, Ordering::Relaxed);
        self.tell();
    }

    fn tell(&self) {
        let place = self.ended.load(Ordering::Relaxed) * RUN + self.parts.load(Ordering::Relaxed);
        self.bar.set_position(place.max(0) as u64);
        match self.show {
            Show::Nothing => {}
            Show::Bar if self.bar.is_hidden() && self.bar.elapsed() >= SHORT => {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
                // So that the time left runs while nothing ends.
                self.bar.enable_steady_tick(SHORT);
            }
            Show::Bar => {}
            Show::Lines => self.line(),
        }
    }

    /// Writes a line if it is time for one.
    fn line(&self) {
        let elapsed = self.bar.elapsed();
        let Ok(mut next) = self.next_line.lock() else { return };
        if elapsed >= *next {
            *next = elapsed * 2;
            let all = self.bar.length().unwrap_or(0) / RUN as u64;
            let done = self.bar.position() / RUN as u64;
            let (rate, left) = (rate(self.bar.per_sec()), left(self.bar.eta()));
            terminal::note(&format!("{done}/{all} {}, {rate}, {left} left", self.what));
        }
    }
}

fn style(what: &str) -> ProgressStyle {
    let template = format!("{{bar:30}} {{done}}/{{all}} {what}, {{rate}}, {{left}} left");
    let style = ProgressStyle::with_template(&template);
    style
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("done", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = write!(out, "{}", state.pos() / RUN as u64);
        })
        .with_key("all", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = write!(out, "{}", state.len().unwrap_or(0) / RUN as u64);
        })
        .with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = write!(out, "{}", rate(state.per_sec()));
        })
        .with_key("left", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = write!(out, "{}", left(state.eta()));
        })
}

/// A rate in the unit in which it is a number of a few digits.
fn rate(per_sec: f64) -> String {
    let runs = per_sec / RUN as f64;
    if runs >= 1.0 {
        format!("{runs:.1}/s")
    } else if runs * 60.0 >= 1.0 {
        format!("{:.1}/min", runs * 60.0)
    } else {
        format!("{:.1}/h", runs * 3600.0)
    }
}

/// A time to wait, rounded.
pub(crate) fn left(left: Duration) -> String {
    match left.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        seconds => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

impl Progress for Bar {
    fn more(&self, runs: usize) {
        self.bar.inc_length((runs as i64 * RUN) as u64);
    }

    fn moved(&self, thousandths: i32) {
        self.parts.fetch_add(i64::from(thousandths), Ordering::Relaxed);
        self.tell();
    }

    fn run_ended(&self) {
        self.ended(1);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_a_bar_a_log_of_ci_lines_and_a_pipe_nothing() {
        let term = Some("xterm-256color");
        assert_eq!(Show::of(false, true, term, None), Show::Bar);
        assert_eq!(Show::of(false, true, Some("dumb"), None), Show::Nothing);
        assert_eq!(Show::of(false, false, term, None), Show::Nothing);
        for (ci, show) in [
            ("true", Show::Lines),
            ("1", Show::Lines),
            ("false", Show::Nothing),
            ("", Show::Nothing),
        ] {
            assert_eq!(Show::of(false, false, term, Some(ci)), show, "CI={ci}");
        }
        assert_eq!(Show::of(true, true, term, Some("true")), Show::Nothing);
    }

    #[test]
    fn a_run_under_way_counts_in_part_and_once() {
        let bar = Bar::of(4, "runs");
        bar.moved(250);
        bar.moved(500);
        assert_eq!(bar.bar.position(), 750);
        bar.moved(-750);
        bar.run_ended();
        assert_eq!(bar.bar.position(), 1000);
        bar.more(2);
        assert_eq!(bar.bar.length(), Some(6000));
    }

    #[test]
    fn rates_and_times_have_few_digits() {
        assert_eq!(rate(2500.0), "2.5/s");
        assert_eq!(rate(50.0), "3.0/min");
        assert_eq!(rate(1.0), "3.6/h");
        let shown = [5, 65, 3700].map(|seconds| left(Duration::from_secs(seconds)));
        assert_eq!(shown, ["5s", "1m 05s", "1h 01m"]);
    }
}
