//! Loads that may hang.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use headway_shared::action::InFlight;
use headway_shared::config::KvOnSync;
use headway_shared::id::PublicationId;
use headway_shared::version::DeployVersion;
use tch::{Device, Kind};

use crate::engine::Weights;
use crate::model::{ModelError, Net, Shape};

/// How long an idle engine waits for a load before it looks for commands again.
const A_LITTLE: Duration = Duration::from_millis(1);

type Make = dyn Fn(&Shape, &Weights, Device) -> Result<Net, ModelError> + Send + Sync;

/// Makes a net of weights, on a thread of its own.
#[derive(Clone)]
pub(super) struct Loader(Arc<Make>);

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Loader")
    }
}

impl Loader {
    /// One that makes nets that compute in this type.
    pub(super) fn of_kind(kind: Kind) -> Self {
        Self(Arc::new(move |shape: &Shape, weights: &Weights, device| {
            Net::of_kind(shape, weights, device, kind)
        }))
    }

    /// One that does something else, to see what a load that hangs or fails does to the engine.
    #[cfg(test)]
    pub(super) fn of(
        make: impl Fn(&Shape, &Weights, Device) -> Result<Net, ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(make))
    }

    /// Begins a load; where the system starts no thread, it has failed.
    pub(super) fn start(&self, shape: Shape, weights: Arc<Weights>, device: Device) -> NewNet {
        let (sender, receiver) = channel();
        let make = Arc::clone(&self.0);
        let work = move || {
            let _no_gradients = tch::no_grad_guard();
            // Nobody waits for a load that was abandoned.
            let _ = sender.send(make(&shape, &weights, device));
        };
        // Without a thread the sender is gone, which is how a thread that died looks, too.
        let _ = thread::Builder::new().name("load".to_owned()).spawn(work);
        NewNet(receiver)
    }
}

/// A net that is being made.
#[derive(Debug)]
pub(super) struct NewNet(Receiver<Result<Net, ModelError>>);

impl NewNet {
    /// The net, once it is there; `Some(None)`: there will be none. Waits a little where the engine
    /// has nothing else to do.
    pub(super) fn poll(&self, idle: bool) -> Option<Option<Net>> {
        match self.0.recv_timeout(if idle { A_LITTLE } else { Duration::ZERO }) {
            Ok(result) => Some(result.ok()),
            Err(RecvTimeoutError::Disconnected) => Some(None),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }
}

/// A load on its way. To drop it is to abandon it: its thread ends when it can.
#[derive(Debug)]
pub(super) struct Loading {
    pub(super) publication: PublicationId,
    pub(super) version: DeployVersion,
    pub(super) in_flight: InFlight,
    pub(super) kv: KvOnSync,
    pub(super) net: NewNet,
}
