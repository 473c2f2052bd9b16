//! What holds in every world: random scenarios, faults and seeds, through the simulator.
//!
//! Each case runs once with a record. The record is then replayed twice: as users replay it, and
//! input by input with a recount of every counter after each.

use headway_shared::action::{Action, RunError};
use headway_shared::config::{Config, Diagnostics};
use headway_shared::core::{Fate, Resolved, Scheduler};
use headway_shared::record::{Entry, Reader};
use headway_shared::replay::replay;
use headway_shared::time::Span;
use headway_sim::run::{Ended, RunFailure, RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::world_support::{SESSIONS, SLOTS, try_load};

/// Every run ends after so many inputs at the latest.
const INPUTS: u64 = 400;

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

    fn range(&mut self, least: u32, most: u32) -> u32 {
        least + self.below(most - least + 1)
    }

    fn one_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u32) as usize]
    }

    /// A time, of any kind.
    fn seconds(&mut self, mean: u32) -> String {
        match self.below(4) {
            0 => format!("{{ kind = \"constant\", sec = {mean} }}"),
            1 => format!("{{ kind = \"uniform\", min_sec = 0, max_sec = {} }}", 2 * mean),
            2 => format!("{{ kind = \"exponential\", mean_sec = {mean} }}"),
            _ => {
                format!(
                    "{{ kind = \"lognormal\", median_sec = {mean}, p99_sec = {} }}",
                    mean * 6 + 1
                )
            }
        }
    }
}

/// A scenario as its text and the assignments over it.
#[derive(Clone, Debug)]
struct Case {
    text: &'static str,
    set: Vec<String>,
}

impl Case {
    fn load(&self) -> Result<Scenario, Diagnostics> {
        let set: Vec<&str> = self.set.iter().map(String::as_str).collect();
        try_load(self.text, &set).map(|(scenario, _)| scenario)
    }
}

/// A scenario of any kind: every gate, mode, order, policy and, if `faulty`, fault.
fn case(faulty: bool) -> impl Strategy<Value = Case> {
    (prop::collection::vec(any::<u32>(), 150), any::<bool>()).prop_map(move |(words, slots)| {
        let mut words = Words { words, next: 0 };
        let mut set = vec![format!("scenario.seed={}", words.below(1 << 20))];
        // What follows the tokens of each sample must find all of them in every world.
        set.extend(["sigma0=0.1", "a=0.01", "p=1.5"].map(|drift| format!("world.drift.{drift}")));
        let grouped = training(&mut set, &mut words, slots);
        serving(&mut set, &mut words);
        judging(&mut set, &mut words, slots);
        queues(&mut set, &mut words);
        let sessions = words.one_in(2);
        set.push(format!("sample_unit=\"{}\"", if sessions { "session" } else { "turn" }));
        if sessions {
            // Who leaves without a word holds a place until then.
            set.push("session_idle_sec=300".to_owned());
        }
        world(&mut set, &mut words, slots, sessions || !grouped);
        if faulty {
            faults(&mut set, &mut words);
        }
        Case { text: if slots { SLOTS } else { SESSIONS }, set }
    })
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

/// A run with its record. A run may end because publications failed too often: never because a
/// rule of the core was broken.
fn recorded(scenario: &Scenario, inputs: u64) -> (RunResult, Vec<u8>) {
    let mut record = Vec::new();
    let options =
        RunOptions { record: Some(&mut record), max_inputs: inputs, ..RunOptions::default() };
    let result = match simulate(scenario, 0, options) {
        Ok(result) => result,
        Err(RunFailure::Core { result, error, .. }) => {
            assert!(matches!(error, RunError::PublicationFailed { .. }), "{error}");
            *result
        }
        Err(failure) => panic!("{failure}"),
    };
    (result, record)
}

/// The inputs of a record, handled by a fresh core with a recount after each.
fn audited(record: &[u8], mut see: impl FnMut(&Config, &Resolved)) {
    let reader = Reader::open(record).unwrap();
    let mut core = Scheduler::new(reader.header().config.clone());
    let mut learner = core.learner();
    for entry in reader {
        let Entry::Input { at, input, .. } = entry.unwrap() else { continue };
        core.handle(at, &input);
        while let Some(action) = core.poll_action() {
            if let Action::Refuse { retry_after, .. } = action {
                assert!(retry_after <= Span::from_secs(60), "clients give up beyond");
            }
        }
        assert_eq!(core.audit(), Ok(()), "at {at}, after {input:?}");
        assert!(core.learner() >= learner, "versions never go backwards");
        learner = core.learner();
        for resolved in core.resolved() {
            see(core.config(), resolved);
        }
    }
}

fn cases(count: u32, seed: u64) -> ProptestConfig {
    ProptestConfig {
        cases: count,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(1000, 1))]

    #[test]
    fn every_invariant_holds_and_every_record_replays(case in case(true)) {
        let scenario = case.load();
        prop_assert!(scenario.is_ok(), "{}", scenario.unwrap_err());
        let scenario = scenario.unwrap();
        let (result, record) = recorded(&scenario, INPUTS);
        let report = replay(Reader::open(record.as_slice()).unwrap()).unwrap();
        prop_assert_eq!(report.decisions.digest, result.digest);
        prop_assert_eq!(report.decisions.inputs, result.inputs);
        let training = &scenario.config.policy_training;
        let strict = scenario.config.is_strict();
        // A smaller batch, which an operator may ask for, is more versions ahead.
        let mut smallest = scenario.config.clone();
        smallest.policy_training.batch_size = 1;
        let widest = scenario.config.bound_versions().max(smallest.bound_versions());
        audited(&record, |_, Resolved { sample, fate }| {
            if *fate != Fate::Trained {
                return;
            }
            let staleness = sample.staleness_head();
            assert_eq!(sample.staleness_parts().iter().sum::<u32>(), staleness);
            if strict {
                assert!(staleness <= widest, "{sample:?}");
            }
            if let Some(filter) = training.stale_filter_steps {
                assert!(staleness <= filter, "{sample:?}");
            }
        });
    }
}

