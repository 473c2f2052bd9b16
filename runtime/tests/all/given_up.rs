//! A train step that takes too long counts as failed, whatever the trainer makes of it later.

use headway_runtime::store::replay;

use crate::all::live::{Live, SMALL, Setup, query, turn};

fn setup() -> Setup {
    let text = format!("{SMALL} train_timeout_sec = 0.1\n train_retries = 1000");
    let mut setup = Setup::new(&text);
    setup.checkpoints = true;
    setup
}

async fn give_up_a_step(live: &Live, sessions: [&str; 2]) {
    let failed = live.driver.status().ledger.failed_steps;
    live.trainer.hold(true);
    for session in sessions {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.failed_steps > failed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_ends_too_late_is_undone_and_recorded_as_failed() {
    let dir = tempfile::tempdir().unwrap();
    let live = setup().start(dir.path()).await;
    give_up_a_step(&live, ["a", "b"]).await;
    live.trainer.hold(false);
    let status = live.until(|status| status.ledger.steps == 1).await;
    assert_eq!((status.learner.number(), status.ledger.trained), (1, 2));
    assert!(live.trainer.undone().contains(&1), "it had made version 1");
    live.until(|status| status.ledger.publications == 1).await;
    let (ended, record) = live.end().await;
    ended.unwrap();
    let ok: i64 = query(&record, "SELECT count(*) FROM steps WHERE ok = 1");
    let failed: i64 = query(&record, "SELECT count(*) FROM steps WHERE ok = 0");
    let ended: i64 = query(&record, "SELECT count(*) FROM steps");
    assert_eq!((ok, ok + failed), (1, ended), "each has ended, and one well");
    replay(&record).unwrap();
    // The trainer holds what the record says.
    let live = setup().start(dir.path()).await;
    assert_eq!(live.driver.status().learner.number(), 1);
    live.end().await.0.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_of_a_step_that_was_given_up_is_not_begun_with() {
    let dir = tempfile::tempdir().unwrap();
    let live = setup().start(dir.path()).await;
    for session in ["a", "b"] {
        live.answer(&turn(session, "hello")).await;
    }
    live.until(|status| status.ledger.steps == 1).await;
    let checkpoint = std::fs::read_to_string(dir.path().join("checkpoint")).unwrap();
    give_up_a_step(&live, ["c", "d"]).await;
    let step: i64 = loop {
        let sql = "SELECT coalesce(max(id), -1) FROM steps WHERE ok = 0";
        let step = query(&live.record, sql);
        if step >= 0 {
            break step;
        }
    };
    // The process is killed when the trainer has written what that step made.
    live.run.abort();
    let _ = live.run.await;
    let made_by: Vec<&str> = checkpoint.split(' ').collect();
    let ahead = format!("2 {step} {}", made_by[1]);
    let lock = dir.path().join("run.db.lock");
    while std::fs::File::open(&lock).unwrap().try_lock().is_err() {}
    std::fs::write(dir.path().join("checkpoint"), ahead).unwrap();
    let live = setup().start(dir.path()).await;
    assert_eq!(live.trainer.undone(), [2]);
    live.until(|status| status.ledger.steps == 2 && status.learner.number() == 2).await;
    let (ended, record) = live.end().await;
    ended.unwrap();
    let restored: i64 = query(&record, "SELECT count(*) FROM inputs WHERE kind = 'restored'");
    assert_eq!(restored, 0, "nothing that the record knows was lost");
    replay(&record).unwrap();
}
