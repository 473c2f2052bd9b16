//! Snapshots: the whole state of the core as bytes.
//!
//! A restored [`Scheduler`] goes on exactly as the one it was taken from: same inputs, same
//! actions. Layout: `"HWYSNAP2"`, the [layout](LAYOUT_VERSION) and the
//! [decision version](DECISION_VERSION) as little-endian `u32`s, the [digest](Digest) of the rest as
//! a `u64`, and the rest in postcard.
//!
//! What a snapshot promises: a build of the same layout reads its facts, whatever it decides by
//! ([`facts`]); one that decides alike too goes on as the core it was taken from ([`from_bytes`]).

use crate::core::Scheduler;
use crate::digest::Digest;
use crate::record::DECISION_VERSION;

/// Changes whenever the state is laid out otherwise: a field of the core comes, goes or moves.
pub const LAYOUT_VERSION: u32 = 4;

const MAGIC: [u8; 8] = *b"HWYSNAP2";
/// Of snapshots that did not name their layout: it was the first, under decision version 2.
const FIRST_MAGIC: [u8; 8] = *b"HWYSNAP\n";
const FIRST_LAYOUT: u32 = 1;
const FIRST_DECISIONS: u32 = 2;

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
    /// Its state is laid out in a way that this build does not know.
    #[error("the snapshot has layout {found}; this build reads layout {LAYOUT_VERSION}")]
    OtherLayout {
        /// Its layout; 0: older than layouts have numbers.
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
    let mut bytes = Vec::with_capacity(MAGIC.len() + 16 + state.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&LAYOUT_VERSION.to_le_bytes());
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
    let found = parse(bytes)?;
    if found.decisions != DECISION_VERSION {
        return Err(SnapshotError::OtherDecisions { found: found.decisions });
    }
    found.scheduler()
}

/// A core with the facts of this state, which may have been decided by another decision version:
/// from here on this build decides.
///
/// # Errors
/// As [`from_bytes`], but for `OtherDecisions`.
pub fn facts(bytes: &[u8]) -> Result<Scheduler, SnapshotError> {
    parse(bytes)?.scheduler()
}

/// A snapshot, taken apart.
struct Parts<'a> {
    decisions: u32,
    state: &'a [u8],
    digest: u64,
}

fn parse(bytes: &[u8]) -> Result<Parts<'_>, SnapshotError> {
    let (layout, rest) = if let Some(rest) = bytes.strip_prefix(&FIRST_MAGIC) {
        (None, rest)
    } else {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(SnapshotError::NotASnapshot)?;
        let (layout, rest) = rest.split_first_chunk().ok_or(SnapshotError::Damaged)?;
        (Some(u32::from_le_bytes(*layout)), rest)
    };
    let (decisions, rest) = rest.split_first_chunk().ok_or(SnapshotError::Damaged)?;
    let decisions = u32::from_le_bytes(*decisions);
    let first = if decisions == FIRST_DECISIONS { FIRST_LAYOUT } else { 0 };
    let found = layout.unwrap_or(first);
    if found != LAYOUT_VERSION {
        return Err(SnapshotError::OtherLayout { found });
    }
    let (digest, state) = rest.split_first_chunk().ok_or(SnapshotError::Damaged)?;
    Ok(Parts { decisions, state, digest: u64::from_le_bytes(*digest) })
}

impl Parts<'_> {
    fn scheduler(&self) -> Result<Scheduler, SnapshotError> {
        if Digest::of(self.state).value() != self.digest {
            return Err(SnapshotError::Damaged);
        }
        let (scheduler, rest) =
            postcard::take_from_bytes(self.state).map_err(|_| SnapshotError::Damaged)?;
        rest.is_empty().then_some(scheduler).ok_or(SnapshotError::Damaged)
    }
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
                8..12 => assert!(matches!(error, SnapshotError::OtherLayout { .. })),
                12..16 => assert!(matches!(error, SnapshotError::OtherDecisions { .. })),
                _ => assert_eq!(error, SnapshotError::Damaged),
            }
        }
    }

    #[test]
    fn the_facts_of_another_decision_version_are_read_and_of_another_layout_are_not() {
        let bytes = to_bytes(&Scheduler::new(Config::default())).unwrap();
        let mut other = bytes.clone();
        other[12..16].copy_from_slice(&99_u32.to_le_bytes());
        assert_eq!(to_bytes(&facts(&other).unwrap()).unwrap(), bytes);
        other[8..12].copy_from_slice(&7_u32.to_le_bytes());
        assert_eq!(facts(&other).map(drop), Err(SnapshotError::OtherLayout { found: 7 }));
    }

    #[test]
    fn a_snapshot_that_does_not_name_its_layout_has_the_first_one() {
        let bytes = to_bytes(&Scheduler::new(Config::default())).unwrap();
        let old =
            |decisions: u32| [&FIRST_MAGIC[..], &decisions.to_le_bytes(), &bytes[16..]].concat();
        let first = facts(&old(FIRST_DECISIONS)).map(drop);
        match LAYOUT_VERSION {
            FIRST_LAYOUT => assert_eq!(first, Ok(())),
            _ => assert_eq!(first, Err(SnapshotError::OtherLayout { found: FIRST_LAYOUT })),
        }
        let older = facts(&old(1)).map(drop);
        assert_eq!(older, Err(SnapshotError::OtherLayout { found: 0 }));
    }

    /// Where this fails, the state is laid out otherwise (or its beginning is another): raise
    /// [`LAYOUT_VERSION`], and then write down the new digest.
    #[test]
    fn a_layout_has_its_number() {
        use crate::testing::World;
        let mut world = World::new(&Config::default());
        for input in World::start() {
            world.handle(&input);
        }
        for step in 0..60_u8 {
            let input = world.next((step, step.wrapping_mul(37), 5));
            world.handle(&input);
        }
        let digest = Digest::of(&to_bytes(&world.scheduler).unwrap()).to_string();
        assert_eq!((LAYOUT_VERSION, digest.as_str()), (4, "79d2e518288aeb56"));
    }
}
