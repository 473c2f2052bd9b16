//! Identities. Each is an integer with a type of its own.
//!
//! [`SampleId`], [`VoteId`], [`StepId`] and [`PublicationId`] are ordinals made only by the core.
//! The others are interned by the driver, which never uses one twice.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::mix;

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident($int:ty), $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $int);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

id! {
    /// A sample: the ordinal of its admission, from 0.
    SampleId(u64), "sample ";
    /// One attempt of one vote of a judge.
    VoteId(u64), "vote ";
    /// One attempt of a train step.
    StepId(u64), "step ";
    /// One attempt to publish weights.
    PublicationId(u64), "publication ";
    /// A client's request for one turn. Made by the driver; a retry is a new request.
    RequestId(u64), "request ";
    /// A session: the turns of one conversation or episode. Made by the driver.
    SessionId(u64), "session ";
    /// A group: the rollouts of one prompt. Made by the driver.
    GroupId(u64), "group ";
    /// A serving replica. Made by the driver.
    ReplicaId(u32), "replica ";
}

/// The hash of an id. Ids are given out in order, and those in use lie close together: their low
/// bits choose the place in the table, so that neighbours share cache lines. Only the top bits,
/// which tell entries of one place apart, are mixed.
pub(crate) const fn hash_of_id(id: u64) -> u64 {
    const TAG: u64 = 0x7f << 57;
    (mix(id) & TAG) | (id & !TAG)
}
