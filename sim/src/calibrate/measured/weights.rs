//! Weights on their way: exports, transfers, loads, and what they did to replicas.

use std::collections::BTreeMap;

use headway_shared::action::{Action, InFlight};
use headway_shared::id::{PublicationId, ReplicaId};
use headway_shared::input::{Input, WeightsEvent};
use headway_shared::time::Time;

/// How a stage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageEnd {
    /// Well.
    Done,
    /// It failed; of a load: the old weights are whole.
    Failed,
    /// A load broke half-way.
    Broken,
    /// It was given up, or the record ends before it.
    Cut,
}

/// An export, a transfer or a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// When it began.
    pub at: Time,
    /// Until when it is known.
    pub until: Time,
    /// How it ended.
    pub end: StageEnd,
}

/// A time during which something was so on a replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// Which replica.
    pub replica: u32,
    /// From then.
    pub from: Time,
    /// Until then.
    pub to: Time,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    publication: PublicationId,
    ordered: Time,
    frozen: bool,
    transferred: Option<Time>,
}

/// The weights channel.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    /// Exports.
    pub saves: Vec<Stage>,
    /// Transfers to replicas.
    pub transfers: Vec<Stage>,
    /// Loads on replicas.
    pub loads: Vec<Stage>,
    /// When replicas were loading.
    pub loading: Vec<Period>,
    /// When replicas stood still for transfer and load.
    pub frozen: Vec<Period>,
    /// When a replica went on with other weights.
    pub swaps: Vec<(u32, Time)>,
    save: Option<(PublicationId, Time)>,
    jobs: BTreeMap<u32, Job>,
}

impl Weights {
    pub(super) fn observe(&mut self, now: Time, input: &Input, actions: &[Action]) {
        match input {
            Input::Weights { publication, event } => self.event(now, *publication, *event),
            Input::ReplicaDown { replica } => self.end(now, replica.0, StageEnd::Cut),
            _ => {}
        }
        for action in actions {
            match *action {
                Action::Publish { publication, .. } => {
                    self.saved(now, None, StageEnd::Cut);
                    self.save = Some((publication, now));
                }
                Action::Load { publication, replica, in_flight, .. } => {
                    self.end(now, replica.0, StageEnd::Cut);
                    let frozen = in_flight == InFlight::Frozen;
                    let job = Job { publication, ordered: now, frozen, transferred: None };
                    self.jobs.insert(replica.0, job);
                }
                Action::CancelLoad { publication, replica } => {
                    self.event_of(now, publication, replica, StageEnd::Cut);
                }
                _ => {}
            }
        }
    }

    fn event(&mut self, now: Time, publication: PublicationId, event: WeightsEvent) {
        match event {
            WeightsEvent::Saved => self.saved(now, Some(publication), StageEnd::Done),
            WeightsEvent::SaveFailed => self.saved(now, Some(publication), StageEnd::Failed),
            WeightsEvent::Transferred(replica) => {
                let Some(job) = self.job(publication, replica) else { return };
                if job.transferred.is_none() {
                    job.transferred = Some(now);
                    let at = job.ordered;
                    self.transfers.push(Stage { at, until: now, end: StageEnd::Done });
                }
            }
            WeightsEvent::TransferFailed(replica) => {
                self.event_of(now, publication, replica, StageEnd::Failed);
            }
            WeightsEvent::Loaded(replica) => {
                if self.job(publication, replica).is_some() {
                    self.swaps.push((replica.0, now));
                }
                self.event_of(now, publication, replica, StageEnd::Done);
            }
            WeightsEvent::LoadFailed { replica, intact } => {
                let end = if intact { StageEnd::Failed } else { StageEnd::Broken };
                self.event_of(now, publication, replica, end);
            }
        }
    }

    fn saved(&mut self, now: Time, publication: Option<PublicationId>, end: StageEnd) {
        let over = self.save.take_if(|(open, _)| publication.is_none_or(|of| of == *open));
        self.saves.extend(over.map(|(_, at)| Stage { at, until: now, end }));
    }

    fn job(&mut self, publication: PublicationId, replica: ReplicaId) -> Option<&mut Job> {
        self.jobs.get_mut(&replica.0).filter(|job| job.publication == publication)
    }

    fn event_of(
        &mut self,
        now: Time,
        publication: PublicationId,
        replica: ReplicaId,
        end: StageEnd,
    ) {
        if self.job(publication, replica).is_some() {
            self.end(now, replica.0, end);
        }
    }

    /// What a replica was told to load is over.
    fn end(&mut self, now: Time, replica: u32, end: StageEnd) {
        let Some(job) = self.jobs.remove(&replica) else { return };
        let Job { ordered, frozen, transferred, .. } = job;
        if frozen {
            self.frozen.push(Period { replica, from: ordered, to: now });
        }
        match transferred {
            None => self.transfers.push(Stage { at: ordered, until: now, end }),
            Some(at) => {
                self.loads.push(Stage { at, until: now, end });
                self.loading.push(Period { replica, from: at, to: now });
            }
        }
    }

    pub(super) fn finish(&mut self, end: Time) {
        self.saved(end, None, StageEnd::Cut);
        let replicas: Vec<u32> = self.jobs.keys().copied().collect();
        for replica in replicas {
            self.end(end, replica, StageEnd::Cut);
        }
    }
}
