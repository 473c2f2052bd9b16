//! What a split is worth by arithmetic: which ones to simulate, and in which order.
//!
//! A period is the time from one full batch to the next. Each loop has a time that it needs per
//! batch; asynchronous loops overlap, so that the longest is the period, and synchronous ones add
//! up. Means stand for distributions, except where a batch is generated to its end: there the
//! longest answers decide, and drawn lengths are played through.

use headway_shared::config::{GateKind, SampleUnit, SyncMode};
use headway_shared::digest::Digest;

use crate::kernel::random::{Component, Key};
use crate::scenario::{Loads, Scenario};
use crate::world::settings::{ClientKind, Serving};

const HOUR: f64 = 3600.0;
/// Lengths that stand for the distribution.
const DRAWS: u64 = 1024;

/// The loop that takes longest per batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Generating.
    Serving,
    /// Judging.
    Judge,
    /// Training.
    Trainer,
    /// Clients bring no more.
    Clients,
}

impl Limit {
    /// Its name in tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Judge => "judge",
            Self::Trainer => "trainer",
            Self::Clients => "clients",
        }
    }
}

/// What a scenario is worth by arithmetic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Samples trained in an hour.
    pub samples_per_hour: f64,
    /// What limits them.
    pub limit: Limit,
}

/// Lengths of turns, drawn once for all estimates of a plan.
#[derive(Clone, Debug)]
pub struct Lengths {
    /// Output tokens, from short to long.
    output: Vec<f64>,
    /// Their mean.
    mean: f64,
    /// Mean prompt of a turn.
    prompt: f64,
    /// Turns of one sample.
    turns: f64,
}

impl Lengths {
    /// Draws the lengths of a scenario.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Self {
        let clients = &scenario.world.clients;
        let most = match clients.max_output_tokens {
            0 => f64::INFINITY,
            tokens => f64::from(tokens),
        };
        let key = Key::new(0, Digest::new(), 0);
        let draw = |ordinal| {
            let stream = &mut key.stream(Component::Request, ordinal);
            clients.output_tokens.sample(stream, ordinal).min(most)
        };
        let mut output: Vec<f64> = (0..DRAWS).map(draw).collect();
        output.sort_by(f64::total_cmp);
        let mean = output.iter().fold(0.0, |sum, length| sum + length) / DRAWS as f64;
        let turns = clients.turns.mean().max(1.0);
        let growth = clients.growth_tokens.mean();
        let sessions = scenario.config.policy_training.sample_unit == SampleUnit::Session;
        let grown = if sessions {
            (turns - 1.0) * growth
        } else {
            // On average, half of the turns of a session came before, each with its answer.
            0.5 * (turns - 1.0) * (growth + mean)
        };
        Self {
            output,
            mean,
            prompt: clients.prompt_tokens.mean() + grown,
            turns: if sessions { turns } else { 1.0 },
        }
    }

    /// Mean length over the mean of the longest of so many: of the time that a group takes, the
    /// share that a member of it takes.
    fn busy(&self, group_size: u32) -> f64 {
        let count = self.output.len() as f64;
        let below = |place: usize| libm::pow(place as f64 / count, f64::from(group_size));
        let longest = self
            .output
            .iter()
            .enumerate()
            .fold(0.0, |sum, (place, length)| sum + length * (below(place + 1) - below(place)));
        self.mean / longest
    }

    /// Tokens of a mean batch, prompts included.
    #[must_use]
    pub fn tokens_of_batch(&self, scenario: &Scenario) -> f64 {
        let batch = scenario.config.samples_per_batch() as f64;
        (self.prompt + self.mean * self.turns) * batch
    }
}

/// Estimates a scenario as it is.
#[must_use]
pub fn estimate(scenario: &Scenario, lengths: &Lengths) -> Estimate {
    let loads = Loads { config: &scenario.config, world: &scenario.world };
    let batch = scenario.config.samples_per_batch() as f64;
    let training = &scenario.config.policy_training;
    let serving = &scenario.world.serving;
    let train = loads.step_sec(lengths.tokens_of_batch(scenario));
    let judge = judge_sec(&loads, batch);
    let sync = loads.sync_sec() / f64::from(training.publish_interval.max(1));
    let (generate, period) = if is_pipelined(scenario) {
        let generate = to_its_end(serving, lengths, batch) + sync;
        (generate, generate.max(train))
    } else if is_synchronous(scenario) {
        let generate = to_its_end(serving, lengths, batch);
        let save = scenario.world.weights.save.mean();
        (generate, generate + loads.vote_sec().max(judge) + train + save + sync)
    } else {
        let generate = match training.gate {
            // Nothing is begun for the next period before this one's last answer is there.
            GateKind::Verl if training.staleness_threshold == 0 => {
                let steps = f64::from(training.publish_interval.max(1));
                (to_its_end(serving, lengths, batch * steps) + train) / steps
            }
            _ => streaming(scenario, lengths, batch),
        };
        let generate = generate + closed(scenario, sync);
        // While a step runs, a shared GPU generates less.
        let lost = train * (1.0 - serving.speed_during_step);
        (generate, train.max(generate + lost).max(judge))
    };
    let offered = match &scenario.world.clients.kind {
        ClientKind::Slots(_) => f64::INFINITY,
        ClientKind::Sessions(_) => loads.offered_per_hour(),
    };
    let trained = batch * HOUR / period;
    let limit = if offered < trained {
        Limit::Clients
    } else if train >= generate && train >= judge {
        Limit::Trainer
    } else if judge > generate {
        Limit::Judge
    } else {
        Limit::Serving
    };
    Estimate { samples_per_hour: trained.min(offered), limit }
}

