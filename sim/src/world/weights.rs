//! Weights on their way: export, transfer to each replica, load.

use headway_shared::action::InFlight;
use headway_shared::config::KvOnSync;
use headway_shared::id::{PublicationId, ReplicaId};
use headway_shared::input::{Input, WeightsEvent};
use headway_shared::time::{Span, Time};
use headway_shared::version::{DeployVersion, LearnerVersion};

use super::event::{Bus, Event, span};
use super::serving::Serving;
use super::settings::{Faults, Transfer, Weights as Settings, WeightsStage};
use crate::kernel::random::Component;

/// Draws of one publication: one for its export, then one per replica.
const DRAWS: u64 = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Save {
    publication: PublicationId,
    version: DeployVersion,
    ok: bool,
}

/// How a load will go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Whole,
    TransferFails,
    Fails,
    Breaks,
    Hangs,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    publication: PublicationId,
    version: DeployVersion,
    kv: KvOnSync,
    load: Span,
    fate: Fate,
    /// The transfer is over, and the replica overwrites its old weights.
    loading: bool,
}

/// What a replica is loading.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    stamp: u32,
    job: Option<Job>,
}

/// A load that the core asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) publication: PublicationId,
    pub(super) replica: ReplicaId,
    pub(super) version: DeployVersion,
    pub(super) in_flight: InFlight,
    pub(super) kv: KvOnSync,
}

/// The weights channel.
#[derive(Debug)]
pub(super) struct Weights {
    settings: Settings,
    faults: Faults,
    save: Option<Save>,
    save_stamp: u32,
    newest: DeployVersion,
    slots: Vec<Slot>,
    /// When a shared link has sent what it was asked to send.
    link_free: Time,
    /// How often each [`WeightsStage`] is still to go wrong.
    ordered: [u32; 5],
}

impl Weights {
    pub(super) fn new(settings: Settings, faults: Faults, replicas: usize) -> Self {
        Self {
            settings,
            faults,
            save: None,
            save_stamp: 0,
            newest: DeployVersion::default(),
            slots: vec![Slot::default(); replicas],
            link_free: Time::ZERO,
            ordered: [0; 5],
        }
    }

    /// Nothing breaks any more.
    pub(super) fn calm(&mut self) {
        let faults = &mut self.faults;
        (faults.failed_save, faults.failed_transfer) = (0.0, 0.0);
        (faults.failed_load, faults.broken_load) = (0.0, 0.0);
        self.ordered = [0; 5];
    }

    /// The newest weights that were saved.
    pub(super) const fn newest(&self) -> DeployVersion {
        self.newest
    }

    /// The next attempts at `stage` go wrong.
    pub(super) fn order_failure(&mut self, stage: WeightsStage, times: u32) {
        let left = &mut self.ordered[stage as usize];
        *left = left.saturating_add(times);
    }

    /// The core publishes a version.
    pub(super) fn publish(
        &mut self,
        bus: &mut Bus,
        publication: PublicationId,
        version: LearnerVersion,
    ) {
        let entity = publication.0 * DRAWS;
        let stream = &mut bus.key.stream(Component::Weights, entity);
        let time = span(self.settings.save.sample(stream, publication.0));
        let failed = self.faults.failed_save > 0.0 && stream.chance(self.faults.failed_save);
        let ok = !self.ordered_to_fail(WeightsStage::Save) && !failed;
        let version = DeployVersion::of(version);
        self.save = Some(Save { publication, version, ok });
        self.save_stamp = self.save_stamp.wrapping_add(1);
        bus.after(time, Event::Save { stamp: self.save_stamp });
    }

    /// An export is due.
    pub(super) fn saved(&mut self, bus: &mut Bus, stamp: u32) {
        if stamp != self.save_stamp {
            return;
        }
        let Some(Save { publication, version, ok }) = self.save.take() else { return };
        if ok {
            self.newest = version;
        }
        let event = if ok { WeightsEvent::Saved } else { WeightsEvent::SaveFailed };
        bus.tell(Input::Weights { publication, event });
    }

    /// The core asks a replica to fetch and load weights. An older order is given up.
    pub(super) fn load(&mut self, bus: &mut Bus, serving: &mut Serving, order: Order) {
        let Order { publication, replica, version, in_flight, kv } = order;
        let index = replica.0 as usize;
        if index >= self.slots.len() {
            return;
        }
        self.abandon(bus, serving, replica.0);
        let (transfer, load, fate) = self.draw_load(bus, publication, replica);
        let slot = &mut self.slots[index];
        slot.stamp = slot.stamp.wrapping_add(1);
        slot.job = Some(Job { publication, version, kv, load, fate, loading: false });
        let begins = match &self.settings.transfer {
            Transfer::Link { shared: true, .. } => self.link_free.max(bus.now),
            _ => bus.now,
        };
        self.link_free = begins + transfer;
        if in_flight == InFlight::Frozen {
            serving.freeze(bus, replica.0);
        }
        bus.at(begins + transfer, Event::Transfer { replica: replica.0, stamp: slot.stamp });
    }

