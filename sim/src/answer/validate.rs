//! Whether runs were predicted within their tolerances.

use super::{Answer, joined};
use crate::report::number;
use crate::validate::{FIGURES, Row, Sum, Validation};

/// Misses that are named.
const MOST: usize = 5;

/// The answer of a validation.
#[must_use]
pub fn of_validation(validation: &Validation) -> Answer {
    let runs = validation.runs.len();
    let is_missed = |run: usize| validation.misses().any(|row| row.run == run);
    let failed = |run: usize| validation.runs[run].failed.is_some();
    let kept = (0..runs).filter(|&run| !is_missed(run) && !failed(run)).count();
    let judged = validation.rows.iter().filter(|row| row.is_within().is_some()).count();
    let misses = validation.misses().count();
    let answer = match (judged, validation.is_good()) {
        (0, _) => "Nothing can be concluded: nothing was judged by a tolerance.".to_owned(),
        (_, true) => format!(
            "Yes: {} predicted within every tolerance ({judged} figures).",
            if runs == 1 { "the run is".to_owned() } else { format!("all {runs} runs are") }
        ),
        (_, false) => format!(
            "Not in everything: {kept} of {runs} runs are predicted within every tolerance, and {misses} of \
             {judged} figures lie beyond theirs."
        ),
    };
    let mut because: Vec<String> =
        validation.misses().take(MOST).map(|row| miss(validation, row)).collect();
    if misses > MOST {
        because.push(format!("{} more are in the table.", misses - MOST));
    }
    because.extend(worst(validation));
    because.extend(coverage(validation));
    let mut but = Vec::new();
    for run in &validation.runs {
        but.extend(run.notes.iter().map(|note| format!("{}: {note}.", run.name)));
        but.extend(run.failed.as_ref().map(|(what, count)| {
            format!(
                "{}: {count} of {} simulations are none: {what}.",
                run.name, validation.replications
            )
        }));
    }
    but.push(match validation.uncertain {
        0 => "The scenario was not calibrated: the intervals hold chance alone, and nothing of what is \
              unknown of its numbers."
            .to_owned(),
        fitted => format!(
            "The intervals are of 90%, for one run, over {} replications in which {fitted} fitted numbers \
             are drawn.",
            validation.replications
        ),
    });
    Answer {
        question: "Are the runs predicted within their tolerances?".into(),
        answer,
        is_known: judged > 0,
        because,
        but,
        chosen: None,
    }
}

fn miss(validation: &Validation, row: &Row) -> String {
    let short = |value: Option<f64>| number::short(value);
    format!(
        "{}, {}: predicted {}, measured {}: beyond the tolerance of {}.",
        validation.runs[row.run].name,
        row.figure().name,
        short(row.prediction.map(|prediction| prediction.value)),
        short(row.measured),
        row.tolerance,
    )
}

/// The judged figures that are off by most of their kind.
fn worst(validation: &Validation) -> Option<String> {
    const SHOWN: [&str; 2] = ["trained_samples_per_hour", "staleness_head_mean"];
    let of = |name: &&str| {
        let name = *name;
        validation.sums.iter().find(|sum| FIGURES[sum.figure].name == name)
    };
    let said = |sum: &Sum| {
        let worst = sum.worst?;
        let error = match worst.relative_error() {
            Some(share) if matches!(worst.tolerance, crate::validate::Tolerance::Relative(_)) => {
                number::percent(Some(share.abs()))
            }
            _ => number::short(worst.error().map(f64::abs)),
        };
        let name = worst.figure().name.replace('_', " ");
        Some(format!("{name} by {error} ({})", validation.runs[worst.run].name))
    };
    let said: Vec<String> = SHOWN.iter().filter_map(of).filter_map(said).collect();
    (!said.is_empty()).then(|| format!("The largest errors: {}.", joined(&said)))
}

/// How often what was measured lies in its interval.
fn coverage(validation: &Validation) -> Option<String> {
    let inside: Vec<bool> = validation.rows.iter().filter_map(Row::is_inside).collect();
    let held = inside.iter().filter(|inside| **inside).count();
    (!inside.is_empty()).then(|| {
        format!(
            "{held} of {} measured figures ({}) lie in their predicted interval, which should hold nine of \
             ten.",
            inside.len(),
            number::percent(Some(held as f64 / inside.len() as f64))
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::{Compared, Prediction};

    fn row(name: &str, measured: f64, low: f64, high: f64) -> Row {
        let figure = FIGURES.iter().position(|figure| figure.name == name).unwrap();
        let prediction = Prediction { value: 0.5 * (low + high), interval: Some((low, high)) };
        let tolerance = FIGURES[figure].tolerance;
        Row::new(0, figure, Some(measured), Some(prediction), tolerance)
    }

    fn validation(rows: Vec<Row>) -> Validation {
        let run = Compared {
            name: "eta-2".into(),
            settings: Vec::new(),
            steps: 60,
            seconds: 100.0,
            notes: Vec::new(),
            failed: None,
        };
        Validation {
            version: String::new(),
            scenario: "made-up".into(),
            scenario_digest: String::new(),
            fitted_to: String::new(),
            uncertain: 0,
            seed: 1,
            replications: 16,
            warmup_steps: 0,
            baseline: None,
            keys: Vec::new(),
            runs: vec![run],
            sums: Vec::new(),
            scores: Vec::new(),
            rows,
            about: None,
        }
    }

    #[test]
    fn what_lies_in_its_tolerances_is_said_to() {
        let answer = of_validation(&validation(vec![
            row("steps_per_hour", 100.0, 101.0, 103.0),
            row("staleness_head_mean", 2.0, 1.9, 2.1),
        ]));
        assert_eq!(answer.answer, "Yes: the run is predicted within every tolerance (2 figures).");
        let all = answer.because.join("\n");
        assert!(
            all.contains("1 of 2 measured figures (50.0%) lie in their predicted interval"),
            "{all}"
        );
        assert!(answer.but[0].starts_with("The scenario was not calibrated"));
    }

    #[test]
    fn a_miss_is_named_with_both_its_numbers() {
        let answer = of_validation(&validation(vec![row("steps_per_hour", 100.0, 119.0, 121.0)]));
        assert!(answer.answer.starts_with("Not in everything: 0 of 1 runs"), "{}", answer.answer);
        assert_eq!(
            answer.because[0],
            "eta-2, steps_per_hour: predicted 120, measured 100: beyond the tolerance of 10%."
        );
    }

    #[test]
    fn where_nothing_is_judged_nothing_is_concluded() {
        let answer = of_validation(&validation(vec![row("closed_share", 0.5, 0.1, 0.2)]));
        assert!(!answer.is_known && answer.answer.starts_with("Nothing can be concluded"));
    }
}
