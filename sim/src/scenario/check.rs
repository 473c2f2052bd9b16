//! What can be said about a scenario before it runs: what must fail, and what looks like trouble.

use headway_shared::config::{
    Config, Diagnostic, Document, JudgeNeeds, Origin, SyncMode, Table, keys,
};
use headway_shared::time::Span;

use super::capacity::{self, Loads};
use crate::kernel::sampler::Distribution;
use crate::world::settings::{Arrivals, ClientKind, JudgeLatency, Transfer, WorldConfig};

/// A document with a scenario, as the rules see it.
pub(super) struct Checked<'a> {
    document: &'a Document,
    pub(super) config: &'a Config,
    pub(super) world: &'a WorldConfig,
}

/// Applies every rule that needs the world; reports at the keys that take part.
pub(super) fn check(document: &Document, config: &Config, world: &WorldConfig, drift: bool) {
    let checked = Checked { document, config, world };
    if config.adaptive.is_on() && !drift {
        checked.error(
            "policy_training.adaptive.signal",
            "η follows what a trainer measures, and without [world.drift] nothing is measured",
            "add [world.drift] with `sigma0`, `a` and `p`, or write `signal = \"off\"`",
        );
    }
    checked.weights();
    checked.serving();
    checked.judge();
    checked.clients();
    capacity::check(&checked);
}

