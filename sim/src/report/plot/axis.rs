//! Axes: ranges and ticks on round numbers.

use crate::report::number;

/// Letters of tick names that have room side by side.
pub(crate) const LETTERS: usize = 92;

/// One axis of a panel.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What it shows, with its unit.
    pub(crate) label: String,
    /// Its label is not drawn: a title says it.
    pub(crate) bare: bool,
    /// Its ends.
    pub(crate) range: (f64, f64),
    /// Where it is marked, and with what.
    pub(crate) ticks: Vec<(f64, String)>,
    /// What its numbers stand for.
    pub(crate) form: Form,
}

/// What the numbers of an axis stand for.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// Themselves.
    Number,
    /// Shares of 1.
    Share,
    /// Logarithms of ratios.
    Ratio,
    /// Places that have names.
    Places(Vec<String>),
}

impl Axis {
    /// From zero to a round number above `highest`, with at most `most` steps.
    pub(crate) fn from_zero(label: &str, highest: f64, most: u32) -> Axis {
        // Of nothing at all, an axis to 1.
        let highest = if highest.is_finite() && highest > 0.0 { highest } else { 1.0 };
        let step = nice_step(highest, most);
        let steps = libm::ceil(highest / step - 1e-9).max(1.0);
        let ticks = (0..=steps as u32).map(|tick| f64::from(tick) * step);
        Axis {
            label: label.into(),
            range: (0.0, steps * step),
            ticks: ticks.map(|at| (at, number::short(Some(at)))).collect(),
            form: Form::Number,
            bare: false,
        }
    }

    /// From zero to exactly `end`, marked on round numbers.
    pub(crate) fn until(label: &str, end: f64, most: u32) -> Axis {
        let mut axis = Axis::from_zero(label, end, most);
        axis.ticks.retain(|(at, _)| *at <= end * (1.0 + 1e-9));
        axis.range.1 = if end > 0.0 { end } else { 1.0 };
        axis
    }

    /// Logarithms of ratios, marked with the ratios: from below `low` to above `high`, which lie on
    /// both sides of 1.
    pub(crate) fn ratios(label: &str, low: f64, high: f64) -> Axis {
        let (low, high) = (low.max(1e-6), high.clamp(1.0, 1e12));
        let marks = if high / low < 2.0 { even_marks(low, high) } else { round_marks(low, high) };
        let ticks: Vec<(f64, String)> =
            marks.into_iter().map(|at| (libm::log(at), number::short(Some(at)))).collect();
        let range = (ticks[0].0, ticks[ticks.len() - 1].0);
        // What lies side by side needs room for its name.
        let room = (range.1 - range.0) / 14.0;
        let (mut kept, last): (Vec<(f64, String)>, usize) = (Vec::new(), ticks.len() - 1);
        for (place, tick) in ticks.into_iter().enumerate() {
            let apart = kept.last().is_none_or(|before| tick.0 - before.0 >= room);
            if apart || place == last || tick.1 == "1" {
                kept.retain(|before| tick.0 - before.0 >= room || before.1 == "1");
                kept.push(tick);
            }
        }
        Axis { label: label.into(), range, ticks: kept, form: Form::Ratio, bare: false }
    }

    /// A share from 0 to 100%.
    pub(crate) fn share(label: &str) -> Axis {
        let ticks = [0.0, 0.25, 0.5, 0.75, 1.0];
        let ticks = ticks.map(|at| (at, format!("{}%", number::text(at * 100.0))));
        let ticks = ticks.to_vec();
        let label = label.into();
        Axis { label, range: (0.0, 1.0), ticks, form: Form::Share, bare: false }
    }

    /// One place per name, evenly spaced: place `i` is at `i`. Where there is no room for all
    /// names, numbers are left out and words are cut.
    pub(crate) fn places(label: &str, names: &[String]) -> Axis {
        let are_numbers = names.iter().all(|name| number::parse(name).is_some());
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let step = if are_numbers { (names.len() * (longest + 2)).div_ceil(LETTERS) } else { 1 };
        let room = if are_numbers { longest } else { LETTERS / names.len().max(1) };
        let ticks = names.iter().enumerate().step_by(step.max(1));
        let end = names.len() as f64 - 0.5;
        Axis {
            label: label.into(),
            range: (-0.5, end),
            ticks: ticks.map(|(place, name)| (place as f64, cut(name, room))).collect(),
            form: Form::Places(names.to_vec()),
            bare: false,
        }
    }

    /// Whole numbers from 0 to `highest`, each with half a place on both sides.
    pub(crate) fn counts(label: &str, highest: u32, most: u32) -> Axis {
        let step = libm::ceil(nice_step(f64::from(highest.max(1)), most)) as usize;
        let ticks = (0..=highest).step_by(step).map(|at| (f64::from(at), at.to_string()));
        let end = f64::from(highest) + 0.5;
        let (label, range) = (label.into(), (-0.5, end));
        Axis { label, range, ticks: ticks.collect(), form: Form::Number, bare: false }
    }

    /// The same axis, whose label is said and not drawn.
    pub(crate) fn without_label(self) -> Axis {
        Axis { bare: true, ..self }
    }

    /// The label as it is drawn.
    pub(crate) fn drawn(&self) -> &str {
        if self.bare { "" } else { &self.label }
    }

