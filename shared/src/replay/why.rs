//! What became of one request, and why.

use std::fmt::Write;

use serde_json::{Value, json};

use super::travel::Witness;
use crate::action::{Action, Refusal};
use crate::core::{Deliberation, Scheduler};
use crate::describe;
use crate::id::RequestId;
use crate::input::{Input, Request};
use crate::time::Time;

/// Collects what became of a request.
#[derive(Clone, Debug)]
pub struct WhyOf {
    id: RequestId,
    arrived: Option<(u64, Time, Request)>,
    /// What it met on its arrival.
    met: Option<Deliberation>,
    /// What it met when it was last looked at while it waited.
    waiting: Option<Deliberation>,
    is_held: bool,
    /// What was decided about it, in order.
    decided: Vec<(Time, Action)>,
    /// What it met when it was refused.
    refused: Option<(Refusal, Deliberation)>,
    /// The last request that arrived.
    latest: Option<RequestId>,
}

impl WhyOf {
    /// Nothing is known yet.
    #[must_use]
    pub const fn new(id: RequestId) -> Self {
        Self {
            id,
            arrived: None,
            met: None,
            waiting: None,
            is_held: false,
            decided: Vec::new(),
            refused: None,
            latest: None,
        }
    }

    /// It has arrived.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.arrived.is_some()
    }

    /// The last request that arrived.
    #[must_use]
    pub const fn latest(&self) -> Option<RequestId> {
        self.latest
    }

    /// In words; `None`: it has not arrived.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let (index, at, request) = self.arrived.as_ref()?;
        let mut text = String::new();
        let said = describe::input(&Input::Request(*request));
        let _ = writeln!(text, "{said}, at {at} (input {index})");
        if let Some(met) = &self.met {
            text += "  what it met:\n";
            indented(&mut text, &describe::deliberation(met));
        }
        let mut decided = self.decided.iter().peekable();
        while let Some((when, action)) = decided.next() {
            let waited = when.since(*at);
            let _ =
                writeln!(text, "  {when}, {waited} after it came: {}", describe::action(action));
            let Action::Refuse { reason, .. } = action else { continue };
            if let Some((_, met)) = self.refused.as_ref().filter(|_| decided.peek().is_none()) {
                let _ = writeln!(text, "  what it met then ({reason}):");
                indented(&mut text, &describe::deliberation(met));
            }
        }
        if self.decided.is_empty() {
            text += "  nothing was decided about it: there was one of its name already\n";
        } else if self.is_held {
            text += "  it is still held\n";
            if let Some(met) = &self.waiting {
                indented(&mut text, &describe::deliberation(met));
            }
        }
        Some(text)
    }

    /// The same for programs; null: it has not arrived.
    #[must_use]
    pub fn json(&self) -> Value {
        let Some((index, at, request)) = &self.arrived else { return Value::Null };
        let decided = |(at, action): &(Time, Action)| json!({ "time_sec": at.as_secs_f64(), "action": describe::action(action) });
        let plain = |met: &Deliberation| serde_json::to_value(met).unwrap_or_default();
        json!({
            "request": self.id.0,
            "session": request.session.0,
            "input": index,
            "time_sec": at.as_secs_f64(),
            "met": self.met.as_ref().map(plain),
            "decided": self.decided.iter().map(decided).collect::<Vec<_>>(),
            "met_when_refused": self.refused.as_ref().map(|(_, met)| plain(met)),
            "held": self.is_held,
        })
    }
}

/// The request that a decision is about.
const fn about(action: &Action) -> Option<RequestId> {
    match *action {
        Action::StartGeneration { request, .. }
        | Action::AbortGeneration { request, .. }
        | Action::Refuse { request, .. }
        | Action::Hold { request }
        | Action::Reply { request, .. } => Some(request),
        _ => None,
    }
}

fn indented(text: &mut String, lines: &str) {
    for line in lines.lines() {
        let _ = writeln!(text, "    {line}");
    }
}

impl Witness for WhyOf {
    fn before(&mut self, at: Time, input: &Input, core: &Scheduler) {
        match input {
            Input::Request(request) if request.request == self.id && self.arrived.is_none() => {
                self.met = core.deliberate(at, request);
            }
            _ if self.is_held => self.waiting = core.deliberate_again(at, self.id),
            _ => {}
        }
    }

    fn after(&mut self, index: u64, at: Time, input: &Input, actions: &[Action], _: &Scheduler) {
        if let Input::Request(request) = input {
            self.latest = self.latest.max(Some(request.request));
            if request.request == self.id && self.arrived.is_none() {
                self.arrived = Some((index, at, *request));
            }
        }
        let ours = actions.iter().filter(|action| about(action) == Some(self.id));
        self.decided.extend(ours.map(|action| (at, *action)));
        match self.decided.last() {
            Some((_, Action::Refuse { reason, .. })) if self.is_held => {
                self.is_held = false;
                self.refused = self.waiting.take().map(|met| (*reason, met));
            }
            Some((_, Action::Hold { .. })) => self.is_held = true,
            Some(_) => self.is_held = false,
            None => {}
        }
    }
}
