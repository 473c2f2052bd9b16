//! The maximum of a likelihood without a closed form, and how sharp it is.

/// Width of the differences that derivatives are made of.
const STEP: f64 = 1e-3;
const MOST_ROUNDS: u32 = 60;
const MOST_HALVINGS: u32 = 40;

/// A maximum.
#[derive(Clone, Copy, Debug)]
pub(in crate::calibrate) struct Peak<const D: usize> {
    pub(in crate::calibrate) at: [f64; D],
    pub(in crate::calibrate) value: f64,
    /// Minus the inverse of the second derivatives: the covariance of the estimate.
    pub(in crate::calibrate) covariance: [[f64; D]; D],
}

/// The maximum of a smooth function near `start`, by Newton's method with differences for
/// derivatives; all coordinates on the scale of a logarithm. `None` where the function has none:
/// it goes on rising, or is flat.
pub(in crate::calibrate) fn maximum<const D: usize>(
    of: impl Fn(&[f64; D]) -> f64,
    start: [f64; D],
) -> Option<Peak<D>> {
    let (mut at, mut value) = (start, of(&start));
    for _ in 0..MOST_ROUNDS {
        let (gradient, curvature) = derivatives(&of, &at, value);
        let step = inverse(curvature).map_or(gradient, |inverse| times(&inverse, &gradient));
        // Not further than a factor of e, and up.
        let longest = step.iter().fold(1.0, |longest: f64, part| longest.max(part.abs()));
        let mut share = 1.0 / longest;
        let mut risen = None;
        for _ in 0..MOST_HALVINGS {
            let next = std::array::from_fn(|d| at[d] + share * step[d]);
            let there = of(&next);
            if there > value {
                risen = Some((next, there));
                break;
            }
            share *= 0.5;
        }
        let Some((next, there)) = risen else { break };
        let done = there - value < 1e-9;
        (at, value) = (next, there);
        if done {
            break;
        }
    }
    let (_, curvature) = derivatives(&of, &at, value);
    let covariance = inverse(curvature)?;
    let known = at.iter().all(|part| part.is_finite()) && value.is_finite();
    known.then_some(Peak { at, value, covariance })
}

/// The gradient, and minus the second derivatives.
fn derivatives<const D: usize>(
    of: &impl Fn(&[f64; D]) -> f64,
    at: &[f64; D],
    value: f64,
) -> ([f64; D], [[f64; D]; D]) {
    let moved = |moves: &[(usize, f64)]| {
        let mut to = *at;
        for &(d, by) in moves {
            to[d] += by * STEP;
        }
        of(&to)
    };
    let (mut gradient, mut curvature) = ([0.0; D], [[0.0; D]; D]);
    let pairs = (0..D).flat_map(|d| (0..d).map(move |e| (d, e)));
    for d in 0..D {
        let (up, down) = (moved(&[(d, 1.0)]), moved(&[(d, -1.0)]));
        gradient[d] = (up - down) / (2.0 * STEP);
        curvature[d][d] = (2.0 * value - up - down) / (STEP * STEP);
    }
    for (d, e) in pairs {
        let twist = moved(&[(d, 1.0), (e, 1.0)]) + moved(&[(d, -1.0), (e, -1.0)])
            - moved(&[(d, 1.0), (e, -1.0)])
            - moved(&[(d, -1.0), (e, 1.0)]);
        curvature[d][e] = -twist / (4.0 * STEP * STEP);
        curvature[e][d] = curvature[d][e];
    }
    (gradient, curvature)
}

fn times<const D: usize>(matrix: &[[f64; D]; D], vector: &[f64; D]) -> [f64; D] {
    matrix.map(|row| row.iter().zip(vector).fold(0.0, |sum, (left, right)| sum + left * right))
}

/// The inverse of a positive definite matrix; `None` of another.
pub(super) fn inverse<const D: usize>(matrix: [[f64; D]; D]) -> Option<[[f64; D]; D]> {
    let mut left = matrix;
    let mut right: [[f64; D]; D] =
        std::array::from_fn(|row| std::array::from_fn(|d| f64::from(u8::from(row == d))));
    for pivot in 0..D {
        let scale = left[pivot][pivot];
        if scale.is_nan() || scale <= 1e-14 * matrix[pivot][pivot].abs() {
            return None;
        }
        for d in 0..D {
            left[pivot][d] /= scale;
            right[pivot][d] /= scale;
        }
        for row in (0..D).filter(|&row| row != pivot) {
            let factor = left[row][pivot];
            for d in 0..D {
                left[row][d] -= factor * left[pivot][d];
                right[row][d] -= factor * right[pivot][d];
            }
        }
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smooth_peak_is_found_with_its_width() {
        let bell = |at: &[f64; 2]| {
            let (x, y) = (at[0] - 1.5, at[1] + 2.0);
            -2.0 * x * x - 0.5 * y * y - x * y + 7.0
        };
        let peak = maximum(bell, [0.0, 0.0]).unwrap();
        assert!((peak.at[0] - 1.5).abs() < 1e-4 && (peak.at[1] + 2.0).abs() < 1e-4, "{peak:?}");
        // The inverse of [[4, 1], [1, 1]].
        assert!((peak.covariance[0][0] - 1.0 / 3.0).abs() < 1e-6);
        assert!((peak.covariance[0][1] + 1.0 / 3.0).abs() < 1e-6);
        assert!((peak.covariance[1][1] - 4.0 / 3.0).abs() < 1e-6);
    }

    #[test]
    fn what_rises_for_ever_has_no_peak() {
        assert!(maximum(|at: &[f64; 1]| at[0], [0.0]).is_none());
        assert!(maximum(|_: &[f64; 1]| 3.0, [0.0]).is_none());
    }
}
