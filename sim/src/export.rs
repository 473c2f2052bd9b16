//! The train steps of a recorded run, live or simulated, as a table and as an event file.

use std::collections::{BTreeMap, BTreeSet};

use headway_shared::core::{Fate, Resolved, Scheduler};
use headway_shared::id::StepId;
use headway_shared::input::Input;
use headway_shared::source::{RunSource, SourceError, follow};
use headway_shared::time::Time;

use crate::report::csv::Csv;
use crate::report::number;
use crate::report::tensorboard::EventFile;

/// What the core knows of each step, in the order of the table. The names are those of
/// `docs/metrics.md` where they are metrics there.
const COLUMNS: [&str; 16] = [
    "samples",
    "tokens",
    "staleness_head_mean",
    "staleness_head_max",
    "staleness_token_mean",
    "age_seconds_mean",
    "discarded",
    "refused",
    "rollout_queue",
    "output_queue",
    "running",
    "outstanding",
    "parked",
    "replicas_up",
    "publish_lag",
    "bound",
];

/// A step that made a version.
#[derive(Clone, Debug)]
struct Row {
    step: StepId,
    /// The version that it made.
    version: u32,
    at: Time,
    values: [Option<f64>; COLUMNS.len()],
}

/// The steps of a run that made a version, in their order.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    rows: Vec<Row>,
    /// What the trainer reported of the whole step, by step and name.
    reported: BTreeMap<StepId, BTreeMap<String, f64>>,
}

/// Sums since the step before.
#[derive(Default)]
struct Since {
    samples: u64,
    tokens: u64,
    head: u64,
    head_max: u32,
    token_sum: u64,
    age: f64,
    discarded: u64,
    /// The ledger's count when the step before ended.
    refused: u64,
}

impl Since {
    fn see(&mut self, resolved: &[Resolved]) {
        for Resolved { sample, fate, .. } in resolved {
            if *fate != Fate::Trained {
                self.discarded += 1;
                continue;
            }
            self.samples += 1;
            self.tokens += u64::from(sample.tokens);
            self.head += u64::from(sample.staleness_head());
            self.head_max = self.head_max.max(sample.staleness_head());
            self.token_sum += sample.staleness_token_sum();
            self.age += sample.age().as_secs_f64();
        }
    }

    fn values(&self, core: &Scheduler) -> [Option<f64>; COLUMNS.len()] {
        let gauges = core.gauges();
        let mean = |sum: f64, of: u64| (of > 0).then(|| sum / of as f64);
        let count = |count: u32| Some(f64::from(count));
        let up = gauges.replicas_up;
        [
            Some(self.samples as f64),
            Some(self.tokens as f64),
            mean(self.head as f64, self.samples),
            (self.samples > 0).then(|| f64::from(self.head_max)),
            mean(self.token_sum as f64, self.tokens),
            mean(self.age, self.samples),
            Some(self.discarded as f64),
            Some(core.ledger().refused_total().saturating_sub(self.refused) as f64),
            count(gauges.rollout_queue),
            count(gauges.output_queue),
            count(gauges.running),
            count(gauges.outstanding),
            count(gauges.parked),
            count(up),
            (up > 0).then(|| f64::from(gauges.publish_lag_sum) / f64::from(up)),
            count(gauges.bound),
        ]
    }
}

impl Steps {
    /// Reads a recorded run. What it discarded and refused belongs to the step that ended next.
    ///
    /// # Errors
    /// The record cannot be read to its end.
    pub fn of_run(source: &dyn RunSource) -> Result<Self, SourceError> {
        let mut rows = Vec::new();
        let mut since =
            Since { refused: source.core()?.ledger().refused_total(), ..Since::default() };
        follow(source, &mut |at, input, _, core| {
            since.see(core.resolved());
            // A step that was given up may still end: it made no version and trained no sample.
            let Input::StepEnded { step, ok: true } = input else { return };
            if since.samples == 0 {
                return;
            }
            let version = core.learner().number();
            rows.push(Row { step: *step, version, at, values: since.values(core) });
            since = Since { refused: core.ledger().refused_total(), ..Since::default() };
        })?;
        let mut reported = BTreeMap::<StepId, BTreeMap<String, f64>>::new();
        for said in source.reported()? {
            if said.staleness.is_none() {
                reported.entry(said.step).or_default().insert(said.name, said.value);
            }
        }
        Ok(Self { rows, reported })
    }

    /// There is no step in it that made a version.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// What the trainer reported of any step, in the order of names.
    fn names(&self) -> BTreeSet<&str> {
        let names = self.rows.iter().filter_map(|row| self.reported.get(&row.step));
        names.flat_map(|reported| reported.keys().map(String::as_str)).collect()
    }

    fn reported(&self, row: &Row, name: &str) -> Option<f64> {
        self.reported.get(&row.step)?.get(name).copied()
    }

    /// A row per step: `version` is the one that it made, `time_sec` when, since the run's start.
    /// What the trainer reported has its own names, each behind `trainer/`.
    #[must_use]
    pub fn table(&self) -> Csv {
        let names = self.names();
        let own = ["version", "time_sec"].into_iter().chain(COLUMNS).map(str::to_owned);
        let mut csv = Csv::new(own.chain(names.iter().map(|name| format!("trainer/{name}"))));
        for row in &self.rows {
            let mut cells = vec![row.version.to_string(), number::text(row.at.as_secs_f64())];
            cells.extend(row.values.map(number::cell));
            cells.extend(names.iter().map(|name| number::cell(self.reported(row, name))));
            csv.rows.push(cells);
        }
        csv
    }

    /// The same for TensorBoard: the step is the version, the time that of the run, tags are
    /// `headway/COLUMN` and `trainer/NAME`.
    #[must_use]
    pub fn event_file(&self) -> Vec<u8> {
        let tags: Vec<String> = COLUMNS.iter().map(|column| format!("headway/{column}")).collect();
        let names: Vec<(&str, String)> =
            self.names().into_iter().map(|name| (name, format!("trainer/{name}"))).collect();
        let mut file = EventFile::new();
        for row in &self.rows {
            let own = tags.iter().zip(row.values).map(|(tag, value)| (tag.as_str(), value));
            let reported = names.iter().map(|(name, tag)| (tag.as_str(), self.reported(row, name)));
            let values = own.chain(reported).filter_map(|(tag, value)| Some((tag, value?)));
            file.add(u64::from(row.version), row.at.as_secs_f64(), values);
        }
        file.into_bytes()
    }
}
