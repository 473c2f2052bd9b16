//! The engine's loop: turns, loads, and whether the server is there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use headway_shared::id::{PublicationId, RequestId};
use headway_shared::input::Finish;
use headway_shared::version::DeployVersion;
use tokio::sync::{Mutex, mpsc};
use tokio::task::AbortHandle;

use super::calls::CallError;
use super::turn::{self, Outcome};
use super::{Loaded, Order, Protocol, Standing, Sync, UNLABELLED, label, version_of};
use crate::clock::Clock;
use crate::engine::{EngineCommand, EngineEvent, EngineMailbox, Export, Generate};

/// How long a server may take to end a turn that it was told to abort.
const ABORT_TIME: Duration = Duration::from_secs(5);
/// A server that does not answer so many looks in a row is gone.
const MOST_MISSED: u32 = 3;
/// How long to wait before a server is asked again to go on, and how often it is.
const AGAIN: Duration = Duration::from_millis(50);
const TRIES: u32 = 5;

/// An attempt.
type Attempt = (RequestId, u32);

/// What tasks say to the loop.
enum Said {
    Turn(Attempt, Outcome),
    /// The server has not ended a turn that it was told to abort.
    Overdue(Attempt),
    /// A load is prepared: the server stands still.
    Prepared(PublicationId),
    Loaded(PublicationId, Loaded),
    /// The server does not go on after a pause.
    Stuck,
    /// A look at the server, and the epoch in which it was made.
    Probe(u64, Result<String, CallError>),
}

struct Loading {
    publication: PublicationId,
    version: DeployVersion,
    task: AbortHandle,
}

/// See the [module](self).
pub(super) struct Serving<P> {
    server: Arc<P>,
    events: mpsc::Sender<EngineEvent>,
    clock: Clock,
    probe_interval: Duration,
    /// The newest version that was told to the server, or could have been.
    newest: DeployVersion,
    /// What the server holds; `None`: it is not there.
    deploy: Option<DeployVersion>,
    /// A load has left its weights half-way.
    broken: bool,
    turns: BTreeMap<Attempt, AbortHandle>,
    loading: Option<Loading>,
    said: mpsc::UnboundedSender<Said>,
    heard: mpsc::UnboundedReceiver<Said>,
    /// Looks that were made before a load began or ended say nothing about now.
    epoch: Arc<AtomicU64>,
    missed: u32,
    /// What is wrong with the server has been said.
    complained: Option<String>,
    /// One pause, load and continuation at a time, in order.
    control: Arc<Mutex<()>>,
}

impl<P: Protocol> Serving<P> {
    pub(super) fn new(
        server: P,
        newest: DeployVersion,
        probe_interval: Duration,
        mailbox: &EngineMailbox,
    ) -> Self {
        let (said, heard) = mpsc::unbounded_channel();
        Self {
            server: Arc::new(server),
            events: mailbox.events.clone(),
            clock: mailbox.clock,
            probe_interval,
            newest,
            deploy: None,
            broken: false,
            turns: BTreeMap::new(),
            loading: None,
            said,
            heard,
            epoch: Arc::default(),
            missed: 0,
            complained: None,
            control: Arc::default(),
        }
    }

    /// Serves until it is told to stop.
    pub(super) async fn serve(mut self, mut commands: mpsc::Receiver<EngineCommand>) {
        self.watch();
        loop {
            tokio::select! {
                biased;
                Some(said) = self.heard.recv() => self.hear(said).await,
                command = commands.recv() => match command {
                    None | Some(EngineCommand::Shutdown) => return,
                    Some(command) => self.obey(command).await,
                },
            }
        }
    }

    async fn say(&self, event: EngineEvent) {
        // Nobody listens where the run is over.
        let _ = self.events.send(event).await;
    }

    /// Logs what is wrong, once.
    fn complain(&mut self, why: String) {
        if self.complained.as_ref() != Some(&why) {
            tracing::warn!(target: "headway", "engine {}: {why}", self.server.calls().url());
            self.complained = Some(why);
        }
    }

    /// Looks at the server again and again.
    fn watch(&self) {
        let (server, said, epoch) = (self.server.clone(), self.said.clone(), self.epoch.clone());
        let interval = self.probe_interval;
        tokio::spawn(async move {
            loop {
                let before = epoch.load(Ordering::SeqCst);
                let found = server.probe().await;
                if said.send(Said::Probe(before, found)).is_err() {
                    return;
                }
                tokio::time::sleep(interval).await;
            }
        });
    }

