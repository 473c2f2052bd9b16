//! Which slot something takes.

use std::collections::{BTreeMap, BTreeSet};

use super::Lane;
use crate::id::ReplicaId;

/// Slots that are given out again and again, the lowest first.
#[derive(Clone, Debug, Default)]
struct Slots {
    free: BTreeSet<u32>,
    next: u32,
}

impl Slots {
    fn take(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

/// The slots of every loop.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    replicas: BTreeMap<ReplicaId, Slots>,
    environments: Slots,
    judge: Slots,
}

impl Lanes {
    pub(super) fn turn(&mut self, replica: ReplicaId) -> Lane {
        Lane::Turn { replica, slot: self.replicas.entry(replica).or_default().take() }
    }

    pub(super) fn environment(&mut self) -> Lane {
        Lane::Environment { slot: self.environments.take() }
    }

    pub(super) fn vote(&mut self) -> Lane {
        Lane::Judge { slot: self.judge.take() }
    }

    /// The slot of this lane, if it has one, is free.
    pub(super) fn give_back(&mut self, lane: Lane) {
        match lane {
            Lane::Turn { replica, slot } => {
                self.replicas.entry(replica).or_default().free.insert(slot);
            }
            Lane::Environment { slot } => {
                self.environments.free.insert(slot);
            }
            Lane::Judge { slot } => {
                self.judge.free.insert(slot);
            }
            Lane::Window | Lane::Weights { .. } | Lane::Trainer | Lane::Export => {}
        }
    }
}
