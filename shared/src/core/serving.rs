//! Turns on replicas: started, ended, aborted, lost.

use super::slab::{NONE, Slot};
use super::state::{Purpose, Replica, Sync, Turn, TurnState};
use super::{SampleState, Scheduler, Stage};
use crate::action::{Action, Discard, Reply};
use crate::config::{Aborted, JudgeMode};
use crate::id::{ReplicaId, RequestId};
use crate::input::{Finish, Segment};
use crate::planted::Planted;
use crate::time::Time;
use crate::version::{DeployVersion, RolloutVersion};

impl Scheduler {
    pub(super) fn replica_index(&self, id: ReplicaId) -> Option<usize> {
        self.replicas.index_of(id)
    }

    /// Sends a turn to a replica; the first time, a turn that trains becomes a sample.
    pub(super) fn start_turn(&mut self, slot: Slot, index: usize) {
        let Replica { id: replica, deploy, sync, .. } = self.replicas[index];
        if self.turns[slot].purpose == Purpose::Train {
            match self.turns[slot].sample {
                NONE if self.goes_on(slot) => self.go_on(slot, deploy),
                NONE => self.admit(slot, deploy),
                sample if !self.turns[slot].resume => self.set_head(sample, deploy),
                _ => {}
            }
            self.occupied += self.slots_of(slot);
        }
        let turn = &mut self.turns[slot];
        turn.state = TurnState::Running;
        turn.attempt += 1;
        turn.started = self.now;
        turn.replica = index;
        turn.started_on = deploy;
        turn.floor = turn.floor.max(deploy);
        turn.may_mix = turn.resume || sync.loads();
        let sample = (turn.sample != NONE).then(|| self.samples[turn.sample].sample.id);
        let (request, attempt, resume) = (turn.request, turn.attempt, turn.resume);
        self.sessions[turn.session].last_replica = Some(replica);
        self.replicas.push_turn(index, &mut self.turn_links, slot);
        self.generation_timers.push_back(&mut self.turn_timer_links, slot);
        self.act(Action::StartGeneration { request, attempt, replica, sample, resume });
    }

    /// How many rollouts a turn on a replica counts as: a trajectory counts, not its turns.
    fn slots_of(&self, slot: Slot) -> u32 {
        u32::from(self.turns[slot].purpose == Purpose::Train && !self.trajectories())
    }

    /// Until its first token is known, a sample is as old as the weights it was sent to.
    pub(super) fn set_head(&mut self, sample: Slot, deploy: DeployVersion) {
        let head = RolloutVersion::stamped_by(deploy);
        if self.expect_head(sample, head) {
            self.samples[sample].sample.tail = head;
        }
    }

    /// Its first token will be, or is, of this version, unless it has one already. Beside another
    /// turn of its trajectory it can only be as old or older. Whether it is so now.
    fn expect_head(&mut self, sample: Slot, head: RolloutVersion) -> bool {
        let entry = &self.samples[sample];
        let alone = entry.turns.len() <= 1;
        let moves = entry.sample.tokens == 0 && (alone || head < entry.sample.head);
        if moves {
            self.move_head(sample, head);
        }
        moves
    }

    fn move_head(&mut self, slot: Slot, head: RolloutVersion) {
        let entry = &mut self.samples[slot];
        if entry.sample.head != head {
            self.ages.remove(slot, entry.sample.head.number(), entry.exempt);
            entry.sample.head = head;
            self.ages.insert(slot, head.number(), entry.exempt);
        }
    }

    /// Takes a turn off its replica.
    fn leave_replica(&mut self, slot: Slot) {
        let turn = &self.turns[slot];
        match turn.state {
            TurnState::Running => {
                self.generation_timers.remove(&mut self.turn_timer_links, slot);
            }
            _ => self.cancel_timers.remove(&mut self.turn_timer_links, slot),
        }
        self.replicas.remove_turn(turn.replica, &mut self.turn_links, slot);
        self.occupied -= self.slots_of(slot);
        self.admission_due = true;
    }

    /// Forgets a turn that is in no line and on no replica; the last one ends its session.
    pub(super) fn end_turn(&mut self, slot: Slot, reply: Option<Reply>) {
        let Some(turn) = self.turns.remove(slot) else { return };
        self.turn_of.remove(turn.request.0);
        if let Some(reply) = reply {
            self.act(Action::Reply { request: turn.request, reply });
        }
        self.sessions[turn.session].turns -= 1;
        self.touch_session(turn.session);
        self.forget_session_if_over(turn.session);
        if self.source_is_dry() {
            self.close_groups();
        }
        if turn.last {
            self.end_session(turn.session);
        }
    }

