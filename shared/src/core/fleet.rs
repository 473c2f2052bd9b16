//! The replicas, and what is asked of all of them together.
//!
//! That is asked after every input, and there can be hundreds of replicas, of which an input
//! changes one at most, as a rule only the turns on it. So it is summed up once, kept up to date as
//! turns come and go, and summed up again after a replica has changed otherwise: whoever may
//! change one goes through [`IndexMut`], [`Fleet::iter_mut`] or [`Fleet::push`].

use std::ops::{Deref, Index, IndexMut};

use serde::{Deserialize, Serialize};

use super::slab::{Links, Slot};
use super::state::{Replica, Sync};
use crate::id::ReplicaId;
use crate::version::{DeployVersion, LearnerVersion};

/// All replicas that there ever were, in the order in which they came.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Fleet {
    replicas: Vec<Replica>,
    /// `None`: a replica may have changed since.
    #[serde(skip)]
    totals: Option<Totals>,
    /// The least key of each subtree over the replicas, which are its leaves in the second half:
    /// the root, at 1, is the least loaded that takes new turns. Holds while `totals` does.
    #[serde(skip)]
    least: Vec<u64>,
}

/// No replica has this key.
const NOT_OPEN: u64 = u64::MAX;

/// Orders open replicas by how many turns they have, then by id.
fn key(replica: &Replica) -> u64 {
    match replica.open() {
        true => u64::from(replica.turns.len()) << 32 | u64::from(replica.id.0),
        false => NOT_OPEN,
    }
}

/// Sums over replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Replicas that hold whole weights.
    pub(crate) up: u32,
    /// Of these, those that take new turns.
    pub(crate) open: u32,
    /// Of those that are up, those with a turn.
    pub(crate) busy: u32,
    /// Turns on replicas that are up.
    pub(crate) running: u32,
    /// The newest weights that a replica holds whole.
    pub(crate) newest: Option<DeployVersion>,
    /// The oldest weights of a process that is there.
    pub(crate) oldest: Option<DeployVersion>,
    /// The sum of the version numbers of those that are up.
    versions: u64,
    /// A process is there without whole weights.
    pub(crate) broken: bool,
    /// Replicas that have a part in the publication under way.
    pub(crate) syncing: u32,
    /// Of these, those whose turns end first, and those that fetch or load.
    pub(crate) draining: u32,
    pub(crate) loading: u32,
}

impl Totals {
    fn of(replicas: &[Replica]) -> Self {
        let mut totals = Self::default();
        for replica in replicas {
            let Replica { deploy, alive, whole, sync, .. } = *replica;
            if replica.up() {
                totals.up += 1;
                totals.open += u32::from(replica.open());
                totals.busy += u32::from(!replica.turns.is_empty());
                totals.running += replica.turns.len();
                totals.newest = totals.newest.max(Some(deploy));
                totals.versions += u64::from(deploy.number());
            }
            if alive {
                totals.oldest = Some(totals.oldest.map_or(deploy, |oldest| oldest.min(deploy)));
                totals.broken |= !whole;
            }
            totals.syncing += u32::from(sync != Sync::Idle);
            totals.draining += u32::from(sync.drains());
            totals.loading += u32::from(sync.loads());
        }
        totals
    }

    /// Every replica that is up holds the same weights, and no others are coming to any.
    pub(crate) fn all_alike(&self) -> bool {
        self.oldest == self.newest && self.loading == 0
    }

    /// The sum of the publish lags of the replicas that are up. None is ahead of the learner.
    pub(crate) fn publish_lag(&self, learner: LearnerVersion) -> u32 {
        (u64::from(self.up) * u64::from(learner.number())).saturating_sub(self.versions) as u32
    }
}

