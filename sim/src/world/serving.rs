//! Serving: the turns that run on replicas, and what their engines report.

use headway_shared::config::KvOnSync;
use headway_shared::id::{ReplicaId, RequestId};
use headway_shared::input::{Finish, Input, Segments};
use headway_shared::time::Time;
use headway_shared::version::DeployVersion;

use super::client::{Turn, luck};
use super::event::{Bus, Event};
use super::replica::{self, Ended, Outcome, Replica, Ticket};
use super::settings::{Faults, Serving as Settings};
use super::window::Window;

/// Indices of a turn's luck that decide on its completions; far from those of its client.
const LUCK: u64 = 1 << 48;

/// What an aborted attempt has generated.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) first_token: Option<Time>,
    pub(super) segments: Segments,
}

impl Kept {
    fn tokens(&self) -> u32 {
        self.segments.iter().map(|segment| segment.tokens).fold(0, u32::saturating_add)
    }
}

/// A generation that the core asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) request: RequestId,
    pub(super) attempt: u32,
    pub(super) replica: u32,
}

/// A generation that runs.
#[derive(Clone, Debug)]
struct Run {
    start: Start,
    ticket: Ticket,
    luck: u64,
    capped: bool,
    /// Nobody is told of its end.
    dropped: bool,
    /// What the attempts that it resumes have generated.
    kept: Kept,
}

#[derive(Clone, Debug)]
struct Server {
    replica: Replica,
    up: bool,
    frozen: bool,
    loading: bool,
    speed: f64,
}

/// All replicas.
#[derive(Debug)]
pub(super) struct Serving {
    at_start: u32,
    speed_during_step: f64,
    speed_during_load: f64,
    failed: f64,
    lost: f64,
    duplicate: f64,
    training: bool,
    servers: Vec<Server>,
    runs: Vec<Option<Run>>,
    free: Vec<u32>,
    by_request: Window<u32>,
    /// Memory of segments, of turns that have ended.
    room: Vec<Segments>,
}

impl Serving {
    /// Nothing breaks any more.
    pub(super) fn calm(&mut self) {
        (self.failed, self.lost, self.duplicate) = (0.0, 0.0, 0.0);
    }

    /// `replicas`: how many there ever are.
    pub(super) fn new(settings: &Settings, faults: &Faults, replicas: usize) -> Self {
        let server = Server {
            replica: Replica::new(settings.replica.clone(), DeployVersion::default()),
            up: false,
            frozen: false,
            loading: false,
            speed: 1.0,
        };
        Self {
            at_start: settings.replicas,
            speed_during_step: settings.speed_during_step,
            speed_during_load: settings.speed_during_load,
            failed: faults.failed_generation,
            lost: faults.lost_completion,
            duplicate: faults.duplicate_completion,
            training: false,
            servers: vec![server; replicas],
            runs: Vec::new(),
            free: Vec::new(),
            by_request: Window::default(),
            room: Vec::new(),
        }
    }

    /// Nobody reads these segments any more: the next turns use their room.
    pub(super) fn recycle(&mut self, mut segments: Segments) {
        if segments.spilled() {
            segments.clear();
            self.room.push(segments);
        }
    }

    /// How many replicas serve from the start.
    pub(super) const fn at_start(&self) -> u32 {
        self.at_start
    }

    pub(super) fn is_up(&self, replica: u32) -> bool {
        self.servers[replica as usize].up
    }

