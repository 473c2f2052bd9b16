//! What is swept: `KEY=0,1,2,4`, `KEY=0..16`, `KEY=0..16/4`, and grids of them.

use headway_shared::config::keys::{Key, keys, resolve, spelled_out};
use headway_shared::config::{
    Diagnostic, Diagnostics, Findings, Layers, Origin, SourceId, Sources, Syntax, Table, nearest,
    parse_sections,
};

use crate::report::number;
use crate::scenario::{Case, Scenario};

/// More points than this are taken for a slip of the pen.
pub const MOST_POINTS: usize = 10_000;

/// The option, which messages name as the place of an expression.
pub const OPTION: &str = "--over";

/// What stands for every case of a scenario.
pub const CASES: &str = "cases";
/// The name of the column of cases.
const CASE: &str = "case";

/// A value of a swept key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What tables and plots call it.
    pub label: String,
    /// What it sets, each as `key=value`.
    pub set: Vec<String>,
}

/// One swept key with its values in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The whole path of the key, or `case`.
    pub key: String,
    /// Its values.
    pub choices: Vec<Choice>,
}

/// What a scenario says to sweep, as expressions: its own, else its cases; none where it has neither.
#[must_use]
pub fn of(scenario: &Scenario) -> Vec<String> {
    match (scenario.sweep.is_empty(), scenario.cases.is_empty()) {
        (false, _) => scenario.sweep.clone(),
        (true, false) => vec![CASES.into()],
        (true, true) => Vec::new(),
    }
}

/// Reads expressions: `KEY=VALUES`, or `cases` for all named variants. `tree` is the scenario,
/// whose own keys can be swept beside those of the sections.
///
/// # Errors
/// An expression is malformed, names no key, or the grid has more than [`MOST_POINTS`] points:
/// every one of these with its place in the expression.
pub fn parse(
    expressions: &[String],
    tree: &Table,
    cases: &[Case],
) -> Result<Vec<Axis>, Diagnostics> {
    parse_from(OPTION, expressions, tree, cases)
}

/// The same of expressions that stand elsewhere than behind the option: messages name `source`.
///
/// # Errors
/// As [`parse`].
pub fn parse_from(
    source: &str,
    expressions: &[String],
    tree: &Table,
    cases: &[Case],
) -> Result<Vec<Axis>, Diagnostics> {
    let same = |one: &str, other: &str| one == other;
    read((source, MOST_POINTS), same, expressions, |expression| expression.axis(tree, cases))
}

/// Reads the expressions of a space to search: keys of the scheduling sections only, and any number
/// of points.
///
/// # Errors
/// An expression is malformed, names no scheduling key, or gives one a value that it cannot have;
/// or two expressions are about one key.
pub fn parse_space(expressions: &[String]) -> Result<Vec<Axis>, Diagnostics> {
    let axis = |expression: &Expression<'_>| expression.scheduling_axis();
    read(("--space", usize::MAX), overlap, expressions, axis)
}

fn read(
    (name, most): (&str, usize),
    clash: impl Fn(&str, &str) -> bool,
    expressions: &[String],
    axis: impl Fn(&Expression<'_>) -> Result<Axis, Diagnostic>,
) -> Result<Vec<Axis>, Diagnostics> {
    let mut sources = Sources::default();
    let findings = Findings::default();
    let mut axes: Vec<Axis> = Vec::new();
    let mut points = 1_usize;
    for text in expressions {
        let source = sources.add(Syntax::Set, name, text);
        let expression = Expression { source, text };
        match axis(&expression) {
            Ok(axis) if axes.iter().any(|other| clash(&other.key, &axis.key)) => {
                let message = format!("`{}` is swept twice", axis.key);
                findings.push(expression.error(0, text.len(), message, "sweep a key only once"));
            }
            Ok(axis) => {
                points = points.saturating_mul(axis.choices.len());
                if points > most {
                    let message = format!("the grid has more than {MOST_POINTS} points");
                    let help = "sweep fewer values, or a range with a larger step: KEY=0..100/10";
                    findings.push(expression.error(0, text.len(), message, help));
                    break;
                }
                axes.push(axis);
            }
            Err(error) => findings.push(error),
        }
    }
    findings.finish(sources).map(|_| axes)
}

/// Whether two keys set the same thing.
fn overlap(one: &str, other: &str) -> bool {
    let other = spelled_out(other);
    spelled_out(one).iter().any(|key| other.contains(key))
}

/// Every point of the grid, a choice per axis; the last axis changes fastest.
#[must_use]
pub fn grid(axes: &[Axis]) -> Vec<Vec<&Choice>> {
    axes.iter().fold(vec![Vec::new()], |points, axis| {
        let extend = |point: &Vec<_>| {
            let point = point.clone();
            axis.choices.iter().map(move |choice| {
                let mut longer = point.clone();
                longer.push(choice);
                longer
            })
        };
        points.iter().flat_map(extend).collect()
    })
}

/// An expression and where it is kept.
struct Expression<'a> {
    source: SourceId,
    text: &'a str,
}

