//! A run whose operator promotes another configuration, at any instant: η, the sync mode, the sizes
//! of the queues. The harness checks after every input that the ledger balances, that what is
//! admitted is somewhere, and that a queue that was shrunk takes nothing until it is below its size.

use std::collections::BTreeMap;

use headway_shared::action::{Action, OperatorReply};
use headway_shared::config::{Bound, Config, GateKind, Severity, SyncMode, check};
use headway_shared::core::Scheduler;
use headway_shared::id::SampleId;
use headway_shared::input::{Input, Operator};
use proptest::prelude::*;

use super::harness::{Plan, World, any_plan, calm_plan, sane_config};
use super::properties::cases;

const MODES: [SyncMode; 5] = [
    SyncMode::PauseDrain,
    SyncMode::PauseAbort,
    SyncMode::PauseKeep,
    SyncMode::InFlight,
    SyncMode::Rolling,
];

/// What an operator changes.
#[derive(Clone, Copy, Debug)]
enum Switch {
    Eta(u32),
    Mode(usize),
    /// Both queues hold a batch, and so many more.
    Queues(u32, u32),
}

impl Switch {
    fn apply(self, config: &mut Config) {
        let batch = config.samples_per_batch() as u32;
        match self {
            Self::Eta(eta) => config.policy_training.max_head_off_policyness = eta,
            Self::Mode(mode) => config.policy_serving.sync_mode = MODES[mode],
            Self::Queues(rollout, output) => {
                config.queue.rollout.max_size = batch + rollout;
                config.queue.output.max_size = batch + output;
            }
        }
    }
}

fn switch() -> impl Strategy<Value = Switch> {
    prop_oneof![
        prop_oneof![Just(0), Just(4), Just(1), 0..6_u32].prop_map(Switch::Eta),
        (0..MODES.len()).prop_map(Switch::Mode),
        (0..8_u32, 0..8_u32).prop_map(|(rollout, output)| Switch::Queues(rollout, output)),
    ]
}

/// After so many turns of the world, a switch; several in a row.
fn switches() -> impl Strategy<Value = Vec<(usize, Switch)>> {
    prop::collection::vec((0..120_usize, switch()), 1..6)
}

/// A world that is switched, and what η was when each sample was admitted.
struct Switched {
    world: World,
    eta_of: BTreeMap<SampleId, u32>,
}

impl Switched {
    fn new(config: Config, plan: Plan) -> Self {
        let mut switched = Self { world: World::new(config, plan), eta_of: BTreeMap::new() };
        switched.book();
        switched
    }

    /// What has been admitted since was admitted under the configuration that is in force now.
    fn book(&mut self) {
        let core = &self.world.bench.core;
        let eta = core.config().policy_training.max_head_off_policyness;
        let next = self.eta_of.len() as u64;
        self.eta_of.extend((next..core.ledger().admitted).map(|id| (SampleId(id), eta)));
    }

    fn turn(&mut self) -> bool {
        let goes_on = self.world.turn() && !self.world.bench.watch.failed;
        self.book();
        goes_on
    }

    /// Switches, if that makes a valid configuration; nothing is discarded for it.
    fn switch(&mut self, switch: Switch) {
        let mut config = self.world.bench.core.config().clone();
        switch.apply(&mut config);
        if check(&config).iter().any(|problem| problem.severity() == Severity::Error) {
            return;
        }
        let input = Input::Operator(Operator::Reconfigure(Box::new(config.clone())));
        self.world.give(input);
        let bench = &self.world.bench;
        assert!(
            bench.did(|action| *action == Action::OperatorReply { reply: OperatorReply::Done })
        );
        assert_eq!(bench.core.config(), &config);
        let lost = bench.last.iter().find(|action| matches!(action, Action::Discard { .. }));
        assert_eq!(lost, None, "{switch:?} loses what was admitted");
        self.book();
    }

    /// The same inputs give the same actions.
    fn replays(&self, config: Config) {
        let bench = &self.world.bench;
        let (mut core, mut log) = (Scheduler::new(config), Vec::new());
        for (now, input) in &bench.record {
            core.handle(*now, input);
            log.extend(std::iter::from_fn(|| core.poll_action()));
        }
        assert_eq!(log, bench.log);
        assert_eq!(core.ledger(), bench.core.ledger());
    }

    fn balances(&self) {
        let bench = &self.world.bench;
        let ledger = bench.core.ledger();
        let here = ledger.outstanding() + ledger.parked();
        let gone = (bench.trained.len() + bench.discarded.len()) as u64;
        assert_eq!(ledger.admitted, gone + here);
    }
}

fn run(config: &Config, plan: Plan, switches: &[(usize, Switch)]) -> Switched {
    let mut switched = Switched::new(config.clone(), plan);
    for &(turns, switch) in switches {
        if !(0..turns).all(|_| switched.turn()) {
            break;
        }
        switched.switch(switch);
    }
    for _ in 0..200 {
        if !switched.turn() {
            break;
        }
    }
    switched
}

proptest! {
    #![proptest_config(cases(250, 11))]

    #[test]
    fn a_switch_at_any_instant_loses_nothing_and_is_replayed(
        mut config in sane_config(),
        plan in any_plan(),
        switches in switches(),
    ) {
        config.policy_training.publish_interval = 1;
        let switched = run(&config, plan, &switches);
        switched.balances();
        switched.replays(config);
    }

    #[test]
    fn a_new_eta_binds_what_is_admitted_after_it_and_nothing_else(
        mut config in sane_config(),
        plan in any_plan(),
        switches in switches(),
    ) {
        let training = &mut config.policy_training;
        training.gate = GateKind::Headway;
        training.bound = Bound::Strict;
        training.publish_interval = 1;
        let switched = run(&config, plan, &switches);
        for sample in &switched.world.bench.trained {
            let (eta, staleness) = (switched.eta_of[&sample.id], sample.staleness_head());
            assert!(staleness <= eta, "{} is {staleness}, admitted under {eta}", sample.id);
        }
    }
}

proptest! {
    #![proptest_config(cases(60, 12))]

    /// η 0 to 4 to 1, and every sync mode to every other, in a world that answers: it goes on.
    #[test]
    fn a_run_goes_on_whenever_it_was_switched(
        mut plan in calm_plan(),
        places in prop::collection::vec(0..90_usize, 4),
        from in 0..MODES.len(),
    ) {
        plan.zeros = 0;
        plan.inputs = usize::MAX;
        let mut config = Config::default();
        config.policy_training.batch_size = 3;
        config.policy_training.max_head_off_policyness = 0;
        config.policy_serving.sync_mode = MODES[from];
        config.queue.rollout.max_size = 16;
        config.queue.output.max_size = 16;
        let mut switched = Switched::new(config.clone(), plan);
        let modes = (1..=MODES.len()).map(|to| Switch::Mode((from + to) % MODES.len()));
        let rounds = [Switch::Eta(4), Switch::Queues(0, 0), Switch::Eta(1), Switch::Queues(13, 2)];
        for (switch, turns) in rounds.into_iter().chain(modes).zip(places.iter().cycle()) {
            for _ in 0..*turns {
                assert!(switched.turn(), "nothing happens any more");
            }
            switched.switch(switch);
        }
        let goal = switched.world.bench.learner() + 3;
        for _ in 0..20_000 {
            if switched.world.bench.learner() >= goal {
                break;
            }
            assert!(switched.turn(), "nothing happens any more");
        }
        assert!(switched.world.bench.learner() >= goal, "it stalls: {}", switched.world.bench.core.stall());
        switched.balances();
        switched.replays(config);
    }
}
