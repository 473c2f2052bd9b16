//! Sessions: who asked for what, when, and what they did when they were refused.

use std::collections::{BTreeMap, VecDeque};

use headway_shared::action::{Action, Refusal, Reply};
use headway_shared::id::{RequestId, SessionId};
use headway_shared::input::{Finish, Input, Request, TurnType};
use headway_shared::time::{Span, Time};

use super::generations::Over;

/// A turn of a session, however often it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// When it was first asked for.
    pub at: Time,
    /// From the end of the turn before it, in seconds; `None` for a session's first, and for one
    /// that did not wait for the turn before.
    pub gap: Option<f64>,
    /// Its group, where there are groups.
    pub group: Option<u64>,
    /// It never trains.
    pub side: bool,
    /// It is streamed.
    pub streamed: bool,
    /// It was marked as the session's last.
    pub last: bool,
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Tokens of it so far, or in all.
    pub tokens: u32,
    /// How its last attempt ended.
    pub over: Option<Over>,
    /// When its client was answered.
    pub replied: Option<Time>,
    /// Waits before it was asked for again: seconds, and seconds that the refusal had named.
    pub retries: Vec<(f64, f64)>,
    /// How long a client waited that left, in seconds.
    pub left: Option<f64>,
}

impl Turn {
    /// All of its tokens are known.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        matches!(self.over, Some(Over::Stop | Over::Length))
    }
}

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Its environment.
    Begun,
    /// An answer.
    Asking { since: Time },
    /// Its user.
    Idle { since: Time },
    /// To ask again.
    Retrying { since: Time, after: Span },
    /// Nothing: the run has ended.
    Cut,
}

/// A session.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// When it began.
    pub at: Time,
    /// When something last happened in it.
    pub until: Time,
    /// It is over: it said so, or its last turn was answered.
    pub over: bool,
    /// The core hosts its environment.
    pub hosted: bool,
    /// It gave up after a refusal, or waits to ask again.
    pub refused: bool,
    /// Its turns.
    pub turns: Vec<Turn>,
    phase: Phase,
}

impl Session {
    /// Its last turn said that it was the last.
    fn is_marked(&self) -> bool {
        self.turns.last().is_some_and(|turn| turn.last)
    }
}

/// All sessions, in the order in which they began.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// Each of them.
    pub all: Vec<Session>,
    /// Turns that were asked for while the one before was under way.
    pub overlapping: u64,
    /// No more was to come from this time on.
    pub exhausted: Option<Time>,
    places: BTreeMap<u64, usize>,
    /// Sessions whose last turn was refused, by its group and its prompt: the core has ended them, and
    /// live the same client asks again under another id.
    refused_last: BTreeMap<(Option<u64>, u32), VecDeque<usize>>,
    requests: BTreeMap<u64, usize>,
}

impl Sessions {
    pub(super) fn observe(&mut self, now: Time, input: &Input, actions: &[Action]) {
        match input {
            Input::Request(request) => self.request(now, request),
            Input::ClientLeft { request } => self.left(now, *request),
            Input::SessionStarted { session } => {
                let place = self.place(now, *session, Phase::Begun);
                self.all[place].hosted = true;
            }
            Input::SessionEnded { session } => self.ended(now, *session),
            Input::SourceExhausted => self.exhausted = self.exhausted.or(Some(now)),
            Input::GenerationEnded { request, finish, segments, .. } => {
                if let Some(session) = self.of(*request)
                    && let Some(turn) = session.turns.last_mut()
                {
                    let tokens = segments.iter().map(|s| s.tokens).fold(0, u32::saturating_add);
                    turn.over = Some(match finish {
                        Finish::Stop => Over::Stop,
                        Finish::Length => Over::Length,
                        Finish::Aborted => Over::Aborted,
                        Finish::Failed => Over::Failed,
                    });
                    let whole = matches!(finish, Finish::Stop | Finish::Length);
                    turn.tokens = if whole { tokens } else { turn.tokens.max(tokens) };
                }
            }
            _ => {}
        }
        for action in actions {
            match *action {
                Action::Refuse { request, reason, retry_after } => {
                    self.refused(now, request, reason, retry_after);
                }
                Action::Reply { request, reply } => self.replied(now, request, reply),
                Action::EndSession { session } => self.ended(now, session),
                _ => {}
            }
        }
    }

    fn place(&mut self, now: Time, session: SessionId, phase: Phase) -> usize {
        *self.places.entry(session.0).or_insert_with(|| {
            self.all.push(Session {
                at: now,
                until: now,
                over: false,
                hosted: false,
                refused: false,
                turns: Vec::new(),
                phase,
            });
            self.all.len() - 1
        })
    }

    fn of(&mut self, request: RequestId) -> Option<&mut Session> {
        let place = *self.requests.get(&request.0)?;
        self.all.get_mut(place)
    }

