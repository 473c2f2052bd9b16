//! Samples by the version of their first token, so that a sweep touches only what is too old.

use serde::{Deserialize, Serialize};

use super::slab::{Links, List, Slot};

/// All samples of one head version.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bucket {
    pub(crate) version: u32,
    list: List,
    /// How many of them a short step cannot make late.
    exempt: u32,
}

impl Bucket {
    pub(crate) fn len(&self) -> u32 {
        self.list.len()
    }

    /// Samples that are still on their way to a batch.
    pub(crate) fn pending(&self) -> u32 {
        self.list.len() - self.exempt
    }
}

/// Live samples by head version. There are about as many versions alive as the bound allows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ages {
    buckets: Vec<Bucket>,
    links: Links,
}

impl Ages {
    fn find(&self, version: u32) -> Result<usize, usize> {
        // The newest version is by far the most frequent.
        match self.buckets.last() {
            Some(last) if last.version == version => Ok(self.buckets.len() - 1),
            _ => self.buckets.binary_search_by_key(&version, |bucket| bucket.version),
        }
    }

    pub(crate) fn insert(&mut self, slot: Slot, version: u32, exempt: bool) {
        let place = self.find(version).unwrap_or_else(|place| {
            self.buckets.insert(place, Bucket { version, list: List::default(), exempt: 0 });
            place
        });
        self.buckets[place].list.push_back(&mut self.links, slot);
        self.buckets[place].exempt += u32::from(exempt);
    }

    pub(crate) fn remove(&mut self, slot: Slot, version: u32, exempt: bool) {
        let Ok(place) = self.find(version) else { return };
        let bucket = &mut self.buckets[place];
        bucket.list.remove(&mut self.links, slot);
        bucket.exempt -= u32::from(exempt);
        if bucket.list.is_empty() {
            self.buckets.remove(place);
        }
    }

    pub(crate) fn set_exempt(&mut self, version: u32, exempt: bool) {
        if let Ok(place) = self.find(version) {
            let bucket = &mut self.buckets[place];
            bucket.exempt = if exempt { bucket.exempt + 1 } else { bucket.exempt - 1 };
        }
    }

    /// The version of the oldest sample.
    pub(crate) fn oldest(&self) -> Option<u32> {
        self.buckets.first().map(|bucket| bucket.version)
    }

    pub(crate) fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// The first sample of the oldest version from `version` on.
    pub(crate) fn first_from(&self, version: u32) -> Option<Slot> {
        let bucket = self.buckets.iter().find(|bucket| bucket.version >= version)?;
        bucket.list.front()
    }

    /// The samples of versions `from..=to`, oldest version first.
    pub(crate) fn between(&self, from: u32, to: u32) -> impl Iterator<Item = Slot> {
        let range = self.buckets.iter().filter(move |b| (from..=to).contains(&b.version));
        range.flat_map(|bucket| bucket.list.iter(&self.links))
    }
}
