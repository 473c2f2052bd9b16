//! Configurations that are wrong: where, what, and what to write instead.

use super::{load, toml};
use crate::config::{Layers, Severity, load_config, load_live};

/// Text, line and column, offending text, message, help.
type Case = (&'static str, (usize, usize), &'static str, &'static str, &'static str);

const TYPES: &[Case] = &[
    (
        "[policy_training]\nbatchsize = 4",
        (2, 1),
        "batchsize",
        "unknown key `batchsize` in [policy_training]",
        "did you mean `batch_size`?",
    ),
    (
        "[policy_trainin]",
        (1, 2),
        "policy_trainin",
        "unknown key `policy_trainin`",
        "did you mean `policy_training`?",
    ),
    (
        "[queue.outptu]\nmax_size = 1",
        (1, 8),
        "outptu",
        "unknown key `outptu` in [queue]",
        "did you mean `output`?",
    ),
    (
        "[policy_training]\nbatch_size = \"16\"",
        (2, 14),
        "\"16\"",
        "`batch_size` must be a whole number, not text",
        "`batch_size = 16`",
    ),
    (
        "[policy_training]\nbatch_size = \"32\"",
        (2, 14),
        "\"32\"",
        "`batch_size` must be a whole number, not text",
        "`batch_size = 32`",
    ),
    (
        "[policy_serving]\npause_timeout_sec = \"2m\"",
        (2, 21),
        "\"2m\"",
        "`pause_timeout_sec` must be a number, not text",
        "`pause_timeout_sec = 120`",
    ),
    (
        "[reward_judging]\nfire_on_turn_end = \"false\"",
        (2, 20),
        "\"false\"",
        "must be true or false, not text",
        "`fire_on_turn_end = false`",
    ),
    (
        "[queue]\nbatch_size = 4",
        (2, 1),
        "batch_size",
        "unknown key `batch_size` in [queue]",
        "`batch_size` stands under [policy_training]",
    ),
    ("max_size = 4", (1, 1), "max_size", "unknown key `max_size`", "stands under [queue]"),
    (
        "[policy_training]\neta = 2",
        (2, 1),
        "eta",
        "unknown key `eta`",
        "did you mean `max_head_off_policyness`?",
    ),
    ("[training]", (1, 2), "training", "unknown key", "did you mean `policy_training`?"),
    (
        "[queue]\nqueue_type = \"FIFO\"",
        (2, 14),
        "\"FIFO\"",
        "`queue_type` cannot be \"FIFO\"",
        "did you mean `fifo`?",
    ),
    (
        "[policy_training]\nbatch_size = 1.5",
        (2, 14),
        "1.5",
        "must be a whole number, not a decimal number",
        "`batch_size = 2`",
    ),
    (
        "[policy_training]\nbatch_size = -1",
        (2, 14),
        "-1",
        "must be between 0 and 4294967295",
        "choose a number",
    ),
    (
        "[policy_training]\nbatch_size = 99999999999999999999999",
        (2, 14),
        "99999999999999999999999",
        "must be between",
        "choose a number",
    ),
    (
        "[policy_training]\nbatch_size = 170141183460469231731687303715884105728",
        (2, 14),
        "170141183460469231731687303715884105728",
        "must be between",
        "choose a number",
    ),
    (
        "[policy_serving]\npause_timeout_sec = -3",
        (2, 21),
        "-3",
        "must be between 0 and 1000000000",
        "choose a number",
    ),
    (
        "[policy_serving]\npause_timeout_sec = -0.5",
        (2, 21),
        "-0.5",
        "must be between 0",
        "choose a number",
    ),
    (
        "[policy_serving]\npause_timeout_sec = nan",
        (2, 21),
        "nan",
        "must be a finite number",
        "`pause_timeout_sec = 120`",
    ),
    (
        "[policy_serving]\nhold_sec = inf",
        (2, 12),
        "inf",
        "must be a finite number",
        "leave the key out",
    ),
    ("[policy_serving]\nhold_sec = 1e300", (2, 12), "1e300", "must be between", "choose a number"),
    (
        "[policy_serving]\nport = 70000",
        (2, 8),
        "70000",
        "must be between 0 and 65535",
        "choose a number",
    ),
    (
        "[policy_serving]\nhost = 1",
        (2, 8),
        "1",
        "`host` must be text, not a whole number",
        "`host = \"127.0.0.1\"`",
    ),
    (
        "[policy_serving]\nweight_sync_pause = \"yes\"",
        (2, 21),
        "\"yes\"",
        "must be true or false, not text",
        "`weight_sync_pause = true`",
    ),
    (
        "[policy_serving]\nsync_mode = \"in_fligth\"",
        (2, 13),
        "\"in_fligth\"",
        "`sync_mode` cannot be \"in_fligth\"",
        "did you mean `in_flight`?",
    ),
    (
        "[policy_training]\ngate = \"zzz\"",
        (2, 8),
        "\"zzz\"",
        "`gate` cannot be \"zzz\"",
        "headway, areal, openclaw, verl, roll, prime_rl, skyrl",
    ),
    (
        "policy_training = 3",
        (1, 19),
        "3",
        "`policy_training` must be a table, not a whole number",
        "begin a section [policy_training]",
    ),
    ("[reward_judging]\nvotes = 2024-01-01", (2, 9), "2024-01-01", "not a date", "`votes = 1`"),
];

