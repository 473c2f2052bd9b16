//! Timelines: the trace for Perfetto, and the text for a terminal.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::all::blessed;
use crate::all::support::{run, small, stderr, succeed};

/// Start, end, category, name, arguments.
type Slice = (u64, u64, String, String, Value);

/// A trace as a reader of the format sees it.
#[derive(Default)]
struct Trace {
    /// Of each thread its slices.
    threads: BTreeMap<u64, Vec<Slice>>,
    /// Of each flow its events: time, phase, thread.
    flows: BTreeMap<u64, Vec<(u64, String, u64)>>,
    /// The names of threads, each with its process.
    names: BTreeMap<u64, (u64, String)>,
    processes: BTreeMap<u64, String>,
    /// By process and name, in order of time.
    counters: BTreeMap<(u64, String), Vec<(u64, u64)>>,
}

impl Trace {
    fn read(path: &Path) -> Self {
        let document: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let mut events = document["traceEvents"].as_array().unwrap().clone();
        // Stable, as readers sort.
        events.sort_by_key(|event| event["ts"].as_u64().unwrap());
        let mut trace = Self::default();
        for event in &events {
            trace.add(event);
        }
        trace
    }

    fn add(&mut self, event: &Value) {
        let number = |key: &str| event[key].as_u64().unwrap_or_else(|| panic!("{key}: {event}"));
        let text = |key: &str| event[key].as_str().unwrap().to_owned();
        let (ts, pid) = (number("ts"), number("pid"));
        match event["ph"].as_str().unwrap() {
            "M" => {
                let name = event["args"]["name"].as_str().map(str::to_owned);
                match (text("name").as_str(), name) {
                    ("process_name", Some(name)) => {
                        assert!(self.processes.insert(pid, name).is_none());
                    }
                    ("thread_name", Some(name)) => {
                        assert!(self.names.insert(number("tid"), (pid, name)).is_none());
                    }
                    ("process_sort_index" | "thread_sort_index", None) => {}
                    _ => panic!("{event}"),
                }
            }
            "X" => {
                let slice =
                    (ts, ts + number("dur"), text("cat"), text("name"), event["args"].clone());
                self.threads.entry(number("tid")).or_default().push(slice);
            }
            phase @ ("s" | "t" | "f") => {
                assert_eq!(phase == "f", event["bp"] == "e", "{event}");
                assert_eq!((text("name"), text("cat")), ("sample".into(), "sample".into()));
                let flow = (ts, phase.to_owned(), number("tid"));
                self.flows.entry(number("id")).or_default().push(flow);
            }
            "C" => {
                let (_, value) = event["args"].as_object().unwrap().iter().next().unwrap();
                let counter = self.counters.entry((pid, text("name"))).or_default();
                counter.push((ts, value.as_u64().unwrap()));
            }
            other => panic!("{other}: {event}"),
        }
    }

    /// What every trace is: named, nested, joined.
    fn check(&self) {
        for (tid, slices) in &self.threads {
            assert!(self.names.contains_key(tid), "thread {tid} has a name");
            let mut open: Vec<u64> = Vec::new();
            for (start, end, _, name, _) in slices {
                // Closed before, or at, the start of this one.
                while open.last().is_some_and(|end| end <= start) {
                    open.pop();
                }
                assert!(open.last().is_none_or(|around| end <= around), "{name} at {start}");
                open.push(*end);
            }
        }
        let mut pids = self.names.values().map(|(pid, _)| pid);
        assert!(pids.all(|pid| self.processes.contains_key(pid)));
        // A thread is known by its number alone.
        assert!(self.names.keys().all(|tid| !self.processes.contains_key(tid)));
        for (id, flow) in &self.flows {
            let phases: String = flow.iter().map(|(_, phase, _)| phase.as_str()).collect();
            assert!(phases.starts_with('s') && !phases[1..].contains('s'), "{id}: {phases}");
            assert!(!phases[..phases.len() - 1].contains('f'), "{id}: {phases}");
            for (at, _, tid) in flow {
                let there = self.threads[tid].iter().any(|(start, ..)| start == at);
                assert!(there, "flow {id} at {at} is in no slice");
            }
        }
    }

    fn slices(&self, cat: &str) -> impl Iterator<Item = &(u64, u64, String, String, Value)> {
        self.threads.values().flatten().filter(move |(_, _, of, ..)| of == cat)
    }

    fn whole(&self, cat: &str) -> u64 {
        self.slices(cat).filter(|(.., args)| args["ended"] == "whole").count() as u64
    }

    fn ends(&self) -> u64 {
        self.flows.values().flatten().filter(|(_, phase, _)| phase == "f").count() as u64
    }

    fn counter(&self, process: &str, name: &str) -> &[(u64, u64)] {
        let pid = self.processes.iter().find(|(_, of)| *of == process).unwrap().0;
        &self.counters[&(*pid, name.to_owned())]
    }
}

