//! A serving engine in this process, on libtorch: continuous batching over a KV cache.
//!
//! Between two decode steps it takes what has been said to it: requests join the batch, aborted
//! ones leave, new weights are swapped in. A load fills a shadow copy on a thread of its own
//! (`load`), so one that hangs or fails leaves the old weights whole and the engine serving.
//!
//! A request's tokens come from its own seed, token by token (`sample`): they do not depend on
//! what else is in the batch, nor on where it was interrupted. (Its logits do, in their last bits:
//! libtorch adds up in another order for another batch size. A draw within 1e-6 of the border
//! between two tokens can fall on its other side.)

mod load;
mod sample;
mod sequence;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use headway_shared::action::InFlight;
use headway_shared::config::KvOnSync;
use headway_shared::input::Finish;
use headway_shared::version::{DeployVersion, RolloutVersion};
use tch::{Device, Kind};
use tokio::sync::mpsc::error::TryRecvError;

use self::load::{Loader, Loading};
use self::sequence::Sequence;
use super::{Engine, EngineCommand, EngineEvent, EngineMailbox, Export, Generate, Token, Weights};
use crate::model::{Cache, ModelError, Net, Shape};

/// At most so many sequences are prefilled in one pass.
const PREFILL: usize = 64;

/// What an engine is made of.
#[derive(Clone, Debug)]
pub struct TchEngine {
    /// The model's sizes.
    pub shape: Shape,
    /// Where it computes; see [`device`](crate::model::device).
    pub device: Device,
    /// How many turns are generated at once; further ones wait in order. The cache's room, `slots`
    /// times `shape.positions` tokens, is reserved at the start.
    pub slots: usize,
    /// The weights that it starts with.
    pub weights: Arc<Weights>,
    /// Their version.
    pub version: DeployVersion,
    /// What it computes in.
    kind: Kind,
    /// Makes the shadow copy.
    loader: Loader,
}

impl TchEngine {
    /// An engine that starts with these weights.
    #[must_use]
    pub fn new(
        shape: Shape,
        device: Device,
        slots: usize,
        weights: Arc<Weights>,
        version: DeployVersion,
    ) -> Self {
        let (kind, loader) = (Kind::Float, Loader::of_kind(Kind::Float));
        Self { shape, device, slots: slots.max(1), weights, version, kind, loader }
    }

    /// The same, computing in another type, such as [`Kind::BFloat16`].
    #[must_use]
    pub fn in_kind(self, kind: Kind) -> Self {
        Self { kind, loader: Loader::of_kind(kind), ..self }
    }
}

impl Engine for TchEngine {
    fn run(self, mailbox: EngineMailbox) {
        let _no_gradients = tch::no_grad_guard();
        let started = Net::of_kind(&self.shape, &self.weights, self.device, self.kind)
            .and_then(|net| Ok((Cache::new(&net, self.slots)?, net)));
        // To return is to be down. The driver has no net to serve with, whatever the reason.
        let Ok((cache, net)) = started else { return };
        let mut serving = Serving {
            net,
            cache,
            version: RolloutVersion::stamped_by(self.version),
            running: Vec::new(),
            waiting: VecDeque::new(),
            free: (0..self.slots).rev().collect(),
            loading: None,
            loader: self.loader,
            mailbox,
            tokens: Vec::new(),
        };
        // The driver is gone: so is the run.
        let _ = serving.serve(self.version);
    }
}

/// Nobody hears or speaks any more.
struct Closed;

/// Sequences that were computed together, and their rows of logits.
type Passed = (Vec<Sequence>, Result<Vec<f32>, ModelError>);

struct Serving {
    net: Net,
    cache: Cache,
    version: RolloutVersion,
    /// In slots, in the order in which they got them.
    running: Vec<Sequence>,
    /// Not yet in a slot.
    waiting: VecDeque<Sequence>,
    /// Slots that are free, the next one last.
    free: Vec<usize>,
    loading: Option<Loading>,
    loader: Loader,
    mailbox: EngineMailbox,
    /// The step's tokens, until they are sent.
    tokens: Vec<(headway_shared::id::RequestId, u32, Token)>,
}

