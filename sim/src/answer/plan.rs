//! How to split the GPUs, what that beats, and which constraints bind.

use super::{Answer, sentence, with_interval};
use crate::plan::results::PlanResults;
use crate::stats::Estimate;

const RATE: &str = "effective_samples_per_hour";

/// The answer of a plan.
#[must_use]
pub fn of_plan(plan: &PlanResults) -> Answer {
    let meta = &plan.meta;
    let question = format!("How should {} GPUs be split, and what limits them?", meta.gpus);
    let chosen = (0..plan.points.rows.len()).find(|&row| plan.is(row, "chosen"));
    let mut because: Vec<String> = meta.verdict.iter().map(|line| sentence(line)).collect();
    let answer = match because.iter().position(|line| line.starts_with("Take ")) {
        Some(place) if chosen.is_some() => because.remove(place),
        _ => "No split that was simulated keeps every constraint.".into(),
    };
    if let Some(chosen) = chosen {
        because.extend(second(plan, chosen));
        because.extend(meta.constraints.iter().map(|kept| binding(plan, chosen, kept)));
    }
    let mut but = vec![format!(
        "Intervals are of 95% over {} replications. Splits whose intervals overlap are not told apart by \
         them. They hold nothing of what is unknown about the scenario's numbers.",
        meta.replications
    )];
    if !meta.exhaustive {
        but.push(format!(
            "{} of {} points were simulated, around the best of an estimate; --exhaustive simulates all.",
            plan.points.rows.len(),
            meta.candidates
        ));
    }
    but.extend(meta.about.as_ref().and_then(|about| about.assumptions()));
    Answer { question, answer, is_known: chosen.is_some(), because, but, chosen }
}

/// The fastest split beside the choice that keeps the constraints.
fn second(plan: &PlanResults, chosen: usize) -> Option<String> {
    let is_fit = |row: &usize| {
        let empty = |column: &str| plan.points.text(*row, column).is_empty();
        *row != chosen && empty("breaks") && empty("failed")
    };
    let next = plan.by_throughput().into_iter().find(is_fit)?;
    let rate = rate(plan, next)?;
    Some(format!(
        "It beats {}, the best other split, which has {} samples/h.",
        named(plan, next),
        with_interval(rate)
    ))
}

/// Whether a constraint binds: whether something that breaks it alone is faster beyond both intervals.
fn binding(plan: &PlanResults, chosen: usize, kept: &str) -> String {
    let ends = |row: usize| {
        let rate = rate(plan, row)?;
        let half = rate.half_width?;
        Some((rate.mean - half, rate.mean + half))
    };
    let top = ends(chosen).map(|ends| ends.1);
    let breaks = |row: &usize| plan.points.text(*row, "breaks") == kept;
    let faster = |row: &usize| ends(*row).map(|ends| ends.0) > top;
    match plan.by_throughput().into_iter().filter(breaks).find(|row| top.is_some() && faster(row)) {
        Some(row) => {
            let rate = rate(plan, row).map_or_else(String::new, with_interval);
            format!("{kept} binds: {} has {rate} samples/h, and breaks it.", named(plan, row))
        }
        None => {
            format!(
                "{kept} does not bind: nothing that was simulated and breaks it alone is clearly faster."
            )
        }
    }
}

fn rate(plan: &PlanResults, row: usize) -> Option<Estimate> {
    let mean = plan.points.value(row, RATE)?;
    let half_width = plan.points.value(row, &format!("{RATE}_hw"));
    Some(Estimate { mean, half_width, count: plan.meta.replications })
}

fn named(plan: &PlanResults, row: usize) -> String {
    let split = plan.points.text(row, "split");
    match plan.tried(row).as_str() {
        "" => split.to_owned(),
        tried => format!("{split} at {tried}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::results::PlanMeta;
    use crate::report::csv::Csv;

    const LIMIT: &str = "staleness_head_p99 <= 4";

    /// Split, effective samples an hour with their half-width, what it breaks, and whether it was chosen.
    fn planned(rows: &[(&str, &str, &str, &str, &str)]) -> PlanResults {
        let header =
            ["point", "split", RATE, "effective_samples_per_hour_hw", "breaks", "chosen", "failed"];
        let mut points = Csv::new(header);
        for (place, &(split, rate, half, breaks, chosen)) in rows.iter().enumerate() {
            let place = place.to_string();
            let row = [place.as_str(), split, rate, half, breaks, chosen, ""];
            points.rows.push(row.map(str::to_owned).to_vec());
        }
        let meta = PlanMeta {
            kind: "plan".into(),
            version: String::new(),
            scenario: "made-up".into(),
            title: String::new(),
            scenario_digest: String::new(),
            seed: 1,
            replications: 8,
            gpus: 64,
            keys: Vec::new(),
            constraints: vec![LIMIT.into()],
            price_per_gpu_hour: 0.0,
            candidates: 9,
            exhaustive: false,
            estimate_agreement: None,
            verdict: vec!["take 40 + 24".into(), "bottleneck: trainer".into()],
            about: None,
        };
        PlanResults { meta, points, marginal: Csv::default(), runs: Csv::default() }
    }

    #[test]
    fn the_choice_is_named_with_what_it_beats_and_what_binds() {
        let answer = of_plan(&planned(&[
            ("40+24", "1000", "20", "", "yes"),
            ("32+32", "900", "20", "", "no"),
            ("48+16", "1200", "30", LIMIT, "no"),
        ]));
        assert_eq!(answer.answer, "Take 40 + 24.");
        let all = answer.because.join("\n");
        assert!(
            all.contains("It beats 32+32, the best other split, which has 900 ±20 samples/h."),
            "{all}"
        );
        assert!(all.contains(&format!("{LIMIT} binds: 48+16 has 1,200 ±30 samples/h")), "{all}");
        assert!(answer.but.iter().any(|line| line.starts_with("3 of 9 points were simulated")));
    }

    #[test]
    fn overlapping_intervals_bind_nothing() {
        let rows = [("40+24", "1000", "60", "", "yes"), ("48+16", "1050", "60", LIMIT, "no")];
        let all = of_plan(&planned(&rows)).because.join("\n");
        assert!(all.contains("does not bind"), "{all}");
    }

    #[test]
    fn without_a_choice_there_is_no_answer() {
        let answer = of_plan(&planned(&[("48+16", "1050", "60", LIMIT, "no")]));
        assert!(!answer.is_known && answer.answer.starts_with("No split"));
    }
}
