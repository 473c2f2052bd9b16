//! The life of one sample.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Value, json};

use super::travel::Witness;
use crate::action::Action;
use crate::core::{Fate, STALENESS_PARTS, Sample, SampleState, Scheduler, Stage};
use crate::describe;
use crate::id::{RequestId, SampleId, StepId, VoteId};
use crate::input::Input;
use crate::time::Time;

/// The stages of a life, with what they are called.
const STAGES: [(Stage, &str); 8] = [
    (Stage::Admitted, "admitted"),
    (Stage::FirstToken, "first token"),
    (Stage::Generated, "generated"),
    (Stage::StateKnown, "next state known"),
    (Stage::JudgeStarted, "judging began"),
    (Stage::Judged, "judged"),
    (Stage::Ready, "ready to train"),
    (Stage::TrainStarted, "train step began"),
];

/// Something that happened to a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Time,
    /// The learner's version after it.
    pub learner: u32,
    /// What, in words.
    pub what: String,
}

/// Collects the life of a sample.
#[derive(Clone, Debug)]
pub struct LifeOf {
    id: SampleId,
    sample: Option<Sample>,
    place: Option<SampleState>,
    /// How it ended, when, and η where it was compared with it.
    fate: Option<(Fate, Time)>,
    events: Vec<Event>,
    requests: BTreeSet<RequestId>,
    votes: BTreeSet<VoteId>,
    step: Option<StepId>,
    /// How many samples were admitted.
    admitted: u64,
}

impl LifeOf {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(id: SampleId) -> Self {
        Self {
            id,
            sample: None,
            place: None,
            fate: None,
            events: Vec::new(),
            requests: BTreeSet::new(),
            votes: BTreeSet::new(),
            step: None,
            admitted: 0,
        }
    }

    /// The sample, as it was last seen; `None`: none of this name was admitted.
    #[must_use]
    pub const fn sample(&self) -> Option<&Sample> {
        self.sample.as_ref()
    }

    /// How many samples were admitted: their names count from 0.
    #[must_use]
    pub const fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Everything that happened to it, in order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    fn of_input(&self, input: &Input) -> Option<String> {
        let ours = match input {
            Input::GenerationEnded { request, .. } | Input::ClientLeft { request } => {
                self.requests.contains(request)
            }
            Input::VoteEnded { vote, .. } => self.votes.contains(vote),
            Input::StepEnded { step, .. } => self.step == Some(*step),
            _ => false,
        };
        ours.then(|| describe::input(input))
    }

    fn of_action(&mut self, action: &Action, core: &Scheduler) -> Option<String> {
        let ours = match *action {
            Action::StartGeneration { request, sample, .. } => {
                let ours = sample == Some(self.id);
                if ours {
                    self.requests.insert(request);
                }
                ours
            }
            Action::AbortGeneration { request, .. } | Action::Reply { request, .. } => {
                self.requests.contains(&request)
            }
            Action::StartVote { vote, sample } => {
                let ours = sample == self.id;
                if ours {
                    self.votes.insert(vote);
                }
                ours
            }
            Action::CancelVote { vote } => self.votes.contains(&vote),
            Action::StartStep { step, .. } => {
                let ours = core.batch().any(|sample| sample.id == self.id);
                if ours {
                    self.step = Some(step);
                }
                ours
            }
            Action::CancelStep { step } => self.step == Some(step),
            Action::Discard { sample, .. } => sample == self.id,
            _ => false,
        };
        ours.then(|| describe::action(action))
    }

    fn passed(sample: &Sample) -> impl Iterator<Item = (Stage, &'static str)> {
        let admitted = sample.time(Stage::Admitted);
        let passed = move |stage: Stage| {
            let at = sample.time(stage);
            stage == Stage::Admitted || (at > Time::ZERO && at >= admitted)
        };
        STAGES.into_iter().filter(move |&(stage, _)| passed(stage))
    }