impl Fleet {
    pub(crate) fn push(&mut self, replica: Replica) {
        self.totals = None;
        self.replicas.push(replica);
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Replica> {
        self.totals = None;
        self.replicas.iter_mut()
    }

    /// Ids are given from 0 on, as a rule, and come in order.
    pub(crate) fn index_of(&self, id: ReplicaId) -> Option<usize> {
        let usual = id.0 as usize;
        if self.replicas.get(usual).is_some_and(|replica| replica.id == id) {
            return Some(usual);
        }
        self.replicas.iter().position(|replica| replica.id == id)
    }

    /// The open replica with the fewest turns, the first by id of those; `None` also where that
    /// has not been summed up.
    pub(crate) fn least_loaded(&self) -> Option<usize> {
        self.totals?;
        let least = *self.least.get(1)?;
        if least == NOT_OPEN { None } else { self.index_of(ReplicaId(least as u32)) }
    }

    /// A replica has one turn more or less.
    fn reorder(&mut self, index: usize) {
        let mut node = self.replicas.len() + index;
        let mut least = key(&self.replicas[index]);
        while self.totals.is_some() && self.least[node] != least {
            self.least[node] = least;
            if node == 1 {
                break;
            }
            least = least.min(self.least[node ^ 1]);
            node /= 2;
        }
    }

    /// A turn starts on a replica.
    pub(crate) fn push_turn(&mut self, index: usize, links: &mut Links, slot: Slot) {
        let replica = &mut self.replicas[index];
        if let Some(totals) = self.totals.as_mut().filter(|_| replica.up()) {
            totals.busy += u32::from(replica.turns.is_empty());
            totals.running += 1;
        }
        replica.turns.push_back(links, slot);
        self.reorder(index);
    }

    /// A turn that is on it leaves a replica.
    pub(crate) fn remove_turn(&mut self, index: usize, links: &mut Links, slot: Slot) {
        let replica = &mut self.replicas[index];
        replica.turns.remove(links, slot);
        if let Some(totals) = self.totals.as_mut().filter(|_| replica.up()) {
            totals.busy -= u32::from(replica.turns.is_empty());
            totals.running -= 1;
        }
        self.reorder(index);
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals.unwrap_or_else(|| Totals::of(&self.replicas))
    }

    /// Sums up what has changed, so that asking costs little until the next change.
    pub(crate) fn sum_up(&mut self) {
        if self.totals.is_none() {
            self.totals = Some(Totals::of(&self.replicas));
            let leaves = self.replicas.len();
            self.least.clear();
            self.least.resize(leaves, NOT_OPEN);
            self.least.extend(self.replicas.iter().map(key));
            for node in (1..leaves).rev() {
                self.least[node] = self.least[2 * node].min(self.least[2 * node + 1]);
            }
        }
    }

    /// Whether what was kept up to date is what a recount gives.
    pub(crate) fn adds_up(&self) -> bool {
        let least = self.replicas.iter().map(key).min().unwrap_or(NOT_OPEN);
        self.totals.is_none_or(|totals| {
            totals == Totals::of(&self.replicas)
                && self.least.get(1).is_none_or(|&root| root == least)
        })
    }
}

impl Deref for Fleet {
    type Target = [Replica];

    fn deref(&self) -> &[Replica] {
        &self.replicas
    }
}

impl Index<usize> for Fleet {
    type Output = Replica;

    fn index(&self, index: usize) -> &Replica {
        &self.replicas[index]
    }
}

impl IndexMut<usize> for Fleet {
    fn index_mut(&mut self, index: usize) -> &mut Replica {
        self.totals = None;
        &mut self.replicas[index]
    }
}

#[cfg(test)]
mod tests {
    use super::super::slab::List;
    use super::*;

    #[test]
    fn sums_that_are_not_those_of_the_replicas_are_found() {
        let mut fleet = Fleet::default();
        for id in 0..3 {
            fleet.push(Replica {
                id: ReplicaId(id),
                deploy: DeployVersion::new(id),
                alive: true,
                whole: true,
                closed: false,
                sync: Sync::Idle,
                turns: List::default(),
            });
        }
        fleet.sum_up();
        assert!(fleet.adds_up());
        let mut sums = fleet.clone();
        sums.totals.as_mut().unwrap().running += 1;
        assert!(!sums.adds_up(), "a turn that is on no replica");
        let mut least = fleet.clone();
        least.least[1] += 1;
        assert!(!least.adds_up(), "a replica that is not the least loaded");
        fleet.iter_mut().for_each(|replica| replica.closed = true);
        assert!(fleet.adds_up(), "nothing is summed up");
    }
}
