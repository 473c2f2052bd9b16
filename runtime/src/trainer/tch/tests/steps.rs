//! Steps, from commands to checkpoints.

use std::fs;

use headway_shared::id::PublicationId;
use headway_shared::time::Time;

use super::*;
use crate::clock::Clock;
use crate::model::same;
use crate::trainer::tch::loss::{Columns, trained};
use crate::trainer::{TrainerLink, spawn};

pub(super) fn shape() -> Shape {
    Shape::tiny(12, 32)
}

pub(super) fn trainer() -> TchTrainer {
    TchTrainer::new(shape(), crate::model::test_device(), Arc::new(shape().random(1)))
}

/// A trainer under test.
pub(super) struct Bench {
    link: TrainerLink,
    publications: u64,
    /// The learner's, as the core would have it.
    pub(super) version: u32,
}

impl Bench {
    pub(super) fn start(trainer: TchTrainer) -> (Self, TrainerEvent) {
        tch::set_num_threads(1);
        let link = spawn(Clock::from(Time::from_nanos(0)), trainer).unwrap();
        let mut bench = Self { link, publications: 0, version: 0 };
        let up = bench.hear();
        if let TrainerEvent::Up { checkpoint, .. } = up {
            bench.version = checkpoint.number();
        }
        (bench, up)
    }

    fn hear(&mut self) -> TrainerEvent {
        self.link.events.blocking_recv().unwrap()
    }

    pub(super) fn send(&self, command: TrainerCommand) {
        self.link.commands.blocking_send(command).unwrap();
    }

    pub(super) fn tell(&mut self, command: TrainerCommand) -> TrainerEvent {
        self.send(command);
        self.hear()
    }

    /// One step; whether it was trained, and what it measured.
    pub(super) fn step(
        &mut self,
        learner: u32,
        samples: &[TrainSample],
    ) -> (bool, Vec<StepMetric>) {
        self.step_of(u64::from(learner), learner, samples, 1)
    }

