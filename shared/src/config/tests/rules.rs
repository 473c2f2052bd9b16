use crate::config::{
    Bound, Config, Correction, DropPolicy, GateKind, GroupFilter, JudgeMode, Late, Problem,
    QueueName, QueueOrder, SampleUnit, Severity, Surplus, ZeroScore, check,
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
fn keys_that_a_gate_does_not_read_are_warned_about() {
    let unread = |gate: GateKind| {
        found(|c| {
            c.policy_training.gate = gate;
            c.policy_training.max_head_off_policyness = 3;
            c.policy_training.staleness_threshold = 1;
            c.policy_training.async_generation_ratio = 2_000_000;
            c.policy_training.max_lag_samples = 1;
        })
    };
    let [eta, s, a, lag] = [
        "policy_training.max_head_off_policyness",
        "policy_training.staleness_threshold",
        "policy_training.async_generation_ratio",
        "policy_training.max_lag_samples",
    ]
    .map(Problem::UnreadByGate);
    assert_eq!(unread(GateKind::Headway), [s, a, lag]);
    assert_eq!(unread(GateKind::Skyrl), [s, a, lag]);
    assert_eq!(unread(GateKind::Verl), [eta, a, lag]);
    assert_eq!(unread(GateKind::Roll), [eta, s, lag]);
    assert_eq!(unread(GateKind::PipelineRl), [eta, s, a]);
    assert_eq!(unread(GateKind::OneStepOff), [eta, s, a, lag]);
    assert!([eta, s, a, lag].iter().all(|problem| problem.severity() == Severity::Warning));
}

#[test]
fn gates_that_are_strict_by_their_own_rule_must_outlast_a_publish_interval() {
    for gate in [GateKind::PrimeRl, GateKind::NemoRlWindow, GateKind::Skyrl] {
        let problems = found(|c| {
            c.policy_training.gate = gate;
            c.policy_training.publish_interval = 4;
        });
        assert_eq!(problems, [Problem::NeverPublishes], "{gate:?}");
    }
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

#[test]
fn a_filter_needs_groups_and_scores_to_compare() {
    let filtered = |size: u32, zero_score: ZeroScore| {
        found(|c| {
            c.policy_training.filter = GroupFilter::ZeroVariance;
            c.policy_training.group_size = size;
            c.policy_training.min_group_size = size;
            c.reward_judging.zero_score = zero_score;
        })
    };
    assert_eq!(filtered(1, ZeroScore::Train), [Problem::FilterWithoutGroups]);
    assert_eq!(filtered(8, ZeroScore::Train), []);
    for zero_score in [ZeroScore::Mask, ZeroScore::Discard] {
        assert_eq!(filtered(8, zero_score), [Problem::FilterSeesOneScore]);
        assert_eq!(Problem::FilterSeesOneScore.severity(), Severity::Warning);
    }
}

#[test]
fn a_wait_for_stragglers_needs_members_to_go_on_without() {
    let waiting = |size: u32, least: u32| {
        found(|c| {
            c.policy_training.straggler_wait = Span::from_secs(30);
            c.policy_training.group_size = size;
            c.policy_training.min_group_size = least;
        })
    };
    assert_eq!(waiting(1, 1), [Problem::NoStragglers]);
    assert_eq!(waiting(8, 8), [Problem::NoStragglers]);
    assert_eq!(waiting(8, 7), []);
    assert_eq!(Problem::NoStragglers.severity(), Severity::Warning);
}

#[test]
fn over_sampling_says_what_its_surplus_costs() {
    let over = |gate: GateKind, eta: u32, bound: Bound, surplus: Surplus, late: Late| {
        found(|c| {
            c.policy_training.over_sampling = 1_500_000;
            c.policy_training.gate = gate;
            c.policy_training.max_head_off_policyness = eta;
            c.policy_training.bound = bound;
            c.policy_training.surplus = surplus;
            c.policy_training.late = late;
            c.policy_serving.max_concurrent_rollouts = 100;
        })
    };
    use Bound::{Aggregate, Strict};
    use GateKind::{Areal, Headway, Sync};
    use Late::{Discard, Wait};
    use Surplus::{Drop, Recycle};
    assert_eq!(over(Headway, 2, Aggregate, Recycle, Discard), []);
    assert_eq!(over(Headway, 2, Strict, Drop, Discard), []);
    assert_eq!(over(Headway, 0, Aggregate, Drop, Discard), []);
    assert_eq!(over(Areal, 2, Aggregate, Recycle, Discard), []);
    assert_eq!(over(Headway, 0, Aggregate, Recycle, Discard), [Problem::SurplusTooOld]);
    assert_eq!(over(Headway, 2, Strict, Recycle, Discard), [Problem::SurplusTooOld]);
    assert_eq!(over(Sync, 2, Aggregate, Recycle, Discard), [Problem::SurplusTooOld]);
    assert_eq!(over(Headway, 2, Strict, Drop, Wait), [Problem::WaitForSurplus]);
    assert_eq!(over(Areal, 2, Aggregate, Drop, Discard), [Problem::DropWithoutPlaces]);
    for gate in [GateKind::None, GateKind::Openclaw, GateKind::PrimeRl, GateKind::NemoRlWindow] {
        let unlimited = over(gate, 2, Aggregate, Recycle, Discard);
        assert!(unlimited.contains(&Problem::OverSamplingWithoutPlaces), "{gate:?}");
    }
}

#[test]
fn surplus_without_over_sampling_has_nothing_to_say() {
    for gate in [GateKind::Headway, GateKind::Openclaw, GateKind::None] {
        let problems = found(|c| {
            c.policy_training.gate = gate;
            c.policy_training.surplus = Surplus::Drop;
        });
        assert_eq!(problems, []);
    }
}
