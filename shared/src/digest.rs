//! A small keyless digest for regression: equal inputs, equal digests, on every platform.
//!
//! It tells runs apart; it is no protection against someone who wants a collision.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A running 64-bit digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl Digest {
    /// The digest of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(0x243f_6a88_85a3_08d3)
    }

    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut digest = Self::new();
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            digest.fold(u64::from_le_bytes(word));
        }
        digest.fold(bytes.len() as u64);
        digest
    }

    /// Folds one word in. The order of words matters.
    #[inline]
    pub const fn fold(&mut self, word: u64) {
        self.0 = mix((self.0 ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15));
    }

    /// The digest with this [value](Self::value).
    #[must_use]
    pub const fn from_value(value: u64) -> Self {
        Self(value)
    }

    /// Its value.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection that mixes every bit.
#[must_use]
pub const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
