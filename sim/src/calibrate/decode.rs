//! How fast replicas decode and prefill, from when turns began and ended.
//!
//! A replica's sequences decode together, a token each per step, and a step of `b` sequences takes
//! `base + per_sequence b` seconds. So a turn of n tokens takes the sum of that over its own steps:
//! `n (base + per_sequence B)`, where B is the mean batch over the steps of this turn. B depends on
//! the law, since more steps are made where the batch is small: law and B are found in turns. While
//! a train step runs a step takes `1 / speed_during_step` times as long: of a turn that lasts D, of
//! which S during train steps, `D - (1 - speed_during_step) S` is what it would have lasted alone.
//!
//! Least squares of the durations, each weighted by 1/n. S is long where D is, whatever the speed:
//! the share S/D stands in for it as an instrument. Intervals are those of a jackknife over blocks of
//! time, as turns that run together are slow together.

mod solve;
mod timeline;

use headway_shared::time::Time;

use super::fit::Parameter;
use super::measured::{Generation, Measured, Over, StepEnd};
use super::series::seconds;
use solve::{Sums, solve};
use timeline::{Overlap, Timeline};

/// The jackknife leaves out one block of time after the other.
const BLOCKS: usize = 20;
/// How often the law and the batches are found from each other: the error falls tenfold each time.
const ROUNDS: usize = 8;
/// Fewer turns say nothing of a law.
const FEWEST: usize = 20;
/// A speed is told from 1 only where the overlap differs by this between turns (standard deviation
/// of its share).
const SPREAD: f64 = 0.02;
/// A speed nearer to 1 than this is 1.
const SLOWER: f64 = 0.005;
/// Prefill below this share of the decoding time is no time.
const NO_PREFILL: f64 = 0.002;
/// A replica that turns wait for, with its largest batch, for a larger share of the time is full.
const FULL: f64 = 0.01;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decode {
    /// Seconds of a decode step.
    pub(super) base: Parameter,
    /// Seconds more for each sequence.
    pub(super) per_sequence: Parameter,
    /// `speed_during_step`, where it is less than 1 beyond chance.
    pub(super) during_step: Option<Parameter>,
    /// `speed_during_load`, likewise.
    pub(super) during_load: Option<Parameter>,
    /// Tokens per second; `None`: prefill takes no time.
    pub(super) prefill: Option<Parameter>,
    /// The most sequences that decode together, where others waited for a place.
    pub(super) max_batch: Option<u32>,
    /// Which share of the variance of durations the law explains.
    pub(super) r_squared: f64,
    /// The batches that turns saw: the 5th and the 95th percentile.
    pub(super) batches: (f64, f64),
    /// Turns that it was fitted to.
    pub(super) count: usize,
    /// Turns whose prompt was read again because weights changed were left out.
    pub(super) left_out: usize,
}

/// A turn that is fitted.
#[derive(Clone, Copy, Debug)]
struct Row {
    block: usize,
    tokens: f64,
    overlap: Overlap,
    /// Seconds from its first token to its end, without those in which its replica stood still.
    duration: f64,
}

