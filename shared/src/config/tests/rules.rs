use crate::config::{
    Bound, Config, Correction, DropPolicy, GateKind, JudgeMode, Late, Problem, QueueName,
    QueueOrder, SampleUnit, Severity, check,
};
use crate::time::Span;

/// What `check` finds after `change` of the defaults.
fn found(change: impl FnOnce(&mut Config)) -> Vec<Problem> {
    let mut config = Config::default();
    change(&mut config);
    check(&config)
}

#[test]
fn the_defaults_break_no_rule() {
    assert_eq!(found(|_| {}), []);
}

#[test]
fn a_bound_that_ends_before_the_first_publication_is_refused() {
    let interval = |eta: u32, interval: u32, gate: GateKind, bound: Bound| {
        found(|c| {
            c.policy_training.max_head_off_policyness = eta;
            c.policy_training.publish_interval = interval;
            c.policy_training.gate = gate;
            c.policy_training.bound = bound;
            c.policy_serving.max_concurrent_rollouts = 8;
        })
    };
    use Bound::{Aggregate, Strict};
    assert_eq!(interval(2, 3, GateKind::Headway, Aggregate), []);
    assert_eq!(interval(2, 4, GateKind::Headway, Aggregate), [Problem::NeverPublishes]);
    assert_eq!(interval(2, 4, GateKind::Areal, Aggregate), [Problem::NeverPublishes]);
    assert_eq!(interval(2, 4, GateKind::None, Aggregate), []);
    assert_eq!(interval(2, 4, GateKind::None, Strict), [Problem::NeverPublishes]);
    assert_eq!(interval(2, 2, GateKind::Sync, Aggregate), [Problem::SyncGateNeverPublishes]);
}

#[test]
fn a_filter_that_discards_everything_before_a_publication_is_refused_under_every_gate() {
    for gate in [GateKind::None, GateKind::Openclaw] {
        let problems = found(|c| {
            c.policy_training.gate = gate;
            c.policy_training.stale_filter_steps = Some(2);
            c.policy_training.publish_interval = 4;
        });
        assert_eq!(problems, [Problem::FilterNeverPublishes]);
    }
}

#[test]
fn zeros_that_stop_everything_are_refused() {
    let problems = found(|c| {
        c.policy_training.publish_interval = 0;
        c.reward_judging.judge_concurrency = 0;
        c.policy_serving.load_timeout = Span::ZERO;
    });
    assert_eq!(
        problems,
        [
            Problem::Zero("reward_judging.judge_concurrency"),
            Problem::Zero("policy_training.publish_interval"),
            Problem::Zero("policy_serving.load_timeout_sec"),
        ]
    );
}

#[test]
fn a_group_must_fit_into_the_rollout_queue_and_into_itself() {
    let problems = found(|c| {
        c.policy_training.group_size = 8;
        c.policy_training.min_group_size = 9;
        c.queue.rollout.max_size = 7;
    });
    assert_eq!(problems, [Problem::MinGroupAboveGroup, Problem::GroupAboveQueue]);
}

#[test]
fn sessions_that_block_each_others_slots_are_refused() {
    let slots = |limit| {
        found(|c| {
            c.reward_judging.mode = JudgeMode::Sync;
            c.reward_judging.fire_on_turn_end = false;
            c.policy_serving.max_concurrent_rollouts = limit;
        })
    };
    assert_eq!(slots(4), [Problem::SlotsUntilSessionEnd]);
    assert_eq!(slots(0), []);
}

#[test]
fn the_areal_gate_needs_a_limit_and_loses_no_places() {
    let areal = |change: fn(&mut Config)| {
        found(|c| {
            c.policy_training.gate = GateKind::Areal;
            c.policy_serving.max_concurrent_rollouts = 64;
            change(c);
        })
    };
    assert_eq!(areal(|_| {}), []);
    assert_eq!(areal(|c| c.policy_serving.max_concurrent_rollouts = 0), [Problem::ArealNeedsLimit]);
    let loses = [Problem::ArealLosesPlaces];
    assert_eq!(areal(|c| c.policy_training.stale_filter_steps = Some(9)), loses);
    assert_eq!(areal(|c| c.policy_training.bound = Bound::Strict), loses);
    assert_eq!(areal(|c| c.queue.output.drop_policy = DropPolicy::DropOldest), []);
    assert_eq!(
        areal(|c| {
            c.queue.output.drop_policy = DropPolicy::DropOldest;
            c.queue.output.max_size = 47;
        }),
        loses
    );
}

#[test]
fn a_band_matters_only_to_a_correction_that_has_one() {
    let band = |correction, low, high| {
        found(|c| {
            c.policy_training.correction = correction;
            c.policy_training.correction_low = low;
            c.policy_training.correction_high = high;
        })
    };
    assert_eq!(band(Correction::Icepop, 3, 2), [Problem::EmptyBand]);
    assert_eq!(band(Correction::Tis, 3, 2), []);
    assert_eq!(band(Correction::Tis, 0, 0), [Problem::EmptyBand]);
}

#[test]
fn orders_that_starve_are_warned_about_unless_old_samples_go() {
    let lifo = |filter| {
        found(|c| {
            c.queue.output.queue_type = QueueOrder::Lifo;
            c.policy_training.stale_filter_steps = filter;
        })
    };
    assert_eq!(lifo(None), [Problem::StarvingOrder(QueueName::Output)]);
    assert_eq!(lifo(Some(4)), []);
}

#[test]
fn lag_without_correction_is_warned_about_and_synchronous_training_is_not() {
    let lag = |eta| {
        found(|c| {
            c.policy_training.correction = Correction::None;
            c.policy_training.max_head_off_policyness = eta;
        })
    };
    assert_eq!(lag(1), [Problem::LagWithoutCorrection]);
    assert_eq!(lag(0), []);
}

#[test]
fn trajectories_may_be_judged_in_their_slots() {
    let sync = |unit| {
        found(|c| {
            c.policy_training.sample_unit = unit;
            c.reward_judging.mode = JudgeMode::Sync;
            c.reward_judging.fire_on_turn_end = false;
            c.policy_serving.max_concurrent_rollouts = 4;
        })
    };
    assert_eq!(sync(SampleUnit::Turn), [Problem::SlotsUntilSessionEnd]);
    assert_eq!(sync(SampleUnit::Session), []);
}

#[test]
fn keys_without_effect_are_warned_about() {
    assert_eq!(found(|c| c.policy_training.late = Late::Wait), [Problem::WaitWithoutStrict]);
    let parked_group = found(|c| {
        c.policy_training.group_size = 2;
        c.policy_training.min_group_size = 2;
        c.policy_training.park_after = Span::from_secs(60);
    });
    assert_eq!(parked_group, [Problem::GroupsDoNotPark]);
    let trajectories = found(|c| {
        c.policy_training.sample_unit = SampleUnit::Session;
        c.policy_training.park_after = Span::from_secs(60);
        c.reward_judging.at_least_one = true;
    });
    assert_eq!(
        trajectories,
        [Problem::TrajectoriesDoNotPark, Problem::AtLeastOneTrajectory],
        "they are never parked, and each is alone in its session"
    );
    let silent = found(|c| c.environment_hosting.session_idle = Span::ZERO);
    assert_eq!(silent, [Problem::SilentSessions]);
    assert!(silent.iter().all(|problem| problem.severity() == Severity::Warning));
}
