//! The prefix cache: how much context of idle sessions a replica still holds.

use hashbrown::HashTable;
use headway_shared::digest::mix;
use headway_shared::id::SessionId;

use super::slab::{List, NONE, Slab};

#[derive(Clone, Copy, Debug, Default)]
struct Context {
    session: SessionId,
    tokens: u32,
}

/// Contexts of sessions that no running sequence uses, the least recently used first.
#[derive(Clone, Debug)]
pub(super) struct PrefixCache {
    contexts: Slab<Context>,
    by_use: List,
    /// Found by session, never iterated.
    index: HashTable<u32>,
    /// How many sessions it holds at most.
    sessions: u32,
    tokens: u64,
}

impl PrefixCache {
    pub(super) const fn new(sessions: u32) -> Self {
        Self {
            contexts: Slab::new(),
            by_use: List::EMPTY,
            index: HashTable::new(),
            sessions,
            tokens: 0,
        }
    }

    /// The tokens that it holds.
    pub(super) const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Takes the session's context out, for a sequence that goes on from it.
    pub(super) fn take(&mut self, session: SessionId) -> u32 {
        match self.index.find(mix(session.0), |&at| self.contexts[at].session == session) {
            Some(&at) => self.drop_entry(at),
            None => 0,
        }
    }

    /// Keeps the context of a session whose sequence ended, if it is the longest of the session.
    pub(super) fn put(&mut self, session: SessionId, tokens: u32) {
        let tokens = tokens.max(self.take(session));
        if self.sessions == 0 || tokens == 0 {
            return;
        }
        if self.by_use.len >= self.sessions {
            self.evict();
        }
        let at = self.contexts.insert(Context { session, tokens });
        self.contexts.push_back(&mut self.by_use, at);
        let contexts = &self.contexts;
        self.index.insert_unique(mix(session.0), at, |&at| mix(contexts[at].session.0));
        self.tokens += u64::from(tokens);
    }

    /// Drops the context that was used least recently; false if there is none.
    pub(super) fn evict(&mut self) -> bool {
        let oldest = self.by_use.head;
        if oldest != NONE {
            self.drop_entry(oldest);
        }
        oldest != NONE
    }

    /// Drops everything: the weights that computed it are gone.
    pub(super) fn clear(&mut self) {
        while self.evict() {}
    }

    fn drop_entry(&mut self, at: u32) -> u32 {
        self.contexts.unlink(&mut self.by_use, at);
        let context = self.contexts.remove(at);
        if let Ok(entry) = self.index.find_entry(mix(context.session.0), |&other| other == at) {
            entry.remove();
        }
        self.tokens -= u64::from(context.tokens);
        context.tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_session_goes_first() {
        let mut cache = PrefixCache::new(2);
        cache.put(SessionId(1), 10);
        cache.put(SessionId(2), 20);
        cache.put(SessionId(1), 15);
        cache.put(SessionId(3), 30);
        assert_eq!(cache.tokens(), 45);
        assert_eq!([1, 2, 3].map(|id| cache.take(SessionId(id))), [15, 0, 30]);
        assert_eq!(cache.tokens(), 0);
    }

    #[test]
    fn a_shorter_context_does_not_replace_a_longer_one() {
        let mut cache = PrefixCache::new(2);
        cache.put(SessionId(1), 10);
        cache.put(SessionId(1), 4);
        assert_eq!(cache.take(SessionId(1)), 10);
    }
}
