use proptest::prelude::*;

use super::Draft;
use crate::config::keys::keys;
use crate::config::{
    Config, Envelope, GuardSettings, Layers, OnDeviation, Range, load_config, load_guarded,
};
use crate::metrics::METRICS;
use crate::time::Span;

fn draft(text: &str) -> Draft {
    Draft::new("config.toml", text).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"))
}

fn wished(sets: &[&str]) -> Config {
    let layers = sets.iter().fold(Layers::new(), |layers, set| layers.set(*set));
    load_config(&layers).unwrap_or_else(|wrong| panic!("{wrong}")).0
}

/// The text after it has taken over what `sets` say.
fn adopted(text: &str, sets: &[&str]) -> String {
    let (mut draft, wished) = (draft(text), wished(sets));
    draft.adopt(&wished).unwrap();
    assert_eq!(draft.config(), wished, "{}", draft.text());
    draft.text().to_owned()
}

#[test]
fn a_value_changes_where_it_stands_and_nothing_else() {
    let text = "# ours\r\n[policy_training]   # η\r\n\tbatch_size=16 # small\r\n\r\n# end";
    let changed = adopted(text, &["batch_size=8"]);
    assert_eq!(changed, text.replace("=16", "=8"));
    assert_eq!(adopted(text, &[]), text);
}

#[test]
fn a_new_key_stands_after_the_last_of_its_section() {
    let text =
        "[policy_training]\n  batch_size = 8 # a\n\n  # of the queue\n[queue]\nmax_size = 64";
    let sets =
        ["batch_size=8", "queue.max_size=64", "gate=\"none\"", "queue.drop_policy=\"block\""];
    assert_eq!(
        adopted(text, &sets),
        "[policy_training]\n  batch_size = 8 # a\n  gate = \"none\"\n\n  # of the queue\n[queue]\n\
         max_size = 64\ndrop_policy = \"block\""
    );
    // A section with a header and no key, and one that there is not.
    assert_eq!(
        adopted("  [policy_training]  # η\n# mine\n", &["batch_size=8", "votes=3"]),
        "  [policy_training]  # η\n  batch_size = 8\n# mine\n\n[reward_judging]\nvotes = 3\n"
    );
    assert_eq!(adopted("", &["votes=3"]), "[reward_judging]\nvotes = 3\n");
    assert_eq!(adopted("# none", &["votes=3"]), "# none\n\n[reward_judging]\nvotes = 3\n");
}

#[test]
fn eta_keeps_the_name_that_the_file_gives_it() {
    for text in [
        "[policy_training]\nmax_head_offpolicyness = 2 # AReaL\n",
        "[policy_training]\nmax_head_off_policyness = 2 # ours\n",
        "policy_training.max_head_offpolicyness = 2\npolicy_training.max_head_off_policyness = 2\n",
    ] {
        assert_eq!(adopted(text, &["max_head_off_policyness=7"]), text.replace("= 2", "= 7"));
    }
}

#[test]
fn a_pause_stays_a_pause_where_that_says_it() {
    let text = "[policy_serving]\nweight_sync_pause = true # 503\n";
    assert_eq!(adopted(text, &["sync_mode=\"in_flight\""]), text.replace("true", "false"));
    assert_eq!(
        adopted(text, &["sync_mode=\"rolling\""]),
        text.replace("true", "false") + "sync_mode = \"rolling\"\n"
    );
    assert_eq!(
        adopted(text, &["sync_mode=\"pause_keep\""]),
        text.to_owned() + "sync_mode = \"pause_keep\"\n"
    );
    let both = "[policy_serving]\nsync_mode = \"pause_abort\"\nweight_sync_pause = true\n";
    assert_eq!(
        adopted(both, &["sync_mode=\"in_flight\""]),
        "[policy_serving]\nsync_mode = \"in_flight\"\nweight_sync_pause = false\n"
    );
}

