//! How rewards rose while the policy learned.

use std::collections::BTreeMap;

use super::estimate::{Estimates, Item, number};
use super::fit::{Parameter, maximum};
use super::jackknife;
use crate::drift::Batch;

/// Fewer steps show no growth.
const LEAST_STEPS: usize = 40;
/// Groups with fewer members do not tell one prompt from another, nor do fewer groups.
const LEAST_MEMBERS: usize = 3;
const LEAST_GROUPS: usize = 20;
/// Versions are counted in so many parts.
const PARTS: u32 = 64;
/// Blocks of successive versions, of which the jackknife leaves out one after the other.
const BLOCKS: usize = 20;
/// How many half-widths of its interval a growth that is one lies above 0: 3.5 standard errors.
const CLEARLY: f64 = 2.0;

/// What `world.judge` says of a policy that learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Learning {
    /// The share of samples of version 0 that are worth 1, of prompts like the median one.
    pub(super) positive: f64,
    /// How much the log-odds of that grew per version.
    pub(super) growth: Parameter,
    /// The standard deviation of the log-odds between prompts.
    pub(super) spread: f64,
    /// Samples.
    pub(super) samples: usize,
}

impl Learning {
    /// Adds what `[world.judge]` says of it.
    pub(super) fn add_to(&self, estimates: &mut Estimates) {
        const TABLE: &str = "world.judge";
        let Self { positive, growth, spread, samples } = *self;
        let setting = |what, key, value| Item::setting(what, TABLE, key, number(value), samples);
        let (what, key) = ("growth of the reward", "positive_growth");
        estimates.items.extend([
            setting("samples worth 1 at the start", "positive_share", positive),
            Item::number(what, TABLE, key, "logistic", growth, samples),
            setting("differences of prompts", "prompt_spread", spread),
        ]);
    }
}

/// Groups that are alike: the part of the run that generated them, their members, and the sum of their
/// rewards in millionths.
type Cell = (u32, usize, u64);

/// Fits `P(reward = 1) = 1 / (1 + exp(-(b + g v + s z)))`, v being the version that generated a sample and z
/// a standard normal of its group, to the batches that a run trained, by maximum likelihood: a logistic
/// regression with a random intercept (Breslow and Clayton, *Journal of the American Statistical Association*
/// 88, 1993). The interval of g is that of a jackknife over 20 blocks of successive versions. `None`:
/// rewards are no shares (below 0 or above 1), there are too few steps, or they did not clearly rise.
pub(super) fn learning(batches: &[Batch]) -> Option<Learning> {
    let mut groups: BTreeMap<(usize, u64), (u64, usize, f64)> = BTreeMap::new();
    let mut samples = 0;
    for (at, batch) in batches.iter().enumerate() {
        for (member, segment) in batch.members.iter().zip(&batch.segments) {
            if member.masked {
                continue;
            }
            if !(0.0..=1.0).contains(&member.reward) {
                return None;
            }
            samples += 1;
            let group = groups.entry((at, member.group)).or_default();
            group.0 += u64::from(segment.version.number());
            group.1 += 1;
            group.2 += member.reward;
        }
    }
    if batches.len() < LEAST_STEPS {
        return None;
    }
    let large = groups.values().filter(|group| group.1 >= LEAST_MEMBERS).count();
    let last = batches.last().map_or(0, |batch| batch.version);
    let part = last / PARTS + 1;
    let mut cells: BTreeMap<Cell, f64> = BTreeMap::new();
    for (versions, members, rewards) in groups.into_values() {
        let version = u32::try_from(versions / members as u64).unwrap_or(last);
        let cell = (version / part, members, (rewards * 1e6).round() as u64);
        *cells.entry(cell).or_default() += 1.0;
    }
    let cells: Vec<(Cell, f64)> = cells.into_iter().collect();
    let run = Run {
        part: f64::from(part),
        last: f64::from(last.max(1)),
        spreads: large >= LEAST_GROUPS,
        normal: normal(),
    };
    let [base, growth, spread] = run.fit(&cells, [0.0, 0.0, 1.0])?;
    let cut = |block: usize| block * cells.len() / BLOCKS;
    let without = (0..BLOCKS).filter_map(|block| {
        let rest = [&cells[..cut(block)], &cells[cut(block + 1)..]].concat();
        run.fit(&rest, [base, growth, spread]).map(|[_, growth, _]| growth / run.last)
    });
    let growth = jackknife::interval(growth / run.last, without);
    let half = growth.high - growth.value;
    let clearly = half > 0.0 && growth.value > CLEARLY * half;
    let at_start = base - 0.5 * growth.value * run.last;
    clearly.then_some(Learning {
        positive: 1.0 / (1.0 + libm::exp(-at_start)),
        growth,
        spread: spread.abs(),
        samples,
    })
}

/// The versions of a run.
struct Run {
    /// Versions of a part.
    part: f64,
    /// The last one.
    last: f64,
    /// Its groups tell how prompts differ.
    spreads: bool,
    /// Values of a standard normal, and what each weighs in a mean.
    normal: Vec<(f64, f64)>,
}

