//! Scenarios: a world, the scheduling sections exactly as a live configuration has them, and how
//! long to run.
//!
//! A scenario is a TOML file. A live `config.toml` and `settings.json` can be laid over it ("what
//! would my present settings do?"), and `--set key=value` over all.

mod calibration;
mod capacity;
mod check;
mod clients;
mod columns;
mod distribution;
mod drift;
mod faults;
mod plan_table;
mod resources;
mod schema;
mod serving;
mod words;
mod world;

pub use calibration::{Calibration, Parameter};
pub(crate) use capacity::Loads;
pub use resources::{Layout, PlanSettings, Resources};
pub use schema::asked;

use std::path::{Path, PathBuf};

use headway_shared::config::{
    Config, Diagnostic, Diagnostics, Document, Findings, GuardSettings, Layers, Reader, Sources,
    Table, check_sections, has_settings, parse_sections, parse_settings,
};
use headway_shared::digest::Digest;
use headway_shared::time::Span;

use self::columns::Columns;
use crate::drift::Model;
use crate::rates::RateTable;
use crate::world::settings::WorldConfig;

/// What is dropped from the metrics at the start of a run: until both have passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warmup {
    /// Train steps.
    pub steps: u32,
    /// Simulated time.
    pub time: Span,
}

/// A named variant of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What it changes, each as `key=value`.
    pub set: Vec<String>,
}

/// A scenario has no case of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the scenario has no case `{name}`\nhelp: {}", match known.as_slice() {
    [] => "it has no cases at all: set keys one by one".to_owned(),
    known => format!("its cases are {}", known.join(", ")),
})]
pub struct UnknownCase {
    /// What was asked for.
    pub name: String,
    /// The names that there are.
    pub known: Vec<String>,
}

/// A scenario, ready to run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Small letters, digits and dashes.
    pub name: String,
    /// One line.
    pub title: String,
    /// What it is about.
    pub description: String,
    /// Where its numbers come from.
    pub sources: Vec<String>,
    /// Which of its numbers are assumed.
    pub assumed: Vec<String>,
    /// The seed of its random streams.
    pub seed: u64,
    /// A run ends at this time at the latest.
    pub duration: Span,
    /// A run ends after so many train steps at the latest; `None`: at its time only.
    pub steps: Option<u32>,
    /// What is dropped from the metrics.
    pub warmup: Warmup,
    /// How many runs make a result where nobody says how many.
    pub replications: u32,
    /// What a sweep varies where nobody says what, each as `key=values`.
    pub sweep: Vec<String>,
    /// Its named variants.
    pub cases: Vec<Case>,
    /// The scheduling sections.
    pub config: Config,
    /// `[world]`
    pub world: WorldConfig,
    /// `[world.drift]`: how far policies move apart. No decision depends on it but those of an
    /// adaptive bound.
    pub drift: Option<Model>,
    /// How many GPUs the loops of `[world]` take; no run depends on it.
    pub resources: Resources,
    /// `[plan]`; no run depends on it.
    pub plan: PlanSettings,
    /// `[guard]`: what a run is held to.
    pub guard: Option<GuardSettings>,
    /// `[calibration]`: what its numbers were fitted to; no run depends on it.
    pub calibration: Option<Calibration>,
    /// The table of rates that `[world.serving]` names: it says how many GPUs a replica has, and for
    /// what lengths its decode law holds; `None` where the law is written out.
    pub rates: Option<RateTable>,
    layers: Layers,
    base: PathBuf,
}

/// What the `[scenario]` table says.
struct Head {
    name: String,
    title: String,
    description: String,
    sources: Vec<String>,
    assumed: Vec<String>,
    seed: u64,
    duration: Span,
    steps: Option<u32>,
    warmup: Warmup,
    replications: u32,
    sweep: Vec<String>,
    cases: Vec<Case>,
}