    fn request(&mut self, now: Time, request: &Request) {
        self.reunite(request);
        let mut place = self.place(now, request.session, Phase::Begun);
        let Session { over, phase, .. } = self.all[place];
        if over && matches!(phase, Phase::Idle { .. }) && self.all[place].is_marked() {
            // A name that comes again is another session.
            self.places.remove(&request.session.0);
            place = self.place(now, request.session, Phase::Begun);
        }
        self.requests.insert(request.request.0, place);
        let session = &mut self.all[place];
        let before = session.phase;
        session.phase = Phase::Asking { since: now };
        (session.until, session.refused, session.over) = (now, false, false);
        if let (Phase::Retrying { since, after }, Some(turn)) = (before, session.turns.last_mut()) {
            let wait = now.since(since).as_secs_f64();
            turn.retries.push((wait, after.as_secs_f64()));
            turn.last |= request.last;
            return;
        }
        let gap = match before {
            Phase::Idle { since } => Some(now.since(since).as_secs_f64()),
            _ => None,
        };
        self.overlapping += u64::from(matches!(before, Phase::Asking { .. }));
        session.turns.push(Turn {
            at: now,
            gap,
            group: request.group.map(|group| group.0),
            side: request.turn == TurnType::Side,
            streamed: request.streamed,
            last: request.last,
            prompt: request.prompt_tokens,
            tokens: 0,
            over: None,
            replied: None,
            retries: Vec::new(),
            left: None,
        });
    }

    /// A session that nobody knows is one whose last turn was refused, if it asks for the same.
    fn reunite(&mut self, request: &Request) {
        let key = (request.group.map(|group| group.0), request.prompt_tokens);
        let Some(waiting) = self.refused_last.get_mut(&key).filter(|_| request.last) else {
            return;
        };
        let place = match self.places.get(&request.session.0) {
            // It asks again under its own id.
            Some(place) => {
                waiting.retain(|waits| waits != place);
                None
            }
            None => waiting.pop_front(),
        };
        if waiting.is_empty() {
            self.refused_last.remove(&key);
        }
        if let Some(place) = place {
            self.places.insert(request.session.0, place);
        }
    }

    fn refused(&mut self, now: Time, request: RequestId, reason: Refusal, after: Span) {
        let Some(session) = self.of(request) else { return };
        session.until = now;
        session.refused = reason != Refusal::Ended;
        // Of the first turn it cannot be told: a mate of the same group asks for the same.
        let goes_on = session.turns.len() > 1 && reason != Refusal::Ended;
        let again = session.turns.last().filter(|turn| turn.last && goes_on);
        let key = again.map(|turn| (turn.group, turn.prompt));
        session.phase = match reason {
            Refusal::Ended => Phase::Cut,
            _ => Phase::Retrying { since: now, after },
        };
        if let (Some(key), Some(place)) = (key, self.requests.remove(&request.0)) {
            self.refused_last.entry(key).or_default().push_back(place);
        }
    }

    fn left(&mut self, now: Time, request: RequestId) {
        let Some(session) = self.of(request) else { return };
        if let (Phase::Asking { since }, Some(turn)) = (session.phase, session.turns.last_mut()) {
            turn.left = Some(now.since(since).as_secs_f64());
        }
        session.until = now;
        session.phase = Phase::Retrying { since: now, after: Span::ZERO };
        self.requests.remove(&request.0);
    }

    fn replied(&mut self, now: Time, request: RequestId, reply: Reply) {
        let Some(session) = self.of(request) else { return };
        session.until = now;
        if reply == Reply::Failed {
            session.phase = Phase::Retrying { since: now, after: Span::ZERO };
        } else {
            session.phase = Phase::Idle { since: now };
            if let Some(turn) = session.turns.last_mut() {
                turn.replied = Some(now);
                session.over |= turn.last;
            }
        }
        self.requests.remove(&request.0);
    }

    /// The core is done with a session. A client that was refused asks again none the less.
    fn ended(&mut self, now: Time, session: SessionId) {
        let Some(&place) = self.places.get(&session.0) else { return };
        let session = &mut self.all[place];
        if session.hosted {
            session.until = now;
        }
        // Of a refused last turn the core says so before it refuses.
        let waits = matches!(session.phase, Phase::Asking { .. } | Phase::Retrying { .. });
        session.over |= session.hosted || !waits;
    }

    /// Sessions that have been silent for much longer than any has paused are over: their clients do
    /// not say so.
    pub(super) fn finish(&mut self, end: Time) {
        let gaps = self.all.iter().flat_map(|session| &session.turns).filter_map(|turn| turn.gap);
        let longest = gaps.fold(0.0, f64::max);
        for session in &mut self.all {
            let silent = end.since(session.until).as_secs_f64();
            let waits = matches!(session.phase, Phase::Idle { .. });
            session.over |= waits && longest > 0.0 && silent > 2.0 * longest;
        }
    }
}
