//! OpenClaw-RL's window.

use headway_shared::action::{Discard, Refusal};
use headway_shared::config::GateKind;

use super::super::harness::GOOD;
use super::gated;

#[test]
fn openclaw_answers_503_from_a_full_batch_until_the_step_before_is_deployed() {
    let mut bench = gated(GateKind::Openclaw);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    assert!(bench.training());
    bench.scored(2, GOOD);
    bench.admit(3);
    bench.scored(4, GOOD);
    bench.refuses(5, Refusal::WeightSync);
    bench.end_step(true);
    bench.refuses(6, Refusal::WeightSync);
    bench.publish();
    bench.admit(7);
}

#[test]
fn openclaw_loses_what_does_not_fit_into_the_batch_of_a_drain() {
    let mut bench = gated(GateKind::Openclaw);
    let requests: Vec<_> = (0..5).map(|session| bench.admit(session)).collect();
    let samples: Vec<_> = requests.iter().map(|&request| bench.sample_of(request)).collect();
    for (request, sample) in requests.into_iter().zip(&samples) {
        bench.finish(request);
        bench.vote(*sample, GOOD);
    }
    assert_eq!(bench.batch(), samples[..2]);
    bench.end_step(true);
    bench.publish();
    assert_eq!(bench.batch(), samples[2..4]);
    assert_eq!(bench.discarded, [(samples[4], Discard::Surplus)]);
}

#[test]
fn openclaw_answers_from_the_start() {
    let mut bench = gated(GateKind::Openclaw);
    bench.admit(0);
}
