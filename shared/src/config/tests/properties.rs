use proptest::prelude::*;

use super::{USERS_CONFIG, USERS_SETTINGS, toml};
use crate::config::keys::keys;
use crate::config::{
    Choice, Config, Layers, Severity, Signal, check, explain, load_config, load_live,
};

/// Something that a person might write as a value, right or wrong.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        (0..20_u32).prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}")),
        Just("true".to_owned()),
        Just("\"fifo\"".to_owned()),
        Just("\"strict\"".to_owned()),
        Just("\"areal\"".to_owned()),
        Just("[1, { a = 2 }]".to_owned()),
        Just("{ kind = \"x\" }".to_owned()),
        "\\PC{0,12}",
    ]
}

fn assignment() -> impl Strategy<Value = String> {
    let path = prop_oneof![
        (0..keys().len()).prop_map(|index| keys()[index].path()),
        (0..keys().len()).prop_map(|index| keys()[index].name.to_owned()),
        "[a-z_.]{0,12}",
    ];
    (path, value()).prop_map(|(path, value)| format!("{path}={value}"))
}

/// A text with a few bytes replaced, as a slip of the hand would.
fn slip(text: &'static str) -> impl Strategy<Value = String> {
    proptest::collection::vec((0..text.len(), any::<char>()), 1..4).prop_map(move |slips| {
        let mut chars: Vec<char> = text.chars().collect();
        for (at, char) in slips {
            let at = at % chars.len();
            chars[at] = char;
        }
        chars.into_iter().collect()
    })
}

/// Loads, and shows whatever is found: neither may panic. A message always has a place and, for an
/// error, a remedy.
fn survives(layers: &Layers) {
    if let Err(diagnostics) = load_config(layers) {
        assert!(!diagnostics.to_string().is_empty());
        for item in diagnostics.of(Severity::Error) {
            assert!(!diagnostics.sources.name(item.origin.source).is_empty());
            assert!(item.help.is_some(), "{diagnostics}");
        }
    }
    if let Err(diagnostics) = load_live(layers) {
        assert!(!diagnostics.to_string().is_empty());
    }
}

/// A parser that calls itself would reach the end of the stack.
#[test]
fn nesting_without_end_is_no_end_of_the_loader() {
    for nest in ["[", "{\"a\":", "{a=", "("] {
        for depth in [60, 300, 100_000] {
            let text = nest.repeat(depth);
            survives(&toml(&format!("a = {text}")).json("settings.json", text.as_str()));
            survives(&Layers::new().set(format!("votes={text}")));
            survives(&Layers::new().set(format!("reward_judging.rule={text}1")));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_makes_the_loader_panic(a in "\\PC{0,200}", b in "[\\[\\]{}\"',.:=\n a-z0-9-]{0,200}") {
        survives(&toml(&a).json("settings.json", b.as_str()).set(a.as_str()));
        survives(&toml(&b).json("settings.json", a.as_str()).set(b.as_str()));
    }

    #[test]
    fn no_slip_of_the_hand_makes_the_loader_panic(
        config in slip(USERS_CONFIG),
        settings in slip(USERS_SETTINGS),
    ) {
        survives(&toml(&config));
        survives(&toml(USERS_CONFIG).json("settings.json", settings.as_str()));
    }

    #[test]
    fn no_assignment_makes_the_loader_panic(
        assignments in proptest::collection::vec(assignment(), 1..6),
    ) {
        survives(&assignments.iter().fold(toml(USERS_CONFIG), |layers, text| layers.set(text)));
    }

    /// What loads is what the core accepts in a reconfiguration: `check` finds no error in it.
    #[test]
    fn what_loads_breaks_no_rule(
        assignments in proptest::collection::vec(assignment(), 1..6),
    ) {
        let layers = assignments.iter().fold(Layers::new(), |layers, text| layers.set(text));
        if let Ok((config, warnings)) = load_config(&layers) {
            let problems = check(&config);
            prop_assert!(problems.iter().all(|p| p.severity() == Severity::Warning), "{problems:?}");
            prop_assert_eq!(problems.len(), warnings.items.len(), "{}", warnings);
        }
    }

    /// Numbers that a file can hold never make a rule overflow.
    #[test]
    fn no_numbers_make_a_rule_panic(numbers in proptest::collection::vec(any::<u32>(), 18)) {
        let mut config = Config::default();
        let training = &mut config.policy_training;
        training.max_head_off_policyness = numbers[0];
        training.batch_size = numbers[1];
        training.group_size = numbers[2];
        training.min_group_size = numbers[3];
        training.min_batch_size = numbers[4];
        training.publish_interval = numbers[5];
        training.stale_filter_steps = numbers[6].is_multiple_of(2).then_some(numbers[7]);
        config.queue.output.max_size = numbers[8];
        config.queue.rollout.max_size = numbers[9];
        config.reward_judging.votes = numbers[10];
        config.reward_judging.min_votes = numbers[11];
        let adaptive = &mut config.adaptive;
        adaptive.signal = Signal::ALL[numbers[12] as usize % 4].1;
        (adaptive.target, adaptive.decrease) = (numbers[13], numbers[14]);
        (adaptive.min, adaptive.max, adaptive.increase) = (numbers[15], numbers[16], numbers[17]);
        for problem in check(&config) {
            prop_assert!(!problem.keys().is_empty());
            prop_assert!(!explain::message(problem, &config).is_empty());
            prop_assert!(!explain::remedy(problem, &config).is_empty());
        }
    }

    /// Layers stack: merging in two goes or one is the same.
    #[test]
    fn the_last_layer_wins_whatever_is_below(
        below in proptest::collection::vec(1..9_u32, 0..4),
        top in 1..9_u32,
    ) {
        let layers = below.iter().fold(Layers::new(), |layers, votes| {
            layers.toml("lower.toml", format!("[reward_judging]\nvotes = {votes}"))
        });
        let layers = layers.set(format!("votes={top}"));
        prop_assert_eq!(load_config(&layers).map(|(c, _)| c.reward_judging.votes).ok(), Some(top));
    }
}
