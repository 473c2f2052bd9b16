//! OpenClaw-RL's window.

use headway_shared::action::Refusal;
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
fn openclaw_answers_from_the_start() {
    let mut bench = gated(GateKind::Openclaw);
    bench.admit(0);
}
