//! How old samples were when they were trained, and where the time went.

use headway_shared::core::{Fate, Resolved};
use headway_shared::metrics::Histogram;

use super::evidence::Evidence;

/// Bars of the histogram at most.
const BARS: usize = 12;
/// Nanoseconds of the narrowest first bar: a millisecond.
const LEAST: u64 = 1_000_000;

/// A part of the staleness of trained samples, and of their age.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its name: one of [`STALENESS_PARTS`](headway_shared::core::STALENESS_PARTS), or
    /// `first_token`, the wait for the first token.
    pub name: &'static str,
    /// Learner versions that passed in it, mean over trained samples; the wait for the first token
    /// has none.
    pub versions: Option<f64>,
    /// Seconds that passed in it, mean over trained samples; the publish lag has none.
    pub seconds: Option<f64>,
}

/// The time of trained samples between the end of their generation and the start of their train
/// step.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    nanos: Histogram,
    /// By the position of the highest bit.
    doublings: Vec<u64>,
}

/// A bar of the histogram: samples whose age is in a range of seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Seconds, inclusive.
    pub from: f64,
    /// Seconds, exclusive.
    pub to: f64,
    /// Samples.
    pub samples: u64,
}

impl Waits {
    /// Adds the samples that were trained.
    pub(super) fn see(&mut self, resolved: &[Resolved]) {
        for resolved in resolved.iter().filter(|resolved| resolved.fate == Fate::Trained) {
            let nanos = resolved.sample.age().as_nanos();
            self.nanos.add(nanos);
            let doubling = (nanos / LEAST).checked_ilog2().map_or(0, |log| log as usize + 1);
            if doubling >= self.doublings.len() {
                self.doublings.resize(doubling + 1, 0);
            }
            self.doublings[doubling] += 1;
        }
    }

    /// Seconds that this percentage of the samples did not exceed, within 0.79%.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<f64> {
        self.nanos.percentile(percent).map(|nanos| nanos as f64 / 1e9)
    }

    /// The histogram: each bar is twice as wide as the one before; the young ones share the first.
    #[must_use]
    pub fn bars(&self) -> Vec<Bar> {
        let Some(first) = self.doublings.iter().position(|&count| count > 0) else {
            return Vec::new();
        };
        let first = first.max(self.doublings.len().saturating_sub(BARS));
        let edge = |doubling: usize| match doubling {
            0 => 0.0,
            doubling => (LEAST << (doubling - 1)) as f64 / 1e9,
        };
        let bar = |doubling: usize| Bar {
            from: if doubling == first { 0.0 } else { edge(doubling) },
            to: edge(doubling + 1),
            samples: if doubling == first {
                self.doublings[..=first].iter().sum()
            } else {
                self.doublings[doubling]
            },
        };
        (first..self.doublings.len()).map(bar).collect()
    }
}

/// The parts of staleness and age: what took most versions first, then what took most seconds.
#[must_use]
pub fn parts(evidence: &Evidence) -> Vec<Part> {
    let names = headway_shared::core::STALENESS_PARTS;
    let of = |name: &'static str| Part {
        name,
        versions: evidence.get(&format!("staleness_part_{name}")),
        seconds: evidence.get(&format!("part_seconds_{name}")),
    };
    let mut parts = names.map(of).to_vec();
    parts.push(of("first_token"));
    parts.retain(|part| part.versions.is_some() || part.seconds.is_some());
    let key = |value: Option<f64>| value.unwrap_or(0.0);
    parts.sort_by(|one, other| {
        let versions = key(other.versions).total_cmp(&key(one.versions));
        versions.then(key(other.seconds).total_cmp(&key(one.seconds)))
    });
    parts
}
