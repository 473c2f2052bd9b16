//! What differs between a run and its golden, and how it is told.

use std::fmt::Write;

use headway_shared::action::Action;
use headway_shared::core::{Deliberation, State};
use headway_shared::describe;
use headway_shared::id::SampleId;
use headway_shared::input::Input;
use headway_shared::metrics::{Kind, Summary};
use headway_shared::time::Time;
use serde_json::{Value, json};

use super::golden::Golden;
use crate::report::number;

/// Metrics that are shown, if fewer are beyond noise.
const MOST_METRICS: usize = 12;

/// In what a run first differs from what was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The same input leads to other actions.
    Decision,
    /// All decisions were the same, and yet another input comes, or at another time: the world has
    /// changed.
    World,
    /// The run goes on where it had ended.
    Longer,
    /// The run has ended where it had gone on.
    Shorter,
    /// It is one of some inputs of which no actions were kept.
    Block,
}

/// What was decided on an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The actions.
    pub actions: Vec<Action>,
    /// The samples of the step that one of them starts, in batch order.
    pub batch: Vec<SampleId>,
}

/// The first difference between two runs.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// The input, counted from 0; the first that can be meant.
    pub from: u64,
    /// The last that can be meant.
    pub to: u64,
    /// What differs.
    pub how: How,
    /// When it is now.
    pub at: Time,
    /// The input as it is now; `None`: there is none.
    pub input: Option<Input>,
    /// What was accepted; `None`: that is not known.
    pub old: Option<Taken>,
    /// What is decided now.
    pub new: Taken,
    /// The core before it.
    pub before: State,
    /// What the request met, if the input is one.
    pub met: Option<Deliberation>,
}

/// A metric that is no longer what it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// Its name.
    pub name: String,
    /// What sort of number it is; `None`: there is no such metric any more.
    pub kind: Option<Kind>,
    /// As it was accepted.
    pub old: Option<f64>,
    /// As it is now.
    pub new: Option<f64>,
    /// Half the width of the interval in which another replication of what was accepted lies.
    pub noise: Option<f64>,
}

/// All that differs.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The first decision that differs, if any does.
    pub divergence: Option<Divergence>,
    /// The metrics that moved.
    pub moved: Vec<Moved>,
    /// Inputs, accepted and now.
    pub inputs: (u64, u64),
    /// The digest of all decisions, accepted and now.
    pub digest: (String, String),
    /// Why the run ended, accepted and now.
    pub ended: (String, String),
    /// The seed, accepted and now.
    pub seed: (u64, u64),
    /// The scenario, or the default of a key, is another than when it was accepted.
    pub scenario_changed: bool,
    /// The decision version, accepted and now.
    pub decision_version: (u32, u32),
}

/// The metrics of a golden that have other values now. Metrics that are new are no difference.
pub(super) fn moved(golden: &Golden, summary: &Summary) -> Vec<Moved> {
    let moved = |(name, _): (&String, &Value)| {
        let (old, noise) = golden.metric(name)?;
        let now = summary.values().find(|(metric, _)| metric.name == name);
        // Both as they are written, so that they compare as they read.
        let new = now.and_then(|(_, value)| number::json(value).as_f64());
        let kind = now.map(|(metric, _)| metric.kind);
        let same = old == new && kind.is_some();
        (!same).then(|| Moved { name: name.clone(), kind, old, new, noise })
    };
    golden.metrics.0.iter().filter_map(moved).collect()
}

impl Moved {
    /// By how much.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        Some(self.new? - self.old?)
    }

    /// Whether that is more than another replication could differ; `None`: nobody knows.
    #[must_use]
    pub fn is_beyond_noise(&self) -> Option<bool> {
        Some(self.change()?.abs() > self.noise?)
    }

    /// Whether it moved by at most so much: a share of what was accepted, or, where it is a share
    /// itself, of the whole.
    #[must_use]
    pub fn is_within(&self, tolerance: f64) -> bool {
        let (Some(change), Some(old)) = (self.change(), self.old) else { return false };
        let whole = if self.kind == Some(Kind::Share) { 1.0 } else { old.abs() };
        change.abs() <= tolerance * whole
    }

    fn row(&self) -> [String; 5] {
        let text = |value: Option<f64>| match value {
            Some(value) => number::text(value),
            None => "-".to_owned(),
        };
        let change = self.change().map_or_else(String::new, |change| {
            let sign = if change > 0.0 { "+" } else { "" };
            let share = self.old.filter(|old| *old != 0.0).map(|old| change / old.abs());
            let share = share.map_or_else(String::new, |share| {
                let sign = if share > 0.0 { "+" } else { "" };
                format!(" ({sign}{})", number::percent(Some(share)))
            });
            format!("{sign}{}{share}", number::short(Some(change)))
        });
        let beyond = match self.is_beyond_noise() {
            Some(true) => "beyond noise",
            Some(false) => "within noise",
            None => "",
        };
        [self.name.clone(), text(self.old), text(self.new), change, beyond.to_owned()]
    }
}