impl Checked<'_> {
    fn place(&self, path: &str) -> Option<Origin> {
        place(&self.document.root, path)
    }

    pub(super) fn error(&self, path: &str, message: impl Into<String>, help: impl Into<String>) {
        if let Some(origin) = self.place(path) {
            self.document.findings.push(Diagnostic::error(origin, message).help(help));
        }
    }

    pub(super) fn warn(&self, path: &str, message: impl Into<String>, help: impl Into<String>) {
        if let Some(origin) = self.place(path) {
            self.document.findings.push(Diagnostic::warning(origin, message).help(help));
        }
    }

    /// A time limit that nothing can keep.
    fn unreachable(&self, key: &str, limit: Span, fastest: f64, what: &str) {
        if limit > Span::ZERO && limit.as_secs_f64() < fastest {
            let name = key.rsplit('.').next().unwrap_or(key);
            self.error(
                key,
                format!("`{name}` is {limit}, but the fastest {what} takes {}", secs(fastest)),
                format!("write more than {}: each one would time out", secs(fastest)),
            );
        }
    }

    fn weights(&self) {
        let serving = &self.config.policy_serving;
        let weights = &self.world.weights;
        let fastest_transfer = match &weights.transfer {
            Transfer::Time(time) => time.min(),
            Transfer::Link { copy_sec, .. } => *copy_sec,
        };
        self.unreachable(
            "policy_serving.save_timeout_sec",
            serving.save_timeout,
            weights.save.min(),
            "save",
        );
        self.unreachable(
            "policy_serving.transfer_timeout_sec",
            serving.transfer_timeout,
            fastest_transfer,
            "transfer",
        );
        self.unreachable(
            "policy_serving.load_timeout_sec",
            serving.load_timeout,
            weights.load.min(),
            "load",
        );
        let sync = self.loads().sync_sec();
        let pauses = matches!(
            serving.sync_mode,
            SyncMode::PauseDrain | SyncMode::PauseAbort | SyncMode::PauseKeep
        );
        if pauses && serving.pause_timeout.as_secs_f64() < sync {
            self.warn(
                "policy_serving.pause_timeout_sec",
                format!(
                    "`pause_timeout_sec` is {}, but a weight sync takes {} on average",
                    serving.pause_timeout,
                    secs(sync)
                ),
                "turns are aborted that would have ended; elsewhere the gate never reopens: write \
                 120 or more",
            );
        }
    }

    fn serving(&self) {
        let limit = self.config.policy_serving.generation_timeout;
        let alone = self.world.serving.replica.decode.rate(1);
        let fastest = self.world.clients.output_tokens.min() / alone;
        self.unreachable("policy_serving.generation_timeout_sec", limit, fastest, "generation");
    }

    fn judge(&self) {
        let judging = &self.config.reward_judging;
        let judge = &self.world.judge;
        let (fastest, mean) = match &judge.latency {
            JudgeLatency::Time(time) => (time.min(), time.mean()),
            JudgeLatency::Tokens { base_sec, read_per_sec, write_per_sec } => {
                let at = |read: f64, written: f64| {
                    base_sec + read / read_per_sec + written / write_per_sec
                };
                let clients = &self.world.clients;
                let shortest = clients.prompt_tokens.min() + clients.output_tokens.min();
                let usual = self.loads().sample_tokens();
                (at(shortest, judge.verdict_tokens.min()), at(usual, judge.verdict_tokens.mean()))
            }
        };
        let training = &self.config.policy_training;
        if training.group_size > 1 {
            let alone = self.world.serving.replica.decode.rate(1);
            let whole = self.world.clients.output_tokens.min() / alone + fastest;
            let key = "policy_training.group_timeout_sec";
            self.unreachable(key, training.group_timeout, whole, "member of a group");
        }
        let key = "reward_judging.judge_timeout_sec";
        self.unreachable(key, judging.judge_timeout, fastest, "vote");
        let limit = judging.judge_timeout.as_secs_f64();
        if limit == 0.0 || limit < fastest {
            return;
        }
        let waiting = judging.judge_concurrency.saturating_sub(judge.quota);
        if judge.quota > 0 && waiting > 0 {
            let share = f64::from(judging.judge_concurrency) / f64::from(judge.quota);
            let time = share * mean;
            if time > limit {
                self.warn(
                    "reward_judging.judge_concurrency",
                    format!(
                        "votes will time out: {} at once at an endpoint that serves {} take {} \
                         each, queueing included, and `judge_timeout_sec` is {}",
                        judging.judge_concurrency,
                        judge.quota,
                        secs(time),
                        judging.judge_timeout
                    ),
                    format!("start with 2 to {} votes at once, then go up", judge.quota.max(2)),
                );
            }
        } else if mean > limit {
            self.warn(
                key,
                format!(
                    "most votes will time out: a vote takes {} on average, and the limit is {}",
                    secs(mean),
                    judging.judge_timeout
                ),
                "write a larger `judge_timeout_sec`",
            );
        }
    }

    fn clients(&self) {
        let clients = &self.world.clients;
        let Config { policy_training: training, reward_judging: judging, .. } = self.config;
        let one_turn = at_most_one(&clients.turns);
        let environment = matches!(&clients.kind, ClientKind::Slots(slots) if slots.environment);
        let trajectories = self.loads().trajectories();
        let needs_state = judging.judge_needs == JudgeNeeds::NextState && !trajectories;
        if needs_state && one_turn && !environment {
            self.error(
                "reward_judging.judge_needs",
                "nothing can be trained: a session of one turn has no next state to judge it by",
                "write `judge_needs = \"turn\"`, or give the sessions more `turns`",
            );
        }
        if clients.output_tokens.max() < 0.5 {
            self.error(
                "world.clients.output_tokens",
                "nothing can be trained: every turn is empty",
                "write lengths of 1 token and more",
            );
        }
        if environment && self.world.environment.failure_share == 1.0 {
            self.error(
                "world.environment.failure_share",
                "nothing can be trained: every reset fails",
                "write a `failure_share` below 1",
            );
        }
        let equally_many = clients.turns.min() == clients.turns.max();
        if training.group_size > 1 && !one_turn && !equally_many && !trajectories {
            self.error(
                "world.clients.turns",
                "each turn of a prompt is a group of its own, but these sessions have different \
                 numbers of turns, so that the later groups lack members",
                "write `turns = { kind = \"constant\", value = 2 }`, `sample_unit = \"session\"` \
                 or `group_size = 1`",
            );
        }
        if let ClientKind::Sessions(sessions) = &clients.kind
            && sessions.side_share == 1.0
        {
            self.error(
                "world.clients.side_share",
                "nothing can be trained: every turn is marked `side`",
                "write a `side_share` below 1",
            );
        }
        self.supply();
    }

    const fn loads(&self) -> Loads<'_> {
        Loads { config: self.config, world: self.world }
    }

    /// A finite source that cannot fill one batch.
    fn supply(&self) {
        let clients = &self.world.clients;
        let arrivals = match &clients.kind {
            ClientKind::Sessions(sessions) => match &sessions.arrivals {
                Arrivals::Replay { times } => times.len() as u64,
                Arrivals::Poisson { .. } | Arrivals::Users { .. } => 0,
            },
            ClientKind::Slots(_) => 0,
        };
        let sessions = match (clients.limit, arrivals) {
            (0, 0) => return,
            (0, arrivals) => arrivals,
            (limit, 0) => limit,
            (limit, arrivals) => limit.min(arrivals),
        };
        let (most, what) = match self.loads().trajectories() {
            true => (sessions as f64, "sessions"),
            false => (sessions as f64 * clients.turns.max(), "turns"),
        };
        let batch = self.config.samples_per_batch();
        let short = self.config.policy_training.max_batch_wait > Span::ZERO;
        if most < batch as f64 && !short {
            self.error(
                if clients.limit > 0 { "world.clients.limit" } else { "world.clients.arrivals" },
                format!("nothing can be trained: {most} {what} come, and a batch needs {batch}"),
                "let more come, or write a smaller `batch_size`, or a `max_batch_wait_sec`",
            );
        }
    }
}

/// Where a key is written; else its nearest table that is; else the top of the document.
pub(super) fn place(root: &Table, path: &str) -> Option<Origin> {
    let mut path = path;
    loop {
        if let Some(entry) = keys::locate(root, path) {
            return Some(entry.node.origin);
        }
        match path.rsplit_once('.') {
            Some((table, _)) => path = table,
            None => return root.entries().next().map(|entry| entry.key_origin),
        }
    }
}

fn at_most_one(turns: &Distribution) -> bool {
    turns.max() < 1.5
}

/// A time for a message, with at most two decimals.
pub(super) fn secs(seconds: f64) -> String {
    let hundredths = (seconds * 100.0).round() / 100.0;
    format!("{hundredths} s")
}
