//! What each sample holds: tokens, turns, and the versions that made them.

use super::{Checked, Generation, Watch, must};
use crate::action::{Action, Reply};
use crate::config::SampleUnit;
use crate::core::{Sample, Scheduler};
use crate::id::RequestId;
use crate::input::Segments;

/// What was generated for a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Label {
    tokens: u64,
    version_sum: u64,
    turns: u32,
    segments: u32,
    /// The oldest version of a turn's first token.
    head: u32,
    /// The newest of a turn's last one.
    tail: u32,
    /// What the replica held when the last turn ended.
    deploy: u32,
}

/// A generation that has ended.
#[derive(Clone, Debug)]
pub(super) struct Turned {
    request: RequestId,
    generation: Generation,
    segments: Segments,
    deploy: u32,
}

impl Turned {
    pub(super) fn new(
        request: RequestId,
        generation: Generation,
        segments: &Segments,
        deploy: u32,
    ) -> Self {
        Self { request, generation, segments: segments.clone(), deploy }
    }
}

impl Label {
    fn add(&mut self, turned: &Turned) {
        let (Some(first), Some(last)) = (turned.segments.first(), turned.segments.last()) else {
            return;
        };
        let (first, last) = (first.version.number(), last.version.number());
        let goes_on = self.turns > 0 && first == self.tail;
        self.segments += turned.segments.len() as u32 - u32::from(goes_on);
        self.head = if self.turns > 0 { self.head.min(first) } else { first };
        self.tail = self.tail.max(last);
        self.turns += 1;
        self.deploy = turned.deploy;
        for segment in &turned.segments {
            self.tokens += u64::from(segment.tokens);
            self.version_sum += u64::from(segment.tokens) * u64::from(segment.version.number());
        }
    }

    /// What the core says of it. A turn beside the others may still hold an older token; `all` of
    /// them have ended.
    pub(super) fn check(&self, sample: &Sample, all: bool) -> Checked {
        let id = sample.id;
        let (has, given) = (u64::from(sample.tokens), self.tokens);
        must!(has == given, "{id} holds {has} tokens, and {given} were generated for it");
        let (has, given) = (sample.turns, self.turns);
        must!(has == given, "{id} holds {has} turns, and {given} were generated for it");
        let newest = self.tail == sample.tail.number() && self.deploy == sample.deploy.number();
        let oldest = self.head == sample.head.number() || !all;
        let between = self.version_sum == sample.version_sum && self.segments == sample.segments;
        must!(oldest && newest && between, "the versions of {id} are {sample:?}, not {self:?}");
        Ok(())
    }
}

impl Watch {
    /// The generation that the last input ended is part of its sample, if it ended well.
    pub(super) fn check_turned(&mut self, actions: &[Action], core: &Scheduler) -> Checked {
        let Some(turned) = self.turned.take() else { return Ok(()) };
        let Some(id) = turned.generation.sample else { return Ok(()) };
        let alone = self.unit() == SampleUnit::Turn;
        let Some(life) = self.samples.get_mut(&id) else { return Ok(()) };
        let well = actions.iter().any(|action| {
            matches!(action, Action::Reply { request, reply: Reply::Complete | Reply::Partial }
                if *request == turned.request)
        });
        if well {
            life.label.add(&turned);
        }
        match core.sample(id) {
            Some(sample) if life.label.turns > 0 => life.label.check(sample, alone),
            Some(_) => Ok(()),
            None => Err(format!("{id} is gone, and nobody was told")),
        }
    }
}
