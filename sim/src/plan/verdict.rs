//! What a plan comes to, in words.

use headway_shared::config::GateKind;

use super::{Gain, NO_BOUND, Planning, Simulated, Task};
use crate::report::number;
use crate::scenario::Layout;
use crate::stats::Estimate;

/// The loops by the metric of their idle share.
const IDLE: [(&str, &str); 3] = [
    ("serving", "serving_idle_share"),
    ("judge", "judge_idle_share"),
    ("trainer", "trainer_idle_share"),
];

/// Nearest misses that are named where nothing keeps every constraint.
const MISSES: usize = 3;

impl Planning {
    /// What it comes to; the last three lines say what to take, what limits it, and what one more
    /// GPU brings.
    #[must_use]
    pub fn verdict(&self, task: &Task<'_>) -> Vec<String> {
        let Some(chosen) = self.chosen.map(|place| &self.options[place]) else {
            return self.misses(task);
        };
        let mut lines: Vec<String> = self.asynchrony(task).into_iter().collect();
        for constraint in &self.constraints {
            let value = chosen.metric(constraint.metric);
            if constraint.is_unsure(value) {
                let said = interval(value);
                lines.push(format!(
                    "{constraint} may be broken: it is {said}; more replications tell"
                ));
            }
        }
        let cost = cost(task, chosen.effective);
        lines.push(format!(
            "take {}: {} samples/h, staleness {}, {cost} per 1,000 samples",
            named(task, chosen),
            interval(chosen.effective),
            interval(chosen.metric("staleness_head_mean")),
        ));
        lines.push(self.bottleneck(chosen));
        lines.push(format!("one more GPU: {}", self.more()));
        lines
    }

