//! One digest for all that a run decided.

use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::digest::Digest;
use crate::time::Time;

/// Counts inputs and actions, and folds them into the digest by which runs are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// Inputs handled.
    pub inputs: u64,
    /// Actions they caused.
    pub actions: u64,
    /// The digest of the time of each input and of its actions, in order.
    pub digest: Digest,
}

impl Decisions {
    /// Adds what one input caused, and returns the digest of these actions alone.
    pub fn add(&mut self, now: Time, actions: &[Action]) -> Digest {
        let mut digest = Digest::new();
        for action in actions {
            action.digest_into(&mut digest);
        }
        self.inputs += 1;
        self.actions += actions.len() as u64;
        self.digest.fold(now.as_nanos());
        self.digest.fold(digest.value());
        digest
    }
}