#[test]
fn queues_share_a_size_for_as_long_as_they_agree() {
    let shared = "[queue]\nmax_size = 64\n";
    assert_eq!(adopted(shared, &["queue.max_size=32"]), "[queue]\nmax_size = 32\n");
    let apart = ["queue.rollout.max_size=64", "queue.output.max_size=32"];
    assert_eq!(
        adopted(shared, &apart),
        "[queue]\nmax_size = 64\n\n[queue.output]\nmax_size = 32\n"
    );
    let own = "[queue]\nmax_size = 64\n[queue.output]\nmax_size = 16 # few\n";
    assert_eq!(adopted(own, &apart), own.replace("16", "32"));
    assert_eq!(adopted(own, &["queue.max_size=32"]), own.replace("64", "32").replace("16", "32"));
    assert_eq!(adopted("", &["queue.max_size=32"]), "[queue]\nmax_size = 32\n");
    assert_eq!(adopted("", &["queue.output.max_size=32"]), "[queue.output]\nmax_size = 32\n");
    let trainings = "[policy_training]\nqueue_type = \"fifo\"\n";
    let order = "queue.queue_type=\"oldest_version_first\"";
    assert_eq!(adopted(trainings, &[order]), trainings.replace("fifo", "oldest_version_first"));
}

#[test]
fn dotted_keys_and_tables_in_braces_are_changed_as_they_are_written() {
    let sets = ["queue.rollout.max_size=64", "queue.output.max_size=32", "votes=3", "min_votes=1"];
    for (text, expected) in [
        (
            "queue = { max_size = 64 } # q\n",
            "queue = { max_size = 64, output = { max_size = 32 } } # q\n",
        ),
        ("queue = {}\n", "queue = { rollout = { max_size = 64 }, output = { max_size = 32 } }\n"),
        ("queue.max_size = 64\n", "queue.max_size = 64\n\n[queue.output]\nmax_size = 32\n"),
        (
            "queue.rollout.max_size = 64\n[policy_serving]\n",
            "queue.rollout.max_size = 64\n[policy_serving]\n\n[queue.output]\nmax_size = 32\n",
        ),
        (
            "[queue]\nrollout.max_size = 64\nmax_size = 16\n",
            "[queue]\nrollout.max_size = 64\nmax_size = 32\n",
        ),
    ] {
        let text = format!("reward_judging.\"votes\" = 1\n{text}");
        let expected = expected.replacen(
            "",
            "reward_judging.\"votes\" = 3\nreward_judging.min_votes = 1\n",
            1,
        );
        assert_eq!(adopted(&text, &sets), expected);
    }
}

#[test]
fn a_section_of_which_only_a_dotted_table_is_there_gets_its_key_beside_it() {
    let text = "policy_training.adaptive.target = 0.5 # mine\n[guard]\nwindow_sec = 600\n";
    let after = "policy_training.batch_size = 8\n[guard]";
    let changed = adopted(text, &["policy_training.adaptive.target=0.5", "batch_size=8"]);
    assert_eq!(changed, text.replace("[guard]", after));
}

#[test]
fn what_follows_from_another_key_is_left_to_follow() {
    let text = "[reward_judging]\nvotes = 1\n";
    assert_eq!(adopted(text, &["votes=3"]), text.replace('1', "3"));
    let given = "[reward_judging]\nmin_votes = 1\nvotes = 1\n";
    assert_eq!(adopted(given, &["votes=3"]), "[reward_judging]\nmin_votes = 2\nvotes = 3\n");
}

#[test]
fn a_key_whose_value_is_to_be_absent_loses_its_line() {
    let text = "[policy_training]\nstale_filter_steps = 8\n batch_size = 8\n";
    assert_eq!(adopted(text, &["batch_size=8"]), "[policy_training]\n batch_size = 8\n");
    let text = "[policy_training]\n stale_filter_steps = 8 # why\nbatch_size = 8\n";
    assert_eq!(adopted(text, &["batch_size=8"]), "[policy_training]\n # why\nbatch_size = 8\n");
}

#[test]
fn a_change_without_a_place_changes_nothing() {
    let text = "[[guard]]\nwindow_sec = 1\n";
    let mut draft = draft(text);
    let told = draft.set(&["guard", "window_sec"], "2").unwrap_err().to_string();
    assert!(told.starts_with("`guard.window_sec` cannot be written"), "{told}");
    let broken = draft.set(&["policy_training", "gate"], "\"none");
    assert!(broken.is_err());
    assert_eq!(draft.text(), text);
}

fn envelope(ranges: &[(&str, f64, f64)]) -> Envelope {
    let range = |&(name, low, high): &(&str, f64, f64)| {
        let metric = METRICS.iter().find(|metric| metric.name == name).unwrap();
        (metric, Range { low, high })
    };
    Envelope { window: Span::from_secs(600), ranges: ranges.iter().map(range).collect() }
}

