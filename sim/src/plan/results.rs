//! The files of a plan, and reading them back.

use std::io;
use std::path::Path;

use headway_shared::metrics::METRICS;
use serde_json::Value;

use super::{Planning, Simulated, Task};
use crate::report::about::About;
use crate::report::csv::Csv;
use crate::report::described::described;
use crate::report::json;
use crate::report::number;
use crate::report::results::ReadError;
use crate::report::stored;
use crate::stats::Estimate;

/// Metrics of a plan's table, each with its half-width.
const SHOWN: [&str; 6] = [
    "staleness_head_mean",
    "staleness_head_p99",
    "serving_idle_share",
    "judge_idle_share",
    "trainer_idle_share",
    "wasted_token_share",
];

described! {
    /// What a plan is about. It holds no time of day, host or path.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlanMeta {
        /// `plan`
        pub kind: String,
        /// The version of Headway that made it.
        pub version: String,
        /// The scenario's name.
        pub scenario: String,
        /// The scenario's title.
        pub title: String,
        /// The digest of the scenario as it was given.
        pub scenario_digest: String,
        /// The seed of all random streams.
        pub seed: u64,
        /// Replications of each point.
        pub replications: u32,
        /// GPUs that were split.
        pub gpus: u32,
        /// Keys that were tried at each split, in the order of their columns.
        pub keys: Vec<String>,
        /// What a split had to keep.
        pub constraints: Vec<String>,
        /// Price of a GPU for an hour; 0: none is known.
        pub price_per_gpu_hour: f64,
        /// Points that there are.
        pub candidates: usize,
        /// Every one was simulated.
        pub exhaustive: bool,
        /// Of the pairs of simulated points whose throughput clearly differs, the share that the
        /// estimate puts in the same order.
        pub estimate_agreement: Option<f64>,
        /// What it comes to, in words.
        pub verdict: Vec<String>,
        /// Where it comes from; `None`: an older build made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub about: Option<About>,
    }
}

/// Everything that a folder of a plan holds, but for the plots.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanResults {
    /// What it is about.
    pub meta: PlanMeta,
    /// A row per simulated point.
    pub points: Csv,
    /// A row per place where GPUs were added.
    pub marginal: Csv,
    /// A row per point and replication, with every metric.
    pub runs: Csv,
}

impl PlanResults {
    /// The name of the file of metadata.
    pub const META: &str = "plan.json";

    /// Puts a plan into tables.
    #[must_use]
    pub fn of(planning: &Planning, task: &Task<'_>) -> Self {
        let scenario = task.scenario;
        let meta = PlanMeta {
            kind: "plan".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            scenario: scenario.name.clone(),
            title: scenario.title.clone(),
            scenario_digest: scenario.digest().to_string(),
            seed: scenario.seed,
            replications: task.replications,
            gpus: task.gpus,
            keys: task.axes.iter().map(|axis| axis.key.clone()).collect(),
            constraints: planning.constraints.iter().map(ToString::to_string).collect(),
            price_per_gpu_hour: scenario.plan.price_per_gpu_hour,
            candidates: planning.candidates,
            exhaustive: planning.candidates == planning.options.len(),
            estimate_agreement: agreement(&planning.options),
            verdict: planning.verdict(task),
            about: Some(About::of(scenario)),
        };
        Self {
            points: points(planning, &meta),
            marginal: marginal(planning),
            runs: runs(planning),
            meta,
        }
    }

    /// The files, by name.
    ///
    /// # Errors
    /// A table's row is not as long as its header.
    pub fn files(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let tables = [
            ("plan.csv", &self.points),
            ("marginal.csv", &self.marginal),
            ("runs.csv", &self.runs),
        ];
        stored::files(tables, (Self::META, &self.meta))
    }

    /// Reads the files of a folder; `None`: it holds no plan.
    ///
    /// # Errors
    /// A file of it is missing or malformed.
    pub fn read(folder: &Path) -> Result<Option<Self>, ReadError> {
        let Some(meta) = stored::meta(folder, Self::META)? else { return Ok(None) };
        let table = |name| stored::table(folder, name);
        let (points, marginal) = (table("plan.csv")?, table("marginal.csv")?);
        Ok(Some(Self { meta, points, marginal, runs: table("runs.csv")? }))
    }

    /// Everything but the single runs as one JSON document.
    ///
    /// # Errors
    /// The metadata cannot be written as JSON.
    pub fn document(&self) -> serde_json::Result<Value> {
        let mut document = serde_json::to_value(&self.meta)?;
        if let Some(fields) = document.as_object_mut() {
            fields.insert("points".into(), json::table(&self.points));
            fields.insert("marginal".into(), json::table(&self.marginal));
        }
        Ok(document)
    }

    /// Rows of the table of points, from the fastest to the slowest.
    #[must_use]
    pub fn by_throughput(&self) -> Vec<usize> {
        let rate = |row: &usize| {
            self.points.value(*row, "effective_samples_per_hour").unwrap_or(f64::NEG_INFINITY)
        };
        let mut rows: Vec<usize> = (0..self.points.rows.len()).collect();
        rows.sort_by(|one, other| rate(other).total_cmp(&rate(one)));
        rows
    }

    /// Whether a column says yes.
    #[must_use]
    pub fn is(&self, row: usize, column: &str) -> bool {
        self.points.text(row, column) == YES
    }

    /// What is tried at a point: `η = 4`; empty where nothing is.
    #[must_use]
    pub fn tried(&self, row: usize) -> String {
        let keys = self.meta.keys.iter();
        let set = keys.map(|key| (key, self.points.text(row, key)));
        let set = set.filter(|(_, value)| *value != super::NO_BOUND);
        set.map(|(key, value)| super::verdict::setting(key, value)).collect::<Vec<_>>().join(", ")
    }
}

