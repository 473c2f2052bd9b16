//! The timeline of a run, as a trace for Perfetto and as text for the terminal.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use headway_shared::action::Action;
use headway_shared::core::Scheduler;
use headway_shared::input::Input;
use headway_shared::replay::{Witness, travel};
use headway_shared::time::{Span, Time};
use headway_shared::timeline::{Counter, Sink, Slice, Tracer};
use headway_sim::report::folder::Folder;
use headway_sim::report::gantt::Gantt;
use headway_sim::report::perfetto::Perfetto;

use crate::failure::Failure;
use crate::whole_file::WholeFile;
use crate::{source, terminal};

/// What is wanted of the timeline of a run.
#[derive(clap::Args, Clone)]
pub(crate) struct Options {
    /// Write the timeline of the run to a file that <https://ui.perfetto.dev> opens
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Show the timeline of the run as text, as wide as the terminal
    #[arg(long)]
    timeline: bool,
}

impl Options {
    /// Whether any is.
    pub(crate) fn is_wanted(&self) -> bool {
        self.trace.is_some() || self.timeline
    }

    /// Goes through a recorded run for its timeline, up to an instant or to its end; gives it as text,
    /// empty where none is wanted.
    ///
    /// # Errors
    /// The record cannot be read, or the trace not be written.
    pub(crate) fn of_record(&self, record: &Path, until: Option<Span>) -> Result<String, Failure> {
        if !self.is_wanted() {
            return Ok(String::new());
        }
        let run = source::open_any(record)?;
        let wrong = |error| source::wrong(record, &error);
        let mut timeline = self.begin(&run.core().map_err(wrong)?)?;
        let until = until.map(|until| Time::ZERO + until);
        travel(run.as_ref(), until, &mut [&mut timeline]).map_err(wrong)?;
        timeline.finish()
    }

    /// Begins a timeline of a run at `core`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn begin(&self, core: &Scheduler) -> Result<Timeline, Failure> {
        let trace = self.trace.as_deref().map(Trace::create).transpose()?;
        let sinks = Sinks { trace, gantt: self.timeline.then(Gantt::default) };
        Ok(Timeline { tracer: Tracer::new(core), sinks, end: core.now() })
    }
}

/// A timeline of a run that goes on.
pub(crate) struct Timeline {
    tracer: Tracer,
    sinks: Sinks,
    end: Time,
}

impl Timeline {
    /// As [`Tracer::observe`].
    pub(crate) fn observe(
        &mut self,
        now: Time,
        input: &Input,
        actions: &[Action],
        core: &Scheduler,
    ) {
        self.end = now;
        self.tracer.observe(now, input, actions, core, &mut self.sinks);
    }

    /// Puts the trace in its place and says where; the timeline as text, empty where none is wanted.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub(crate) fn finish(self) -> Result<String, Failure> {
        let Self { tracer, mut sinks, end } = self;
        tracer.finish(&mut sinks);
        if let Some(trace) = sinks.trace {
            trace.commit()?;
        }
        let text = sinks.gantt.map(|gantt| gantt.text(end, terminal::width()));
        Ok(text.unwrap_or_default())
    }
}

impl Witness for Timeline {
    fn after(&mut self, _: u64, at: Time, input: &Input, actions: &[Action], core: &Scheduler) {
        self.observe(at, input, actions, core);
    }
}

struct Sinks {
    trace: Option<Trace>,
    gantt: Option<Gantt>,
}

impl Sink for Sinks {
    fn slice(&mut self, slice: &Slice<'_>) {
        if let Some(trace) = &mut self.trace {
            trace.perfetto.slice(slice);
        }
        if let Some(gantt) = &mut self.gantt {
            gantt.slice(slice);
        }
    }

    fn counter(&mut self, at: Time, counter: Counter, value: u32) {
        if let Some(trace) = &mut self.trace {
            trace.perfetto.counter(at, counter, value);
        }
        if let Some(gantt) = &mut self.gantt {
            gantt.counter(at, counter, value);
        }
    }
}

/// A trace on its way to its place.
struct Trace {
    path: PathBuf,
    folder: Folder,
    perfetto: Perfetto<BufWriter<File>>,
}

impl Trace {
    fn create(path: &Path) -> Result<Self, Failure> {
        let to = whole_file(path);
        let (mut folder, name) = to.stage()?;
        let file = folder.create(&name).map_err(|error| to.unwritable(&error))?;
        Ok(Self { path: path.into(), folder, perfetto: Perfetto::new(BufWriter::new(file)) })
    }

    fn commit(self) -> Result<(), Failure> {
        let Self { path, folder, perfetto } = self;
        let written = perfetto.finish().and_then(|_| folder.commit());
        written.map_err(|error| whole_file(&path).unwritable(&error))?;
        let path = path.display();
        terminal::remark(&format!(
            "wrote the timeline to {path}: open it at https://ui.perfetto.dev"
        ));
        Ok(())
    }
}

fn whole_file(path: &Path) -> WholeFile<'_> {
    WholeFile { path, option: "--trace", example: "trace.json" }
}
