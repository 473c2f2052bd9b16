//! A map for identities that are given out in order and used for a while.

use std::collections::VecDeque;

/// Values by ordinal. Memory is proportional to the distance between the oldest and the newest
/// ordinal in use, so it does not grow with the length of a run; every operation is O(1) amortised.
#[derive(Clone, Debug)]
pub(crate) struct Window<T> {
    base: u64,
    values: VecDeque<Option<T>>,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self { base: 0, values: VecDeque::new() }
    }
}

impl<T> Window<T> {
    fn index(&self, ordinal: u64) -> Option<usize> {
        usize::try_from(ordinal.checked_sub(self.base)?).ok()
    }

    /// Sets the value of an ordinal. Costs as much as the ordinal is away from those in use.
    pub(crate) fn insert(&mut self, ordinal: u64, value: T) {
        if self.values.is_empty() {
            self.base = ordinal;
        }
        while ordinal < self.base {
            self.values.push_front(None);
            self.base -= 1;
        }
        // Not before the base by now.
        let Some(index) = self.index(ordinal) else { return };
        while self.values.len() <= index {
            self.values.push_back(None);
        }
        self.values[index] = Some(value);
    }

    pub(crate) fn get(&self, ordinal: u64) -> Option<&T> {
        self.values.get(self.index(ordinal)?)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, ordinal: u64) -> Option<&mut T> {
        let index = self.index(ordinal)?;
        self.values.get_mut(index)?.as_mut()
    }

    pub(crate) fn remove(&mut self, ordinal: u64) -> Option<T> {
        let index = self.index(ordinal)?;
        let value = self.values.get_mut(index)?.take();
        while let Some(None) = self.values.front() {
            self.values.pop_front();
            self.base += 1;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_no_more_than_the_ordinals_in_use() {
        let mut window = Window::default();
        for ordinal in 0..10_000_u64 {
            window.insert(ordinal, ordinal * 2);
            if ordinal >= 10 {
                assert_eq!(window.remove(ordinal - 10), Some((ordinal - 10) * 2));
            }
            assert!(window.values.len() <= 11);
        }
        assert_eq!(window.get(9_995), Some(&19_990));
        assert_eq!(window.get(5), None);
        assert_eq!(window.remove(5), None);
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
        assert!(window.values.is_empty());
    }
}
