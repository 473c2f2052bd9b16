//! What training teaches: how far it has come, and which way that moved a sample's tokens.

use std::collections::BTreeMap;

use headway_shared::config::Correction;
use headway_shared::ratio::{Loss, Member, Term};

use super::model::Stretch;
use super::population::Log;
use super::sequence::Sequence;

/// How far training had come at each learner version, in train steps of the fitted run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// By version, how many of these steps it was ahead of its own; below 0: behind.
    leads: Vec<f64>,
}

impl Course {
    /// That of a policy whose steps are all worth one.
    pub const STEADY: &'static Self = &Self { leads: Vec::new() };

    /// At this version. What has not been seen comes at one a step.
    #[must_use]
    pub fn at(&self, version: u32) -> f64 {
        let seen = self.leads.get(version as usize).or(self.leads.last());
        f64::from(version) + seen.copied().unwrap_or(0.0)
    }

    /// From this version to the next one training went so far. A version that comes again, after a
    /// rollback, is what it is now.
    pub fn step(&mut self, version: u32, pace: f64) {
        let lead = self.at(version) - f64::from(version);
        self.leads.resize(version as usize + 1, self.leads.last().copied().unwrap_or(0.0));
        self.leads.push(lead + pace - 1.0);
    }

    /// How far the last step took it.
    #[must_use]
    pub fn pace(&self) -> f64 {
        match self.leads.as_slice() {
            [.., before, last] => 1.0 + last - before,
            _ => 1.0,
        }
    }
}

/// Which way a sample's tokens are moved by what it is worth: those of good samples become more likely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lesson {
    /// By how many nats a train step of the fitted run moves a token of scale 1.
    pub per_step: f64,
    /// The mean square of that over the tokens of the batch.
    pub square: f64,
    /// The log-ratios at which clipping ends what moves its tokens: from here down, and from here up.
    pub until: [f64; 2],
}

impl Default for Lesson {
    fn default() -> Self {
        Self { per_step: 0.0, square: 0.0, until: Self::NEVER }
    }
}

/// What is left to chance, and what is a lesson's, of how far tokens of one age were moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    /// The law of what is left to chance.
    pub(super) law: Stretch,
    /// What the lesson moves a token of scale 1 by, in nats per step of the fitted run.
    pub(super) per_step: f64,
    /// The mean square of that over the batch.
    pub(super) square: f64,
}

impl Lesson {
    const NEVER: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];

    /// The lessons of a batch, where the log-odds of the reward grow by `growth` a step.
    ///
    /// If they grow alike for all answers to a prompt, what is right and has the chance P becomes `exp(growth (1 - P))`
    /// times as likely, what is wrong `exp(-growth P)` times, to first order: the reward less its mean in the
    /// group, times `growth`. That is of the whole sample: each of its tokens has its part, in proportion to
    /// the square of its scale, for the gradient of a logit is as large as the effect that it then has.
    ///
    /// Tokens move as those of their like do that are trained: of the same age and the same worth. Where PPO
    /// clips the ratio by the policy that generated them, none of these pushes any further once they are
    /// beyond the bound that they are pushed to.
    pub(super) fn of_batch(
        growth: f64,
        rule: Loss,
        members: &[Member],
        tokens: &[u32],
    ) -> Vec<Self> {
        let mut groups: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for member in members.iter().filter(|member| !member.masked) {
            let (sum, count) = groups.entry(lone_together(member.group)).or_default();
            *sum += member.reward;
            *count += 1.0;
        }
        let gain = |member: &Member| match groups.get(&lone_together(member.group)) {
            Some((sum, count)) if !member.masked => member.reward - sum / count,
            _ => 0.0,
        };
        let [down, up] = Self::NEVER;
        let (low, high) = rule.ppo_band();
        let until = |gain: f64| match rule.correction {
            Correction::PpoClip if gain > 0.0 => [down, libm::log(high)],
            Correction::PpoClip if gain < 0.0 => [libm::log(low), up],
            _ => Self::NEVER,
        };
        let of = |(member, &tokens): (&Member, &u32)| {
            let gain = gain(member);
            (growth * gain / f64::from(tokens.max(1)), until(gain))
        };
        let lessons: Vec<(f64, [f64; 2])> = members.iter().zip(tokens).map(of).collect();
        let (mut squares, mut all) = (0.0, 0.0);
        for ((per_step, _), &tokens) in lessons.iter().zip(tokens) {
            squares += f64::from(tokens) * per_step * per_step;
            all += f64::from(tokens);
        }
        let square = if all > 0.0 { squares / all } else { 0.0 };
        lessons.into_iter().map(|(per_step, until)| Self { per_step, square, until }).collect()
    }

    /// Splits what tokens have moved by that are so many steps old: `sigma²` is the mean square of both
    /// parts together. A lesson that would be more than that is as much as there is. `scale_fourth` is the
    /// mean fourth power of a token's scale.
    pub(super) fn split(&self, law: &Stretch, scale_fourth: f64, steps: f64) -> Split {
        let moved = law.moved(steps);
        if self.square == 0.0 || moved <= 0.0 {
            return Split { law: *law, per_step: 0.0, square: 0.0 };
        }
        let share = scale_fourth * self.square * steps * steps / moved;
        let part = 1.0 / share.max(1.0);
        Split {
            law: Stretch { a: law.a * (1.0 - share.min(1.0)), ..*law },
            per_step: self.per_step * part.sqrt(),
            square: self.square * part,
        }
    }
}

