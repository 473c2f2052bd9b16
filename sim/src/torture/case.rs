//! Random scenarios: each picks its own features and faults.

use std::path::Path;

use headway_shared::config::{Diagnostics, Layers};

use super::words::Words;
use crate::scenario::Scenario;

/// Eight slots, turns of 10 s, a judge of 1 s, steps of 5 s, batches of 4.
pub const SLOTS: &str = include_str!("slots.toml");

/// Two sessions a minute, of four turns on average, judged by their next states.
pub const SESSIONS: &str = include_str!("sessions.toml");

/// A scenario as its text and the assignments over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The scenario that it changes: [`SLOTS`] or [`SESSIONS`].
    pub text: &'static str,
    /// What it changes, each as `key=value`.
    pub set: Vec<String>,
}

impl Case {
    /// The case of a seed, with faults.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut words = Words::of_seed(seed);
        let slots = words.one_in(2);
        let mut case = Self::of_words(&mut words, slots, true);
        // Its end is that of its clients.
        case.set.extend(["scenario.steps=0", "scenario.duration_sec=1e8"].map(str::to_owned));
        // A group without a time limit waits for ever for a member whose environment has failed.
        let has = |set: &str| case.set.iter().any(|other| other == set);
        if has("world.clients.environment=true") && has("group_timeout_sec=0") {
            case.set.push("group_timeout_sec=7200".to_owned());
        }
        if !slots {
            // Who comes back for ever, for a turn that no time limit lets end, has no end.
            case.set.push("world.clients.retries.return_share=0".to_owned());
        }
        case
    }

    /// A scenario of any kind: every gate, mode, order, policy and, if `faulty`, fault. `slots`: its
    /// clients are slots, else sessions.
    #[must_use]
    pub fn of_words(words: &mut Words, slots: bool, faulty: bool) -> Self {
        let mut set = vec![format!("scenario.seed={}", words.below(1 << 20))];
        // What follows the tokens of each sample must find all of them in every world.
        set.extend(["sigma0=0.1", "a=0.01", "p=1.5"].map(|drift| format!("world.drift.{drift}")));
        let grouped = training(&mut set, words, slots);
        serving(&mut set, words);
        judging(&mut set, words, slots);
        queues(&mut set, words);
        let sessions = words.one_in(2);
        set.push(format!("sample_unit=\"{}\"", if sessions { "session" } else { "turn" }));
        if sessions {
            // Who leaves without a word holds a place until then.
            set.push("session_idle_sec=300".to_owned());
        }
        world(&mut set, words, slots, sessions || !grouped);
        if faulty {
            faults(&mut set, words);
        }
        Self { text: if slots { SLOTS } else { SESSIONS }, set }
    }

    /// The scenario.
    ///
    /// # Errors
    /// What is wrong with it: of a case that was made, nothing is.
    pub fn load(&self) -> Result<Scenario, Diagnostics> {
        let layers = Layers::new().toml("torture.toml", self.text);
        let layers = self.set.iter().fold(layers, Layers::set);
        Scenario::load(&layers, Path::new(".")).map(|(scenario, _)| scenario)
    }
}

/// Every gate but AReaL's, whose counters do not recover from what the queues drop.
const GATES: [&str; 14] = [
    "headway",
    "headway",
    "headway",
    "openclaw",
    "sync",
    "none",
    "verl",
    "roll",
    "prime_rl",
    "skyrl",
    "nemo_rl_window",
    "pipeline_rl",
    "one_step_off",
    "slime_train_async",
];

/// Whether it asks for groups.
fn training(set: &mut Vec<String>, words: &mut Words, slots: bool) -> bool {
    let eta = words.below(5);
    let group = if slots && words.one_in(3) { words.range(2, 3) } else { 1 };
    let gate = words.pick(&GATES);
    let pushes_always = ["sync", "one_step_off"].contains(&gate);
    let interval = if pushes_always { 1 } else { words.range(1, eta + 1).min(2) };
    let ahead = words.below(4);
    // What the gate binds: no filter may be below it.
    let bound = match gate {
        "roll" => ahead.max(interval - 1),
        "one_step_off" => 1,
        "slime_train_async" => interval,
        _ => eta,
    };
    let batch = words.range(1, 5);
    set.extend([
        format!("gate=\"{gate}\""),
        format!("max_head_off_policyness={eta}"),
        format!("bound=\"{}\"", words.pick(&["aggregate", "strict"])),
        format!("late=\"{}\"", words.pick(&["discard", "wait"])),
        format!("late_wait_sec={}", words.below(30)),
        format!("batch_size={batch}"),
        format!("group_size={group}"),
        format!("min_group_size={}", words.range(1, group)),
        format!("batch_counts=\"{}\"", words.pick(&["accepted", "accepted", "results"])),
        format!("max_batch_wait_sec={}", words.below(2) * words.below(40)),
        format!("min_batch_size={}", words.range(1, batch)),
        format!("publish_interval={interval}"),
        format!("train_retries={}", words.below(3)),
        format!("staleness_threshold={ahead}"),
        format!("async_generation_ratio={}", ahead.max(interval - 1)),
        format!("max_lag_samples={}", 2 * ahead),
    ]);
    if words.one_in(2) {
        set.push(format!("stale_filter_steps={}", bound + words.below(4)));
    }
    if group == 1 && words.one_in(2) {
        set.push(format!("park_after_sec={}", words.range(60, 120)));
    }
    groups(set, words, group);
    group > 1
}