impl Serving {
    fn serve(&mut self, version: DeployVersion) -> Result<(), Closed> {
        self.say(EngineEvent::Up { deploy: version })?;
        loop {
            while let Some(command) = self.next_command()? {
                self.obey(command)?;
            }
            self.swap()?;
            if self.is_frozen() {
                continue;
            }
            self.admit()?;
            self.decode()?;
        }
    }

    fn is_frozen(&self) -> bool {
        self.loading.as_ref().is_some_and(|loading| loading.in_flight != InFlight::Running)
    }

    /// Nothing to decode.
    fn is_idle(&self) -> bool {
        self.is_frozen() || (self.running.is_empty() && self.waiting.is_empty())
    }

    /// What has been said by now. Waits for it where nothing else can happen before.
    fn next_command(&mut self) -> Result<Option<EngineCommand>, Closed> {
        if self.loading.is_none() && self.is_idle() {
            return self.mailbox.commands.blocking_recv().map(Some).ok_or(Closed);
        }
        match self.mailbox.commands.try_recv() {
            Ok(command) => Ok(Some(command)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Closed),
        }
    }

    fn obey(&mut self, command: EngineCommand) -> Result<(), Closed> {
        match command {
            EngineCommand::Generate(generate) => self.accept(*generate),
            EngineCommand::Abort { request, attempt } => {
                let is = |sequence: &Sequence| sequence.is(request, attempt);
                if let Some(place) = self.running.iter().position(is) {
                    let sequence = self.running.remove(place);
                    self.end(sequence, Finish::Aborted)?;
                } else if let Some(place) = self.waiting.iter().position(is)
                    && let Some(sequence) = self.waiting.remove(place)
                {
                    self.end(sequence, Finish::Aborted)?;
                }
                Ok(())
            }
            EngineCommand::Load { publication, version, weights, in_flight, kv } => {
                // A directory is for engines that read checkpoints of their own.
                let Export::Tensors(weights) = weights else {
                    return self.say(EngineEvent::LoadFailed { publication, intact: true });
                };
                if let Some(old) = self.loading.take() {
                    let publication = old.publication;
                    self.say(EngineEvent::LoadFailed { publication, intact: true })?;
                }
                // The weights came with the command.
                self.say(EngineEvent::Transferred { publication })?;
                let (shape, device) = (self.net.shape().clone(), self.net.device());
                let net = self.loader.start(shape, weights, device);
                self.loading = Some(Loading { publication, version, in_flight, kv, net });
                Ok(())
            }
            EngineCommand::CancelLoad { publication } => {
                self.loading.take_if(|loading| loading.publication == publication);
                Ok(())
            }
            EngineCommand::Shutdown => Err(Closed),
        }
    }

    fn accept(&mut self, generate: Generate) -> Result<(), Closed> {
        let sequence = Sequence::new(generate);
        match sequence.finished(self.net.shape()) {
            Some(finish) => self.end(sequence, finish),
            None => {
                self.waiting.push_back(sequence);
                Ok(())
            }
        }
    }

    /// Swaps a finished shadow copy in.
    fn swap(&mut self) -> Result<(), Closed> {
        let idle = self.is_idle();
        let Some(loading) = &self.loading else { return Ok(()) };
        let Some(result) = loading.net.poll(idle) else { return Ok(()) };
        let (publication, version, kv) = (loading.publication, loading.version, loading.kv);
        self.loading = None;
        let Some(net) = result else {
            return self.say(EngineEvent::LoadFailed { publication, intact: true });
        };
        self.net = net;
        self.version = RolloutVersion::stamped_by(version);
        self.say(EngineEvent::Loaded { publication })?;
        if kv == KvOnSync::Recompute {
            let running = std::mem::take(&mut self.running);
            for (sequences, logits) in self.prefill(running, Sequence::cached) {
                match logits {
                    Ok(_) => self.running.extend(sequences),
                    Err(_) => self.fail(sequences)?,
                }
            }
        }
        Ok(())
    }