    /// How long a transfer and a load take, and how they go.
    fn draw_load(
        &mut self,
        bus: &Bus,
        publication: PublicationId,
        replica: ReplicaId,
    ) -> (Span, Span, Fate) {
        let entity = publication.0 * DRAWS + u64::from(replica.0) + 1;
        let stream = &mut bus.key.stream(Component::Weights, entity);
        let transfer = match &self.settings.transfer {
            Transfer::Time(time) => span(time.sample(stream, publication.0)),
            Transfer::Link { copy_sec, .. } => span(*copy_sec),
        };
        let load = span(self.settings.load.sample(stream, publication.0));
        let mut chance = |share: f64| share > 0.0 && stream.chance(share);
        let fails_transfer = chance(self.faults.failed_transfer);
        let fails = chance(self.faults.failed_load);
        let breaks = chance(self.faults.broken_load);
        let fate = if self.ordered_to_fail(WeightsStage::Transfer) || fails_transfer {
            Fate::TransferFails
        } else if self.ordered_to_fail(WeightsStage::Broken) || breaks {
            Fate::Breaks
        } else if self.ordered_to_fail(WeightsStage::Load) || fails {
            Fate::Fails
        } else if self.ordered_to_fail(WeightsStage::Hang) {
            Fate::Hangs
        } else {
            Fate::Whole
        };
        (transfer, load, fate)
    }

    /// A transfer is due.
    pub(super) fn transferred(
        &mut self,
        bus: &mut Bus,
        serving: &mut Serving,
        replica: u32,
        stamp: u32,
    ) {
        let slot = &mut self.slots[replica as usize];
        let Some(job) = slot.job.as_mut().filter(|_| slot.stamp == stamp) else { return };
        job.loading = true;
        let Job { publication, fate, load, .. } = *job;
        if fate == Fate::TransferFails {
            slot.job = None;
            serving.thaw(bus, replica);
            let event = WeightsEvent::TransferFailed(ReplicaId(replica));
            bus.tell(Input::Weights { publication, event });
            return;
        }
        serving.set_loading(bus, replica, true);
        let event = WeightsEvent::Transferred(ReplicaId(replica));
        bus.tell(Input::Weights { publication, event });
        if fate != Fate::Hangs {
            bus.after(load, Event::Load { replica, stamp });
        }
    }

    /// A load is due.
    pub(super) fn loaded(
        &mut self,
        bus: &mut Bus,
        serving: &mut Serving,
        replica: u32,
        stamp: u32,
    ) {
        let slot = &mut self.slots[replica as usize];
        if slot.stamp != stamp {
            return;
        }
        let Some(Job { publication, version, kv, fate, .. }) = slot.job.take() else { return };
        let id = ReplicaId(replica);
        serving.set_loading(bus, replica, false);
        let event = match fate {
            Fate::Breaks => {
                serving.lose(bus, replica);
                WeightsEvent::LoadFailed { replica: id, intact: false }
            }
            Fate::Fails => WeightsEvent::LoadFailed { replica: id, intact: true },
            Fate::Whole | Fate::TransferFails | Fate::Hangs => {
                serving.swap(bus, replica, version, kv);
                WeightsEvent::Loaded(id)
            }
        };
        serving.thaw(bus, replica);
        bus.tell(Input::Weights { publication, event });
    }

    /// The core gives up a transfer or a load. A load has overwritten part of the old weights: what
    /// ran on them is lost.
    pub(super) fn cancel(
        &mut self,
        bus: &mut Bus,
        serving: &mut Serving,
        publication: PublicationId,
        replica: ReplicaId,
    ) {
        let Some(slot) = self.slots.get(replica.0 as usize) else { return };
        let Some(job) = slot.job.filter(|job| job.publication == publication) else { return };
        if job.loading {
            serving.lose(bus, replica.0);
        }
        self.abandon(bus, serving, replica.0);
    }

    /// What a replica was loading comes to nothing, and nobody is told.
    pub(super) fn abandon(&mut self, bus: &mut Bus, serving: &mut Serving, replica: u32) {
        let Some(slot) = self.slots.get_mut(replica as usize) else { return };
        if slot.job.take().is_some() {
            slot.stamp = slot.stamp.wrapping_add(1);
            serving.set_loading(bus, replica, false);
            serving.thaw(bus, replica);
        }
    }

    fn ordered_to_fail(&mut self, stage: WeightsStage) -> bool {
        let left = &mut self.ordered[stage as usize];
        let fails = *left > 0;
        *left = left.saturating_sub(1);
        fails
    }
}