impl Run {
    /// The log-odds in the middle of the run, by how much they grow from its start to its end, and the
    /// spread between prompts.
    fn fit(&self, cells: &[(Cell, f64)], start: [f64; 3]) -> Option<[f64; 3]> {
        if self.spreads {
            return maximum(|at| self.likelihood(cells, *at), start).map(|peak| peak.at);
        }
        let of = |&[base, growth]: &[f64; 2]| self.likelihood(cells, [base, growth, 0.0]);
        maximum(of, [start[0], start[1]]).map(|peak| [peak.at[0], peak.at[1], 0.0])
    }

    /// The logarithm of the likelihood.
    fn likelihood(&self, cells: &[(Cell, f64)], [base, growth, spread]: [f64; 3]) -> f64 {
        let of = |&((part, members, rewards), count): &(Cell, f64)| {
            let version = (f64::from(part) + 0.5) * self.part - 0.5;
            let log_odds = base + growth * (version / self.last - 0.5);
            let (members, good) = (members as f64, rewards as f64 / 1e6);
            let given = |log_odds: f64| libm::exp(good * log_odds - members * softplus(log_odds));
            let share = match spread {
                0.0 => given(log_odds),
                spread => {
                    let nodes = self.normal.iter();
                    nodes
                        .map(|&(z, weight)| weight * given(log_odds + spread * z))
                        .fold(0.0, |a, b| a + b)
                }
            };
            count * libm::log(share.max(1e-300))
        };
        cells.iter().map(of).fold(0.0, |sum, part| sum + part)
    }
}

/// The logarithm of `1 + exp(x)`.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

/// Where a function of a standard normal is taken for its mean: the trapezoidal rule from -4 to 4, which is
/// exact to many digits for what is smooth and ends like a normal.
fn normal() -> Vec<(f64, f64)> {
    const WIDTH: f64 = 0.5;
    const DENSITY: f64 = 0.398_942_280_401_432_7;
    let at = (-8..=8).map(|place| f64::from(place) * WIDTH);
    at.map(|z| (z, WIDTH * DENSITY * libm::exp(-0.5 * z * z))).collect()
}

#[cfg(test)]
mod tests {
    use headway_shared::input::Segment;
    use headway_shared::ratio::Member;
    use headway_shared::version::RolloutVersion;

    use super::*;
    use crate::kernel::random::{Component, Key};

    /// 150 batches of 16 groups; log-odds begin at -3 and grow by `rate` a version, two of which pass before a
    /// sample is trained.
    fn run(rate: f64, spread: f64, group: u64, seed: u64) -> Vec<Batch> {
        let key = Key::new(seed, headway_shared::digest::Digest::new(), 0);
        let batch = |version: u32| {
            let mut stream = key.stream(Component::Step, u64::from(version));
            let mut batch = Batch { version: version + 2, ..Batch::default() };
            for prompt in 0..16 {
                let log_odds = rate * f64::from(version) - 3.0 + spread * stream.normal();
                for member in 0..group {
                    let reward =
                        f64::from(u8::from(stream.chance(1.0 / (1.0 + libm::exp(-log_odds)))));
                    let group =
                        if group > 1 { 2 * prompt } else { 2 * (prompt * group + member) + 1 };
                    batch.members.push(Member { group, reward, masked: false });
                    batch
                        .segments
                        .push(Segment { version: RolloutVersion::new(version), tokens: 5 });
                }
            }
            batch
        };
        (0..150).map(batch).collect()
    }

    #[test]
    fn the_law_that_rewards_were_drawn_with_comes_out() {
        for (spread, group, tolerance) in [(0.0, 1, 0.3), (0.0, 8, 0.15), (1.5, 8, 0.2)] {
            let (mut held, mut spreads) = (0, 0.0);
            for seed in 0..12 {
                let found = learning(&run(0.05, spread, group, seed)).unwrap();
                assert!((found.growth.value / 0.05 - 1.0).abs() < tolerance, "{found:?}");
                let log_odds = libm::log(found.positive / (1.0 - found.positive));
                assert!((log_odds + 3.0).abs() < 0.8, "{found:?}");
                assert_eq!(found.samples as u64, 150 * 16 * group);
                held += u32::from(found.growth.holds(0.05));
                spreads += found.spread / 12.0;
            }
            assert!((spreads - spread).abs() < 0.1, "{spreads} for {spread}");
            // 10.8 of 12, and three standard deviations of that number.
            assert!(held >= 8, "{held} of 12");
        }
    }

    #[test]
    fn rewards_that_do_not_rise_or_are_no_shares_tell_none() {
        for seed in 0..8 {
            assert_eq!(learning(&run(0.0, 1.0, 8, seed)), None);
        }
        let rising = run(0.05, 1.0, 8, 1);
        assert_eq!(learning(&rising[..30]), None, "30 steps");
        let mut scores = rising.clone();
        scores[3].members[0].reward = -1.0;
        assert_eq!(learning(&scores), None);
        scores[3].members[0].masked = true;
        assert!(learning(&scores).is_some(), "what is masked has no reward");
        let mut told = rising;
        for (at, batch) in told.iter_mut().enumerate() {
            batch
                .members
                .iter_mut()
                .for_each(|member| member.reward = f64::from(u8::from(at > 75)));
        }
        assert_eq!(learning(&told), None, "no curve is steep enough");
    }
}
