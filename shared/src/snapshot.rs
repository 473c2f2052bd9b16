//! Snapshots: the whole state of the core as bytes.
//!
//! A restored [`Scheduler`] goes on exactly as the one it was taken from: same inputs, same
//! actions. Layout: `"HWYSNAP\n"`, the [decision version](DECISION_VERSION) as a little-endian
//! `u32`, the [digest](Digest) of the rest as a `u64`, and the rest in postcard.

use crate::core::Scheduler;
use crate::digest::Digest;
use crate::record::DECISION_VERSION;

const MAGIC: [u8; 8] = *b"HWYSNAP\n";

/// Why bytes are no snapshot that this build can restore.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// They do not begin as a snapshot does.
    #[error("this is not a snapshot of Headway's core")]
    NotASnapshot,
    /// It was taken by a core that may decide otherwise.
    #[error(
        "the snapshot has decision version {found}; this build decides as version {DECISION_VERSION}"
    )]
    OtherDecisions {
        /// Its decision version.
        found: u32,
    },
    /// It is cut short or changed.
    #[error("the snapshot is damaged")]
    Damaged,
    /// The state has no form as bytes. Does not happen to a correct core.
    #[error("the core's state cannot be written: {0}")]
    Encoding(#[from] postcard::Error),
}

/// The state of `scheduler`, which must have no action left to poll.
///
/// # Errors
/// [`SnapshotError::Encoding`].
pub fn to_bytes(scheduler: &Scheduler) -> Result<Vec<u8>, SnapshotError> {
    let state = postcard::to_stdvec(scheduler)?;
    let mut bytes = Vec::with_capacity(MAGIC.len() + 12 + state.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&DECISION_VERSION.to_le_bytes());
    bytes.extend_from_slice(&Digest::of(&state).value().to_le_bytes());
    bytes.extend_from_slice(&state);
    Ok(bytes)
}

/// The core whose state this is.
///
/// # Errors
/// Every [`SnapshotError`] but `Encoding`. The digest guards against accidents, not against
/// someone who forges a snapshot.
pub fn from_bytes(bytes: &[u8]) -> Result<Scheduler, SnapshotError> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or(SnapshotError::NotASnapshot)?;
    let (version, rest) = rest.split_first_chunk().ok_or(SnapshotError::Damaged)?;
    let found = u32::from_le_bytes(*version);
    if found != DECISION_VERSION {
        return Err(SnapshotError::OtherDecisions { found });
    }
    let (digest, state) = rest.split_first_chunk().ok_or(SnapshotError::Damaged)?;
    if Digest::of(state).value() != u64::from_le_bytes(*digest) {
        return Err(SnapshotError::Damaged);
    }
    let (scheduler, rest) = postcard::take_from_bytes(state).map_err(|_| SnapshotError::Damaged)?;
    rest.is_empty().then_some(scheduler).ok_or(SnapshotError::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_snapshot_restores_to_the_same_bytes() {
        let bytes = to_bytes(&Scheduler::new(Config::default())).unwrap();
        let again = to_bytes(&from_bytes(&bytes).unwrap()).unwrap();
        assert_eq!(bytes, again);
    }

    #[test]
    fn a_snapshot_that_is_cut_or_changed_is_refused() {
        let bytes = to_bytes(&Scheduler::new(Config::default())).unwrap();
        for length in 0..bytes.len() {
            assert!(from_bytes(&bytes[..length]).is_err(), "cut at {length}");
        }
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 0x40;
            let error = from_bytes(&changed).map(drop).unwrap_err();
            match place {
                0..8 => assert_eq!(error, SnapshotError::NotASnapshot),
                8..12 => assert!(matches!(error, SnapshotError::OtherDecisions { .. })),
                _ => assert_eq!(error, SnapshotError::Damaged),
            }
        }
    }
}