fn groups(set: &mut Vec<String>, words: &mut Words, group: u32) {
    if words.one_in(2) {
        let sampling = words.pick(&["1.0", "1.25", "2.0"]);
        set.push(format!("over_sampling={sampling}"));
        let by_state = set.iter().any(|s| s == "gate=\"headway\"" || s == "gate=\"sync\"");
        if by_state {
            set.push(format!("surplus=\"{}\"", words.pick(&["recycle", "drop"])));
        }
    }
    if group > 1 {
        set.push(format!("straggler_wait_sec={}", words.below(2) * words.range(1, 40)));
        set.push(format!("group_timeout_sec={}", words.pick(&["0", "7200", "7200", "120"])));
        set.push(format!("filter=\"{}\"", words.pick(&["none", "zero_variance"])));
    }
}

fn serving(set: &mut Vec<String>, words: &mut Words) {
    let modes = ["pause_drain", "pause_abort", "pause_keep", "in_flight", "rolling"];
    set.extend([
        format!("sync_mode=\"{}\"", words.pick(&modes)),
        format!("aborted=\"{}\"", words.pick(&["discard", "restart", "resume", "keep_as_final"])),
        format!("kv_on_sync=\"{}\"", words.pick(&["recompute", "keep"])),
        format!("routing=\"{}\"", words.pick(&["least_loaded", "session_affine"])),
        format!("over_limit=\"{}\"", words.pick(&["refuse", "refuse", "hold", "serve_only"])),
        format!("hold_sec={}", words.below(2) * words.range(1, 100)),
        format!("pause_timeout_sec={}", words.range(1, 60)),
        format!("max_concurrent_rollouts={}", words.below(2) * words.range(2, 9)),
    ]);
}

fn judging(set: &mut Vec<String>, words: &mut Words, slots: bool) {
    let votes = words.range(1, 4);
    let sync = words.one_in(4);
    set.extend([
        format!("reward_judging.mode=\"{}\"", if sync { "sync" } else { "async" }),
        format!("judge_concurrency={}", words.range(1, 6)),
        format!("judge_timeout_sec={}", words.range(30, 90)),
        format!("judge_retries={}", words.below(3)),
        format!("votes={votes}"),
        format!("min_votes={}", words.range(1, votes)),
        format!("aggregate=\"{}\"", words.pick(&["majority", "mean", "median"])),
        format!("on_tie=\"{}\"", words.pick(&["zero", "discard"])),
        format!("on_judge_failure=\"{}\"", words.pick(&["discard", "zero", "mask"])),
        format!("zero_score=\"{}\"", words.pick(&["train", "mask", "discard"])),
        format!("at_least_one={}", words.one_in(2)),
    ]);
    if !slots {
        set.push(format!("fire_on_turn_end={}", sync || !words.one_in(4)));
    }
}

fn queues(set: &mut Vec<String>, words: &mut Words) {
    let orders = ["fifo", "lifo", "oldest_version_first", "freshest_first", "admission_order"];
    for queue in ["rollout", "output"] {
        set.extend([
            format!("queue.{queue}.max_size={}", if words.one_in(2) { 64 } else { 15 }),
            format!("queue.{queue}.queue_type=\"{}\"", words.pick(&orders)),
            format!(
                "queue.{queue}.drop_policy=\"{}\"",
                words.pick(&["reject", "block", "drop_oldest", "drop_newest"])
            ),
        ]);
    }
}

