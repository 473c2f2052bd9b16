//! The simulated world: it turns the core's actions into later inputs.
//!
//! ```text
//!            inputs                              actions
//!   World ───────────► Scheduler::handle ──► Scheduler::poll_action ──► World::apply
//!     ▲ clients, serving, environment, judge, trainer, weights, faults │
//!     └──────────────────────── event queue ◄──────────────────────────┘
//! ```
//!
//! Every action that starts work has one terminal input, unless a fault loses it. Draws belong to
//! entities, not to the order of events, so that two policies at one seed see the same lengths and
//! times. Nothing is kept of an entity that is finished: memory does not grow with a run's length.

mod client;
mod environment;
mod event;
mod faults;
mod judge;
pub mod replica;
mod serving;
pub mod settings;
mod trainer;
mod weights;
mod window;

use headway_shared::action::Action;
use headway_shared::config::Config;
use headway_shared::core::{Resolved, Sample, Scheduler};
use headway_shared::id::SampleId;
use headway_shared::input::Input;
use headway_shared::time::Time;

use self::client::Clients;
pub(crate) use self::event::span;
use self::event::{Bus, Event};
use self::faults::Faults;
use self::judge::Judge;
use self::serving::{Kept, Serving, Start};
use self::settings::WorldConfig;
use self::trainer::Trainer;
use self::weights::{Order, Weights};
use crate::kernel::random::Key;

/// What an action only names: the core that took it knows more, and so does a record of it.
pub trait Named {
    /// A sample, as it is when the action is taken.
    fn sample(&self, sample: SampleId) -> Option<&Sample>;
    /// Tokens of the batch that is training, prompts included.
    fn batch_tokens(&self) -> u64;
}

impl Named for Scheduler {
    fn sample(&self, sample: SampleId) -> Option<&Sample> {
        self.sample(sample)
    }

    fn batch_tokens(&self) -> u64 {
        self.batch()
            .map(|sample| u64::from(sample.prompt_tokens) + u64::from(sample.tokens))
            .fold(0, u64::saturating_add)
    }
}

/// Everything that is not the scheduling core.
///
/// Drive it so: [`next_input`](Self::next_input) until it is `None`, giving each input to the core
/// and each of the core's actions to [`apply`](Self::apply); then [`advance`](Self::advance).
#[derive(Debug)]
pub struct World {
    bus: Bus,
    clients: Clients,
    serving: Serving,
    judge: Judge,
    trainer: Trainer,
    weights: Weights,
    faults: Faults,
    environment: settings::Environment,
    events: u64,
}

impl World {
    /// A world at time zero. `config` is the one the core has: clients must know the size of a
    /// group.
    #[must_use]
    pub fn new(world: &WorldConfig, config: &Config, key: Key) -> Self {
        let replicas = world.replicas_ever() as usize;
        let mut world = Self {
            bus: Bus::new(key),
            clients: Clients::new(world.clients.clone(), &config.policy_training),
            serving: Serving::new(&world.serving, &world.faults, replicas),
            judge: Judge::new(world.judge.clone()),
            trainer: Trainer::new(world.trainer.clone(), world.faults.failed_step),
            weights: Weights::new(world.weights.clone(), world.faults.clone(), replicas),
            faults: Faults::new(world.faults.clone(), replicas),
            environment: world.environment.clone(),
            events: 0,
        };
        for replica in 0..world.serving.at_start() {
            world.replica_up(replica);
        }
        world.start_faults();
        world.clients.start(&mut world.bus);
        world
    }

