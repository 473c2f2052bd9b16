//! Records of runs: a header, stamped inputs, and the digest of the actions each caused.
