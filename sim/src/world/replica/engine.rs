//! What happens inside a replica between two calls.

use headway_shared::time::{Span, Time};

use super::sequence::Stage;
use super::slab::NONE;
use super::{Ended, Outcome, Prefill, Replica};

/// What happens next inside the replica. Of those due at one instant the first named comes first.
#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    /// The next sequence leaves decoding.
    Leave,
    /// The prefill ends.
    Prefilled,
    /// The KV cache is full.
    KvFull,
}

impl Replica {
    /// Does all that is due until `now`, in order, and integrates progress up to it.
    pub(super) fn settle(&mut self, now: Time) {
        while let Some((at, due)) = self.due
            && at <= now
        {
            self.integrate(at);
            match due {
                Due::Leave => self.leave(),
                Due::Prefilled => self.prefilled(),
                Due::KvFull => self.make_room(),
            }
            self.reschedule();
        }
        self.integrate(now);
    }

    fn integrate(&mut self, to: Time) {
        let seconds = to.since(self.at).as_secs_f64();
        self.progress += self.rate * seconds;
        let prefill_rate = self.prefill_rate();
        if let Some(prefill) = &mut self.prefill {
            prefill.remaining -= prefill_rate * seconds;
        }
        self.at = self.at.max(to);
    }

    /// 1 at full speed, 0 while nothing advances.
    fn effective_speed(&self) -> f64 {
        if !self.frozen && self.speed > 0.0 && self.speed.is_finite() { self.speed } else { 0.0 }
    }

    /// Tokens per second; infinite where prefill takes no time.
    fn prefill_rate(&self) -> f64 {
        let rate = self.spec.prefill_tokens_per_sec.filter(|rate| *rate > 0.0);
        rate.unwrap_or(f64::INFINITY) * self.effective_speed()
    }

    /// Starts what can start, then finds what is due next. Every change of state ends with it.
    pub(super) fn reschedule(&mut self) {
        self.start_waiting();
        let speed = self.effective_speed();
        self.rate = speed * self.spec.decode.rate(self.leaving.len() as u32);
        if speed == 0.0 {
            self.due = None;
            return;
        }
        let leave = self
            .leaving
            .first()
            .map(|(progress, _)| (((progress - self.progress) / self.rate).max(0.0), Due::Leave));
        let prefilled = self
            .prefill
            .map(|prefill| ((prefill.remaining / self.prefill_rate()).max(0.0), Due::Prefilled));
        let full = self.seconds_to_full().map(|seconds| (seconds, Due::KvFull));
        let next = [leave, prefilled, full].into_iter().flatten();
        let first = next.reduce(|first, next| if next.0 < first.0 { next } else { first });
        self.due = first.map(|(seconds, due)| (self.at + rounded_up(seconds), due));
    }

    /// The first to leave has all its tokens now; so have those that leave at the same progress.
    fn leave(&mut self) {
        let Some((progress, _)) = self.leaving.first() else { return };
        // Rounding may have put the clock a little before it.
        self.progress = self.progress.max(progress);
        while let Some((progress, slot)) = self.leaving.first()
            && progress <= self.progress
        {
            self.end(slot, Outcome::Complete);
        }
    }

    fn prefilled(&mut self) {
        if let Some(prefill) = self.prefill.take() {
            self.enter_decoding(prefill.slot);
        }
    }

    /// Starts waiting sequences in their order, as long as there is room for the first.
    fn start_waiting(&mut self) {
        let limit = if self.spec.max_batch == 0 { u32::MAX } else { self.spec.max_batch };
        while !self.frozen
            && self.prefill.is_none()
            && self.started.len < limit
            && self.waiting.head != NONE
            && self.reserve_kv(self.waiting.head)
        {
            self.start(self.waiting.head);
        }
    }

    fn start(&mut self, slot: u32) {
        self.sequences.unlink(&mut self.waiting, slot);
        self.sequences.push_back(&mut self.started, slot);
        let sequence = &mut self.sequences[slot];
        let uncached = sequence.context().saturating_sub(u64::from(sequence.cached));
        sequence.stage = Stage::Prefilling;
        if uncached == 0 || self.spec.prefill_tokens_per_sec.is_none_or(|rate| rate <= 0.0) {
            self.enter_decoding(slot);
        } else {
            self.prefill = Some(Prefill { slot, remaining: uncached as f64 });
        }
    }

