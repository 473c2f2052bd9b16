//! The runtime from outside.

#[cfg(feature = "torch")]
mod learning;
