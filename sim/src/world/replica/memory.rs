//! The KV cache's budget: who gives way when it is full.

use super::Replica;
use super::slab::NONE;

/// Part of the budget that a new sequence must leave free, so that it is not preempted at once:
/// 1 in so many, the default watermark of vLLM's block manager (0.01).
const WATERMARK: u64 = 100;

impl Replica {
    /// Tokens in the KV cache of what has started: the context of each, and what each has
    /// generated since. (Real numbers: a decoding sequence fills its next token little by little.)
    fn kv_used(&self) -> f64 {
        let prefilling = self.prefill.map_or(0, |prefill| self.sequences[prefill.slot].context());
        let generated = self.leaving.len() as f64 * self.progress - self.entered_progress;
        (self.entered_context + prefilling) as f64 + generated
    }

    /// Seconds until the KV cache is full; `None` if it never is, or nothing can give way.
    pub(super) fn seconds_to_full(&self) -> Option<f64> {
        let budget = self.spec.kv_tokens? as f64;
        let gives_way = self.started.len > 1 || self.cache.tokens() > 0;
        let growth = self.rate * self.leaving.len() as f64;
        let free = budget - self.cache.tokens() as f64 - self.kv_used();
        (gives_way && growth > 0.0).then(|| (free / growth).max(0.0))
    }

    /// Drops the idle context that was used least recently; without one, preempts the sequence
    /// that started last. A lone sequence always goes on.
    pub(super) fn make_room(&mut self) {
        if !self.cache.evict() && self.started.len > 1 {
            self.work.preemptions += 1;
            self.requeue(self.started.tail);
        }
    }

    /// Idle contexts give way to what runs.
    pub(super) fn fit_cache(&mut self) {
        let Some(budget) = self.spec.kv_tokens else { return };
        while self.kv_used() + self.cache.tokens() as f64 > budget as f64 && self.cache.evict() {}
    }

    /// Makes room for a waiting sequence to start, and takes its session's context out of the
    /// prefix cache; false, and nothing changes, if what runs leaves no room. One that would run
    /// alone always starts.
    pub(super) fn reserve_kv(&mut self, slot: u32) -> bool {
        let context = self.sequences[slot].context();
        if let Some(budget) = self.spec.kv_tokens
            && self.started.head != NONE
        {
            let headroom = (u64::from(self.started.len) + 1).max(budget / WATERMARK);
            if self.kv_used() + (context + headroom) as f64 > budget as f64 {
                return false;
            }
        }
        let sequence = &mut self.sequences[slot];
        sequence.cached = sequence.session.map_or(0, |session| self.cache.take(session));
        if let Some(budget) = self.spec.kv_tokens {
            let used = self.kv_used() + context as f64;
            while used + self.cache.tokens() as f64 > budget as f64 && self.cache.evict() {}
        }
        true
    }
}