    /// The life as text; `None`: no such sample was admitted.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let sample = self.sample.as_ref()?;
        let mut text = String::new();
        let group = sample.group.map_or_else(String::new, |group| format!(", {group}"));
        let _ = writeln!(text, "{} of {}{group}, {}", sample.id, sample.session, sample.request);
        let Sample { prompt_tokens, tokens, turns, segments, .. } = sample;
        let _ = writeln!(
            text,
            "  tokens: {tokens} generated in {turns} turns and {segments} segments, {prompt_tokens} \
             without loss"
        );
        let (head, tail) = (sample.head.number(), sample.tail.number());
        let _ = writeln!(text, "  versions: first token {head}, last token {tail}");
        let _ = writeln!(text, "  {:<17} {:>16}  {:>7}", "stage", "time", "learner");
        for (stage, name) in Self::passed(sample) {
            let (at, learner) = (sample.time(stage).to_string(), sample.learner(stage).number());
            let _ = writeln!(text, "  {name:<17} {at:>16}  {learner:>7}");
        }
        if self.is_in_step() {
            let parts = sample.staleness_parts();
            let parts = STALENESS_PARTS.iter().zip(parts);
            let parts: Vec<String> = parts.map(|(name, part)| format!("{name} {part}")).collect();
            let (head, tail) = (sample.staleness_head(), sample.staleness_tail());
            let _ = writeln!(text, "  staleness: head {head} = {}; tail {tail}", parts.join(" + "));
            let _ = writeln!(text, "  age at its train step: {}", sample.age());
            let score = f64::from(sample.score) / 1e6;
            let masked = if sample.masked { ", masked: it has no gradient" } else { "" };
            let _ = writeln!(
                text,
                "  score: {score} by judge version {}{masked}",
                sample.judge_version
            );
        }
        let _ = writeln!(text, "  fate: {}", self.fate_in_words());
        text += "  what happened:\n";
        for Event { at, learner, what } in &self.events {
            let _ = writeln!(text, "    {at} (learner {learner}): {what}");
        }
        Some(text)
    }

    /// Its train step has begun: its staleness is known.
    fn is_in_step(&self) -> bool {
        self.step.is_some()
            && (self.place == Some(SampleState::Training)
                || self.fate.is_some_and(|(fate, _)| fate == Fate::Trained))
    }

    fn fate_in_words(&self) -> String {
        match (self.fate, self.place) {
            (Some((Fate::Trained, at)), _) => {
                let step = self.step.map_or(0, |step| step.0);
                format!("trained in step {step}, which ended at {at}")
            }
            (Some((Fate::Discarded(reason), at)), _) => {
                format!("discarded at {at} as {reason}: {}", describe::discard(reason))
            }
            (None, Some(place)) => format!("still {}", describe::place(place)),
            (None, None) => "unknown".to_owned(),
        }
    }

    /// The same for programs; null: no such sample was admitted.
    #[must_use]
    pub fn json(&self) -> Value {
        let Some(sample) = &self.sample else { return Value::Null };
        let stage = |(stage, name): (Stage, &str)| {
            let at = sample.time(stage).as_secs_f64();
            json!({ "stage": name, "time_sec": at, "learner": sample.learner(stage).number() })
        };
        let staleness = self.is_in_step().then(|| {
            let parts: serde_json::Map<String, Value> = STALENESS_PARTS
                .iter()
                .zip(sample.staleness_parts())
                .map(|(name, part)| ((*name).to_owned(), part.into()))
                .collect();
            json!({
                "head": sample.staleness_head(),
                "tail": sample.staleness_tail(),
                "token_sum": sample.staleness_token_sum(),
                "parts": parts,
            })
        });
        let (fate, at) = match self.fate {
            Some((Fate::Trained, at)) => ("trained", Some(at)),
            Some((Fate::Discarded(reason), at)) => (reason.name(), Some(at)),
            None => ("on its way", None),
        };
        let event = |event: &Event| {
            let Event { at, learner, what } = event;
            json!({ "time_sec": at.as_secs_f64(), "learner": learner, "what": what })
        };
        json!({
            "sample": sample.id.0,
            "request": sample.request.0,
            "session": sample.session.0,
            "group": sample.group.map(|group| group.0),
            "prompt_tokens": sample.prompt_tokens,
            "tokens": sample.tokens,
            "turns": sample.turns,
            "segments": sample.segments,
            "head": sample.head.number(),
            "tail": sample.tail.number(),
            "score_millionths": sample.score,
            "masked": sample.masked,
            "stages": Self::passed(sample).map(stage).collect::<Vec<_>>(),
            "staleness": staleness,
            "fate": fate,
            "resolved_sec": at.map(Time::as_secs_f64),
            "step": self.step.map(|step| step.0),
            "events": self.events.iter().map(event).collect::<Vec<_>>(),
        })
    }
}

impl Witness for LifeOf {
    fn after(&mut self, _: u64, at: Time, input: &Input, actions: &[Action], core: &Scheduler) {
        self.admitted = core.ledger().admitted;
        if self.fate.is_some() {
            return;
        }
        let learner = core.learner().number();
        let mut happened: Vec<String> = self.of_input(input).into_iter().collect();
        for action in actions {
            happened.extend(self.of_action(action, core));
        }
        let place = core.sample_state(self.id);
        if place != self.place
            && let Some(place) = place
        {
            happened.push(format!("it is {}", describe::place(place)));
        }
        self.place = place.or(self.place);
        let resolved = core.resolved().iter().find(|resolved| resolved.sample.id == self.id);
        if let Some(resolved) = resolved {
            self.sample = Some(resolved.sample.clone());
            self.fate = Some((resolved.fate, at));
            if resolved.fate == Fate::Trained {
                happened.push("it is trained".to_owned());
            }
        } else if let Some(sample) = core.sample(self.id) {
            self.sample = Some(sample.clone());
        }
        self.events.extend(happened.into_iter().map(|what| Event { at, learner, what }));
    }
}
