//! Storage with stable slots: a slab, intrusive lists over its slots, and a map from ids to slots.
//!
//! Slots never leave the core. All operations are O(1) (amortised), and none allocates once the
//! storage has grown to the largest number of live entries.

use hashbrown::HashTable;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::hash_of_id;

/// A place in a [`Slab`].
pub(crate) type Slot = u32;

/// No slot.
pub(crate) const NONE: Slot = Slot::MAX;

/// Values in stable slots; freed slots are used again, the last freed first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<Slot>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, value: T) -> Slot {
        if let Some(slot) = self.free.pop() {
            self.values[slot as usize] = Some(value);
            return slot;
        }
        self.values.push(Some(value));
        (self.values.len() - 1) as Slot
    }

    /// Takes a value out; its slot must be live.
    pub(crate) fn remove(&mut self, slot: Slot) -> Option<T> {
        let value = self.values.get_mut(slot as usize)?.take();
        if value.is_some() {
            self.free.push(slot);
        }
        value
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&T> {
        self.values.get(slot as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.values.get_mut(slot as usize)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        self.values.iter().enumerate().filter_map(|(slot, v)| Some((slot as Slot, v.as_ref()?)))
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }
}

impl<T> std::ops::Index<Slot> for Slab<T> {
    type Output = T;

    #[expect(clippy::expect_used, reason = "the core indexes only with slots that it holds live")]
    fn index(&self, slot: Slot) -> &T {
        self.values[slot as usize].as_ref().expect("a live slot")
    }
}

impl<T> std::ops::IndexMut<Slot> for Slab<T> {
    #[expect(clippy::expect_used, reason = "the core indexes only with slots that it holds live")]
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        self.values[slot as usize].as_mut().expect("a live slot")
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Link {
    prev: Slot,
    next: Slot,
}

/// The links of any number of lists, of which each slot is in at most one at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Links(Vec<Link>);

/// A doubly linked list of slots; its links stand in a [`Links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct List {
    head: Slot,
    tail: Slot,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, len: 0 }
    }
}

impl List {
    pub(crate) fn front(&self) -> Option<Slot> {
        (self.head != NONE).then_some(self.head)
    }

    pub(crate) fn back(&self) -> Option<Slot> {
        (self.tail != NONE).then_some(self.tail)
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn push_back(&mut self, links: &mut Links, slot: Slot) {
        links.set(slot, Link { prev: self.tail, next: NONE });
        match self.tail {
            NONE => self.head = slot,
            tail => links.0[tail as usize].next = slot,
        }
        self.tail = slot;
        self.len += 1;
    }

    pub(crate) fn push_front(&mut self, links: &mut Links, slot: Slot) {
        links.set(slot, Link { prev: NONE, next: self.head });
        match self.head {
            NONE => self.tail = slot,
            head => links.0[head as usize].prev = slot,
        }
        self.head = slot;
        self.len += 1;
    }

    /// Takes out a slot that is in this list.
    pub(crate) fn remove(&mut self, links: &mut Links, slot: Slot) {
        let Link { prev, next } = links.0[slot as usize];
        match prev {
            NONE => self.head = next,
            prev => links.0[prev as usize].next = next,
        }
        match next {
            NONE => self.tail = prev,
            next => links.0[next as usize].prev = prev,
        }
        self.len -= 1;
    }

    pub(crate) fn pop_front(&mut self, links: &mut Links) -> Option<Slot> {
        let slot = self.front()?;
        self.remove(links, slot);
        Some(slot)
    }

    /// Puts `new` where `old` was.
    pub(crate) fn replace(&mut self, links: &mut Links, old: Slot, new: Slot) {
        let Link { prev, next } = links.0[old as usize];
        links.set(new, Link { prev, next });
        match prev {
            NONE => self.head = new,
            prev => links.0[prev as usize].next = new,
        }
        match next {
            NONE => self.tail = new,
            next => links.0[next as usize].prev = new,
        }
    }

    /// The slot after `slot`, which is in this list.
    pub(crate) fn after(&self, links: &Links, slot: Slot) -> Option<Slot> {
        let next = links.0[slot as usize].next;
        (next != NONE).then_some(next)
    }

    pub(crate) fn iter<'a>(&self, links: &'a Links) -> impl Iterator<Item = Slot> + use<'a> {
        let links = &links.0;
        std::iter::successors(self.front(), move |&slot| {
            let next = links[slot as usize].next;
            (next != NONE).then_some(next)
        })
    }
}

impl Links {
    fn set(&mut self, slot: Slot, link: Link) {
        let needed = slot as usize + 1;
        if self.0.len() < needed {
            self.0.resize(needed, Link { prev: NONE, next: NONE });
        }
        self.0[slot as usize] = link;
    }
}

/// From an id to its slot. Hashed with a fixed function and never iterated, so that its order
/// cannot reach a decision.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdMap(HashTable<(u64, Slot)>);

impl IdMap {
    pub(crate) fn get(&self, id: u64) -> Option<Slot> {
        self.0.find(hash_of_id(id), |&(key, _)| key == id).map(|&(_, slot)| slot)
    }

    /// Adds an id that is not in the map.
    pub(crate) fn insert(&mut self, id: u64, slot: Slot) {
        self.0.insert_unique(hash_of_id(id), (id, slot), |&(key, _)| hash_of_id(key));
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<Slot> {
        let entry = self.0.find_entry(hash_of_id(id), |&(key, _)| key == id).ok()?;
        Some(entry.remove().0.1)
    }
}

impl Serialize for IdMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pairs: Vec<(u64, Slot)> = self.0.iter().copied().collect();
        pairs.sort_unstable();
        pairs.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for IdMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut map = Self::default();
        for (id, slot) in Vec::<(u64, Slot)>::deserialize(deserializer)? {
            map.insert(id, slot);
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_order_through_removals_and_replacements() {
        let (mut links, mut list) = (Links::default(), List::default());
        for slot in 0..5 {
            list.push_back(&mut links, slot);
        }
        list.remove(&mut links, 2);
        list.replace(&mut links, 4, 7);
        list.push_front(&mut links, 9);
        assert_eq!(list.iter(&links).collect::<Vec<_>>(), [9, 0, 1, 3, 7]);
        assert_eq!((list.back(), list.len()), (Some(7), 5));
        while list.pop_front(&mut links).is_some() {}
        assert_eq!(list, List::default());
    }

    #[test]
    fn freed_slots_are_used_again_and_ids_find_their_slot() {
        let (mut slab, mut map) = (Slab::default(), IdMap::default());
        for id in 0..100_u64 {
            map.insert(id, slab.insert(id));
        }
        let slot = map.remove(40).unwrap();
        assert_eq!(slab.remove(slot), Some(40));
        assert_eq!(slab.insert(1000), slot);
        assert_eq!((map.get(40), map.get(41).map(|slot| slab[slot])), (None, Some(41)));
    }
}
