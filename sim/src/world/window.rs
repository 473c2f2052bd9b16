//! A map for identities that are given out in order and used for a while.

use std::collections::VecDeque;

use hashbrown::HashTable;
use headway_shared::digest::mix;

/// Of each value in the row there are at most so many places, and [`FEW`] more.
const SPARSE: usize = 2;
const FEW: usize = 64;

/// Values by ordinal: most of them in a row, from the oldest that is not left behind to the newest.
///
/// A value that stays while many come and go is left behind, in a table, so that memory is proportional
/// to the number of values, however far apart their ordinals are. Every operation is O(1) amortised, and
/// none allocates once there have been as many.
#[derive(Clone, Debug)]
pub(crate) struct Window<T> {
    base: u64,
    row: VecDeque<Option<T>>,
    /// Values in the row.
    live: usize,
    /// Values before the row.
    left_behind: HashTable<(u64, T)>,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self { base: 0, row: VecDeque::new(), live: 0, left_behind: HashTable::new() }
    }
}

impl<T> Window<T> {
    /// The place in the row; `None`: before it.
    fn index(&self, ordinal: u64) -> Option<usize> {
        usize::try_from(ordinal.checked_sub(self.base)?).ok()
    }

    /// Sets the value of an ordinal. Costs as much as the ordinal is ahead of those in use.
    pub(crate) fn insert(&mut self, ordinal: u64, value: T) {
        if self.row.is_empty() {
            self.base = self.base.max(ordinal);
        }
        let Some(index) = self.index(ordinal) else {
            self.leave_behind(ordinal, value);
            return;
        };
        while self.row.len() <= index {
            self.row.push_back(None);
        }
        let before = self.row[index].replace(value);
        self.live += usize::from(before.is_none());
        while self.row.len() > SPARSE * self.live + FEW {
            self.leave_first_behind();
        }
    }

    fn leave_first_behind(&mut self) {
        if let Some(Some(value)) = self.row.pop_front() {
            self.leave_behind(self.base, value);
            self.live -= 1;
        }
        self.base += 1;
    }

    fn leave_behind(&mut self, ordinal: u64, value: T) {
        let hash = |&(ordinal, _): &(u64, T)| mix(ordinal);
        match self.left_behind.find_mut(mix(ordinal), |&(of, _)| of == ordinal) {
            Some((_, known)) => *known = value,
            None => {
                self.left_behind.insert_unique(mix(ordinal), (ordinal, value), hash);
            }
        }
    }

    pub(crate) fn get(&self, ordinal: u64) -> Option<&T> {
        match self.index(ordinal) {
            Some(index) => self.row.get(index)?.as_ref(),
            None => {
                let found = self.left_behind.find(mix(ordinal), |&(of, _)| of == ordinal);
                found.map(|(_, value)| value)
            }
        }
    }

    pub(crate) fn get_mut(&mut self, ordinal: u64) -> Option<&mut T> {
        match self.index(ordinal) {
            Some(index) => self.row.get_mut(index)?.as_mut(),
            None => {
                let found = self.left_behind.find_mut(mix(ordinal), |&(of, _)| of == ordinal);
                found.map(|(_, value)| value)
            }
        }
    }

    pub(crate) fn remove(&mut self, ordinal: u64) -> Option<T> {
        let Some(index) = self.index(ordinal) else {
            let found = self.left_behind.find_entry(mix(ordinal), |&(of, _)| of == ordinal).ok()?;
            return Some(found.remove().0.1);
        };
        let value = self.row.get_mut(index)?.take();
        self.live -= usize::from(value.is_some());
        while let Some(None) = self.row.front() {
            self.row.pop_front();
            self.base += 1;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn holds_no_more_than_the_ordinals_in_use() {
        let mut window = Window::default();
        for ordinal in 0..10_000_u64 {
            window.insert(ordinal, ordinal * 2);
            if ordinal >= 10 {
                assert_eq!(window.remove(ordinal - 10), Some((ordinal - 10) * 2));
            }
            assert!(window.row.len() <= 11);
        }
        assert_eq!(window.get(9_995), Some(&19_990));
        assert_eq!(window.get(5), None);
        assert_eq!(window.remove(5), None);
    }

    #[test]
    fn one_that_stays_holds_no_room_for_those_that_went() {
        let mut window = Window::default();
        window.insert(0, 7);
        for ordinal in 1..100_000_u64 {
            window.insert(ordinal, ordinal);
            assert_eq!(window.remove(ordinal), Some(ordinal));
            assert!(window.row.len() <= 2 * SPARSE + FEW, "{ordinal}: {}", window.row.len());
        }
        *window.get_mut(0).unwrap() += 1;
        assert_eq!((window.get(0), window.get(1)), (Some(&8), None));
        assert_eq!((window.remove(0), window.remove(0)), (Some(8), None));
        assert!(window.left_behind.is_empty());
    }

    #[test]
    fn it_holds_what_a_map_holds() {
        let (mut window, mut map) = (Window::default(), BTreeMap::new());
        let mut word = 1_u64;
        for ordinal in 0..20_000_u64 {
            word = headway_shared::digest::mix(word + 1);
            window.insert(ordinal, word);
            map.insert(ordinal, word);
            // Most leave soon, one of eight stays long.
            let age = if word.is_multiple_of(8) { word >> 8 & 0xfff } else { word >> 8 & 0x1f };
            let old = ordinal.saturating_sub(age);
            assert_eq!(window.get(old), map.get(&old));
            assert_eq!(window.remove(old), map.remove(&old));
            assert_eq!(window.live + window.left_behind.len(), map.len());
        }
        for ordinal in 0..20_000 {
            assert_eq!(window.remove(ordinal), map.remove(&ordinal));
        }
    }

    #[test]
    fn an_ordinal_can_come_back() {
        let mut window = Window::default();
        for ordinal in 0..10_u64 {
            window.insert(ordinal, ordinal);
        }
        (0..8).for_each(|ordinal| assert_eq!(window.remove(ordinal), Some(ordinal)));
        window.insert(3, 33);
        assert_eq!((window.get(3), window.get(4), window.get(9)), (Some(&33), None, Some(&9)));
    }

    #[test]
    fn an_ordinal_that_was_skipped_has_no_value() {
        let mut window = Window::default();
        window.insert(3, 'a');
        window.insert(6, 'b');
        assert_eq!((window.get(3), window.get(4), window.get(6)), (Some(&'a'), None, Some(&'b')));
        assert_eq!(window.remove(6), Some('b'));
        assert_eq!(window.remove(3), Some('a'));
        assert!(window.row.is_empty());
    }
}
