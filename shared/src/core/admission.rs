//! Requests: admitted, refused, held, or served without being recorded.

use super::gate::{GateView, Standing};
use super::queue::SampleQueue;
use super::slab::{NONE, Slot};
use super::state::{Entry, Limits, Purpose, Replica, Turn, TurnState};
use super::{Sample, SampleState, Scheduler, Stage, Violation};
use crate::action::{Action, Discard, Refusal};
use crate::config::{DropPolicy, OverLimit, Queue, Routing};
use crate::id::{RequestId, SampleId};
use crate::input::{Request, TurnType};
use crate::planted::Planted;
use crate::time::{Span, Time};
use crate::version::{DeployVersion, RolloutVersion};

/// Official clients give up where `Retry-After` is beyond a minute.
const MAX_RETRY_AFTER: Span = Span::from_secs(60);
const MIN_RETRY_AFTER: Span = Span::from_secs(1);

pub(super) fn reserves(queue: &Queue) -> bool {
    queue.drop_policy == DropPolicy::Reject
}

impl Scheduler {
    pub(super) fn handle_request(&mut self, request: &Request) {
        match self.arrive(request) {
            Some(turn) => self.decide(turn),
            None => self.ignore(),
        }
    }

    /// A new turn, before it is decided; `None`: the request is there already.
    pub(super) fn arrive(&mut self, request: &Request) -> Option<Slot> {
        if self.turn_of.get(request.request.0).is_some() {
            return None;
        }
        let session = self.open_session(request.session);
        self.deliver_state(session);
        let purpose = match request.turn {
            TurnType::Main => Purpose::Train,
            TurnType::Side => Purpose::Side,
        };
        match purpose {
            Purpose::Train => self.ledger.offered += 1,
            _ => self.ledger.side_offered += 1,
        }
        let turn = self.turns.insert(Turn {
            request: request.request,
            session,
            group: request.group.filter(|_| purpose == Purpose::Train),
            purpose,
            prompt_tokens: request.prompt_tokens,
            streamed: request.streamed,
            last: request.last,
            state: TurnState::Held,
            arrived: self.now,
            started: self.now,
            attempt: 0,
            replica: 0,
            started_on: DeployVersion::default(),
            floor: DeployVersion::default(),
            may_mix: false,
            resume: false,
            began: 0,
            seated: false,
            sample: NONE,
        });
        self.turn_of.insert(request.request.0, turn);
        self.sessions[session].turns += 1;
        Some(turn)
    }

    /// Where a new turn may start, or why it may not.
    pub(super) fn verdict(&mut self, slot: Slot) -> Result<usize, Refusal> {
        if let Some(reason) = self.hopeless(slot) {
            return Err(reason);
        }
        self.take_seat(slot);
        if self.must_queue(slot) { Err(Refusal::Stale) } else { self.find_replica(slot) }
    }

    /// Starts a new turn, or refuses or holds it.
    fn decide(&mut self, slot: Slot) {
        let reason = match self.verdict(slot) {
            Ok(replica) => return self.start_turn(slot, replica),
            Err(reason) => reason,
        };
        let gated = matches!(reason, Refusal::Stale | Refusal::QueueFull);
        match self.config.policy_serving.over_limit {
            // It is admitted already: it waits for newer weights, which are asked for.
            _ if gated && self.goes_on(slot) => self.hold(slot),
            OverLimit::ServeOnly if gated => self.serve_only(slot, reason),
            OverLimit::Hold if !matches!(reason, Refusal::Ended | Refusal::BadGroup) => {
                self.hold(slot);
            }
            _ => self.refuse(slot, reason),
        }
    }

    /// Why waiting could not help this turn.
    pub(super) fn hopeless(&self, slot: Slot) -> Option<Refusal> {
        if self.ended.is_some() {
            return Some(Refusal::Ended);
        }
        let turn = &self.turns[slot];
        // One that has its seat belongs to its group, also if there are none by a new configuration.
        let grouped = turn.seated || self.config.policy_training.group_size > 1;
        if turn.purpose != Purpose::Train || !grouped {
            return None;
        }
        let seat = self.sessions[turn.session].seat;
        if seat.is_some() || self.goes_on(slot) {
            let other = seat.is_some() && seat != turn.group;
            let closed = !self.goes_on(slot) && self.in_closed_group(slot);
            return (other || closed).then_some(Refusal::BadGroup);
        }
        let Some(id) = turn.group else { return Some(Refusal::BadGroup) };
        let group = &self.groups[self.group_of.get(id.0)?];
        let complete = !turn.seated && group.requested >= group.size;
        (complete || self.in_closed_group(slot)).then_some(Refusal::BadGroup)
    }

    /// Others wait for a place already: a turn that needs one waits behind them.
    pub(super) fn must_queue(&self, slot: Slot) -> bool {
        !self.held.is_empty() && self.needs_place(slot)
    }

