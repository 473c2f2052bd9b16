//! Samplers have pinned values and the right moments.