    async fn obey(&mut self, command: EngineCommand) {
        match command {
            EngineCommand::Generate(generate) => self.generate(*generate).await,
            EngineCommand::Abort { request, attempt } => self.abort(request, attempt),
            EngineCommand::Load { publication, version, weights, in_flight, kv } => {
                let sync = Sync { in_flight, kv };
                self.load(publication, version, &weights, sync).await;
            }
            EngineCommand::CancelLoad { publication } => {
                if let Some(loading) = self.loading.take_if(|load| load.publication == publication)
                {
                    loading.task.abort();
                    self.go_on();
                }
            }
            EngineCommand::Shutdown => {}
        }
    }

    async fn generate(&mut self, generate: Generate) {
        let (request, attempt) = (generate.request, generate.attempt);
        if self.deploy.is_none() {
            // It was sent before the driver heard that the server is gone.
            return self.say(EngineEvent::Ended { request, attempt, finish: Finish::Failed }).await;
        }
        let (server, events) = (self.server.clone(), self.events.clone());
        let (said, clock) = (self.said.clone(), self.clock);
        let standing = Standing {
            deploy: self.deploy.filter(|_| self.loading.is_none()),
            epoch: self.epoch.load(Ordering::SeqCst),
            now: self.epoch.clone(),
            clock,
        };
        let task = tokio::spawn(async move {
            let reader = server.reader(standing);
            let outcome = turn::generate(&*server, reader, &events, clock, &generate).await;
            let _ = said.send(Said::Turn((request, attempt), outcome));
        });
        self.turns.insert((request, attempt), task.abort_handle());
    }

    fn abort(&self, request: RequestId, attempt: u32) {
        if !self.turns.contains_key(&(request, attempt)) {
            return;
        }
        let (server, said) = (self.server.clone(), self.said.clone());
        tokio::spawn(async move {
            let _ = server.abort(&turn::rid(request, attempt)).await;
            tokio::time::sleep(ABORT_TIME).await;
            let _ = said.send(Said::Overdue((request, attempt)));
        });
    }

    async fn hear(&mut self, said: Said) {
        match said {
            Said::Turn(attempt, outcome) => self.turn_ended(attempt, outcome).await,
            Said::Overdue(attempt) => {
                if let Some(task) = self.turns.remove(&attempt) {
                    // A server ends what nobody reads.
                    task.abort();
                    let finish = if P::CONFIRMS { Finish::Failed } else { Finish::Aborted };
                    self.ended(attempt, finish).await;
                }
            }
            Said::Prepared(publication) => {
                if self.loading.as_ref().is_some_and(|load| load.publication == publication) {
                    self.say(EngineEvent::Transferred { publication }).await;
                }
            }
            Said::Loaded(publication, loaded) => self.loaded(publication, loaded).await,
            Said::Stuck => {
                self.complain("it does not go on after a pause".to_owned());
                self.lost().await;
            }
            Said::Probe(epoch, found) => self.probed(epoch, found).await,
        }
    }

    async fn ended(&self, (request, attempt): Attempt, finish: Finish) {
        self.say(EngineEvent::Ended { request, attempt, finish }).await;
    }

    async fn turn_ended(&mut self, attempt: Attempt, outcome: Outcome) {
        if self.turns.remove(&attempt).is_none() {
            return;
        }
        let finish = match outcome {
            Outcome::Ended(finish) => finish,
            Outcome::Failed(why) => {
                self.complain(format!("{} failed: {why}", attempt.0));
                Finish::Failed
            }
            Outcome::Severed(why) => {
                self.complain(format!("{} broke off: {why}", attempt.0));
                // A server that is gone takes every turn with it, this one included.
                if let Err(CallError::Unreachable { .. }) = self.server.probe().await {
                    return self.lost().await;
                }
                Finish::Failed
            }
        };
        self.ended(attempt, finish).await;
    }

    async fn load(
        &mut self,
        publication: PublicationId,
        version: DeployVersion,
        weights: &Export,
        sync: Sync,
    ) {
        if let Some(old) = self.loading.take() {
            old.task.abort();
            self.go_on();
            let publication = old.publication;
            self.say(EngineEvent::LoadFailed { publication, intact: false }).await;
        }
        let Some(path) = directory(weights) else {
            self.complain("it reads weights from a directory, and was given tensors".to_owned());
            return self.say(EngineEvent::LoadFailed { publication, intact: true }).await;
        };
        self.newest = self.newest.max(version);
        self.epoch.fetch_add(1, Ordering::SeqCst);
        let (server, said) = (self.server.clone(), self.said.clone());
        let (control, before) = (self.control.clone(), self.deploy);
        let task = tokio::spawn(async move {
            let _alone = control.lock().await;
            let loaded = match server.prepare(sync).await {
                Err(why) => Loaded::Failed { intact: true, why },
                Ok(()) => {
                    let _ = said.send(Said::Prepared(publication));
                    server.load(Order { path, version, before, sync }).await
                }
            };
            let _ = said.send(Said::Loaded(publication, loaded));
        });
        self.loading = Some(Loading { publication, version, task: task.abort_handle() });
    }

