//! An engine that follows a script, token by token.
//!
//! What it answers stands in the last message: `say:TEXT` is answered with TEXT, `long:N` with N
//! letters, `nothing` with no token at all, `ids:1,2` with these ids, `fail` by failing, `nan` with
//! probabilities that are none, `hang` with nothing for ever, and anything else with itself.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use headway_runtime::engine::{Engine, EngineCommand, EngineEvent, EngineMailbox, Generate, Token};
use headway_runtime::shared::action::InFlight;
use headway_runtime::shared::id::{PublicationId, RequestId};
use headway_runtime::shared::input::Finish;
use headway_runtime::shared::version::{DeployVersion, RolloutVersion};
use headway_runtime::tokenizer::{Bytes, Tokenizer};
use tokio::sync::mpsc::error::TryRecvError;

/// What becomes of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadScript {
    Good,
    Fails,
    Breaks,
    Hangs,
    /// The weights do not even arrive.
    Lost,
    /// It ends well once the script says `Good`.
    Waits,
}

#[derive(Debug)]
struct State {
    /// So many decode steps are made, then none; `None`: no limit.
    steps_left: Option<u32>,
    loads: LoadScript,
    dies: bool,
    panics: bool,
    /// It does not come up yet.
    waits: bool,
    silent: bool,
    /// What it says out of the blue.
    says: Vec<EngineEvent>,
    aborted: Vec<RequestId>,
    generating: usize,
    script: Script,
}

/// What is answered to a prompt, and whether that fails.
pub(super) type Script = fn(&[u32]) -> (Vec<u32>, bool);

/// A test's hand on the engine.
#[derive(Clone, Debug)]
pub(super) struct EngineControl(Arc<(Mutex<State>, Condvar)>);

impl EngineControl {
    pub(super) fn new() -> Self {
        let (steps_left, loads, dies) = (None, LoadScript::Good, false);
        let (panics, silent, says, aborted) = (false, false, Vec::new(), Vec::new());
        let (waits, generating) = (false, 0);
        Self(Arc::new((
            Mutex::new(State {
                steps_left,
                loads,
                dies,
                panics,
                waits,
                silent,
                says,
                aborted,
                generating,
                script,
            }),
            Condvar::new(),
        )))
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
        result
    }

    /// Generates nothing, or goes on.
    pub(super) fn hold(&self, held: bool) {
        self.change(|state| state.steps_left = held.then_some(0));
    }

    /// Generates nothing after so many tokens of each turn.
    pub(super) fn hold_after(&self, steps: u32) {
        self.change(|state| state.steps_left = Some(steps));
    }

    pub(super) fn loads(&self, loads: LoadScript) {
        self.change(|state| state.loads = loads);
    }

    pub(super) fn die(&self) {
        self.change(|state| state.dies = true);
    }

    pub(super) fn panic(&self) {
        self.change(|state| state.panics = true);
    }

    /// Says this, whatever it is.
    pub(super) fn say(&self, event: EngineEvent) {
        self.change(|state| state.says.push(event));
    }

    /// The requests that it was told to abort.
    pub(super) fn aborted(&self) -> Vec<RequestId> {
        self.change(|state| state.aborted.clone())
    }

    /// Answers by another script.
    pub(super) fn follows(&self, script: Script) {
        self.change(|state| state.script = script);
    }

    /// Comes up only when it is told to, or does.
    pub(super) fn comes_up(&self, now: bool) {
        self.change(|state| state.waits = !now);
    }

    /// Hears and says nothing until what it returns is dropped.
    pub(super) fn silence(&self) -> Silence {
        self.change(|state| state.silent = true);
        Silence(self.clone())
    }

    /// Waits until so many turns are being generated.
    pub(super) fn wait_for_turns(&self, turns: usize) {
        let (lock, changed) = &*self.0;
        let waits = |state: &mut State| state.generating != turns;
        let state = lock.lock().unwrap();
        let (state, late) =
            changed.wait_timeout_while(state, Duration::from_secs(20), waits).unwrap();
        assert!(!late.timed_out(), "{} turns are being generated", state.generating);
    }