const SYNTAX: &[Case] = &[
    (
        "[queue]\nmax_size = 4\nmax_size = 5",
        (3, 1),
        "max_size",
        "`max_size` is given twice",
        "keep one of them",
    ),
    ("[queue]\nmax_size = ", (2, 12), "", "`max_size` has no value", "write one behind the `=`"),
    ("[queue\nmax_size = 3", (1, 7), "", "", "alone on its line: `[queue]`"),
];

const RULES: &[Case] = &[
    (
        "[queue]\nmax_size = 8\n[policy_training]\nbatch_size = 16",
        (4, 14),
        "16",
        "a batch of 16 samples does not fit into the output queue of 8",
        "`max_size = 16` or more",
    ),
    (
        "[queue]\nmax_size = 100\n[policy_training]\ngroup_size = 8",
        (4, 14),
        "8",
        "a batch of 128 samples does not fit",
        "`max_size = 128` or more",
    ),
    (
        "[policy_training]\nmin_batch_size = 17",
        (2, 18),
        "17",
        "`min_batch_size` is 17, above a `batch_size` of 16",
        "`min_batch_size = 16` or less",
    ),
    (
        "[policy_training]\nmin_batch_size = 49",
        (2, 18),
        "49",
        "η = 2 gives 48 places",
        "`min_batch_size = 16` or less",
    ),
    (
        "[policy_training]\nstale_filter_steps = 1",
        (2, 22),
        "1",
        "`stale_filter_steps` is 1, below η = 2",
        "`stale_filter_steps = 2` or more",
    ),
    (
        "[policy_training]\npublish_interval = 4",
        (2, 20),
        "4",
        "weights are published after 4",
        "`max_head_off_policyness = 3` or more",
    ),
    (
        "[policy_training]\ngate = \"roll\"\npublish_interval = 3",
        (3, 20),
        "3",
        "gives 16 places beside a batch per step, but weights are published after 3",
        "`async_generation_ratio = 2` or more",
    ),
    (
        "[policy_training]\ngate = \"one_step_off\"\npublish_interval = 2",
        (3, 20),
        "2",
        "pushes the weights after every step, but they are published after 2",
        "`gate = \"slime_train_async\"`",
    ),
    (
        "[policy_training]\ngate = \"slime_train_async\"\npublish_interval = 3\nstale_filter_steps = 2",
        (4, 22),
        "2",
        "below the 3 versions of the `slime_train_async` gate",
        "`stale_filter_steps = 3` or more",
    ),
    (
        "[policy_training]\ngate = \"verl\"\npublish_interval = 4\n[queue.output]\nmax_size = 47\n\
         drop_policy = \"drop_oldest\"",
        (5, 12),
        "47",
        "4 batches are never filled",
        "`queue.output.max_size = 64` or more",
    ),
    (
        "[policy_training]\nbatch_size = 0",
        (2, 14),
        "0",
        "`batch_size` must be above 0",
        "`batch_size = 1` or more",
    ),
    ("[reward_judging]\nvotes = 16", (2, 9), "16", "at most 15", "`votes = 15`"),
    (
        "[reward_judging]\nvotes = 3\nmin_votes = 4",
        (3, 13),
        "4",
        "no sample gets a score",
        "`min_votes = 3` or less",
    ),
    (
        "[policy_training]\nfilter = \"zero_variance\"",
        (2, 10),
        "\"zero_variance\"",
        "everything would be discarded",
        "write `group_size = 8`",
    ),
    (
        "[policy_training]\nover_sampling = 0.75",
        (2, 17),
        "0.75",
        "`over_sampling` is 0.75, so that less than a batch",
        "write `over_sampling = 1` or more",
    ),
    (
        "[policy_training]\nover_sampling = 1.5\nsurplus = \"drop\"\ngate = \"openclaw\"",
        (3, 11),
        "\"drop\"",
        "the `openclaw` gate does not count places against η",
        "write `surplus = \"recycle\"`",
    ),
    (
        "[policy_training]\ncorrection_low = 2.0",
        (2, 18),
        "2.0",
        "leave no ratio between them",
        "above `correction_low`",
    ),
    (
        "[policy_serving]\nweight_sync_pause = true\nsync_mode = \"rolling\"",
        (2, 21),
        "true",
        "`weight_sync_pause` contradicts `sync_mode` (config.toml:3)",
        "keep one of them",
    ),
    (
        "[policy_training]\nqueue_type = \"lifo\"\nstale_filter_steps = 4\n[queue]\nqueue_type = \"fifo\"",
        (2, 14),
        "\"lifo\"",
        "`queue_type` contradicts `queue_type` (config.toml:5)",
        "keep one of them",
    ),
    (
        "[policy_training]\nmax_head_off_policyness = 2\nmax_head_offpolicyness = 4",
        (3, 26),
        "4",
        "contradicts `max_head_off_policyness`",
        "keep one of them",
    ),
];

