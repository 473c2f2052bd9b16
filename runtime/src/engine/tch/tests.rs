use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc;

use headway_shared::id::{PublicationId, ReplicaId, RequestId};
use headway_shared::time::Time;

use super::*;
use crate::clock::Clock;
use crate::engine::{EngineLink, Sampling, spawn};
use crate::model::padded;

const VOCAB: i64 = 12;

fn shape() -> Shape {
    Shape::tiny(VOCAB, 40)
}

/// A policy that has opinions: with the small head of fresh weights every token is as likely.
fn weights(seed: u64) -> Arc<Weights> {
    let mut weights = shape().random(seed);
    let head = weights.tensors.last_mut().unwrap();
    head.data.iter_mut().for_each(|x| *x *= 10.0);
    Arc::new(weights)
}

fn engine(slots: usize) -> TchEngine {
    TchEngine::new(shape(), crate::model::test_device(), slots, weights(1), DeployVersion::new(0))
}

fn sampling(seed: u64, max_tokens: u32) -> Sampling {
    Sampling { max_tokens, temperature: 1.0, seed, stop: Arc::new([]), stop_texts: Arc::new([]) }
}

fn generate(request: u64, prompt: &[u32], sampling: Sampling) -> Generate {
    Generate {
        request: RequestId(request),
        attempt: 1,
        prompt: prompt.into(),
        resume: Vec::new(),
        sampling,
    }
}

/// An engine under test, and all that it has said.
struct Bench {
    link: EngineLink,
    tokens: BTreeMap<u64, Vec<Token>>,
    ended: BTreeMap<u64, Finish>,
    loaded: Vec<u64>,
    failed: Vec<u64>,
    steps: usize,
}

impl Bench {
    /// With room for one event the engine is never far ahead of what has been heard.
    fn start(engine: TchEngine) -> Self {
        tch::set_num_threads(1);
        let (commands, receiver) = tokio::sync::mpsc::channel(512);
        let (sender, events) = tokio::sync::mpsc::channel(1);
        let clock = Clock::from(Time::from_nanos(0));
        let mailbox = EngineMailbox { commands: receiver, events: sender, clock };
        std::thread::spawn(move || engine.run(mailbox));
        let link = EngineLink { replica: ReplicaId(0), commands, events };
        let (tokens, ended) = (BTreeMap::new(), BTreeMap::new());
        let (loaded, failed) = (Vec::new(), Vec::new());
        let mut bench = Self { link, tokens, ended, loaded, failed, steps: 0 };
        assert_eq!(bench.hear(), EngineEvent::Up { deploy: DeployVersion::new(0) });
        bench
    }

    fn tell(&self, command: EngineCommand) {
        self.link.commands.blocking_send(command).unwrap();
    }

    fn generate(&self, generate: Generate) {
        self.tell(EngineCommand::Generate(Box::new(generate)));
    }

    fn load(&self, publication: u64, weights: Arc<Weights>, in_flight: InFlight, kv: KvOnSync) {
        self.tell(EngineCommand::Load {
            publication: PublicationId(publication),
            version: DeployVersion::new(u32::try_from(publication).unwrap()),
            weights: weights.into(),
            in_flight,
            kv,
        });
    }

    fn hear(&mut self) -> EngineEvent {
        let event = self.link.events.blocking_recv().unwrap();
        match &event {
            EngineEvent::Tokens { tokens, .. } => {
                self.steps += 1;
                for (request, _, token) in tokens {
                    assert!(!self.ended.contains_key(&request.0), "a token after the end");
                    self.tokens.entry(request.0).or_default().push(*token);
                }
            }
            EngineEvent::Ended { request, finish, .. } => {
                assert_eq!(self.ended.insert(request.0, *finish), None, "ended twice");
            }
            EngineEvent::Loaded { publication } => self.loaded.push(publication.0),
            EngineEvent::LoadFailed { publication, intact } => {
                assert!(intact);
                self.failed.push(publication.0);
            }
            EngineEvent::Lost => panic!("an engine in this process is not lost"),
            EngineEvent::Up { .. } | EngineEvent::Transferred { .. } | EngineEvent::Down => {}
        }
        event
    }

    fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            self.hear();
        }
    }

    fn until_ended(&mut self, count: usize) {
        self.until(|bench| bench.ended.len() == count);
    }

    fn ids(&self, request: u64) -> Vec<u32> {
        self.tokens[&request].iter().map(|token| token.id).collect()
    }

    fn versions(&self, request: u64) -> Vec<u32> {
        self.tokens[&request].iter().map(|token| token.version.number()).collect()
    }
}

