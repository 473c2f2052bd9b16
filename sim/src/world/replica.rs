//! A serving replica: continuous batching on one virtual progress clock.
//!
//! All sequences that decode together advance at one rate, so one number describes them: the
//! progress V, in tokens per sequence since the batch was last empty. A sequence that enters at V
//! with n tokens to go leaves at V + n, whatever joins, leaves or slows the batch meanwhile. Only
//! the rate dV/dt changes, with the [`DecodeLaw`] and the speed; an event costs O(log n), however
//! many sequences it slows.
//!
//! ```text
//! submit -> waiting (FIFO) -> prefill (one at a time) -> decoding (one clock) -> Ended
//!              ^                                            |
//!              +---- preempted, or swapped with recompute --+
//! ```
//!
//! Prefill is a server of its own beside decoding, as with chunked or disaggregated prefill: it
//! does not slow decoding.
//!
//! The caller tells what happens, then drains [`poll_ended`](Replica::poll_ended), then asks
//! [`poll_wake`](Replica::poll_wake) when to call [`wake`](Replica::wake). Times never go
//! backwards. Whatever was due until `now` happens before what the call itself does.
//!
//! ```
//! use headway_shared::time::Time;
//! use headway_shared::version::DeployVersion;
//! use headway_sim::world::replica::{DecodeLaw, Replica, ReplicaSpec, Turn};
//!
//! let decode = DecodeLaw::linear(0.0, 0.01).unwrap();
//! let mut replica = Replica::new(ReplicaSpec::new(decode), DeployVersion::new(0));
//! for handle in 0..2 {
//!     replica.submit(Time::ZERO, Turn { handle, session: None, prompt_tokens: 10, tokens: 100 });
//! }
//! // Alone, a token takes 10 ms; together, 20 ms.
//! let wake = replica.poll_wake().unwrap();
//! assert_eq!(wake.at, Time::from_secs(2));
//! replica.wake(wake.at, wake.epoch);
//! assert_eq!(replica.poll_ended().map(|ended| ended.handle), Some(0));
//! assert_eq!(replica.poll_ended().map(|ended| ended.handle), Some(1));
//! ```

mod cache;
mod engine;
mod law;
mod leaving;
mod memory;
mod sequence;
mod slab;

use std::collections::VecDeque;

use headway_shared::config::KvOnSync;
use headway_shared::input::Segments;
use headway_shared::time::Time;
use headway_shared::version::DeployVersion;

use cache::PrefixCache;
use leaving::Leaving;
use sequence::Sequence;
use slab::{List, NONE, Slab};

pub use law::{DecodeLaw, DecodeLawError};
pub use sequence::{Ended, Outcome, Ticket, Turn, append};

/// What a replica can do.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSpec {
    /// How fast it decodes.
    pub decode: DecodeLaw,
    /// How many sequences it prefills and decodes together; the others wait. 0: no limit.
    pub max_batch: u32,
    /// Tokens per second that it prefills; `None` (or a number not above 0): prefill takes no
    /// time.
    pub prefill_tokens_per_sec: Option<f64>,
    /// How many idle sessions' contexts it keeps; 0: it has no prefix cache.
    pub cached_sessions: u32,
    /// How many tokens its KV cache holds, idle contexts included; `None`: no limit.
    pub kv_tokens: Option<u64>,
}

impl ReplicaSpec {
    /// No limit on batch and memory, prefill that takes no time, no prefix cache.
    #[must_use]
    pub const fn new(decode: DecodeLaw) -> Self {
        Self {
            decode,
            max_batch: 0,
            prefill_tokens_per_sec: None,
            cached_sessions: 0,
            kv_tokens: None,
        }
    }
}

/// When the replica wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// At this time.
    pub at: Time,
    /// Given back to [`Replica::wake`], which ignores all but the last.
    pub epoch: u32,
}

/// What a replica has done since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Tokens that were prefilled to the end, again or for the first time.
    pub prefilled_tokens: u64,
    /// Tokens whose prefill the prefix cache saved.
    pub cached_tokens: u64,
    /// Sequences that lost their KV cache because it was full.
    pub preemptions: u64,
}

/// The prefill under way.
#[derive(Clone, Copy, Debug)]
struct Prefill {
    slot: u32,
    /// Tokens of it still to read.
    remaining: f64,
}

/// One replica. See the [module](self).
#[derive(Clone, Debug)]
pub struct Replica {
    spec: ReplicaSpec,
    version: DeployVersion,
    sequences: Slab<Sequence>,
    /// Not started; preempted and interrupted ones first.
    waiting: List,
    /// Prefilling and decoding, in order of their start.
    started: List,
    starts: u64,
    prefill: Option<Prefill>,
    leaving: Leaving,
    cache: PrefixCache,
    /// The time up to which progress is integrated.
    at: Time,
    /// Tokens per sequence since the batch was last empty.
    progress: f64,
    /// dV/dt in tokens per second; 0 while frozen.
    rate: f64,
    speed: f64,
    frozen: bool,
    /// Sum of the contexts with which the decoding sequences entered, in tokens.
    entered_context: u64,
    /// Sum of the progress at which they entered.
    entered_progress: f64,
    due: Option<(Time, engine::Due)>,
    /// The wake that the caller has been told of and that has not come yet.
    announced: Option<Time>,
    epoch: u32,
    ended: VecDeque<Ended>,
    work: Work,
}

