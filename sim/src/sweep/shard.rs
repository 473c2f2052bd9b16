//! Which share of a sweep's runs is whose.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// More shards than this are taken for a slip of the pen.
pub const MOST_SHARDS: u32 = 100_000;

/// A share of a sweep: `3/8` is the third of eight.
///
/// Runs are numbered by point and, within one, by replication; they are dealt to the shards like
/// cards, one after another. So shards differ by one run at most, and no shard gets all the runs of
/// the point that takes longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// 1 to [`of`](Self::of).
    number: u32,
    of: u32,
}

/// Why there is no such shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// It is not written as one.
    #[error("`{0}` is no shard")]
    Malformed(String),
    /// Its number is none of 1 to the number of shards.
    #[error("there is no shard {number} of {of}: shards are numbered from 1 to {of}")]
    OutOfRange {
        /// The number.
        number: u64,
        /// How many there are.
        of: u32,
    },
    /// There are none, or too many.
    #[error("a sweep has 1 to {MOST_SHARDS} shards, not {0}")]
    Count(u64),
}

impl Shard {
    /// The whole sweep.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Shard `number`, counted from 1, of so many.
    ///
    /// # Errors
    /// There are none or more than [`MOST_SHARDS`], or the number is none of theirs.
    pub fn new(number: u64, of: u64) -> Result<Self, ShardError> {
        let count = u32::try_from(of).ok().filter(|of| (1..=MOST_SHARDS).contains(of));
        let of = count.ok_or(ShardError::Count(of))?;
        let known = u32::try_from(number).ok().filter(|number| (1..=of).contains(number));
        let number = known.ok_or(ShardError::OutOfRange { number, of })?;
        Ok(Self { number, of })
    }

    /// Its number: 1 to [`of`](Self::of).
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// How many shards there are.
    #[must_use]
    pub const fn of(self) -> u32 {
        self.of
    }

    /// The numbers of its runs, in order, of a sweep that has `total`.
    pub fn runs(self, total: usize) -> impl Iterator<Item = usize> {
        (self.number as usize - 1..total).step_by(self.of as usize)
    }

    /// Whether a run is one of its own.
    #[must_use]
    pub const fn has(self, run: usize) -> bool {
        run % self.of as usize == self.number as usize - 1
    }

    /// The name of its folder.
    #[must_use]
    pub fn folder(self) -> String {
        format!("{FOLDERS}{}-of-{}", self.number, self.of)
    }
}

/// Folders of shards begin with this.
pub const FOLDERS: &str = "shard-";

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let parts = text.split_once('/').and_then(|(k, n)| Some((number(k)?, number(n)?)));
        let (number, of) = parts.ok_or_else(|| ShardError::Malformed(text.into()))?;
        Self::new(number, of)
    }
}

impl TryFrom<String> for Shard {
    type Error = ShardError;

    fn try_from(text: String) -> Result<Self, ShardError> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_in_one_shard_and_shards_differ_by_one_run() {
        for total in [0, 1, 5, 8, 64, 97] {
            for of in [1, 2, 3, 8, 100] {
                let shards = (1..=of).map(|number| Shard::new(number, of).unwrap());
                let shares: Vec<Vec<usize>> =
                    shards.clone().map(|shard| shard.runs(total).collect()).collect();
                let mut all: Vec<usize> = shares.iter().flatten().copied().collect();
                all.sort_unstable();
                assert_eq!(all, (0..total).collect::<Vec<_>>(), "{of}");
                let sizes = shares.iter().map(Vec::len);
                assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
                for (shard, share) in shards.zip(&shares) {
                    assert!((0..total).all(|run| shard.has(run) == share.contains(&run)));
                }
            }
        }
    }

    #[test]
    fn shards_are_read_as_they_are_written_and_counted_from_one() {
        assert_eq!("3/8".parse::<Shard>().unwrap().to_string(), "3/8");
        assert_eq!("0/8".parse::<Shard>(), Err(ShardError::OutOfRange { number: 0, of: 8 }));
        assert_eq!("9/8".parse::<Shard>(), Err(ShardError::OutOfRange { number: 9, of: 8 }));
        assert_eq!("1/0".parse::<Shard>(), Err(ShardError::Count(0)));
        assert_eq!("1/100001".parse::<Shard>(), Err(ShardError::Count(100_001)));
        for text in ["", "3", "3/", "/8", "a/8", "-1/8", "3/8/2", "3 of 8"] {
            assert_eq!(text.parse::<Shard>(), Err(ShardError::Malformed(text.into())));
        }
    }
}
