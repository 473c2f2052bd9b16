//! Clients: who asks for turns, when, and what they do with the answer.
//!
//! Sessions of people and agents, and slots of a closed loop, live in one table. A session waits
//! for at most one thing at a time; its stamp tells a wake that is due from one that is stale.

mod arrivals;
mod operation;
mod retry;
mod session;

use std::collections::VecDeque;

use headway_shared::action::{Refusal, Reply};
use headway_shared::config::{PolicyTraining, SampleUnit};
use headway_shared::id::{RequestId, SessionId};
use headway_shared::input::Input;
use headway_shared::time::{Span, Time};

pub(super) use self::retry::luck;
use self::session::{Phase, Session};
use super::event::{Bus, Event, span};
use super::serving::Kept;
use super::settings::{ClientKind, Clients as Settings, Sessions};
use super::window::Window;
use crate::kernel::random::Component;

/// How long a slot waits that is refused, and not told when to try again.
const SLOT_RETRY: Span = Span::from_secs(1);
/// Returns of one turn's user that have draws of their own; beyond, they repeat.
const RETURNS: u64 = 1 << 6;

/// What a replica and a judge must know of a turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) session: SessionId,
    /// What it is about: its group, or its session where there are no groups.
    pub(super) prompt: u64,
    /// The entity of its draws.
    pub(super) entity: u64,
    pub(super) prompt_tokens: u32,
    pub(super) output_tokens: u32,
    /// The turn is cut at its token limit.
    pub(super) capped: bool,
    pub(super) luck: u64,
}

/// Sessions so far, and turns so far, of one user (of all clients, where sessions arrive).
#[derive(Clone, Copy, Debug, Default)]
struct Born {
    sessions: u64,
    turns: u64,
}

/// All clients of a run.
#[derive(Debug)]
pub(super) struct Clients {
    settings: Settings,
    group_size: u64,
    /// Each turn of a prompt is a group of its own, as turns are the samples; else its sessions are.
    group_per_turn: bool,
    table: Vec<Session>,
    free: Vec<u32>,
    by_session: Window<u32>,
    by_request: Window<u32>,
    next_session: u64,
    next_request: u64,
    born: Born,
    users: Vec<Born>,
    /// Tasks of each slot that have not ended.
    tasks: Vec<u32>,
    /// Requests by the time at which their client gives up, oldest first.
    deadlines: VecDeque<(Time, RequestId)>,
    exhausted: bool,
}

impl Clients {
    pub(super) fn new(settings: Settings, training: &PolicyTraining) -> Self {
        Self {
            settings,
            group_size: u64::from(training.group_size.max(1)),
            group_per_turn: training.sample_unit == SampleUnit::Turn,
            table: Vec::new(),
            free: Vec::new(),
            by_session: Window::default(),
            by_request: Window::default(),
            next_session: 0,
            next_request: 0,
            born: Born::default(),
            users: Vec::new(),
            tasks: Vec::new(),
            deadlines: VecDeque::new(),
            exhausted: false,
        }
    }

    /// Whether no session or task will come any more.
    pub(super) const fn exhausted(&self) -> bool {
        self.exhausted
    }

    /// The turn that a request asks for, as long as its client waits for it.
    pub(super) fn turn(&self, request: RequestId) -> Option<Turn> {
        let slot = *self.by_request.get(request.0)?;
        let session = &self.table[slot as usize];
        Some(Turn {
            session: session.id,
            prompt: session.group.map_or(session.ordinal, |group| group.0),
            entity: session.entity(),
            prompt_tokens: session.prompt,
            output_tokens: session.output,
            capped: session.output == self.settings.max_output_tokens,
            luck: session.luck,
        })
    }

    /// What an aborted attempt has generated, for one that resumes it.
    pub(super) fn keep(&mut self, request: RequestId, kept: Kept) {
        if let Some(&slot) = self.by_request.get(request.0) {
            self.table[slot as usize].kept = kept;
        }
    }

    /// What aborted attempts have generated.
    pub(super) fn kept(&mut self, request: RequestId) -> Kept {
        let slot = self.by_request.get(request.0);
        slot.map_or_else(Kept::default, |&slot| std::mem::take(&mut self.table[slot as usize].kept))
    }

    /// A session's pause or delay is over.
    pub(super) fn wake(&mut self, bus: &mut Bus, slot: u32, stamp: u32) {
        let session = &mut self.table[slot as usize];
        if session.stamp != stamp {
            return;
        }
        match session.phase {
            Phase::Thinking => session.next_turn(&self.settings, self.group_per_turn, &bus.key),
            Phase::Retrying => {}
            Phase::Environment => {
                self.operation_ended(bus, slot);
                return;
            }
            Phase::Leaving => {
                self.leave(bus, slot);
                return;
            }
            Phase::Free | Phase::Asking | Phase::Over => return,
        }
        self.send(bus, slot);
    }

    /// The core refused a request.
    pub(super) fn refused(
        &mut self,
        bus: &mut Bus,
        request: RequestId,
        reason: Refusal,
        retry_after: Span,
    ) {
        let Some(slot) = self.by_request.remove(request.0) else { return };
        self.table[slot as usize].request = None;
        match reason {
            // The run is over: nobody asks any more.
            Refusal::Ended => self.table[slot as usize].phase = Phase::Over,
            // Asking again is no use, and asking for the next at once might be none either.
            Refusal::BadGroup => self.wait(bus, slot, Phase::Leaving, SLOT_RETRY),
            _ => self.retry(bus, slot, retry_after),
        }
    }