impl Replica {
    /// An idle replica that holds `version`.
    #[must_use]
    pub fn new(spec: ReplicaSpec, version: DeployVersion) -> Self {
        Self {
            cache: PrefixCache::new(spec.cached_sessions),
            spec,
            version,
            sequences: Slab::new(),
            waiting: List::EMPTY,
            started: List::EMPTY,
            starts: 0,
            prefill: None,
            leaving: Leaving::default(),
            at: Time::ZERO,
            progress: 0.0,
            rate: 0.0,
            speed: 1.0,
            frozen: false,
            entered_context: 0,
            entered_progress: 0.0,
            due: None,
            announced: None,
            epoch: 0,
            ended: VecDeque::new(),
            work: Work::default(),
        }
    }

    /// The weights it holds.
    #[must_use]
    pub const fn version(&self) -> DeployVersion {
        self.version
    }

    /// How many sequences it prefills or decodes.
    #[must_use]
    pub const fn started(&self) -> u32 {
        self.started.len
    }

    /// How many sequences wait to start.
    #[must_use]
    pub const fn waiting(&self) -> u32 {
        self.waiting.len
    }

    /// What it has done so far.
    #[must_use]
    pub const fn work(&self) -> Work {
        self.work
    }

    /// Adds a turn. Its end comes from [`poll_ended`](Self::poll_ended).
    pub fn submit(&mut self, now: Time, turn: Turn) -> Ticket {
        self.submit_with(now, turn, Segments::new())
    }

    /// The same; `room` is empty, and its memory is used for the turn's segments.
    pub fn submit_with(&mut self, now: Time, turn: Turn, room: Segments) -> Ticket {
        self.settle(now);
        let slot = self.sequences.insert(Sequence {
            handle: turn.handle,
            session: turn.session,
            prompt: turn.prompt_tokens,
            tokens: turn.tokens,
            segments: room,
            ..Sequence::default()
        });
        let generation = self.sequences.generation(slot).unwrap_or_default();
        self.sequences.push_back(&mut self.waiting, slot);
        self.reschedule();
        Ticket { slot, generation }
    }

    /// Aborts a turn; false if it is over already (its end may still be undrained).
    pub fn abort(&mut self, now: Time, ticket: Ticket) -> bool {
        self.settle(now);
        let runs = self.sequences.generation(ticket.slot) == Some(ticket.generation);
        if runs {
            self.end(ticket.slot, Outcome::Aborted);
            self.reschedule();
        }
        runs
    }

    /// The replica dies: every turn is [lost](Outcome::Lost), and so are its caches. It is then
    /// empty and not frozen; [`swap_weights`](Self::swap_weights) says what it holds when it is
    /// up again.
    pub fn kill(&mut self, now: Time) {
        self.settle(now);
        self.lose_all();
        self.cache.clear();
        self.frozen = false;
        self.reschedule();
    }

    /// Stops prefill and decoding; everything keeps its place and its KV cache.
    pub fn freeze(&mut self, now: Time) {
        self.settle(now);
        self.frozen = true;
        self.reschedule();
    }

    /// Goes on after [`freeze`](Self::freeze).
    pub fn unfreeze(&mut self, now: Time) {
        self.settle(now);
        self.frozen = false;
        self.reschedule();
    }

    /// Multiplies the rates of decoding and prefill by `speed` from now on: below 1 while the
    /// hardware is shared. At 0 (or anything that is no number above it) nothing advances.
    pub fn set_speed(&mut self, now: Time, speed: f64) {
        self.settle(now);
        self.speed = speed;
        self.reschedule();
    }

    /// Holds `version` from now on. Every decoding sequence closes a segment with its whole tokens
    /// so far. With [`KvOnSync::Recompute`] the prefix cache is lost, and what has started is
    /// prefilled again from its whole tokens, before anything that waits.
    pub fn swap_weights(&mut self, now: Time, version: DeployVersion, kv: KvOnSync) {
        self.settle(now);
        match kv {
            KvOnSync::Keep => self.close_segments(),
            KvOnSync::Recompute => {
                while self.started.tail != NONE {
                    self.requeue(self.started.tail);
                }
                self.cache.clear();
            }
        }
        self.version = version;
        self.reschedule();
    }

    /// What was asked for with [`poll_wake`](Self::poll_wake). A wake of an older epoch does
    /// nothing.
    pub fn wake(&mut self, now: Time, epoch: u32) {
        if epoch != self.epoch {
            return;
        }
        self.announced = None;
        if self.due.is_some_and(|(at, _)| at <= now) {
            self.settle(now);
        }
    }

    /// When to call [`wake`](Self::wake), if that has changed: schedule it, and forget the one
    /// before. A wake that has become too early is left to come, and asks for the next one then:
    /// so a batch that only slows down schedules nothing. To be asked after every other call.
    #[must_use]
    pub fn poll_wake(&mut self) -> Option<Wake> {
        let (at, _) = self.due?;
        if self.announced.is_some_and(|announced| announced <= at) {
            return None;
        }
        self.announced = Some(at);
        self.epoch = self.epoch.wrapping_add(1);
        Some(Wake { at, epoch: self.epoch })
    }

    /// The next turn that ended, in the order of their ends. To be drained after every other call.
    #[must_use]
    pub fn poll_ended(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }
}
