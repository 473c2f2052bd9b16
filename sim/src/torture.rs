//! Torture: random scenarios with every fault of the world, and what must hold in each.
//!
//! Each seed picks its own features and faults ([`Case`]). Its run has two phases. While faults
//! happen, every rule of the core is looked at after every input (safety). Then faults and new
//! sessions stop, and everything that is under way must come to its end (liveness). Each run is made
//! twice and must be the same, byte by byte: the records hold every time that was drawn.

mod case;
mod play;
mod reduce;
mod words;

use std::ops::Range;

use rayon::ThreadPoolBuildError;

pub use case::{Case, SESSIONS, SLOTS};
pub use play::{Limits, play, play_planted};
pub use reduce::reduce;
pub use words::Words;

use crate::sweep::{Progress, replicate};

/// A seed whose scenario broke something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub seed: u32,
    /// What is wrong.
    pub what: String,
}

/// Plays the scenarios of seeds on `jobs` threads (0: one per core); those that broke something, in
/// their order.
///
/// # Errors
/// The threads could not be started.
pub fn torture(
    seeds: Range<u32>,
    limits: Limits,
    jobs: usize,
    progress: &(dyn Progress + Sync),
) -> Result<Vec<Broken>, ThreadPoolBuildError> {
    let work = |_, seed: u32| {
        let what = play(&Case::of_seed(u64::from(seed)), limits).err()?;
        Some(Broken { seed, what })
    };
    let played = replicate(1, seeds, jobs, work, || progress.run_ended())?;
    Ok(played.into_iter().flatten().flatten().collect())
}
