//! Random configurations.

use headway_shared::config::{
    BatchCounts, Bound, Choice, Config, DropPolicy, GateKind, GroupFilter, OverLimit,
    PolicyTraining, Queue, SampleUnit, Signal,
};
use headway_shared::time::Span;
use proptest::prelude::*;

/// Takes small choices from a list of random words.
struct Words {
    words: Vec<u32>,
    next: usize,
}

impl Words {
    /// A number from 0 to `below` - 1.
    fn below(&mut self, below: u32) -> u32 {
        self.next += 1;
        self.words[self.next - 1] % below
    }

    /// `least` to `most`.
    fn range(&mut self, least: u32, most: u32) -> u32 {
        least + self.below(most - least + 1)
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    fn choice<T: Choice>(&mut self) -> T {
        T::ALL[self.below(T::ALL.len() as u32) as usize].1
    }

    /// 0 (off), or `least` to `most` seconds.
    fn seconds_or_off(&mut self, least: u32, most: u32) -> Span {
        if self.flag() { Span::ZERO } else { self.seconds(least, most) }
    }

    fn seconds(&mut self, least: u32, most: u32) -> Span {
        Span::from_secs(u64::from(self.range(least, most)))
    }
}

fn words() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(any::<u32>(), 90)
}

/// A configuration that makes sense, of any kind: every gate, mode, order and policy.
pub(crate) fn sane_config() -> impl Strategy<Value = Config> {
    words().prop_map(|words| {
        let mut words = Words { words, next: 0 };
        let mut config = Config::default();
        training(&mut config, &mut words);
        serving(&mut config, &mut words);
        judging(&mut config, &mut words);
        let hosting = &mut config.environment_hosting;
        hosting.max_envs = words.below(4);
        hosting.step_timeout = words.seconds_or_off(20, 60);
        hosting.reset_timeout = words.seconds_or_off(20, 60);
        hosting.retries = words.below(3);
        let least = config.policy_training.batch_size * config.policy_training.group_size;
        config.queue.rollout = queue(least, &mut words);
        config.queue.output = queue(least, &mut words);
        groups(&mut config, &mut words);
        config.policy_training.sample_unit = words.choice();
        if config.policy_training.sample_unit == SampleUnit::Session {
            config.policy_training.park_after = Span::ZERO;
        }
        // A gate of another system with ours of drops: its own counters never recover.
        if config.policy_training.gate == GateKind::Areal {
            config.policy_training.stale_filter_steps = None;
            config.policy_training.bound = Bound::Aggregate;
            config.policy_training.park_after = Span::ZERO;
            config.queue.rollout.drop_policy = DropPolicy::Reject;
            config.queue.output.drop_policy = DropPolicy::Reject;
        }
        config
    })
}

/// A configuration that makes sense, whose bound moves.
pub(crate) fn adaptive_config() -> impl Strategy<Value = Config> {
    (sane_config(), prop::array::uniform8(any::<u32>())).prop_map(|(mut config, words)| {
        let mut words = Words { words: words.to_vec(), next: 0 };
        let training = &mut config.policy_training;
        let gates = [GateKind::Headway, GateKind::PrimeRl, GateKind::Skyrl, GateKind::NemoRlWindow];
        training.gate = gates[words.below(4) as usize];
        let eta = training.max_head_off_policyness;
        let adaptive = &mut config.adaptive;
        adaptive.signal = [Signal::LogprobAbsDiff, Signal::Ess][words.below(2) as usize];
        adaptive.target = 50_000;
        adaptive.min = words.range(training.publish_interval - 1, eta);
        adaptive.max = eta + words.below(5);
        adaptive.increase = words.range(1, 3);
        adaptive.decrease = words.range(1, 999_999);
        adaptive.every_steps = words.range(1, 4);
        training.stale_filter_steps = words.below(3).checked_sub(1).map(|more| eta + more);
        config
    })
}

fn training(config: &mut Config, words: &mut Words) {
    let training = &mut config.policy_training;
    training.gate = if words.below(3) == 0 { GateKind::Headway } else { words.choice() };
    training.max_head_off_policyness = words.below(5);
    training.bound = words.choice();
    training.late = words.choice();
    training.late_wait = words.seconds(0, 20);
    let eta = training.max_head_off_policyness;
    training.batch_size = words.range(1, 5);
    training.group_size = if words.flag() { 1 } else { words.range(1, 3) };
    training.min_group_size = words.range(1, training.group_size);
    training.park_after = words.seconds_or_off(3, 20);
    if training.group_size > 1 {
        training.park_after = Span::ZERO;
    }
    let results = words.below(4) == 0;
    training.batch_counts = if results { BatchCounts::Results } else { BatchCounts::Accepted };
    training.max_batch_wait = words.seconds_or_off(1, 30);
    training.min_batch_size = words.range(1, training.batch_size);
    training.publish_interval = words.range(1, eta + 1).min(2);
    training.train_retries = words.below(3);
    training.train_timeout = words.seconds_or_off(30, 60);
    gate_keys(training, words);
    let filter = words.flag().then(|| config.bound_versions() + words.below(4));
    config.policy_training.stale_filter_steps = filter;
}

