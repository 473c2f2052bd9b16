//! What one more unit brings in each place.

use super::split::{Place, Split};
use super::{PLACES, PlanError, Planned, Progress, Simulated, Task, option, simulate};
use crate::stats::Estimate;

/// What one more unit in a place brings.
#[derive(Clone, Debug)]
pub struct Gain {
    /// Where.
    pub place: Place,
    /// The split with it.
    pub split: Split,
    /// GPUs that it takes.
    pub gpus: u32,
    /// Effective samples an hour with it.
    pub effective: Option<Estimate>,
    /// What more that is, for each of its GPUs, as a share of what there was.
    pub per_gpu: Option<Estimate>,
}

impl Gain {
    /// Whether it brings more than chance.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.per_gpu.is_some_and(|gain| gain.mean > 0.0 && gain.excludes_zero())
    }
}

/// Simulates the chosen point with one more unit in each place that its layout has.
pub(super) fn gains(
    task: &Task<'_>,
    chosen: &Simulated,
    progress: &dyn Progress,
) -> Result<Vec<Gain>, PlanError> {
    let from = &chosen.candidate;
    let base = from.split.set(task.scenario);
    let tried = &from.planned.set[base.len()..];
    let mut places = Vec::new();
    let mut points = Vec::new();
    for place in PLACES {
        let Some((split, gpus)) = from.split.with_more(place, task.scenario) else { continue };
        let set = split.set(task.scenario).into_iter().chain(tried.iter().cloned()).collect();
        let planned = Planned::new(task.scenario, from.values.clone(), set)
            .map_err(|misfit| PlanError::Misfit(Box::new(misfit)))?;
        places.push((place, split, gpus));
        points.push(planned);
    }
    let outcome = simulate(task, points, progress)?;
    let base = chosen.rate();
    let gain = |((place, split, gpus), point): ((Place, Split, u32), _)| {
        let point: crate::report::tables::Point = point;
        let scale = 1.0 / (base * f64::from(gpus.max(1)));
        let more = option::gain(&chosen.runs, &point.runs);
        let per_gpu = more.map(|more| Estimate {
            mean: more.mean * scale,
            half_width: more.half_width.map(|half| half * scale),
            count: more.count,
        });
        Gain { place, split, gpus, effective: option::effective_mean(&point.runs), per_gpu }
    };
    Ok(places.into_iter().zip(outcome.points).map(gain).collect())
}
