//! A timeline as a trace that <https://ui.perfetto.dev> opens.
//!
//! The format is the JSON of Chrome's trace events: complete slices (`X`), counters (`C`), flows
//! (`s`, `t`, `f`) and names (`M`), in microseconds. A reader sorts them by time, so that they can be
//! written as they come: a slice when it is over. Slices of one lane never overlap, and what lies
//! within another is cut at whole microseconds as that is.
//!
//! Perfetto colours a slice by its name without the numbers in it, and tells threads apart by their
//! number alone, whatever their process: hence the [letter](version_name) behind a version, and
//! threads that are numbered through.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use headway_shared::id::SampleId;
use headway_shared::time::Time;
use headway_shared::timeline::{Counter, Flow, Lane, Sink, Slice, WHOLE, What};
use serde_json::{Map, Value, json};

/// Processes of the trace: rows of the timeline that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Process {
    Scheduler,
    Replica(u32),
    Environments,
    Judge,
    Trainer,
}

impl Process {
    /// The number is the place, too: replicas stand behind the scheduler, the others behind them.
    fn pid(self) -> u64 {
        const OTHERS: u64 = 1 << 20;
        match self {
            Self::Scheduler => 1,
            Self::Replica(replica) => 2 + u64::from(replica),
            Self::Environments => OTHERS,
            Self::Judge => OTHERS + 1,
            Self::Trainer => OTHERS + 2,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Scheduler => "scheduler".to_owned(),
            Self::Replica(replica) => format!("replica {replica}"),
            Self::Environments => "environments".to_owned(),
            Self::Judge => "judge".to_owned(),
            Self::Trainer => "trainer".to_owned(),
        }
    }
}

/// The thread of a lane: its process, its name, and its place there.
fn thread(lane: Lane) -> (Process, String, u32) {
    match lane {
        Lane::Window => (Process::Scheduler, "503".to_owned(), 0),
        Lane::Weights { replica } => (Process::Replica(replica.0), "weights".to_owned(), 0),
        Lane::Turn { replica, slot } => {
            (Process::Replica(replica.0), format!("slot {slot}"), slot.saturating_add(1))
        }
        Lane::Environment { slot } => (Process::Environments, format!("slot {slot}"), slot),
        Lane::Judge { slot } => (Process::Judge, format!("slot {slot}"), slot),
        Lane::Trainer => (Process::Trainer, "train steps".to_owned(), 0),
        Lane::Export => (Process::Trainer, "exports".to_owned(), 1),
    }
}

/// A weight version as slices are named: `v27 b`. The letter is what gives it its colour.
#[must_use]
pub fn version_name(version: u32) -> String {
    let letter = char::from(b'a' + (version % 26) as u8);
    format!("v{version} {letter}")
}

/// Writes a trace while a run goes on.
#[derive(Debug)]
pub struct Perfetto<W: Write> {
    out: W,
    /// The first thing that went wrong; after it nothing is written.
    error: Option<io::Error>,
    events: u64,
    processes: BTreeSet<Process>,
    threads: BTreeMap<Lane, u64>,
}

