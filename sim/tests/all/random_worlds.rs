//! What holds in every world: random scenarios, faults and seeds, through the simulator.
//!
//! Each case runs once with a record. The record is then replayed twice: as users replay it, and
//! input by input with a recount of every counter after each.

use headway_shared::action::{Action, RunError};
use headway_shared::config::Config;
use headway_shared::core::{Fate, Resolved, Scheduler};
use headway_shared::record::{Entry, Reader};
use headway_shared::replay::replay;
use headway_shared::time::Span;
use headway_sim::run::{Ended, RunFailure, RunOptions, RunResult, simulate};
use headway_sim::scenario::Scenario;
use headway_sim::torture::{Case, Words};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::world_support::SLOTS;

/// Every run ends after so many inputs at the latest.
const INPUTS: u64 = 400;

/// A scenario of any kind: every gate, mode, order, policy and, if `faulty`, fault.
fn case(faulty: bool) -> impl Strategy<Value = Case> {
    (prop::collection::vec(any::<u32>(), 150), any::<bool>())
        .prop_map(move |(words, slots)| Case::of_words(&mut Words::new(words), slots, faulty))
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
        let mut words = Words::new(words);
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
