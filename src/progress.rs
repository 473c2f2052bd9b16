//! Progress on stderr, hidden when that is no terminal.

use headway_sim::sweep::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar that counts runs; it disappears when it is dropped.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar for `runs` runs.
    pub(crate) fn new(runs: usize) -> Self {
        // indicatif draws nothing where stderr is no terminal.
        let bar = ProgressBar::new(runs as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left") {
            bar.set_style(style);
        }
        Self(bar)
    }
}

impl Progress for Bar {
    fn more(&self, runs: usize) {
        self.0.inc_length(runs as u64);
    }

    fn run_ended(&self) {
        self.0.inc(1);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
