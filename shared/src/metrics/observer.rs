//! Watches a run, live or simulated, and counts.

use super::levels::{Integrator, Levels};
use super::lost::Lost;
use super::series::Series;
use super::summary::Summary;
use super::totals::Totals;
use super::trained::Trained;
use super::turns::Turns;
use super::votes::Votes;
use crate::action::Action;
use crate::config::Config;
use crate::core::{Fate, Ledger, Scheduler};
use crate::id::RequestId;
use crate::input::{Input, TurnType};
use crate::time::{Span, Time};

/// Computes the [metrics](super::METRICS) of a run from what its driver feeds to the core and gets
/// from it. The simulator and the live runtime call it alike, so that their columns are the same.
///
/// [`observe`](Self::observe) follows every [`Scheduler::handle`] whose actions are drained,
/// [`reset`](Self::reset) marks the end of the warm-up, [`summary`](Self::summary) may be asked at
/// any time. It counts in whole numbers only, O(1) per input, and does not allocate once its
/// storage has grown to the largest number of turns and votes in flight.
#[derive(Clone, Debug)]
pub struct Observer {
    now: Time,
    integrator: Integrator,
    series: Series,
    trained: Trained,
    lost: Lost,
    turns: Turns,
    votes: Votes,
    waited: u64,
    /// The counters at the last reset.
    ledger: Ledger,
}

impl Observer {
    /// An observer of a run that begins at [`Time::ZERO`] with this configuration. `series_interval`
    /// is the distance of the rows of [`Summary::series`]; zero: no rows.
    #[must_use]
    pub fn new(config: &Config, series_interval: Span) -> Self {
        let judge_concurrency = config.reward_judging.judge_concurrency;
        let mut integrator = Integrator::default();
        integrator.set(Time::ZERO, Levels { judge_concurrency, ..Levels::default() });
        Self {
            now: Time::ZERO,
            integrator,
            series: Series::new(series_interval),
            trained: Trained::default(),
            lost: Lost::default(),
            turns: Turns::default(),
            votes: Votes::default(),
            waited: 0,
            ledger: Ledger::default(),
        }
    }

    /// `scheduler` has handled `input` at `now`, and gave `actions`, all that it had.
    pub fn observe(&mut self, now: Time, input: &Input, actions: &[Action], scheduler: &Scheduler) {
        self.advance(now);
        self.turns.observe(input, actions, scheduler);
        self.votes.observe(self.now, input, actions, scheduler);
        for resolved in scheduler.resolved() {
            match resolved.fate {
                Fate::Trained => self.trained.add(&resolved.sample),
                Fate::Discarded(reason) => self.lost.add(&resolved.sample, reason),
            }
        }
        if let Input::Request(request) = input
            && request.turn == TurnType::Main
        {
            self.waited += u64::from(is_held(actions, request.request));
        }
        self.integrator.set(self.now, Levels::of(scheduler));
    }

    /// Forgets what was counted until `now`, the end of the warm-up. The series goes on.
    pub fn reset(&mut self, now: Time, scheduler: &Scheduler) {
        self.advance(now);
        self.integrator.reset(self.now, Levels::of(scheduler));
        self.trained.reset();
        self.lost.reset();
        self.turns.reset();
        self.votes.reset();
        self.waited = 0;
        self.ledger = scheduler.ledger().clone();
    }

    /// The metrics from the last reset (or the start) until `now`.
    #[must_use]
    pub fn summary(&self, now: Time, scheduler: &Scheduler) -> Summary {
        let now = now.max(self.now);
        let (duration, areas, windows) = self.integrator.totals(now);
        let mut series = self.series.clone();
        series.end(now, self.integrator.levels());
        let totals = Totals {
            duration,
            areas: &areas,
            windows,
            trained: &self.trained,
            lost: &self.lost,
            generated: &self.turns.since_reset,
            judged: self.votes.since_reset,
            waited: self.waited,
            start: &self.ledger,
            end: scheduler.ledger(),
        };
        Summary::new(&totals, series)
    }

    /// A time before the latest counts as the latest, as in the core.
    fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.series.advance(self.now, self.integrator.levels());
    }
}

fn is_held(actions: &[Action], request: RequestId) -> bool {
    actions.contains(&Action::Hold { request })
}
