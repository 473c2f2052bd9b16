//! Which points are simulated: the best by estimate, then the neighbours of the best.

use super::{Candidate, FIRST, PlanError, ROUNDS, Simulated, Task, simulate};
use crate::sweep::{Progress, Trouble};

pub(super) struct Search<'a> {
    task: &'a Task<'a>,
    candidates: &'a [Candidate],
    progress: &'a dyn Progress,
    /// What was simulated, by candidate.
    done: Vec<Option<(Simulated, Vec<Trouble>)>>,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        task: &'a Task<'a>,
        candidates: &'a [Candidate],
        progress: &'a dyn Progress,
    ) -> Self {
        let done = candidates.iter().map(|_| None).collect();
        Self { task, candidates, progress, done }
    }

    pub(super) fn run(&mut self) -> Result<(), PlanError> {
        if self.task.exhaustive || self.candidates.len() <= FIRST {
            return self.simulate((0..self.candidates.len()).collect());
        }
        self.simulate(self.first())?;
        for _ in 0..ROUNDS {
            let next = self.around_the_best();
            if next.is_empty() {
                break;
            }
            self.simulate(next)?;
        }
        Ok(())
    }

    /// The best by estimate of each layout and of each setting that is tried, as many of each.
    fn first(&self) -> Vec<usize> {
        let mut kinds = self.kinds();
        let worth = |place: &usize| self.candidates[*place].guess();
        for kind in &mut kinds {
            // The sort is stable: of equal estimates the first.
            kind.sort_by(|one, other| worth(other).total_cmp(&worth(one)));
        }
        let longest = kinds.iter().map(Vec::len).max().unwrap_or(0);
        let by_rank = (0..longest).flat_map(|rank| kinds.iter().filter_map(move |k| k.get(rank)));
        let mut first: Vec<usize> = by_rank.copied().take(FIRST.max(kinds.len())).collect();
        first.sort_unstable();
        first
    }

    /// The points by what they differ in beside their split.
    fn kinds(&self) -> Vec<Vec<usize>> {
        let mut kinds: Vec<Vec<usize>> = Vec::new();
        for (place, candidate) in self.candidates.iter().enumerate() {
            let akin = |kind: &&mut Vec<usize>| self.candidates[kind[0]].is_akin(candidate);
            match kinds.iter_mut().find(akin) {
                Some(kind) => kind.push(place),
                None => kinds.push(vec![place]),
            }
        }
        kinds
    }

    /// The neighbours, not yet simulated, of the best point of each layout and setting: the front
    /// wants every bound's best.
    fn around_the_best(&self) -> Vec<usize> {
        let mut next = Vec::new();
        for kind in self.kinds() {
            let known = kind.iter().filter_map(|&place| {
                let (option, _) = self.done[place].as_ref()?;
                option.failed.is_none().then_some((place, option))
            });
            let fit = |option: &Simulated| {
                let constraints = self.task.scenario.plan.constraints.iter();
                constraints.chain(self.task.constraints).all(|c| c.is_kept(option.metric(c.metric)))
            };
            // What keeps the constraints is better than what does not.
            let rank = |option: &Simulated| (fit(option), option.rate());
            let best = known.reduce(|best, other| {
                let (one, two) = (rank(best.1), rank(other.1));
                let better = if one.0 == two.0 { two.1 > one.1 } else { two.0 };
                if better { other } else { best }
            });
            if let Some((best, _)) = best {
                next.extend(self.neighbours(best).filter(|&place| self.done[place].is_none()));
            }
        }
        next.sort_unstable();
        next.dedup();
        next
    }

    /// The nearest splits with more and with fewer GPUs for the trainer, and the same for the
    /// judge.
    fn neighbours(&self, place: usize) -> impl Iterator<Item = usize> {
        let here = &self.candidates[place];
        let of = |candidate: &Candidate| {
            let split = &candidate.split;
            (i64::from(split.trainer_gpus), i64::from(split.judge_replicas))
        };
        let (trainer, judge) = of(here);
        let nearest = |wanted: &dyn Fn(i64, i64) -> bool| {
            let akin = self.candidates.iter().enumerate().filter(|(_, other)| other.is_akin(here));
            akin.filter(|(_, other)| {
                let (t, j) = of(other);
                wanted(t - trainer, j - judge)
            })
            .min_by_key(|(place, other)| {
                let (t, j) = of(other);
                ((t - trainer).abs() + (j - judge).abs(), *place)
            })
            .map(|(place, _)| place)
        };
        [
            nearest(&|t, j| t > 0 && j == 0),
            nearest(&|t, j| t < 0 && j == 0),
            nearest(&|_, j| j == 1),
            nearest(&|_, j| j == -1),
        ]
        .into_iter()
        .flatten()
    }

    fn simulate(&mut self, places: Vec<usize>) -> Result<(), PlanError> {
        let points = places.iter().map(|&place| self.candidates[place].planned.clone()).collect();
        let outcome = simulate(self.task, points, self.progress)?;
        for (at, (place, point)) in places.into_iter().zip(outcome.points).enumerate() {
            let trouble: Vec<Trouble> =
                outcome.trouble.iter().filter(|trouble| trouble.point == at).cloned().collect();
            let fatal = trouble.iter().find(|trouble| trouble.fatal);
            let failed = fatal.map(|trouble| trouble.what.clone());
            let option = Simulated::new(self.candidates[place].clone(), point.runs, failed);
            self.done[place] = Some((option, trouble));
        }
        Ok(())
    }

    /// What was simulated, in the order of the candidates, and what went wrong there.
    pub(super) fn finish(self) -> (Vec<Simulated>, Vec<Trouble>) {
        let mut options = Vec::new();
        let mut all = Vec::new();
        for (option, trouble) in self.done.into_iter().flatten() {
            let point = options.len();
            all.extend(trouble.into_iter().map(|trouble| Trouble { point, ..trouble }));
            options.push(option);
        }
        (options, all)
    }
}
