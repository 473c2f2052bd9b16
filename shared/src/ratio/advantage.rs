use std::collections::BTreeMap;

/// Added to a group's standard deviation, so that equal rewards give zeros and not NaN.
const EPSILON: f64 = 1e-6;
/// What one step moves the running baseline by.
const BASELINE_STEP: f64 = 0.1;

/// One sample of a batch, as the advantages see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// Samples with equal numbers are rollouts of one prompt.
    pub group: u64,
    /// The score.
    pub reward: f64,
    /// It has a place in the batch and no gradient: its reward says nothing.
    pub masked: bool,
}

/// The mean reward of samples that have no group to be compared with: an exponential moving
/// average over steps. It starts at the mean of the first step that has such samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Baseline {
    /// The average; `None` before the first step.
    pub mean: Option<f64>,
}

impl Baseline {
    /// What the rewards of this step are compared with; then moves a tenth of the way to their
    /// mean. Without rewards, nothing moves.
    fn pass(&mut self, rewards: &[f64]) -> f64 {
        if rewards.is_empty() {
            return self.mean.unwrap_or(0.0);
        }
        let now = mean(rewards);
        let before = self.mean.unwrap_or(now);
        self.mean = Some(before + BASELINE_STEP * (now - before));
        before
    }
}

/// The advantages of a batch, in its order.
///
/// Members of one group are compared with each other, as GRPO does (arXiv:2402.03300): reward
/// minus the group's mean, divided by the group's sample standard deviation (plus 1e-6). The
/// division is kept, although it weighs groups that are nearly always right or wrong more
/// (arXiv:2503.20783): it is what the published method and slime do. A sample that is alone in its
/// group, or the only one there that is not masked, is compared with the running baseline and not
/// scaled. A masked sample's advantage is 0.
pub fn advantages(members: &[Member], baseline: &mut Baseline) -> Vec<f64> {
    let mut groups: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for member in members.iter().filter(|member| !member.masked) {
        groups.entry(member.group).or_default().push(member.reward);
    }
    let alone: Vec<f64> = groups.values().filter(|g| g.len() == 1).flatten().copied().collect();
    let usual = baseline.pass(&alone);
    let scales: BTreeMap<u64, (f64, f64)> = groups
        .iter()
        .map(|(&group, rewards)| match rewards.as_slice() {
            [_] => (group, (usual, 1.0)),
            rewards => (group, (mean(rewards), deviation(rewards) + EPSILON)),
        })
        .collect();
    members
        .iter()
        .map(|member| match scales.get(&member.group) {
            Some((center, scale)) if !member.masked => (member.reward - center) / scale,
            _ => 0.0,
        })
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation of a sample of at least two.
fn deviation(values: &[f64]) -> f64 {
    let center = mean(values);
    let squares: f64 = values.iter().map(|value| (value - center) * (value - center)).sum();
    libm::sqrt(squares / (values.len() - 1) as f64)
}
