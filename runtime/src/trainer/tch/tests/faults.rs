//! Steps that the core gives up, versions that it asks for, restarts, and a disk that is full.

use std::os::unix::fs::symlink;

use super::steps::{Bench, batch, shape, trainer};
use super::*;
use crate::model::same;

fn good(seed: u64) -> Vec<TrainSample> {
    batch(seed, 0, &shape().random(1))
}

fn cancel(bench: &mut Bench, step: u64) -> TrainerEvent {
    bench.tell(TrainerCommand::CancelStep { step: StepId(step) })
}

fn up(version: u32, step: Option<u64>) -> TrainerEvent {
    TrainerEvent::Up { checkpoint: LearnerVersion::new(version), step: step.map(StepId) }
}

#[test]
fn a_step_that_the_core_gave_up_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let kept = TchTrainer { checkpoints: Some(folder.path().to_owned()), ..trainer() };
    for told in [true, false] {
        let (mut bench, _) = Bench::start(kept.clone());
        let (mut other, _) = Bench::start(trainer());
        for bench in [&mut bench, &mut other] {
            assert!(bench.step(0, &good(1)).0);
        }
        let before = bench.weights();
        // It was trained, after its time was up.
        assert!(bench.step_of(7, 1, &good(2), 3).0);
        bench.tell(TrainerCommand::Checkpoint);
        if told {
            assert_eq!(cancel(&mut bench, 7), up(1, Some(0)));
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
            assert_eq!(cancel(&mut bench, 7), up(1, Some(0)), "told twice");
            bench.version = 1;
            assert!(same(&bench.weights(), &before));
        }
        // The next one starts from where that one did, and is as if it had never been.
        for bench in [&mut bench, &mut other] {
            assert!(bench.step_of(8, 1, &good(3), 1).0);
        }
        assert!(same(&bench.weights(), &other.weights()));
    }
}

#[test]
fn a_version_is_exported_as_it_was_when_the_learner_has_gone_on() {
    let (mut bench, _) = Bench::start(trainer());
    let zero = bench.weights();
    bench.step(0, &good(1));
    let one = bench.weights();
    bench.step(1, &good(2));
    assert_eq!(bench.weights_of(1).unwrap(), one);
    assert_eq!(bench.weights_of(0).unwrap(), zero);
    assert_ne!(bench.weights(), one);
    assert_eq!(bench.weights_of(9), None, "a version that it never had");
    assert!(!bench.step_of(9, 9, &good(3), 1).0);
}

#[test]
fn after_a_rollback_the_parameters_are_what_they_are_called() {
    let folder = tempfile::tempdir().unwrap();
    let trainer = TchTrainer { checkpoints: Some(folder.path().to_owned()), ..trainer() };
    let (mut bench, _) = Bench::start(trainer.clone());
    for version in 0..2 {
        bench.step(version, &good(version.into()));
    }
    let before = bench.weights();
    bench.tell(TrainerCommand::Checkpoint);
    drop(bench);
    // The record has gone on to version 5, which is lost: versions go on from 6.
    let (mut bench, said) = Bench::start(trainer.clone());
    assert_eq!(said, up(2, Some(1)));
    assert_eq!(bench.weights_of(6).unwrap(), before);
    let written = bench.tell(TrainerCommand::Checkpoint);
    assert_eq!(written, TrainerEvent::Checkpointed { version: LearnerVersion::new(6) });
    assert!(bench.step(6, &good(9)).0);
    assert_eq!(bench.weights_of(6).unwrap(), before);
    drop(bench);
    let (_, said) = Bench::start(trainer);
    assert_eq!(said, up(6, Some(1)));
}

#[test]
fn a_checkpoint_whose_step_failed_is_not_begun_with() {
    let folder = tempfile::tempdir().unwrap();
    let trainer = TchTrainer { checkpoints: Some(folder.path().to_owned()), ..trainer() };
    let (mut bench, _) = Bench::start(trainer.clone());
    let fresh = bench.weights();
    bench.step(0, &good(1));
    let one = bench.weights();
    bench.tell(TrainerCommand::Checkpoint);
    bench.step(1, &good(2));
    bench.tell(TrainerCommand::Checkpoint);
    drop(bench);
    let (mut bench, said) = Bench::start(trainer);
    assert_eq!(said, up(2, Some(1)));
    assert_eq!(cancel(&mut bench, 1), up(1, Some(0)));
    assert_eq!(bench.weights_of(1).unwrap(), one);
    assert_eq!(cancel(&mut bench, 0), up(0, None));
    assert_eq!(bench.weights_of(0).unwrap(), fresh);
}

#[test]
fn the_lag_probe_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let trainer = TchTrainer {
        checkpoints: Some(folder.path().to_owned()),
        snapshots: 6,
        probe_interval: 1,
        ..trainer()
    };
    let distances = |metrics: &[StepMetric]| {
        let of = |metric: &StepMetric| metric.staleness.filter(|_| metric.name == "probe_p50");
        metrics.iter().filter_map(of).collect::<Vec<u32>>()
    };
    let (mut bench, _) = Bench::start(trainer.clone());
    for version in 0..8 {
        let samples = batch(version.into(), version, &bench.weights());
        bench.step(version, &samples);
    }
    bench.tell(TrainerCommand::Checkpoint);
    drop(bench);
    let (mut bench, _) = Bench::start(trainer.clone());
    let samples = batch(50, 8, &bench.weights());
    let (ok, metrics) = bench.step(8, &samples);
    assert!(ok);
    assert_eq!(distances(&metrics), [0, 1, 2, 3, 4, 5]);
    drop(bench);
    // After a rollback from 10 to 8, 11 is what 8 was: what lies between are no steps.
    let (mut bench, _) = Bench::start(trainer);
    let samples = batch(50, 11, &bench.weights_of(11).unwrap());
    let (ok, metrics) = bench.step(11, &samples);
    assert!(ok);
    assert_eq!(distances(&metrics), [0, 1, 2, 3, 4, 5]);
    assert!(value(&metrics, "probe_log_square", Some(0)) < 1e-8);
}

#[test]
fn a_full_disk_leaves_the_checkpoint_before_whole() {
    let folder = tempfile::tempdir().unwrap();
    let trainer = TchTrainer { checkpoints: Some(folder.path().to_owned()), ..trainer() };
    let (mut bench, _) = Bench::start(trainer.clone());
    bench.step(0, &good(1));
    bench.tell(TrainerCommand::Checkpoint);
    let one = bench.weights();
    bench.step(1, &good(2));
    // Where the next one is drafted, there is no room.
    symlink("/dev/full", folder.path().join("checkpoint-0000000002.part")).unwrap();
    assert_eq!(bench.tell(TrainerCommand::Checkpoint), TrainerEvent::NotCheckpointed);
    let two = bench.weights();
    assert_ne!(one, two);
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let (mut other, said) = Bench::start(trainer);
    assert_eq!(said, up(1, Some(0)));
    assert_eq!(other.weights(), one);
    drop(other);
    // With room again it is written.
    let version = LearnerVersion::new(2);
    assert_eq!(bench.tell(TrainerCommand::Checkpoint), TrainerEvent::Checkpointed { version });
}
