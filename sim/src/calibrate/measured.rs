//! What a record shows: everything that takes time, with the times at which it began and ended.
//!
//! One pass over the inputs and decisions of a run gathers it; nothing is left out or fitted here,
//! so that a warm-up can be dropped afterwards.

mod batches;
mod environments;
mod generations;
mod replicas;
mod sessions;
mod steps;
mod votes;
mod weights;

use headway_shared::action::Action;
use headway_shared::config::Config;
use headway_shared::core::Scheduler;
use headway_shared::input::{Input, Operator};
use headway_shared::record::Decisions;
use headway_shared::source::{Reported, RunSource, SourceError, follow};
use headway_shared::time::Time;

pub use batches::Batches;
pub use environments::{Ended, Environments};
pub use generations::{Generation, Generations, Over};
pub use replicas::Replicas;
pub use sessions::{Session, Sessions, Turn};
pub use steps::{Step, StepEnd, Steps};
pub use votes::{Vote, VoteEnd, Votes};
pub use weights::{Period, Stage, StageEnd, Weights};

/// A run, as far as it is fitted.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The configuration that the record begins with.
    pub config: Config,
    /// It was changed while the run went on.
    pub reconfigured: bool,
    /// When the first and the last input came.
    pub begin: Time,
    /// See `begin`.
    pub end: Time,
    /// What was decided in it.
    pub decisions: Decisions,
    /// Votes of judges.
    pub votes: Votes,
    /// Train steps.
    pub steps: Steps,
    /// Weights on their way.
    pub weights: Weights,
    /// Turns on replicas.
    pub generations: Generations,
    /// Who asked, and for what.
    pub sessions: Sessions,
    /// Environments that the core hosted.
    pub environments: Environments,
    /// Replicas that came and went.
    pub replicas: Replicas,
    /// What train steps trained.
    pub batches: Batches,
    /// What train steps reported.
    pub reported: Vec<Reported>,
}

/// Reads a run.
///
/// # Errors
/// It cannot be read to its end.
pub fn measure(source: &dyn RunSource) -> Result<Measured, SourceError> {
    let mut measured = Measured { config: source.config().clone(), ..Measured::default() };
    follow(source, &mut |now, input, actions, core| measured.observe(now, input, actions, core))?;
    measured.finish();
    measured.reported = source.reported()?;
    Ok(measured)
}

impl Measured {
    /// Sees an input, what it caused, and the core after it.
    pub fn observe(&mut self, now: Time, input: &Input, actions: &[Action], core: &Scheduler) {
        if self.decisions.inputs == 0 {
            self.begin = now;
        }
        self.end = now;
        self.decisions.add(now, actions);
        if let Input::Operator(Operator::Reconfigure(config)) = input {
            self.reconfigured |= **config != self.config;
        }
        self.replicas.observe(now, input);
        self.votes.observe(now, input, actions, core);
        self.steps.observe(now, input, actions, core);
        self.batches.observe(core);
        self.weights.observe(now, input, actions);
        self.generations.observe(now, input, actions);
        self.sessions.observe(now, input, actions);
        self.environments.observe(now, input, actions);
    }

    /// What is under way when the record ends stays so.
    fn finish(&mut self) {
        let end = self.end;
        self.votes.finish(end);
        self.steps.finish(end);
        self.weights.finish(end);
        self.generations.finish(end);
        self.sessions.finish(end);
        self.environments.finish(end);
        self.replicas.finish(end);
    }
}
