use tch::{Kind, Tensor};

use crate::model::ModelError;

/// AdamW (arXiv:1711.05101) and the clipping of gradients before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Step size.
    pub learning_rate: f64,
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of squared gradients.
    pub beta2: f64,
    /// Added to the root of the latter.
    pub epsilon: f64,
    /// What share of a matrix, times the learning rate, an update takes off; gains are spared.
    pub weight_decay: f64,
    /// Gradients are scaled down to this norm over all parameters; 0: never.
    pub max_grad_norm: f64,
}

impl Default for AdamW {
    fn default() -> Self {
        Self {
            learning_rate: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            max_grad_norm: 1.0,
        }
    }
}

/// What AdamW remembers.
#[derive(Debug)]
pub(super) struct Moments {
    /// Updates so far.
    pub(super) updates: i64,
    /// Per parameter: the mean of gradients, the mean of their squares.
    pub(super) of: Vec<(Tensor, Tensor)>,
}

impl Moments {
    pub(super) fn new(parameters: &[Tensor]) -> Result<Self, ModelError> {
        let zeros = |parameter: &Tensor| parameter.f_detach()?.f_zeros_like();
        let of = parameters.iter().map(|parameter| Ok((zeros(parameter)?, zeros(parameter)?)));
        Ok(Self { updates: 0, of: of.collect::<Result<_, ModelError>>()? })
    }

    pub(super) fn copy(&self) -> Result<Self, ModelError> {
        let of = self
            .of
            .iter()
            .map(|(mean, square)| Ok((mean.f_detach_copy()?, square.f_detach_copy()?)));
        Ok(Self { updates: self.updates, of: of.collect::<Result<_, ModelError>>()? })
    }
}

/// The norm over all gradients.
pub(super) fn grad_norm(parameters: &[Tensor]) -> Result<f64, ModelError> {
    let mut squares = 0.0;
    for parameter in parameters {
        let gradient = parameter.f_grad()?;
        if gradient.defined() {
            squares += gradient.f_square()?.f_sum(Kind::Double)?.f_double_value(&[])?;
        }
    }
    Ok(squares.sqrt())
}

impl AdamW {
    /// One update with the parameters' gradients, whose norm is `norm`; then they are zero. Only
    /// called where no gradients are recorded.
    pub(super) fn update(
        &self,
        parameters: &mut [Tensor],
        moments: &mut Moments,
        norm: f64,
    ) -> Result<(), ModelError> {
        moments.updates += 1;
        let count = moments.updates as f64;
        let unbias = |beta: f64| 1.0 - libm::pow(beta, count);
        let scale = if self.max_grad_norm > 0.0 && norm > self.max_grad_norm {
            self.max_grad_norm / norm
        } else {
            1.0
        };
        for (parameter, (mean, square)) in parameters.iter_mut().zip(&mut moments.of) {
            let gradient = parameter.f_grad()?;
            if !gradient.defined() {
                continue;
            }
            let scaled = gradient.f_mul_scalar(scale)?;
            let _ = mean.f_lerp_(&scaled, 1.0 - self.beta1)?;
            let _ = square.f_lerp_(&scaled.f_square()?, 1.0 - self.beta2)?;
            if self.weight_decay > 0.0 && parameter.dim() > 1 {
                let _ = parameter.f_mul_scalar_(1.0 - self.learning_rate * self.weight_decay)?;
            }
            let root = square.f_div_scalar(unbias(self.beta2))?.f_sqrt()?;
            let direction = mean.f_div(&root.f_add_scalar(self.epsilon)?)?;
            let step = direction.f_mul_scalar(self.learning_rate / unbias(self.beta1))?;
            let _ = parameter.f_sub_(&step)?;
            let _ = parameter.f_grad()?.f_zero_()?;
        }
        Ok(())
    }
}
