//! What a tuning comes to, in words.

use super::{Candidate, Task, Tuning};
use crate::plan::constraint::Constraint;
use crate::plan::setting;
use crate::report::number;
use crate::stats::Estimate;

/// Nearest misses that are named where nothing keeps every constraint.
const MISSES: usize = 3;

impl Tuning {
    /// What it comes to; the last line says what was spent.
    #[must_use]
    pub fn verdict(&self, task: &Task<'_>) -> Vec<String> {
        let mut lines = match self.chosen {
            Some(place) => self.choice(task, &self.candidates[place]),
            None => self.misses(task),
        };
        lines.push(self.spent_on(task));
        lines
    }

    fn choice(&self, task: &Task<'_>, chosen: &Candidate) -> Vec<String> {
        let (present, metric) = (&self.candidates[0], task.aim.metric.name);
        let named = |name: &str| format!("{name} {}", interval(chosen.metric(name)));
        let what: Vec<String> = task.aim.metrics().into_iter().map(named).collect();
        let set = changes(task, present, chosen);
        let take = if set.is_empty() { "the scenario as it is".to_owned() } else { set };
        let mut lines = vec![format!("take {take}: {}", what.join(", "))];
        if chosen.changes > 0 {
            lines.extend(self.against_the_present(task, present, chosen, metric));
        }
        for kept in &task.aim.constraints {
            let value = chosen.metric(kept.metric);
            if kept.is_unsure(value) {
                let said = interval(value);
                lines.push(format!("{kept} may be broken: it is {said}; more replications tell"));
            }
        }
        lines
    }

    /// What the choice brings over the scenario as it is.
    fn against_the_present(
        &self,
        task: &Task<'_>,
        present: &Candidate,
        chosen: &Candidate,
        metric: &str,
    ) -> Option<String> {
        if let Some(what) = &present.failed {
            return Some(format!("the scenario as it is {what}"));
        }
        let now = present.metric(metric)?;
        let gain = present.difference(chosen, metric)?;
        let clear = if gain.excludes_zero() { "" } else { " (which may be chance)" };
        let share = Estimate {
            mean: 100.0 * gain.mean / now.mean,
            half_width: gain.half_width.map(|half| 100.0 * half / now.mean),
            ..gain
        };
        let sign = if gain.mean < 0.0 { "" } else { "+" };
        let broken: Vec<String> = present
            .breaks(task.aim)
            .into_iter()
            .map(|place| {
                let kept = &task.aim.constraints[place];
                format!("{kept} with {}", interval(present.metric(kept.metric)))
            })
            .collect();
        let breaks = if broken.is_empty() {
            String::new()
        } else {
            format!(" and breaks {}", broken.join(", "))
        };
        let said = format!(
            "that is {sign}{} % {metric}{clear}, against the scenario as it is, which has {}{breaks}",
            number::interval(Some(share.mean), share.half_width),
            interval(Some(now)),
        );
        Some(said)
    }

    /// The nearest candidates where none keeps every constraint.
    fn misses(&self, task: &Task<'_>) -> Vec<String> {
        let all = task.replications as usize;
        let complete = |candidate: &&Candidate| {
            candidate.failed.is_none() && candidate.runs.len() >= all && candidate.same_as.is_none()
        };
        let mut near: Vec<&Candidate> = self.candidates.iter().filter(complete).collect();
        near.sort_by(|one, other| {
            let breach = |candidate: &Candidate| candidate.breach(task.aim, usize::MAX);
            breach(one).total_cmp(&breach(other))
        });
        let miss = |candidate: &Candidate, place: usize| {
            let kept = &task.aim.constraints[place];
            let value = candidate.metric(kept.metric);
            match kept.excess_of(value) {
                Some(excess) => {
                    let by = number::short(Some(excess));
                    format!("{kept}: it is {}, {by} beyond", interval(value))
                }
                None => format!("{kept}: it could not be measured"),
            }
        };
        let line = |candidate: &Candidate| {
            let broken = candidate.breaks(task.aim);
            let broken: Vec<String> =
                broken.into_iter().map(|place| miss(candidate, place)).collect();
            let set = changes(task, &self.candidates[0], candidate);
            let name = if set.is_empty() { "the scenario as it is".to_owned() } else { set };
            format!("{name} breaks {}", broken.join(", "))
        };
        let mut lines: Vec<String> =
            near.iter().take(MISSES).map(|candidate| line(candidate)).collect();
        lines.push(match near.first() {
            None => "nothing that was tried runs to its end".to_owned(),
            Some(nearest) => {
                let broken = nearest.breaks(task.aim);
                let distance = |place: &usize| {
                    let kept: &Constraint = &task.aim.constraints[*place];
                    kept.breach(nearest.metric(kept.metric))
                };
                let first = broken.iter().copied().reduce(|least, next| {
                    if distance(&next) < distance(&least) { next } else { least }
                });
                let which = first.map_or_else(String::new, |place| {
                    format!("; the nearest is {}", miss(nearest, place))
                });
                format!("nothing that was tried keeps every constraint{which}")
            }
        });
        lines
    }

    /// What was tried, and what it took.
    fn spent_on(&self, task: &Task<'_>) -> String {
        let grid = self.points.saturating_mul(u64::from(task.replications));
        let count = |value: u64| number::short(Some(value as f64));
        let share = 100.0 * self.runs as f64 / grid as f64;
        let unfit = match self.unfit {
            0 => String::new(),
            1 => "; 1 more that was tried does not fit the scenario".to_owned(),
            many => format!("; {many} more that were tried do not fit the scenario"),
        };
        let ended = if self.spent { "; the search ended with its runs" } else { "" };
        format!(
            "{} of {} combinations in {} runs, {} % of the whole grid's {}{unfit}{ended}",
            count(self.candidates.len() as u64),
            count(self.points),
            count(self.runs),
            number::short(Some(share)),
            count(grid)
        )
    }
}

/// What a candidate sets otherwise than the scenario: `η = 2, sync_mode = in_flight`.
fn changes(task: &Task<'_>, present: &Candidate, candidate: &Candidate) -> String {
    let values = task.axes.iter().zip(present.values.iter().zip(&candidate.values));
    let differing = values.filter(|(_, (now, value))| now != value);
    let words = differing.map(|(axis, (_, value))| setting(&axis.key, value));
    words.collect::<Vec<_>>().join(", ")
}

fn interval(value: Option<Estimate>) -> String {
    let half_width = value.and_then(|value| value.half_width);
    number::interval(value.map(|value| value.mean), half_width)
}
