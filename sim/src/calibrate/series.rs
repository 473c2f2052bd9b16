//! Values that were observed at a time, some of them only in part.

use headway_shared::time::{Span, Time};

/// A value, such as how long something took.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Observed {
    /// When it began.
    at: Time,
    value: f64,
    /// It had ended; else it is at least so large (it was cancelled, or the record ends before it).
    whole: bool,
}

/// Values in the order in which they were observed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series(Vec<Observed>);

/// What a [`Series`] says of the law that its values have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// The values; where some were observed in part, as many as were observed whole, at even steps
    /// of the law that Kaplan and Meier (1958) estimate: what was cut off lies beyond where it was
    /// cut.
    pub values: Vec<f64>,
    /// How many were observed in part.
    pub cut: usize,
}

impl Series {
    /// Adds one that was observed whole.
    pub fn push(&mut self, at: Time, value: f64) {
        self.0.push(Observed { at, value, whole: true });
    }

    /// Adds one that is at least so large.
    pub fn push_cut(&mut self, at: Time, value: f64) {
        self.0.push(Observed { at, value, whole: false });
    }

    /// Adds the time from `at` to `until`; `whole`: it ended then.
    pub fn push_span(&mut self, at: Time, until: Time, whole: bool) {
        let value = seconds(until.since(at));
        self.0.push(Observed { at, value, whole });
    }

    /// How many there are, from `since` on.
    #[must_use]
    pub fn count(&self, since: Time) -> usize {
        self.0.iter().filter(|observed| observed.at >= since).count()
    }

    /// The values of what began at `since` or later.
    #[must_use]
    pub fn values(&self, since: Time) -> Values {
        let of: Vec<Observed> =
            self.0.iter().copied().filter(|observed| observed.at >= since).collect();
        let cut = of.iter().filter(|observed| !observed.whole).count();
        let values = match cut {
            0 => of.iter().map(|observed| observed.value).collect(),
            _ => kaplan_meier(of, true).0,
        };
        Values { values, cut }
    }

    /// The same, where what lies beyond the largest value never ends: that share is given beside the
    /// values of the rest.
    #[must_use]
    pub fn values_that_end(&self, since: Time) -> (Values, f64) {
        let of: Vec<Observed> =
            self.0.iter().copied().filter(|observed| observed.at >= since).collect();
        let cut = of.iter().filter(|observed| !observed.whole).count();
        let (values, never) = kaplan_meier(of, false);
        (Values { values, cut }, never)
    }
}

/// Seconds of a span.
#[must_use]
pub fn seconds(span: Span) -> f64 {
    span.as_secs_f64()
}

/// As many values as were observed whole, at the middle of even steps of the estimated law, and the
/// share that lies beyond all of them. `to_the_end`: where the largest was observed in part, it counts
/// as whole (Efron 1967), since nothing larger is known; else the law is that of the rest.
fn kaplan_meier(mut of: Vec<Observed>, to_the_end: bool) -> (Vec<f64>, f64) {
    of.sort_by(|a, b| a.value.total_cmp(&b.value).then(b.whole.cmp(&a.whole)));
    let count = of.iter().filter(|observed| observed.whole).count();
    let (mut survival, mut at_risk) = (1.0, of.len() as f64);
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for observed in &of {
        if observed.whole {
            survival *= 1.0 - 1.0 / at_risk;
            steps.push((1.0 - survival, observed.value));
        }
        at_risk -= 1.0;
    }
    if let Some(last) = of.last().filter(|last| !last.whole && to_the_end) {
        steps.push((1.0, last.value));
        survival = 0.0;
    }
    let at = |index: usize| {
        let share = (index as f64 + 0.5) / count as f64 * (1.0 - survival);
        let place = steps.partition_point(|(until, _)| *until < share);
        steps.get(place).or(steps.last()).map(|(_, value)| *value)
    };
    ((0..count).filter_map(at).collect(), survival)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[(f64, bool)]) -> Values {
        let mut series = Series::default();
        for &(value, whole) in values {
            match whole {
                true => series.push(Time::ZERO, value),
                false => series.push_cut(Time::ZERO, value),
            }
        }
        series.values(Time::ZERO)
    }

    #[test]
    fn values_that_are_whole_stay_as_they_are() {
        let found = series(&[(3.0, true), (1.0, true), (2.0, true)]);
        assert_eq!(found, Values { values: vec![3.0, 1.0, 2.0], cut: 0 });
    }

    #[test]
    fn what_was_cut_off_counts_as_longer() {
        // 1 of 6 each at the ones; the two that are cut at 2 lie beyond, so that 3 and 4 count twice.
        let found = series(&[
            (1.0, true),
            (1.0, true),
            (2.0, false),
            (2.0, false),
            (3.0, true),
            (4.0, true),
        ]);
        assert_eq!(found.cut, 2);
        assert_eq!(found.values, [1.0, 3.0, 3.0, 4.0]);
    }

    #[test]
    fn an_exponential_law_that_is_cut_at_random_keeps_its_mean() {
        let number = |seed: u64| headway_shared::digest::mix(seed) as f64 / u64::MAX as f64;
        let exponential = |seed| -libm::log(number(seed).max(1e-12));
        let pairs: Vec<(f64, bool)> = (0..40_000)
            .map(|index| {
                let (value, limit) = (exponential(2 * index), 2.0 * exponential(2 * index + 1));
                (value.min(limit), value <= limit)
            })
            .collect();
        let naive = pairs.iter().filter(|pair| pair.1).map(|pair| pair.0);
        let (sum, count) = naive.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
        assert!(sum / count < 0.7, "what is left out is what is long");
        let found = series(&pairs).values;
        let mean = found.iter().fold(0.0, |sum, value| sum + value) / found.len() as f64;
        assert!((mean - 1.0).abs() < 0.03, "mean {mean}");
    }

    #[test]
    fn what_began_before_is_left_out() {
        let mut series = Series::default();
        series.push(Time::from_secs(1), 5.0);
        series.push_span(Time::from_secs(2), Time::from_secs(9), true);
        assert_eq!(series.values(Time::from_secs(2)).values, [7.0]);
        assert_eq!((series.count(Time::from_secs(2)), series.count(Time::ZERO)), (1, 2));
    }
}
