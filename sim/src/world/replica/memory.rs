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

#[cfg(test)]
mod tests {
    use headway_shared::config::KvOnSync;
    use headway_shared::digest::mix;
    use headway_shared::id::SessionId;
    use headway_shared::time::{Span, Time};
    use headway_shared::version::DeployVersion;

    use super::super::slab::NONE;
    use super::super::{DecodeLaw, Replica, ReplicaSpec, Turn};

    /// What the cache holds, counted sequence by sequence.
    fn recount(replica: &Replica) -> f64 {
        let (mut slot, mut tokens) = (replica.started.head, 0.0);
        while slot != NONE {
            let sequence = &replica.sequences[slot];
            tokens += sequence.context() as f64;
            if replica.prefill.is_none_or(|prefill| prefill.slot != slot) {
                tokens += replica.progress - sequence.entered;
            }
            slot = replica.sequences.next(slot);
        }
        tokens
    }

    fn act(replica: &mut Replica, now: Time, word: u64) {
        match word % 12 {
            0..7 => {
                let (prompt_tokens, tokens) = ((word >> 8) as u32 % 50, (word >> 16) as u32 % 90);
                let session = Some(SessionId(word >> 24 & 3));
                replica.submit(now, Turn { handle: word, session, prompt_tokens, tokens });
            }
            7 => replica.swap_weights(now, DeployVersion::new(0), KvOnSync::Recompute),
            8 if word & 64 == 0 => replica.kill(now),
            _ => replica.settle(now),
        }
    }

    #[test]
    fn the_cache_never_holds_more_than_its_budget_unless_for_a_lone_sequence() {
        let (mut preemptions, mut cached) = (0, 0);
        for seed in 0..60 {
            let budget = 100 + mix(seed) % 300;
            let spec = ReplicaSpec {
                kv_tokens: Some(budget),
                cached_sessions: 3,
                prefill_tokens_per_sec: (seed % 2 == 0).then_some(400.0),
                ..ReplicaSpec::new(DecodeLaw::linear(0.01, 0.002).unwrap())
            };
            let mut replica = Replica::new(spec, DeployVersion::new(0));
            let (mut now, mut word) = (Time::ZERO, seed);
            for _ in 0..300 {
                word = mix(word);
                now += Span::from_nanos(word >> 32 & 0x0fff_ffff);
                act(&mut replica, now, word);
                let used = replica.kv_used();
                assert!((used - recount(&replica)).abs() < 1e-6, "seed {seed}: {used}");
                let held = used + replica.cache.tokens() as f64;
                let lone = replica.started.len == 1 && replica.cache.tokens() == 0;
                assert!(lone || held <= budget as f64 + 1e-3, "seed {seed}: {held} of {budget}");
            }
            preemptions += replica.work().preemptions;
            cached += replica.work().cached_tokens;
        }
        assert!(preemptions > 100 && cached > 1_000, "{preemptions} {cached}: too calm to tell");
    }
}
