//! The event queue: a binary heap of (time, class, sequence).

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use headway_shared::time::Time;

const SEQUENCE_BITS: u32 = 56;

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    time: u64,
    /// Class in the top byte, sequence below: 2^56 pushes, more than any run makes.
    order: u64,
    event: E,
}

const _: () = assert!(size_of::<Entry<[u64; 2]>>() == 32, "half a cache line with a 16-byte event");

impl<E> Entry<E> {
    #[inline]
    fn key(&self) -> u128 {
        (u128::from(self.time) << 64) | u128::from(self.order)
    }
}

impl<E> Ord for Entry<E> {
    /// Reversed: the earliest is the greatest, which the heap has on top.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<E> PartialOrd for Entry<E> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    /// What the heap asks; one comparison of whole keys, where `cmp` needs two.
    #[inline]
    fn le(&self, other: &Self) -> bool {
        other.key() <= self.key()
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

/// Pending events, popped in order of time, then class (lower first), then push.
///
/// No two entries compare equal, so the order is total: it does not depend on the heap's shape.
/// `push` and `pop` are O(log n) and allocate only when the queue grows beyond its largest size so
/// far. Events cannot be cancelled: their receiver recognises a stale one by its epoch.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    sequence: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> EventQueue<E> {
    /// An empty queue.
    #[must_use]
    pub const fn new() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }

    /// The number of pending events, stale ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The time of the next event.
    #[must_use]
    pub fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|entry| Time::from_nanos(entry.time))
    }

    /// Adds an event. Of two events at one time the one of the lower `class` comes first; within a
    /// class, the one pushed first.
    pub fn push(&mut self, time: Time, class: u8, event: E) {
        let order = (u64::from(class) << SEQUENCE_BITS) | self.sequence;
        self.sequence += 1;
        self.heap.push(Entry { time: time.as_nanos(), order, event });
    }

    /// Takes the next event.
    #[must_use]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|entry| (Time::from_nanos(entry.time), entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_break_by_class_then_by_push() {
        let mut queue = EventQueue::new();
        for (event, class) in [(0, 2), (1, 0), (2, 2), (3, 1), (4, 0)] {
            queue.push(Time::from_secs(1), class, event);
        }
        queue.push(Time::ZERO, 255, 5);
        let order: Vec<i32> = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, [5, 1, 4, 3, 0, 2]);
    }

    #[test]
    fn pops_in_the_order_of_a_stable_sort() {
        let mut queue = EventQueue::new();
        let mut expected = Vec::new();
        let mut word = 1_u64;
        for event in 0..2_000_u64 {
            word = headway_shared::digest::mix(word + 1);
            let (time, class) = (Time::from_nanos(word % 97), (word >> 32) as u8 % 5);
            queue.push(time, class, event);
            expected.push((time, class, event));
        }
        expected.sort_unstable();
        for (time, _, event) in expected {
            assert_eq!(queue.next_time(), Some(time));
            assert_eq!(queue.pop(), Some((time, event)));
        }
        assert!(queue.is_empty());
    }
}
