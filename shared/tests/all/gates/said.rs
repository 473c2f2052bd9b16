//! What a gate says of itself: its formula with its numbers, which add up.

use headway_shared::config::GateKind;
use headway_shared::describe;

use super::super::harness::{Bench, GOOD};
use super::{gated_with, two_batches_ahead};

/// The gate's formula for its one replica.
fn said(bench: &Bench, gate: GateKind) -> String {
    describe::capacity(gate, &bench.core.state().replicas[0].capacity)
}

#[test]
fn a_gate_that_counts_for_itself_shows_its_count() {
    let formulas = [
        (
            GateKind::Areal,
            "min(max(1, max_concurrent_rollouts 256) - running 1, \
             (η 2 + version 3 + 1) * batch 2 - (accepted 7 + running 1)) = 4",
        ),
        (GateKind::Verl, "required 6 - max(counted since the last sync 2, queued 1) = 4"),
        (GateKind::Roll, "ahead 4 + batch 2 * (version 3 + 1) - (completed 7 + running 1) = 4"),
        (GateKind::Skyrl, "(η 2 + version 3 + 1) * batch 2 - (accepted 7 + running 1) = 4"),
        (GateKind::PipelineRl, "first 6 + batch 2 * version 3 - submitted 8 = 4"),
    ];
    for (gate, formula) in formulas {
        let mut bench = gated_with(gate, two_batches_ahead);
        bench.steps(3);
        bench.admit(0);
        bench.scored(1, GOOD);
        assert_eq!(said(&bench, gate), formula);
    }
}

#[test]
fn a_reserve_is_in_the_sum_only_where_the_rule_itself_gives_nothing() {
    let mut bench = gated_with(GateKind::Headway, |c| {
        c.policy_training.over_sampling = 1_500_000;
        c.policy_training.max_head_off_policyness = 0;
    });
    let sum = |outstanding: u32, places: u32| {
        format!(
            "(η 0 + 1 - publish lag 0) * batch 2 - outstanding {outstanding} = {places} \
             (over-sampling adds up to 1)"
        )
    };
    assert_eq!(said(&bench, GateKind::Headway), sum(0, 2));
    bench.admit(0);
    bench.admit(1);
    assert_eq!(said(&bench, GateKind::Headway), sum(2, 1));
}

#[test]
fn a_gate_without_a_bound_has_places_without_end() {
    use GateKind::{NemoRlWindow, None, Openclaw, PrimeRl};
    for gate in [NemoRlWindow, None, Openclaw, PrimeRl] {
        let bench = gated_with(gate, |_| {});
        assert_eq!(said(&bench, gate), "no limit");
        assert_eq!(bench.core.state().replicas[0].capacity.places, i64::MAX, "{gate:?}");
    }
}
