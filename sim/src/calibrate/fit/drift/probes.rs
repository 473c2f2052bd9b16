//! Lag probes, and the stretches of training that they are in.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::model::{Cell, Model};
use super::{FitError, LEAST_PROBES, ProbePoint};
use crate::kernel::math::student_t_quantile;

/// Stretches are looked for among parts of so many probes.
const PROBES_OF_PART: usize = 8;
const MOST_PARTS: usize = 32;
/// Stretches are different where they would be so by chance in 1 of 100 cases.
const DIFFERENT: f64 = 0.995;

/// All probes, by step, their values by distance.
#[derive(Clone, Debug)]
pub(super) struct Probes {
    /// The distances, in order.
    pub(super) distances: Vec<f64>,
    steps: Vec<u32>,
    /// By probe, then distance: sums of weight times value and of weight.
    sums: Vec<Vec<[f64; 2]>>,
    /// Whether all values at distance 0 are exactly 0.
    pub(super) without_floor: bool,
}

impl Probes {
    pub(super) fn new(points: &[ProbePoint]) -> Result<Self, FitError> {
        for (index, point) in points.iter().enumerate() {
            let value = point.log_square;
            if !(0.0..=1e15).contains(&value) {
                return Err(FitError::NotASize { index, value });
            }
            let value = point.tokens;
            if !(f64::MIN_POSITIVE..=1e15).contains(&value) {
                return Err(FitError::NotASize { index, value });
            }
        }
        let distances: Vec<u32> =
            points.iter().map(|point| point.k).collect::<BTreeSet<_>>().into_iter().collect();
        let mut by_step: BTreeMap<u32, Vec<[f64; 2]>> = BTreeMap::new();
        for point in points {
            let sums = by_step.entry(point.step).or_insert_with(|| vec![[0.0; 2]; distances.len()]);
            if let Ok(at) = distances.binary_search(&point.k) {
                sums[at][0] += point.tokens * point.log_square;
                sums[at][1] += point.tokens;
            }
        }
        let near = points.iter().filter(|point| point.k == 0);
        let without_floor =
            near.clone().count() > 0 && near.clone().all(|point| point.log_square == 0.0);
        Ok(Self {
            distances: distances.into_iter().map(f64::from).collect(),
            steps: by_step.keys().copied().collect(),
            sums: by_step.into_values().collect(),
            without_floor,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn step(&self, probe: usize) -> u32 {
        self.steps[probe]
    }

    pub(super) fn require_distances(&self) -> Result<(), FitError> {
        let apart = self.distances.iter().filter(|&&k| k > 0.0).count();
        if apart < 2 || self.distances.len() < 3 {
            return Err(FitError::Undetermined(
                "lag probes at two distances above 0 and a third are needed to tell how drift grows",
            ));
        }
        let moves = |(k, sums): (&f64, &[f64; 2])| *k > 0.0 && sums[0] > 0.0;
        if !self.sums.iter().any(|probe| self.distances.iter().zip(probe).any(moves)) {
            return Err(FitError::Undetermined("no lag probe has any drift: all log-ratios are 0"));
        }
        Ok(())
    }

    /// The values of each stretch, as means by distance.
    pub(super) fn cells(&self, stretches: &[Range<usize>]) -> Vec<Vec<Cell>> {
        stretches.iter().map(|stretch| self.cells_of(stretch.clone())).collect()
    }

    /// Of these probes, of which some may be several times.
    pub(super) fn cells_of(&self, probes: impl Iterator<Item = usize>) -> Vec<Cell> {
        let mut sums = vec![[0.0; 2]; self.distances.len()];
        for probe in probes {
            for (sum, part) in sums.iter_mut().zip(&self.sums[probe]) {
                sum[0] += part[0];
                sum[1] += part[1];
            }
        }
        let used = |&(k, weight): &(f64, f64)| weight > 0.0 && !(self.without_floor && k == 0.0);
        self.distances
            .iter()
            .zip(sums)
            .filter(|(k, [_, weight])| used(&(**k, *weight)))
            .map(|(&k, [sum, weight])| Cell { k, value: sum / weight, weight })
            .collect()
    }

    /// Stretches of equal numbers of probes, joined where they are not clearly different, and then cut
    /// where they differ most.
    pub(super) fn stretches(&self, whole: &Model) -> Vec<Range<usize>> {
        let parts = (self.len() / PROBES_OF_PART).clamp(1, MOST_PARTS);
        let cut = |part: usize| part * self.len() / parts;
        let mut stretches: Vec<Range<usize>> =
            (0..parts).map(|part| cut(part)..cut(part + 1)).collect();
        let levels: Vec<f64> = (0..self.len()).map(|probe| self.level(probe, whole)).collect();
        while stretches.len() > 1 {
            let differences = stretches
                .windows(2)
                .map(|pair| difference(&levels[pair[0].clone()], &levels[pair[1].clone()]));
            let least =
                differences.enumerate().min_by(|(_, left), (_, right)| left.total_cmp(right));
            match least {
                Some((at, difference)) if difference <= 1.0 => {
                    stretches[at].end = stretches[at + 1].end;
                    stretches.remove(at + 1);
                }
                _ => break,
            }
        }
        for at in 1..stretches.len() {
            let both = stretches[at - 1].start..stretches[at].end;
            let cut = best_cut(&levels, both, stretches[at].start);
            (stretches[at - 1].end, stretches[at].start) = (cut, cut);
        }
        stretches
    }

    /// How far the values of a probe are above those of a stretch's fit: the mean of the logarithms,
    /// which does not depend on how many distances it has.
    fn level(&self, probe: usize, model: &Model) -> f64 {
        let sum = |(sum, count), level| (sum + level, count + 1.0);
        let (sum, count) = self.levels(probe, model, 0).fold((0.0, 0.0), sum);
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// The same of the least distance that the probe has. Those of large ones have steps in common with
    /// the probes beside it.
    pub(super) fn nearest_level(&self, probe: usize, model: &Model, stretch: usize) -> f64 {
        self.levels(probe, model, stretch).next().unwrap_or(0.0)
    }

    fn levels(&self, probe: usize, model: &Model, stretch: usize) -> impl Iterator<Item = f64> {
        let apart = self.distances.iter().zip(&self.sums[probe]);
        let apart = apart.filter(|(k, [_, weight])| **k > 0.0 && *weight > 0.0);
        apart.map(move |(&k, [value, weight])| {
            libm::log((value / weight).max(1e-30) / model.variance(stretch, k).max(1e-30))
        })
    }
}

/// Where to cut so that the values on each side are nearest to their mean, by least squares; at least
/// [`LEAST_PROBES`] remain on each. `cut` if nowhere else is better.
fn best_cut(levels: &[f64], both: Range<usize>, cut: usize) -> usize {
    // The squares about the means are least where the means are farthest apart, by their weights.
    let apart = |cut: usize| {
        let sum = |part: &[f64]| part.iter().fold(0.0, |sum, value| sum + value);
        let (left, right) = (&levels[both.start..cut], &levels[cut..both.end]);
        let squared = |part: &[f64]| sum(part) * sum(part) / part.len() as f64;
        squared(left) + squared(right)
    };
    let cuts = both.start + LEAST_PROBES..=both.end - LEAST_PROBES;
    cuts.fold(cut, |best, cut| if apart(cut) > apart(best) { cut } else { best })
}

/// Welch's t of two columns, as a part of what it would be by chance in 1 of 100 cases.
fn difference(left: &[f64], right: &[f64]) -> f64 {
    let mean =
        |values: &[f64]| values.iter().fold(0.0, |sum, value| sum + value) / values.len() as f64;
    let error = |values: &[f64]| {
        let mean = mean(values);
        let squares = values.iter().fold(0.0, |sum, value| sum + (value - mean) * (value - mean));
        let count = values.len() as f64;
        squares / ((count - 1.0) * count)
    };
    let (first, second) = (error(left), error(right));
    let spread = (first + second).max(1e-24);
    let freedom = spread * spread
        / (first * first / (left.len() as f64 - 1.0)
            + second * second / (right.len() as f64 - 1.0))
            .max(1e-60);
    let df = freedom.clamp(1.0, 1_000.0) as u32;
    (mean(left) - mean(right)).abs() / spread.sqrt() / student_t_quantile(DIFFERENT, df)
}
