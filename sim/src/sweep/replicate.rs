//! Many runs on many threads, their results in order.

use std::ops::Range;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPoolBuildError, ThreadPoolBuilder};

/// Does `work` for every replication of every point on `jobs` threads (0: one per core) and gives
/// the results by point and replication, whatever the order in which they were finished.
/// `done` is called after each.
///
/// # Errors
/// The threads could not be started.
pub fn replicate<T: Send>(
    points: usize,
    replications: Range<u32>,
    jobs: usize,
    work: impl Fn(usize, u32) -> T + Sync,
    done: impl Fn() + Sync,
) -> Result<Vec<Vec<T>>, ThreadPoolBuildError> {
    let tasks: Vec<(usize, u32)> = (0..points)
        .flat_map(|point| replications.clone().map(move |replication| (point, replication)))
        .collect();
    let pool = ThreadPoolBuilder::new().num_threads(jobs).build()?;
    let finished: Vec<T> = pool.install(|| {
        let task = |(point, replication)| {
            let result = work(point, replication);
            done();
            result
        };
        // `collect` keeps the order of the tasks.
        tasks.into_par_iter().map(task).collect()
    });
    let mut finished = finished.into_iter();
    Ok((0..points).map(|_| finished.by_ref().take(replications.len()).collect()).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn results_come_in_order_from_any_number_of_threads() {
        for jobs in [1, 2, 7] {
            let done = AtomicU32::new(0);
            let count = || {
                done.fetch_add(1, Ordering::Relaxed);
            };
            let results =
                replicate(5, 0..3, jobs, |point, replication| (point, replication), count);
            let results = results.expect("threads start");
            assert_eq!(results.len(), 5);
            assert_eq!(results[4], [(4, 0), (4, 1), (4, 2)]);
            assert_eq!(done.into_inner(), 15);
        }
    }
}