impl Expression<'_> {
    fn error(&self, start: usize, end: usize, message: String, help: &str) -> Diagnostic {
        Diagnostic::error(Origin { source: self.source, start, end }, message).help(help)
    }

    fn axis(&self, tree: &Table, cases: &[Case]) -> Result<Axis, Diagnostic> {
        if self.text.trim() == CASES {
            return self.cases(cases);
        }
        let Some((key, list)) = self.text.split_once('=') else {
            let message = format!("`{}` says no values", self.text);
            let help = match nearest(self.text, &[CASES]) {
                Some(cases) => format!("did you mean `{cases}`?"),
                None => "write KEY=VALUES, such as max_head_off_policyness=0,1,2,4,8 or =0..16"
                    .to_owned(),
            };
            return Err(self.error(0, self.text.len(), message, &help));
        };
        if key.trim() == CASES {
            let message = "`cases` stands for all cases of the scenario, and has no values";
            let help = "write --over cases; of one case alone: headway compare --case-b NAME";
            return Err(self.error(key.len(), self.text.len(), message.to_owned(), help));
        }
        let path = resolve(key.trim(), tree)
            .map_err(|unknown| self.error(0, key.len(), unknown.to_string(), &unknown.help()))?;
        let mut choices: Vec<Choice> = Vec::new();
        let mut start = key.len() + 1;
        for item in split(list) {
            let end = start + item.len();
            for value in self.values(item, start)? {
                let label = value.trim_matches('"').to_owned();
                if choices.iter().any(|choice| choice.label == label) {
                    let message = format!("`{label}` is given twice");
                    return Err(self.error(start, end, message, "give each value once"));
                }
                choices.push(Choice { label, set: vec![format!("{path}={value}")] });
            }
            start = end + 1;
        }
        Ok(Axis { key: path, choices })
    }

    /// The axis of a scheduling key, each of whose values it can have.
    fn scheduling_axis(&self) -> Result<Axis, Diagnostic> {
        let axis = self.axis(Table::EMPTY, &[])?;
        let end = self.text.find('=').unwrap_or(self.text.len());
        let paths: Vec<String> = keys().iter().map(Key::path).collect();
        if !paths.contains(&axis.key) {
            let names: Vec<&str> = paths.iter().map(String::as_str).collect();
            let help = match nearest(&axis.key, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write a key of docs/configuration.md, which a live configuration can \
                         take over"
                    .to_owned(),
            };
            let message = format!("`{}` is no key of the scheduling sections", axis.key);
            return Err(self.error(0, end, message, &help));
        }
        for choice in &axis.choices {
            if let Some((message, help)) = unfit(choice) {
                return Err(self.error(end + 1, self.text.len(), message, &help));
            }
        }
        Ok(axis)
    }

    fn cases(&self, cases: &[Case]) -> Result<Axis, Diagnostic> {
        if cases.is_empty() {
            let help = "add [[scenario.cases]] to it, or sweep a key: KEY=VALUES";
            let message = "the scenario has no cases".to_owned();
            return Err(self.error(0, self.text.len(), message, help));
        }
        let choice = |case: &Case| Choice { label: case.name.clone(), set: case.set.clone() };
        Ok(Axis { key: CASE.into(), choices: cases.iter().map(choice).collect() })
    }

    /// The values of one item of the list, which begins at byte `start`.
    fn values(&self, item: &str, start: usize) -> Result<Vec<String>, Diagnostic> {
        let text = item.trim();
        let fail =
            |message: String, help: &str| Err(self.error(start, start + item.len(), message, help));
        if text.is_empty() {
            return fail(
                "a value is missing".into(),
                "write values with commas between them: 0,1,2",
            );
        }
        let Some((from, rest)) = text.split_once("..").filter(|_| !text.starts_with('"')) else {
            return Ok(vec![text.into()]);
        };
        let (to, step) = rest.split_once('/').unwrap_or((rest, "1"));
        // Of `0...4` the second number would be `.4`.
        let end = Some(to.trim()).filter(|to| !to.starts_with('.'));
        let (Some(from), Some(to), Some(step)) =
            (number::parse(from.trim()), end.and_then(number::parse), number::parse(step.trim()))
        else {
            let help = "a range goes from a number to a number: 0..16, or 0..16/4 with a step";
            return fail(format!("`{text}` is no range"), help);
        };
        if step <= 0.0 {
            return fail(format!("the step of `{text}` is not above 0"), "write a step such as /2");
        }
        if from > to {
            return fail(format!("the range `{text}` is empty"), "write the smaller number first");
        }
        if (to - from) / step > MOST_POINTS as f64 {
            let message = format!("`{text}` has more than {MOST_POINTS} values");
            return fail(message, "take a larger step: 0..100/10");
        }
        // A millionth of a step of grace, so that 0..1/0.1 reaches 1.
        let count = ((to - from) / step + 1e-6) as u32;
        Ok((0..=count).map(|at| number::text(from + f64::from(at) * step)).collect())
    }
}

