use proptest::prelude::*;

use super::{Provenance, Tuned};
use crate::config::keys::keys;
use crate::config::{Config, Envelope, Layers, Range, load_config};
use crate::digest::Digest;
use crate::metrics::{METRICS, Metric};
use crate::record::DECISION_VERSION;
use crate::time::Span;

fn metric(name: &str) -> &'static Metric {
    METRICS.iter().find(|metric| metric.name == name).unwrap()
}

fn tuned(config: Config) -> Tuned {
    let rate = metric("trained_samples_per_hour");
    let staleness = metric("staleness_head_mean");
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    Tuned {
        provenance: Provenance {
            scenario: "openclaw".into(),
            scenario_file: "scenarios/openclaw.toml".into(),
            scenario_digest: Digest::of(b"scenario"),
            overrides: texts(&["--set world.serving.replicas=3"]),
            seed: 1,
            replications: 16,
            runs: 240,
            headway: "0.1.0".into(),
            decision_version: DECISION_VERSION,
            maximize: rate.name.into(),
            subject_to: texts(&["staleness_head_p99 <= 4"]),
            space: texts(&[
                "policy_training.max_head_off_policyness=0,1,2,4",
                "queue.max_size=128,512",
                "policy_serving.sync_mode=\"in_flight\",\"pause_drain\"",
            ]),
        },
        predicted: vec![(rate, 1203.5, 12.1), (staleness, 3.0, 0.0)],
        envelope: Envelope {
            window: Span::from_secs(600),
            ranges: vec![
                (rate, Range { low: 1100.0, high: 1300.0 }),
                (staleness, Range { low: 1.0, high: 4.0 }),
            ],
        },
        config,
    }
}

fn ours() -> Config {
    let sets = ["max_head_off_policyness=1", "votes=3", "min_votes=1", "queue.output.max_size=64"];
    let layers = sets.into_iter().fold(Layers::new(), Layers::set);
    load_config(&layers).unwrap().0
}

fn refused(text: &str) -> String {
    Tuned::load("tuned.toml", text).unwrap_err().to_string()
}

#[test]
fn a_tuned_file_holds_what_differs_and_what_was_searched() {
    let text = tuned(ours()).to_toml();
    let sections = text.split_once("\n[policy_serving]").unwrap().1;
    assert_eq!(
        sections,
        "\nsync_mode = \"pause_drain\"\n\n[reward_judging]\nvotes = 3\nmin_votes = 1\n\n\
         [policy_training]\nmax_head_off_policyness = 1\n\n[queue.rollout]\nmax_size = 512\n\n\
         [queue.output]\nmax_size = 64\n"
    );
    assert!(text.contains("\ntrained_samples_per_hour = [1203.5, 12.1]\n"), "{text}");
    assert!(text.contains("\nwindow_sec = 600\n"), "{text}");
}

#[test]
fn what_is_written_is_read_again() {
    let written = tuned(ours());
    let (read, warnings) = Tuned::load("tuned.toml", &written.to_toml()).unwrap();
    assert_eq!(read, written);
    assert!(warnings.is_empty(), "{warnings}");
}

#[test]
fn without_overrides_and_constraints_it_reads_too() {
    let mut written = tuned(Config::default());
    written.provenance.overrides.clear();
    written.provenance.subject_to.clear();
    let text = written.to_toml();
    assert!(!text.contains("overrides") && text.contains("subject_to = []"), "{text}");
    assert_eq!(Tuned::load("tuned.toml", &text).unwrap().0, written);
}

/// A cut at the end of a line is still TOML: what is missing must show otherwise.
#[test]
fn a_file_cut_short_is_refused_wherever_it_was_cut() {
    for config in [ours(), Config::default()] {
        cut(&tuned(config));
    }
}

fn cut(written: &Tuned) {
    let text = written.to_toml();
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        match Tuned::load("tuned.toml", &text[..end]) {
            Ok((read, _)) => assert_eq!(&read, written, "cut at {end}"),
            Err(diagnostics) => {
                assert!(diagnostics.to_string().contains("help: "), "{diagnostics}");
            }
        }
    }
    let cut = text.split("\n[queue.output]").next().unwrap();
    let said = refused(cut);
    assert!(said.starts_with("tuned.toml:7:17: the scheduling sections are not those"), "{said}");
    assert!(said.contains("edited or cut short"), "{said}");
}

#[test]
fn a_hand_edit_of_a_scheduling_key_is_refused() {
    let edited = tuned(ours()).to_toml().replace("off_policyness = 1\n", "off_policyness = 8\n");
    let said = refused(&edited);
    assert!(said.contains("config_digest = "), "{said}");
    assert!(said.contains("help: run `headway tune` again"), "{said}");
    // What breaks a rule between keys is said as of any configuration.
    let edited = tuned(ours()).to_toml().replace("off_policyness = 1\n", "off_policynes = 1\n");
    assert!(refused(&edited).contains("did you mean `max_head_off_policyness`?"));
}

