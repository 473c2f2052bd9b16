//! What is due in the world, and the way from the world to the core.

use std::collections::VecDeque;

use headway_shared::input::Input;
use headway_shared::time::{Span, Time};

use crate::kernel::EventQueue;
use crate::kernel::random::Key;

/// Something that is due. One with a stamp is stale when its entity has another stamp by then.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The next session arrives.
    Arrival,
    /// A user starts a session.
    User { user: u32 },
    /// A session goes on: its pause, retry delay or environment operation is over.
    Session { slot: u32, stamp: u32 },
    /// The oldest request may have reached its client's time limit.
    ClientTimeout,
    /// A turn on a replica is done, or its prompt is read.
    Replica { replica: u32, stamp: u32 },
    /// A judge answers.
    Vote { slot: u32, stamp: u32 },
    /// A train step ends.
    Step { stamp: u32 },
    /// The weights are saved.
    Save { stamp: u32 },
    /// A replica has fetched the weights.
    Transfer { replica: u32, stamp: u32 },
    /// A replica has loaded the weights.
    Load { replica: u32, stamp: u32 },
    /// A replica dies.
    Death { replica: u32, stamp: u32 },
    /// A replica is back.
    Restart { replica: u32, stamp: u32 },
    /// A fault of the scenario's list is due.
    Scheduled { index: u32 },
}

const _: () = assert!(size_of::<Event>() <= 16, "two events to a cache line, with their keys");

impl Event {
    /// Of events at one instant: what ends comes before what breaks, and both before what begins,
    /// so that a request finds the place that was given back at its instant.
    const fn class(self) -> u8 {
        match self {
            Self::Replica { .. }
            | Self::Vote { .. }
            | Self::Step { .. }
            | Self::Save { .. }
            | Self::Transfer { .. }
            | Self::Load { .. } => 0,
            Self::Death { .. } | Self::Restart { .. } | Self::Scheduled { .. } => 1,
            Self::Arrival | Self::User { .. } | Self::Session { .. } | Self::ClientTimeout => 2,
        }
    }
}

/// The clock, what is due, and what the core has not been told yet.
#[derive(Clone, Debug)]
pub(crate) struct Bus {
    /// The current time.
    pub(crate) now: Time,
    /// The key of every random stream of the run.
    pub(crate) key: Key,
    events: EventQueue<Event>,
    inputs: VecDeque<Input>,
}

impl Bus {
    pub(crate) fn new(key: Key) -> Self {
        Self { now: Time::ZERO, key, events: EventQueue::new(), inputs: VecDeque::new() }
    }

    /// Makes `event` due at `time`.
    pub(crate) fn at(&mut self, time: Time, event: Event) {
        self.events.push(time, event.class(), event);
    }

    /// Makes `event` due after `span`.
    pub(crate) fn after(&mut self, span: Span, event: Event) {
        self.at(self.now + span, event);
    }

    /// Tells the core a fact, at the current time.
    pub(crate) fn tell(&mut self, input: Input) {
        self.inputs.push_back(input);
    }

    /// The next fact for the core.
    pub(crate) fn next_input(&mut self) -> Option<Input> {
        self.inputs.pop_front()
    }

    /// When the next event is due.
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.events.next_time()
    }

    /// Takes the next event, and sets the clock to it.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        let (time, event) = self.events.pop()?;
        self.now = time;
        Some(event)
    }
}

/// `secs` seconds; what a law cannot give (negative, undefined) counts as none.
pub(crate) fn span(secs: f64) -> Span {
    Span::from_secs_f64(secs).unwrap_or(Span::ZERO)
}

/// `value` as a whole number of tokens or turns, rounded.
pub(crate) fn count(value: f64) -> u32 {
    // `as` saturates at both ends.
    (value + 0.5) as u32
}
