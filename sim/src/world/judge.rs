//! Judges: an endpoint with a quota, votes that take time, and what they say.

use std::collections::VecDeque;

use headway_shared::core::Sample;
use headway_shared::id::{SampleId, VoteId};
use headway_shared::input::{Input, Score, VoteOutcome};
use headway_shared::time::{Span, Time};

use super::client::{Turn, luck};
use super::event::{Bus, Event, count, span};
use super::settings::{Judge as Settings, JudgeLatency, Learning};
use super::window::Window;
use crate::kernel::random::Component;

/// Votes of one sample that have draws of their own; beyond (15 votes with retries), they repeat.
const VOTES: u64 = 1 << 6;
const ONE: Score = 1_000_000;
/// Index of a turn's luck that decides what it deserves; far from those of others.
const LUCK: u64 = 1 << 56;

/// What the judge knows of a sample.
#[derive(Clone, Copy, Debug)]
struct Judged {
    /// The entity of its turn's draws.
    entity: u64,
    /// Votes started so far.
    votes: u32,
    /// What its turn is about.
    prompt: u64,
    /// Its place among all samples, from 0 (best) to 1: it decides what the sample deserves.
    place: f64,
}

/// Where a vote is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// The endpoint has not begun with it.
    Queued,
    /// The endpoint works on it.
    Served,
}

#[derive(Clone, Copy, Debug)]
struct Vote {
    stamp: u32,
    state: State,
    id: VoteId,
    /// Nobody waits for it any more.
    abandoned: bool,
    /// Time at the endpoint; `None`: for ever.
    time: Option<Span>,
    outcome: VoteOutcome,
    tokens: u32,
}

/// The judge's endpoint.
#[derive(Debug)]
pub(super) struct Judge {
    settings: Settings,
    samples: Window<Judged>,
    votes: Vec<Vote>,
    free: Vec<u32>,
    by_id: Window<u32>,
    queue: VecDeque<(u32, u32)>,
    served: u32,
    /// No vote ends before this.
    hangs_until: Time,
    /// Votes that start before this take so many times as long.
    slow: (Time, f64),
    /// Every vote that starts before this says 1, if it says anything.
    same_until: Time,
}

