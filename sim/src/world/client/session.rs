//! One session: its turn, and everything drawn for it.

use headway_shared::id::{GroupId, RequestId, SessionId};
use headway_shared::input::{Request, TurnType};
use headway_shared::time::Span;

use crate::kernel::random::{Component, Key, Stream};
use crate::world::environment::Operation;
use crate::world::event::{count, span};
use crate::world::serving::Kept;
use crate::world::settings::{ClientKind, Clients};

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its place in the table is free.
    Free,
    /// The answer to its request.
    Asking,
    /// Its user or tool.
    Thinking,
    /// The delay before its request is sent again.
    Retrying,
    /// Its environment.
    Environment,
    /// The delay before it is given up.
    Leaving,
    /// Nothing any more, as the run has ended.
    Over,
}

/// A session, or a task of a slot.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Stamp of its pending wake; goes on when the place in the table is used again.
    pub(super) stamp: u32,
    pub(super) phase: Phase,
    pub(super) id: SessionId,
    pub(super) group: Option<GroupId>,
    /// The user who holds it, or the slot.
    pub(super) owner: u32,
    /// Ordinal of the session: the entity of its own draws.
    pub(super) ordinal: u64,
    /// Ordinal of its first turn: the k-th turn has the draws of entity `first_turn + k`.
    pub(super) first_turn: u64,
    pub(super) turns: u32,
    /// It marks its last turn.
    says_done: bool,
    /// From 0.
    pub(super) turn: u32,
    pub(super) prompt: u32,
    pub(super) output: u32,
    /// Tokens of the state that follows this turn.
    growth: u32,
    kind: TurnType,
    streamed: bool,
    /// From this turn's end to the next request.
    pub(super) gap: Span,
    /// Drawn at the turn's birth, for what may happen several times to it.
    pub(super) luck: u64,
    /// The request that is on its way.
    pub(super) request: Option<RequestId>,
    /// Times the client has sent this turn's request since its user last came.
    pub(super) sent: u32,
    /// Times its user came back to send it once more.
    pub(super) returns: u32,
    /// What aborted attempts of its request have generated.
    pub(super) kept: Kept,
    /// What its environment does.
    pub(super) operation: Option<Operation>,
}

impl Session {
    pub(super) fn free() -> Self {
        Self {
            stamp: 0,
            phase: Phase::Free,
            id: SessionId(0),
            group: None,
            owner: 0,
            ordinal: 0,
            first_turn: 0,
            turns: 0,
            says_done: false,
            turn: 0,
            prompt: 0,
            output: 0,
            growth: 0,
            kind: TurnType::Main,
            streamed: false,
            gap: Span::ZERO,
            luck: 0,
            request: None,
            sent: 0,
            returns: 0,
            kept: Kept::default(),
            operation: None,
        }
    }

    /// Begins its first turn. `stream` is the session's own, after the number of turns was drawn
    /// from it.
    pub(super) fn begin(&mut self, clients: &Clients, key: &Key, stream: &mut Stream) {
        self.prompt = count(clients.prompt_tokens.sample(stream, self.first_turn));
        self.says_done = match &clients.kind {
            ClientKind::Sessions(sessions) => stream.chance(sessions.done_share),
            ClientKind::Slots(slots) => !slots.environment,
        };
        self.turn = 0;
        self.draw_turn(clients, key);
    }

    /// Begins the turn after this one: its prompt holds this turn and what followed it.
    pub(super) fn next_turn(&mut self, clients: &Clients, group_per_turn: bool, key: &Key) {
        self.turn += 1;
        if group_per_turn && let Some(group) = &mut self.group {
            group.0 += 1;
        }
        self.prompt = self.prompt.saturating_add(self.output).saturating_add(self.growth);
        self.draw_turn(clients, key);
    }

    /// Draws everything about the turn at its birth, always in this order.
    fn draw_turn(&mut self, clients: &Clients, key: &Key) {
        let entity = self.entity();
        let stream = &mut key.stream(Component::Request, entity);
        let output = count(clients.output_tokens.sample(stream, entity));
        self.output = match clients.max_output_tokens {
            0 => output,
            limit => output.min(limit),
        };
        self.luck = stream.bits();
        self.streamed = clients.streamed_share > 0.0 && stream.chance(clients.streamed_share);
        self.growth = count(clients.growth_tokens.sample(stream, entity));
        if let ClientKind::Sessions(sessions) = &clients.kind {
            let side = sessions.side_share > 0.0 && stream.chance(sessions.side_share);
            self.kind = if side { TurnType::Side } else { TurnType::Main };
            let by_tool = sessions.tool_share > 0.0 && stream.chance(sessions.tool_share);
            let gap = if by_tool { &sessions.tool } else { &sessions.think };
            self.gap = span(gap.sample(stream, entity));
        }
        (self.sent, self.returns) = (0, 0);
    }

    /// The entity of this turn's draws.
    pub(super) const fn entity(&self) -> u64 {
        self.first_turn + self.turn as u64
    }

    pub(super) const fn is_last_turn(&self) -> bool {
        self.turn + 1 >= self.turns
    }

    /// The request for this turn.
    pub(super) const fn request(&self, request: RequestId) -> Request {
        Request {
            request,
            session: self.id,
            group: self.group,
            turn: self.kind,
            prompt_tokens: self.prompt,
            streamed: self.streamed,
            last: self.says_done && self.is_last_turn(),
        }
    }
}