    pub(super) fn step_of(
        &mut self,
        step: u64,
        learner: u32,
        samples: &[TrainSample],
        updates: u32,
    ) -> (bool, Vec<StepMetric>) {
        let command = TrainerCommand::Step {
            step: StepId(step),
            learner: LearnerVersion::new(learner),
            deploy: Some(DeployVersion::new(learner.saturating_sub(1))),
            loss: rule(Correction::PpoClip),
            updates,
            samples: samples.to_vec(),
        };
        match self.tell(command) {
            TrainerEvent::StepEnded { step: of, ok, metrics } => {
                assert_eq!(of, StepId(step));
                self.version = if ok { learner + 1 } else { self.version };
                (ok, metrics)
            }
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn weights(&mut self) -> Arc<Weights> {
        self.weights_of(self.version).unwrap()
    }

    pub(super) fn weights_of(&mut self, version: u32) -> Option<Arc<Weights>> {
        self.publications += 1;
        let publication = PublicationId(self.publications);
        let version = LearnerVersion::new(version);
        match self.tell(TrainerCommand::Save { publication, version }) {
            TrainerEvent::Saved {
                publication: of,
                weights: crate::engine::Export::Tensors(weights),
            } if of == publication => Some(weights),
            TrainerEvent::SaveFailed { publication: of } if of == publication => None,
            other => panic!("{other:?}"),
        }
    }
}

/// A batch as an engine with these weights would have sampled it.
pub(super) fn batch(seed: u64, version: u32, weights: &Weights) -> Vec<TrainSample> {
    let mut draws = Draws(seed);
    let mut samples: Vec<TrainSample> = (0..8).map(|id| sample(id, version, &mut draws)).collect();
    let net = Net::new(&shape(), weights, crate::model::test_device()).unwrap();
    for sample in &mut samples {
        let columns = Columns::of(&[sample], &[0.0], crate::model::test_device()).unwrap();
        let logs = crate::model::floats(&columns.log_probs(&net, 1.0).unwrap()).unwrap();
        for place in trained(sample).collect::<Vec<_>>() {
            sample.rollout_logprobs[place] = logs[place - 1];
        }
    }
    samples
}

#[test]
fn on_policy_every_ratio_is_one_and_staleness_spreads_them() {
    let (mut bench, up) = Bench::start(trainer());
    assert_eq!(up, TrainerEvent::Up { checkpoint: LearnerVersion::new(0), step: None });
    let mut stale = batch(1, 0, &bench.weights());
    for version in 0..6 {
        let now = batch(u64::from(version) + 20, version, &bench.weights());
        let (ok, metrics) = bench.step(version, &now);
        assert!(ok);
        for name in ["learner_rollout_max", "learner_rollout_p50", "learner_proximal_max"] {
            assert!((value(&metrics, name, None) - 1.0).abs() < 1e-4);
        }
        assert!(value(&metrics, "train_rollout_logprob_abs_diff", None) < 1e-4);
        assert_eq!(value(&metrics, "clipped_fraction", None), 0.0);
        assert!(value(&metrics, "grad_norm", None) > 0.0);
    }
    // Half of the batch is six versions old.
    stale.truncate(4);
    stale.extend(batch(99, 6, &bench.weights()).into_iter().skip(4));
    let (_, metrics) = bench.step(6, &stale);
    assert!(value(&metrics, "learner_rollout_log_square", Some(0)) < 1e-8);
    assert!(value(&metrics, "learner_rollout_log_square", Some(6)) > 1e-5);
    assert!(value(&metrics, "train_rollout_logprob_abs_diff", None) > 1e-4);
    // Version 5 is deployed: one step of the six lies between it and the learner.
    let of = |name: &str| value(&metrics, name, Some(6));
    assert!(0.0 < of("learner_deploy_log_square"));
    assert!(of("learner_deploy_log_square") < of("deploy_rollout_log_square"));
    assert!(of("learner_rollout_kl_k3") > 0.0 && of("learner_rollout_ess_token") < 1.0);
}

#[test]
fn log_probabilities_shifted_by_one_token_make_the_metric_jump() {
    // A policy with opinions: with equal probabilities nobody could tell.
    let mut weights = shape().random(1);
    weights.tensors.last_mut().unwrap().data.iter_mut().for_each(|x| *x *= 20.0);
    let mut shifted = batch(1, 0, &weights);
    let trainer = TchTrainer { fresh: Arc::new(weights), ..trainer() };
    let (mut bench, _) = Bench::start(trainer);
    for sample in &mut shifted {
        let places: Vec<usize> = trained(sample).collect();
        let logs: Vec<f32> = places.iter().map(|&place| sample.rollout_logprobs[place]).collect();
        for (n, &place) in places.iter().enumerate() {
            sample.rollout_logprobs[place] = logs[(n + 1) % logs.len()];
        }
    }
    let (_, metrics) = bench.step(0, &shifted);
    assert!(value(&metrics, "train_rollout_logprob_abs_diff", None) > 0.3);
    assert!(value(&metrics, "learner_rollout_p99", None) > 2.0);
}

#[test]
fn several_updates_each_take_their_part() {
    let (mut bench, _) = Bench::start(trainer());
    let samples = batch(1, 0, &bench.weights());
    let (ok, metrics) = bench.step_of(0, 0, &samples, 4);
    assert!(ok);
    // The first part saw the proximal policy, the others what came before them.
    assert!((value(&metrics, "learner_proximal_p50", None) - 1.0).abs() < 0.05);
    assert!(value(&metrics, "learner_proximal_log_abs", None) > 1e-4);
    assert!(value(&metrics, "train_rollout_logprob_abs_diff", None) < 1e-4);
    let trained_once: usize = samples.iter().map(|sample| trained(sample).count()).sum();
    assert_eq!(value(&metrics, "trained_tokens", None), trained_once as f64);
}

#[test]
fn a_masked_sample_changes_nothing_but_the_divisor() {
    let weights_after = |spoil: fn(&mut TrainSample)| {
        let (mut bench, _) = Bench::start(trainer());
        let mut samples = batch(1, 0, &bench.weights());
        spoil(&mut samples[2]);
        assert!(bench.step(0, &samples).0);
        bench.weights()
    };
    let masked = weights_after(|sample| sample.masked = true);
    let other = weights_after(|sample| {
        sample.masked = true;
        sample.reward = 1e6;
        sample.tokens.reverse();
    });
    assert!(same(&masked, &other));
    assert_ne!(masked, weights_after(|_| {}));
}

#[test]
fn the_lag_probe_sees_drift_grow_with_the_distance() {
    let net = Net::new(&shape(), &shape().random(1), crate::model::test_device()).unwrap();
    let mut learner = Learner::new(net, LearnerVersion::new(0)).unwrap();
    let habits = Habits { optimizer: AdamW::default(), temperature: 1.0, snapshots: 16 };
    let mut last = Vec::new();
    for version in 0..20 {
        let samples = batch(u64::from(version), version, &learner.net.weights().unwrap());
        let step = Step {
            step: StepId(u64::from(version)),
            learner: LearnerVersion::new(version),
            deploy: None,
            loss: rule(Correction::PpoClip),
            updates: 1,
            samples: &samples,
            probe: version == 19,
        };
        last = learner.train(&step, &habits).unwrap();
        assert!(learner.snapshots.len() <= 16);
    }
    let squares: Vec<f64> =
        (0..16).map(|distance| value(&last, "probe_log_square", Some(distance))).collect();
    assert!(squares[0] < 1e-8, "the floor: one engine and one trainer of the same numbers");
    assert!(squares.is_sorted(), "{squares:?}");
    assert!(squares[15] > 10.0 * squares[1], "{squares:?}");
    assert!(last.iter().all(|metric| metric.name != "learner_deploy_p50"), "nothing is deployed");
}

#[test]
fn training_goes_on_after_a_restart_as_if_there_had_been_none() {
    let folder = tempfile::tempdir().unwrap();
    let trainer = TchTrainer { checkpoints: Some(folder.path().join("made")), ..trainer() };
    let (mut bench, _) = Bench::start(trainer.clone());
    let batches: Vec<Vec<TrainSample>> = (0..4_u32)
        .map(|version| {
            let mut samples = batch(u64::from(version), 0, &shape().random(1));
            // Samples without mates: the running baseline is part of what goes on.
            samples.iter_mut().for_each(|sample| sample.group = None);
            samples
        })
        .collect();
    for version in 0..3 {
        bench.step(version, &batches[version as usize]);
    }
    let version = LearnerVersion::new(3);
    let written = bench.tell(TrainerCommand::Checkpoint);
    assert_eq!(written, TrainerEvent::Checkpointed { version });
    let before = bench.weights();
    bench.step(3, &batches[3]);
    let after = bench.weights();
    drop(bench);

    let (mut bench, up) = Bench::start(trainer);
    assert_eq!(up, TrainerEvent::Up { checkpoint: version, step: Some(StepId(2)) });
    assert!(same(&bench.weights(), &before));
    // The step that the checkpoint holds is not trained twice.
    assert!(bench.step(2, &batches[2]).0);
    assert!(same(&bench.weights(), &before));
    assert!(bench.step(3, &batches[3]).0);
    assert!(same(&bench.weights(), &after));
}

#[test]
fn a_step_told_twice_is_trained_once() {
    let (mut bench, _) = Bench::start(trainer());
    let samples = batch(1, 0, &bench.weights());
    let first = bench.step(0, &samples);
    let weights = bench.weights();
    assert_eq!(bench.step(0, &samples), first);
    assert!(same(&bench.weights(), &weights));
    bench.step_of(1, 1, &samples, 1);
    assert_ne!(bench.weights(), weights);
}

#[test]
fn a_checkpoint_that_is_broken_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let trainer = TchTrainer { checkpoints: Some(folder.path().to_owned()), ..trainer() };
    let (mut bench, _) = Bench::start(trainer.clone());
    for version in 0..5 {
        bench.step(version, &batch(1, 0, &shape().random(1)));
        bench.tell(TrainerCommand::Checkpoint);
    }
    drop(bench);
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert_eq!(names.len(), 3, "only the newest are kept");
    let bytes = fs::read(&names[2]).unwrap();
    fs::write(&names[2], &bytes[..bytes.len() / 2]).unwrap();
    let (_, up) = Bench::start(trainer);
    let checkpoint = LearnerVersion::new(4);
    assert_eq!(up, TrainerEvent::Up { checkpoint, step: Some(StepId(3)) });
}

#[test]
fn a_step_that_fails_leaves_everything_as_it_was() {
    let good = |seed| batch(seed, 0, &shape().random(1));
    let (mut bench, _) = Bench::start(trainer());
    let before = bench.weights();
    let spoils: [fn(&mut TrainSample); 7] = [
        |sample| sample.tokens[1] = 12,
        |sample| sample.loss_mask[0] = true,
        |sample| sample.reward = f64::NAN,
        |sample| sample.rollout_logprobs.truncate(3),
        |sample| sample.versions.fill(RolloutVersion::new(1)),
        |sample| sample.tokens.truncate(1),
        // Finite, and a ratio that f32 cannot hold.
        |sample| {
            sample.rollout_logprobs.fill(-300.0);
            sample.reward = -5.0;
        },
    ];
    for (n, spoil) in spoils.into_iter().enumerate() {
        for updates in [1, 4] {
            let mut samples = good(1);
            // The last part of several: the others have been applied by then.
            spoil(&mut samples[7]);
            let step = 100 + 2 * n as u64 + u64::from(updates > 1);
            assert!(!bench.step_of(step, 0, &samples, updates).0, "spoil {n}");
            assert!(same(&bench.weights(), &before), "spoil {n}");
        }
    }
    // Nothing of them is left: the next step is as a first one.
    bench.step(0, &good(2));
    let (mut other, _) = Bench::start(trainer());
    other.step(0, &good(2));
    assert!(same(&bench.weights(), &other.weights()));
}

#[test]
fn a_trainer_without_a_place_for_checkpoints_writes_none_and_says_so() {
    let (mut bench, _) = Bench::start(trainer());
    assert_eq!(bench.tell(TrainerCommand::Checkpoint), TrainerEvent::NotCheckpointed);
    bench.link.commands.blocking_send(TrainerCommand::Shutdown).unwrap();
    assert_eq!(bench.hear(), TrainerEvent::Down);
}