#[test]
fn files_of_other_kinds_are_named() {
    let said = refused("[scenario]\nname = \"x\"\n[world.serving]\n");
    assert!(said.starts_with("tuned.toml:1:1: this is a scenario: it has no [tuned]"), "{said}");
    assert!(said.contains("help: name the tuned.toml"), "{said}");
    assert!(refused("[policy_training]\nbatch_size = 4\n").contains("this is a configuration"));
    for other in ["", "[package]\nname = \"x\"\n", "tuned = 3\n"] {
        assert!(refused(other).contains("this is no tuned file"), "{}", refused(other));
    }
    assert!(refused("{ \"kind\": 1 }").contains("this is TOML"));
}

#[test]
fn what_is_wrong_is_shown_where_it_stands() {
    let text = tuned(ours()).to_toml();
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        refused(&text.replacen(from, to, 1))
    };
    let empty = with("[1100.0, 1300.0]", "[1300.0, 1100.0]");
    assert!(empty.contains("the range is upside down"), "{empty}");
    let near = with("staleness_head_mean = [1.0", "stalenes_head_mean = [1.0");
    assert!(near.contains("did you mean `staleness_head_mean`?"), "{near}");
    assert!(with("[1203.5, 12.1]", "[1203.5]").contains("two numbers"));
    assert!(with("[1203.5, 12.1]", "[nan, 1.0]").contains("must be between"));
    assert!(with("[1203.5, 12.1]", "[1203.5, -1]").contains("below 0"));
    assert!(with("window_sec = 600", "window_sec = 0").contains("a window of no time"));
    assert!(with("seed = 1\n", "").contains("`seed` is missing in tuned"));
    assert!(with("scenario_digest = \"", "scenario_digest = \"x").contains("no digest"));
    assert!(with("seed = 1\n", "seed = 1\nsede = 2\n").contains("did you mean `seed`?"));
}

#[test]
fn another_decision_version_is_a_warning() {
    let mut old = tuned(ours());
    old.provenance.decision_version = DECISION_VERSION - 1;
    let (read, warnings) = Tuned::load("tuned.toml", &old.to_toml()).unwrap();
    assert_eq!(read, old);
    assert!(warnings.to_string().contains("tuned with decision version"), "{warnings}");
}

/// A valid configuration out of assignments that may or may not fit.
fn config() -> impl Strategy<Value = Config> {
    let value = prop_oneof![
        (0..40_u32).prop_map(|number| number.to_string()),
        (0..9_000_000_u64).prop_map(|millionths| format!("{:.6}", millionths as f64 / 1e6)),
        prop_oneof![Just("true"), Just("false")].prop_map(str::to_owned),
        prop_oneof![Just("in_flight"), Just("rolling"), Just("strict"), Just("lifo")]
            .prop_map(str::to_owned),
        "\\PC{0,8}".prop_map(|text| format!("{text:?}")),
    ];
    let assignment = (0..keys().len(), value)
        .prop_map(|(place, value)| format!("{}={value}", keys()[place].path()));
    proptest::collection::vec(assignment, 0..12)
        .prop_map(|assignments| {
            // Those that do not fit are left out.
            assignments.into_iter().fold(Layers::new(), |layers, text| {
                let more = layers.clone().set(text);
                if load_config(&more).is_ok() { more } else { layers }
            })
        })
        .prop_map(|layers| load_config(&layers).unwrap().0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_configuration_and_any_numbers_come_back(
        config in config(),
        mean in -1e300..1e300_f64,
        half in 0.0..1e12_f64,
        text in "\\PC{0,12}[\"\\\\\n\t\u{7f}]?",
        seed in any::<u64>(),
        place in 0..keys().len(),
        nanos in 1..1_000_000_000_000_000_u64,
    ) {
        let mut written = tuned(config);
        written.predicted[0].1 = mean;
        written.predicted[0].2 = half;
        written.envelope.ranges[0].1 = Range { low: -half, high: half };
        written.envelope.window = Span::from_nanos(nanos);
        written.provenance.seed = seed;
        written.provenance.scenario_file = text;
        written.provenance.space.push(format!("{}=1,2", keys()[place].path()));
        let text = written.to_toml();
        match Tuned::load("tuned.toml", &text) {
            Ok((read, _)) => prop_assert_eq!(read, written),
            Err(wrong) => prop_assert!(false, "{wrong}\n{text}"),
        }
    }
}
