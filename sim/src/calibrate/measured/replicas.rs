//! Replicas that came and went.

use std::collections::BTreeMap;

use headway_shared::input::Input;
use headway_shared::time::Time;

use crate::calibrate::series::{Series, seconds};

/// What became of replicas.
#[derive(Clone, Debug, Default)]
pub struct Replicas {
    /// Most that were up at once.
    pub most: u32,
    /// When one died.
    pub deaths: Vec<Time>,
    /// From a death to the return.
    pub restarts: Series,
    /// Seconds that replicas were up, all of them together.
    pub up_sec: f64,
    up: BTreeMap<u32, Time>,
    down: BTreeMap<u32, Time>,
}

impl Replicas {
    pub(super) fn observe(&mut self, now: Time, input: &Input) {
        match input {
            Input::ReplicaUp { replica, .. } => {
                self.up.entry(replica.0).or_insert(now);
                self.most = self.most.max(self.up.len() as u32);
                if let Some(since) = self.down.remove(&replica.0) {
                    self.restarts.push_span(since, now, true);
                }
            }
            Input::ReplicaDown { replica } => {
                if let Some(since) = self.up.remove(&replica.0) {
                    self.up_sec += seconds(now.since(since));
                    self.deaths.push(now);
                    self.down.insert(replica.0, now);
                }
            }
            _ => {}
        }
    }

    pub(super) fn finish(&mut self, end: Time) {
        for since in std::mem::take(&mut self.up).into_values() {
            self.up_sec += seconds(end.since(since));
        }
        for since in std::mem::take(&mut self.down).into_values() {
            self.restarts.push_span(since, end, false);
        }
    }
}
