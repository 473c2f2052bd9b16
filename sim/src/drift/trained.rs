//! How the samples of a batch are trained on, and how much of their gradient a correction leaves.

use headway_shared::config::Correction;
use headway_shared::core::Sample;
use headway_shared::digest::Digest;
use headway_shared::input::Segment;
use headway_shared::ratio::{self, LogProbs, Loss, Member, Term, Token, advantages};

use super::learning::{Course, Kept, Lesson};
use super::model::Model;
use super::sequence::{Ages, Sequence, draw};
use super::steps::Steps;
use crate::kernel::random::{Component, Key};

/// How a sample is trained on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trained {
    pub(super) rule: Loss,
    pub(super) advantage: f64,
    pub(super) masked: bool,
}

impl Trained {
    /// The terms of the tokens that were drawn, by the reference of the corrections.
    pub(super) fn terms(&self, drawn: &Sequence) -> Vec<Term> {
        self.terms_of(drawn, &column(drawn, |token| token.learner))
    }

    /// Which tokens have a weight that is truncated or masked, whatever PPO's clipping does.
    pub(super) fn by_weight(&self, drawn: &Sequence, terms: &[Term]) -> Vec<bool> {
        let weighs = matches!(
            self.rule.correction,
            Correction::Tis | Correction::Icepop | Correction::SequenceMask
        );
        let moved = |token: &Token| token.learner != token.proximal;
        let clipped = |terms: &[Term]| terms.iter().map(|term| term.clipped).collect();
        match (weighs, drawn.tokens.iter().any(moved)) {
            (false, _) => vec![false; terms.len()],
            (true, false) => clipped(terms),
            // Where the learner is the proximal policy, PPO clips nothing.
            (true, true) => clipped(&self.terms_of(drawn, &column(drawn, |t| t.proximal))),
        }
    }

    /// Where a correction goes by the mean over the sequence, the tokens that were drawn are given
    /// that of the whole sequence.
    fn terms_of(&self, drawn: &Sequence, learner: &[f64]) -> Vec<Term> {
        let proximal = column(drawn, |token| token.proximal);
        let below = |top: &[f64], sum: f64| -> Vec<f64> {
            top.iter().map(|top| top - sum / drawn.length.max(1) as f64).collect()
        };
        let rollout = match self.rule.correction {
            Correction::Gspo => below(learner, drawn.learner),
            Correction::SequenceMask => below(&proximal, drawn.proximal),
            _ => column(drawn, |token| token.rollout),
        };
        let of = LogProbs { learner, proximal: &proximal, rollout: &rollout };
        ratio::terms(&self.rule, self.advantage, of)
    }
}

/// As the trainer sees a batch: groups and lone samples do not share numbers.
pub(crate) fn members(batch: &[&Sample]) -> Vec<Member> {
    let member = |(place, sample): (usize, &&Sample)| Member {
        group: match sample.group {
            Some(group) => group.0 << 1,
            None => (place as u64) << 1 | 1,
        },
        reward: f64::from(sample.score) / 1e6,
        masked: sample.masked,
    };
    batch.iter().enumerate().map(member).collect()
}

/// A batch that a run trained.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The learner version that its step started from.
    pub version: u32,
    /// Its samples.
    pub members: Vec<Member>,
    /// Of each, its tokens and the version of most of them.
    pub segments: Vec<Segment>,
}

impl Batch {
    /// The batch of these samples, all trained by one step.
    pub(crate) fn new(version: u32, samples: &[&Sample]) -> Self {
        let segment =
            |sample: &&Sample| Segment { version: sample.mean_version(), tokens: sample.tokens };
        Self { version, members: members(samples), segments: samples.iter().map(segment).collect() }
    }
}

/// What share of its gradient the correction leaves in each stretch of a run with these batches, as the
/// model has it; `None` where a stretch has none. The run is the one that the model is fitted to, so that each of
/// its steps is worth one.
#[must_use]
pub fn gradient_kept(model: &Model, rule: Loss, batches: &[Batch]) -> Vec<Option<f64>> {
    let key = Key::new(0, Digest::of(b"gradient kept"), 0);
    let growth = model.growth.map_or(0.0, |growth| growth.per_step);
    let mut sums = vec![(0.0, 0.0); model.stretches.len()];
    let (mut baseline, mut steps, mut drawn) = Default::default();
    let mut entity = 0;
    for batch in batches {
        Steps::reach(&mut steps, model, &key, batch.version);
        let Some((stretch, law)) = model.stretch(f64::from(batch.version)) else { continue };
        let tokens: Vec<u32> = batch.segments.iter().map(|segment| segment.tokens).collect();
        let lessons = Lesson::of_batch(growth, rule, &batch.members, &tokens);
        let advantages = advantages(&batch.members, &mut baseline);
        let mut kept = Kept::default();
        for (place, (member, advantage)) in batch.members.iter().zip(advantages).enumerate() {
            let (learner, course, lesson) = (batch.version, Course::STEADY, lessons[place]);
            let moves = &steps;
            let ages = Ages { learner, deploy: None, within: 0.0, course, moves, lesson };
            let stream = key.stream(Component::Token, entity);
            entity += 1;
            draw(model, law, &batch.segments[place..=place], &ages, stream, &mut drawn);
            let trained = Trained { rule, advantage, masked: member.masked };
            kept.add(advantage, &drawn, &trained.terms(&drawn));
        }
        sums[stretch].0 += kept.share(rule.correction);
        sums[stretch].1 += 1.0;
    }
    sums.into_iter().map(|(sum, steps)| (steps > 0.0).then(|| sum / steps)).collect()
}

fn column(drawn: &Sequence, of: impl Fn(&Token) -> f64) -> Vec<f64> {
    drawn.tokens.iter().map(of).collect()
}
