//! Files that something happened to: a database, a tokenizer, the book of an external trainer. They
//! are read, or what is wrong is said; nothing panics.

use std::fs;
use std::path::Path;

use headway_runtime::driver::Recovery;
use headway_runtime::shared::source::RunSource;
use headway_runtime::shared::time::Span;
use headway_runtime::store::{RecordedRun, check, replay, replay_stretches};
use headway_runtime::tokenizer::{HuggingFace, Message, Tokenizer};
use headway_runtime::trainer::external::ExternalTrainer;

use crate::all::checkpoint;
use crate::all::damage::damages;
use crate::all::live::{SMALL, config};
use crate::all::record::busy;

/// Everything that looks at a database.
fn look(path: &Path) {
    let _ = replay(path);
    let _ = replay_stretches(path);
    let _ = check(path);
    if let Ok(run) = RecordedRun::open_any(path) {
        let mut inputs = 0_u64;
        let _ = run.inputs(&mut |_, _| inputs += 1);
        let _ = run.core();
        let _ = run.reported();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_is_read_or_named_and_the_run_goes_on_or_says_why_not() {
    let dir = tempfile::tempdir().unwrap();
    let (ended, record) = busy(dir.path()).await.end().await;
    ended.unwrap();
    let whole = fs::read(&record).unwrap();
    let path = dir.path().join("damaged.db");
    let put = |bytes: &[u8]| {
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(dir.path().join(format!("damaged.db{suffix}")));
        }
        fs::write(&path, bytes).unwrap();
    };
    put(&whole);
    replay(&path).unwrap();
    for (_, damage) in damages(150) {
        println!("{damage:?}");
        put(&damage.of(&whole));
        look(&path);
        if let Err(error) = Recovery::open(&path, config(SMALL)) {
            assert!(!error.to_string().is_empty());
        }
    }
}

/// Rows that are no rows of ours, in a database that SQLite finds nothing wrong with.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_content_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (ended, record) = busy(dir.path()).await.end().await;
    ended.unwrap();
    let tables: Vec<(String, Vec<String>)> = {
        let whole = rusqlite::Connection::open(&record).unwrap();
        let mut tables =
            whole.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").unwrap();
        let names: Vec<String> =
            tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let columns = |name: &String| {
            let mut columns = whole.prepare("SELECT name FROM pragma_table_info(?1)").unwrap();
            let rows = columns.query_map([name], |row| row.get(0)).unwrap();
            rows.map(Result::unwrap).collect::<Vec<String>>()
        };
        names.iter().map(|name| (name.clone(), columns(name))).collect()
    };
    assert!(tables.len() > 5, "{tables:?}");
    let path = dir.path().join("other.db");
    let values =
        ["NULL", "-1", "9223372036854775807", "1e308", "x'ff00ff'", "'[[[['", "'{}'", "''"];
    for (table, columns) in &tables {
        let mut changes: Vec<String> =
            vec![format!("DROP TABLE {table}"), format!("DELETE FROM {table}")];
        for column in columns {
            let values = values.iter();
            changes.extend(values.map(|value| format!("UPDATE {table} SET {column} = {value}")));
        }
        for change in changes {
            fs::copy(&record, &path).unwrap();
            let changed = {
                let other = rusqlite::Connection::open(&path).unwrap();
                other.execute_batch(&format!("PRAGMA journal_mode = DELETE; {change}")).is_ok()
            };
            if changed {
                println!("{change}");
                look(&path);
                let _ = Recovery::open(&path, config(SMALL));
            }
        }
    }
}

#[test]
fn a_damaged_tokenizer_is_loaded_or_named() {
    let dir = tempfile::tempdir().unwrap();
    checkpoint::write(dir.path());
    let names = ["tokenizer.json", "tokenizer_config.json"];
    let files = names.map(|name| (dir.path().join(name), fs::read(dir.path().join(name)).unwrap()));
    let message = [Message { role: "user".into(), content: "hello {{ 7 * 7 }}".into() }];
    HuggingFace::load(dir.path()).unwrap().prompt(&message).unwrap();
    for (which, damage) in damages(150) {
        println!("{damage:?}");
        let (path, whole) = &files[which.index(files.len())];
        fs::write(path, damage.of(whole)).unwrap();
        match HuggingFace::load(dir.path()) {
            Ok(tokenizer) => {
                let ids = tokenizer.prompt(&message).unwrap_or_default();
                let _ = tokenizer.decode(&ids);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        fs::write(path, whole).unwrap();
    }
}

#[test]
fn a_damaged_book_of_an_external_trainer_is_read_or_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trainer.json");
    let whole = r#"{"done":{"step":4,"version":3,"batch":"0badcafe"},"weights":[{"version":4,"path":"/w/4"}],"before":{"step":3,"version":2,"batch":"0badcaff"}}"#;
    let open = || ExternalTrainer::new(path.clone(), Span::from_secs(60));
    fs::write(&path, whole).unwrap();
    assert!(open().is_ok());
    for (_, damage) in damages(300) {
        fs::write(&path, damage.of(whole.as_bytes())).unwrap();
        if let Err(error) = open() {
            assert!(error.to_string().contains("trainer.json"), "{error}");
        }
    }
}
