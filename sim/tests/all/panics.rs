//! A panic in one run ends neither the others nor the program.

use std::io::{self, Write};

use headway_sim::report::results::Kind;
use headway_sim::sweep::{Plan, Progress};

use crate::all::world_support::{SLOTS, load};

/// A record that breaks its run.
struct Broken;

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        panic!("the pencil is blunt")
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Quiet;

impl Progress for Quiet {
    fn run_ended(&self) {}
}

#[test]
fn a_run_that_panics_is_trouble_and_the_others_give_their_results() {
    let plan = Plan::new(Kind::Run, &load(SLOTS, &[]), &[], 4..7).expect("it fits");
    let outcome = plan.run(2, Some(Broken), &Quiet).expect("it runs");
    let [trouble] = outcome.trouble.as_slice() else { panic!("{:?}", outcome.trouble) };
    assert_eq!((trouble.point, trouble.replication, trouble.fatal), (0, 4, true));
    assert!(trouble.what.contains("a bug of Headway: the pencil is blunt"), "{}", trouble.what);
    let runs: Vec<u32> =
        outcome.points[0].runs.iter().map(|(replication, _)| *replication).collect();
    assert_eq!(runs, [5, 6]);
    assert_eq!(outcome.results.runs.rows.len(), 2);
}
