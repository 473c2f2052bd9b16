//! Writes `scenarios/data/synthetic-llm.csv`: requests as a chat service gets them, made up.
//!
//!     cargo run -p headway-sim --example synthetic_trace > scenarios/data/synthetic-llm.csv
//!
//! Times between requests are exponential at a rate that follows [`BURST`]; lengths are log-normal.
//! The laws are assumed, in the range of published traces of chat services; no row is taken from
//! one. Everything is drawn from [`SEED`], so that the file can be made again byte by byte.

use headway_shared::digest::Digest;
use headway_sim::import::COLUMNS;
use headway_sim::kernel::random::{Component, Key};
use headway_sim::kernel::sampler::{Distribution, DistributionError};

const SEED: u64 = 1;
const REQUESTS: u64 = 2000;
/// Requests per second in a burst and between two, and how long each of them is, in seconds.
const BURST: [(f64, f64); 2] = [(1.2, 300.0), (0.25, 600.0)];
/// The longest answer, in tokens.
const LONGEST: f64 = 1000.0;

fn main() -> Result<(), DistributionError> {
    #[expect(clippy::print_stdout, reason = "this is what the program is for")]
    {
        print!("{}", table()?);
    }
    Ok(())
}

/// The whole file.
pub(crate) fn table() -> Result<String, DistributionError> {
    let key = Key::new(SEED, Digest::of(b"synthetic-llm"), 0);
    let prompt = Distribution::lognormal_median_p99(900.0, 4000.0)?;
    let output = Distribution::lognormal_median_p99(130.0, 900.0)?;
    let mut arrivals = key.stream(Component::Arrival, 0);
    let mut arrival = 0.0;
    let mut table = COLUMNS.join(",") + "\n";
    for request in 0..REQUESTS {
        let mut lengths = key.stream(Component::Request, request);
        let prompt = prompt.sample(&mut lengths, request);
        let output = output.sample(&mut lengths, request).clamp(1.0, LONGEST);
        table += &format!("{arrival:.3},{prompt:.0},{output:.0}\n");
        arrival = later(arrival, arrivals.exponential());
    }
    Ok(table)
}

/// When the next request comes: after so much of an exponential of mean 1, at a rate that changes.
fn later(mut now: f64, mut due: f64) -> f64 {
    let [(burst, long), (calm, pause)] = BURST;
    loop {
        let phase = now % (long + pause);
        let (rate, left) =
            if phase < long { (burst, long - phase) } else { (calm, long + pause - phase) };
        if due < rate * left {
            return now + due / rate;
        }
        due -= rate * left;
        now += left;
    }
}