/// The log-probabilities of a prompt's continuation under these weights, by one full pass.
fn rescored(weights: &Weights, prompt: &[u32], ids: &[u32]) -> Vec<f32> {
    let net = Net::new(&shape(), weights, crate::model::test_device()).unwrap();
    let all: Vec<u32> = prompt.iter().chain(ids).copied().collect();
    let logits = net.full(&padded(&[&all], crate::model::test_device()).unwrap()).unwrap();
    let all_logs = crate::model::floats(&logits.log_softmax(-1, tch::Kind::Float)).unwrap();
    let place = |n: usize| (prompt.len() - 1 + n) * VOCAB as usize + ids[n] as usize;
    (0..ids.len()).map(|n| all_logs[place(n)]).collect()
}

#[track_caller]
fn close(got: &[Token], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        let near = crate::model::tolerance();
        assert!((got.logprob - want).abs() < near, "{} is not {want}", got.logprob);
    }
}

fn prompt_of(request: u64) -> Vec<u32> {
    (0..3 + request % 4).map(|place| ((request * 5 + place * 3) % 12) as u32).collect()
}

#[test]
fn a_request_gets_the_same_tokens_alone_and_in_a_crowd() {
    let mut crowd = Bench::start(engine(4));
    for request in 0..10 {
        let length = 2 + u32::try_from(request).unwrap() % 5 * 4;
        crowd.generate(generate(request, &prompt_of(request), sampling(request, length)));
    }
    crowd.until_ended(10);
    assert!(crowd.ended.values().all(|finish| *finish == Finish::Length));
    for request in 0..10 {
        let mut alone = Bench::start(engine(1));
        let length = 2 + u32::try_from(request).unwrap() % 5 * 4;
        alone.generate(generate(request, &prompt_of(request), sampling(request, length)));
        alone.until_ended(1);
        assert_eq!(alone.ids(request), crowd.ids(request));
        assert_eq!(crowd.ids(request).len(), length as usize);
    }
    let other = generate(77, &prompt_of(4), sampling(4_000, 18));
    crowd.generate(other);
    crowd.until_ended(11);
    assert_ne!(crowd.ids(77), crowd.ids(4), "another seed, other tokens");
}

#[test]
fn what_is_recorded_is_the_probability_of_what_was_sampled() {
    let mut bench = Bench::start(engine(8));
    for request in 0..6 {
        bench.generate(generate(request, &prompt_of(request), sampling(request, 20)));
    }
    bench.until_ended(6);
    for request in 0..6 {
        let ids = bench.ids(request);
        close(&bench.tokens[&request], &rescored(&weights(1), &prompt_of(request), &ids));
    }
    assert!(bench.steps < 60, "decoded together: {} steps for 120 tokens", bench.steps);
}

#[test]
fn temperature_shapes_the_distribution_and_its_log_probabilities() {
    let logits = [0.0, libm::logf(2.0), libm::logf(5.0)];
    let drawn = |temperature: f32| {
        let mut seen: BTreeMap<u32, (u32, f32)> = BTreeMap::new();
        for seed in 0..20_000 {
            let how = Sampling { temperature, ..sampling(seed, 1) };
            let (id, logprob) = sample::sample(&logits, &how, 0).unwrap();
            seen.entry(id).or_insert((0, logprob)).0 += 1;
        }
        seen
    };
    for (temperature, weights) in [(1.0, [1.0, 2.0, 5.0]), (0.5, [1.0, 4.0, 25.0])] {
        let total: f32 = weights.iter().sum();
        for (id, (count, logprob)) in drawn(temperature) {
            let share = weights[id as usize] / total;
            assert!((logprob - share.ln()).abs() < 1e-5);
            assert!((f64::from(count) / 20_000.0 - f64::from(share)).abs() < 0.015);
        }
    }
    let greedy = drawn(0.0);
    assert_eq!(greedy.into_iter().collect::<Vec<_>>(), [(2, (20_000, 0.0))]);
    assert_eq!(sample::sample(&[1.0, f32::NAN], &sampling(1, 1), 0), None);
}

#[test]
fn a_turn_ends_behind_a_stop_sequence() {
    let mut bench = Bench::start(engine(2));
    bench.generate(generate(1, &[3, 4], sampling(9, 30)));
    bench.until_ended(1);
    let ids = bench.ids(1);
    let stop = ids[4..6].to_vec();
    let first = (1..ids.len()).find(|&end| ids[end - 1..=end] == stop).unwrap();
    let how = Sampling { stop: Arc::new([vec![99, 98], stop]), ..sampling(9, 30) };
    bench.generate(generate(2, &[3, 4], how));
    bench.until_ended(2);
    assert_eq!(bench.ended[&2], Finish::Stop);
    assert_eq!(bench.ids(2), ids[..=first]);
}

