//! Which points are tried, and how many runs each is given.

use headway_shared::digest::mix;

use super::pool::{LEAST, Origin, Pool};
use super::space::{Spot, is_ordered};
use super::{Candidate, TuneError, choice};
use crate::plan::constraint::Constraint;
use crate::sweep::Axis;

/// Points of the first round, in a space that has more.
const SAMPLE: u64 = 32;
/// Rounds, at the most.
const ROUNDS: u32 = 40;
/// How often the front is completed: what has all its replications may uncover others.
const FRONTS: u32 = 4;

/// A search, and how far it is.
pub(super) struct Search<'a> {
    pub(super) pool: Pool<'a>,
    /// Rounds so far.
    pub(super) rounds: u32,
    /// A round was cut short for want of runs.
    pub(super) spent: bool,
}

impl<'a> Search<'a> {
    pub(super) fn new(pool: Pool<'a>) -> Self {
        Self { pool, rounds: 0, spent: false }
    }

    pub(super) fn run(&mut self) -> Result<(), TuneError> {
        let all = self.replications();
        self.pool.raise(&[0], all)?;
        let mut first = vec![self.pool.present.clone()];
        first.extend(self.sample());
        self.round(first, Origin::Sample)?;
        while let Some(best) = self.best().filter(|_| self.rounds < ROUNDS) {
            let lines = self.lines(best);
            self.round(lines, Origin::Line)?;
            if self.best() == Some(best) {
                let pairs = self.pairs(best);
                self.round(pairs, Origin::Pair)?;
            }
            if self.best() == Some(best) {
                break;
            }
        }
        self.complete_the_front()
    }

    fn replications(&self) -> usize {
        self.pool.task.replications as usize
    }

    fn best(&self) -> Option<usize> {
        choice::best(&self.pool)
    }

    /// Tries points: successive halving, from [`LEAST`] replications to all.
    fn round(&mut self, spots: Vec<Spot>, origin: Origin) -> Result<(), TuneError> {
        self.rounds += 1;
        let all = self.replications();
        let mut places: Vec<usize> = Vec::new();
        for spot in spots {
            // Each costs about as much again at every level, and that must still be there.
            let cost = self.levels() * LEAST as u64;
            let new = places.len() as u64;
            if (new + 1) * cost > self.pool.left() {
                self.spent = true;
                break;
            }
            let Some(place) = self.pool.at(&spot, origin) else { continue };
            let done = self.pool.candidates[place].runs.len() >= all;
            if !done && !places.contains(&place) {
                places.push(place);
            }
        }
        let mut level = LEAST.min(all);
        while !places.is_empty() {
            let short = self.pool.cost(&places, level) > self.pool.left();
            if short {
                self.spent = true;
                break;
            }
            self.pool.raise(&places, level)?;
            if level == all {
                break;
            }
            places.retain(|&place| self.is_hopeful(place));
            self.pool.sort(&mut places, level);
            places.truncate(places.len().div_ceil(2));
            level = (2 * level).min(all);
        }
        Ok(())
    }

    /// How many levels a round has.
    fn levels(&self) -> u64 {
        let (mut level, mut levels) = (LEAST, 1);
        while level < self.replications() {
            level *= 2;
            levels += 1;
        }
        levels
    }

    /// Whether a candidate may still be chosen: it runs, is no other by another name, and neither
    /// breaks a constraint nor falls short of the best by more than chance.
    fn is_hopeful(&self, place: usize) -> bool {
        let candidate = &self.pool.candidates[place];
        if candidate.failed.is_some() || candidate.same_as.is_some() {
            return false;
        }
        let Some(best) = self.best().filter(|&best| choice::is_fit(&self.pool, best)) else {
            return true;
        };
        let aim = self.pool.task.aim;
        let broken = |kept: &Constraint| kept.is_clearly_broken(candidate.metric(kept.metric));
        let gain = self.pool.candidates[best].difference(candidate, aim.metric.name);
        let worse = gain.is_none_or(|gain| gain.mean < 0.0 && gain.excludes_zero());
        !worse && !aim.constraints.iter().any(broken)
    }

    /// Points spread over the space: each value of an axis comes up as often as the others (a Latin
    /// hypercube), in an order that the scenario's seed shuffles.
    fn sample(&self) -> Vec<Spot> {
        let axes = self.pool.task.axes;
        let cost = self.levels() * LEAST as u64;
        // A third of the runs, so that two are left to go on from the best of them.
        let count = (self.pool.left() / 3 / cost).min(SAMPLE) as usize;
        let seed = mix(self.pool.task.scenario.seed);
        let column = |(ordinal, axis): (usize, &Axis)| {
            let mut column: Vec<usize> = (0..count).map(|row| row % axis.choices.len()).collect();
            for row in (1..count).rev() {
                let draw = mix(seed ^ mix((ordinal as u64) << 32 | row as u64));
                column.swap(row, (draw % (row as u64 + 1)) as usize);
            }
            column
        };
        let columns: Vec<Vec<usize>> = axes.iter().enumerate().map(column).collect();
        (0..count).map(|row| columns.iter().map(|column| column[row]).collect()).collect()
    }