impl Judge {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            samples: Window::default(),
            votes: Vec::new(),
            free: Vec::new(),
            by_id: Window::default(),
            queue: VecDeque::new(),
            served: 0,
            hangs_until: Time::ZERO,
            slow: (Time::ZERO, 1.0),
            same_until: Time::ZERO,
        }
    }

    /// A turn became a sample.
    pub(super) fn admitted(&mut self, sample: SampleId, turn: &Turn) {
        if self.samples.get(sample.0).is_none() {
            let (entity, prompt, place) = (turn.entity, turn.prompt, luck(turn.luck, LUCK));
            self.samples.insert(sample.0, Judged { entity, votes: 0, prompt, place });
        }
    }

    /// The entity of the draws of the turn that a sample began with.
    pub(super) fn entity(&self, sample: SampleId) -> Option<u64> {
        self.samples.get(sample.0).map(|judged| judged.entity)
    }

    /// A sample has left the ledger.
    pub(super) fn resolved(&mut self, sample: SampleId) {
        self.samples.remove(sample.0);
    }

    /// Every vote brings a score from here on.
    pub(super) fn calm(&mut self) {
        let settings = &mut self.settings;
        (settings.failed_share, settings.invalid_share, settings.hang_share) = (0.0, 0.0, 0.0);
        (self.hangs_until, self.slow.0) = (Time::ZERO, Time::ZERO);
    }

    /// No vote ends before `span` has passed.
    pub(super) fn hang(&mut self, bus: &Bus, span: Span) {
        self.hangs_until = self.hangs_until.max(bus.now + span);
    }

    /// Votes that start before `span` has passed take `factor` times as long.
    pub(super) fn slow_down(&mut self, bus: &Bus, span: Span, factor: f64) {
        self.slow = (bus.now + span, factor);
    }

    /// Every vote that starts before `span` has passed says 1.
    pub(super) fn say_the_same(&mut self, bus: &Bus, span: Span) {
        self.same_until = self.same_until.max(bus.now + span);
    }

    /// The core asks for a vote.
    pub(super) fn start(
        &mut self,
        bus: &mut Bus,
        id: VoteId,
        sample: SampleId,
        facts: Option<&Sample>,
    ) {
        let Some(judged) = self.samples.get_mut(sample.0) else {
            bus.tell(ended(id, VoteOutcome::Failed, 0));
            return;
        };
        let before = *judged;
        judged.votes += 1;
        let vote = self.draw(bus, id, before, facts);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.votes.push(vote);
            // A vote takes 48 bytes: memory ends long before `u32` does.
            self.votes.len() as u32 - 1
        });
        let stamp = self.votes[slot as usize].stamp.wrapping_add(1);
        self.votes[slot as usize] = Vote { stamp, ..vote };
        self.by_id.insert(id.0, slot);
        if self.settings.quota == 0 || self.served < self.settings.quota {
            self.serve(bus, slot);
        } else {
            self.queue.push_back((slot, stamp));
        }
    }

    /// The core no longer needs a vote. An endpoint that does not notice works on.
    pub(super) fn cancel(&mut self, bus: &mut Bus, id: VoteId) {
        let Some(slot) = self.by_id.remove(id.0) else { return };
        bus.tell(ended(id, VoteOutcome::Failed, 0));
        let vote = &mut self.votes[slot as usize];
        vote.abandoned = true;
        // One that hangs for ever holds no work that could be finished.
        if self.settings.finishes_abandoned && vote.time.is_some() {
            return;
        }
        let was_served = vote.state == State::Served;
        self.release(slot);
        if was_served {
            self.serve_next(bus);
        }
    }

    /// A vote is due.
    pub(super) fn due(&mut self, bus: &mut Bus, slot: u32, stamp: u32) {
        let vote = self.votes[slot as usize];
        if vote.stamp != stamp {
            return;
        }
        if bus.now < self.hangs_until {
            bus.at(self.hangs_until, Event::Vote { slot, stamp });
            return;
        }
        if !vote.abandoned {
            self.by_id.remove(vote.id.0);
            bus.tell(ended(vote.id, vote.outcome, vote.tokens));
        }
        self.release(slot);
        self.serve_next(bus);
    }

    /// Draws the next vote on a sample.
    fn draw(&self, bus: &Bus, id: VoteId, judged: Judged, facts: Option<&Sample>) -> Vote {
        let settings = &self.settings;
        let read = facts.map_or(0, |facts| facts.prompt_tokens.saturating_add(facts.tokens));
        let ordinal = judged.entity * VOTES + u64::from(judged.votes) % VOTES;
        let stream = &mut bus.key.stream(Component::Judge, ordinal);
        let verdict = count(settings.verdict_tokens.sample(stream, ordinal));
        let secs = match &settings.latency {
            JudgeLatency::Time(time) => time.sample(stream, ordinal),
            JudgeLatency::Tokens { base_sec, read_per_sec, write_per_sec } => {
                base_sec + f64::from(read) / read_per_sec + f64::from(verdict) / write_per_sec
            }
        };
        let secs = if bus.now < self.slow.0 { secs * self.slow.1 } else { secs };
        let hangs = settings.hang_share > 0.0 && stream.chance(settings.hang_share);
        let outcome = if settings.failed_share > 0.0 && stream.chance(settings.failed_share) {
            VoteOutcome::Failed
        } else if settings.invalid_share > 0.0 && stream.chance(settings.invalid_share) {
            VoteOutcome::Invalid
        } else if bus.now < self.same_until {
            VoteOutcome::Score(ONE)
        } else {
            let version = facts.map_or(0, |facts| facts.mean_version().number());
            let shares = self.shares(bus, judged.prompt, version);
            let right = settings.agreement >= 1.0 || stream.chance(settings.agreement);
            VoteOutcome::Score(if right {
                self.score_of_prompt(bus, judged.prompt)
                    .unwrap_or_else(|| shares.score(judged.place))
            } else {
                shares.score(stream.uniform())
            })
        };
        let tokens = read.saturating_add(verdict);
        let time = (!hangs).then(|| span(secs));
        Vote { stamp: 0, state: State::Queued, id, abandoned: false, time, outcome, tokens }
    }

    /// What every sample of a prompt deserves, where all of them solve it or none does.
    fn score_of_prompt(&self, bus: &Bus, prompt: u64) -> Option<Score> {
        let Settings { solved_share, hopeless_share, .. } = self.settings;
        if solved_share + hopeless_share == 0.0 {
            return None;
        }
        let random = bus.key.stream(Component::Prompt, prompt).uniform();
        let solved = (random < solved_share).then_some(ONE);
        solved.or((random < solved_share + hopeless_share).then_some(0))
    }

    /// What samples deserve that this version generated for this prompt.
    fn shares(&self, bus: &Bus, prompt: u64, version: u32) -> Shares {
        let Settings { positive_share: positive, negative_share: negative, learning, .. } =
            self.settings;
        if learning == Learning::default() {
            return Shares { positive, negative };
        }
        let of_prompt = bus.key.stream(Component::Prompt, !prompt).normal();
        let log_odds = libm::log(positive / (1.0 - positive))
            + learning.positive_growth * f64::from(version)
            + learning.prompt_spread * of_prompt;
        let risen = 1.0 / (1.0 + libm::exp(-log_odds));
        // The others keep their proportions.
        let rest = if positive < 1.0 { (1.0 - risen) / (1.0 - positive) } else { 0.0 };
        Shares { positive: risen, negative: negative * rest }
    }

    fn serve(&mut self, bus: &mut Bus, slot: u32) {
        let vote = &mut self.votes[slot as usize];
        vote.state = State::Served;
        self.served += 1;
        if let Some(time) = vote.time {
            bus.after(time, Event::Vote { slot, stamp: vote.stamp });
        }
    }

    /// The endpoint takes the next vote of its queue, if it has room for one.
    fn serve_next(&mut self, bus: &mut Bus) {
        while self.settings.quota == 0 || self.served < self.settings.quota {
            let Some((slot, stamp)) = self.queue.pop_front() else { return };
            if self.votes[slot as usize].stamp == stamp {
                self.serve(bus, slot);
            }
        }
    }

    fn release(&mut self, slot: u32) {
        let vote = &mut self.votes[slot as usize];
        if vote.state == State::Served {
            self.served -= 1;
        }
        vote.state = State::Free;
        vote.stamp = vote.stamp.wrapping_add(1);
        self.free.push(slot);
    }
}

/// Which shares of samples deserve 1 and -1.
struct Shares {
    positive: f64,
    negative: f64,
}

impl Shares {
    /// The score at this place of all samples, from 0 to 1.
    fn score(&self, place: f64) -> Score {
        if place < self.positive {
            ONE
        } else if place < self.positive + self.negative {
            -ONE
        } else {
            0
        }
    }
}

const fn ended(vote: VoteId, outcome: VoteOutcome, tokens: u32) -> Input {
    Input::VoteEnded { vote, outcome, tokens, judge_version: 0 }
}