/// Whether a batch is generated to its end before it is trained, and nothing meanwhile.
fn is_synchronous(scenario: &Scenario) -> bool {
    let training = &scenario.config.policy_training;
    match training.gate {
        GateKind::Sync => true,
        GateKind::Headway | GateKind::Areal => training.max_head_off_policyness == 0,
        _ => false,
    }
}

/// Whether a batch is generated to its end while the one before it is trained.
fn is_pipelined(scenario: &Scenario) -> bool {
    let gate = scenario.config.policy_training.gate;
    matches!(gate, GateKind::OneStepOff | GateKind::SlimeTrainAsync | GateKind::Openclaw)
}

/// Seconds of judging per batch; 0 where the judge has no limit.
fn judge_sec(loads: &Loads<'_>, batch: f64) -> f64 {
    let votes = batch * f64::from(loads.config.reward_judging.votes);
    votes * loads.vote_sec() / f64::from(loads.votes_at_once().max(1))
}

/// Seconds per batch in which a weight sync keeps the replicas from generating.
fn closed(scenario: &Scenario, sync: f64) -> f64 {
    match scenario.config.policy_serving.sync_mode {
        SyncMode::InFlight => 0.0,
        SyncMode::Rolling => sync / f64::from(scenario.world.serving.replicas.max(1)),
        _ => sync,
    }
}

/// Turns that decode together on one replica.
fn together(serving: &Serving, turns: f64) -> u32 {
    // `as` saturates, and a replica with a part of a turn has one now and then.
    let each = (turns / f64::from(serving.replicas.max(1))).ceil().max(1.0) as u32;
    if serving.replica.max_batch == 0 { each } else { each.min(serving.replica.max_batch) }
}

/// Seconds that generating a batch takes where there is always something to generate.
fn streaming(scenario: &Scenario, lengths: &Lengths, batch: f64) -> f64 {
    let serving = &scenario.world.serving;
    let training = &scenario.config.policy_training;
    let slots = match &scenario.world.clients.kind {
        ClientKind::Slots(slots) => {
            let tasks = f64::from(slots.tasks(training.group_size));
            // A group keeps its slot until its longest turn has ended.
            if slots.whole_groups { tasks * lengths.busy(training.group_size) } else { tasks }
        }
        ClientKind::Sessions(_) => f64::INFINITY,
    };
    let most = match scenario.config.policy_serving.max_concurrent_rollouts {
        0 => f64::INFINITY,
        limit => f64::from(limit),
    };
    let places = match training.gate {
        // The batch in training is among them.
        GateKind::Headway => f64::from(training.max_head_off_policyness) * batch,
        _ => f64::INFINITY,
    };
    let at_once = slots.min(most).min(places).max(1.0);
    let decoding = together(serving, at_once);
    let rate = serving.replica.decode.rate(decoding) * f64::from(decoding);
    let busy = f64::from(serving.replicas).min(at_once);
    let decode = batch * lengths.turns * lengths.mean / (rate * busy);
    decode.max(prefill(serving, lengths, batch))
}

fn prefill(serving: &Serving, lengths: &Lengths, batch: f64) -> f64 {
    let replicas = f64::from(serving.replicas.max(1));
    let rate = serving.replica.prefill_tokens_per_sec.unwrap_or(f64::INFINITY);
    batch * lengths.turns * lengths.prompt / (rate * replicas)
}

/// Seconds until the last answer of a batch is generated, the batch spread evenly over the
/// replicas and nothing added to it.
fn to_its_end(serving: &Serving, lengths: &Lengths, batch: f64) -> f64 {
    let turns = together(serving, batch);
    let rounds = (batch / (f64::from(turns) * f64::from(serving.replicas.max(1)))).max(1.0);
    let count = lengths.output.len();
    let mut seconds = 0.0;
    let mut done = 0.0;
    // The drawn lengths stand for the turns of one replica: as answers end, the others are faster.
    for (place, &length) in lengths.output.iter().enumerate() {
        let share = (count - place) as f64 / count as f64;
        // So long that the batch has hardly one of them.
        if share * batch < 0.5 {
            break;
        }
        let left = f64::from(turns) * share;
        seconds += (length - done) / serving.replica.decode.rate(left.ceil().max(1.0) as u32);
        done = length;
    }
    (seconds * rounds * lengths.turns).max(prefill(serving, lengths, batch))
}
