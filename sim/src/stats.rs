//! Statistics of results: no mean without its interval.
//!
//! Sums are folded in the order of the values, so equal runs give equal bits.

mod interval;
mod warm_up;

pub use interval::{Estimate, estimate, half_width_of_one_more, mean, paired_difference, variance};
pub use warm_up::{WarmUp, mser5};
