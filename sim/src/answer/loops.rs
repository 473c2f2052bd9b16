//! Which loop limits a run.

use super::{joined, percent, upper};
use crate::stats::Estimate;

/// A loop that stands idle for less than this share of the time limits: it is always at work.
pub const BUSY: f64 = 0.1;

/// From this share of the requests on, refusals by the staleness bound say that the bound limits.
const REFUSED: f64 = 0.1;

/// The loops, by the metric of their idle share.
const IDLE: [(&str, &str); 3] = [
    ("policy serving", "serving_idle_share"),
    ("reward judging", "judge_idle_share"),
    ("policy training", "trainer_idle_share"),
];

/// A loop with the share of the time that it stands idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loop {
    /// Its name.
    pub name: &'static str,
    /// The share.
    pub idle: Estimate,
}

/// What limits a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Loops {
    /// The loops whose idle share is known, from the busiest to the idlest.
    pub loops: Vec<Loop>,
    /// Share of the requests offered that the staleness bound refused.
    refused: Option<Estimate>,
}

impl Loops {
    /// From metrics by their names.
    pub fn of(metric: impl Fn(&str) -> Option<Estimate>) -> Self {
        let of = |(name, key): (&'static str, &str)| Some(Loop { name, idle: metric(key)? });
        let mut loops: Vec<Loop> = IDLE.into_iter().filter_map(of).collect();
        loops.sort_by(|one, other| one.idle.mean.total_cmp(&other.idle.mean));
        Self { loops, refused: metric("refused_stale_share") }
    }

    /// The loops that are always at work: of whose idle share the whole interval lies below [`BUSY`].
    #[must_use]
    pub fn busy(&self) -> Vec<Loop> {
        let is_busy = |idle: Estimate| idle.mean + idle.half_width.unwrap_or(0.0) < BUSY;
        self.loops.iter().copied().filter(|of| is_busy(of.idle)).collect()
    }

    /// What limits, in a sentence; `None`: nothing is known of the loops.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let first = self.loops.first()?;
        let busy = self.busy();
        let named = |of: &Loop| format!("{} (idle {} of the time)", of.name, percent(of.idle));
        match busy.as_slice() {
            [] => {}
            [one] => {
                let others = self.loops.iter().filter(|of| of.name != one.name);
                let others: Vec<String> =
                    others.map(|of| format!("{} {}", of.name, percent(of.idle))).collect();
                let others = match others.is_empty() {
                    true => String::new(),
                    false => format!("; the others stand idle more: {}", joined(&others)),
                };
                return Some(format!("{} limits{others}.", upper(&named(one))));
            }
            several => {
                let names: Vec<String> = several.iter().map(named).collect();
                let all = if several.len() > 2 { "all" } else { "both" };
                return Some(format!("{} are {all} at their limit.", upper(&joined(&names))));
            }
        }
        let least = format!("no loop is always at work; the busiest is {}", named(first));
        let bound = self.refused.filter(|share| share.mean >= REFUSED);
        Some(match bound {
            Some(share) => format!(
                "The staleness bound limits: {least}, while {} of the requests are refused because the \
                 bound leaves no room.",
                percent(share)
            ),
            None => format!("{}: they wait for each other, or for work.", upper(&least)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(idle: [f64; 3], half: f64, refused: f64) -> String {
        let keys = ["serving_idle_share", "judge_idle_share", "trainer_idle_share"];
        let metric = |key: &str| {
            let place = keys.iter().position(|known| *known == key);
            let mean = place.map_or(refused, |place| idle[place]);
            Some(Estimate { mean, half_width: Some(half), count: 8 })
        };
        Loops::of(metric).sentence().unwrap()
    }

    #[test]
    fn the_loop_that_never_rests_limits() {
        let said = said([0.734, 0.0, 0.705], 0.0, 0.877);
        assert!(said.starts_with("Reward judging (idle 0.0% of the time) limits"), "{said}");
        assert!(said.contains("policy training 70.5%"), "{said}");
    }

    #[test]
    fn two_that_never_rest_are_both_named() {
        let said = said([0.02, 0.5, 0.03], 0.01, 0.0);
        assert!(
            said.starts_with("Policy serving (idle 2.0 ±1.0% of the time) and policy training")
        );
        assert!(said.ends_with("are both at their limit."), "{said}");
    }

    #[test]
    fn an_interval_that_reaches_beyond_the_threshold_names_no_loop() {
        let said = said([0.09, 0.5, 0.6], 0.02, 0.0);
        assert!(said.starts_with("No loop is always at work"), "{said}");
    }

    #[test]
    fn where_all_wait_and_the_bound_refuses_the_bound_limits() {
        let said = said([0.8, 0.88, 0.79], 0.01, 0.909);
        assert!(
            said.starts_with("The staleness bound limits: no loop is always at work"),
            "{said}"
        );
        assert!(said.contains("90.9 ±1.0% of the requests"), "{said}");
    }

    #[test]
    fn of_nothing_nothing_is_said() {
        assert_eq!(Loops::of(|_| None).sentence(), None);
    }
}