fn world(set: &mut Vec<String>, words: &mut Words, slots: bool, hosted: bool) {
    set.extend([
        format!("world.serving.replicas={}", words.range(1, 3)),
        format!("world.serving.max_batch={}", words.below(5)),
        format!("world.serving.kv_tokens={}", words.below(2) * words.range(200, 9000)),
        format!("world.serving.prefill_tokens_per_sec={}", words.below(2) * 2000),
        format!("world.serving.cached_sessions={}", words.below(4)),
        format!("world.serving.speed_during_step={}", words.pick(&["1.0", "0.5"])),
        format!("world.serving.speed_during_load={}", words.pick(&["1.0", "0.3"])),
        format!("world.clients.streamed_share={}", words.pick(&["0.0", "0.5"])),
        format!("world.judge.vote={}", words.seconds(2)),
        format!("world.judge.positive_share={}", words.pick(&["0.3", "0.8"])),
        format!("world.judge.solved_share={}", words.pick(&["0.0", "0.2"])),
        format!("world.judge.hopeless_share={}", words.pick(&["0.0", "0.2"])),
        format!("world.judge.agreement={}", words.pick(&["1.0", "0.7"])),
        format!("world.judge.finishes_abandoned={}", words.one_in(2)),
        format!("world.trainer.step={}", words.seconds(8)),
        format!("world.weights.save={}", words.seconds(2)),
        format!("world.weights.transfer={}", words.seconds(3)),
        format!("world.weights.load={}", words.seconds(1)),
    ]);
    if slots {
        let environment = words.one_in(3) && hosted;
        set.push(format!("world.clients.slots={}", words.range(2, 12)));
        set.push(format!("world.clients.environment={environment}"));
        if environment {
            set.push("world.clients.turns={ kind = \"uniform\", min = 1, max = 4 }".to_owned());
            set.push(format!("world.environment.step={}", words.seconds(5)));
            set.push(format!("max_envs={}", words.range(1, 6)));
        }
    }
}

fn faults(set: &mut Vec<String>, words: &mut Words) {
    let shares = [
        "failed_generation_share",
        "lost_completion_share",
        "duplicate_completion_share",
        "failed_step_share",
        "failed_save_share",
        "failed_transfer_share",
        "failed_load_share",
        "broken_load_share",
    ];
    for share in shares {
        set.push(format!("world.faults.{share}={}", words.pick(&["0.0", "0.0", "0.1"])));
    }
    set.extend([
        format!("world.faults.replica_mtbf_sec={}", words.below(2) * words.range(60, 600)),
        format!("world.faults.restart_newest={}", words.one_in(2)),
        format!("world.faults.replica_restart={}", words.seconds(30)),
        format!("world.judge.failed_share={}", words.pick(&["0.0", "0.2"])),
        format!("world.judge.invalid_share={}", words.pick(&["0.0", "0.2"])),
        format!("world.judge.hang_share={}", words.pick(&["0.0", "0.1"])),
        format!("world.judge.quota={}", words.below(4)),
        format!("world.environment.failure_share={}", words.pick(&["0.0", "0.1"])),
        format!("world.environment.hang_share={}", words.pick(&["0.0", "0.1"])),
        "generation_timeout_sec=120".to_owned(),
        "step_timeout_sec=60".to_owned(),
        "load_timeout_sec=40".to_owned(),
    ]);
    let at: Vec<String> = (0..words.below(4)).map(|_| scheduled(words)).collect();
    set.push(format!("world.faults.at=[{}]", at.join(", ")));
}

fn scheduled(words: &mut Words) -> String {
    let kind = match words.below(13) {
        0 => "\"replica_down\", replica = 0, lasting_sec = 40".to_owned(),
        1 => format!("\"replica_up\", replica = {}", words.below(4)),
        2 => "\"judge_hang\", lasting_sec = 50".to_owned(),
        3 => "\"trainer_pause\", lasting_sec = 60".to_owned(),
        4 => format!("\"save_fails\", times = {}", words.range(1, 3)),
        5 => "\"transfer_fails\"".to_owned(),
        6 => "\"load_breaks\"".to_owned(),
        7 => "\"load_hangs\"".to_owned(),
        8 => format!("\"rollback\", steps = {}", words.range(1, 20)),
        9 => "\"operator_resume\"".to_owned(),
        11 => "\"judge_slow\", lasting_sec = 60, factor = 5".to_owned(),
        10 => "\"equal_scores\", lasting_sec = 60".to_owned(),
        _ => format!(
            "\"reconfigure\", set = [\"batch_size={0}\", \"min_batch_size=1\", \
             \"queue.output.max_size={1}\"]",
            words.range(1, 6),
            words.range(18, 40)
        ),
    };
    format!("{{ time_sec = {}, kind = {kind} }}", words.range(1, 600))
}
