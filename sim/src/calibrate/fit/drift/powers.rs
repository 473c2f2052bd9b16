//! How far stretches of training differ in the power `p`.

use headway_shared::digest::Digest;

use super::model::{Cell, Model};
use super::resample::{BLOCKS, interval};
use crate::calibrate::fit::Parameter;
use crate::kernel::random::{Component, Key};
use crate::stats::variance;

/// A power of its own for each stretch.
///
/// What a stretch tells by itself is drawn towards the common power, by how uncertain it is beside how
/// much stretches differ: `p = w p_own + (1 - w) p_common` with `w = t² / (t² + s²)`, `s` being the
/// standard error of `p_own` and `t²` the variance between stretches, as for the effects of several trials (DerSimonian and
/// Laird, *Controlled Clinical Trials* 7, 1986).
pub(super) struct Powers {
    /// By stretch.
    pub(super) values: Vec<f64>,
    /// By stretch and resample.
    pub(super) resampled: Vec<Vec<f64>>,
}

impl Powers {
    /// From the cells of all stretches, from those of resamples, and from the fits with one power to these.
    /// `None`: the stretches do not differ by more than chance, or no two of them tell a power.
    pub(super) fn of(
        whole: &[Vec<Cell>],
        drawn: &[Vec<Vec<Cell>>],
        models: &[Model],
        fitted: &Model,
    ) -> Option<Self> {
        // One that is at rest tells nothing.
        let tells = |at: usize| {
            let apart = whole[at].iter().filter(|cell| cell.k > 0.0).count();
            apart > 1 && fitted.a[at] > fitted.least
        };
        let own: Vec<Option<Own>> = (0..whole.len())
            .map(|at| {
                tells(at).then(|| {
                    let again = models.iter().zip(drawn);
                    Own::new(
                        fitted.of_stretch(at, &whole[at]).p,
                        again.map(|(model, cells)| model.of_stretch(at, &cells[at]).p).collect(),
                    )
                })
            })
            .collect();
        let between = between(own.iter().flatten())?;
        let root = between.sqrt();
        let key = Key::new(0, Digest::of(b"powers"), 0);
        let (mut values, mut resampled) = (Vec::new(), Vec::new());
        for (at, own) in own.iter().enumerate() {
            // How much of its own it keeps. A resample has another common power, and the stretch another
            // distance from that: so the spread of what comes of it is that of what is known of `p`.
            let weight = own.as_ref().map_or(0.0, |own| between / (between + own.square));
            let mixed = |own: f64, common: f64| weight * own + (1.0 - weight) * common;
            let value = own.as_ref().map_or(fitted.p, |own| own.value);
            values.push(mixed(value, fitted.p));
            let mut stream = key.stream(Component::Resample, at as u64);
            let again = models.iter().enumerate().map(|(resample, model)| {
                let own = own.as_ref().map_or(model.p, |own| own.resampled[resample]);
                mixed(own, model.p + root * stream.normal()).clamp(1.0, 2.0)
            });
            resampled.push(again.collect());
        }
        Some(Self { values, resampled })
    }

    pub(super) fn intervals(&self, widening: f64) -> Vec<Parameter> {
        let of =
            |(value, resampled): (&f64, &Vec<f64>)| interval(resampled.clone(), *value, widening);
        self.values.iter().zip(&self.resampled).map(of).collect()
    }
}

/// What a stretch tells by itself.
struct Own {
    value: f64,
    resampled: Vec<f64>,
    /// Of its standard error.
    square: f64,
}

impl Own {
    fn new(value: f64, resampled: Vec<f64>) -> Self {
        // No two stretches are known to be alike to the third decimal.
        const LEAST: f64 = 1e-6;
        // So few blocks spread less than what they are drawn from.
        let spread = BLOCKS as f64 / (BLOCKS - 1) as f64;
        let square = (spread * variance(&resampled).unwrap_or(0.0)).max(LEAST);
        Self { value, resampled, square }
    }
}

/// The variance between stretches, by the method of moments; `None`: it is not above 0.
fn between<'a>(own: impl Iterator<Item = &'a Own>) -> Option<f64> {
    let known: Vec<(f64, f64)> = own.map(|own| (own.value, 1.0 / own.square)).collect();
    let sum = |of: &dyn Fn(f64, f64) -> f64| {
        known.iter().fold(0.0, |sum, &(value, weight)| sum + of(value, weight))
    };
    let weights = sum(&|_, weight| weight);
    let center = sum(&|value, weight| weight * value) / weights;
    let apart = sum(&|value, weight| weight * (value - center) * (value - center));
    let scale = weights - sum(&|_, weight| weight * weight) / weights;
    let between = (apart - (known.len() as f64 - 1.0)) / scale;
    (known.len() > 1 && between > 0.0).then_some(between)
}