    /// Waits until the tokens that it may generate are there.
    pub(super) fn wait_until_held(&self) {
        let (lock, changed) = &*self.0;
        let waits = |state: &mut State| state.steps_left != Some(0);
        let state = lock.lock().unwrap();
        let (state, late) =
            changed.wait_timeout_while(state, Duration::from_secs(20), waits).unwrap();
        assert!(!late.timed_out(), "{:?} tokens are left", state.steps_left);
    }

    /// A pause between two looks at the commands.
    fn breathe(&self) {
        let (lock, changed) = &*self.0;
        drop(changed.wait_timeout(lock.lock().unwrap(), Duration::from_millis(1)));
    }
}

/// An engine's silence, which ends with it.
pub(super) struct Silence(EngineControl);

impl Drop for Silence {
    fn drop(&mut self) {
        self.0.change(|state| state.silent = false);
    }
}

struct Turn {
    generate: Generate,
    rest: VecDeque<u32>,
    fails: bool,
    hangs: bool,
    nonsense: bool,
}

/// The engine.
pub(super) struct Scripted {
    pub(super) control: EngineControl,
    pub(super) version: u32,
}

struct Running {
    mailbox: EngineMailbox,
    control: EngineControl,
    version: RolloutVersion,
    turns: Vec<Turn>,
    /// A load that has not ended, its version, and whether turns stand still for it.
    hanging: Option<(PublicationId, DeployVersion, bool)>,
}

impl Engine for Scripted {
    fn run(self, mailbox: EngineMailbox) {
        let deploy = DeployVersion::new(self.version);
        let version = RolloutVersion::stamped_by(deploy);
        let Self { control, .. } = self;
        let mut running = Running { mailbox, control, version, turns: vec![], hanging: None };
        while running.control.change(|state| state.waits) {
            running.control.breathe();
        }
        running.say(EngineEvent::Up { deploy });
        while running.step() {}
    }
}

impl Running {
    fn say(&self, event: EngineEvent) {
        let _ = self.mailbox.events.blocking_send(event);
    }

    fn step(&mut self) -> bool {
        if self.control.change(|state| state.silent) {
            self.control.breathe();
            return true;
        }
        loop {
            match self.mailbox.commands.try_recv() {
                Ok(EngineCommand::Shutdown) | Err(TryRecvError::Disconnected) => return false,
                Ok(command) => self.obey(command),
                Err(TryRecvError::Empty) => break,
            }
        }
        let generating = self.turns.len();
        let (held, dies, says, loads) = self.control.change(|state| {
            state.generating = generating;
            assert!(!state.panics, "told to");
            let says = std::mem::take(&mut state.says);
            (state.steps_left == Some(0), state.dies, says, state.loads)
        });
        says.into_iter().for_each(|event| self.say(event));
        if dies {
            return false;
        }
        if loads == LoadScript::Good
            && let Some((publication, version, _)) = self.hanging.take()
        {
            self.version = RolloutVersion::stamped_by(version);
            self.say(EngineEvent::Loaded { publication });
        }
        let frozen = self.hanging.is_some_and(|(.., frozen)| frozen);
        let all_hang = self.turns.iter().all(|turn| turn.hangs);
        if held || frozen || all_hang || self.turns.is_empty() {
            self.control.breathe();
        } else {
            self.decode();
        }
        true
    }