/// What is wrong with a value by itself, whatever the other keys are.
fn unfit(choice: &Choice) -> Option<(String, String)> {
    let document = choice.set.iter().fold(Layers::new(), Layers::set).merge();
    let found = document.and_then(|document| {
        let mut reader = document.reader();
        let _ = parse_sections(&mut reader);
        reader.finish();
        document.finish()
    });
    let wrong = found.err()?.items.into_iter().next()?;
    Some((wrong.message, wrong.help.unwrap_or_default()))
}

/// Splits a list at its commas, but for those within quotes, brackets and braces.
fn split(list: &str) -> Vec<&str> {
    let (mut items, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0_u32, false);
    for (at, letter) in list.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&list[start..]);
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        let axes = parse(&[text.to_owned()], Table::EMPTY, &[]).expect("it is well formed");
        axes[0].choices.iter().map(|choice| choice.label.clone()).collect()
    }

    fn message(text: &str) -> String {
        parse(&[text.to_owned()], Table::EMPTY, &[]).expect_err("it is malformed").to_string()
    }

    const ETA: &str = "policy_training.max_head_off_policyness";

    #[test]
    fn lists_ranges_and_words_mix() {
        assert_eq!(
            values(&format!("{ETA}=0,1,4..6,8..12/2")),
            ["0", "1", "4", "5", "6", "8", "10", "12"]
        );
        assert_eq!(values(&format!("{ETA}=0..1/0.25")), ["0", "0.25", "0.5", "0.75", "1"]);
        assert_eq!(values(&format!("{ETA}=fifo, lifo")), ["fifo", "lifo"]);
        assert_eq!(values(&format!("{ETA}={{ kind = \"constant\", sec = 2 }},3")).len(), 2);
    }

    #[test]
    fn a_grid_changes_its_last_axis_fastest() {
        let axis = |key: &str, values: &[&str]| Axis {
            key: key.into(),
            choices: values
                .iter()
                .map(|value| Choice { label: (*value).into(), set: vec![format!("{key}={value}")] })
                .collect(),
        };
        let axes = [axis("a", &["1", "2"]), axis("b", &["x", "y"])];
        let points = grid(&axes);
        let values: Vec<String> =
            points.iter().map(|point| format!("{}{}", point[0].label, point[1].label)).collect();
        assert_eq!(values, ["1x", "1y", "2x", "2y"]);
        assert_eq!(points[3][0].set, ["a=2"]);
        assert_eq!(grid(&[]), [Vec::<&Choice>::new()]);
    }

    #[test]
    fn a_malformed_expression_is_shown_with_its_remedy() {
        let missing = message(&format!("{ETA}=0,,2"));
        assert!(missing.starts_with("--over:1:43: a value is missing"), "{missing}");
        assert!(missing.contains("help: write values with commas"), "{missing}");
        assert!(message(&format!("{ETA}=4..x")).contains("`4..x` is no range"));
        assert!(message(&format!("{ETA}=0...4")).contains("`0...4` is no range"));
        assert!(message("cases=ours").contains("has no values"));
        assert!(message("casess").contains("did you mean `cases`?"));
        assert!(message(&format!("{ETA}=4..0")).contains("is empty"));
        assert!(message(&format!("{ETA}=0..4/0")).contains("is not above 0"));
        assert!(message(&format!("{ETA}=1,1")).contains("given twice"));
        assert!(message(&format!("{ETA}=0..99999999")).contains("more than 10000"));
        assert!(message("max_head_off_policyness").contains("says no values"));
    }

    #[test]
    fn two_sweeps_of_one_key_and_endless_grids_are_refused() {
        let twice = [format!("{ETA}=0,1"), format!("{ETA}=2")];
        let refused = |expressions: &[String]| {
            parse(expressions, Table::EMPTY, &[]).expect_err("it is refused").to_string()
        };
        assert!(refused(&twice).contains("swept twice"));
        let wide = [format!("{ETA}=0..999"), "policy_training.batch_size=1..999".to_owned()];
        assert!(refused(&wide).contains("10000 points"));
    }

    #[test]
    fn cases_are_an_axis_of_their_own() {
        let case = Case { name: "ours".into(), set: vec!["gate=headway".into(), "b=1".into()] };
        let axes =
            parse(&[CASES.to_owned()], Table::EMPTY, std::slice::from_ref(&case)).expect("cases");
        assert_eq!(axes[0].key, "case");
        assert_eq!(axes[0].choices[0], Choice { label: case.name, set: case.set });
        assert!(message(CASES).contains("the scenario has no cases"));
    }
}