    /// The loop that limits the chosen point: where one more GPU brings most, if that is clear.
    fn bottleneck(&self, chosen: &Simulated) -> String {
        let worth = |gain: &Gain| gain.per_gpu.map_or(0.0, |gain| gain.mean);
        let clear = self.gains.iter().filter(|gain| gain.is_clear());
        let most = clear.reduce(|most, gain| if worth(gain) > worth(most) { gain } else { most });
        let idle = |(name, metric): (&'static str, &str)| Some((name, chosen.metric(metric)?.mean));
        let judged_elsewhere = chosen.candidate.split.judge_gpus() == 0;
        let loops = IDLE.into_iter().filter(|(name, _)| !judged_elsewhere || *name != "judge");
        let busiest = loops.filter_map(idle).reduce(
            |least, next| {
                if next.1 < least.1 { next } else { least }
            },
        );
        let least = busiest.map_or_else(String::new, |(name, share)| {
            format!("{name} is least idle ({})", number::percent(Some(share)))
        });
        match most {
            Some(gain) if chosen.candidate.split.layout == Layout::Disaggregated => {
                format!(
                    "bottleneck: {}, where one more GPU brings most; {least}",
                    gain.place.word()
                )
            }
            Some(_) => format!("bottleneck: {}, {least}", busiest.map_or("none", |(name, _)| name)),
            None => format!("bottleneck: none that one more GPU would clearly relieve; {least}"),
        }
    }

    /// What one more GPU brings in each place.
    fn more(&self) -> String {
        let gain = |gain: &Gain| {
            let share = |value: f64| number::text((value * 1e4).round() / 100.0);
            let text = gain.per_gpu.map_or_else(
                || "-".to_owned(),
                |per_gpu| {
                    let sign = if per_gpu.mean < 0.0 { "" } else { "+" };
                    let half = per_gpu
                        .half_width
                        .map_or_else(String::new, |half| format!(" ±{}", share(half)));
                    format!("{sign}{}%{half}", share(per_gpu.mean))
                },
            );
            format!("{} {text}", gain.place.word())
        };
        self.gains.iter().map(gain).collect::<Vec<_>>().join(", ")
    }

    /// The best of a layout.
    fn best_of(&self, layout: Layout) -> Option<&Simulated> {
        let of = self.options.iter().filter(|option| option.candidate.split.layout == layout);
        of.filter(|option| option.is_fit())
            .reduce(|best, next| if next.rate() > best.rate() { next } else { best })
    }

    /// Whether asynchronous splits are worth it, where both kinds were tried.
    fn asynchrony(&self, task: &Task<'_>) -> Option<String> {
        let split = self.best_of(Layout::Disaggregated)?;
        let shared = self.best_of(Layout::TimeShared)?;
        let gain = shared.gain_of(split)?;
        let share = |value: f64| number::percent(Some((value / shared.rate()).abs()));
        let gpus = task.gpus;
        let half = gain.half_width.map_or_else(String::new, |half| format!(" ±{}", share(half)));
        let how = match (gain.excludes_zero(), gain.mean > 0.0) {
            (false, _) => "about as fast as".to_owned(),
            (true, true) => format!("faster, by {}{half}, than", share(gain.mean)),
            (true, false) => format!("slower, by {}{half}, than", share(gain.mean)),
        };
        let name = named(task, split);
        Some(format!("on {gpus} GPUs, {name} is {how} time-shared synchronous training"))
    }

    /// The nearest points where none keeps every constraint.
    fn misses(&self, task: &Task<'_>) -> Vec<String> {
        let mut near: Vec<&Simulated> =
            self.options.iter().filter(|option| option.failed.is_none()).collect();
        near.sort_by(|one, other| {
            let breach = |option: &Simulated| option.breach(&self.constraints);
            breach(one).total_cmp(&breach(other))
        });
        let line = |option: &&Simulated| {
            let broken = |&place: &usize| {
                let constraint = &self.constraints[place];
                format!("{constraint}: it is {}", interval(option.metric(constraint.metric)))
            };
            let broken: Vec<String> = option.breaks.iter().map(broken).collect();
            let why = if broken.is_empty() { "trains nothing".into() } else { broken.join(", ") };
            format!("{} breaks {why}", named(task, option))
        };
        let mut lines: Vec<String> = near.iter().take(MISSES).map(line).collect();
        lines.push(if near.is_empty() {
            "no split runs to its end".into()
        } else {
            "no split keeps every constraint; the nearest are named above".into()
        });
        lines
    }
}

/// A split with what is tried at it: `40 serving + 24 trainer GPUs at η = 4`.
fn named(task: &Task<'_>, option: &Simulated) -> String {
    let candidate = &option.candidate;
    let set: Vec<String> = task
        .axes
        .iter()
        .zip(&candidate.values)
        .filter(|(_, value)| *value != NO_BOUND)
        .map(|(axis, value)| setting(&axis.key, value))
        .collect();
    let words = candidate.split.words();
    if !set.is_empty() {
        return format!("{words} at {}", set.join(", "));
    }
    let training = &candidate.planned.scenario.config.policy_training;
    match training.gate {
        GateKind::Headway | GateKind::Areal => {
            format!("{words} at η = {}", training.max_head_off_policyness)
        }
        _ => words,
    }
}

/// `η = 4`
pub(crate) fn setting(key: &str, value: &str) -> String {
    match key.rsplit('.').next() {
        Some("max_head_off_policyness") => format!("η = {value}"),
        last => format!("{} = {value}", last.unwrap_or(key)),
    }
}

fn interval(value: Option<Estimate>) -> String {
    let half_width = value.and_then(|value| value.half_width);
    number::interval(value.map(|value| value.mean), half_width)
}

/// What a thousand samples cost, with their unit.
fn cost(task: &Task<'_>, effective: Option<Estimate>) -> String {
    let price = task.scenario.plan.price_per_gpu_hour;
    let hours = effective.map(|effective| f64::from(task.gpus) * 1000.0 / effective.mean);
    if price > 0.0 {
        return format!("{} of money", number::short(hours.map(|hours| hours * price)));
    }
    format!("{} GPU-hours", number::short(hours))
}