#[test]
fn a_turn_ends_where_the_model_has_no_more_positions() {
    let mut bench = Bench::start(engine(2));
    bench.generate(generate(1, &[1; 30], sampling(1, 1_000)));
    bench.until_ended(1);
    assert_eq!(bench.ended[&1], Finish::Length);
    assert_eq!(bench.ids(1).len(), 10);
}

#[test]
fn a_prompt_that_cannot_be_fails_alone() {
    let mut bench = Bench::start(engine(4));
    bench.generate(generate(1, &[], sampling(1, 5)));
    bench.generate(generate(2, &[1, 12], sampling(1, 5)));
    bench.generate(generate(3, &[1; 40], sampling(1, 5)));
    bench.generate(generate(4, &[1, 2], sampling(1, 5)));
    bench.until_ended(4);
    let finishes: Vec<Finish> = bench.ended.values().copied().collect();
    assert_eq!(finishes, [Finish::Failed, Finish::Failed, Finish::Failed, Finish::Length]);
}

#[test]
fn an_aborted_turn_is_resumed_with_the_tokens_it_would_have_had() {
    let mut bench = Bench::start(engine(2));
    bench.generate(generate(1, &[5, 6, 7], sampling(3, 30)));
    bench.until_ended(1);
    let whole = bench.ids(1);

    bench.generate(generate(2, &[5, 6, 7], sampling(3, 30)));
    bench.until(|bench| bench.tokens.get(&2).is_some_and(|tokens| tokens.len() >= 5));
    bench.tell(EngineCommand::Abort { request: RequestId(2), attempt: 1 });
    bench.tell(EngineCommand::Abort { request: RequestId(2), attempt: 7 });
    bench.until_ended(2);
    assert_eq!(bench.ended[&2], Finish::Aborted);
    let kept = bench.tokens[&2][..5].to_vec();
    let resume = Generate { resume: kept, ..generate(3, &[5, 6, 7], sampling(3, 30)) };
    bench.generate(resume);
    bench.until_ended(3);
    assert_eq!(bench.ids(3), whole[5..]);
    assert_eq!(bench.ids(2)[..], whole[..bench.ids(2).len()]);
}

#[test]
fn a_waiting_turn_can_be_aborted() {
    let mut bench = Bench::start(engine(1));
    bench.generate(generate(1, &[5], sampling(3, 30)));
    bench.generate(generate(2, &[5], sampling(3, 30)));
    bench.generate(generate(3, &[5], sampling(4, 30)));
    bench.tell(EngineCommand::Abort { request: RequestId(2), attempt: 1 });
    bench.until_ended(3);
    assert_eq!(bench.ended[&2], Finish::Aborted);
    assert_eq!(bench.ended[&3], Finish::Length);
    assert!(!bench.tokens.contains_key(&2));
}

/// Lets a load go that hangs until then.
struct Gate {
    open: mpsc::Sender<()>,
    made: mpsc::Receiver<()>,
}

impl Gate {
    /// Returns when the net is made.
    fn open(&self) {
        self.open.send(()).unwrap();
        self.made.recv().unwrap();
    }
}

fn gated() -> (Gate, Loader) {
    let (open, gate) = mpsc::channel::<()>();
    let (tell, made) = mpsc::channel::<()>();
    let gate = Mutex::new((gate, tell));
    let loader = Loader::of(move |shape, weights, device| {
        let gate = gate.lock().unwrap();
        gate.0.recv().unwrap();
        let net = Net::new(shape, weights, device);
        gate.1.send(()).unwrap();
        net
    });
    (Gate { open, made }, loader)
}

#[test]
fn a_swap_comes_between_two_steps_and_each_token_says_its_version() {
    for kv in [KvOnSync::Recompute, KvOnSync::Keep] {
        let (gate, loader) = gated();
        let mut bench = Bench::start(TchEngine { loader, ..engine(4) });
        bench.generate(generate(1, &[1, 2, 3], sampling(5, 37)));
        bench.generate(generate(2, &[4, 5], sampling(6, 38)));
        bench.load(1, weights(2), InFlight::Running, kv);
        bench.until(|bench| bench.tokens.get(&1).is_some_and(|tokens| tokens.len() >= 4));
        gate.open();
        bench.until_ended(2);
        bench.until(|bench| bench.loaded == [1]);
        for (request, prompt) in [(1, &[1, 2, 3][..]), (2, &[4, 5])] {
            let (ids, versions) = (bench.ids(request), bench.versions(request));
            let old = versions.iter().filter(|&&version| version == 0).count();
            assert!(versions.is_sorted() && old >= 1, "{versions:?}");
            let tokens = &bench.tokens[&request];
            close(&tokens[..old], &rescored(&weights(1), prompt, &ids)[..old]);
            let new = &rescored(&weights(2), prompt, &ids)[old..];
            if kv == KvOnSync::Recompute {
                close(&tokens[old..], new);
            } else if new.len() > 3 {
                let off = |(token, want): (&Token, &f32)| (token.logprob - want).abs() > 1e-3;
                assert!(tokens[old..].iter().zip(new).any(off), "stale keys were not kept");
            }
        }
        bench.generate(generate(3, &[1, 2, 3], sampling(5, 10)));
        bench.until_ended(3);
        assert!(bench.versions(3).iter().all(|&version| version == 1));
    }
}