    pub(super) fn handle_generation_ended(
        &mut self,
        request: RequestId,
        attempt: u32,
        finish: Finish,
        first_token: Option<Time>,
        segments: &[Segment],
    ) {
        let Some(slot) = self.turn_of.get(request.0) else {
            if self.plant.is(Planted::DuplicateTrained) {
                self.train_again(request, segments);
            }
            return self.ignore();
        };
        let turn = &self.turns[slot];
        if !turn.on_replica() || turn.attempt != attempt {
            return self.ignore();
        }
        let cancelled = turn.state == TurnState::Cancelled;
        self.leave_replica(slot);
        if cancelled {
            return self.end_turn(slot, None);
        }
        match finish {
            Finish::Stop | Finish::Length => {
                self.finish_turn(slot, first_token, segments, Reply::Complete);
            }
            Finish::Aborted => self.handle_aborted(slot, first_token, segments),
            Finish::Failed => self.drop_turn(slot, Discard::GenerationFailed),
        }
    }

    fn handle_aborted(&mut self, slot: Slot, first_token: Option<Time>, segments: &[Segment]) {
        let has_tokens = segments.iter().any(|segment| segment.tokens > 0);
        match self.config.policy_serving.aborted {
            // What a client has read cannot be taken back.
            Aborted::Restart if self.turns[slot].streamed && has_tokens => {
                self.resume_turn(slot, first_token, segments);
            }
            Aborted::Restart => self.restart_turn(slot),
            Aborted::Resume if has_tokens => self.resume_turn(slot, first_token, segments),
            Aborted::Resume => self.restart_turn(slot),
            Aborted::KeepAsFinal if has_tokens => {
                self.finish_turn(slot, first_token, segments, Reply::Partial);
            }
            // A trajectory is not given up for a turn of which there is nothing.
            Aborted::KeepAsFinal if self.trajectories() => self.restart_turn(slot),
            // Who reads along keeps what there is; others may try again.
            Aborted::Discard if self.turns[slot].streamed && has_tokens => {
                self.drop_turn_with(slot, Discard::Aborted, Reply::Partial);
            }
            Aborted::Discard | Aborted::KeepAsFinal => self.drop_turn(slot, Discard::Aborted),
        }
    }

    fn restart_turn(&mut self, slot: Slot) {
        self.turns[slot].resume = false;
        let sample = self.turns[slot].sample;
        if sample != NONE {
            // It has no tokens any more, and will start with the newest weights there are.
            let newest = self.newest_deploy().unwrap_or_default();
            self.set_head(sample, newest.max(self.turns[slot].floor));
        }
        self.wait_for_replica(slot);
    }

    fn resume_turn(&mut self, slot: Slot, first_token: Option<Time>, segments: &[Segment]) {
        let sample = self.turns[slot].sample;
        if sample != NONE {
            if !self.segments_possible(slot, segments) {
                return self.drop_turn(slot, Discard::BadStamp);
            }
            self.expect_head(sample, segments[0].version);
            if !self.turns[slot].resume && self.samples[sample].sample.tokens == 0 {
                self.stamp_first_token(sample, first_token);
            }
            self.turns[slot].began = segments[0].version.number();
        }
        let newest = segments.last().map_or(0, |segment| segment.version.number());
        let turn = &mut self.turns[slot];
        turn.floor = turn.floor.max(DeployVersion::new(newest.min(self.learner.number())));
        self.turns[slot].resume = true;
        self.wait_for_replica(slot);
    }

    fn wait_for_replica(&mut self, slot: Slot) {
        self.turns[slot].state = TurnState::InLine;
        self.line.push_back(&mut self.turn_links, slot);
        self.admission_due = true;
    }

    /// The turn ends without a result.
    pub(super) fn drop_turn(&mut self, slot: Slot, reason: Discard) {
        self.drop_turn_with(slot, reason, Reply::Failed);
    }

    fn drop_turn_with(&mut self, slot: Slot, reason: Discard, reply: Reply) {
        self.leave_and_kill(slot, reason);
        self.end_turn(slot, Some(reply));
    }

    /// A turn failed, and its sample with it.
    pub(super) fn leave_and_kill(&mut self, slot: Slot, reason: Discard) {
        let sample = self.turns[slot].sample;
        self.leave_sample(slot);
        if sample != NONE {
            self.kill(sample, reason);
        }
    }