/// What is ready in the order of admission, in full batches: constant lengths, a batch that does
/// not slow down, a judge that is never busy, and nothing aborted, dropped or reordered.
fn in_order() -> impl Strategy<Value = (Case, u32)> {
    prop::collection::vec(any::<u32>(), 40).prop_map(|words| {
        let mut words = Words { words, next: 0 };
        let eta = words.below(5);
        let modes = ["pause_drain", "pause_keep", "in_flight", "rolling"];
        let results = words.pick(&["accepted", "results"]);
        let set = vec![
            format!("scenario.seed={}", words.below(1 << 20)),
            format!("max_head_off_policyness={eta}"),
            format!("batch_size={}", words.range(1, 8)),
            format!("batch_counts=\"{results}\""),
            format!("publish_interval={}", words.range(1, eta + 1)),
            format!("sync_mode=\"{}\"", words.pick(&modes)),
            "over_limit=\"hold\"".to_owned(),
            format!("queue.output.queue_type=\"{}\"", words.pick(&["fifo", "admission_order"])),
            "judge_concurrency=500".to_owned(),
            "zero_score=\"discard\"".to_owned(),
            format!("over_sampling={}", words.pick(&["1.0", "1.3", "2.0"])),
            "surplus=\"drop\"".to_owned(),
            format!("world.judge.positive_share={}", words.pick(&["1.0", "0.7", "0.3"])),
            format!("world.clients.slots={}", words.range(1, 60)),
            format!("world.trainer.step={}", words.seconds(12)),
            format!("world.weights.save={}", words.seconds(6)),
            format!("world.weights.transfer={}", words.seconds(6)),
            format!("world.faults.failed_save_share={}", words.pick(&["0.0", "0.1"])),
            format!("world.faults.failed_step_share={}", words.pick(&["0.0", "0.1"])),
        ];
        (Case { text: SLOTS, set }, eta)
    })
}

proptest! {
    #![proptest_config(cases(300, 2))]

    #[test]
    fn full_batches_in_admission_order_never_exceed_eta((case, eta) in in_order()) {
        let scenario = case.load().unwrap();
        let (result, record) = recorded(&scenario, 4 * INPUTS);
        let mut trained = 0;
        audited(&record, |_, resolved| {
            if resolved.fate == Fate::Trained {
                trained += 1;
                assert!(resolved.sample.staleness_head() <= eta, "{:?}", resolved.sample);
            }
        });
        prop_assert!(trained > 0, "{:?}", result.ended);
    }

    /// What is accepted makes progress where nothing fails.
    #[test]
    fn what_is_accepted_trains_in_a_world_without_faults(case in case(false)) {
        let mut case = case;
        case.set.extend(["scenario.steps=3".to_owned(), "scenario.duration_sec=1e6".to_owned()]);
        // No group meets a limit that is too short, and a filter must have scores to compare.
        if case.set.iter().any(|set| set.starts_with("group_timeout_sec")) {
            case.set.push("group_timeout_sec=7200".to_owned());
        }
        if case.set.iter().any(|set| set == "filter=\"zero_variance\"") {
            let all = case.set.iter().find_map(|set| set.strip_prefix("group_size=")).unwrap();
            let all = format!("min_group_size={all}");
            case.set.extend([all, "zero_score=\"train\"".to_owned()]);
        }
        let scenario = case.load().unwrap();
        let (result, _) = recorded(&scenario, 50 * INPUTS);
        prop_assert_eq!(result.ended, Ended::Steps);
    }
}
