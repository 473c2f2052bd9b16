use super::{toml, valid};
use crate::config::{Envelope, GuardSettings, Live, OnDeviation, load_live};
use crate::time::Span;

const GUARD: &str = "
[reward_judging]
rule = 'exact'
judge_needs = 'turn'

[guard]
on_deviation = 'rollback'
window_sec = 300
[guard.envelope]
trained_samples_per_hour = [1000, 1200.5]
refused_503_share = [0.0, 0.01]
[guard.previous.policy_training]
max_head_off_policyness = 1
";

fn load(text: &str) -> Result<Live, String> {
    let layers = toml(text).json("settings.json", "{}");
    load_live(&layers).map_err(|diagnostics| diagnostics.to_string())
}

#[test]
fn a_guard_is_read_with_its_defaults() {
    let live = load(GUARD).unwrap();
    let guard = live.guard.unwrap();
    assert_eq!(guard.on_deviation, OnDeviation::Rollback);
    assert_eq!((guard.patience, guard.settle), (2, Span::from_secs(300)));
    assert_eq!(guard.envelope.get("trained_samples_per_hour").unwrap().high, 1200.5);
    assert_eq!(guard.envelope.get("judge_idle_share"), None);
    let previous = guard.previous.unwrap();
    assert_eq!(previous.policy_training.max_head_off_policyness, 1);
    // What only a restart changes is as it is now.
    assert_eq!(previous.reward_judging.rule, "exact");
    // Its own keys have their defaults, not those of the present configuration.
    assert_ne!(previous.reward_judging.judge_needs, live.config.reward_judging.judge_needs);
}

#[test]
fn a_guard_is_written_as_it_is_read() {
    let Live { config, guard, .. } = load(GUARD).unwrap();
    let mut guard = guard.unwrap();
    let sections = crate::config::keys::sections_toml(&config, "", &[]);
    let again = |guard: &GuardSettings| {
        load(&format!("{sections}\n{}", guard.to_toml())).unwrap().guard.unwrap()
    };
    assert_eq!(again(&guard), guard);
    // The defaults are a configuration to go back to as well.
    **guard.previous.as_mut().unwrap() = valid(&toml(""));
    guard.previous.as_mut().unwrap().reward_judging.rule = "exact".into();
    assert_eq!(again(&guard), guard);
    guard.on_deviation = OnDeviation::Log;
    guard.previous = None;
    assert_eq!(again(&guard), guard);
}

#[test]
fn a_wrong_guard_is_explained() {
    let wrong = |from: &str, to: &str| load(&GUARD.replace(from, to)).unwrap_err();
    let upside = wrong("[1000, 1200.5]", "[1200, 1000]");
    assert!(upside.contains("config.toml:10:") && upside.contains("upside down"), "{upside}");
    let no_pair = wrong("[0.0, 0.01]", "0.01");
    assert!(no_pair.contains("must be a list of two numbers"), "{no_pair}");
    let near = wrong("refused_503_share", "refused_504_share");
    assert!(near.contains("did you mean `refused_503_share`?"), "{near}");
    let none = wrong("[guard.previous.policy_training]\nmax_head_off_policyness = 1\n", "");
    assert!(none.contains("there is nothing to go back to"), "{none}");
    let invalid = wrong("max_head_off_policyness = 1", "publish_interval = 0");
    assert!(invalid.contains("no valid configuration"), "{invalid}");
    let empty = load("[guard]\nwindow_sec = 0").unwrap_err();
    assert!(empty.contains("a window of no time") && empty.contains("`envelope` is missing"));
}

#[test]
fn an_envelope_without_ranges_holds_nothing() {
    assert_eq!(Envelope::default().to_toml(), "");
}