    /// The turn needs a free place: it has none through its group, its session, or an attempt. A session whose end
    /// turns wait for begins its next group beyond what the gate has: that group's members wait for the same.
    pub(super) fn needs_place(&self, slot: Slot) -> bool {
        let turn = &self.turns[slot];
        if turn.purpose != Purpose::Train || turn.sample != NONE || self.goes_on(slot) {
            return false;
        }
        let placed = self.group_slot(slot).is_some_and(|group| self.groups[group].placed);
        !placed && !self.session_reserved(turn.session)
    }

    /// Turns of the session wait for its end, so that it must be able to reach it.
    pub(super) fn session_reserved(&self, session: Slot) -> bool {
        let session = &self.sessions[session];
        !self.config.reward_judging.fire_on_turn_end && session.samples > 0 && !session.ended
    }

    /// No new request is served now.
    pub(super) fn closed(&self) -> bool {
        self.ended.is_some()
            || self.operator_paused
            || self.gate_window_closed()
            || self.replicas.totals().open == 0
    }

    pub(super) fn gate_window_closed(&self) -> bool {
        let batch = i64::from(self.config.policy_training.batch_size);
        self.gate.window_closed(i64::from(self.output.entries), batch)
    }

    /// The least loaded replica that may take the turn.
    pub(super) fn find_replica(&self, slot: Slot) -> Result<usize, Refusal> {
        if self.operator_paused {
            return Err(Refusal::Paused);
        }
        let needs_place = self.needs_place(slot);
        let replica = self.route(slot, needs_place)?;
        if needs_place && !self.room_to_reserve() {
            return Err(Refusal::QueueFull);
        }
        let takes_slot = self.turns[slot].purpose == Purpose::Train && !self.goes_on(slot);
        let limit = self.config.policy_serving.max_concurrent_rollouts;
        if takes_slot && limit > 0 && self.occupied >= limit {
            return Err(Refusal::Concurrency);
        }
        Ok(replica)
    }

    /// The replica that the turn prefers of those whose weights it may use, in one pass.
    ///
    /// A turn that can wait does so where it prefers a replica that is loading weights it may use:
    /// the first replica to load would take all that waits, and the others would stand idle.
    fn route(&self, slot: Slot, needs_place: bool) -> Result<usize, Refusal> {
        let turn = &self.turns[slot];
        let trains = turn.purpose == Purpose::Train;
        let floor = self.floor(slot);
        let begun = turn.sample != NONE || self.goes_on(slot);
        let waits = begun || self.config.policy_serving.over_limit == OverLimit::Hold;
        let fits = |deploy: DeployVersion| {
            deploy >= floor
                && !(trains && !begun && self.born_too_old(deploy))
                && (!needs_place || self.gate.capacity(&self.gate_view(deploy)) > 0)
        };
        // Most replicas hold the same weights.
        let mut last = None;
        let mut admits = |deploy: DeployVersion| match last {
            Some((known, fits)) if known == deploy => fits,
            _ => {
                let fits = fits(deploy);
                last = Some((deploy, fits));
                fits
            }
        };
        let preferred = match self.config.policy_serving.routing {
            Routing::LeastLoaded => None,
            Routing::SessionAffine => self.sessions[turn.session].last_replica,
        };
        let usable =
            |replica: &Replica| replica.up() && !(trains && self.is_lost(replica.deploy.number()));
        // Of all open replicas the one that it prefers, if its weights will do; else all are looked
        // at.
        let preferred_index = preferred.and_then(|id| self.replica_index(id));
        let first = preferred_index
            .filter(|&index| self.replicas[index].open())
            .or_else(|| self.replicas.least_loaded())
            .filter(|&index| usable(&self.replicas[index]));
        if let Some(index) = first {
            let window_closed = turn.sample == NONE && self.gate_window_closed();
            match admits(self.replicas[index].deploy) {
                true if !window_closed => return Ok(index),
                false if self.replicas.totals().all_alike() => {
                    return Err(if window_closed { Refusal::WeightSync } else { Refusal::Stale });
                }
                _ => {}
            }
        }
        let mut best = None;
        for (index, replica) in self.replicas.iter().enumerate() {
            // First what turns away most of them.
            let load = (Some(replica.id) != preferred, replica.turns.len(), replica.id);
            if best.is_some_and(|(least, _)| load >= least) || replica.closed || !usable(replica) {
                continue;
            }
            if admits(replica.deploy) {
                best = Some((load, Some(index)));
            } else if waits && self.coming_to(replica).is_some_and(&mut admits) {
                best = Some((load, None));
            }
        }
        if best.is_none() {
            let mut whole = self.replicas.iter().filter(|replica| usable(replica)).peekable();
            if whole.peek().is_none() {
                return Err(Refusal::NoReplica);
            }
            if whole.all(|replica| replica.closed) {
                return Err(Refusal::WeightSync);
            }
        }
        if turn.sample == NONE && self.gate_window_closed() {
            return Err(Refusal::WeightSync);
        }
        best.and_then(|(_, index)| index).ok_or(Refusal::Stale)
    }