impl Split {
    /// What a token of this scale is moved by after so many steps; over the batch, `exp` of it has the
    /// mean 1, to second order.
    pub(super) fn moves(&self, scale: f64, steps: f64) -> f64 {
        let square = scale * scale;
        square * self.per_step * steps - 0.5 * square * square * self.square * steps * steps
    }
}

/// Members of one group have its number, times two; lone ones odd numbers, and are compared with each
/// other.
const fn lone_together(group: u64) -> u64 {
    if group & 1 == 1 { 1 } else { group }
}

/// How much of a batch's gradient its correction leaves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    left: f64,
    whole: f64,
}

impl Kept {
    /// Adds a sample: each of its tokens weighs as its advantage times its ratio, which is what makes up
    /// for its age, and samples weigh alike, as in the loss.
    pub(super) fn add(&mut self, advantage: f64, drawn: &Sequence, terms: &[Term]) {
        let length = drawn.length.max(1) as f64;
        for ((token, term), &weight) in drawn.tokens.iter().zip(terms).zip(&drawn.weights) {
            let weight = weight as f64 / length;
            let ratio = Log::new(token.learner - token.rollout).ratio();
            self.whole += weight * ratio * advantage.abs();
            self.left += weight * term.gradient.abs();
        }
    }

    /// The share; 1 where the correction leaves everything as it is, or there was nothing to leave.
    pub(super) fn share(&self, correction: Correction) -> f64 {
        let share = self.left / self.whole;
        if correction == Correction::None || !share.is_finite() { 1.0 } else { share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::model::Tokens;

    #[test]
    fn a_course_is_the_sum_of_what_its_steps_were_worth() {
        let mut course = Course::default();
        assert_eq!((course.at(7), course.pace()), (7.0, 1.0));
        // Versions 0 and 1 went by unseen.
        course.step(2, 0.5);
        course.step(3, 0.25);
        assert_eq!([0, 2, 3, 4, 6].map(|at| course.at(at)), [0.0, 2.0, 2.5, 2.75, 4.75]);
        assert_eq!(course.pace(), 0.25);
        // The learner went back to version 3.
        course.step(3, 1.5);
        assert_eq!([3, 4, 5].map(|at| course.at(at)), [2.5, 4.0, 5.0]);
    }

    const RULE: Loss = Loss { correction: Correction::PpoClip, low: 0.8, high: 1.25 };

    fn taught(per_step: f64, square: f64) -> Lesson {
        Lesson { per_step, square, ..Lesson::default() }
    }

    fn member(group: u64, reward: f64) -> Member {
        Member { group, reward, masked: false }
    }

    #[test]
    fn the_tokens_of_a_sample_share_what_it_is_worth_beside_its_group() {
        let members =
            [member(2, 1.0), member(2, 0.0), member(2, 0.0), member(2, 0.0), member(4, 1.0)];
        let lessons = Lesson::of_batch(0.04, RULE, &members, &[2, 1, 1, 1, 5]);
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-15, "{found}");
        close(lessons[0].per_step, 0.04 * 0.75 / 2.0);
        close(lessons[3].per_step, -0.04 * 0.25);
        close(lessons[4].per_step, 0.0);
        close(lessons[4].square, (2.0 * 0.015 * 0.015 + 3.0 * 0.01 * 0.01) / 10.0);
        let masked = Member { masked: true, ..members[0] };
        let (down, up) = (libm::log(0.8), libm::log(1.25));
        assert_eq!(lessons[0].until, [f64::NEG_INFINITY, up], "a good one is pushed up");
        assert_eq!(lessons[3].until, [down, f64::INFINITY]);
        assert_eq!(lessons[4].until, Lesson::NEVER);
        let weighed = Loss { correction: Correction::Decoupled, ..RULE };
        let lessons_of = Lesson::of_batch(0.04, weighed, &members, &[2, 1, 1, 1, 5]);
        assert!(lessons_of.iter().all(|lesson| lesson.until == Lesson::NEVER));
        let lone = [member(1, 1.0), member(3, 0.0), Member { group: 5, ..masked }];
        let lessons = Lesson::of_batch(0.04, RULE, &lone, &[1, 1, 1]);
        let per_step: Vec<f64> = lessons.iter().map(|lesson| lesson.per_step).collect();
        assert_eq!(per_step, [0.02, -0.02, 0.0]);
    }

    #[test]
    fn a_lesson_is_never_more_than_what_moved() {
        let tokens = Tokens { entropy: 0.5, tail: 0.0, tail_fade: 0.0 };
        let law = Stretch { from_step: 0, sigma0: 0.0, a: 0.002, p: 1.5, kept: 1.0, tokens };
        let split = |per_step: f64| taught(per_step, per_step * per_step).split(&law, 1.0, 4.0);
        for per_step in [0.01, 0.03, 0.1] {
            let split = split(per_step);
            let lesson = split.per_step * 4.0;
            let both = split.law.moved(4.0) + lesson * lesson;
            assert!((both - law.moved(4.0)).abs() < 1e-15, "{both}");
        }
        assert_eq!(split(0.1).law.a, 0.0, "all of it");
        assert!(split(0.01).law.a > 0.0);
        let none = Stretch { a: 0.0, ..law };
        assert_eq!(taught(1.0, 1.0).split(&none, 1.0, 4.0).per_step, 0.0);
    }
}
