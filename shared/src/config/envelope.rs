//! What the windows of a healthy run keep.

use crate::metrics::Metric;
use crate::time::Span;

/// From where to where a metric goes, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// The range of each watched metric over one window of a healthy run.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// The length of a window.
    pub window: Span,
    /// The metrics that are watched, each with its range.
    pub ranges: Vec<(&'static Metric, Range)>,
}
