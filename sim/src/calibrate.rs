//! Calibration: the numbers of a scenario out of what a run measured.
//!
//! ```text
//! RunSource ─► measured ─► estimates (laws, lines, shares, with intervals) ─► scenario, table
//!                              ▲
//! CSV columns ─────────────────┘
//! ```
//!
//! What took time is gathered in one pass over a record ([`measured`]); each latency becomes a law of
//! the [`fit`], or the measured values; [`Calibrated`] is a scenario that says what it was fitted to.

pub mod column;
pub mod estimate;
pub mod fit;
pub mod json;
pub mod measured;
pub mod series;

mod clients;
mod decode;
mod drift;
mod jackknife;
mod judge;
mod learning;
mod loops;
mod missing;
mod write;

use headway_shared::config::Config;
use headway_shared::time::{Span, Time};

use crate::scenario::is_name_letter;
use column::Latency;
use estimate::{Estimates, Item};
use measured::Measured;

/// The most train steps that are dropped at the start where nobody says how many.
const WARMUP_STEPS: usize = 10;
/// And at most this part of them.
const WARMUP_PART: usize = 10;

/// Where sessions come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// As the record shows it.
    #[default]
    Seen,
    /// A fixed population.
    Users,
    /// Independent arrivals.
    Poisson,
    /// When they came.
    Replay,
}

/// A measured column that stands for a latency.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurements {
    /// Of what.
    pub latency: &'static Latency,
    /// Where it comes from, in words.
    pub from: String,
    /// The values.
    pub values: Vec<f64>,
}

/// What a calibration is asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The scenario's name: small letters, digits and dashes. Names of files begin with it.
    pub name: String,
    /// Train steps that are dropped at the start; `None`: a tenth of them, at most 10.
    pub warmup_steps: Option<u32>,
    /// Where sessions come from.
    pub clients: Choice,
    /// Columns, each instead of what the record says of it.
    pub columns: Vec<Measurements>,
}

/// What a scenario is called that is fitted to the record of a file: its stem, in the letters of such
/// names.
#[must_use]
pub fn name_of(stem: &str) -> String {
    let letters = stem.to_lowercase();
    let letters = letters.chars().map(|letter| if is_name_letter(letter) { letter } else { '-' });
    format!("{}-calibrated", letters.collect::<String>().trim_matches('-'))
}

/// Why nothing can be fitted to a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrateError {
    /// It has no inputs.
    #[error("the record has no inputs\nhelp: name the record of a run in which something happened")]
    Empty,
    /// It has no more train steps than are dropped.
    #[error(
        "the record has {done} train steps, and {dropped} are dropped at the start\n\
         help: write --warmup-steps {}", done / 10
    )]
    WarmUp {
        /// Train steps that made a version.
        done: usize,
        /// How many are dropped.
        dropped: usize,
    },
}

/// A scenario, fitted.
#[derive(Clone, Debug)]
pub struct Calibrated {
    /// What was estimated, in the order of the scenario.
    pub items: Vec<Item>,
    /// What could not be seen, or was assumed.
    pub notes: Vec<String>,
    /// The scenario, TOML.
    pub scenario: String,
    /// Files of columns beside it: name and bytes.
    pub files: Vec<(String, Vec<u8>)>,
}

/// What is known of the record.
struct Head {
    name: String,
    from: String,
    sources: Vec<String>,
    config: Config,
    steps: usize,
    warmup: usize,
    lasted: Span,
}

/// Fits a scenario to a record that `from` names and to columns; without a record to columns alone,
/// and what they do not say is assumed.
///
/// # Errors
/// There is nothing in the record to fit to.
pub fn calibrate(
    record: Option<(&str, &Measured)>,
    options: &Options,
) -> Result<Calibrated, CalibrateError> {
    let mut estimates = Estimates::new(&options.name);
    let mut sources = Vec::new();
    let mut head = Head {
        name: options.name.clone(),
        from: String::new(),
        sources: Vec::new(),
        config: Config::default(),
        steps: 0,
        warmup: 0,
        lasted: Span::ZERO,
    };
    if let Some((from, measured)) = record {
        let (warmup, since) = warm_up(measured, options.warmup_steps)?;
        from_record(&mut estimates, measured, from, since, options);
        head.config = measured.config.clone();
        (head.steps, head.warmup) = (measured.steps.done(), warmup);
        head.lasted = measured.end.since(measured.begin);
        from.clone_into(&mut head.from);
        sources.push(format!(
            "fitted to {from}: {} inputs until {}, {} train steps of which the first {warmup} were \
             dropped, decisions {}",
            measured.decisions.inputs, measured.end, head.steps, measured.decisions.digest
        ));
        if measured.reconfigured {
            estimates.note(
                "the configuration was changed while the run went on: this is the one that it began \
                 with",
            );
        }
    } else {
        head.config.reward_judging.judge_needs = headway_shared::config::JudgeNeeds::Turn;
    }
    for column in &options.columns {
        instead(&mut estimates, column);
        sources.push(format!("{} fitted to {}", column.latency.what, column.from));
    }
    if head.from.is_empty() {
        let from: Vec<&str> = options.columns.iter().map(|column| column.from.as_str()).collect();
        head.from = from.join(", ");
    }
    head.sources = sources;
    let assumed = missing::assume(&mut estimates, record.is_some());
    write::order(&mut estimates.items);
    Ok(Calibrated {
        scenario: write::scenario(&head, &estimates, &assumed),
        files: write::files(&estimates.items),
        items: estimates.items,
        notes: [estimates.notes, assumed].concat(),
    })
}

/// How many train steps are dropped, and from when on the rest is.
fn warm_up(measured: &Measured, asked: Option<u32>) -> Result<(usize, Time), CalibrateError> {
    if measured.decisions.inputs == 0 {
        return Err(CalibrateError::Empty);
    }
    let done = measured.steps.done();
    let dropped = asked.map_or((done / WARMUP_PART).min(WARMUP_STEPS), |steps| steps as usize);
    if dropped > 0 && dropped >= done {
        return Err(CalibrateError::WarmUp { done, dropped });
    }
    Ok((dropped, measured.steps.ended(dropped).unwrap_or(measured.begin)))
}

fn from_record(
    estimates: &mut Estimates,
    measured: &Measured,
    from: &str,
    since: Time,
    options: &Options,
) {
    loops::serving(estimates, measured, since);
    clients::clients(estimates, measured, since, options.clients);
    loops::environments(estimates, measured, since);
    let learned = learning::learning(&measured.batches.batches);
    judge::judge(estimates, measured, since, learned.is_some());
    learned.iter().for_each(|learned| learned.add_to(estimates));
    loops::trainer(estimates, measured, since);
    loops::weights(estimates, measured, since);
    loops::faults(estimates, measured, since);
    drift::drift(estimates, measured, from, learned.as_ref());
}

/// A column stands for what the record says of the same.
fn instead(estimates: &mut Estimates, column: &Measurements) {
    let Latency { what, table, key, unit, .. } = *column.latency;
    // A train step by tokens is another way to say how long it takes.
    let same = |item: &Item| {
        item.table == table
            && item.values.iter().any(|(of, _)| *of == key || (key == "step" && *of == "base_sec"))
    };
    estimates.items.retain(|item| !same(item));
    let values = series::Values { values: column.values.clone(), cut: 0 };
    estimates.law_within(what, table, key, unit, column.latency.limits(), values);
}
