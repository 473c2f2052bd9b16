//! One batch per version.

use headway_shared::config::GateKind;

use super::super::harness::{GOOD, ZERO};
use super::{gated, room};

#[test]
fn sync_admits_one_batch_for_each_version() {
    let mut bench = gated(GateKind::Sync);
    bench.scored(0, GOOD);
    bench.scored(1, GOOD);
    assert_eq!(room(&mut bench, 10), 0);
    bench.end_step(true);
    assert_eq!(room(&mut bench, 20), 0);
    bench.publish();
    assert_eq!(room(&mut bench, 30), 2);
}

#[test]
fn sync_replaces_a_discarded_sample() {
    let mut bench = gated(GateKind::Sync);
    bench.scored(0, GOOD);
    bench.scored(1, ZERO);
    assert_eq!(room(&mut bench, 10), 1);
}