    /// A sample with these weights would be discarded as soon as it is admitted: not every gate
    /// looks at the publish lag.
    pub(super) fn born_too_old(&self, deploy: DeployVersion) -> bool {
        self.learner.publish_lag_of(deploy).is_some_and(|lag| lag > self.limits().lowest())
    }

    /// The oldest weights a turn may be generated with.
    pub(super) fn floor(&self, slot: Slot) -> DeployVersion {
        let group = self.group_slot(slot).map(|group| &self.groups[group]);
        let of_group = group.filter(|group| group.placed).map(|group| group.floor);
        let floor = self.turns[slot].floor.max(of_group.unwrap_or_default());
        floor.max(self.trajectory_floor(slot))
    }

    pub(super) fn gate_view(&self, deploy: DeployVersion) -> GateView {
        let training = &self.config.policy_training;
        let lag = i64::from(self.learner.publish_lag_of(deploy).unwrap_or(0));
        let lag = if self.plant.is(Planted::OffByOneLag) { (lag - 1).max(0) } else { lag };
        GateView {
            eta: i64::from(self.bound_steps()),
            batch: i64::from(training.batch_size),
            deploy: i64::from(deploy.number()),
            lag,
            outstanding: self.outstanding_places(),
            unresolved: (self.places - self.places_ready) as i64,
            training: self.trainer.places_in_batch() as i64,
            max_concurrent: i64::from(self.config.policy_serving.max_concurrent_rollouts),
            reserve: self.reserve_at(lag),
        }
    }

    /// What a gate starts to count from.
    pub(super) fn standing(&self) -> Standing {
        Standing {
            learner: self.learner.number(),
            deploy: self.newest_deploy().unwrap_or_default().number(),
            outstanding: (self.places + self.trainer.rejected_places()) as i64,
            unresolved: (self.places - self.places_ready) as i64,
            training: self.trainer.places_in_batch() as i64,
        }
    }

    /// Counted by state: a cumulative count would loosen with each short batch.
    fn outstanding_places(&self) -> i64 {
        let places = (self.places + self.trainer.rejected_places()) as i64;
        let drift = if self.plant.is(Planted::CumulativeCounter) { self.never_filled() } else { 0 };
        places - drift
    }

    /// Both queues have room for the samples of one more place, where they reserve it.
    pub(super) fn room_to_reserve(&self) -> bool {
        let need = self.config.policy_training.group_size;
        let has_room = |queue: &SampleQueue, config: &Queue| {
            !reserves(config)
                || queue.samples + queue.reserved + queue.blocked.len() + need <= config.max_size
        };
        has_room(&self.rollout, &self.config.queue.rollout)
            && has_room(&self.output, &self.config.queue.output)
    }

    /// Makes a sample of a turn that is about to start.
    pub(super) fn admit(&mut self, slot: Slot, deploy: DeployVersion) {
        let group = self.join_group(slot, deploy);
        let turn = &self.turns[slot];
        let head = RolloutVersion::stamped_by(deploy);
        let id = SampleId(self.next_sample);
        self.next_sample += 1;
        let sample = Sample {
            id,
            request: turn.request,
            session: self.sessions[turn.session].id,
            group: turn.group.filter(|_| group != NONE),
            prompt_tokens: turn.prompt_tokens,
            tokens: 0,
            turns: 0,
            head,
            tail: head,
            version_sum: 0,
            segments: 0,
            deploy,
            score: 0,
            masked: false,
            judge_version: 0,
            waited: Span::ZERO,
            waited_versions: 0,
            times: [Time::ZERO; super::STAGES],
            learners: [self.learner; super::STAGES],
        };
        let session = turn.session;
        let mut entry = Entry::new(sample, session, group, self.limits());
        entry.stamp(Stage::Admitted, self.now, self.learner);
        if group != NONE {
            let group = &mut self.groups[group];
            entry.reserved_rollout = group.reserved_rollout > 0;
            entry.reserved_output = group.reserved_output > 0;
            group.reserved_rollout = group.reserved_rollout.saturating_sub(1);
            group.reserved_output = group.reserved_output.saturating_sub(1);
        } else {
            self.places += 1;
            self.gate.took_place();
        }
        let sample = self.samples.insert(entry);
        if group == NONE {
            self.reserve_room(sample);
        }
        self.sample_of.insert(id.0, sample);
        self.join_sample(slot, sample);
        self.sessions[session].samples += 1;
        self.ages.insert(sample, head.number(), false);
        self.ledger.admitted += 1;
        self.ledger.in_state[SampleState::Generating as usize] += 1;
        if group != NONE {
            self.groups[group].members.push_back(&mut self.member_links, sample);
        }
        self.begin_trajectory(session, sample);
        // It keeps a place now until its end, or a slot.
        let session_places = self.trajectories() || self.session_reserved(session);
        if session_places && self.sessions[session].samples == 1 && self.sessions[session].turns > 1
        {
            self.line_up_turns_of(session);
        }
    }