/// Fits the law to the turns that began at `since` or later; `None`: there are too few.
#[must_use]
pub(super) fn decode(measured: &Measured, since: Time, recompute: bool) -> Option<Decode> {
    let mut timelines = Timeline::of(measured);
    let all = &measured.generations.all;
    let fits = |turn: &&Generation| turn.is_whole() && turn.at >= since && turn.first.is_some();
    let whole: Vec<Generation> = all.iter().filter(fits).copied().collect();
    let swapped = |turn: &Generation| recompute && measured.swapped_during(turn);
    let kept: Vec<Generation> = whole.iter().filter(|turn| !swapped(turn)).copied().collect();
    let of = if kept.len() < FEWEST { &whole } else { &kept };
    if of.len() < FEWEST {
        return None;
    }
    let span = seconds(measured.end.since(since)).max(1e-9);
    let mut law = [mean_step(of)?, 0.0, 0.0, 0.0];
    let mut rows: Vec<Row> = Vec::new();
    let mut used = [true, true, false, false];
    for round in 0..ROUNDS {
        let speeds = [1.0 - law[2], 1.0 - law[3]];
        timelines.iter_mut().for_each(|timeline| timeline.set_law(law[0], law[1], speeds));
        rows = of.iter().filter_map(|turn| row(&timelines, turn, since, span)).collect();
        if rows.len() < FEWEST {
            return None;
        }
        if round == 0 {
            used[2] = differs(&rows, |row| row.overlap.step);
            used[3] = differs(&rows, |row| row.overlap.load);
        }
        law = constrained(&Sums::of(&rows, None), &mut used)?;
    }
    let mut spread = jackknife(&rows, used, law);
    // A speed that may as well be 1 is 1.
    for at in [2, 3] {
        if used[at] && (spread[at].low <= 0.0 || law[at] < SLOWER) {
            used[at] = false;
            law = constrained(&Sums::of(&rows, None), &mut used)?;
            spread = jackknife(&rows, used, law);
        }
    }
    let speed = |at: usize| {
        let Parameter { value, low, high } = spread[at];
        let part = |lost: f64| (1.0 - lost).clamp(0.01, 1.0);
        let speed = Parameter { value: part(value), low: part(high), high: part(low) };
        used[at].then_some(speed)
    };
    let during_step = speed(2);
    let max_batch = full_batch(&timelines, since);
    let prefill = prefill(measured, &timelines, since, max_batch, recompute);
    let mut batches: Vec<f64> = rows.iter().map(|row| row.overlap.batch).collect();
    batches.sort_by(f64::total_cmp);
    let quantile = |share: f64| batches[((batches.len() - 1) as f64 * share) as usize];
    Some(Decode {
        base: spread[0],
        per_sequence: spread[1],
        during_step,
        during_load: speed(3),
        prefill,
        max_batch,
        r_squared: explained(&rows, law),
        batches: (quantile(0.05), quantile(0.95)),
        count: rows.len(),
        left_out: whole.len() - of.len(),
    })
}

/// Seconds per token over all turns: where the search for the law begins.
fn mean_step(of: &[Generation]) -> Option<f64> {
    let duration = |turn: &Generation| seconds(turn.until.since(turn.first.unwrap_or(turn.at)));
    let secs = of.iter().map(duration).fold(0.0, |sum, secs| sum + secs);
    let tokens = of.iter().fold(0.0, |sum, turn| sum + f64::from(turn.tokens));
    (secs > 0.0 && tokens > 0.0).then_some(secs / tokens)
}

fn row(timelines: &[Timeline], turn: &Generation, since: Time, span: f64) -> Option<Row> {
    let timeline = timelines.iter().find(|timeline| timeline.replica == turn.replica)?;
    let first = turn.first?;
    let overlap = timeline.overlap(first, turn.until);
    let duration = seconds(turn.until.since(first)) - overlap.frozen;
    let part = seconds(turn.at.since(since)) / span;
    let block = ((part * BLOCKS as f64) as usize).min(BLOCKS - 1);
    (duration > 0.0).then_some(Row { block, tokens: f64::from(turn.tokens), overlap, duration })
}

/// Whether an overlap differs enough between turns to tell what it does.
fn differs(rows: &[Row], overlap: impl Fn(&Row) -> f64) -> bool {
    let shares = rows.iter().map(|row| overlap(row) / row.duration);
    let (sum, squares) = shares
        .fold((0.0, 0.0), |(sum, squares), share: f64| (sum + share, squares + share * share));
    let count = rows.len() as f64;
    let variance = squares / count - (sum / count) * (sum / count);
    variance > SPREAD * SPREAD
}

/// Solves, and again without what would come out below 0.
fn constrained(sums: &Sums, used: &mut [bool; 4]) -> Option<[f64; 4]> {
    let mut active = *used;
    loop {
        let law = solve(sums, active)?;
        let worst = [1, 0, 2, 3].into_iter().find(|&at| active[at] && law[at] < 0.0);
        match worst {
            None => {
                // Whoever is slower than the clock by a hundredth is stopped, not slowed.
                let [base, per, step, load] = law;
                return Some([base, per, step.min(0.99), load.min(0.99)]);
            }
            Some(at) => active[at] = false,
        }
    }
}

/// Each number with its interval: 1.73 standard errors of the jackknife (Student's t with 19 degrees
/// of freedom).
fn jackknife(rows: &[Row], used: [bool; 4], law: [f64; 4]) -> [Parameter; 4] {
    let left_out: Vec<[f64; 4]> = (0..BLOCKS)
        .filter(|block| rows.iter().any(|row| row.block == *block))
        .filter_map(|block| constrained(&Sums::of(rows, Some(block)), &mut { used }))
        .collect();
    [0, 1, 2, 3].map(|at| super::jackknife::interval(law[at], left_out.iter().map(|law| law[at])))
}

