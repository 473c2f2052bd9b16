//! No bound.

use headway_shared::config::GateKind;

use super::{gated, room};

#[test]
fn no_gate_admits_everything() {
    let mut bench = gated(GateKind::None);
    assert_eq!(room(&mut bench, 0), 256, "up to max_concurrent_rollouts");
}
