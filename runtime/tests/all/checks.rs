//! `headway check` and `headway replay` name what is wrong with a record, with its input.

use std::path::{Path, PathBuf};

use headway_runtime::shared::check::{CheckReport, Finding};
use headway_runtime::store::{check, replay};

use crate::all::live::{SMALL, Setup, query, turn};
use crate::all::record::busy;

/// What a check of the whole record finds.
fn checked(record: &Path) -> CheckReport {
    let mut checked = check(record).unwrap();
    assert_eq!(checked.len(), 1);
    checked.remove(0).1.unwrap()
}

/// Nothing is wrong in what this build can check.
pub(super) fn nothing_is_wrong(record: &Path) {
    for (stretch, report) in check(record).unwrap() {
        let Some(report) = report else { continue };
        assert_eq!(report.findings, [], "{stretch:?}");
        assert_eq!(report.unanswered, [], "{stretch:?}");
    }
}

fn change(record: &Path, sql: &str) {
    rusqlite::Connection::open(record).unwrap().execute_batch(sql).unwrap();
}

/// A copy of a record with a change.
fn damaged(record: &Path, sql: &str) -> PathBuf {
    let copy = record.with_extension("damaged.db");
    std::fs::copy(record, &copy).unwrap();
    change(&copy, sql);
    copy
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_record_passes_while_the_run_goes_on_and_when_it_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let live = busy(dir.path()).await;
    live.until(|status| status.committed == status.inputs).await;
    nothing_is_wrong(&live.record);
    let (ended, record) = live.end().await;
    ended.unwrap();
    nothing_is_wrong(&record);
    let report = checked(&record);
    assert!(report.started > 0 && report.replay.snapshots > 0);
    assert_eq!(report.in_flight, []);
    let ledger = &report.ledger;
    assert_eq!((ledger.admitted, ledger.trained, ledger.discarded_total()), (4, 2, 1));
    let behind: i64 =
        query(&record, "SELECT (SELECT max(seq) + 1 FROM inputs) - max(inputs) FROM snapshots");
    assert_eq!(behind, 0, "a run that ends in order leaves nothing behind its last snapshot");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_where_a_record_ends_is_in_flight() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    live.engine.hold(true);
    let asked = live.begin(&turn("a", "hello"));
    live.engine.wait_for_turns(1);
    live.until(|status| status.committed == status.inputs && status.gauges.running == 1).await;
    let report = checked(&live.record);
    assert_eq!(report.findings, []);
    let [unended] = &report.in_flight[..] else { panic!("{:?}", report.in_flight) };
    assert!(unended.work.to_string().starts_with("generation of request"), "{unended:?}");
    live.engine.hold(false);
    asked.await.unwrap();
    live.end().await.0.unwrap();
}