impl Scenario {
    /// Reads a scenario from its texts, lowest first; a path in it starts from `base`. Returns it
    /// with what is suspicious about it.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(layers: &Layers, base: &Path) -> Result<(Self, Diagnostics), Diagnostics> {
        let mut document = layers.merge()?;
        if let Some(other) = no_scenario(&document) {
            document.findings.push(other);
            let (Ok(diagnostics) | Err(diagnostics)) = document.finish();
            return Err(diagnostics);
        }
        let Parts { head, config, world, plan, calibration, guard } =
            Parts::read(&mut document, layers, base);
        let world::Read { config: world, rates, resources, drift } = world;
        check_sections(&document, &config);
        if !document.findings.has_errors() {
            check::check(&document, &config, &world, drift.is_some());
        }
        let Head { name, title, description, sources, assumed, .. } = head;
        let scenario = Self {
            name,
            title,
            description,
            sources,
            assumed,
            seed: head.seed,
            duration: head.duration,
            steps: head.steps,
            warmup: head.warmup,
            replications: head.replications,
            sweep: head.sweep,
            cases: head.cases,
            config,
            world,
            drift,
            resources,
            plan,
            calibration,
            guard,
            rates,
            layers: layers.clone(),
            base: base.to_owned(),
        };
        document.finish().map(|warnings| (scenario, warnings))
    }

    /// The scenario with one more `key=value` over all that it was read from.
    ///
    /// # Errors
    /// What is wrong with the assignment, or with the scenario that comes of it.
    pub fn with_set(&self, assignment: &str) -> Result<(Self, Diagnostics), Diagnostics> {
        self.with_sets(&[assignment.to_owned()])
    }

    /// The same with several.
    ///
    /// # Errors
    /// What is wrong with an assignment, or with the scenario that comes of them.
    pub fn with_sets(&self, assignments: &[String]) -> Result<(Self, Diagnostics), Diagnostics> {
        Self::load(&assignments.iter().fold(self.layers.clone(), Layers::set), &self.base)
    }

    /// An error about the value of a key, at the place where it is written.
    #[must_use]
    pub fn error_at(&self, path: &str, message: &str, help: &str) -> Diagnostics {
        let document = match self.layers.merge() {
            Ok(document) => document,
            Err(diagnostics) => return diagnostics,
        };
        check::place(&document.root, path).into_iter().for_each(|origin| {
            document.findings.push(Diagnostic::error(origin, message).help(help));
        });
        let (Ok(diagnostics) | Err(diagnostics)) = document.finish();
        diagnostics
    }

    /// One of its named variants.
    ///
    /// # Errors
    /// It has none of that name; the message names those that it has.
    pub fn case(&self, name: &str) -> Result<&Case, UnknownCase> {
        let found = self.cases.iter().find(|case| case.name == name);
        found.ok_or_else(|| UnknownCase {
            name: name.to_owned(),
            known: self.cases.iter().map(|case| case.name.clone()).collect(),
        })
    }

    /// The digest of everything that decides what a run does, but for the seed. Texts about the
    /// scenario and names of files are no part of it; the numbers in the files are.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let Self { duration, steps, warmup, config, world, guard, .. } = self;
        // Derived `Debug` shows every field, and numbers in their shortest exact form.
        let mut text =
            format!("{duration:?} {steps:?} {warmup:?} {world:?} {}", config.canonical_json());
        if let Some(drift) = &self.drift {
            text += &format!(" {:?}", drift.without_texts());
        }
        if let Some(guard) = guard {
            text += &format!(" {guard:?}");
        }
        Digest::of(text.as_bytes())
    }
}

/// What the tables of a scenario say, each for itself.
struct Parts {
    head: Head,
    config: Config,
    world: world::Read,
    plan: PlanSettings,
    calibration: Option<Calibration>,
    guard: Option<GuardSettings>,
}

impl Parts {
    fn read(document: &mut Document, layers: &Layers, base: &Path) -> Self {
        let Document { sources, root, findings } = document;
        let mut reader = Reader::new(root, sources.start(), findings);
        let head = head(reader.table("scenario"));
        let config = parse_sections(&mut reader);
        if has_settings(root) {
            settings(&mut reader, &config, root, (sources, findings));
        }
        let mut columns = Columns::new(base, sources, findings);
        let variant = |set: &[String]| variant(layers, set);
        let world = world::read(&mut reader, &mut columns, findings, &variant);
        let plan = plan_table::read(reader.table("plan"), findings);
        let calibration = calibration::read(&mut reader);
        let guard = GuardSettings::read(&mut reader, &config);
        reader.finish();
        Self { head, config, world, plan, calibration, guard }
    }
}

