//! CPU time of this thread.

/// Seconds of CPU that the program has had: it has one thread. 0 where Linux does not say.
pub(crate) fn cpu_sec() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|word| word.parse::<u64>().ok());
    nanos.unwrap_or(0) as f64 * 1e-9
}

/// Does something until it has taken a second, and says how many seconds one took.
pub(crate) fn seconds_of(mut work: impl FnMut()) -> f64 {
    let began = cpu_sec();
    let mut times = 0;
    loop {
        work();
        times += 1;
        let taken = cpu_sec() - began;
        if taken >= 1.0 || taken == 0.0 {
            return taken / f64::from(times);
        }
    }
}