    /// Starts a turn, or goes on from what earlier attempts have generated.
    pub(super) fn start(&mut self, bus: &mut Bus, start: Start, turn: Option<Turn>, kept: Kept) {
        // What the core starts again elsewhere is lost where it was.
        self.forget(bus, start.request);
        let Some(turn) = turn else {
            bus.tell(ended(start, Finish::Failed, Kept::default()));
            return;
        };
        let server = &mut self.servers[start.replica as usize];
        if !server.up {
            // The core is about to hear that the replica is down, which ends this turn too.
            return;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.runs.push(None);
            // A run takes more than 100 bytes: memory ends long before `u32` does.
            self.runs.len() as u32 - 1
        });
        let done = kept.tokens();
        let ticket = server.replica.submit_with(
            bus.now,
            replica::Turn {
                handle: u64::from(slot),
                session: Some(turn.session),
                prompt_tokens: turn.prompt_tokens.saturating_add(done),
                tokens: turn.output_tokens.saturating_sub(done),
            },
            self.room.pop().unwrap_or_default(),
        );
        let Turn { luck, capped, .. } = turn;
        self.runs[slot as usize] = Some(Run { start, ticket, luck, capped, dropped: false, kept });
        self.by_request.insert(start.request.0, slot);
        self.settle(bus, start.replica);
    }

    /// Aborts a turn; what it has generated, if it still ran.
    pub(super) fn abort(
        &mut self,
        bus: &mut Bus,
        request: RequestId,
        attempt: u32,
    ) -> Option<Kept> {
        let slot = *self.by_request.get(request.0)?;
        let Start { replica, attempt: running, .. } = self.runs[slot as usize].as_ref()?.start;
        if running != attempt {
            return None;
        }
        let ticket = self.runs[slot as usize].as_ref()?.ticket;
        let server = &mut self.servers[replica as usize];
        server.replica.abort(bus.now, ticket);
        self.settle(bus, replica)
    }

    /// Nobody waits for a turn any more: where it still runs, it stops without a word.
    pub(super) fn forget(&mut self, bus: &mut Bus, request: RequestId) {
        let Some(&slot) = self.by_request.get(request.0) else { return };
        let Some(run) = &mut self.runs[slot as usize] else { return };
        run.dropped = true;
        let (ticket, replica) = (run.ticket, run.start.replica);
        self.servers[replica as usize].replica.abort(bus.now, ticket);
        self.settle(bus, replica);
    }

    /// A replica's wake is due.
    pub(super) fn due(&mut self, bus: &mut Bus, replica: u32, epoch: u32) {
        self.servers[replica as usize].replica.wake(bus.now, epoch);
        self.settle(bus, replica);
    }

    pub(super) fn freeze(&mut self, bus: &mut Bus, replica: u32) {
        let server = &mut self.servers[replica as usize];
        server.frozen = true;
        server.replica.freeze(bus.now);
        self.settle(bus, replica);
    }

    pub(super) fn thaw(&mut self, bus: &mut Bus, replica: u32) {
        let server = &mut self.servers[replica as usize];
        if std::mem::take(&mut server.frozen) {
            server.replica.unfreeze(bus.now);
            self.settle(bus, replica);
        }
    }

    /// A replica generates with other weights from now on.
    pub(super) fn swap(
        &mut self,
        bus: &mut Bus,
        replica: u32,
        version: DeployVersion,
        kv: KvOnSync,
    ) {
        self.servers[replica as usize].replica.swap_weights(bus.now, version, kv);
        self.settle(bus, replica);
    }

    /// A replica loses its weights half-way through a load, and everything that ran on it.
    pub(super) fn lose(&mut self, bus: &mut Bus, replica: u32) {
        let server = &mut self.servers[replica as usize];
        server.frozen = false;
        server.replica.kill(bus.now);
        self.settle(bus, replica);
    }

    /// A replica dies.
    pub(super) fn fell(&mut self, bus: &mut Bus, replica: u32) {
        if std::mem::take(&mut self.servers[replica as usize].up) {
            self.lose(bus, replica);
            bus.tell(Input::ReplicaDown { replica: ReplicaId(replica) });
        }
    }

    /// A replica serves: with these weights, or else with those that it had.
    pub(super) fn raise(&mut self, bus: &mut Bus, replica: u32, weights: Option<DeployVersion>) {
        let server = &mut self.servers[replica as usize];
        server.up = true;
        if let Some(version) = weights {
            server.replica.swap_weights(bus.now, version, KvOnSync::Recompute);
        }
        let deploy = server.replica.version();
        bus.tell(Input::ReplicaUp { replica: ReplicaId(replica), deploy });
    }

    /// Whether a train step shares the hardware.
    pub(super) fn set_training(&mut self, bus: &mut Bus, training: bool) {
        self.training = training;
        for replica in 0..self.servers.len() as u32 {
            self.set_speed(bus, replica);
        }
    }

    /// Whether loading weights shares a replica's hardware.
    pub(super) fn set_loading(&mut self, bus: &mut Bus, replica: u32, loading: bool) {
        self.servers[replica as usize].loading = loading;
        self.set_speed(bus, replica);
    }

    fn set_speed(&mut self, bus: &mut Bus, replica: u32) {
        let server = &mut self.servers[replica as usize];
        let step = if self.training { self.speed_during_step } else { 1.0 };
        let load = if server.loading { self.speed_during_load } else { 1.0 };
        let speed = step * load;
        if speed != server.speed {
            server.speed = speed;
            server.replica.set_speed(bus.now, speed);
            self.settle(bus, replica);
        }
    }

    /// Tells what has ended on a replica, and makes its next wake due. Returns what an aborted
    /// turn has generated.
    fn settle(&mut self, bus: &mut Bus, replica: u32) -> Option<Kept> {
        let mut aborted = None;
        while let Some(ended) = self.servers[replica as usize].replica.poll_ended() {
            aborted = self.end(bus, ended).or(aborted);
        }
        if let Some(wake) = self.servers[replica as usize].replica.poll_wake() {
            bus.at(wake.at, Event::Replica { replica, stamp: wake.epoch });
        }
        aborted
    }

    fn end(&mut self, bus: &mut Bus, end: Ended) -> Option<Kept> {
        // Handles are slots.
        let slot = end.handle as u32;
        let run = self.runs[slot as usize].take()?;
        self.free.push(slot);
        self.by_request.remove(run.start.request.0);
        if run.dropped || end.outcome == Outcome::Lost {
            self.recycle(end.segments);
            return None;
        }
        let Run { start, luck, capped, kept, .. } = run;
        let result = self.resumed(kept, end.first_token, end.segments);
        if end.outcome == Outcome::Aborted {
            bus.tell(ended(start, Finish::Aborted, self.copied(&result)));
            return Some(result);
        }
        self.complete(bus, start, luck, capped, result);
        None
    }

    /// What earlier attempts generated, and this one after them.
    fn resumed(&mut self, kept: Kept, first_token: Option<Time>, segments: Segments) -> Kept {
        let first_token = kept.first_token.or(first_token);
        if kept.segments.is_empty() {
            return Kept { first_token, segments };
        }
        let mut whole = kept.segments;
        for &segment in &segments {
            replica::append(&mut whole, segment);
        }
        self.recycle(segments);
        Kept { first_token, segments: whole }
    }

    fn copied(&mut self, kept: &Kept) -> Kept {
        let mut segments = match kept.segments.spilled() {
            true => self.room.pop().unwrap_or_default(),
            false => Segments::new(),
        };
        segments.extend_from_slice(&kept.segments);
        Kept { first_token: kept.first_token, segments }
    }

    fn complete(&self, bus: &mut Bus, start: Start, seed: u64, capped: bool, result: Kept) {
        let mut index = LUCK + u64::from(start.attempt) * 4;
        let mut happens = |share: f64| {
            index += 1;
            share > 0.0 && luck(seed, index) < share
        };
        let (failed, lost) = (happens(self.failed), happens(self.lost));
        let duplicate = happens(self.duplicate);
        let (finish, result) = match (failed, capped) {
            (true, _) => (Finish::Failed, Kept::default()),
            (false, true) => (Finish::Length, result),
            (false, false) => (Finish::Stop, result),
        };
        if duplicate {
            bus.tell(ended(start, finish, result.clone()));
        }
        if !lost {
            bus.tell(ended(start, finish, result));
        }
    }
}

fn ended(start: Start, finish: Finish, kept: Kept) -> Input {
    let Start { request, attempt, .. } = start;
    let Kept { first_token, segments } = kept;
    Input::GenerationEnded { request, attempt, finish, first_token, segments }
}