impl Difference {
    /// Every metric that moved did so by at most so much.
    #[must_use]
    pub fn is_within(&self, tolerance: f64) -> bool {
        self.moved.iter().all(|moved| moved.is_within(tolerance)) && self.ended.0 == self.ended.1
    }

    /// In a line.
    #[must_use]
    pub fn summary(&self) -> String {
        let decisions = match &self.divergence {
            Some(Divergence { from, at, how: How::Block, to, .. }) => {
                format!("decisions differ, first between inputs {from} and {to}, after {at}")
            }
            Some(Divergence { from, at, .. }) => {
                format!("decisions differ, first at input {from}, {at}")
            }
            None if self.digest.0 != self.digest.1 => "decisions differ".to_owned(),
            None => "the same decisions".to_owned(),
        };
        let beyond = self.moved.iter().filter(|moved| moved.is_beyond_noise() == Some(true));
        match (self.moved.len(), beyond.count()) {
            (0, _) => format!("{decisions}; no metric moved"),
            (1, beyond) => format!("{decisions}; 1 metric moved, {beyond} beyond noise"),
            (count, beyond) => format!("{decisions}; {count} metrics moved, {beyond} beyond noise"),
        }
    }

    /// Everything, to read; a line each, without an indent.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.seed.0 != self.seed.1 {
            let _ = writeln!(text, "the seed is {}, and was {}", self.seed.1, self.seed.0);
        }
        if self.scenario_changed {
            text += "the scenario is another than was accepted: its file, its data, or a default\n";
        }
        if self.decision_version.0 != self.decision_version.1 {
            let (old, new) = self.decision_version;
            let _ = writeln!(text, "decision version {new} decides, and {old} was accepted");
        }
        if let Some(divergence) = &self.divergence {
            divergence.tell(&mut text);
        }
        if self.ended.0 != self.ended.1 {
            let _ =
                writeln!(text, "the run ends by: {}, and did by: {}", self.ended.1, self.ended.0);
        }
        if self.inputs.0 != self.inputs.1 {
            let _ = writeln!(text, "inputs: {}, and were {}", self.inputs.1, self.inputs.0);
        }
        if self.moved.is_empty() {
            return text + "no metric moved\n";
        }
        text += "metrics that moved:\n";
        let head = ["metric", "accepted", "now", "change", ""].map(str::to_owned);
        // What is more than chance comes first; of the rest a few will do.
        let mut shown: Vec<&Moved> = self.moved.iter().collect();
        shown.sort_by_key(|moved| moved.is_beyond_noise() == Some(false));
        let beyond = shown.iter().filter(|moved| moved.is_beyond_noise() != Some(false)).count();
        let hidden = shown.split_off(shown.len().min(beyond.max(MOST_METRICS)));
        let rows: Vec<[String; 5]> =
            std::iter::once(head).chain(shown.into_iter().map(Moved::row)).collect();
        let width =
            |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 5] = std::array::from_fn(width);
        for [name, old, new, change, beyond] in &rows {
            let [w0, w1, w2, w3, _] = widths;
            let line = format!("  {name:<w0$}  {old:>w1$}  {new:>w2$}  {change:>w3$}  {beyond}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        if !hidden.is_empty() {
            let _ = writeln!(text, "  and {} more, within noise", hidden.len());
        }
        text
    }

    /// The same for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let metric = |moved: &Moved| {
            json!({
                "metric": moved.name,
                "accepted": number::json(moved.old),
                "now": number::json(moved.new),
                "change": number::json(moved.change()),
                "noise": number::json(moved.noise),
                "beyond_noise": moved.is_beyond_noise(),
            })
        };
        json!({
            "seed": { "accepted": self.seed.0, "now": self.seed.1 },
            "scenario_changed": self.scenario_changed,
            "decision_version": {
                "accepted": self.decision_version.0, "now": self.decision_version.1,
            },
            "inputs": { "accepted": self.inputs.0, "now": self.inputs.1 },
            "digest": { "accepted": self.digest.0, "now": self.digest.1 },
            "ended": { "accepted": self.ended.0, "now": self.ended.1 },
            "first": self.divergence.as_ref().map(Divergence::json),
            "metrics": self.moved.iter().map(metric).collect::<Vec<_>>(),
        })
    }
}