    /// Reserves room in the queues that promise it at admission.
    pub(super) fn reserve_room(&mut self, slot: Slot) {
        let entry = &mut self.samples[slot];
        entry.reserved_rollout = reserves(&self.config.queue.rollout);
        entry.reserved_output = reserves(&self.config.queue.output);
        self.rollout.reserved += u32::from(entry.reserved_rollout);
        self.output.reserved += u32::from(entry.reserved_output);
    }

    fn serve_only(&mut self, slot: Slot, reason: Refusal) {
        self.turns[slot].purpose = Purpose::ServeOnly;
        match self.find_replica(slot) {
            Ok(replica) => {
                let group = self.group_slot(slot);
                self.ledger.served_only += 1;
                self.start_turn(slot, replica);
                // A trajectory is recorded from its first turn, or not at all.
                let session = self.turns[slot].session;
                self.sessions[session].unrecorded = self.trajectories();
                if let Some(group) = group {
                    self.member_served_only(group);
                }
            }
            Err(_) => {
                self.turns[slot].purpose = Purpose::Train;
                self.refuse(slot, reason);
            }
        }
    }

    /// Refuses a turn that has not started.
    pub(super) fn refuse(&mut self, slot: Slot, reason: Refusal) {
        let Turn { request, purpose, .. } = self.turns[slot];
        if reason == Refusal::WeightSync {
            let in_window = self.weights.current.is_some() || self.gate_window_closed();
            self.ensure(in_window, Violation::Refused503);
        }
        match purpose {
            Purpose::Train => self.ledger.refused[reason.index()] += 1,
            _ => self.ledger.side_refused += 1,
        }
        let retry_after = self.retry_after(reason);
        self.act(Action::Refuse { request, reason, retry_after });
        if reason == Refusal::BadGroup {
            self.count_late_member(slot);
        } else {
            self.leave_seat(slot);
        }
        self.keep_session_open(slot);
        self.end_turn(slot, None);
    }

    fn retry_after(&self, reason: Refusal) -> Span {
        let hint = match reason {
            Refusal::WeightSync => self.weights.last_window,
            // Places become free when a step ends. The time between two steps would not do: refused
            // clients make it longer, and it would keep them away for longer, and so on.
            Refusal::Stale | Refusal::QueueFull => self.trainer.last_duration,
            Refusal::NoReplica | Refusal::Paused | Refusal::Ended => MAX_RETRY_AFTER,
            Refusal::Concurrency | Refusal::HoldExpired => MIN_RETRY_AFTER,
            Refusal::BadGroup => Span::ZERO,
        };
        match reason {
            Refusal::BadGroup => hint,
            // `Retry-After` counts whole seconds (RFC 9110, 10.2.3): so does every client, also a
            // simulated one.
            _ => hint.clamp(MIN_RETRY_AFTER, MAX_RETRY_AFTER).whole_secs(),
        }
    }

    /// The client of a request has gone.
    pub(super) fn handle_client_left(&mut self, request: RequestId) {
        let Some(slot) = self.turn_of.get(request.0) else { return self.ignore() };
        let turn = &self.turns[slot];
        if turn.on_replica() {
            return self.cancel_running_turn(slot, Discard::ClientLeft, None);
        }
        let sample = turn.sample;
        let counts = turn.purpose == Purpose::Train && sample == NONE;
        self.leave_line(slot);
        if sample != NONE {
            self.leave_and_kill(slot, Discard::ClientLeft);
        } else if counts {
            self.ledger.left_while_held += 1;
            self.leave_seat(slot);
            self.keep_session_open(slot);
        }
        self.end_turn(slot, None);
    }

    /// What binds samples that are admitted now.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            eta: self.bound_steps(),
            strict: self.is_strict(),
            filter: self.config.stale_filter_at(self.eta_in_force()).unwrap_or(u32::MAX),
        }
    }

    /// What the gate binds now: η, for those that have one.
    pub(super) fn bound_steps(&self) -> u32 {
        self.config.bound_versions_at(self.eta_in_force())
    }

    /// Whether it binds every trained sample now.
    pub(super) fn is_strict(&self) -> bool {
        self.config.is_strict_at(self.eta_in_force())
    }
}
