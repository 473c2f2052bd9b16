//! The trace that ships is what its generator makes of its seed.

#[path = "../../examples/synthetic_trace.rs"]
#[expect(dead_code, reason = "the program's `main` is not needed here")]
mod generator;

use super::committed;

#[test]
fn the_generator_makes_the_shipped_trace_byte_by_byte() {
    let table = generator::table().unwrap();
    assert!(table.len() < 100_000, "{} bytes", table.len());
    committed::check("scenarios/data/synthetic-llm.csv", &table);
}