fn assert_wrong(cases: &[Case]) {
    for (text, (line, column), offending, message, help) in cases {
        let diagnostics = load(text).expect_err(text);
        let errors: Vec<_> = diagnostics.of(Severity::Error).collect();
        let [item] = errors.as_slice() else { panic!("{text}\n{diagnostics}") };
        let position = diagnostics.sources.position(item.origin);
        assert_eq!((position.line, position.column), (*line, *column), "{diagnostics}");
        assert_eq!(diagnostics.sources.offending(item.origin), *offending, "{diagnostics}");
        assert!(item.message.contains(message), "{diagnostics}");
        assert!(item.help.as_ref().is_some_and(|given| given.contains(help)), "{diagnostics}");
        let shown = diagnostics.to_string();
        assert!(shown.starts_with(&format!("config.toml:{line}:{column}: ")), "{shown}");
    }
}

#[test]
fn wrong_names_and_values_are_shown_with_what_to_write() {
    assert_wrong(TYPES);
}

#[test]
fn text_that_is_no_toml_is_shown_where_it_breaks() {
    assert_wrong(SYNTAX);
}

#[test]
fn rules_between_keys_are_shown_at_the_key_to_change() {
    assert_wrong(RULES);
}

#[test]
fn json_that_breaks_is_shown_where_it_breaks() {
    for (text, place, message) in [
        ("{\n  \"api\": {,}\n}", "settings.json:2:11: ", "comma"),
        ("{\n  \"api\": 1,\n  \"api\": 2\n}", "settings.json:3:3: ", "`api` is given twice"),
        ("[1]", "settings.json:1:1: ", "no JSON object"),
        ("{ \"judge\": { \"temperature\": 1e999 } }", "settings.json:1:29: ", "finite number"),
        ("{ \"judge\": { \"model\": null } }", "settings.json:1:23: ", "must be text, not null"),
    ] {
        let shown = load_live(&Layers::new().json("settings.json", text)).unwrap_err().to_string();
        assert!(shown.contains(place) && shown.contains(message), "{shown}");
        assert!(shown.contains("help: "), "{shown}");
    }
}

#[test]
fn the_other_keys_of_a_rule_are_shown_too() {
    let shown = load("[queue]\nmax_size = 8").unwrap_err().to_string();
    assert!(shown.starts_with("config.toml:2:12: a batch of 16 samples"), "{shown}");
    let both = toml("[queue]\nmax_size = 8").set("batch_size=32");
    let shown = load_config(&both).unwrap_err().to_string();
    assert!(shown.starts_with("--set:1:12: a batch of 32 samples"), "{shown}");
    assert!(shown.contains("config.toml:2:12: with this `max_size`"), "{shown}");
}

#[test]
fn columns_count_characters_and_marks_stand_below_them() {
    let text = "queue = { \"größe\" = 1 }";
    let shown = load(text).unwrap_err().to_string();
    assert!(shown.starts_with("config.toml:1:11: unknown key `größe`"), "{shown}");
    assert!(shown.contains(&format!("    {text}\n              ^^^^^^^\n")), "{shown}");
}
