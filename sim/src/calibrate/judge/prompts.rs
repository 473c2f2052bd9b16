//! Prompts that every member of a group solves, and prompts that none does, told from those that
//! some do.

/// Scores of the members of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Group {
    positive: u32,
    negative: u32,
    zero: u32,
}

impl Group {
    pub(super) fn add(&mut self, sign: i32) {
        match sign {
            1 => self.positive += 1,
            0 => self.zero += 1,
            _ => self.negative += 1,
        }
    }

    const fn members(self) -> u32 {
        self.positive + self.negative + self.zero
    }
}

/// Expected numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Prompts {
    pub(super) groups: f64,
    /// Groups of prompts that are always solved, and never.
    pub(super) solved: f64,
    pub(super) hopeless: f64,
    /// Samples of the other groups, and those of them that are worth 1 and -1.
    pub(super) mixed_samples: f64,
    pub(super) positive: f64,
    pub(super) negative: f64,
}

/// Groups with fewer members do not tell the three kinds apart.
const FEWEST_MEMBERS: u32 = 3;
const FEWEST_GROUPS: usize = 20;
const ROUNDS: usize = 500;

/// Maximum likelihood by expectation and maximisation (Dempster, Laird and Rubin 1977) of a mixture:
/// groups that are all 1, groups that are all 0, and groups whose members are worth 1, 0 and -1
/// independently. `None`: there are too few groups, or too small ones.
pub(super) fn prompts(groups: &[Group]) -> Option<Prompts> {
    let large = groups.iter().filter(|group| group.members() >= FEWEST_MEMBERS).count();
    if large < FEWEST_GROUPS {
        return None;
    }
    let mut found = Prompts::default();
    // A tenth of each kind, and the members of the rest as they are over all.
    let (mut kinds, mut shares) = ([0.1, 0.1, 0.8], members(groups));
    for _ in 0..ROUNDS {
        found = expected(groups, kinds, shares);
        let all = found.groups;
        let [solved, hopeless] = [found.solved / all, found.hopeless / all];
        kinds = [solved, hopeless, (1.0 - solved - hopeless).max(1e-9)];
        let samples = found.mixed_samples.max(1e-9);
        let (positive, negative) = (found.positive / samples, found.negative / samples);
        shares = [positive, negative, (1.0 - positive - negative).max(0.0)];
    }
    Some(found)
}

fn members(groups: &[Group]) -> [f64; 3] {
    let sum = groups.iter().fold([0.0; 3], |sum, group| {
        let of = [group.positive, group.negative, group.zero];
        [0, 1, 2].map(|at| sum[at] + f64::from(of[at]))
    });
    let all = sum.iter().fold(0.0, |all, count| all + count).max(1.0);
    sum.map(|count| count / all)
}

fn expected(groups: &[Group], kinds: [f64; 3], shares: [f64; 3]) -> Prompts {
    let mut found = Prompts::default();
    for group in groups.iter().filter(|group| group.members() > 0) {
        let of = [group.positive, group.negative, group.zero].map(f64::from);
        let power =
            |share: f64, count: f64| if count > 0.0 { libm::pow(share, count) } else { 1.0 };
        let mixed =
            kinds[2] * [0, 1, 2].map(|at| power(shares[at], of[at])).iter().product::<f64>();
        let only = |count: u32| f64::from(u8::from(count == group.members()));
        let (solved, hopeless) = (kinds[0] * only(group.positive), kinds[1] * only(group.zero));
        let all = (solved + hopeless + mixed).max(1e-300);
        let part = mixed / all;
        found.groups += 1.0;
        found.solved += solved / all;
        found.hopeless += hopeless / all;
        found.mixed_samples += part * f64::from(group.members());
        found.positive += part * of[0];
        found.negative += part * of[1];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_prompts_are_told_apart_by_their_groups() {
        let number = |seed: u64| headway_shared::digest::mix(seed) as f64 / u64::MAX as f64;
        let groups: Vec<Group> = (0..4000)
            .map(|index| {
                let kind = number(index);
                let mut group = Group::default();
                for member in 0..8 {
                    let random = number(1_000_000 + index * 8 + member);
                    let mixed = i32::from(random < 0.4) - i32::from(random > 0.9);
                    group.add(if kind < 0.2 {
                        1
                    } else if kind < 0.3 {
                        0
                    } else {
                        mixed
                    });
                }
                group
            })
            .collect();
        let found = prompts(&groups).unwrap();
        let near = |found: f64, of: f64, truth: f64| (found / of - truth).abs() < 0.02;
        assert!(near(found.solved, found.groups, 0.2), "{found:?}");
        assert!(near(found.hopeless, found.groups, 0.1), "{found:?}");
        assert!(near(found.positive, found.mixed_samples, 0.4), "{found:?}");
        assert!(near(found.negative, found.mixed_samples, 0.1), "{found:?}");
    }

    #[test]
    fn small_groups_tell_nothing() {
        let mut pair = Group::default();
        pair.add(1);
        pair.add(0);
        assert_eq!(prompts(&[pair; 100]), None);
    }
}
