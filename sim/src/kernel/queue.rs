//! The event queue: a heap of (time, class, sequence), in which four children have a parent.
//!
//! `std`'s binary heap does one thing more than a simulation needs: it closes the gap of what is
//! popped at once, though as a rule something is pushed next, which could take that place. And four
//! children stand beside each other in two cache lines, where the two of a binary heap need twice as
//! many steps of a line each.

use headway_shared::time::Time;

const SEQUENCE_BITS: u32 = 56;

/// Children of a place.
const CHILDREN: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    time: u64,
    /// Class in the top byte, sequence below: 2^56 pushes, more than any run makes.
    order: u64,
    event: E,
}

const _: () = assert!(size_of::<Entry<[u64; 2]>>() == 32, "half a cache line with a 16-byte event");

impl<E> Entry<E> {
    /// No two are equal, so that the order is total: it does not depend on the heap's shape.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.order)
    }
}

/// Pending events, popped in order of time, then class (lower first), then push.
///
/// `push` and `pop` are O(log n) and allocate only when the queue grows beyond its largest size so
/// far. Events cannot be cancelled: their receiver recognises a stale one by its epoch.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    /// No entry is due before the one at its parent's place.
    heap: Vec<Entry<E>>,
    /// The entry at the root was popped: the next push may have its place. There are others then.
    vacant: bool,
    sequence: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { heap: Vec::new(), vacant: false, sequence: 0 }
    }
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of pending events, stale ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.vacant)
    }

    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The time of the next event.
    #[must_use]
    pub fn next_time(&self) -> Option<Time> {
        let first = match self.vacant {
            true => self.heap.iter().skip(1).take(CHILDREN).map(|entry| entry.time).min()?,
            false => self.heap.first()?.time,
        };
        Some(Time::from_nanos(first))
    }

    /// Adds an event. Of two events at one time the one of the lower `class` comes first; within a
    /// class, the one pushed first.
    #[inline]
    pub fn push(&mut self, time: Time, class: u8, event: E) {
        let order = u64::from(class) << SEQUENCE_BITS | self.sequence;
        self.sequence += 1;
        let entry = Entry { time: time.as_nanos(), order, event };
        if std::mem::take(&mut self.vacant) {
            return sink(&mut self.heap, entry);
        }
        self.heap.push(entry);
        rise(&mut self.heap, entry);
    }

    /// Takes the next event.
    #[inline]
    #[must_use]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        if self.vacant
            && let Some(last) = self.heap.pop()
        {
            sink(&mut self.heap, last);
        }
        let &Entry { time, event, .. } = self.heap.first()?;
        self.vacant = self.heap.len() > 1;
        if !self.vacant {
            self.heap.clear();
        }
        Some((Time::from_nanos(time), event))
    }
}

/// Puts the entry into the root's place, or below what comes before it.
fn sink<E: Copy>(heap: &mut [Entry<E>], entry: Entry<E>) {
    let (key, mut place) = (entry.key(), 0);
    while let Some((child, least)) = least_child(heap, place)
        && least < key
    {
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = entry;
}

/// The child that comes first, with its key.
#[inline]
fn least_child<E: Copy>(heap: &[Entry<E>], place: usize) -> Option<(usize, u128)> {
    let first = CHILDREN * place + 1;
    let key = |child: usize| (child, heap[child].key());
    let lesser =
        |one: (usize, u128), other: (usize, u128)| if other.1 < one.1 { other } else { one };
    if first + CHILDREN <= heap.len() {
        let left = lesser(key(first), key(first + 1));
        return Some(lesser(left, lesser(key(first + 2), key(first + 3))));
    }
    (first..heap.len()).map(key).reduce(lesser)
}

/// Moves the entry, which is the last, above what it comes before.
fn rise<E: Copy>(heap: &mut [Entry<E>], entry: Entry<E>) {
    let (key, mut place) = (entry.key(), heap.len() - 1);
    while place > 0 {
        let parent = (place - 1) / CHILDREN;
        if heap[parent].key() < key {
            break;
        }
        heap[place] = heap[parent];
        place = parent;
    }
    heap[place] = entry;
}

#[cfg(test)]
mod tests {
    use headway_shared::digest::mix;

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
            word = mix(word + 1);
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

    #[test]
    fn a_push_may_come_before_or_after_what_is_left_by_any_number_of_pops() {
        let mut queue = EventQueue::new();
        let mut expected = std::collections::BTreeSet::new();
        let mut word = 1_u64;
        for event in 0..20_000_u64 {
            word = mix(word + 1);
            // It grows, and shrinks to nothing again and again.
            let pops = (word >> 60) / if event % 500 < 250 { 12 } else { 5 };
            for _ in 0..pops {
                let first = expected.pop_first().map(|(time, _, event)| (time, event));
                assert_eq!(queue.next_time(), first.map(|(time, _)| time));
                assert_eq!(queue.pop(), first);
                assert_eq!(queue.len(), expected.len());
            }
            let (time, class) = (Time::from_nanos(word % 997), (word >> 32) as u8 % 3);
            queue.push(time, class, event);
            expected.insert((time, class, event));
            assert_eq!(queue.len(), expected.len());
        }
    }
}