impl<W: Write> Perfetto<W> {
    /// A trace without anything in it.
    pub fn new(out: W) -> Self {
        Self { out, error: None, events: 0, processes: BTreeSet::new(), threads: BTreeMap::new() }
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// The first thing that went wrong when it was written.
    pub fn finish(mut self) -> io::Result<W> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let start = if self.events == 0 { "{\"traceEvents\":[" } else { "" };
        writeln!(self.out, "{start}\n],\"displayTimeUnit\":\"ms\"}}")?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn event(&mut self, event: &Value) {
        if self.error.is_some() {
            return;
        }
        let before = if self.events == 0 { "{\"traceEvents\":[\n" } else { ",\n" };
        self.events += 1;
        self.error = write!(self.out, "{before}{event}").err();
    }

    fn name(&mut self, what: &str, pid: u64, tid: u64, name: &str, place: u64) {
        let of = what;
        self.event(&json!({
            "ph": "M", "ts": 0, "pid": pid, "tid": tid, "name": format!("{of}_name"),
            "args": { "name": name },
        }));
        self.event(&json!({
            "ph": "M", "ts": 0, "pid": pid, "tid": tid, "name": format!("{of}_sort_index"),
            "args": { "sort_index": place },
        }));
    }

    /// The number of a process, which is named when it is first needed.
    fn process(&mut self, process: Process) -> u64 {
        let pid = process.pid();
        if self.processes.insert(process) {
            self.name("process", pid, pid, &process.name(), pid);
        }
        pid
    }

    fn thread(&mut self, lane: Lane) -> (u64, u64) {
        const FIRST: u64 = 1 << 21;
        let (process, name, place) = thread(lane);
        let pid = self.process(process);
        if let Some(tid) = self.threads.get(&lane) {
            return (pid, *tid);
        }
        let tid = FIRST + self.threads.len() as u64;
        self.threads.insert(lane, tid);
        self.name("thread", pid, tid, &name, u64::from(place));
        (pid, tid)
    }

    fn span(&mut self, at: (u64, u64), times: (Time, Time), name: &str, cat: &str, args: &Value) {
        let (start, end) = (micros(times.0), micros(times.1));
        self.event(&json!({
            "ph": "X", "ts": start, "dur": end.saturating_sub(start), "pid": at.0, "tid": at.1,
            "name": name, "cat": cat, "args": args,
        }));
    }

    fn flow(&mut self, at: (u64, u64), ts: Time, sample: SampleId, flow: Flow) {
        let mut event = json!({
            "ph": match flow { Flow::Begin => "s", Flow::Step => "t", Flow::End => "f" },
            "ts": micros(ts), "pid": at.0, "tid": at.1, "name": "sample", "cat": "sample",
            "id": sample.0,
        });
        if flow == Flow::End {
            // It ends in the slice around it, not in the next one.
            event["bp"] = "e".into();
        }
        self.event(&event);
    }
}

impl<W: Write> Sink for Perfetto<W> {
    fn slice(&mut self, slice: &Slice<'_>) {
        let at = self.thread(slice.lane);
        let Slice { start, end, what, ended, flows, .. } = *slice;
        let (name, cat, mut args) = words(&what);
        let name = if ended == WHOLE { name } else { format!("{name} {ended}") };
        args.insert("ended".to_owned(), ended.into());
        self.span(at, (start, end), &name, cat, &Value::Object(args));
        // Right behind their slice, at its start: what is drawn in it comes after them.
        for (sample, flow) in flows {
            self.flow(at, start, *sample, *flow);
        }
        let parts: Vec<(Time, Time, String)> = match what {
            What::Turn { swaps: [], .. } => Vec::new(),
            What::Turn { version, swaps, .. } => {
                let starts = std::iter::once((start, version)).chain(swaps.iter().copied());
                let ends = swaps.iter().map(|(at, _)| *at).chain([end]);
                starts.zip(ends).map(|((from, v), to)| (from, to, version_name(v))).collect()
            }
            What::Load { transferred: Some(at), .. } => {
                vec![(start, at, "transfer".to_owned()), (at, end, "load".to_owned())]
            }
            _ => Vec::new(),
        };
        for (from, to, name) in parts {
            self.span(at, (from, to), &name, "part", &json!({}));
        }
    }

    fn counter(&mut self, at: Time, counter: Counter, value: u32) {
        let (process, name, unit) = match counter {
            Counter::RolloutQueue => (Process::Scheduler, "rollout queue", "samples"),
            Counter::OutputQueue => (Process::Scheduler, "output queue", "samples"),
            Counter::Outstanding => (Process::Scheduler, "outstanding", "samples"),
            Counter::Parked => (Process::Scheduler, "parked", "samples"),
            Counter::Running => (Process::Scheduler, "running", "turns"),
            Counter::Held => (Process::Scheduler, "held", "requests"),
            Counter::Bound => (Process::Scheduler, "bound", "versions"),
            Counter::Votes => (Process::Judge, "in flight", "votes"),
            Counter::Learner => (Process::Trainer, "learner", "version"),
            Counter::Deploy(replica) => (Process::Replica(replica.0), "deploy", "version"),
        };
        let pid = self.process(process);
        self.event(&json!({
            "ph": "C", "ts": micros(at), "pid": pid, "name": name, "args": { unit: value },
        }));
    }
}

/// Whole microseconds: a part of one would be read as a float, and cut there.
fn micros(at: Time) -> u64 {
    at.as_nanos() / 1000
}

/// A slice's name, category and arguments.
fn words(what: &What<'_>) -> (String, &'static str, Map<String, Value>) {
    let (name, cat, args) = match *what {
        What::Turn { request, attempt, sample, session, tokens, version, .. } => {
            let args = json!({
                "request": request.0, "attempt": attempt, "sample": sample.map(|sample| sample.0),
                "session": session.map(|session| session.0), "tokens": tokens, "version": version,
            });
            (version_name(version), "turn", args)
        }
        What::Environment { session, attempt } => {
            let args = json!({ "session": session.0, "attempt": attempt });
            ("environment".to_owned(), "environment", args)
        }
        What::Vote { vote, sample } => {
            let args = json!({ "vote": vote.0, "sample": sample.map(|sample| sample.0) });
            ("vote".to_owned(), "vote", args)
        }
        What::Step { step, learner, samples } => {
            let args = json!({ "step": step.0, "learner": learner, "samples": samples });
            // It has the colour of what it makes.
            (version_name(learner.saturating_add(1)), "step", args)
        }
        What::Export { publication, version } => {
            (version_name(version), "export", json!({ "publication": publication.0 }))
        }
        What::Load { publication, version, .. } => {
            (version_name(version), "load", json!({ "publication": publication.0 }))
        }
        What::Window { sync: true } => ("sync window".to_owned(), "window", json!({})),
        What::Window { sync: false } => ("closed".to_owned(), "window", json!({})),
    };
    let mut map = Map::new();
    for (key, value) in args.as_object().into_iter().flatten().filter(|(_, v)| !v.is_null()) {
        map.insert(key.clone(), value.clone());
    }
    (name, cat, map)
}