/// The keys that one gate reads.
fn gate_keys(training: &mut PolicyTraining, words: &mut Words) {
    let halves = words.below(6);
    training.staleness_threshold = halves * 500_000;
    training.max_lag_samples = words.below(10);
    let least = 2 * (training.publish_interval - 1);
    training.async_generation_ratio = halves.max(least) * 500_000;
    if training.gate == GateKind::OneStepOff {
        training.publish_interval = 1;
    }
}

fn groups(config: &mut Config, words: &mut Words) {
    let training = &mut config.policy_training;
    training.straggler_wait = words.seconds_or_off(1, 30);
    if words.flag() {
        training.group_timeout = words.seconds_or_off(10, 60);
    }
    if training.group_size > 1 && words.flag() {
        training.filter = GroupFilter::ZeroVariance;
    }
    if words.flag() {
        training.over_sampling = words.range(1_000_000, 2_500_000);
    }
    if matches!(training.gate, GateKind::Headway | GateKind::Sync) {
        training.surplus = words.choice();
    }
}

fn serving(config: &mut Config, words: &mut Words) {
    let serving = &mut config.policy_serving;
    serving.sync_mode = words.choice();
    serving.pause_timeout = words.seconds(1, 20);
    serving.abort_timeout = words.seconds(2, 10);
    serving.transfer_timeout = words.seconds(20, 40);
    serving.load_timeout = words.seconds(20, 40);
    serving.save_timeout = words.seconds(20, 40);
    serving.publish_retries = words.below(4);
    serving.aborted = words.choice();
    serving.kv_on_sync = words.choice();
    serving.routing = words.choice();
    serving.max_concurrent_rollouts = if words.flag() { 0 } else { words.range(1, 8) };
    serving.generation_timeout = words.seconds_or_off(30, 60);
    serving.over_limit = if words.flag() { OverLimit::Refuse } else { words.choice() };
    serving.hold = words.seconds_or_off(1, 40);
}

fn judging(config: &mut Config, words: &mut Words) {
    let judging = &mut config.reward_judging;
    judging.mode = words.choice();
    judging.judge_concurrency = words.range(1, 5);
    judging.judge_timeout = words.seconds_or_off(6, 12);
    judging.judge_retries = words.below(3);
    judging.fire_on_turn_end = words.below(4) != 0;
    judging.judge_needs = words.choice();
    judging.votes = words.range(1, 4);
    judging.min_votes = words.range(1, judging.votes);
    judging.aggregate = words.choice();
    judging.on_tie = words.choice();
    judging.on_judge_failure = words.choice();
    judging.zero_score = words.choice();
    judging.at_least_one = words.flag();
}

fn queue(least: u32, words: &mut Words) -> Queue {
    let roomy = words.flag();
    Queue {
        max_size: if roomy { 64 } else { least + words.below(6) },
        queue_type: words.choice(),
        drop_policy: words.choice(),
    }
}

/// Any configuration, senseless ones included.
pub(crate) fn any_config() -> impl Strategy<Value = Config> {
    (sane_config(), prop::array::uniform8(any::<u32>())).prop_map(|(mut config, odd)| {
        let mut words = Words { words: odd.to_vec(), next: 0 };
        match words.below(12) {
            0 => config.policy_training.batch_size = 0,
            1 => config.policy_training.group_size = words.below(3),
            2 => config.policy_training.min_group_size = words.below(9),
            3 => config.policy_training.publish_interval = words.below(9),
            4 => config.queue.output.max_size = words.below(3),
            5 => config.reward_judging.votes = words.below(20),
            6 => config.reward_judging.judge_concurrency = 0,
            7 => config.policy_training.max_head_off_policyness = u32::MAX,
            8 => config.policy_training.batch_size = u32::MAX,
            9 => config.policy_serving.max_concurrent_rollouts = 1,
            10 => config.policy_training.min_batch_size = words.below(20),
            _ => {}
        }
        config
    })
}