    /// A place on it, in words.
    pub(crate) fn place(&self, at: f64) -> String {
        match &self.form {
            Form::Places(names) => {
                let name = names.get(libm::round(at.max(0.0)) as usize);
                name.cloned().unwrap_or_default()
            }
            _ => self.value(at, None),
        }
    }

    /// A value on it with the half-width of its interval, in words.
    pub(crate) fn value(&self, value: f64, half: Option<f64>) -> String {
        let half = half.filter(|half| *half > 0.0);
        match &self.form {
            Form::Number | Form::Places(_) => number::interval(Some(value), half),
            Form::Share => {
                let percent = number::interval(Some(value * 100.0), half.map(|half| half * 100.0));
                format!("{percent}%")
            }
            Form::Ratio => {
                let ratio = libm::exp(value);
                match half {
                    // A half-width on the logarithmic axis is a share of the ratio.
                    Some(half) => number::interval(Some(ratio), Some(ratio * half)),
                    None => number::ratio(Some(ratio)),
                }
            }
        }
    }

    /// The number that a value on it stands for, as CSV has it.
    pub(crate) fn raw(&self, value: f64) -> String {
        match &self.form {
            Form::Ratio => number::text(libm::exp(value)),
            _ => number::text(value),
        }
    }
}

/// Evenly spaced ratios from below `low` to above `high`.
fn even_marks(low: f64, high: f64) -> Vec<f64> {
    let step = nice_step((high - low).max(1e-4), 7);
    let first = libm::floor((low - 1.0) / step + 1e-9);
    let last = libm::ceil((high - 1.0) / step - 1e-9).max(first + 1.0);
    (0..=(last - first) as u32).map(|mark| 1.0 + (first + f64::from(mark)) * step).collect()
}

/// Round ratios from below `low` to above `high`.
fn round_marks(low: f64, high: f64) -> Vec<f64> {
    const ROUND: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];
    let all: Vec<f64> = (-6..=12)
        .flat_map(|power| ROUND.map(|round| round * libm::pow(10.0, f64::from(power))))
        .collect();
    let first = all.iter().rposition(|mark| *mark <= low * (1.0 + 1e-9)).unwrap_or(0);
    let last = all.iter().position(|mark| *mark >= high * (1.0 - 1e-9)).unwrap_or(all.len() - 1);
    all[first..=last.max(first + 1)].to_vec()
}

/// A name of at most `room` letters.
pub(crate) fn cut(name: &str, room: usize) -> String {
    if name.chars().count() <= room {
        return name.into();
    }
    name.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

/// 1, 2 or 5 times a power of ten, so that `most` steps reach `highest`.
fn nice_step(highest: f64, most: u32) -> f64 {
    let raw = highest / f64::from(most.max(1));
    let power = libm::pow(10.0, libm::floor(libm::log10(raw)));
    let mantissa = raw / power;
    let round = [1.0, 2.0, 5.0].into_iter().find(|&round| mantissa <= round * (1.0 + 1e-9));
    power * round.unwrap_or(10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn ticks_lie_on_round_numbers_above_the_highest_value() {
        assert_eq!(names(&Axis::from_zero("", 0.93, 5)), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(names(&Axis::from_zero("", 1234.0, 4)), ["0", "500", "1,000", "1,500"]);
        assert_eq!(names(&Axis::from_zero("", 4.0, 4)), ["0", "1", "2", "3", "4"]);
    }

    #[test]
    fn ratios_are_marked_where_they_are_round_and_reach_beyond_both_ends() {
        let near_one = Axis::ratios("", 0.985, 1.12);
        assert_eq!(names(&near_one), ["0.98", "1", "1.02", "1.04", "1.06", "1.08", "1.1", "1.12"]);
        let wide = Axis::ratios("", 0.9, 38.0);
        assert!(wide.range.0 <= libm::log(0.9) && wide.range.1 >= libm::log(38.0));
        assert!(names(&wide).contains(&"1") && names(&wide).len() < 12, "{:?}", names(&wide));
        assert!(Axis::ratios("", 1.0, 1.0).range.1 > 0.0);
    }

    #[test]
    fn an_axis_of_nothing_still_has_a_range() {
        let axis = Axis::from_zero("", 0.0, 5);
        assert!(axis.range.1 > 0.0);
        assert!(Axis::from_zero("", f64::NAN, 5).range.1 > 0.0);
    }

    #[test]
    fn names_without_room_are_left_out_or_cut() {
        let numbers: Vec<String> = (0..100).map(|number: u32| number.to_string()).collect();
        let axis = Axis::places("", &numbers);
        assert!(axis.ticks.len() <= 25 && axis.ticks[1].1 == axis.ticks[1].0.to_string());
        let words = vec!["a-case-with-a-rather-long-name".to_owned(); 6];
        assert_eq!(names(&Axis::places("", &words))[5], "a-case-with-a-…");
    }

    #[test]
    fn counts_are_marked_on_whole_numbers() {
        assert_eq!(names(&Axis::counts("", 3, 10)), ["0", "1", "2", "3"]);
        assert_eq!(names(&Axis::counts("", 23, 6)), ["0", "5", "10", "15", "20"]);
    }
}
