//! `headway export`: what other tools are given is what the run was.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::all::blessed::root;
use crate::all::support::{files, run, small, stderr, succeed};

const NAME: &str = "events.out.tfevents.0.headway";

/// A recorded run in `out`.
fn simulate(dir: &Path) {
    succeed(dir, &["simulate", small().to_str().unwrap(), "--record", "--out", "out"]);
}

/// Time, values by tag, of each step.
type Steps = BTreeMap<u64, (f64, BTreeMap<String, f32>)>;

/// A reader of event files that knows no more of them than their format.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.take(1)[0];
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }

    /// The next field: its number and its bytes, those of a varint as 8.
    fn field(&mut self) -> Option<(u64, Vec<u8>)> {
        if self.0.is_empty() {
            return None;
        }
        let key = self.varint();
        let bytes = match key & 7 {
            0 => self.varint().to_le_bytes().to_vec(),
            1 => self.take(8).to_vec(),
            2 => {
                let length = self.varint() as usize;
                self.take(length).to_vec()
            }
            5 => self.take(4).to_vec(),
            other => panic!("there is no wire type {other}"),
        };
        Some((key >> 3, bytes))
    }
}

fn decode(file: &[u8]) -> Steps {
    let (mut rest, mut steps) = (Reader(file), Steps::new());
    let mut first = true;
    while !rest.0.is_empty() {
        let length = u64::from_le_bytes(rest.take(8).try_into().unwrap());
        rest.take(4);
        let mut event = Reader(rest.take(length as usize));
        rest.take(4);
        let (mut time, mut step, mut values) = (0.0, 0, BTreeMap::new());
        while let Some((number, bytes)) = event.field() {
            match number {
                1 => time = f64::from_le_bytes(bytes.try_into().unwrap()),
                2 => step = u64::from_le_bytes(bytes.try_into().unwrap()),
                3 => assert!(first && bytes == b"brain.Event:2"),
                5 => {
                    let mut summary = Reader(&bytes);
                    while let Some((_, value)) = summary.field() {
                        let mut value = Reader(&value);
                        let tag = String::from_utf8(value.field().unwrap().1).unwrap();
                        let number = value.field().unwrap().1.try_into().unwrap();
                        values.insert(tag, f32::from_le_bytes(number));
                    }
                }
                other => panic!("field {other}"),
            }
        }
        if !first {
            assert!(steps.insert(step, (time, values)).is_none(), "step {step} is there twice");
        }
        first = false;
    }
    steps
}

#[test]
fn tensorboard_is_given_the_numbers_of_the_table() {
    let dir = tempfile::tempdir().unwrap();
    simulate(dir.path());
    let table = succeed(dir.path(), &["export", "csv", "out"]);
    assert_eq!(succeed(dir.path(), &["export", "csv", "out/run.record"]), table);
    let output = run(dir.path(), &["export", "tensorboard", "out"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("train steps; wrote"), "{}", stderr(&output));
    let steps = decode(&fs::read(dir.path().join("out/tensorboard/out").join(NAME)).unwrap());
    let mut rows = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    assert_eq!(header[..4], ["version", "time_sec", "samples", "tokens"]);
    let mut count = 0;
    for row in rows {
        count += 1;
        let (time, values) = &steps[&row[0].parse::<u64>().unwrap()];
        let near = |found: f64, cell: &str| {
            let cell: f64 = cell.parse().unwrap();
            assert!((found - cell).abs() <= 1e-5 * cell.abs(), "{found} is not {cell}");
        };
        near(*time, row[1]);
        for (name, cell) in header.iter().zip(&row).skip(2) {
            match values.get(&format!("headway/{name}")) {
                Some(value) => near(f64::from(*value), cell),
                None => assert_eq!(*cell, "", "{name}"),
            }
        }
    }
    assert_eq!((count, steps.len()), (12, 12));
}

#[test]
fn a_live_run_has_what_its_trainer_reported() {
    let dir = tempfile::tempdir().unwrap();
    let record = root().join("tests/data/released/record-0.1.0.db");
    let table = succeed(dir.path(), &["export", "csv", record.to_str().unwrap()]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].ends_with(",bound,trainer/train_rollout_logprob_abs_diff"), "{table}");
    assert!(lines[1].starts_with("1,1.05886,16,160,") && lines[1].ends_with(",0.01"), "{table}");
    assert_eq!(lines.len(), 3, "two steps");
    let to = ["export", "tensorboard", record.to_str().unwrap(), "--out", "to"];
    succeed(dir.path(), &to);
    let steps = decode(&fs::read(dir.path().join("to").join(NAME)).unwrap());
    assert_eq!(steps[&2].1["trainer/train_rollout_logprob_abs_diff"], 0.01);
}

#[test]
fn the_same_run_makes_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    simulate(dir.path());
    for out in ["a", "b"] {
        succeed(dir.path(), &["export", "tensorboard", "out/run.record", "--out", out]);
    }
    let [a, b] = ["a", "b"].map(|out| files(&dir.path().join(out)));
    assert_eq!(a, b);
    assert_eq!(a.keys().collect::<Vec<_>>(), [NAME]);
}

#[test]
fn a_folder_without_a_record_is_named_with_what_helps() {
    let dir = tempfile::tempdir().unwrap();
    for (path, said) in [(".", "no record"), ("none.db", "none.db")] {
        let output = run(dir.path(), &["export", "tensorboard", path, "--out", "to"]);
        assert_eq!(output.status.code(), Some(2));
        let text = stderr(&output);
        assert!(text.contains(said) && text.contains("help: "), "{text}");
        assert!(!dir.path().join("to").exists());
    }
}
