//! Whatever is done to a replica, its tokens add up.

use headway_shared::config::KvOnSync;
use headway_shared::id::SessionId;
use headway_shared::time::{Span, Time};
use headway_shared::version::DeployVersion;
use headway_sim::world::replica::{
    DecodeLaw, Ended, Outcome, Replica, ReplicaSpec, Ticket, Turn, Work,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

#[derive(Clone, Debug)]
enum Operation {
    Submit { session: u64, prompt: u32, tokens: u32 },
    Abort { which: usize },
    Kill,
    Freeze,
    Unfreeze,
    Swap { recompute: bool },
    Speed { percent: u32 },
    Run { wakes: usize },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (0..5_u64, 0..60_u32, 0..80_u32)
            .prop_map(|(session, prompt, tokens)| Operation::Submit { session, prompt, tokens }),
        2 => (0..50_usize).prop_map(|which| Operation::Abort { which }),
        1 => Just(Operation::Kill),
        1 => Just(Operation::Freeze),
        2 => Just(Operation::Unfreeze),
        2 => any::<bool>().prop_map(|recompute| Operation::Swap { recompute }),
        1 => (10..200_u32).prop_map(|percent| Operation::Speed { percent }),
        8 => (1..6_usize).prop_map(|wakes| Operation::Run { wakes }),
    ]
}

fn spec() -> impl Strategy<Value = ReplicaSpec> {
    let prefill = prop_oneof![Just(None), (1..500_u32).prop_map(|rate| Some(f64::from(rate)))];
    let kv = prop_oneof![Just(None), (1..400_u64).prop_map(Some)];
    let law = prop_oneof![
        Just(DecodeLaw::linear(0.01, 0.002).unwrap()),
        Just(DecodeLaw::linear(0.0, 0.3).unwrap()),
        Just(DecodeLaw::table(vec![(1, 40.0), (4, 100.0), (8, 110.0)]).unwrap()),
    ];
    (law, 0..6_u32, prefill, 0..3_u32, kv).prop_map(
        |(decode, max_batch, prefill_tokens_per_sec, cached_sessions, kv_tokens)| ReplicaSpec {
            decode,
            max_batch,
            prefill_tokens_per_sec,
            cached_sessions,
            kv_tokens,
        },
    )
}

struct Bench {
    replica: Replica,
    now: Time,
    version: u32,
    submitted: Vec<(Ticket, u32)>,
    ends: Vec<(Time, Ended)>,
    wakes: Vec<(Time, u32)>,
}

impl Bench {
    fn new(spec: ReplicaSpec) -> Self {
        Self {
            replica: Replica::new(spec, DeployVersion::new(0)),
            now: Time::ZERO,
            version: 0,
            submitted: Vec::new(),
            ends: Vec::new(),
            wakes: Vec::new(),
        }
    }

    fn drain(&mut self) {
        while let Some(ended) = self.replica.poll_ended() {
            self.ends.push((self.now, ended));
        }
        if let Some(wake) = self.replica.poll_wake() {
            assert!(wake.at >= self.now, "a wake in the past");
            self.wakes.push((wake.at, wake.epoch));
        }
    }

    /// Lets the earliest wakes come, stale ones too; false if there was none.
    fn run(&mut self, wakes: usize) -> bool {
        for _ in 0..wakes {
            let Some(first) = (0..self.wakes.len()).min_by_key(|&at| self.wakes[at]) else {
                return false;
            };
            let (at, epoch) = self.wakes.remove(first);
            self.now = self.now.max(at);
            self.replica.wake(self.now, epoch);
            self.drain();
        }
        true
    }

    fn apply(&mut self, operation: &Operation) {
        let now = self.now + Span::from_millis(137);
        if !matches!(operation, Operation::Run { .. }) {
            self.now = now;
        }
        match *operation {
            Operation::Submit { session, prompt, tokens } => {
                let handle = self.submitted.len() as u64;
                let session = (session > 0).then_some(SessionId(session));
                let turn = Turn { handle, session, prompt_tokens: prompt, tokens };
                let ticket = self.replica.submit(now, turn);
                self.submitted.push((ticket, tokens));
            }
            Operation::Abort { which } => {
                if let Some(&(ticket, _)) = self.submitted.get(which) {
                    self.replica.abort(now, ticket);
                }
            }
            Operation::Kill => self.replica.kill(now),
            Operation::Freeze => self.replica.freeze(now),
            Operation::Unfreeze => self.replica.unfreeze(now),
            Operation::Swap { recompute } => {
                let kv = if recompute { KvOnSync::Recompute } else { KvOnSync::Keep };
                self.version += 1;
                self.replica.swap_weights(now, DeployVersion::new(self.version), kv);
            }
            Operation::Speed { percent } => {
                self.replica.set_speed(now, f64::from(percent) / 100.0);
            }
            Operation::Run { wakes } => {
                self.run(wakes);
            }
        }
        self.drain();
    }

    /// Everything that is left completes once the replica is not frozen.
    fn finish(&mut self) {
        self.apply(&Operation::Unfreeze);
        let mut steps = 0;
        while self.run(1) {
            steps += 1;
            assert!(steps < 200_000, "the replica makes no progress");
        }
    }
}

fn play(spec: ReplicaSpec, operations: &[Operation]) -> (Vec<(Time, Ended)>, Vec<u32>, Work) {
    let mut bench = Bench::new(spec);
    for operation in operations {
        bench.apply(operation);
    }
    bench.finish();
    let tokens = bench.submitted.iter().map(|&(_, tokens)| tokens).collect();
    (bench.ends, tokens, bench.replica.work())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_turn_ends_once_and_its_segments_add_up(
        spec in spec(),
        operations in prop::collection::vec(operation(), 1..120),
    ) {
        let (ends, tokens, _) = play(spec, &operations);
        let mut handles: Vec<u64> = ends.iter().map(|(_, ended)| ended.handle).collect();
        handles.sort_unstable();
        prop_assert_eq!(handles, (0..tokens.len() as u64).collect::<Vec<_>>());
        for (at, ended) in &ends {
            let sum: u32 = ended.segments.iter().map(|segment| segment.tokens).sum();
            let wanted = tokens[ended.handle as usize];
            match ended.outcome {
                Outcome::Complete => prop_assert_eq!(sum, wanted),
                Outcome::Aborted | Outcome::Lost => prop_assert!(sum <= wanted),
            }
            prop_assert!(ended.segments.iter().all(|segment| segment.tokens > 0));
            prop_assert!(ended.segments.windows(2).all(|pair| pair[0].version < pair[1].version));
            prop_assert_eq!(ended.first_token.is_some(), sum > 0);
            prop_assert!(ended.first_token.is_none_or(|first| first <= *at));
        }
    }

    #[test]
    fn the_same_operations_give_the_same_results(
        spec in spec(),
        operations in prop::collection::vec(operation(), 1..60),
    ) {
        prop_assert_eq!(play(spec.clone(), &operations), play(spec, &operations));
    }
}
