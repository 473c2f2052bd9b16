//! Which sequence leaves decoding next: a binary heap that knows where each sequence is.

#[derive(Clone, Copy, Debug)]
struct Leave {
    progress: f64,
    /// Breaks ties; no two are equal.
    order: u64,
    slot: u32,
}

impl Leave {
    /// Progress is never negative, so its bits are in its order.
    fn key(&self) -> u128 {
        (u128::from(self.progress.to_bits()) << 64) | u128::from(self.order)
    }
}

/// The decoding sequences, the first to leave on top: by progress, then by order of start.
/// Insertion and removal of any sequence are O(log n).
#[derive(Clone, Debug, Default)]
pub(super) struct Leaving {
    heap: Vec<Leave>,
    /// Where each slot's entry is in the heap; meaningless for a slot that is not in it.
    position: Vec<u32>,
}

impl Leaving {
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The progress at which the next sequence leaves, and its slot.
    pub(super) fn first(&self) -> Option<(f64, u32)> {
        self.heap.first().map(|leave| (leave.progress, leave.slot))
    }

    pub(super) fn insert(&mut self, progress: f64, order: u64, slot: u32) {
        if self.position.len() <= slot as usize {
            self.position.resize(slot as usize + 1, 0);
        }
        let leave = Leave { progress, order, slot };
        self.heap.push(leave);
        self.sift_up(self.heap.len() - 1, leave);
    }

    /// Takes out a slot that is in the heap.
    pub(super) fn remove(&mut self, slot: u32) {
        let hole = self.position[slot as usize] as usize;
        debug_assert_eq!(self.heap[hole].slot, slot, "the slot is in the heap");
        let Some(last) = self.heap.pop() else { return };
        if hole < self.heap.len() {
            // What was last belongs near the bottom: sinking the hole first halves the comparisons.
            let bottom = self.sink(hole);
            self.sift_up(bottom, last);
        }
    }

    fn put(&mut self, at: usize, leave: Leave) {
        self.heap[at] = leave;
        self.position[leave.slot as usize] = at as u32;
    }

    fn sift_up(&mut self, mut hole: usize, leave: Leave) {
        while hole > 0 {
            let parent = (hole - 1) / 2;
            let above = self.heap[parent];
            if above.key() <= leave.key() {
                break;
            }
            self.put(hole, above);
            hole = parent;
        }
        self.put(hole, leave);
    }

    /// Moves a hole to the bottom, along the children that leave first.
    fn sink(&mut self, mut hole: usize) -> usize {
        while let Some(&left) = self.heap.get(2 * hole + 1) {
            let mut child = 2 * hole + 1;
            let mut below = left;
            if let Some(&right) = self.heap.get(child + 1)
                && right.key() < left.key()
            {
                (below, child) = (right, child + 1);
            }
            self.put(hole, below);
            hole = child;
        }
        hole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_shared::digest::mix;

    #[test]
    fn leaves_in_order_after_removals_anywhere() {
        let mut heap = Leaving::default();
        let mut expected: Vec<(u64, u32)> = Vec::new();
        for slot in 0..500_u32 {
            let progress = mix(u64::from(slot)) % 50;
            heap.insert(progress as f64, u64::from(slot), slot);
            expected.push((progress, slot));
        }
        for slot in (0..500).step_by(3) {
            heap.remove(slot);
        }
        expected.retain(|&(_, slot)| slot % 3 != 0);
        expected.sort_unstable();
        for (progress, slot) in expected {
            assert_eq!(heap.first(), Some((progress as f64, slot)));
            heap.remove(slot);
        }
        assert_eq!(heap.len(), 0);
    }
}