/// A change to a record, the input that is named, and a word of what is said.
type Damage = (&'static str, &'static str, &'static str);

const LAST: &str = "SELECT max(seq) + 1 FROM inputs";

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_damage_is_named_with_its_input() {
    let dir = tempfile::tempdir().unwrap();
    let (_, record) = busy(dir.path()).await.end().await;
    let resolved = "SELECT resolved FROM samples WHERE id = 0";
    let admitted = "SELECT admitted FROM samples WHERE id = 2";
    let vote = "SELECT min(ended) FROM votes";
    let damages: [Damage; 16] = [
        (
            "UPDATE inputs SET input = replace(input, '{\"score\":1000000}', '\"failed\"')
             WHERE seq = (SELECT min(ended) FROM votes)",
            vote,
            "decides otherwise",
        ),
        ("DELETE FROM inputs WHERE seq = 5", "SELECT 5", "input 5 is missing, the next is input 6"),
        (
            "UPDATE inputs SET input = '{' WHERE seq = 5",
            "SELECT 5",
            "input 5 or its digest is none",
        ),
        ("UPDATE inputs SET actions = '0' WHERE seq = 5", "SELECT 5", "decides otherwise"),
        ("DELETE FROM inputs WHERE seq = 0", "SELECT 1", "no snapshot behind the 1 before it"),
        ("UPDATE samples SET fate = 'late' WHERE id = 0", resolved, "the table has `late`"),
        ("UPDATE samples SET score = 0.5 WHERE id = 0", resolved, "with score 0.5"),
        ("UPDATE samples SET staleness = 3 WHERE id = 0", resolved, "sample 0"),
        ("DELETE FROM samples WHERE id = 2", admitted, "sample 2 was admitted, and is not in"),
        (
            "UPDATE samples SET id = 77 WHERE id = 2",
            admitted,
            "sample 77 is in the table, and was not admitted",
        ),
        (
            "UPDATE samples SET tokens = '[1]', logprobs = '[-1.0]', segments = '[[0,1]]'
             WHERE id = 0",
            resolved,
            "the table has 1 turns and 1 tokens",
        ),
        ("UPDATE steps SET samples = '[1,0]'", "SELECT started FROM steps", "[0, 1], and [1,0]"),
        ("UPDATE steps SET ok = 0", "SELECT ended FROM steps", "ok: false"),
        ("DELETE FROM votes WHERE id = 0", "SELECT min(started) FROM votes", "vote 0 was started"),
        ("UPDATE votes SET outcome = 'failed' WHERE id = 0", vote, "failed in the table"),
        (
            "INSERT INTO inputs SELECT (SELECT max(seq) + 1 FROM inputs),
             (SELECT max(time_ns) FROM inputs), 0, kind, input, '243f6a8885a308d3'
             FROM inputs WHERE kind = 'vote_ended' LIMIT 1",
            LAST,
            "it ends the vote 0, which never started or has ended before",
        ),
    ];
    for (sql, input, words) in damages {
        let input: i64 = query(&record, input);
        let report = checked(&damaged(&record, sql));
        let named = |finding: &&Finding| {
            finding.input == Some(input.cast_unsigned()) && finding.what.contains(words)
        };
        assert!(report.findings.iter().any(|f| named(&f)), "{sql}: {input} {:#?}", report.findings);
    }
    for column in ["tokens = '[1]'", "logprobs = '[]'", "segments = '[[0,5]]'"] {
        let report =
            checked(&damaged(&record, &format!("UPDATE samples SET {column} WHERE id = 0")));
        let found = report.findings[0].to_string();
        assert!(found.starts_with("sample 0, turn 0: `tokens`, `logprobs`"), "{column}: {found}");
    }
    let swapped =
        "UPDATE snapshots SET core = (SELECT core FROM snapshots ORDER BY inputs LIMIT 1)";
    let report = checked(&damaged(&record, swapped));
    assert!(report.findings[0].what.starts_with("the snapshot behind"), "{:?}", report.findings);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_names_the_first_decision_that_differs_whatever_was_altered() {
    let dir = tempfile::tempdir().unwrap();
    let (_, record) = busy(dir.path()).await.end().await;
    let seq = |kind: &str| -> i64 {
        query(&record, &format!("SELECT min(seq) FROM inputs WHERE kind = '{kind}'"))
    };
    let (vote, generation) = (seq("vote_ended"), seq("generation_ended"));
    let at = |seq: i64| format!("first at input {seq}\n");
    let alterations = [
        (
            format!(
                "UPDATE inputs SET input = replace(input, '{{\"score\":1000000}}', '\"failed\"')
                     WHERE seq = {vote}"
            ),
            vec![at(vote), "VoteEnded".to_owned(), "StartVote".to_owned()],
        ),
        (
            format!(
                "UPDATE inputs SET input = replace(input, '\"stop\"', '\"failed\"')
                     WHERE seq = {generation}"
            ),
            vec![at(generation), "Discard".to_owned(), "GenerationFailed".to_owned()],
        ),
        (
            format!("UPDATE inputs SET actions = '0000000000000001' WHERE seq = {vote}"),
            vec![at(vote), "which is all it holds".to_owned()],
        ),
        (
            // A day later, everyone has been silent for too long.
            format!("UPDATE inputs SET time_ns = time_ns + 864000000000000 WHERE seq = {vote}"),
            vec![at(vote), "EndSession".to_owned()],
        ),
        (
            format!("DELETE FROM inputs WHERE seq = {vote}"),
            vec![format!("input {vote} is missing, the next is input {}", vote + 1)],
        ),
        (
            "UPDATE header SET value = replace(value, '\"batch_size\":2', '\"batch_size\":3')
             WHERE key = 'config'"
                .to_owned(),
            vec!["the configuration in the header does not have the digest beside it".to_owned()],
        ),
    ];
    for (sql, words) in alterations {
        let error = replay(&damaged(&record, &sql)).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(&word), "{sql}: {word}: {error}");
        }
    }
    // No decision depends on it, and the state does.
    let last: i64 = query(&record, "SELECT max(ended) FROM votes");
    let sql = format!("UPDATE inputs SET time_ns = time_ns + 1 WHERE seq = {last}");
    let error = replay(&damaged(&record, &sql)).unwrap_err().to_string();
    assert!(error.contains("altered without changing a decision"), "{error}");
}
