//! Where the policies stand that a token is scored by, seen from the one that generated it.

use super::model::Stretch;

/// The joint normal law of a token's log-probabilities under the proximal policy, the deployed one
/// and the learner, relative to what generated it: a Cholesky factor for a token of scale 1.
///
/// The log-probability at `t` versions from the generating one moves by `B(t)`, fractional Brownian
/// motion: `cov(B(s), B(t)) = a (|s|^p + |t|^p - |s - t|^p) / 2`. All three share the engines'
/// difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// `sigma0`, by which all three share one normal.
    pub(super) floor: f64,
    pub(super) proximal: f64,
    pub(super) deploy: [f64; 2],
    pub(super) learner: [f64; 3],
    /// Variances, the floor included: of proximal, deploy, learner by rollout.
    pub(super) variances: [f64; 3],
    /// Between proximal/rollout and learner/rollout, the floor included.
    pub(super) covariance: f64,
}

/// The logarithms of proximal, deploy and learner by rollout.
pub(super) type Logs = [f64; 3];

impl Path {
    /// The law for a token that is `proximal` versions old when its train step starts, where serving
    /// holds weights `deploy` versions newer than those that generated it, and the learner has moved
    /// on to `learner` versions by the update that the token is in.
    #[must_use]
    pub fn new(law: &Stretch, proximal: f64, deploy: f64, learner: f64) -> Self {
        let common = |s: f64, t: f64| 0.5 * (law.moved(s) + law.moved(t) - law.moved(s - t));
        let floor = law.sigma0 * law.sigma0;
        let root = |square: f64| if square > 0.0 { libm::sqrt(square) } else { 0.0 };
        let over = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let first = root(law.moved(proximal));
        // Where two of them are the same policy, so are their factors, to the bit.
        let along =
            |at: f64| if at == proximal { first } else { over(common(proximal, at), first) };
        let (deploy_first, learner_first) = (along(deploy), along(learner));
        let deploy_rest = root(rest(law.moved(deploy), deploy_first * deploy_first));
        let learner_second =
            over(common(deploy, learner) - deploy_first * learner_first, deploy_rest);
        let squares = learner_first * learner_first + learner_second * learner_second;
        let learner_rest = root(rest(law.moved(learner), squares));
        let moved = [proximal, deploy, learner].map(|at| floor + law.moved(at));
        Self {
            floor: law.sigma0,
            proximal: first,
            deploy: [deploy_first, deploy_rest],
            learner: [learner_first, learner_second, learner_rest],
            variances: moved,
            covariance: floor + common(proximal, learner),
        }
    }

    /// The log-ratios of a token of this scale. `normal` gives the four standard normals, by place;
    /// it is asked only for those that matter.
    pub(super) fn logs(&self, scale: f64, mut normal: impl FnMut(usize) -> f64) -> Logs {
        let mut times = |factor: f64, place: usize| match factor {
            0.0 => 0.0,
            factor => factor * normal(place),
        };
        let floor = times(self.floor, 0);
        // Where a normal's own factor is 0, those of the policies after it are 0 as well.
        let [first, second, third] = [self.proximal, self.deploy[1], self.learner[2]]
            .map(|factor| if factor == 0.0 { 0.0 } else { 1.0 });
        let (first, second, third) = (times(first, 1), times(second, 2), times(third, 3));
        let moved = [
            self.proximal * first,
            self.deploy[0] * first + self.deploy[1] * second,
            self.learner[0] * first + self.learner[1] * second + self.learner[2] * third,
        ];
        let half = 0.5 * scale * scale;
        [0, 1, 2].map(|at| scale * (floor + moved[at]) - half * self.variances[at])
    }
}

/// What a square has left of a variance; rounding leaves nothing of what is all in it.
fn rest(variance: f64, square: f64) -> f64 {
    let left = variance - square;
    if left > 1e-12 * variance { left } else { 0.0 }
}
