//! What `[world.drift]` takes for granted of learning, tried out: a softmax policy with a table of logits,
//! trained with GRPO, the clipping of PPO and AdamW's steps on samples that are k versions old.

use headway_shared::config::Correction;
use headway_shared::digest::Digest;
use headway_shared::ratio::{Baseline, LogProbs, Loss, Member, advantages, terms};
use headway_sim::kernel::random::{Component, Key, Stream};

const PROMPTS: usize = 8;
/// The first one is right.
const ANSWERS: usize = 16;
const GROUPS: usize = 16;
const GROUP: usize = 8;
const STEPS: usize = 160;
const LEARNING_RATE: f64 = 0.03;
const SEEDS: u64 = 8;

type Table = [[f64; ANSWERS]; PROMPTS];

/// Log-probabilities of the answers.
fn log_softmax(logits: &[f64; ANSWERS]) -> [f64; ANSWERS] {
    let all = libm::log(logits.iter().map(|&logit| libm::exp(logit)).sum());
    logits.map(|logit| logit - all)
}

fn answer(probabilities: &[f64; ANSWERS], stream: &mut Stream) -> usize {
    let mut left = stream.uniform();
    let drawn = probabilities.iter().position(|&log| {
        left -= libm::exp(log);
        left <= 0.0
    });
    drawn.unwrap_or(ANSWERS - 1)
}

/// What came of learning, while the chance of the right answer rose from 0.1 to 0.3.
#[derive(Clone, Copy, Debug, Default)]
struct Learned {
    /// Of the log-odds of the reward, per step.
    growth: f64,
    /// The share of the gradient that was left.
    kept: f64,
    /// The mean square of log-ratios four versions apart.
    square: f64,
}

/// AdamW, without decay of weights.
struct Adam {
    means: Table,
    squares: Table,
    steps: i32,
}

impl Adam {
    fn step(&mut self, logits: &mut Table, gradient: &Table) {
        self.steps += 1;
        let corrected = |decay: f64| 1.0 - libm::pow(decay, f64::from(self.steps));
        let (first, second) = (corrected(0.9), corrected(0.999));
        for prompt in 0..PROMPTS {
            for at in 0..ANSWERS {
                let slope = gradient[prompt][at];
                let (mean, square) = (&mut self.means[prompt][at], &mut self.squares[prompt][at]);
                *mean += 0.1 * (slope - *mean);
                *square += 0.001 * (slope * slope - *square);
                let size = libm::sqrt(*square / second) + 1e-8;
                logits[prompt][at] -= LEARNING_RATE * (*mean / first) / size;
            }
        }
    }
}

fn learn(age: usize, rule: &Loss, seed: u64) -> Learned {
    let key = Key::new(seed, Digest::of(b"learning"), 0);
    let none: Table = [[0.0; ANSWERS]; PROMPTS];
    let mut adam = Adam { means: none, squares: none, steps: 0 };
    let mut logits = none;
    let mut policies: Vec<Table> = Vec::new();
    let mut rows: Vec<(f64, f64, f64)> = Vec::new();
    for step in 0..STEPS {
        let now = logits.map(|of| log_softmax(&of));
        policies.push(now);
        let old = policies[step.saturating_sub(age)];
        let mut stream = key.stream(Component::Step, step as u64);
        let mut samples = Vec::new();
        let mut members = Vec::new();
        for group in 0..GROUPS {
            let prompt = stream.below(PROMPTS as u64) as usize;
            for _ in 0..GROUP {
                let answer = answer(&old[prompt], &mut stream);
                let reward = if answer == 0 { 1.0 } else { 0.0 };
                members.push(Member { group: 2 * group as u64, reward, masked: false });
                samples.push((prompt, answer));
            }
        }
        let (mut left, mut whole) = (0.0, 0.0);
        let mut gradient = none;
        let advantages = advantages(&members, &mut Baseline::default());
        for (&(prompt, answer), advantage) in samples.iter().zip(advantages) {
            let (learner, rollout) = ([now[prompt][answer]], [old[prompt][answer]]);
            let of = LogProbs { learner: &learner, proximal: &learner, rollout: &rollout };
            let slope = terms(rule, advantage, of)[0].gradient;
            left += slope.abs();
            whole += advantage.abs() * libm::exp(learner[0] - rollout[0]);
            for (at, of) in gradient[prompt].iter_mut().enumerate() {
                let own = if at == answer { 1.0 } else { 0.0 };
                *of += slope * (own - libm::exp(now[prompt][at])) / (GROUPS * GROUP) as f64;
            }
        }
        adam.step(&mut logits, &gradient);
        let right = now.iter().map(|of| libm::exp(of[0])).sum::<f64>() / PROMPTS as f64;
        let before = policies[step.saturating_sub(4)];
        let square = |prompt: usize| -> f64 {
            let of = |at: usize| {
                let log = now[prompt][at] - before[prompt][at];
                libm::exp(now[prompt][at]) * log * log
            };
            (0..ANSWERS).map(of).sum()
        };
        let square = (0..PROMPTS).map(square).sum::<f64>() / PROMPTS as f64;
        rows.push((right, if whole > 0.0 { left / whole } else { 1.0 }, square));
    }
    // All samples are as old as they are to be, and Adam's first steps are over.
    let seen: Vec<_> =
        rows.iter().skip(age.max(12)).filter(|row| (0.1..0.3).contains(&row.0)).collect();
    let log_odds = |row: &(f64, f64, f64)| libm::log(row.0 / (1.0 - row.0));
    let count = seen.len() as f64;
    let mean =
        |of: fn(&(f64, f64, f64)) -> f64| seen.iter().map(|row| of(row)).sum::<f64>() / count;
    Learned {
        growth: (log_odds(seen[seen.len() - 1]) - log_odds(seen[0])) / (count - 1.0),
        kept: mean(|row| row.1),
        square: mean(|row| row.2),
    }
}

/// The mean over seeds.
fn learned(age: usize, correction: Correction) -> Learned {
    let rule = Loss { correction, low: 0.8, high: 1.25 };
    let runs: Vec<Learned> = (0..SEEDS).map(|seed| learn(age, &rule, seed)).collect();
    let mean = |of: fn(&Learned) -> f64| runs.iter().map(of).sum::<f64>() / SEEDS as f64;
    Learned {
        growth: mean(|run| run.growth),
        kept: mean(|run| run.kept),
        square: mean(|run| run.square),
    }
}

#[test]
fn a_policy_learns_as_fast_as_clipping_leaves_of_its_gradient_and_moves_as_much_less() {
    let fresh = learned(0, Correction::PpoClip);
    assert_eq!(fresh.kept, 1.0);
    for age in [4, 8, 12] {
        let found = learned(age, Correction::PpoClip);
        let pace = found.growth / fresh.growth;
        assert!((found.kept / pace - 1.0).abs() < 0.1, "{age}: pace {pace}, {found:?}");
        // Straight on: p is nearly 2.
        let moved = libm::sqrt(found.square / fresh.square);
        assert!((moved / pace - 1.0).abs() < 0.15, "{age}: moved {moved} at a pace of {pace}");
    }
    assert!(learned(12, Correction::PpoClip).kept < 0.7, "most of the last is clipped");
}

#[test]
fn age_alone_does_not_slow_what_is_weighed_by_ratios() {
    let fresh = learned(0, Correction::Decoupled);
    for age in [4, 12] {
        let pace = learned(age, Correction::Decoupled).growth / fresh.growth;
        assert!((pace - 1.0).abs() < 0.05, "{age}: {pace}");
    }
}
