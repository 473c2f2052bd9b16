//! Samples of several sequences: they count once, whatever they consist of.

use std::ops::Range;

use headway_shared::ratio::{self, Baseline, Member};

use super::TrainSample;

/// The places of each sample's sequences, which stand side by side.
#[must_use]
pub fn by_sample(batch: &[TrainSample]) -> Vec<Range<usize>> {
    let mut from = 0;
    let runs = batch.chunk_by(|one, next| one.id == next.id);
    runs.map(|run| {
        from += run.len();
        from - run.len()..from
    })
    .collect()
}

/// The advantage of each sequence: that of its sample among its group's samples, weighted by the
/// sequence's share of the sample's generated tokens. The weighted losses of a sample's sequences,
/// each a mean over tokens, add up to the mean over all its tokens.
pub fn advantages(batch: &[TrainSample], baseline: &mut Baseline) -> Vec<f64> {
    let samples = by_sample(batch);
    let members: Vec<Member> = samples.iter().map(|places| member(batch, places)).collect();
    let advantages = ratio::advantages(&members, baseline);
    let weighted = samples.iter().zip(advantages).flat_map(|(places, advantage)| {
        let tokens = |sequence: &TrainSample| {
            sequence.loss_mask.iter().filter(|&&generated| generated).count() as f64
        };
        let sequences = &batch[places.clone()];
        let all = sequences.iter().map(tokens).sum::<f64>().max(1.0);
        let whole = sequences.len() == 1;
        let share = move |sequence| if whole { 1.0 } else { tokens(sequence) / all };
        sequences.iter().map(move |sequence| advantage * share(sequence))
    });
    weighted.collect()
}

fn member(batch: &[TrainSample], places: &Range<usize>) -> Member {
    let sample = &batch[places.start];
    // Groups and lone samples must not share numbers.
    let group = match sample.group {
        Some(group) => group.0 << 1,
        None => (places.start as u64) << 1 | 1,
    };
    Member { group, reward: sample.reward, masked: sample.masked }
}

#[cfg(test)]
mod tests {
    use headway_shared::id::{GroupId, SampleId};
    use headway_shared::version::RolloutVersion;

    use super::*;

    fn sequence(id: u64, reward: f64, generated: usize) -> TrainSample {
        let length = generated + 1;
        TrainSample {
            id: SampleId(id),
            group: Some(GroupId(7)),
            tokens: vec![0; length],
            loss_mask: (0..length).map(|place| place > 0).collect(),
            rollout_logprobs: vec![-0.5; length],
            versions: vec![RolloutVersion::new(0); length],
            reward,
            masked: false,
        }
    }

    #[test]
    fn a_sample_cut_in_two_is_weighted_and_compared_as_one() {
        let whole = [sequence(0, 1.0, 4), sequence(1, 0.0, 2), sequence(2, 0.0, 2)];
        let cut =
            [sequence(0, 1.0, 3), sequence(0, 1.0, 1), sequence(1, 0.0, 2), sequence(2, 0.0, 2)];
        let expected = advantages(&whole, &mut Baseline::default());
        let found = advantages(&cut, &mut Baseline::default());
        assert_eq!(by_sample(&cut), [0..2, 2..3, 3..4]);
        assert_eq!(found[0], 0.75 * expected[0]);
        assert_eq!(found[1], 0.25 * expected[0]);
        assert_eq!(found[2..], expected[1..]);
    }
}
