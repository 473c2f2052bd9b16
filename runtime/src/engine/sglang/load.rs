//! Weights reach the server.

use std::time::Duration;

use headway_shared::action::InFlight;
use headway_shared::config::KvOnSync;
use headway_shared::version::DeployVersion;

use super::label;
use super::server::{CallError, Pause, Server};

/// How long to wait before a refused flush is tried again.
const AGAIN: Duration = Duration::from_millis(50);
/// How often a server is asked to go on.
const TRIES: u32 = 5;

/// What becomes of a load.
#[derive(Debug)]
pub(super) enum Loaded {
    /// The server holds the weights, and stands still.
    Whole,
    /// It does not. `intact`: it holds its old ones.
    Failed { intact: bool, why: String },
}

/// What the server does with turns in flight.
pub(super) const fn pause_of(in_flight: InFlight, kv: KvOnSync) -> Pause {
    match (in_flight, kv) {
        (InFlight::Drained, _) => Pause::Abort,
        (InFlight::Frozen | InFlight::Running, KvOnSync::Recompute) => Pause::Retract,
        (InFlight::Frozen | InFlight::Running, KvOnSync::Keep) => Pause::InPlace,
    }
}

/// Pauses the server, and empties its cache where turns do not keep theirs. A flush is refused while
/// anything runs, so it is tried until it is granted; the core limits how long that may take.
pub(super) async fn prepare(server: &Server, pause: Pause) -> Result<(), String> {
    server.pause(pause).await.map_err(|error| error.to_string())?;
    if pause == Pause::InPlace {
        return Ok(());
    }
    loop {
        match server.flush().await {
            Ok(()) => return Ok(()),
            Err(CallError::Refused { .. }) => tokio::time::sleep(AGAIN).await,
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Loads weights into a paused server.
pub(super) async fn load(
    server: &Server,
    path: &str,
    version: DeployVersion,
    before: Option<DeployVersion>,
    pause: Pause,
) -> Loaded {
    let failed = match server.load(path, version, pause != Pause::InPlace).await {
        Ok(()) => None,
        Err(error) => Some(error.to_string()),
    };
    let now = server.probe().await;
    let holds = |version| now.as_ref().is_ok_and(|now| *now == label(version));
    match failed {
        None if holds(version) => Loaded::Whole,
        None => {
            let now =
                now.map_or_else(|error| error.to_string(), |now| format!("its label is {now}"));
            let why = format!("the server said that it loaded {}, but {now}", label(version));
            Loaded::Failed { intact: false, why }
        }
        // A server that cannot read a checkpoint keeps the old weights, and with them their label.
        Some(why) => Loaded::Failed { intact: before.is_some_and(holds), why },
    }
}

/// Lets a paused server go on; false: it cannot be made to.
pub(super) async fn go_on(server: &Server) -> bool {
    for _ in 0..TRIES {
        if server.go_on().await.is_ok() {
            return true;
        }
        tokio::time::sleep(AGAIN).await;
    }
    false
}