    /// A turn is over for its client.
    pub(super) fn replied(&mut self, bus: &mut Bus, request: RequestId, reply: Reply) {
        let Some(slot) = self.by_request.remove(request.0) else { return };
        let session = &mut self.table[slot as usize];
        session.request = None;
        match (&self.settings.kind, reply) {
            (ClientKind::Sessions(_), Reply::Failed) => self.retry(bus, slot, Span::ZERO),
            (ClientKind::Sessions(_), _) => {
                if session.is_last_turn() {
                    self.leave(bus, slot);
                } else {
                    let gap = session.gap;
                    self.wait(bus, slot, Phase::Thinking, gap);
                }
            }
            (ClientKind::Slots(slots), reply) if slots.environment => {
                if reply == Reply::Failed {
                    bus.tell(Input::SessionEnded { session: session.id });
                    self.leave(bus, slot);
                } else {
                    session.phase = Phase::Environment;
                }
            }
            (ClientKind::Slots(_), _) => self.leave(bus, slot),
        }
    }

    /// The core ended a session. Only an environment's session depends on it: people do not
    /// notice.
    pub(super) fn session_ended(&mut self, bus: &mut Bus, session: SessionId) {
        let Some(&slot) = self.by_session.get(session.0) else { return };
        let environment = matches!(&self.settings.kind, ClientKind::Slots(s) if s.environment);
        if environment {
            if let Some(request) = self.table[slot as usize].request.take() {
                self.by_request.remove(request.0);
            }
            self.leave(bus, slot);
        }
    }

    /// Clients whose time limit has passed give up, and try again as after a refusal.
    pub(super) fn time_out(&mut self, bus: &mut Bus) {
        while let Some(&(deadline, request)) = self.deadlines.front() {
            let waiting = self.by_request.get(request.0).is_some();
            if waiting && deadline > bus.now {
                bus.at(deadline, Event::ClientTimeout);
                return;
            }
            self.deadlines.pop_front();
            if waiting && let Some(slot) = self.by_request.remove(request.0) {
                self.table[slot as usize].request = None;
                bus.tell(Input::ClientLeft { request });
                self.retry(bus, slot, Span::ZERO);
            }
        }
    }

    fn send(&mut self, bus: &mut Bus, slot: u32) {
        let request = RequestId(self.next_request);
        self.next_request += 1;
        self.by_request.insert(request.0, slot);
        let session = &mut self.table[slot as usize];
        session.phase = Phase::Asking;
        session.request = Some(request);
        session.kept = Kept::default();
        session.sent += 1;
        bus.tell(Input::Request(session.request(request)));
        if let ClientKind::Sessions(Sessions { retries, .. }) = &self.settings.kind
            && retries.timeout > Span::ZERO
        {
            let deadline = bus.now + retries.timeout;
            if self.deadlines.is_empty() {
                bus.at(deadline, Event::ClientTimeout);
            }
            self.deadlines.push_back((deadline, request));
        }
    }

    /// The request was not answered: the client sends it again, or its user comes back later, or
    /// leaves.
    fn retry(&mut self, bus: &mut Bus, slot: u32, retry_after: Span) {
        let session = &mut self.table[slot as usize];
        let wait = match &self.settings.kind {
            ClientKind::Slots(_) if retry_after == Span::ZERO => SLOT_RETRY,
            ClientKind::Slots(_) => retry_after,
            ClientKind::Sessions(Sessions { retries, .. }) => {
                let tries = u64::from(session.returns) << 32 | u64::from(session.sent);
                let random = luck(session.luck, tries);
                if session.sent <= retries.max_retries {
                    retry::delay(retries, session.sent, retry_after, random)
                } else if luck(session.luck, u64::MAX - u64::from(session.returns))
                    < retries.return_share
                {
                    let entity = session.entity() * RETURNS + u64::from(session.returns) % RETURNS;
                    let mut stream = bus.key.stream(Component::Client, entity);
                    (session.sent, session.returns) = (0, session.returns + 1);
                    span(retries.return_after.sample(&mut stream, entity))
                } else {
                    self.leave(bus, slot);
                    return;
                }
            }
        };
        self.wait(bus, slot, Phase::Retrying, wait);
    }

    fn wait(&mut self, bus: &mut Bus, slot: u32, phase: Phase, wait: Span) {
        let session = &mut self.table[slot as usize];
        session.phase = phase;
        session.stamp = session.stamp.wrapping_add(1);
        bus.after(wait, Event::Session { slot, stamp: session.stamp });
    }

    /// A session is over for its client; its place is free, and its owner goes on.
    fn leave(&mut self, bus: &mut Bus, slot: u32) {
        let session = &mut self.table[slot as usize];
        session.stamp = session.stamp.wrapping_add(1);
        session.phase = Phase::Free;
        let owner = session.owner;
        self.by_session.remove(session.id.0);
        self.free.push(slot);
        match &self.settings.kind {
            ClientKind::Slots(_) => self.task_ended(bus, owner),
            ClientKind::Sessions(_) if !self.users.is_empty() => self.pause_user(bus, owner),
            ClientKind::Sessions(_) => {}
        }
    }
}
