//! Evidence from the folder that `headway simulate` wrote.

use super::evidence::Evidence;
use super::pool::{Means, Pool};
use super::ratios::{Course, Ratios};
use crate::report::csv::Csv;
use crate::report::results::{Kind, Results};

/// Why a result says nothing of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it holds a sweep, whose points are different runs")]
pub struct NotOneRun;

impl Evidence {
    /// Reads the means over the replications of a simulated scenario, without its warm-up.
    ///
    /// # Errors
    /// The result is that of a sweep.
    pub fn of_results(results: &Results) -> Result<Self, NotOneRun> {
        if results.meta.kind != Kind::Run {
            return Err(NotOneRun);
        }
        let value = |name: &String| Some((name.clone(), results.points.value(0, name)?));
        let mut evidence = Self {
            name: results.meta.scenario.clone(),
            config: results.meta.config.clone(),
            metrics: results.points.header.iter().filter_map(value).collect(),
            ..Self::default()
        };
        evidence.ratios = results.ratios.as_ref().and_then(|table| {
            Ratios::of_table(table, results.meta.drift.clone().unwrap_or_default())
        });
        let steps = evidence.events("steps_per_hour") as usize;
        let half = |which: &str| evidence.get(&format!("train_rollout_logprob_abs_diff_{which}"));
        evidence.course = half("older")
            .zip(half("newer"))
            .filter(|_| steps >= super::STEPS_OF_A_TREND)
            .map(|(older, newer)| Course { steps, older, newer });
        Ok(evidence)
    }
}

impl Ratios {
    /// From `ratios.csv`.
    fn of_table(table: &Csv, calibration: String) -> Option<Self> {
        let mut ratios = Self { predicted: Some(calibration), ..Self::default() };
        for row in 0..table.rows.len() {
            let of = |name: &str| table.value(row, &format!("learner_rollout_{name}"));
            let means = Means {
                tokens: table.value(row, "tokens").unwrap_or(0.0),
                kl_k1: of("kl_k1").unwrap_or(f64::NAN),
                kl_k3: of("kl_k3").unwrap_or(f64::NAN),
                log_square: of("log_square").unwrap_or(f64::NAN),
                ess_token: of("ess_token").unwrap_or(f64::NAN),
                max: of("max"),
            };
            let Some(staleness) = table.value(row, "staleness") else { continue };
            let mut pool = Pool::default();
            pool.add(&means);
            ratios.all = ratios.all.with(&pool);
            if staleness == 0.0 {
                ratios.same_version = pool;
            }
            ratios.by_staleness.insert(staleness as u32, pool);
        }
        ratios.widest = ratios.all.square()?;
        Some(ratios)
    }
}