    fn enter_decoding(&mut self, slot: u32) {
        let sequence = &mut self.sequences[slot];
        sequence.stage = Stage::Decoding;
        sequence.entered = self.progress;
        if sequence.done == 0 {
            sequence.first_token = self.at;
        }
        let context = sequence.context();
        let cached = context.min(u64::from(sequence.cached));
        let leaves = self.progress + f64::from(sequence.tokens - sequence.done);
        self.work.cached_tokens += cached;
        self.work.prefilled_tokens += context - cached;
        self.entered_context += context;
        self.entered_progress += self.progress;
        self.leaving.insert(leaves, self.starts, slot);
        self.starts += 1;
    }

    /// Takes a sequence out of prefill or decoding; what it has generated is recorded.
    fn stop(&mut self, slot: u32, generated: u32) {
        let sequence = &mut self.sequences[slot];
        match sequence.stage {
            Stage::Waiting => self.sequences.unlink(&mut self.waiting, slot),
            Stage::Prefilling => {
                self.prefill = None;
                self.sequences.unlink(&mut self.started, slot);
            }
            Stage::Decoding => {
                sequence.record(generated, self.version);
                self.entered_context -= sequence.context();
                self.entered_progress -= sequence.entered;
                self.leaving.remove(slot);
                self.sequences.unlink(&mut self.started, slot);
            }
        }
        if self.leaving.len() == 0 {
            // The sums start again from exact numbers.
            (self.progress, self.entered_progress) = (0.0, 0.0);
        }
    }

    /// Stops a started sequence, to be prefilled again before all that wait now.
    pub(super) fn requeue(&mut self, slot: u32) {
        let generated = self.sequences[slot].generated(self.progress);
        if generated == self.sequences[slot].tokens {
            return self.end(slot, Outcome::Complete);
        }
        self.stop(slot, generated);
        let sequence = &mut self.sequences[slot];
        (sequence.stage, sequence.done, sequence.cached) = (Stage::Waiting, generated, 0);
        self.sequences.push_front(&mut self.waiting, slot);
    }

    /// Ends a sequence, wherever it is.
    pub(super) fn end(&mut self, slot: u32, outcome: Outcome) {
        let sequence = &self.sequences[slot];
        let stage = sequence.stage;
        let generated = match outcome {
            Outcome::Complete => sequence.tokens,
            Outcome::Aborted | Outcome::Lost => sequence.generated(self.progress),
        };
        self.stop(slot, generated);
        let sequence = self.sequences.remove(slot);
        let held = match stage {
            Stage::Waiting => 0,
            Stage::Prefilling => sequence.cached,
            Stage::Decoding => sequence.prompt.saturating_add(generated),
        };
        if let Some(session) = sequence.session
            && held > 0
        {
            self.cache.put(session, held);
            self.fit_cache();
        }
        let first_token = (!sequence.segments.is_empty()).then_some(sequence.first_token);
        let (handle, segments) = (sequence.handle, sequence.segments);
        self.ended.push_back(Ended { handle, outcome, first_token, segments });
    }

    /// Ends what has started in its order, then what waits.
    pub(super) fn lose_all(&mut self) {
        while self.started.head != NONE {
            self.end(self.started.head, Outcome::Lost);
        }
        while self.waiting.head != NONE {
            self.end(self.waiting.head, Outcome::Lost);
        }
    }

    /// Closes a segment of every decoding sequence, which goes on with its KV cache.
    pub(super) fn close_segments(&mut self) {
        let mut slot = self.started.head;
        while slot != NONE {
            let sequence = &mut self.sequences[slot];
            if sequence.stage == Stage::Decoding {
                let generated = sequence.generated(self.progress);
                sequence.record(generated, self.version);
                if generated == 0 {
                    // Its first token is still to come, from the new weights.
                    sequence.first_token = self.at;
                }
            }
            slot = self.sequences.next(slot);
        }
    }
}

/// The span of so many seconds, rounded up to a nanosecond: what is due has happened by then.
fn rounded_up(seconds: f64) -> Span {
    // `as` saturates: later than every run.
    Span::from_nanos((seconds * 1e9).ceil() as u64)
}
