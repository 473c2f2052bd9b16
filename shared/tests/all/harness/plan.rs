//! What a random world does: delays, clients, faults.

use proptest::prelude::*;

/// A delay of `least` to `most` tenths of a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delay {
    pub(crate) least: u32,
    pub(crate) most: u32,
}

impl Delay {
    /// Always `tenths` tenths of a second.
    pub(crate) const fn fixed(tenths: u32) -> Delay {
        Delay { least: tenths, most: tenths }
    }
}

/// How often things go wrong, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) generation: u32,
    pub(crate) vote: u32,
    pub(crate) step: u32,
    pub(crate) weights: u32,
    pub(crate) environment: u32,
    /// No answer ever comes.
    pub(crate) lost: u32,
    /// An answer comes twice.
    pub(crate) twice: u32,
    pub(crate) client_leaves: u32,
    /// A client asks twice at once in one session.
    pub(crate) doubles: u32,
    /// A replica dies during a generation, and is back a little later.
    pub(crate) replica: u32,
}

/// A world.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) replicas: u32,
    /// Sessions at a time.
    pub(crate) clients: u32,
    /// Turns of a session.
    pub(crate) turns: u32,
    /// Sessions live in environments.
    pub(crate) environments: bool,
    /// Percent of requests that are streamed.
    pub(crate) streamed: u32,
    /// Percent of requests that never train.
    pub(crate) side: u32,
    /// Percent of scores that are 0; with none, all are good.
    pub(crate) zeros: u32,
    pub(crate) generate: Delay,
    pub(crate) think: Delay,
    pub(crate) vote: Delay,
    pub(crate) train: Delay,
    pub(crate) weights: Delay,
    pub(crate) environment: Delay,
    pub(crate) faults: Faults,
    /// Inputs after which the world stops.
    pub(crate) inputs: usize,
    /// Learner version at which the world stops.
    pub(crate) steps: u32,
}

impl Plan {
    /// One replica, one turn a session, no faults.
    pub(crate) fn calm() -> Plan {
        Plan {
            seed: 1,
            replicas: 1,
            clients: 8,
            turns: 1,
            environments: false,
            streamed: 0,
            side: 0,
            zeros: 25,
            generate: Delay { least: 10, most: 50 },
            think: Delay::fixed(0),
            vote: Delay::fixed(5),
            train: Delay::fixed(50),
            weights: Delay::fixed(5),
            environment: Delay::fixed(5),
            faults: Faults::default(),
            inputs: 10_000,
            steps: 20,
        }
    }
}

fn delay(most: u32) -> impl Strategy<Value = Delay> {
    (0..=most, 0..=most).prop_map(|(a, b)| Delay { least: a.min(b), most: a.max(b) })
}

/// A world without faults.
pub(crate) fn calm_plan() -> impl Strategy<Value = Plan> {
    let sizes = (any::<u64>(), 1..4_u32, 1..14_u32, 1..4_u32, any::<bool>());
    let shares = (0..50_u32, prop_oneof![Just(0), Just(20_u32)], 0..60_u32);
    let delays = (delay(100), delay(300), delay(40), delay(200), delay(100), delay(50));
    (sizes, shares, delays).prop_map(|(sizes, shares, delays)| {
        let (seed, replicas, clients, turns, environments) = sizes;
        let (streamed, side, zeros) = shares;
        let (generate, think, vote, train, weights, environment) = delays;
        Plan {
            seed,
            replicas,
            clients,
            turns,
            environments,
            streamed,
            side,
            zeros,
            // What takes no time at all does not make the world advance.
            generate: Delay { least: generate.least + 1, most: generate.most + 1 },
            think,
            vote,
            train,
            weights,
            environment,
            faults: Faults::default(),
            inputs: 1500,
            steps: 12,
        }
    })
}

/// A world with faults of every kind.
pub(crate) fn any_plan() -> impl Strategy<Value = Plan> {
    let often = prop_oneof![3 => Just(0), 2 => 1..12_u32, 1 => 12..50_u32];
    (calm_plan(), prop::array::uniform10(often)).prop_map(|(mut plan, often)| {
        let [generation, vote, step, weights, environment, lost, twice, leaves, replica, doubles] =
            often;
        plan.faults = Faults {
            generation,
            vote,
            step,
            weights,
            environment,
            lost: lost / 2,
            twice,
            client_leaves: leaves,
            doubles,
            replica: replica / 4,
        };
        plan
    })
}

/// A world in which samples become ready in the order of their admission: every delay of a
/// sample is the same, one replica, one turn a session. Training, weights and rejects vary.
pub(crate) fn fifo_plan() -> impl Strategy<Value = Plan> {
    (calm_plan(), 1..60_u32).prop_map(|(mut plan, generate)| {
        plan.generate = Delay::fixed(generate);
        plan.vote = Delay::fixed(3);
        plan.turns = 1;
        plan.replicas = 1;
        plan.environments = false;
        plan.side = 0;
        plan
    })
}
