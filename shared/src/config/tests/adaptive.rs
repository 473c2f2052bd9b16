use super::{load, toml, valid};
use crate::config::{
    AdaptiveProblem, Bound, Config, Correction, GateKind, Problem, Severity, Signal, check,
};

/// What `check` finds after `change` of a bound that follows the log-prob difference.
fn found(change: impl FnOnce(&mut Config)) -> Vec<AdaptiveProblem> {
    let mut config = Config::default();
    config.adaptive.signal = Signal::LogprobAbsDiff;
    config.adaptive.target = 50_000;
    change(&mut config);
    let adaptive = |problem| match problem {
        Problem::Adaptive(problem) => Some(problem),
        _ => None,
    };
    check(&config).into_iter().filter_map(adaptive).collect()
}

#[test]
fn a_bound_that_follows_a_signal_is_read_from_its_table() {
    let config = valid(&toml(
        "[policy_training]\nmax_head_off_policyness = 3\n[policy_training.adaptive]\n\
         signal = \"ess\"\ntarget = 0.9\nmin = 2\nmax = 5\nincrease = 2\ndecrease = 0.75\n\
         every_steps = 4\n",
    ));
    let adaptive = &config.adaptive;
    assert_eq!((adaptive.signal, adaptive.target), (Signal::Ess, 900_000));
    assert_eq!((adaptive.min, adaptive.max, adaptive.increase), (2, 5, 2));
    assert_eq!((adaptive.decrease, adaptive.every_steps), (750_000, 4));
}

#[test]
fn a_bound_that_nobody_has_made_adaptive_is_not_in_the_text_that_digests_are_made_of() {
    let mut config = Config::default();
    let text = config.canonical_json();
    assert!(!text.contains("adaptive"), "{text}");
    assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), config);
    config.adaptive.signal = Signal::Ess;
    assert_eq!(serde_json::from_str::<Config>(&config.canonical_json()).unwrap(), config);
    let bytes = postcard::to_stdvec(&Config::default()).unwrap();
    assert_eq!(postcard::from_bytes::<Config>(&bytes).unwrap(), Config::default());
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    use AdaptiveProblem as P;
    assert_eq!(found(|_| {}), []);
    assert_eq!(found(|c| c.adaptive.target = 0), [P::NoTarget]);
    assert_eq!(found(|c| c.adaptive.min = 9), [P::MinAboveMax]);
    assert_eq!(found(|c| c.adaptive.min = 3), [P::BeginsOutside]);
    assert_eq!(found(|c| c.adaptive.max = 1), [P::BeginsOutside]);
    assert_eq!(found(|c| c.policy_training.publish_interval = 3), [P::NeverPublishes]);
    assert_eq!(found(|c| c.adaptive.decrease = 1_000_000), [P::NoDecrease]);
    assert_eq!(found(|c| c.adaptive.decrease = 0), [P::NoDecrease]);
    let share = |c: &mut Config| {
        c.adaptive.signal = Signal::Ess;
        c.adaptive.target = 1_000_000;
    };
    assert_eq!(found(share), [P::TargetBeyondShare]);
    let mut none = Config::default();
    none.adaptive.every_steps = 0;
    assert_eq!(check(&none), [Problem::Zero("policy_training.adaptive.every_steps")]);
}

#[test]
fn a_gate_that_eta_does_not_bind_is_refused() {
    let gate = |gate, bound| {
        found(|c| {
            c.policy_training.gate = gate;
            c.policy_training.bound = bound;
            c.policy_serving.max_concurrent_rollouts = 8;
        })
    };
    for own in [GateKind::Headway, GateKind::Areal, GateKind::PrimeRl, GateKind::Skyrl] {
        assert_eq!(gate(own, Bound::Aggregate), []);
    }
    for other in [GateKind::Verl, GateKind::Roll, GateKind::Sync, GateKind::OneStepOff] {
        assert_eq!(gate(other, Bound::Strict), [AdaptiveProblem::UnreadByGate]);
    }
    assert_eq!(gate(GateKind::None, Bound::Aggregate), [AdaptiveProblem::UnreadByGate]);
    assert_eq!(gate(GateKind::None, Bound::Strict), []);
}

#[test]
fn a_clipped_fraction_needs_a_correction_that_clips() {
    let correction = |correction| {
        found(|c| {
            c.adaptive.signal = Signal::ClippedFraction;
            c.policy_training.correction = correction;
        })
    };
    assert_eq!(correction(Correction::PpoClip), []);
    assert_eq!(correction(Correction::None), [AdaptiveProblem::NothingIsClipped]);
    assert_eq!(correction(Correction::Decoupled), [AdaptiveProblem::ClipsBetweenUpdates]);
    let warned = Problem::Adaptive(AdaptiveProblem::ClipsBetweenUpdates);
    assert_eq!(warned.severity(), Severity::Warning);
}

#[test]
fn the_filter_keeps_its_distance_from_the_bound() {
    let mut config = Config::default();
    assert_eq!(config.stale_filter_at(7), None);
    config.policy_training.stale_filter_steps = Some(5);
    assert_eq!(config.stale_filter_at(2), Some(5));
    assert_eq!(config.stale_filter_at(8), Some(11));
    assert_eq!(config.stale_filter_at(0), Some(3));
}

#[test]
fn each_mistake_has_its_place_and_a_remedy() {
    let head = "[policy_training.adaptive]\nsignal = \"clipped_fraction\"\n";
    for (more, message, remedy) in [
        ("", "no `target` says", "write `target = 0.02`"),
        ("target = 2\n", "is a share", "write `target = 0.02`"),
        ("target = 0.02\nmin = 9\n", "above a `max` of 8", "write `max = 9` or more"),
        ("target = 0.02\nmin = 4\n", "outside of 4 to 8", "from 4 to 8"),
        ("target = 0.02\nevery_step = 4\n", "unknown key `every_step`", "`every_steps`"),
    ] {
        let text = load(&format!("{head}{more}")).unwrap_err().to_string();
        assert!(text.contains(message) && text.contains(remedy), "{text}");
        assert!(text.contains("config.toml:"), "{text}");
    }
    assert!(load("[policy_training.adaptive]\nsignal = \"off\"\n").is_ok());
}
