//! The corrections of [`headway_shared::ratio`] as tensors, with gradients.

use headway_shared::config::Correction;
use headway_shared::ratio::Loss;
use tch::{Device, Kind, Tensor};

use crate::model::{ModelError, Net, padded};
use crate::trainer::TrainSample;

type Result<T> = std::result::Result<T, ModelError>;

/// Some samples as tensors [n, t]: column `c` is about token `c + 1` of each.
#[derive(Debug)]
pub(super) struct Columns {
    inputs: Tensor,
    targets: Tensor,
    /// 1 where a token is trained.
    pub(super) mask: Tensor,
    /// As recorded at generation; 0 where `mask` is.
    pub(super) rollout: Tensor,
    /// [n, 1].
    pub(super) advantages: Tensor,
}

impl Columns {
    /// Of samples with these advantages.
    pub(super) fn of(samples: &[&TrainSample], advantages: &[f64], device: Device) -> Result<Self> {
        let tokens: Vec<&[u32]> = samples.iter().map(|sample| sample.tokens.as_slice()).collect();
        let tokens = padded(&tokens, device)?;
        let (count, length) = tokens.size2()?;
        let width = length - 1;
        let rows = |of: &dyn Fn(&TrainSample, usize) -> f32| {
            let mut flat = vec![0.0_f32; (count * width) as usize];
            for (sample, row) in samples.iter().zip(flat.chunks_mut(width as usize)) {
                for (place, cell) in trained(sample).map(|place| (place, place - 1)) {
                    row[cell] = of(sample, place);
                }
            }
            Tensor::f_from_slice(&flat)?.f_view([count, width])?.f_to_device(device)
        };
        let advantages: Vec<f32> = advantages.iter().map(|&advantage| advantage as f32).collect();
        Ok(Self {
            inputs: tokens.f_narrow(1, 0, width)?,
            targets: tokens.f_narrow(1, 1, width)?,
            mask: rows(&|_, _| 1.0)?,
            rollout: rows(&|sample, place| sample.rollout_logprobs[place])?,
            advantages: Tensor::f_from_slice(&advantages)?
                .f_view([count, 1])?
                .f_to_device(device)?,
        })
    }

    /// The tokens' log-probabilities under a net, [n, t].
    pub(super) fn log_probs(&self, net: &Net, temperature: f64) -> Result<Tensor> {
        let logits = net.full(&self.inputs)?.f_div_scalar(temperature)?;
        let logs = logits.f_log_softmax(-1, Kind::Float)?;
        Ok(logs.f_gather(2, &self.targets.f_unsqueeze(2)?, false)?.f_squeeze_dim(2)?)
    }

    /// Numbers of each sample's trained tokens in their columns, 0 elsewhere.
    pub(super) fn put(&self, samples: &[&TrainSample], values: &[Vec<f64>]) -> Result<Tensor> {
        let (count, width) = self.mask.size2()?;
        let mut flat = vec![0.0_f32; (count * width) as usize];
        let rows = flat.chunks_mut(width as usize).zip(samples.iter().zip(values));
        for (row, (sample, values)) in rows {
            for (place, &value) in trained(sample).zip(values) {
                row[place - 1] = value as f32;
            }
        }
        let tensor = Tensor::f_from_slice(&flat)?.f_view([count, width])?;
        Ok(tensor.f_to_device(self.mask.device())?)
    }

    /// The sum over sequences of the mean loss of their trained tokens, and a 1 for each token
    /// that the correction changed. Gradients flow through `learner` only.
    pub(super) fn loss(
        &self,
        rule: &Loss,
        learner: &Tensor,
        proximal: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let ppo = |ratio: &Tensor| {
            let (low, high) = rule.ppo_band();
            let plain = ratio.f_mul(&self.advantages)?;
            let bound = ratio.f_clamp(low, high)?.f_mul(&self.advantages)?;
            let clipped = bound.f_lt_tensor(&plain)?.f_to_kind(Kind::Float)?;
            Ok::<_, ModelError>((plain.f_minimum(&bound)?.f_neg()?, clipped))
        };
        let (loss, clipped) = match rule.correction {
            Correction::None => {
                (learner.f_mul(&self.advantages)?.f_neg()?, self.mask.f_zeros_like()?)
            }
            Correction::PpoClip => ppo(&learner.f_sub(&self.rollout)?.f_exp()?)?,
            Correction::Gspo => ppo(&self.sequence_ratio(learner, &self.rollout)?)?,
            _ => {
                let (inner, clipped) = ppo(&learner.f_sub(proximal)?.f_exp()?)?;
                let (weight, changed) = self.weight(rule, proximal)?;
                (inner.f_mul(&weight)?, clipped.f_maximum(&changed)?)
            }
        };
        let counts = self.mask.f_sum_dim_intlist(1, false, Kind::Float)?.f_clamp_min(1.0)?;
        let sums = loss.f_mul(&self.mask)?.f_sum_dim_intlist(1, false, Kind::Float)?;
        Ok((sums.f_div(&counts)?.f_sum(Kind::Float)?, clipped.f_mul(&self.mask)?))
    }

    /// What a correction makes of proximal/rollout, and a 1 where it changed it.
    fn weight(&self, rule: &Loss, proximal: &Tensor) -> Result<(Tensor, Tensor)> {
        let outside = |ratio: &Tensor| ratio.f_lt(rule.low)?.f_logical_or(&ratio.f_gt(rule.high)?);
        let ratio = proximal.f_sub(&self.rollout)?.f_exp()?;
        Ok(match rule.correction {
            Correction::Tis => {
                (ratio.f_clamp_max(rule.high)?, ratio.f_gt(rule.high)?.f_to_kind(Kind::Float)?)
            }
            Correction::Icepop => {
                let gone = outside(&ratio)?;
                (ratio.f_masked_fill(&gone, 0.0)?, gone.f_to_kind(Kind::Float)?)
            }
            Correction::SequenceMask => {
                let gone = outside(&self.sequence_ratio(proximal, &self.rollout)?)?;
                (gone.f_logical_not()?.f_to_kind(Kind::Float)?, gone.f_to_kind(Kind::Float)?)
            }
            _ => (ratio, self.mask.f_zeros_like()?),
        })
    }

    /// The geometric mean of a sequence's ratios, in each of its columns.
    fn sequence_ratio(&self, top: &Tensor, bottom: &Tensor) -> Result<Tensor> {
        let counts = self.mask.f_sum_dim_intlist(1, true, Kind::Float)?.f_clamp_min(1.0)?;
        let logs = top.f_sub(bottom)?.f_mul(&self.mask)?;
        let mean = logs.f_sum_dim_intlist(1, true, Kind::Float)?.f_div(&counts)?;
        Ok(mean.f_exp()?.f_expand_as(&self.mask)?)
    }
}

/// The places of a sample's trained tokens; none where it is masked.
pub(super) fn trained(sample: &TrainSample) -> impl Iterator<Item = usize> {
    let places = sample.loss_mask.iter().enumerate();
    places.filter(|(_, trained)| **trained && !sample.masked).map(|(place, _)| place)
}