    /// Gives free slots to those that wait, and samples their first tokens.
    fn admit(&mut self) -> Result<(), Closed> {
        let count = self.free.len().min(self.waiting.len());
        if count == 0 {
            return Ok(());
        }
        let mut fresh: Vec<Sequence> = self.waiting.drain(..count).collect();
        for sequence in &mut fresh {
            sequence.slot = self.free.pop();
        }
        for (sequences, logits) in self.prefill(fresh, Sequence::all) {
            self.sample(sequences, logits)?;
        }
        Ok(())
    }

    /// One decode step of all that are running.
    fn decode(&mut self) -> Result<(), Closed> {
        if self.running.is_empty() {
            return Ok(());
        }
        let running = std::mem::take(&mut self.running);
        let slots: Vec<usize> = running.iter().filter_map(|sequence| sequence.slot).collect();
        let tokens: Vec<u32> = running.iter().map(Sequence::last).collect();
        let places: Vec<usize> = running.iter().map(|sequence| sequence.cached().len()).collect();
        let logits = self
            .cache
            .decode(&self.net, &slots, &tokens, &places)
            .and_then(|logits| crate::model::floats(&logits));
        self.sample(running, logits)
    }

    /// Computes keys and values of sequences that have a slot, those of one length together.
    fn prefill(
        &mut self,
        mut sequences: Vec<Sequence>,
        part: fn(&Sequence) -> &[u32],
    ) -> Vec<Passed> {
        sequences.sort_by_key(|sequence| part(sequence).len());
        let mut done = Vec::new();
        while let Some(first) = sequences.first() {
            let length = part(first).len();
            let alike = sequences.iter().take_while(|s| part(s).len() == length).count();
            let batch: Vec<Sequence> = sequences.drain(..alike.min(PREFILL)).collect();
            let slots: Vec<usize> = batch.iter().filter_map(|sequence| sequence.slot).collect();
            let tokens: Vec<&[u32]> = batch.iter().map(part).collect();
            let logits = self
                .cache
                .prefill(&self.net, &slots, &tokens)
                .and_then(|logits| crate::model::floats(&logits));
            done.push((batch, logits));
        }
        done
    }

    /// Samples a token for each sequence from its row of logits; the unfinished ones run on.
    fn sample(
        &mut self,
        sequences: Vec<Sequence>,
        logits: Result<Vec<f32>, ModelError>,
    ) -> Result<(), Closed> {
        let Ok(logits) = logits else { return self.fail(sequences) };
        let vocab = logits.len() / sequences.len().max(1);
        let mut over = Vec::new();
        for (mut sequence, row) in sequences.into_iter().zip(logits.chunks(vocab.max(1))) {
            let Some((id, logprob)) = sample::sample(row, &sequence.sampling, sequence.drawn())
            else {
                over.push((sequence, Finish::Failed));
                continue;
            };
            let token = Token { id, logprob, version: self.version };
            self.tokens.push((sequence.request, sequence.attempt, token));
            sequence.push(id);
            match sequence.finished(self.net.shape()) {
                Some(finish) => over.push((sequence, finish)),
                None => self.running.push(sequence),
            }
        }
        if !self.tokens.is_empty() {
            let tokens = std::mem::take(&mut self.tokens);
            self.say(EngineEvent::Tokens { at: self.mailbox.clock.now(), tokens })?;
        }
        over.into_iter().try_for_each(|(sequence, finish)| self.end(sequence, finish))
    }

    fn fail(&mut self, sequences: Vec<Sequence>) -> Result<(), Closed> {
        sequences.into_iter().try_for_each(|sequence| self.end(sequence, Finish::Failed))
    }

    #[expect(clippy::needless_pass_by_value, reason = "it is over")]
    fn end(&mut self, sequence: Sequence, finish: Finish) -> Result<(), Closed> {
        self.free.extend(sequence.slot);
        let (request, attempt) = (sequence.request, sequence.attempt);
        self.say(EngineEvent::Ended { request, attempt, finish })
    }

    fn say(&mut self, event: EngineEvent) -> Result<(), Closed> {
        self.mailbox.events.blocking_send(event).map_err(|_| Closed)
    }
}