impl Divergence {
    /// In lines.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.tell(&mut text);
        text
    }

    fn tell(&self, text: &mut String) {
        let Self { from, to, at, how, .. } = self;
        let _ = match how {
            How::Decision => {
                writeln!(text, "the first decision that differs: input {from} at {at}")
            }
            How::World => writeln!(
                text,
                "the same decisions up to input {from} at {at}, which is another than was accepted, or \
                 comes at another time: the simulated world has changed, not a rule of the core"
            ),
            How::Longer => writeln!(text, "the run goes on at input {from}, where it had ended"),
            How::Shorter => writeln!(text, "the run has ended before input {from}, which it had"),
            How::Block => writeln!(
                text,
                "the first decision that differs is between inputs {from} and {to}, after {at}; their \
                 actions were not kept: accept once, with the build before the change, with a \
                 --log-inputs above {to}"
            ),
        };
        if *how != How::Block {
            if let Some(input) = &self.input {
                let _ = writeln!(text, "  input: {}", describe::input(input));
            }
            if let Some(old) = &self.old {
                old.tell(text, "accepted", "-", &self.new);
                self.new.tell(text, "now", "+", old);
            } else if self.input.is_some() {
                self.new.tell(text, "now", "+", &self.new);
            }
        }
        if let Some(met) = &self.met {
            text.push_str("  what the request meets now:\n");
            indented(text, &describe::deliberation(met));
        }
        text.push_str("  the state before it:\n");
        text.push_str(&describe::state(&self.before, "    "));
    }

    fn json(&self) -> Value {
        let how = match self.how {
            How::Decision => "decision",
            How::World => "world",
            How::Longer => "longer",
            How::Shorter => "shorter",
            How::Block => "block",
        };
        json!({
            "how": how,
            "from_input": self.from,
            "to_input": self.to,
            "time_sec": number::json(Some(self.at.as_secs_f64())),
            "input": self.input.as_ref().map(describe::input),
            "accepted": self.old.as_ref().map(Taken::lines),
            "now": self.new.lines(),
            "state": serde_json::to_value(&self.before).unwrap_or_default(),
        })
    }
}

impl Taken {
    /// In lines; those that the other has at the same place are only context.
    fn tell(&self, text: &mut String, side: &str, mark: &str, other: &Self) {
        let (ours, theirs) = (self.lines(), other.lines());
        if ours.is_empty() {
            let _ = writeln!(text, "  {side}: no action");
            return;
        }
        let _ = writeln!(text, "  {side}:");
        for (place, line) in ours.iter().enumerate() {
            let mark = if theirs.get(place) == Some(line) { " " } else { mark };
            let _ = writeln!(text, "  {mark} {line}");
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for action in &self.actions {
            lines.push(describe::action(action));
            if matches!(action, Action::StartStep { .. }) && !self.batch.is_empty() {
                let ids: Vec<String> =
                    self.batch.iter().map(|sample| sample.0.to_string()).collect();
                lines.push(format!("  of the samples {}", ids.join(", ")));
            }
        }
        lines
    }
}

fn indented(text: &mut String, lines: &str) {
    for line in lines.lines() {
        let _ = writeln!(text, "    {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(kind: Kind, old: f64, new: f64, noise: Option<f64>) -> Moved {
        Moved { name: "m".into(), kind: Some(kind), old: Some(old), new: Some(new), noise }
    }

    #[test]
    fn shares_may_move_by_points_and_others_by_a_share_of_themselves() {
        assert!(metric(Kind::Rate, 100.0, 104.0, None).is_within(0.05));
        assert!(!metric(Kind::Rate, 100.0, 106.0, None).is_within(0.05));
        assert!(metric(Kind::Share, 0.0, 0.04, None).is_within(0.05));
        assert!(!metric(Kind::Rate, 0.0, 0.04, None).is_within(0.05));
        let gone = Moved { kind: None, new: None, ..metric(Kind::Rate, 1.0, 1.0, None) };
        assert!(!gone.is_within(1.0), "what is gone is within nothing");
    }

    #[test]
    fn noise_is_what_another_replication_could_differ_by() {
        assert_eq!(metric(Kind::Rate, 1.0, 3.0, Some(1.5)).is_beyond_noise(), Some(true));
        assert_eq!(metric(Kind::Rate, 1.0, 2.0, Some(1.5)).is_beyond_noise(), Some(false));
        assert_eq!(metric(Kind::Rate, 1.0, 2.0, None).is_beyond_noise(), None);
        let row = metric(Kind::Rate, 50.0, 55.0, Some(1.0)).row();
        assert_eq!(row.map(|cell| cell), ["m", "50", "55", "+5 (+10.0%)", "beyond noise"]);
    }
}