/// A configuration where a scenario is wanted: one finding, not one for each key that it lacks.
fn no_scenario(document: &Document) -> Option<Diagnostic> {
    let Document { sources, root, .. } = document;
    let has = |table: &str| root.get(table).is_some_and(|entry| entry.key_origin.is_in_file());
    if has("scenario") || has("world") {
        return None;
    }
    let start = sources.start();
    let message = "this is no scenario: it has neither [scenario] nor [world]";
    Some(Diagnostic::error(start, message).help(format!(
        "lay a configuration over a scenario: headway simulate scenarios/openclaw.toml --config {}",
        sources.name(start.source)
    )))
}

/// The users' `settings.json`, as far as it concerns a simulation.
fn settings(
    reader: &mut Reader<'_>,
    config: &Config,
    root: &Table,
    (sources, findings): (&Sources, &Findings),
) {
    let starts_open = parse_settings(reader, config, sources.json()).serving.submission_enabled;
    if let Some(entry) = root.find("serving.submission_enabled").filter(|_| !starts_open) {
        let message = "`submission_enabled` is false: a live run starts paused and trains nothing \
                       until someone resumes it; the simulation starts as if it were true";
        let help = "write `\"submission_enabled\": true` once requests are to be trained on";
        findings.push(Diagnostic::warning(entry.node.origin, message).help(help));
    }
}

/// The scheduling sections under some more assignments.
fn variant(layers: &Layers, set: &[String]) -> Result<Config, Diagnostics> {
    let document = set.iter().fold(layers.clone(), Layers::set).merge()?;
    let config = parse_sections(&mut document.reader());
    check_sections(&document, &config);
    document.finish().map(|_| config)
}

/// Whether a letter may stand in a scenario's name: small letters, digits and dashes.
#[must_use]
pub const fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-'
}

/// Whether a text is a scenario's name.
#[must_use]
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_name_letter)
}

fn head(mut table: Reader<'_>) -> Head {
    table.require("name", "\"my-scenario\"");
    let name = table.string("name", "scenario");
    if !is_name(&name) {
        table.error(
            "name",
            format!("{name:?} is no name of a scenario"),
            "write small letters, digits and dashes: results go to a folder of that name",
        );
    }
    let steps = table.u32("steps", 0, 0..=u32::MAX);
    let limited = table.has("duration_sec") || steps > 0;
    if !limited {
        let key = if table.has("steps") { "steps" } else { "" };
        table.error(
            key,
            "nothing ends this scenario",
            "add `duration_sec = 86400` or `steps = 200`",
        );
    }
    let head = Head {
        name,
        title: table.string("title", ""),
        description: table.string("description", ""),
        sources: table.strings("sources"),
        assumed: table.strings("assumed"),
        seed: table.u64("seed", 1, 0..=u64::MAX),
        duration: table.span_sec("duration_sec", Span::MAX),
        steps: (steps > 0).then_some(steps),
        warmup: Warmup {
            steps: table.u32("warmup_steps", 0, 0..=u32::MAX),
            time: table.span_sec("warmup_sec", Span::ZERO),
        },
        replications: table.u32("replications", 8, 1..=100_000),
        sweep: table.strings("sweep"),
        cases: table.tables("cases").into_iter().map(case).collect(),
    };
    check_warm_up(&table, &head);
    table.finish();
    head
}

/// Something of the run is left behind its warm-up.
fn check_warm_up(table: &Reader<'_>, head: &Head) {
    let over = "the run is over before its warm-up";
    if head.duration == Span::ZERO {
        let help = "write `duration_sec = 86400`, or leave it out where `steps` ends the run";
        return table.error("duration_sec", "a run of no time is none", help);
    }
    if let Some(steps) = head.steps.filter(|steps| head.warmup.steps >= *steps) {
        let warmup = head.warmup.steps;
        let message = format!("{over} of {warmup} train steps: it ends after {steps}");
        let help = format!(
            "write `warmup_steps = {}` or less, or let the run make more `steps`",
            steps - 1
        );
        table.error("warmup_steps", message, help);
    }
    if head.warmup.time >= head.duration {
        let message = format!("{over} of {}: it ends after {}", head.warmup.time, head.duration);
        let help = "write a shorter `warmup_sec`, or a longer `duration_sec`";
        table.error("warmup_sec", message, help);
    }
}

fn case(mut table: Reader<'_>) -> Case {
    table.require("name", "\"row-1\"");
    table.require("set", "[\"batch_size=32\"]");
    let case = Case { name: table.string("name", ""), set: table.strings("set") };
    table.finish();
    case
}