fn guard_of(text: &str) -> GuardSettings {
    let layers = Layers::new().toml("config.toml", text);
    load_guarded(&layers, false).unwrap_or_else(|wrong| panic!("{wrong}\n{text}")).1.unwrap()
}

#[test]
fn a_guard_that_there_is_none_of_is_added_at_the_end() {
    let text = "[policy_training]\r\nbatch_size = 8 # ours\r\n";
    let mut draft = draft(text);
    let ranges = envelope(&[("trained_samples_per_hour", 1100.0, 1300.5)]);
    draft.hold_to(&ranges, Some(&wished(&["max_head_off_policyness=1"]))).unwrap();
    assert!(draft.text().starts_with(&format!("{text}\r\n[guard]\r\n")), "{}", draft.text());
    let guard = guard_of(draft.text());
    assert_eq!((guard.on_deviation, &guard.envelope), (OnDeviation::Log, &ranges));
    assert_eq!(guard.previous.unwrap().policy_training.max_head_off_policyness, 1);
}

#[test]
fn a_guard_that_is_there_keeps_what_it_does_and_its_comments() {
    let text = "[guard] # watch\non_deviation = \"rollback\" # brave\npatience = 5\nwindow_sec = 60\n\
                [guard.envelope]\nstaleness_head_mean = [0.0, 9.0] # old\n\
                trained_samples_per_hour = [1, 2] # rate\n\
                [guard.previous.policy_training]\n# what it was\nbatch_size = 4\n\
                stale_filter_steps = 8\n[queue]\nmax_size = 99 # q\n";
    let mut edited = draft(text);
    let ranges =
        envelope(&[("trained_samples_per_hour", 5.5, 7.0), ("judge_idle_share", 0.0, 0.5)]);
    edited.hold_to(&ranges, None).unwrap();
    let guard = guard_of(edited.text());
    assert_eq!((guard.on_deviation, guard.patience), (OnDeviation::Rollback, 5));
    assert_eq!(guard.envelope, ranges);
    assert_eq!(guard.previous.unwrap().policy_training.stale_filter_steps, Some(8));
    let previous = wished(&["batch_size=8", "votes=3", "min_votes=1", "queue.output.max_size=64"]);
    edited.hold_to(&ranges, Some(&previous)).unwrap();
    let mut back = guard_of(edited.text()).previous.unwrap();
    assert_eq!(back.queue.rollout.max_size, 512, "its own, and not the file's");
    back.policy_serving.engine.clone_from(&previous.policy_serving.engine);
    assert_eq!(*back, previous);
    for kept in ["[guard] # watch", "# brave", "# old", "# rate", "# what it was", "= 99 # q"] {
        assert!(edited.text().contains(kept), "{kept}: {}", edited.text());
    }
    let again = edited.text().to_owned();
    edited.hold_to(&ranges, Some(&previous)).unwrap();
    assert_eq!(edited.text(), again);
    // Back to the defaults, and written otherwise.
    for text in ["guard = { window_sec = 1, envelope = { judge_idle_share = [0, 1] } }", text] {
        let mut edited = draft(text);
        edited.hold_to(&ranges, Some(&Config::default())).unwrap();
        let guard = guard_of(edited.text());
        assert_eq!((*guard.previous.unwrap(), guard.envelope), (Config::default(), ranges.clone()));
    }
}

/// Texts as people write them, which say what `sets` say.
#[derive(Clone, Debug)]
struct Written {
    text: String,
    /// Comments, and lines of other sections.
    kept: Vec<String>,
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..40_u32).prop_map(|number| number.to_string()),
        (0..9_000_u64).prop_map(|thousandths| format!("{:.3}", thousandths as f64 / 1e3)),
        prop_oneof![Just("true"), Just("false")].prop_map(str::to_owned),
        prop_oneof![
            Just("in_flight"),
            Just("rolling"),
            Just("pause_keep"),
            Just("strict"),
            Just("lifo"),
            Just("block"),
            Just("freshest_first"),
            Just("none"),
        ]
        .prop_map(|word| format!("{word:?}")),
    ]
}

