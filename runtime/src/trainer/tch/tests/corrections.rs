//! The tensors against the f64 reference.

use headway_shared::ratio::{LogProbs, Term, batch_loss, terms};
use tch::Tensor;

use super::*;
use crate::model::floats;
use crate::trainer::tch::adamw::{Moments, grad_norm};
use crate::trainer::tch::loss::{Columns, trained};

const ALL: [Correction; 7] = [
    Correction::None,
    Correction::PpoClip,
    Correction::Decoupled,
    Correction::Tis,
    Correction::Icepop,
    Correction::SequenceMask,
    Correction::Gspo,
];

#[test]
fn every_correction_has_the_loss_and_the_gradient_of_the_reference() {
    let mut draws = Draws(11);
    for correction in ALL {
        let mut changed = 0;
        for round in 0..20 {
            let mut samples: Vec<TrainSample> =
                (0..7).map(|id| sample(id, 0, &mut draws)).collect();
            samples[3].masked = round % 2 == 0;
            let advantages: Vec<f64> = samples
                .iter()
                .map(|sample| if sample.masked { 0.0 } else { 4.0 * draws.unit() - 2.0 })
                .collect();
            changed += compare(correction, &samples, &advantages, &mut draws);
        }
        let none = correction == Correction::None;
        assert!(
            none || changed > 10,
            "{correction:?} changed {changed} tokens: too few to compare"
        );
    }
}

/// Compares one batch; how many tokens the correction changed.
fn compare(
    correction: Correction,
    samples: &[TrainSample],
    advantages: &[f64],
    draws: &mut Draws,
) -> usize {
    let refs: Vec<&TrainSample> = samples.iter().collect();
    let columns = Columns::of(&refs, advantages, crate::model::test_device()).unwrap();
    let rollout: Vec<Vec<f64>> = samples
        .iter()
        .map(|s| trained(s).map(|place| f64::from(s.rollout_logprobs[place])).collect())
        .collect();
    // Near the recorded ones, as they are in training; f32 numbers, so that both see the same.
    let mut near = |rows: &[Vec<f64>], by: f64| -> Vec<Vec<f64>> {
        let mut shift = |x: &f64| f64::from((x + by * (2.0 * draws.unit() - 1.0)) as f32);
        rows.iter().map(|row| row.iter().map(&mut shift).collect()).collect()
    };
    let proximal = near(&rollout, 0.4);
    let learner = near(&proximal, 0.3);

    let variable = columns.put(&refs, &learner).unwrap().set_requires_grad(true);
    let old = columns.put(&refs, &proximal).unwrap();
    let (loss, clipped) = columns.loss(&rule(correction), &variable, &old).unwrap();
    loss.backward();
    let gradients = floats(&variable.grad()).unwrap();
    let clipped = floats(&clipped).unwrap();

    let wanted: Vec<Vec<Term>> = (0..samples.len())
        .map(|n| {
            let of =
                LogProbs { learner: &learner[n], proximal: &proximal[n], rollout: &rollout[n] };
            terms(&rule(correction), advantages[n], of)
        })
        .collect();
    let want = batch_loss(&wanted) * samples.len() as f64;
    assert!((loss.double_value(&[]) - want).abs() < 1e-4, "{correction:?}: {loss:?} {want}");
    let width = columns.mask.size()[1] as usize;
    let mut changed = 0;
    for (row, (sample, terms)) in samples.iter().zip(&wanted).enumerate() {
        let mut want = vec![(0.0, false); width];
        for (place, term) in trained(sample).zip(terms) {
            want[place - 1] = (term.gradient / terms.len() as f64, term.clipped);
            changed += usize::from(term.clipped);
        }
        for (column, (gradient, is_clipped)) in want.into_iter().enumerate() {
            let at = row * width + column;
            assert!(
                (f64::from(gradients[at]) - gradient).abs() < 1e-5,
                "{correction:?}: {} is not {gradient}",
                gradients[at]
            );
            assert_eq!(clipped[at] > 0.0, is_clipped, "{correction:?} at {row}, {column}");
        }
    }
    changed
}

#[test]
fn adamw_is_its_formula() {
    let optimizer = AdamW {
        learning_rate: 0.1,
        beta1: 0.8,
        beta2: 0.9,
        epsilon: 1e-6,
        weight_decay: 0.5,
        max_grad_norm: 2.0,
    };
    // A matrix decays, a gain does not.
    let start = [[0.5, -1.5], [2.0, 0.25]];
    let mut parameters = [
        Tensor::from_slice(&start[0]).view([1, 2]).set_requires_grad(true),
        Tensor::from_slice(&start[1]).set_requires_grad(true),
    ];
    let mut moments = Moments::new(&parameters).unwrap();
    let mut plain = start.map(|row| row.map(|x: f64| (x, 0.0, 0.0)));
    for count in 1..=5 {
        // The loss is the sum of the fourth powers.
        let total = parameters.iter().map(|p| p.pow_tensor_scalar(4).sum(tch::Kind::Double));
        total.reduce(|a, b| a + b).unwrap().backward();
        let norm = grad_norm(&parameters).unwrap();
        tch::no_grad(|| optimizer.update(&mut parameters, &mut moments, norm).unwrap());

        let gradient = |x: f64| 4.0 * x * x * x;
        let squares: f64 = plain.iter().flatten().map(|p| gradient(p.0) * gradient(p.0)).sum();
        assert!((squares.sqrt() - norm).abs() < 1e-9);
        let scale = (2.0 / squares.sqrt()).min(1.0);
        for (row, parameters) in plain.iter_mut().enumerate() {
            for (x, mean, square) in parameters {
                let g = gradient(*x) * scale;
                *mean = 0.8 * *mean + 0.2 * g;
                *square = 0.9 * *square + 0.1 * g * g;
                if row == 0 {
                    *x -= 0.1 * 0.5 * *x;
                }
                let mean = *mean / (1.0 - libm::pow(0.8, f64::from(count)));
                let square = *square / (1.0 - libm::pow(0.9, f64::from(count)));
                *x -= 0.1 * mean / (square.sqrt() + 1e-6);
            }
        }
    }
    for (row, parameters) in plain.iter().zip(&parameters) {
        for (n, (x, ..)) in row.iter().enumerate() {
            let got = parameters.view([2]).double_value(&[n as i64]);
            assert!((got - x).abs() < 1e-9, "{got} is not {x}");
        }
    }
}