    /// The time of the last event.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.bus.now
    }

    /// How many things have happened, stale ones included.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// From here on nothing breaks any more, and no new session comes.
    pub(crate) fn calm(&mut self) {
        self.faults.calm();
        self.serving.calm();
        self.trainer.calm();
        self.weights.calm();
        self.judge.calm();
        (self.environment.failure_share, self.environment.hang_share) = (0.0, 0.0);
        self.clients.end(&mut self.bus);
    }

    /// Whether no session or task will come any more.
    #[must_use]
    pub const fn is_exhausted(&self) -> bool {
        self.clients.exhausted()
    }

    /// The next fact for the core, at [`now`](Self::now).
    pub fn next_input(&mut self) -> Option<Input> {
        self.bus.next_input()
    }

    /// Tells the core a fact that the world does not know by itself, at [`now`](Self::now).
    pub(crate) fn tell(&mut self, input: Input) {
        self.bus.tell(input);
    }

    /// The core has handled an input, and nobody reads it any more: what it holds on the heap is used
    /// again.
    pub(crate) fn recycle(&mut self, input: Input) {
        if let Input::GenerationEnded { segments, .. } = input {
            self.serving.recycle(segments);
        }
    }

    /// When something happens next; `None`: nothing will, unless the core acts.
    #[must_use]
    pub fn next_time(&self) -> Option<Time> {
        self.bus.next_time()
    }

    /// Lets time pass until `time`, at which the core wants to be called.
    pub fn pass_until(&mut self, time: Time) {
        self.bus.now = self.bus.now.max(time);
    }

    /// Lets the next thing happen. It may have inputs for the core, or none.
    pub fn advance(&mut self) {
        let Some(event) = self.bus.next_event() else { return };
        self.events += 1;
        let Self { bus, clients, serving, judge, trainer, weights, .. } = self;
        match event {
            Event::Arrival => clients.arrive(bus),
            Event::User { user } => clients.user(bus, user),
            Event::Session { slot, stamp } => clients.wake(bus, slot, stamp),
            Event::ClientTimeout => clients.time_out(bus),
            Event::Replica { replica, stamp } => serving.due(bus, replica, stamp),
            Event::Vote { slot, stamp } => judge.due(bus, slot, stamp),
            Event::Step { stamp } => {
                trainer.due(bus, stamp);
                serving.set_training(bus, trainer.is_training());
            }
            Event::Save { stamp } => weights.saved(bus, stamp),
            Event::Transfer { replica, stamp } => weights.transferred(bus, serving, replica, stamp),
            Event::Load { replica, stamp } => weights.loaded(bus, serving, replica, stamp),
            Event::Death { replica, stamp } => self.death(replica, stamp),
            Event::Restart { replica, stamp } => self.restart(replica, stamp),
            Event::Scheduled { index } => self.scheduled(index),
        }
    }

    /// Does what the core decided. `named` is read for what an action names (samples).
    pub fn apply(&mut self, action: Action, named: &impl Named) {
        let Self { bus, clients, serving, judge, trainer, weights, environment, .. } = self;
        match action {
            Action::StartGeneration { request, attempt, replica, sample, resume } => {
                let turn = clients.turn(request);
                if let (Some(sample), Some(turn)) = (sample, &turn) {
                    judge.admitted(sample, turn);
                }
                let kept = if resume { clients.kept(request) } else { Kept::default() };
                let start = Start { request, attempt, replica: replica.0 };
                serving.start(bus, start, turn, kept);
            }
            Action::AbortGeneration { request, attempt, .. } => {
                if let Some(kept) = serving.abort(bus, request, attempt) {
                    clients.keep(request, kept);
                }
            }
            Action::Refuse { request, reason, retry_after } => {
                clients.refused(bus, request, reason, retry_after);
            }
            Action::Reply { request, reply } => {
                serving.forget(bus, request);
                clients.replied(bus, request, reply);
            }
            Action::ResetEnvironment { session, attempt } => {
                clients.operate(bus, environment, session, attempt, true);
            }
            Action::StepEnvironment { session, attempt } => {
                clients.operate(bus, environment, session, attempt, false);
            }
            Action::CancelEnvironment { session, attempt } => {
                clients.cancel_operation(bus, session, attempt);
            }
            Action::EndSession { session } => clients.session_ended(bus, session),
            Action::StartVote { vote, sample } => {
                judge.start(bus, vote, sample, named.sample(sample));
            }
            Action::CancelVote { vote } => judge.cancel(bus, vote),
            Action::StartStep { step, learner, .. } => {
                trainer.start(bus, step, learner, named.batch_tokens());
                serving.set_training(bus, true);
            }
            Action::Publish { publication, version } => weights.publish(bus, publication, version),
            Action::Load { publication, replica, version, in_flight, kv } => {
                let order = Order { publication, replica, version, in_flight, kv };
                weights.load(bus, serving, order);
            }
            Action::CancelLoad { publication, replica } => {
                weights.cancel(bus, serving, publication, replica);
            }
            Action::CancelStep { step } => {
                trainer.cancel(step);
                serving.set_training(bus, trainer.is_training());
            }
            Action::Hold { .. }
            | Action::Discard { .. }
            | Action::OperatorReply { .. }
            | Action::Fail { .. } => {}
        }
    }

    /// The entity of the draws of the turn that a sample began with, until it is forgotten: the same
    /// under every policy.
    pub(crate) fn entity(&self, sample: SampleId) -> Option<u64> {
        self.judge.entity(sample)
    }

    /// Forgets samples that have left the core's ledger.
    pub fn forget(&mut self, resolved: &[Resolved]) {
        for resolved in resolved {
            self.judge.resolved(resolved.sample.id);
        }
    }
}