    /// The stamps are those that the engine can have made, given what the core let happen to it.
    pub(super) fn segments_possible(&self, slot: Slot, segments: &[Segment]) -> bool {
        let turn = &self.turns[slot];
        let newest = self.newest_on(turn.replica);
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return false };
        let ordered = segments.windows(2).all(|pair| pair[0].version < pair[1].version);
        let whole = segments.iter().all(|segment| segment.tokens > 0);
        let oldest = match turn.resume {
            true => turn.began,
            false => turn.started_on.number(),
        };
        let mixes = segments.len() == 1 && first.version.number() == oldest || turn.may_mix;
        let known = oldest <= first.version.number() && last.version.number() <= newest;
        ordered && whole && mixes && known
    }

    /// The newest version that a replica can have generated with: its engine may have swapped
    /// before the news of it came.
    fn newest_on(&self, index: usize) -> u32 {
        let replica = &self.replicas[index];
        let coming = self.coming_to(replica).unwrap_or_default();
        replica.deploy.max(coming).number()
    }

    /// A generation is complete, or counts as such.
    fn finish_turn(
        &mut self,
        slot: Slot,
        first_token: Option<Time>,
        segments: &[Segment],
        reply: Reply,
    ) {
        let Turn { sample, session, .. } = self.turns[slot];
        let mut kept = false;
        if sample != NONE {
            match self.unusable(slot, segments) {
                Some(reason) => self.leave_and_kill(slot, reason),
                None => {
                    self.record_generation(slot, sample, first_token, segments);
                    kept = true;
                }
            }
        }
        if kept && self.config.reward_judging.mode == JudgeMode::Sync {
            self.keep_slot(sample);
        }
        self.touch_session(session);
        self.step_environment(session);
        if kept {
            self.await_state(sample);
        }
        self.end_turn(slot, Some(reply));
    }

    fn record_generation(
        &mut self,
        turn: Slot,
        slot: Slot,
        first_token: Option<Time>,
        segments: &[Segment],
    ) {
        let Turn { resume, replica, prompt_tokens, .. } = self.turns[turn];
        self.leave_sample(turn);
        let entry = &mut self.samples[slot];
        let begun = entry.sample.tokens > 0;
        let first = segments[0].version;
        entry.first = if begun { entry.first.min(first) } else { first };
        let (first, alone) = (entry.first, entry.turns.is_empty());
        // A turn beside it may still turn out to hold the oldest token.
        if alone && !self.plant.is(Planted::StaleLabel) {
            self.move_head(slot, first);
        }
        if !begun && !resume {
            self.stamp_first_token(slot, first_token);
        }
        let deploy = self.replicas[replica].deploy;
        let entry = &mut self.samples[slot];
        entry.sample.add_turn(prompt_tokens, segments, deploy);
        entry.stamp(Stage::Generated, self.now, self.learner);
    }

    fn stamp_first_token(&mut self, slot: Slot, first_token: Option<Time>) {
        let admitted = self.samples[slot].sample.time(Stage::Admitted);
        let time = first_token.unwrap_or(self.now).clamp(admitted, self.now);
        let learner = self.learner_at(time);
        self.samples[slot].stamp(Stage::FirstToken, time, learner);
    }

    /// A sample goes on counting as a running rollout.
    pub(super) fn keep_slot(&mut self, slot: Slot) {
        if !std::mem::replace(&mut self.samples[slot].keeps_slot, true) {
            self.occupied += 1;
        }
    }

    pub(super) fn release_slot(&mut self, slot: Slot) {
        if std::mem::replace(&mut self.samples[slot].keeps_slot, false) {
            self.occupied -= 1;
            self.admission_due = true;
        }
    }

    /// Stops a turn on a replica for good. Its end changes nothing any more.
    pub(super) fn cancel_running_turn(
        &mut self,
        slot: Slot,
        reason: Discard,
        reply: Option<Reply>,
    ) {
        let Turn { request, session, state, last, .. } = self.turns[slot];
        if state == TurnState::Cancelled {
            return;
        }
        if state == TurnState::Running {
            self.abort_turn(slot);
        }
        self.turns[slot].state = TurnState::Cancelled;
        if let Some(reply) = reply {
            self.act(Action::Reply { request, reply });
        }
        self.leave_and_kill(slot, reason);
        if last {
            self.end_session(session);
        }
    }

    /// The sample of a turn that is held in line or generated is discarded: what becomes of the
    /// turn? A client that reads along gets its answer, unrecorded; others may try again.
    pub(super) fn detach_turn(&mut self, slot: Slot) {
        if slot == NONE {
            return;
        }
        let turn = &self.turns[slot];
        if turn.state == TurnState::Lost {
            self.turns[slot].sample = NONE;
        } else if turn.streamed {
            self.occupied -= if turn.on_replica() { self.slots_of(slot) } else { 0 };
            self.turns[slot].sample = NONE;
            self.turns[slot].purpose = Purpose::ServeOnly;
            self.admission_due = true;
        } else if turn.on_replica() {
            self.turns[slot].sample = NONE;
            self.cancel_running_turn(slot, Discard::Late, Some(Reply::Failed));
        } else {
            self.line.remove(&mut self.turn_links, slot);
            self.end_turn(slot, Some(Reply::Failed));
        }
    }

    #[cold]
    pub(super) fn generation_timed_out(&mut self) {
        if let Some(slot) = self.generation_timers.front() {
            self.cancel_running_turn(slot, Discard::GenerationFailed, Some(Reply::Failed));
        }
    }

    /// An engine does not answer to an abort.
    #[cold]
    pub(super) fn aborted_turn_given_up(&mut self) {
        let Some(slot) = self.cancel_timers.front() else { return };
        if self.take_off(slot) {
            self.decide_lost_turn(slot);
        }
    }

    /// Takes a turn off a replica that will say no more of it. Whether its fate is still open.
    fn take_off(&mut self, slot: Slot) -> bool {
        let open = self.turns[slot].state != TurnState::Cancelled;
        self.leave_replica(slot);
        if open {
            self.turns[slot].state = TurnState::Lost;
        } else {
            self.end_turn(slot, None);
        }
        open
    }

    fn abort_turn(&mut self, slot: Slot) {
        self.generation_timers.remove(&mut self.turn_timer_links, slot);
        self.cancel_timers.push_back(&mut self.turn_timer_links, slot);
        let turn = &mut self.turns[slot];
        turn.state = TurnState::Aborting;
        turn.started = self.now;
        let (request, attempt) = (turn.request, turn.attempt);
        let replica = self.replicas[turn.replica].id;
        self.act(Action::AbortGeneration { request, attempt, replica });
    }

    /// Asks the engine to stop every turn of a replica that is still running.
    pub(super) fn abort_turns(&mut self, index: usize) {
        let mut next = self.replicas[index].turns.front();
        while let Some(slot) = next {
            next = self.replicas[index].turns.after(&self.turn_links, slot);
            if self.turns[slot].state == TurnState::Running {
                self.abort_turn(slot);
            }
        }
    }

    /// Everything on a replica is lost, with the tokens it had. All of it is taken off first: a
    /// group that dies with one of its members must not abort others on a dead replica.
    pub(super) fn lose_turns(&mut self, index: usize) {
        let mut lost = std::mem::take(&mut self.scratch);
        while let Some(slot) = self.replicas[index].turns.front() {
            if self.take_off(slot) {
                lost.push(slot);
            }
        }
        for slot in lost.drain(..) {
            self.decide_lost_turn(slot);
        }
        self.scratch = lost;
    }

    fn decide_lost_turn(&mut self, slot: Slot) {
        let turn = &self.turns[slot];
        let again =
            matches!(self.config.policy_serving.aborted, Aborted::Restart | Aborted::Resume)
                && !turn.streamed;
        // Without its sample, a turn that trains has nothing to start again for.
        let bereft = turn.purpose == Purpose::Train && turn.sample == NONE;
        if again && !bereft {
            self.restart_turn(slot);
        } else {
            self.drop_turn(slot, Discard::ReplicaLost);
        }
    }

    #[cold]
    pub(super) fn handle_replica_up(&mut self, id: ReplicaId, deploy: DeployVersion) {
        // No replica can hold what the learner has not made.
        if self.learner.publish_lag_of(deploy).is_none() {
            return self.ignore();
        }
        match self.replica_index(id) {
            Some(index) if self.replicas[index].up() => return self.ignore(),
            Some(index) => {
                let replica = &mut self.replicas[index];
                (replica.alive, replica.whole, replica.closed) = (true, true, false);
                replica.deploy = deploy;
            }
            None => self.replicas.push(Replica {
                id,
                deploy,
                alive: true,
                whole: true,
                closed: false,
                sync: Sync::Idle,
                turns: super::slab::List::default(),
            }),
        }
        self.gate.weights_served(self.standing());
        self.admission_due = true;
    }

    #[cold]
    pub(super) fn handle_replica_down(&mut self, id: ReplicaId) {
        let Some(index) = self.replica_index(id).filter(|&index| self.replicas[index].alive) else {
            return self.ignore();
        };
        self.replicas[index].alive = false;
        self.replicas[index].whole = false;
        self.replicas[index].sync = Sync::Idle;
        self.lose_turns(index);
        self.admission_due = true;
    }

    pub(super) fn in_state(&mut self, slot: Slot, state: SampleState) {
        let entry = &mut self.samples[slot];
        self.ledger.in_state[entry.state as usize] -= 1;
        self.ledger.in_state[state as usize] += 1;
        entry.state = state;
    }
}