/// Assignments of which those that do not fit to the ones before are left out.
fn assignments(most: usize) -> impl Strategy<Value = Vec<(usize, String)>> {
    prop::collection::vec((0..keys().len(), value()), 0..most).prop_map(|assignments| {
        let (mut layers, mut taken) = (Layers::new(), Vec::new());
        for (place, value) in assignments {
            let more = layers.clone().set(format!("{}={value}", keys()[place].path()));
            let is_new = taken.iter().all(|(other, _)| *other != place);
            if is_new && load_config(&more).is_ok() {
                layers = more;
                taken.push((place, value));
            }
        }
        taken
    })
}

fn config() -> impl Strategy<Value = Config> {
    assignments(14).prop_map(|assignments| {
        let layers = assignments.iter().fold(Layers::new(), |layers, (place, value)| {
            layers.set(format!("{}={value}", keys()[*place].path()))
        });
        load_config(&layers).unwrap().0
    })
}

fn written() -> impl Strategy<Value = Written> {
    let style = (0..4_u8, any::<bool>(), any::<bool>(), prop::collection::vec(any::<u8>(), 90));
    (assignments(14), style).prop_map(|(assignments, (form, returns, unended, noise))| {
        let mut noise = noise.into_iter().cycle();
        let mut number = 0;
        let mut kept = Vec::new();
        let mut comment = |kept: &mut Vec<String>| {
            number += 1;
            kept.push(format!("# comment {number} [queue] max_size = 1"));
            kept[kept.len() - 1].clone()
        };
        let mut lines = Vec::new();
        let mut sections: Vec<&str> = keys().iter().map(|key| key.section).collect();
        sections.dedup();
        for section in sections {
            let here: Vec<_> =
                assignments.iter().filter(|(place, _)| keys()[*place].section == section).collect();
            if here.is_empty() && noise.next().unwrap() % 4 > 0 {
                continue;
            }
            let mut indent = "";
            if form != 1 {
                lines.push(format!("[{section}] {}", comment(&mut kept)));
                indent = if noise.next().unwrap() % 2 == 0 { "  " } else { "" };
            }
            for (place, value) in here {
                let prefix = if form == 1 { format!("{section}.") } else { String::new() };
                let mut line = format!("{indent}{prefix}{} =  {value}", keys()[*place].name);
                if noise.next().unwrap() % 2 == 0 {
                    line += &format!("   {}", comment(&mut kept));
                }
                lines.push(line);
                if noise.next().unwrap() % 3 == 0 {
                    lines.push(comment(&mut kept));
                }
            }
            lines.push(String::new());
        }
        let others = "[guard] # watch\nwindow_sec = 600\n[api]\nkeys = [1, # one\n  2]";
        kept.extend(others.lines().map(str::to_owned));
        lines.extend(others.lines().map(str::to_owned));
        let end = if returns { "\r\n" } else { "\n" };
        let mut text = lines.join(end);
        if !unended {
            text += end;
        }
        Written { text, kept }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_text_takes_over_any_configuration_and_keeps_the_rest(
        written in written(),
        wished in config(),
    ) {
        let Ok(mut draft) = Draft::new("config.toml", &written.text) else {
            // Dotted keys and headers of one table do not go together.
            return Ok(());
        };
        let before = draft.config();
        draft.adopt(&wished).unwrap();
        let text = draft.text();
        prop_assert_eq!(&draft.config(), &wished, "{}\n---\n{}", written.text, text);
        // What is kept is there, in its order, whole lines where they were lines.
        let mut rest = text;
        for kept in &written.kept {
            let at = rest.find(kept.as_str());
            prop_assert!(at.is_some(), "{kept:?} is gone: {}\n---\n{text}", written.text);
            rest = &rest[at.unwrap() + kept.len()..];
        }
        prop_assert_eq!(text.contains("\r\n"), written.text.contains("\r\n"));
        // The way back gives what was there, and no key more than twice.
        draft.adopt(&before).unwrap();
        prop_assert_eq!(draft.config(), before);
    }

    #[test]
    fn what_says_the_same_is_not_touched(written in written()) {
        let Ok(mut draft) = Draft::new("config.toml", &written.text) else { return Ok(()) };
        let same = draft.config();
        draft.adopt(&same).unwrap();
        prop_assert_eq!(draft.text(), written.text);
    }
}