const YES: &str = "yes";

fn word(yes: bool) -> String {
    if yes { YES.into() } else { "no".into() }
}

/// A mean and its half-width as two cells.
fn cells(value: Option<Estimate>) -> [String; 2] {
    let half_width = value.and_then(|value| value.half_width);
    [number::cell(value.map(|value| value.mean)), number::cell(half_width)]
}

fn with_half(name: &str) -> [String; 2] {
    [name.to_owned(), format!("{name}_hw")]
}

fn points(planning: &Planning, meta: &PlanMeta) -> Csv {
    let split = [
        "point",
        "layout",
        "split",
        "serving_gpus",
        "serving_replicas",
        "judge_gpus",
        "judge_replicas",
        "trainer_gpus",
        "unused_gpus",
    ];
    let mut header: Vec<String> = split.map(str::to_owned).to_vec();
    header.extend(meta.keys.iter().cloned());
    // The digest of the decisions of replication 0.
    let guess = ["digest", "estimate_samples_per_hour", "estimate_limit"];
    header.extend(guess.map(str::to_owned));
    header.extend(with_half("effective_samples_per_hour"));
    header.extend(SHOWN.into_iter().flat_map(with_half));
    header.extend(with_half("gpu_hours_per_thousand"));
    header.extend(with_half("cost_per_thousand"));
    header.extend(["front", "chosen", "breaks", "failed"].map(str::to_owned));
    let mut csv = Csv::new(header);
    for (place, option) in planning.options.iter().enumerate() {
        csv.rows.push(point(planning, meta, place, option));
    }
    csv
}

fn point(planning: &Planning, meta: &PlanMeta, place: usize, option: &Simulated) -> Vec<String> {
    let candidate = &option.candidate;
    let split = &candidate.split;
    let mut row = vec![place.to_string(), split.layout.word().into(), split.label()];
    let counts = [
        split.serving_gpus(),
        split.serving_replicas,
        split.judge_gpus(),
        split.judge_replicas,
        split.trainer_gpus,
        meta.gpus.saturating_sub(split.used()),
    ];
    row.extend(counts.map(|count| count.to_string()));
    row.extend(candidate.values.iter().cloned());
    row.push(option.runs.first().map_or_else(String::new, |(_, run)| run.digest.to_string()));
    let guess = candidate.estimate;
    row.push(number::cell(guess.map(|guess| guess.samples_per_hour)));
    row.push(guess.map_or_else(String::new, |guess| guess.limit.word().into()));
    row.extend(cells(option.effective));
    row.extend(SHOWN.into_iter().flat_map(|name| cells(option.metric(name))));
    // Every GPU costs, also one that is not used. The interval is as wide, relatively, as that of
    // the throughput.
    let hours = option.effective.filter(|effective| effective.mean > 0.0).map(|effective| {
        let mean = f64::from(meta.gpus) * 1000.0 / effective.mean;
        let half_width = effective.half_width.map(|half| half / effective.mean * mean);
        Estimate { mean, half_width, ..effective }
    });
    let price = meta.price_per_gpu_hour;
    let cost = hours.filter(|_| price > 0.0).map(|hours| Estimate {
        mean: hours.mean * price,
        half_width: hours.half_width.map(|half| half * price),
        ..hours
    });
    row.extend(cells(hours));
    row.extend(cells(cost));
    let breaks = option.breaks.iter().map(|&place| planning.constraints[place].to_string());
    row.push(word(option.on_front));
    row.push(word(planning.chosen == Some(place)));
    row.push(breaks.collect::<Vec<_>>().join("; "));
    row.push(option.failed.clone().unwrap_or_default());
    row
}

fn marginal(planning: &Planning) -> Csv {
    let mut header: Vec<String> = ["place", "gpus_added", "split"].map(str::to_owned).to_vec();
    header.extend(with_half("effective_samples_per_hour"));
    header.extend(with_half("gain_per_gpu_share"));
    header.push("clear".into());
    let mut csv = Csv::new(header);
    for gain in &planning.gains {
        let mut row = vec![gain.place.word().into(), gain.gpus.to_string(), gain.split.label()];
        row.extend(cells(gain.effective));
        row.extend(cells(gain.per_gpu));
        row.push(word(gain.per_gpu.is_some_and(|gain| gain.excludes_zero())));
        csv.rows.push(row);
    }
    csv
}

fn runs(planning: &Planning) -> Csv {
    let lead = ["point", "split", "replication", "digest", "ended"];
    let mut csv = Csv::new(lead.into_iter().chain(METRICS.iter().map(|metric| metric.name)));
    for (place, option) in planning.options.iter().enumerate() {
        for (replication, run) in &option.runs {
            let mut row = vec![
                place.to_string(),
                option.candidate.split.label(),
                replication.to_string(),
                run.digest.to_string(),
                run.ended.into(),
            ];
            let values = run.summary.values().take(METRICS.len());
            row.extend(values.map(|(_, value)| number::cell(value)));
            csv.rows.push(row);
        }
    }
    csv
}

/// See [`PlanMeta::estimate_agreement`].
fn agreement(options: &[Simulated]) -> Option<f64> {
    let (mut same, mut all) = (0_u32, 0_u32);
    for (place, one) in options.iter().enumerate() {
        for other in &options[place + 1..] {
            let Some(gain) = one.gain_of(other).filter(Estimate::excludes_zero) else { continue };
            let guessed = other.candidate.guess() - one.candidate.guess();
            all += 1;
            same += u32::from((gain.mean > 0.0) == (guessed > 0.0));
        }
    }
    (all > 0).then(|| f64::from(same) / f64::from(all))
}
