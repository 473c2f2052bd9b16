//! What people read of a validation.

use comfy_table::Cell;
use headway_sim::report::number;
use headway_sim::validate::{FIGURES, Row, Sum, Tolerance, Validation};

use super::{empty, right, written_out};

/// Misses that are listed; all are in the CSV.
const MOST: usize = 40;

/// One run: a row per metric. Several: a row per metric with what it comes to, then what is beyond
/// its tolerance. Then how good the intervals of ratios are.
pub(crate) fn validation(validation: &Validation) -> String {
    let mut text = match validation.runs.len() {
        1 => one(validation),
        _ => several(validation),
    };
    text += &misses(validation);
    text += &scores(validation);
    text + &verdict(validation)
}

fn one(validation: &Validation) -> String {
    let headings = ["metric", "measured", "predicted", "90% interval", "tolerance", ""];
    let mut table = empty(headings.map(str::to_owned));
    for row in validation.rows.iter().filter(|row| !is_nothing(row)) {
        let form = form(row);
        let predicted = row.prediction.map(|prediction| prediction.value);
        table.add_row([
            Cell::new(row.figure().name),
            right(form(row.measured)),
            right(form(predicted)),
            right(interval(row)),
            right(row.tolerance.to_string()),
            Cell::new(mark(row)),
        ]);
    }
    written_out(&table)
}

fn several(validation: &Validation) -> String {
    let headings = ["metric", "runs", "in interval", "in tolerance", "tolerance", "largest error"];
    let mut table = empty(headings.into_iter().chain(["of"]).map(str::to_owned));
    for sum in &validation.sums {
        let (Sum { figure, runs, inside, within, .. }, Some(worst)) = (sum, sum.worst) else {
            continue;
        };
        let nothing = |row: &Row| row.figure == *figure && !is_nothing(row);
        if !validation.rows.iter().any(nothing) {
            continue;
        }
        let kept = match within {
            (_, 0) => String::new(),
            (kept, judged) => format!("{kept} of {judged}"),
        };
        table.add_row([
            Cell::new(FIGURES[*figure].name),
            right(runs.to_string()),
            right(inside.to_string()),
            right(kept),
            right(worst.tolerance.to_string()),
            right(error(&worst)),
            Cell::new(&validation.runs[worst.run].name),
        ]);
    }
    written_out(&table)
}

/// What is beyond its tolerance, and how far.
fn misses(validation: &Validation) -> String {
    let all: Vec<&Row> = validation.misses().collect();
    let mut text = String::new();
    for row in all.iter().take(MOST) {
        let form = form(row);
        text += &format!(
            "beyond the tolerance: {}: {}: predicted {} ({}), measured {}: off by {}, tolerance {}\n",
            validation.runs[row.run].name,
            row.figure().name,
            form(row.prediction.map(|prediction| prediction.value)),
            interval(row),
            form(row.measured),
            error(row),
            row.tolerance,
        );
    }
    if all.len() > MOST {
        text += &format!("and {} more: see validation.csv\n", all.len() - MOST);
    }
    text
}

fn scores(validation: &Validation) -> String {
    let line = |score: &headway_sim::validate::Score| {
        let name = FIGURES[score.figure].name;
        let own = number::short(Some(score.predicted));
        let baseline = match score.baseline {
            Some(baseline) => {
                format!("; {} for \"as in the fitted run\"", number::short(Some(baseline)))
            }
            None => String::new(),
        };
        format!("interval score (less is better): {name}: {own} predicted{baseline}\n")
    };
    validation.scores.iter().map(line).collect()
}

fn verdict(validation: &Validation) -> String {
    let is_missed = |run: usize| validation.misses().any(|row| row.run == run);
    let runs = validation.runs.len();
    let kept =
        (0..runs).filter(|&run| !is_missed(run) && validation.runs[run].failed.is_none()).count();
    format!("{kept} of {runs} runs are predicted within every tolerance\n")
}

/// Nothing there, and nothing predicted.
fn is_nothing(row: &Row) -> bool {
    let predicted = row.prediction.map(|prediction| prediction.value);
    [row.measured, predicted].into_iter().flatten().all(|value| value == 0.0)
}

fn mark(row: &Row) -> &'static str {
    match (row.is_miss(), row.is_inside()) {
        (true, _) => "beyond the tolerance",
        (false, Some(false)) => "outside the interval",
        _ => "",
    }
}

/// How the numbers of a row are written.
fn form(row: &Row) -> fn(Option<f64>) -> String {
    let name = row.figure().name;
    match name {
        "learner_rollout_step_p99" => number::ratio,
        _ if name.ends_with("_share") || name == "clipped_fraction" => number::percent,
        _ => number::short,
    }
}

fn interval(row: &Row) -> String {
    let form = form(row);
    let ends = row.prediction.and_then(|prediction| prediction.interval);
    ends.map_or_else(
        || "-".to_owned(),
        |(low, high)| format!("{} to {}", form(Some(low)), form(Some(high))),
    )
}

/// Predicted minus measured: a share of what was measured, where the tolerance is one.
fn error(row: &Row) -> String {
    let error = row.error();
    let sign = if error.is_some_and(|error| error > 0.0) { "+" } else { "" };
    match row.tolerance {
        Tolerance::Relative(_) if row.relative_error().is_some() => {
            format!("{sign}{}", number::percent(row.relative_error()))
        }
        _ if row.figure().name.ends_with("_share") => {
            let points = error.map(|error| error * 100.0);
            format!("{sign}{} pp", number::short(points))
        }
        _ => format!("{sign}{}", number::short(error)),
    }
}