    fn obey(&mut self, command: EngineCommand) {
        match command {
            EngineCommand::Generate(generate) => {
                let script = self.control.change(|state| state.script);
                let (answer, fails) = script(&generate.prompt);
                let hangs = answer == Bytes.encode("hang\0");
                let nonsense = answer == Bytes.encode("nan\0");
                let rest = answer.into_iter().skip(generate.resume.len()).collect();
                self.turns.push(Turn { generate: *generate, rest, fails, hangs, nonsense });
            }
            EngineCommand::Abort { request, attempt } => {
                self.control.change(|state| state.aborted.push(request));
                let is = |turn: &Turn| {
                    turn.generate.request == request && turn.generate.attempt == attempt
                };
                if let Some(place) = self.turns.iter().position(is) {
                    self.turns.remove(place);
                    self.say(EngineEvent::Ended { request, attempt, finish: Finish::Aborted });
                }
            }
            EngineCommand::Load { publication, version, in_flight, .. } => {
                let loads = self.control.change(|state| state.loads);
                if loads == LoadScript::Lost {
                    return;
                }
                self.say(EngineEvent::Transferred { publication });
                match loads {
                    LoadScript::Good => {
                        self.version = RolloutVersion::stamped_by(version);
                        self.say(EngineEvent::Loaded { publication });
                    }
                    LoadScript::Hangs | LoadScript::Waits => {
                        let frozen = in_flight == InFlight::Frozen;
                        self.hanging = Some((publication, version, frozen));
                    }
                    LoadScript::Lost => {}
                    LoadScript::Fails | LoadScript::Breaks => {
                        let intact = loads == LoadScript::Fails;
                        self.say(EngineEvent::LoadFailed { publication, intact });
                    }
                }
            }
            EngineCommand::CancelLoad { .. } => self.hanging = None,
            EngineCommand::Shutdown => {}
        }
    }

    /// One token of every turn.
    fn decode(&mut self) {
        let (at, version) = (self.mailbox.clock.now(), self.version);
        self.control.change(|state| {
            state.steps_left = state.steps_left.map(|steps| steps.saturating_sub(1));
        });
        let (mut tokens, mut ended) = (Vec::new(), Vec::new());
        self.turns.retain_mut(|turn| {
            let Generate { request, attempt, resume, sampling, .. } = &mut turn.generate;
            let (request, attempt) = (*request, *attempt);
            if turn.hangs {
                return true;
            }
            if turn.fails {
                ended.push((request, attempt, Finish::Failed));
                return false;
            }
            let Some(id) = turn.rest.pop_front() else {
                ended.push((request, attempt, Finish::Stop));
                return false;
            };
            let logprob = if turn.nonsense { f32::NAN } else { logprob(id) };
            let token = Token { id, logprob, version };
            resume.push(token);
            tokens.push((request, attempt, token));
            let ids: Vec<u32> = resume.iter().map(|token| token.id).collect();
            let finish = if sampling.stop.iter().any(|stop| ids.ends_with(stop)) {
                Finish::Stop
            } else if ids.len() >= sampling.max_tokens as usize {
                Finish::Length
            } else {
                return true;
            };
            ended.push((request, attempt, finish));
            false
        });
        if !tokens.is_empty() {
            self.say(EngineEvent::Tokens { at, tokens });
        }
        for (request, attempt, finish) in ended {
            self.say(EngineEvent::Ended { request, attempt, finish });
        }
    }
}

/// The log-probability of every token with this id.
pub(super) fn logprob(id: u32) -> f32 {
    -(f32::from(u8::try_from(id % 7).unwrap()) + 1.0) / 8.0
}

/// What is answered to a prompt, and whether it fails.
pub(super) fn script(prompt: &[u32]) -> (Vec<u32>, bool) {
    let end = prompt.iter().rposition(|&id| id == Bytes::END).unwrap();
    let start = prompt[..end].iter().rposition(|&id| id > Bytes::END).unwrap();
    let said = Bytes.decode(&prompt[start + 1..end]);
    let text = if let Some(text) = said.strip_prefix("say:") {
        text.to_owned()
    } else if let Some(letters) = said.strip_prefix("long:") {
        "x".repeat(letters.parse().unwrap())
    } else if let Some(ids) = said.strip_prefix("ids:") {
        return (ids.split(',').map(|id| id.parse().unwrap()).collect(), false);
    } else if said == "nothing" {
        return (Vec::new(), false);
    } else if said == "nan" || said == "hang" {
        return (Bytes.encode(&format!("{said}\0")), false);
    } else {
        said
    };
    let fails = text == "fail";
    let mut ids = Bytes.encode(&text);
    ids.push(Bytes::END);
    (ids, fails)
}
