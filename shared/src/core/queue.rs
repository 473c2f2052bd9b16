//! The rollout queue and the output queue.
//!
//! An entry is a sample, or a group that its first live member stands for. Entries stand in
//! buckets by rank: one bucket for `fifo` and `lifo`, one per version or admission for the orders
//! by version or admission. Within a bucket they stand in the order of entry. All operations are
//! O(1) but for finding a bucket, O(log buckets).

use serde::{Deserialize, Serialize};

use super::slab::{Links, List, Slot};
use crate::config::QueueOrder;

/// A queue of samples.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SampleQueue {
    order: QueueOrder,
    buckets: Vec<(u64, List)>,
    links: Links,
    /// Samples in the queue.
    pub(crate) samples: u32,
    /// Entries in the queue.
    pub(crate) entries: u32,
    /// Room promised to samples that were admitted and have not entered yet.
    pub(crate) reserved: u32,
    /// Entries that wait for room, in the order in which they came.
    pub(crate) blocked: List,
    blocked_links: Links,
}

impl SampleQueue {
    pub(crate) fn new(order: QueueOrder) -> Self {
        Self {
            order,
            buckets: Vec::new(),
            links: Links::default(),
            samples: 0,
            entries: 0,
            reserved: 0,
            blocked: List::default(),
            blocked_links: Links::default(),
        }
    }

    pub(crate) fn order(&self) -> QueueOrder {
        self.order
    }

    /// The rank of an entry with this head version and admission ordinal.
    pub(crate) fn rank(&self, head: u32, admission: u64) -> u64 {
        match self.order {
            QueueOrder::Fifo | QueueOrder::Lifo => 0,
            QueueOrder::OldestVersionFirst | QueueOrder::FreshestFirst => u64::from(head),
            QueueOrder::AdmissionOrder => admission,
        }
    }

    fn bucket(&mut self, rank: u64) -> usize {
        match self.buckets.binary_search_by_key(&rank, |&(rank, _)| rank) {
            Ok(place) => place,
            Err(place) => {
                self.buckets.insert(place, (rank, List::default()));
                place
            }
        }
    }

    /// Adds an entry of `weight` samples behind the others of its rank.
    pub(crate) fn push(&mut self, slot: Slot, rank: u64, weight: u32) {
        let place = self.bucket(rank);
        self.buckets[place].1.push_back(&mut self.links, slot);
        self.samples += weight;
        self.entries += 1;
    }

    /// Adds an entry where it will be taken first among its rank.
    pub(crate) fn give_back(&mut self, slot: Slot, rank: u64, weight: u32) {
        let place = self.bucket(rank);
        let list = &mut self.buckets[place].1;
        match self.order {
            QueueOrder::Lifo => list.push_back(&mut self.links, slot),
            _ => list.push_front(&mut self.links, slot),
        }
        self.samples += weight;
        self.entries += 1;
    }

    /// The entry that is taken next, with its rank.
    pub(crate) fn next(&self) -> Option<Slot> {
        match self.order {
            QueueOrder::Lifo => self.buckets.iter().rev().find_map(|(_, list)| list.back()),
            QueueOrder::FreshestFirst => {
                self.buckets.iter().rev().find_map(|(_, list)| list.front())
            }
            _ => self.buckets.iter().find_map(|(_, list)| list.front()),
        }
    }

    /// The entries at the front of each bucket: the one that entered first is among them.
    pub(crate) fn fronts(&self) -> impl Iterator<Item = Slot> {
        self.buckets.iter().filter_map(|(_, list)| list.front())
    }

    /// Takes out an entry of the queue.
    pub(crate) fn remove(&mut self, slot: Slot, rank: u64, weight: u32) {
        let place = self.bucket(rank);
        self.buckets[place].1.remove(&mut self.links, slot);
        // The bucket of `fifo` stays, so that its list is not built again for each entry.
        if rank != 0 && self.buckets[place].1.is_empty() {
            self.buckets.remove(place);
        }
        self.samples -= weight;
        self.entries -= 1;
    }

    /// Lets `new` stand for the entry that `old` stood for.
    pub(crate) fn replace(&mut self, old: Slot, new: Slot, rank: u64) {
        let place = self.bucket(rank);
        self.buckets[place].1.replace(&mut self.links, old, new);
    }

    /// Every entry.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        self.buckets.iter().flat_map(|(_, list)| list.iter(&self.links)).collect()
    }

    /// Changes the order of an empty queue.
    pub(crate) fn set_order(&mut self, order: QueueOrder) {
        debug_assert_eq!(self.entries, 0, "entries are ranked by the order");
        self.order = order;
        self.buckets.clear();
    }

    pub(crate) fn block(&mut self, slot: Slot) {
        self.blocked.push_back(&mut self.blocked_links, slot);
    }

    pub(crate) fn unblock(&mut self, slot: Slot) {
        self.blocked.remove(&mut self.blocked_links, slot);
    }

    pub(crate) fn replace_blocked(&mut self, old: Slot, new: Slot) {
        self.blocked.replace(&mut self.blocked_links, old, new);
    }

    pub(crate) fn blocked_slots(&self) -> impl Iterator<Item = Slot> {
        self.blocked.iter(&self.blocked_links)
    }
}