    async fn loaded(&mut self, publication: PublicationId, loaded: Loaded) {
        let Some(loading) = self.loading.take_if(|load| load.publication == publication) else {
            return;
        };
        self.epoch.fetch_add(1, Ordering::SeqCst);
        match loaded {
            Loaded::Whole => {
                self.deploy = self.deploy.map(|_| loading.version);
                self.broken = false;
                self.complained = None;
                self.say(EngineEvent::Loaded { publication }).await;
            }
            Loaded::Failed { intact, why } => {
                self.broken |= !intact;
                self.complain(format!("{} was not loaded: {why}", label(loading.version)));
                self.say(EngineEvent::LoadFailed { publication, intact }).await;
            }
        }
        self.go_on();
    }

    /// Lets the server generate again, after what is under way.
    fn go_on(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        let (server, said) = (self.server.clone(), self.said.clone());
        let control = self.control.clone();
        tokio::spawn(async move {
            let _alone = control.lock().await;
            if !go_on(&*server).await {
                let _ = said.send(Said::Stuck);
            }
        });
    }

    async fn probed(&mut self, epoch: u64, found: Result<String, CallError>) {
        if self.loading.is_some() || epoch != self.epoch.load(Ordering::SeqCst) {
            return;
        }
        let now = match found {
            Ok(now) => now,
            Err(error) => {
                self.missed += 1;
                let refused =
                    matches!(&error, CallError::Unreachable { error, .. } if error.is_connect());
                if self.deploy.is_none() || refused || self.missed >= MOST_MISSED {
                    self.complain(format!("it is not there: {error}"));
                    self.lost().await;
                }
                return;
            }
        };
        self.missed = 0;
        match self.deploy {
            Some(deploy) if now == label(deploy) => {}
            Some(_) if self.broken && P::BROKEN == Some(now.as_str()) => {}
            Some(deploy) => {
                self.complain(format!(
                    "its label is {now}, not {}: it was started again, or somebody updated it",
                    label(deploy)
                ));
                self.lost().await;
            }
            None => self.greet(&now).await,
        }
    }

    /// A server is there that was not.
    async fn greet(&mut self, now: &str) {
        if let Err(why) = self.server.usable().await {
            return self.complain(why);
        }
        let deploy = if now == UNLABELLED {
            let first = DeployVersion::new(0);
            if let Err(error) = self.server.name(first).await {
                return self.complain(format!("its weights cannot be labelled: {error}"));
            }
            first
        } else {
            let Some(deploy) = version_of(now).filter(|deploy| *deploy <= self.newest) else {
                return self.complain(format!(
                    "its weights have the label {now}, which is no version of this run; start it \
                     again with the run's first checkpoint, or label them headway-VERSION"
                ));
            };
            deploy
        };
        // A server that was paused when this process ended would never generate.
        if !go_on(&*self.server).await {
            return self.complain("it does not go on".to_owned());
        }
        self.epoch.fetch_add(1, Ordering::SeqCst);
        (self.complained, self.broken) = (None, false);
        self.deploy = Some(deploy);
        self.say(EngineEvent::Up { deploy }).await;
    }

    /// The server is gone, and everything on it.
    async fn lost(&mut self) {
        for task in std::mem::take(&mut self.turns).into_values() {
            task.abort();
        }
        if let Some(loading) = self.loading.take() {
            loading.task.abort();
        }
        self.epoch.fetch_add(1, Ordering::SeqCst);
        if self.deploy.take().is_some() {
            self.say(EngineEvent::Lost).await;
        }
    }
}

/// Lets a paused server go on; false: it cannot be made to.
async fn go_on<P: Protocol>(server: &P) -> bool {
    for _ in 0..TRIES {
        if server.go_on().await.is_ok() {
            return true;
        }
        tokio::time::sleep(AGAIN).await;
    }
    false
}

/// The directory of weights, as the server's file system has it.
fn directory(weights: &Export) -> Option<String> {
    match weights {
        Export::Directory(path) => Path::to_str(path).map(str::to_owned),
        Export::Tensors(_) => None,
    }
}