/// Without a warm-up, which would leave the beginning out of the metrics.
const WHOLE_RUN: [&str; 2] = ["--set", "scenario.warmup_steps=0"];

fn simulate(folder: &Path, more: &[&str]) -> String {
    let small = small();
    let start = ["simulate", small.to_str().unwrap(), "--trace", "trace.json"];
    succeed(folder, &[&start, &WHOLE_RUN[..], more].concat())
}

#[test]
fn what_a_trace_counts_the_metrics_count_too() {
    let dir = tempfile::tempdir().unwrap();
    let modes = ["pause_drain", "in_flight", "pause_keep", "rolling"];
    for mode in modes {
        let set = format!("policy_serving.sync_mode={mode}");
        let said = simulate(dir.path(), &["--set", &set, "--format", "json"]);
        let results: Value = serde_json::from_str(&said).unwrap();
        let metric = |name: &str| {
            let value = &results["points"][0]["metrics"][name]["mean"];
            value.as_f64().unwrap_or_else(|| panic!("{name}: {results:#}"))
        };
        let trace = Trace::read(&dir.path().join("trace.json"));
        trace.check();
        let hours = metric("duration_seconds") / 3600.0;
        let near = |what: &str, count: u64, expected: f64| {
            let count = count as f64;
            assert!(
                (count - expected).abs() <= 0.5 + expected * 1e-4,
                "{mode}: {what}: {count}, not {expected}"
            );
        };
        near("steps", trace.whole("step"), metric("steps_per_hour") * hours);
        near("samples", trace.ends(), metric("trained_samples_per_hour") * hours);
        near(
            "windows",
            trace.slices("window").count() as u64,
            metric("closed_windows_per_hour") * hours,
        );
        let learner = trace.counter("trainer", "learner");
        assert_eq!(learner.last().unwrap().1, trace.whole("step"));
        // Slots are taken from the lowest, so that there are as many as turns ran at once.
        let running = trace.counter("scheduler", "running").iter().map(|(_, value)| *value).max();
        assert!(running.unwrap() > 1);
        let mixed = trace.slices("part").any(|(.., name, _)| name.starts_with('v'));
        assert_eq!(mixed, matches!(mode, "in_flight" | "pause_keep"), "{mode}");
    }
}

#[test]
fn a_run_and_its_record_have_one_timeline() {
    let dir = tempfile::tempdir().unwrap();
    let said = simulate(dir.path(), &["--record", "--timeline"]);
    let record = "out/small/simulate/run.record";
    let replayed = succeed(dir.path(), &["replay", record, "--trace", "again.json", "--timeline"]);
    let bytes = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert!(bytes("trace.json") == bytes("again.json"), "the traces differ");
    let of = |text: &str| text[text.find("|0s").unwrap()..].to_owned();
    assert_eq!(of(&said), of(&replayed));
    // Up to an instant: nothing of later.
    let until = ["replay", record, "--until", "20m", "--trace", "early.json"];
    succeed(dir.path(), &until);
    let early = Trace::read(&dir.path().join("early.json"));
    early.check();
    let ends = early.threads.values().flatten().map(|(_, end, ..)| *end);
    assert!(ends.max().unwrap() <= 1_200_000_000);
    assert!(early.slices("turn").any(|(.., args)| args["ended"] == "under way"));
}

#[test]
fn a_small_timeline_is_what_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let set = ["--set", "scenario.steps=2", "--set", "policy_training.batch_size=4", "--timeline"];
    let said = simulate(dir.path(), &set);
    let text = &said[said.find("|0s").unwrap()..];
    blessed::check("tests/data/timeline/small.txt", text);
    let trace = fs::read_to_string(dir.path().join("trace.json")).unwrap();
    blessed::check("tests/data/timeline/small.json", &trace);
}

#[test]
fn a_timeline_leaves_stdout_to_the_format_and_fits_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let small = small();
    let args = ["simulate", small.to_str().unwrap(), "--timeline", "--format", "json"];
    let output = run(dir.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice::<Value>(&output.stdout).expect("stdout is JSON and nothing else");
    let said = stderr(&output);
    for row in
        ["replica 0 ", "replica 1 ", "judge ", "trainer ", "503 ", "outstanding ", "learner "]
    {
        assert!(said.lines().any(|line| line.starts_with(row)), "{row} is not in\n{said}");
    }
    let mut rows = said.lines().take_while(|line| !line.starts_with("wrote "));
    assert!(rows.all(|line| line.chars().count() <= 100), "{said}");
    assert!(!said.contains('\u{1b}'), "{said}");
}

#[test]
fn a_trace_that_cannot_be_written_says_where_to_write_it() {
    let dir = tempfile::tempdir().unwrap();
    let small = small();
    fs::write(dir.path().join("file"), "").unwrap();
    for place in [".", "file/trace.json"] {
        let output = run(dir.path(), &["simulate", small.to_str().unwrap(), "--trace", place]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("--trace"), "{}", stderr(&output));
    }
}
