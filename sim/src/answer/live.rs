//! Whether a live run is healthy, and where its staleness comes from.

use super::Answer;
use super::run::{found, of_evidence};
use crate::diagnose::{Diagnosis, Evidence};

/// The answer of a recorded run.
#[must_use]
pub fn of_live(evidence: &Evidence, diagnosis: &Diagnosis) -> Answer {
    let rest = of_evidence(evidence, diagnosis);
    let holds =
        |holds: bool| diagnosis.signs.iter().filter(|sign| sign.holds == Some(holds)).count();
    let (good, bad) = (holds(true), holds(false));
    let verdict = match (good, bad, diagnosis.findings.first()) {
        (_, _, Some(finding)) => format!("No: {}.", finding.named.title()),
        (_, 1.., None) => "No: a sign of health does not hold.".to_owned(),
        (3, 0, None) => {
            "Yes: all three signs of health hold, and no cause of trouble was found.".to_owned()
        }
        (0, 0, None) => {
            "Not known: the run has too few votes and steps for the signs of health.".to_owned()
        }
        (good, 0, None) => {
            format!(
                "As far as it shows: {good} of the three signs of health hold, the others are not known."
            )
        }
    };
    let signs = diagnosis.signs.iter().map(|sign| {
        let holds = match sign.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "not known",
        };
        format!("“{}” — {holds}: {}.", sign.name, sign.seen)
    });
    let mut because: Vec<String> = signs.collect();
    because.push(rest.answer);
    because.extend(rest.because);
    let mut but: Vec<String> = diagnosis.findings.iter().map(found).collect();
    but.push(
        "This is one run, its warm-up included: no interval says how far chance moves its numbers."
            .into(),
    );
    Answer {
        question: "Is the run healthy, and where does its staleness come from?".into(),
        answer: verdict,
        is_known: good + bad > 0 || !diagnosis.is_healthy(),
        because,
        but,
        chosen: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::diagnose;

    #[test]
    fn of_a_run_that_shows_nothing_nothing_is_known() {
        let evidence = Evidence::default();
        let answer = of_live(&evidence, &diagnose(&evidence));
        assert!(answer.answer.starts_with("As far as it shows") || !answer.is_known, "{answer:?}");
    }

    #[test]
    fn what_was_found_is_the_answer() {
        let mut evidence = Evidence::default();
        let metrics = [("votes_per_hour", 3600.0), ("duration_seconds", 3600.0)];
        evidence.metrics.extend(metrics.map(|(name, value)| (name.to_owned(), value)));
        evidence.metrics.insert("refused_queue_full_share".into(), 0.5);
        let answer = of_live(&evidence, &diagnose(&evidence));
        assert_eq!(answer.answer, "No: requests are refused because a queue is full.");
        assert!(answer.but[0].contains("Found: requests are refused"), "{answer:?}");
    }
}
