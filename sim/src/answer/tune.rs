//! What a tuning chose, what that beats, and which constraints bind.

use super::{Answer, percent, sentence, with_interval};
use crate::stats::Estimate;
use crate::tune::results::TuneResults;

/// The answer of a tuning.
#[must_use]
pub fn of_tune(tune: &TuneResults) -> Answer {
    let meta = &tune.meta;
    let question = format!(
        "Which configuration has the largest {} and keeps every constraint?",
        meta.maximize.replace('_', " ")
    );
    let mut lines = meta.verdict.iter().map(|line| sentence(line));
    let (known, answer) = match tune.chosen() {
        Some(_) => (true, lines.next().unwrap_or_default()),
        None => (false, "None of those that were tried keeps every constraint.".to_owned()),
    };
    let mut because: Vec<String> = lines.collect();
    if let Some(chosen) = tune.chosen() {
        because.extend(fresher(tune, chosen));
        because.extend(meta.subject_to.iter().map(|kept| binding(tune, chosen, kept)));
    }
    let mut but = vec![format!(
        "Of candidates that chance alone may tell apart, by the 95% interval of their paired difference \
         over {} replications, the least stale was taken. The intervals hold nothing of what is unknown \
         about the scenario's numbers.",
        meta.replications
    )];
    if meta.subject_to.is_empty() {
        but.push("Nothing had to be kept: the choice is bound by the search space alone.".into());
    }
    but.extend(meta.about.as_ref().and_then(|about| about.assumptions()));
    Answer { question, answer, is_known: known, because, but, chosen: tune.chosen() }
}

/// What the choice has less than the best, where it is not the best itself.
fn fresher(tune: &TuneResults, chosen: usize) -> Option<String> {
    let meta = &tune.meta;
    let value = |row: usize| tune.candidates.value(row, &meta.maximize);
    let best = complete(tune)
        .filter(|&row| tune.candidates.text(row, "breaks").is_empty())
        .reduce(|best, next| if value(next) > value(best) { next } else { best })
        .filter(|&best| best != chosen)?;
    let more = difference(tune, best)?;
    Some(format!(
        "The highest mean that keeps the constraints is {} more, with {}: that may be chance, and the \
         choice is fresher.",
        with_interval(more),
        tune.differs(best, chosen)
    ))
}

/// Whether a constraint binds: whether something that breaks it alone clearly has more.
fn binding(tune: &TuneResults, chosen: usize, kept: &str) -> String {
    let breaks = |&row: &usize| tune.candidates.text(row, "breaks") == kept;
    let clear = |row: usize| {
        let more = difference(tune, row)?;
        (more.mean > 0.0 && more.excludes_zero()).then_some((row, more))
    };
    let best = complete(tune).filter(breaks).filter_map(clear);
    let best = best.reduce(|best, next| if next.1.mean > best.1.mean { next } else { best });
    let now = tune.candidates.value(chosen, &tune.meta.maximize).unwrap_or(0.0);
    match best {
        Some((row, more)) if now > 0.0 => {
            let by = 1.0 / now;
            let share = Estimate {
                mean: more.mean * by,
                half_width: more.half_width.map(|half| half * by),
                ..more
            };
            format!(
                "{kept} binds: {} would have {} more, and breaks it.",
                tune.differs(row, chosen),
                percent(share)
            )
        }
        _ => format!(
            "{kept} does not bind: nothing that was tried and breaks it alone clearly has more."
        ),
    }
}

/// Candidates that ran in full, each once.
fn complete(tune: &TuneResults) -> impl Iterator<Item = usize> {
    let all = f64::from(tune.meta.replications);
    let table = &tune.candidates;
    (0..table.rows.len()).filter(move |&row| {
        let empty = |column: &str| table.text(row, column).is_empty();
        empty("same_as") && empty("failed") && table.value(row, "replications") >= Some(all)
    })
}

/// What a candidate has more than the choice, in pairs of runs.
fn difference(tune: &TuneResults, row: usize) -> Option<Estimate> {
    let mean = tune.candidates.value(row, "difference_to_choice")?;
    let half_width = tune.candidates.value(row, "difference_to_choice_hw");
    Some(Estimate { mean, half_width, count: tune.meta.replications })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::csv::Csv;
    use crate::tune::results::TuneMeta;

    const KEY: &str = "policy_training.max_head_off_policyness";
    const LIMIT: &str = "staleness_head_p99 <= 4";

    /// η, gain, difference to the choice with its half-width, what it breaks, and whether it was chosen.
    fn tuned(rows: &[(&str, &str, &str, &str, &str, &str)]) -> TuneResults {
        let header =
            ["candidate", KEY, "replications", "trained_samples_per_hour", "difference_to_choice"];
        let marks = ["difference_to_choice_hw", "breaks", "chosen", "same_as", "failed"];
        let mut candidates = Csv::new(header.into_iter().chain(marks));
        for (place, &(eta, gain, more, half, breaks, chosen)) in rows.iter().enumerate() {
            let place = place.to_string();
            let row = [place.as_str(), eta, "8", gain, more, half, breaks, chosen, "", ""];
            candidates.rows.push(row.map(str::to_owned).to_vec());
        }
        let meta = TuneMeta {
            kind: "tune".into(),
            version: String::new(),
            scenario: "made-up".into(),
            title: String::new(),
            scenario_digest: String::new(),
            seed: 1,
            replications: 8,
            keys: vec![KEY.into()],
            space: Vec::new(),
            maximize: "trained_samples_per_hour".into(),
            subject_to: vec![LIMIT.into()],
            metrics: vec!["trained_samples_per_hour".into()],
            points: 3,
            unfit: 0,
            runs: 24,
            rounds: 1,
            spent: false,
            verdict: vec!["take η = 2: trained_samples_per_hour 800".into(), "3 of 3".into()],
            about: None,
        };
        TuneResults { meta, candidates, front: Csv::default() }
    }

    #[test]
    fn a_constraint_binds_where_what_breaks_it_clearly_has_more() {
        let answer = of_tune(&tuned(&[
            ("0", "500", "-300", "10", "", "no"),
            ("2", "800", "0", "0", "", "yes"),
            ("8", "880", "80", "16", LIMIT, "no"),
        ]));
        assert_eq!(answer.answer, "Take η = 2: trained_samples_per_hour 800.");
        let binds = format!("{LIMIT} binds: η = 8 would have 10.0 ±2.0% more, and breaks it.");
        assert!(answer.because.contains(&binds), "{:?}", answer.because);
        assert_eq!(answer.chosen, Some(1));
    }

    #[test]
    fn what_may_be_chance_binds_nothing_and_is_what_the_choice_gives_up() {
        let answer = of_tune(&tuned(&[
            ("2", "800", "0", "0", "", "yes"),
            ("4", "805", "5", "9", "", "no"),
            ("8", "810", "10", "16", LIMIT, "no"),
        ]));
        let all = answer.because.join("\n");
        assert!(all.contains("is 5.0 ±9.0 more, with η = 4: that may be chance"), "{all}");
        assert!(all.contains("does not bind"), "{all}");
    }

    #[test]
    fn where_nothing_was_chosen_the_answer_is_none() {
        let answer = of_tune(&tuned(&[("2", "800", "", "", LIMIT, "no")]));
        assert!(!answer.is_known && answer.answer.starts_with("None of those"));
    }
}
