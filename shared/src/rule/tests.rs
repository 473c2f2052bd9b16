use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Facts, MOST_BYTES, NoScore, Rule};

fn metadata() -> BTreeMap<String, String> {
    [("answer", " 42 "), ("points", "0.5"), ("a-key", "x")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// The score of a rule for the answer "The result is 40.", asked "What is 6 * 7?".
fn score(rule: &str) -> Result<f64, NoScore> {
    let metadata = metadata();
    let facts = Facts {
        answer: "The result is 40.",
        prompt: "What is 6 * 7?",
        next_state: Some("No, it is 42."),
        metadata: &metadata,
    };
    let rule = Rule::read(rule).unwrap_or_else(|error| panic!("{rule}: {error:?}"));
    rule.score(&facts).map(|score| f64::from(score) / 1e6)
}

#[test]
fn a_rule_gives_the_score_that_it_says() {
    for (rule, expected) in [
        ("exact", 0.0),
        ("trim('42 ') == trim(metadata.answer)", 1.0),
        ("answer == 'The result is 40.'", 1.0),
        ("contains(answer, \"40\") and not contains(next_state, \"thanks\")", 1.0),
        ("starts_with(answer, 'The') or ends_with(answer, 'x')", 1.0),
        ("ends_with(answer, 'x') or false", 0.0),
        (r"matches(answer, '\b4\d\b')", 1.0),
        (r"number(capture(answer, '(\d+)'))", 40.0),
        (r"number(capture(answer, '(\w+) is (\d+)', 2)) / number(metadata.answer) - 1", -0.047619),
        (r"number(capture(answer, '\d+'))", 40.0),
        ("number(metadata.points) * 2 + 1", 2.0),
        ("metadata['a-key'] == 'x' and has(metadata.points) and not has(metadata.none)", 1.0),
        ("if contains(prompt, '6 * 7') then 2 else -2", 2.0),
        ("if exact then 2 else if has(next_state) then -0.5 else 0", -0.5),
        ("clamp(1 - abs(40 - 42) / 10, 0, 1)", 0.8),
        ("clamp(5, 2, 1)", 1.0),
        ("default(number(answer), -1)", -1.0),
        ("length('äöü') == 3", 1.0),
        ("agreement('?47', '?47')", 1.0),
        ("agreement('?74', '?47')", 0.333333),
        ("agreement('47', '?47') + agreement('', '?47')", 0.0),
        ("agreement('ä and more', 'ä')", 1.0),
        ("default(agreement(answer, ''), -1)", -1.0),
        ("lower('AbC') == 'abc'", 1.0),
        ("1 + 2 * 3 - 4 / 2", 5.0),
        ("-(1 + 1) * -2", 4.0),
        ("2 - 1 - 1 == 0 and 2 >= 2 and 1 < 2 and 2 > 1 and 1 <= 1", 1.0),
        ("not 1 == 2", 1.0),
        ("(exact == false) == true", 1.0),
        ("min(1, 2) + max(1, 2)", 3.0),
        ("'it''s' != answer", f64::NAN),
    ] {
        if expected.is_nan() {
            assert!(Rule::read(rule).is_err(), "{rule}");
        } else {
            assert_eq!(score(rule), Ok(expected), "{rule}");
        }
    }
}

#[test]
fn where_there_is_no_score_the_reason_says_why_and_shows_no_text() {
    for (rule, why) in [
        ("number(metadata.none)", NoScore::NoMetadata("none".to_owned())),
        ("number(answer)", NoScore::NotANumber),
        ("number('nan')", NoScore::NotANumber),
        ("number('1e999')", NoScore::NotANumber),
        ("number(capture(answer, 'x(y)?'))", NoScore::NotFound),
        ("1 / (length(answer) - 17)", NoScore::DividedByZero),
        ("number('1e300') * number('1e300')", NoScore::Overflow),
        ("2000.1", NoScore::OutOfRange),
        ("exact and metadata.none == ''", NoScore::NoMetadata("none".to_owned())),
    ] {
        let found = score(rule);
        if rule.starts_with("exact") {
            // The right side is not looked at.
            assert_eq!(found, Ok(0.0), "{rule}");
        } else {
            assert_eq!(found, Err(why), "{rule}");
        }
    }
    let nothing = BTreeMap::new();
    let facts = Facts { answer: "secret", prompt: "", next_state: None, metadata: &nothing };
    let rule = Rule::read("contains(next_state, 'x')").unwrap();
    assert!(rule.reads_next_state());
    assert_eq!(rule.score(&facts), Err(NoScore::NoNextState));
    let error = Rule::read("number(answer)").unwrap().score(&facts).unwrap_err();
    assert!(!error.to_string().contains("secret"));
    assert!(!Rule::read("exact").unwrap().reads_next_state());
}

#[test]
fn what_is_wrong_is_shown_where_it_stands_with_what_to_write() {
    for (rule, at, message, help) in [
        ("", "", "the rule ends too early", "write a name"),
        ("anwser == 'x'", "anwser", "unknown name `anwser`", "did you mean `answer`?"),
        ("answer = 'x'", "=", "`=` means nothing here", "write `==`"),
        ("answer == 'x", "'x", "the text has no end", "end it with '"),
        ("answer == 5", "5", "this is a number, not a text", "texts are"),
        ("answer + 1", "answer", "this is a text, not a number", "number(...)"),
        ("exact + 1", "exact", "this is true or false, not a number", "then 1 else 0"),
        ("answer and true", "answer", "this is a text, not true or false", "compare it"),
        ("answer", "answer", "the rule gives a text", "answer == metadata.answer"),
        ("if exact then 1", "", "the rule ends too early", "write `else`"),
        ("if exact then 1 else 'a'", "'a'", "this is a text, not a number", "number(...)"),
        ("matches(answer, '(')", "'('", "no regular expression: unclosed group", "backslash"),
        ("matches(answer, prompt)", "prompt", "a pattern must be a text in quotes", "in quotes"),
        ("capture(answer, '(a)', 2) == ''", "2", "no group 2", "from 0 (all of it) to 1"),
        ("has(exact)", "exact", "only a name", "has(metadata.KEY)"),
        ("exact exact", "exact", "this cannot stand here", "operator"),
        ("(1 + 2", "", "the rule ends too early", "write `)`"),
        ("trim answer", "answer", "this cannot stand here", "write `trim(text)`"),
        ("metadata == 'x'", "==", "this cannot stand here", "write `.KEY`"),
        ("1.2.3", "1.2.3", "this is no number", "0.5"),
        ("exact && true", "&", "`&` means nothing here", "write `and`"),
    ] {
        let error = Rule::read(rule).unwrap_err();
        assert_eq!(&rule[error.at.clone()], at, "{rule}: {error:?}");
        assert!(error.message.contains(message), "{rule}: {error:?}");
        assert!(error.help.contains(help), "{rule}: {error:?}");
    }
}

#[test]
fn a_rule_has_a_bounded_size() {
    for rule in [
        "(".repeat(3000),
        "not ".repeat(1000) + "exact",
        "-".repeat(3000) + "1",
        "if exact then ".repeat(200),
        "1 + ".repeat(1000) + "1",
        format!("answer == '{}'", "x".repeat(MOST_BYTES)),
        format!("matches(answer, '{}')", r"\pL{500}".repeat(100)),
    ] {
        assert!(Rule::read(&rule).is_err());
    }
}

/// Texts that are nearly rules.
fn nearly() -> impl Strategy<Value = String> {
    let words = [
        "answer",
        "metadata.answer",
        "next_state",
        "prompt",
        "exact",
        "and",
        "or",
        "not",
        "if",
        "then",
        "else",
        "(",
        ")",
        ",",
        "==",
        "<",
        "+",
        "-",
        "*",
        "/",
        "1",
        "0.5",
        "'4'",
        "\"(\"",
        "number(",
        "capture(",
        "matches(",
        "has(",
        "default(",
        "clamp(",
        "metadata[",
        "]",
        "é",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..24)
        .prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_text_is_a_rule_or_has_an_error_within_it(
        text in prop_oneof![nearly(), ".{0,60}"], answer in ".{0,20}",
    ) {
        match Rule::read(&text) {
            Err(error) => {
                prop_assert!(text.get(error.at.clone()).is_some(), "{:?}", error);
                prop_assert!(!error.help.is_empty());
            }
            Ok(rule) => {
                let metadata = metadata();
                let facts =
                    Facts { answer: &answer, prompt: "4", next_state: None, metadata: &metadata };
                let again = Rule::read(&text).unwrap();
                prop_assert_eq!(rule.score(&facts), again.score(&facts));
            }
        }
    }

    #[test]
    fn sums_and_products_are_those_of_f64(a in -9..9_i32, b in -9..9_i32, c in 1..9_i32) {
        let expected = f64::from(a) + f64::from(b) * f64::from(c);
        prop_assert_eq!(score(&format!("{a} + {b} * {c}")), Ok(expected));
        let expected = (f64::from(a) - f64::from(b)) / f64::from(c);
        let found = score(&format!("({a} - {b}) / {c}")).unwrap();
        prop_assert!((found - expected).abs() < 1e-6);
    }
}
