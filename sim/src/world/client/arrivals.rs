//! When sessions begin, and what is drawn for them then.

use headway_shared::id::{GroupId, SessionId};
use headway_shared::input::Input;

use super::session::{Phase, Session};
use super::{Born, Clients};
use crate::kernel::random::Component;
use crate::world::event::{Bus, Event, count, span};
use crate::world::settings::{Arrivals, ClientKind, Sessions};

/// Spreads the sessions of different users over ordinals without meeting: odd, so that any two
/// users are at least 2^31 sessions and turns apart (Knuth's multiplicative hash).
const USER_STRIDE: u64 = 0x9E37_79B1;

impl Clients {
    /// Makes the first arrivals due.
    pub(in crate::world) fn start(&mut self, bus: &mut Bus) {
        match &self.settings.kind {
            ClientKind::Slots(slots) => {
                let slots = slots.slots;
                self.tasks = vec![0; slots as usize];
                for slot in 0..slots {
                    self.next_tasks(bus, slot);
                }
            }
            ClientKind::Sessions(Sessions { arrivals: Arrivals::Users { users, .. }, .. }) => {
                let users = *users;
                self.users = vec![Born::default(); users as usize];
                for user in 0..users {
                    self.pause_user(bus, user);
                }
            }
            ClientKind::Sessions(_) => self.schedule_arrival(bus),
        }
    }

    /// A session arrives.
    pub(in crate::world) fn arrive(&mut self, bus: &mut Bus) {
        self.start_session(bus, 0);
        self.schedule_arrival(bus);
    }

    /// A user starts a session.
    pub(in crate::world) fn user(&mut self, bus: &mut Bus, user: u32) {
        if !self.limit_reached() {
            self.start_session(bus, user);
            self.announce_end(bus);
        }
    }

    /// No new session comes; what has begun goes on.
    pub(in crate::world) fn end(&mut self, bus: &mut Bus) {
        self.settings.limit = self.born.sessions.max(1);
        self.announce_end(bus);
    }

    fn limit_reached(&self) -> bool {
        let limit = self.settings.limit;
        limit > 0 && self.born.sessions >= limit
    }

    /// Tells the core, once, that no session will come any more.
    fn announce_end(&mut self, bus: &mut Bus) {
        if !self.exhausted && self.limit_reached() {
            self.exhausted = true;
            bus.tell(Input::SourceExhausted);
        }
    }

    fn schedule_arrival(&mut self, bus: &mut Bus) {
        self.announce_end(bus);
        if self.exhausted {
            return;
        }
        let ClientKind::Sessions(sessions) = &self.settings.kind else { return };
        match &sessions.arrivals {
            Arrivals::Poisson { per_hour } => {
                let mut stream = bus.key.stream(Component::Arrival, self.born.sessions);
                bus.after(span(stream.exponential() * 3600.0 / per_hour), Event::Arrival);
            }
            // A run's recorded arrivals fit in memory, so their number fits.
            Arrivals::Replay { times } => match times.get(self.born.sessions as usize) {
                Some(&time) => bus.at(time, Event::Arrival),
                None => {
                    self.exhausted = true;
                    bus.tell(Input::SourceExhausted);
                }
            },
            Arrivals::Users { .. } => {}
        }
    }

    /// A user's pause begins.
    pub(super) fn pause_user(&self, bus: &mut Bus, user: u32) {
        let ClientKind::Sessions(sessions) = &self.settings.kind else { return };
        let Arrivals::Users { pause, .. } = &sessions.arrivals else { return };
        let entity = u64::from(user) * USER_STRIDE + self.users[user as usize].sessions;
        let mut stream = bus.key.stream(Component::Arrival, entity);
        bus.after(span(pause.sample(&mut stream, entity)), Event::User { user });
    }

    /// A slot takes the next task, or the next group of them.
    fn next_tasks(&mut self, bus: &mut Bus, slot: u32) {
        let whole = matches!(&self.settings.kind, ClientKind::Slots(slots) if slots.whole_groups);
        let tasks = if whole { self.group_size } else { 1 };
        for _ in 0..tasks {
            if !self.limit_reached() {
                self.tasks[slot as usize] += 1;
                self.start_session(bus, slot);
                self.announce_end(bus);
            }
        }
    }

    /// A task of a slot has ended; after its last one it goes on.
    pub(super) fn task_ended(&mut self, bus: &mut Bus, slot: u32) {
        let left = &mut self.tasks[slot as usize];
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.next_tasks(bus, slot);
        }
    }

    fn start_session(&mut self, bus: &mut Bus, owner: u32) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.table.push(Session::free());
            // A session takes more than 100 bytes: memory ends long before `u32` does.
            self.table.len() as u32 - 1
        });
        let base = u64::from(owner) * USER_STRIDE;
        let (born, base) = match self.users.get_mut(owner as usize) {
            Some(user) => (user, base),
            None => (&mut self.born, 0),
        };
        let (ordinal, first_turn) = (base + born.sessions, base + born.turns);
        let mut stream = bus.key.stream(Component::Session, ordinal);
        let turns = count(self.settings.turns.sample(&mut stream, ordinal)).max(1);
        born.sessions += 1;
        born.turns += u64::from(turns);
        if !self.users.is_empty() {
            self.born.sessions += 1;
        }
        let id = SessionId(self.next_session);
        self.next_session += 1;
        self.by_session.insert(id.0, slot);
        // Prompts have equally many turns where each of these is a group of its own.
        let groups_of_prompt = if self.group_per_turn { u64::from(turns) } else { 1 };
        let prompt = id.0 / self.group_size;
        let group = (self.group_size > 1).then(|| GroupId(prompt * groups_of_prompt));
        let session = &mut self.table[slot as usize];
        (session.id, session.group, session.owner) = (id, group, owner);
        (session.ordinal, session.first_turn, session.turns) = (ordinal, first_turn, turns);
        session.begin(&self.settings, &bus.key, &mut stream);
        match &self.settings.kind {
            ClientKind::Slots(slots) if slots.environment => {
                session.phase = Phase::Environment;
                bus.tell(Input::SessionStarted { session: id });
            }
            _ => self.send(bus, slot),
        }
    }
}
