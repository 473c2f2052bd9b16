//! A small map from ids, for what is in flight.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::id::hash_of_id;

/// From an id to a value. Hashed with a fixed function; nothing depends on its order.
#[derive(Clone, Debug)]
pub(super) struct IdTable<V>(HashTable<(u64, V)>);

impl<V> Default for IdTable<V> {
    fn default() -> Self {
        Self(HashTable::new())
    }
}

impl<V> IdTable<V> {
    pub(super) fn get(&mut self, id: u64) -> Option<&mut V> {
        self.0.find_mut(hash_of_id(id), |&(key, _)| key == id).map(|(_, value)| value)
    }

    /// Sets the value of an id.
    pub(super) fn set(&mut self, id: u64, value: V) {
        self.entry(id).insert((id, value));
    }

    /// Gives an id that has no value this one.
    pub(super) fn add(&mut self, id: u64, value: V) {
        self.entry(id).or_insert((id, value));
    }

    fn entry(&mut self, id: u64) -> Entry<'_, (u64, V)> {
        self.0.entry(hash_of_id(id), |&(key, _)| key == id, |&(key, _)| hash_of_id(key))
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<V> {
        let entry = self.0.find_entry(hash_of_id(id), |&(key, _)| key == id).ok()?;
        Some(entry.remove().0.1)
    }

    /// Keeps the values for which `keep` is true; it must not depend on the order of its calls.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&mut V) -> bool) {
        self.0.retain(|(_, value)| keep(value));
    }
}
