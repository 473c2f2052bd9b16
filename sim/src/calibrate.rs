//! Calibration: the numbers of a scenario out of what a run measured.

pub mod fit;