/// R² of the durations.
fn explained(rows: &[Row], [base, per, step, load]: [f64; 4]) -> f64 {
    let count = rows.len() as f64;
    let mean = rows.iter().fold(0.0, |sum, row| sum + row.duration) / count;
    let (mut residual, mut total) = (0.0, 0.0);
    for row in rows {
        let Overlap { batch, step: during_step, load: during_load, .. } = row.overlap;
        let expected = row.tokens * (base + per * batch) + step * during_step + load * during_load;
        residual += (row.duration - expected) * (row.duration - expected);
        total += (row.duration - mean) * (row.duration - mean);
    }
    if total > 0.0 { 1.0 - residual / total } else { 1.0 }
}

/// The largest batch, where turns waited beside it for more than chance.
fn full_batch(timelines: &[Timeline], since: Time) -> Option<u32> {
    let most = timelines.iter().map(Timeline::most).max()?;
    let (mut waited, mut whole) = (0.0, 0.0);
    for timeline in timelines {
        // One may be prefilled beside those that decode.
        waited += timeline.waiting(since, most, most + 1);
        whole += timeline.length(since);
    }
    (most > 0 && waited > FULL * whole).then_some(most)
}

/// Prompts are read one at a time: from when a prompt could begin (sent, the one before it read, and
/// a place free) to its first token.
fn prefill(
    measured: &Measured,
    timelines: &[Timeline],
    since: Time,
    max_batch: Option<u32>,
    recompute: bool,
) -> Option<Parameter> {
    let mut blocks = vec![(0.0, 0.0); BLOCKS];
    let span = seconds(measured.end.since(since)).max(1e-9);
    let mut decoding = 0.0;
    for timeline in timelines {
        let mut turns: Vec<&Generation> = measured
            .generations
            .all
            .iter()
            .filter(|turn| turn.replica == timeline.replica && turn.first.is_some())
            .filter(|turn| turn.over != Over::Lost && !turn.resumed)
            .collect();
        turns.sort_by_key(|turn| (turn.first, turn.at));
        let mut before = Time::ZERO;
        for turn in turns {
            let Some(first) = turn.first else { continue };
            let free = max_batch.map_or(Time::ZERO, |most| timeline.freed(most, first));
            let from = turn.at.max(before).max(free);
            before = first;
            let again = recompute && measured.swapped_between(turn.replica, turn.at, first);
            if turn.at < since || again {
                continue;
            }
            let taken = seconds(first.since(from)) - timeline.overlap(from, first).frozen;
            let part = seconds(turn.at.since(since)) / span;
            let block = &mut blocks[((part * BLOCKS as f64) as usize).min(BLOCKS - 1)];
            block.0 += f64::from(turn.prompt);
            block.1 += taken.max(0.0);
            decoding += seconds(turn.until.since(first));
        }
    }
    let total = blocks.iter().fold((0.0, 0.0), |sum, block| (sum.0 + block.0, sum.1 + block.1));
    if total.0 <= 0.0 || total.1 <= NO_PREFILL * (decoding + total.1) {
        return None;
    }
    let without = |block: &(f64, f64)| {
        let secs = total.1 - block.1;
        (secs > 0.0 && block.1 > 0.0).then(|| (total.0 - block.0) / secs)
    };
    let rate = total.0 / total.1;
    Some(super::jackknife::interval(rate, blocks.iter().filter_map(without)))
}

impl Measured {
    /// A turn's replica changed its weights under it.
    fn swapped_during(&self, turn: &Generation) -> bool {
        self.swapped_between(turn.replica, turn.at, turn.until)
    }

    fn swapped_between(&self, replica: u32, from: Time, to: Time) -> bool {
        let swaps = &self.weights.swaps;
        // In order of time over all replicas.
        let first = swaps.partition_point(|(_, at)| *at <= from);
        swaps[first..].iter().take_while(|(_, at)| *at < to).any(|(on, _)| *on == replica)
    }

    /// When train steps ran.
    pub(super) fn training(&self) -> impl Iterator<Item = (Time, Time)> {
        let ran = self.steps.steps.iter().filter(|step| step.end != StepEnd::Cancelled);
        ran.map(|step| (step.at, step.until))
    }
}
