//! A slab whose entries form doubly linked lists: O(1) insertion and removal anywhere, no
//! allocation once it has reached its largest size.

use std::ops::{Index, IndexMut};

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node<T> {
    value: T,
    /// Counts the entries that lived here, so that a ticket of an earlier one is recognised.
    generation: u32,
    previous: u32,
    next: u32,
}

/// Entries by index. A removed entry leaves its default behind, so every index ever handed out
/// stays readable.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    nodes: Vec<Node<T>>,
    free: u32,
}

/// A list of entries of one slab. An entry is in at most one list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) len: u32,
}

impl List {
    pub(super) const EMPTY: List = List { head: NONE, tail: NONE, len: 0 };
}

impl<T: Default> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { nodes: Vec::new(), free: NONE }
    }

    pub(super) fn insert(&mut self, value: T) -> u32 {
        let index = self.free;
        if index == NONE {
            self.nodes.push(Node { value, generation: 0, previous: NONE, next: NONE });
            return self.nodes.len() as u32 - 1;
        }
        let node = &mut self.nodes[index as usize];
        self.free = node.next;
        node.value = value;
        node.next = NONE;
        index
    }

    /// Frees an entry that is in no list.
    pub(super) fn remove(&mut self, index: u32) -> T {
        let node = &mut self.nodes[index as usize];
        node.generation = node.generation.wrapping_add(1);
        node.next = self.free;
        self.free = index;
        std::mem::take(&mut node.value)
    }

    pub(super) fn generation(&self, index: u32) -> Option<u32> {
        self.nodes.get(index as usize).map(|node| node.generation)
    }

    pub(super) fn next(&self, index: u32) -> u32 {
        self.nodes[index as usize].next
    }

    pub(super) fn push_back(&mut self, list: &mut List, index: u32) {
        self.link(list, list.tail, index, NONE);
    }

    pub(super) fn push_front(&mut self, list: &mut List, index: u32) {
        self.link(list, NONE, index, list.head);
    }

    fn link(&mut self, list: &mut List, previous: u32, index: u32, next: u32) {
        let node = &mut self.nodes[index as usize];
        (node.previous, node.next) = (previous, next);
        match previous {
            NONE => list.head = index,
            _ => self.nodes[previous as usize].next = index,
        }
        match next {
            NONE => list.tail = index,
            _ => self.nodes[next as usize].previous = index,
        }
        list.len += 1;
    }

    pub(super) fn unlink(&mut self, list: &mut List, index: u32) {
        let node = &mut self.nodes[index as usize];
        let (previous, next) = (node.previous, node.next);
        (node.previous, node.next) = (NONE, NONE);
        match previous {
            NONE => list.head = next,
            _ => self.nodes[previous as usize].next = next,
        }
        match next {
            NONE => list.tail = previous,
            _ => self.nodes[next as usize].previous = previous,
        }
        list.len -= 1;
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, index: u32) -> &T {
        &self.nodes[index as usize].value
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.nodes[index as usize].value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(slab: &Slab<u8>, list: List) -> Vec<u8> {
        let mut at = list.head;
        let mut seen = Vec::new();
        while at != NONE {
            seen.push(slab[at]);
            at = slab.next(at);
        }
        seen
    }

    #[test]
    fn lists_keep_their_order_through_removals_anywhere() {
        let mut slab = Slab::new();
        let mut list = List::EMPTY;
        let ids: Vec<u32> = (0..5).map(|value| slab.insert(value)).collect();
        for &id in &ids {
            slab.push_back(&mut list, id);
        }
        slab.unlink(&mut list, ids[2]);
        slab.unlink(&mut list, ids[0]);
        slab.unlink(&mut list, ids[4]);
        slab.push_front(&mut list, ids[2]);
        assert_eq!(order(&slab, list), [2, 1, 3]);
        assert_eq!((list.tail, list.len), (ids[3], 3));
    }

    #[test]
    fn a_reused_entry_has_another_generation() {
        let mut slab = Slab::new();
        let first = slab.insert(1);
        let before = slab.generation(first);
        assert_eq!(slab.remove(first), 1);
        assert_eq!(slab.insert(2), first);
        assert_ne!(slab.generation(first), before);
        assert_eq!(slab.generation(7), None);
    }
}