#[test]
fn turns_stand_still_while_a_frozen_load_is_on_its_way() {
    let (gate, loader) = gated();
    let mut bench = Bench::start(TchEngine { loader, ..engine(4) });
    bench.generate(generate(1, &[1, 2, 3], sampling(5, 37)));
    bench.until(|bench| bench.tokens.contains_key(&1));
    bench.load(1, weights(2), InFlight::Frozen, KvOnSync::Recompute);
    let frozen_at = loop {
        if bench.hear() == (EngineEvent::Transferred { publication: PublicationId(1) }) {
            break bench.tokens[&1].len();
        }
    };
    gate.open();
    bench.until(|bench| !bench.loaded.is_empty());
    assert_eq!(bench.tokens[&1].len(), frozen_at);
    bench.until_ended(1);
    assert_eq!(bench.versions(1).iter().filter(|&&version| version == 0).count(), frozen_at);
}

#[test]
fn a_load_that_hangs_is_abandoned_and_the_next_one_taken() {
    let (gate, loader) = gated();
    let mut bench = Bench::start(TchEngine { loader, ..engine(4) });
    bench.load(1, weights(2), InFlight::Frozen, KvOnSync::Recompute);
    bench.generate(generate(1, &[1, 2, 3], sampling(5, 10)));
    bench.tell(EngineCommand::CancelLoad { publication: PublicationId(1) });
    bench.until_ended(1);
    assert!(bench.versions(1).iter().all(|&version| version == 0), "the old weights are whole");
    close(&bench.tokens[&1], &rescored(&weights(1), &[1, 2, 3], &bench.ids(1)));

    bench.load(2, weights(3), InFlight::Running, KvOnSync::Recompute);
    gate.open();
    gate.open();
    bench.until(|bench| bench.loaded == [2]);
    assert!(bench.failed.is_empty(), "of an abandoned load nothing more is said");
}

#[test]
fn a_load_that_fails_leaves_the_old_weights_serving() {
    let mut bench = Bench::start(engine(2));
    let mut broken = shape().random(2);
    broken.tensors.pop();
    bench.load(1, Arc::new(broken), InFlight::Running, KvOnSync::Recompute);
    bench.until(|bench| bench.failed == [1]);
    bench.generate(generate(1, &[1, 2, 3], sampling(5, 10)));
    bench.until_ended(1);
    close(&bench.tokens[&1], &rescored(&weights(1), &[1, 2, 3], &bench.ids(1)));

    // So does one whose thread dies.
    let loader = Loader::of(|_, _, _| panic!("a loader's bug"));
    let mut bench = Bench::start(TchEngine { loader, ..engine(2) });
    bench.load(1, weights(2), InFlight::Frozen, KvOnSync::Recompute);
    bench.until(|bench| bench.failed == [1]);
    bench.generate(generate(1, &[1, 2, 3], sampling(5, 10)));
    bench.until_ended(1);
    assert_eq!(bench.ended[&1], Finish::Length);
}

#[test]
fn an_engine_that_is_told_to_is_down() {
    let mut link = spawn(ReplicaId(0), Clock::from(Time::from_nanos(0)), 8, engine(2)).unwrap();
    link.commands.blocking_send(EngineCommand::Shutdown).unwrap();
    let up = EngineEvent::Up { deploy: DeployVersion::new(0) };
    assert_eq!(link.events.blocking_recv(), Some(up));
    assert_eq!(link.events.blocking_recv(), Some(EngineEvent::Down));
    assert_eq!(link.events.blocking_recv(), None);
}

#[test]
fn an_engine_without_whole_weights_never_comes_up() {
    let mut broken = shape().random(2);
    broken.tensors.pop();
    let engine = TchEngine { weights: Arc::new(broken), ..engine(2) };
    let clock = Clock::from(Time::from_nanos(0));
    let mut link = spawn(ReplicaId(0), clock, 8, engine).unwrap();
    assert_eq!(link.events.blocking_recv(), Some(EngineEvent::Down));
}