    /// The points that differ from one in one key: of each key first the values beside its own, so
    /// that all keys have their turn where there are few runs.
    fn lines(&self, best: usize) -> Vec<Spot> {
        let Some(spot) = self.spot(best) else { return Vec::new() };
        let axes = self.pool.task.axes;
        let longest = axes.iter().map(|axis| axis.choices.len()).max().unwrap_or(0);
        let mut points = Vec::new();
        for distance in 1..longest {
            for (ordinal, axis) in axes.iter().enumerate() {
                let here = spot[ordinal];
                let places = [here.checked_sub(distance), Some(here + distance)];
                let there = places.into_iter().flatten().filter(|at| *at < axis.choices.len());
                points.extend(there.map(|at| moved(&spot, &[(ordinal, at)])));
            }
        }
        points
    }

    /// The points that differ from one in two keys, each of which matters: some other value of it
    /// makes a difference.
    fn pairs(&self, best: usize) -> Vec<Spot> {
        let Some(spot) = self.spot(best) else { return Vec::new() };
        let axes = self.pool.task.axes;
        let beside = |ordinal: usize| -> Vec<usize> {
            let (axis, here) = (&axes[ordinal], spot[ordinal]);
            let near = |at: &usize| *at != here && (!is_ordered(axis) || at.abs_diff(here) == 1);
            (0..axis.choices.len()).filter(near).collect()
        };
        let matter: Vec<usize> =
            (0..axes.len()).filter(|&ordinal| self.matters(best, &spot, ordinal)).collect();
        let mut points = Vec::new();
        for (rank, &one) in matter.iter().enumerate() {
            for &other in &matter[rank + 1..] {
                for at in beside(one) {
                    let second = beside(other).into_iter();
                    points.extend(second.map(|to| moved(&spot, &[(one, at), (other, to)])));
                }
            }
        }
        points
    }

    /// Whether a value of an axis other than that of a point makes a difference, or no
    /// configuration.
    fn matters(&self, best: usize, spot: &Spot, ordinal: usize) -> bool {
        let tried = |at: usize| {
            let point = moved(spot, &[(ordinal, at)]);
            let is = |candidate: &&Candidate| candidate.spot.as_ref() == Some(&point);
            self.pool.candidates.iter().find(is)
        };
        let this = &self.pool.candidates[best];
        let differs = |at: usize| tried(at).is_none_or(|other| !this.acts_as(other));
        let places = 0..self.pool.task.axes[ordinal].choices.len();
        places.filter(|&at| at != spot[ordinal]).any(differs)
    }

    /// Gives every value of the first axis, the gate's bound in the default space, all replications
    /// at the choice, and then whatever seems to lie on the front: it shows what is traded.
    fn complete_the_front(&mut self) -> Result<(), TuneError> {
        let Some(best) = self.best() else { return Ok(()) };
        let Some(spot) = self.spot(best) else { return Ok(()) };
        let Some(axis) = self.pool.task.axes.first() else { return Ok(()) };
        let mut places = Vec::new();
        for at in 0..axis.choices.len() {
            places.extend(self.pool.at(&moved(&spot, &[(0, at)]), Origin::Front));
        }
        self.complete(places)?;
        for _ in 0..FRONTS {
            let seems = choice::front(&self.pool, LEAST);
            let missing = |&place: &usize| seems[place] && !self.pool.is_complete(place);
            let places: Vec<usize> = (0..seems.len()).filter(missing).collect();
            if places.is_empty() {
                break;
            }
            self.complete(places)?;
        }
        Ok(())
    }

    /// Gives candidates all replications, as far as there are runs left.
    fn complete(&mut self, places: Vec<usize>) -> Result<(), TuneError> {
        let all = self.replications();
        let mut affordable = Vec::new();
        for place in places {
            let candidate = &self.pool.candidates[place];
            if candidate.same_as.is_some() || candidate.failed.is_some() {
                continue;
            }
            affordable.push(place);
            if self.pool.cost(&affordable, all) > self.pool.left() {
                affordable.pop();
            }
        }
        self.pool.raise(&affordable, all)
    }

    fn spot(&self, place: usize) -> Option<Spot> {
        self.pool.candidates[place].spot.clone()
    }
}

/// A point with some of its places changed.
fn moved(spot: &Spot, changes: &[(usize, usize)]) -> Spot {
    let mut spot = spot.clone();
    for &(ordinal, at) in changes {
        spot[ordinal] = at;
    }
    spot
}
