//! Which point of a sweep to take: the freshest of those that train as much as the best.

use super::loops::Loops;
use super::{Answer, joined, percent, setting, with_interval};
use crate::report::number;
use crate::report::results::Results;
use crate::stats::{Estimate, paired_difference};

/// Share of the best throughput that fresher samples may cost, where it is clear that it is no more.
pub const WORTH: f64 = 0.02;

/// A difference whose half-width is above this share of the best throughput says nothing.
pub const BLUR: f64 = 0.1;

const RATE: &str = "trained_samples_per_hour";
const AGE: &str = "staleness_head_mean";
const OLD: &str = "staleness_head_p99";
const BOUND: &str = "max_head_off_policyness";

/// How a point's throughput stands to the best.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    Best,
    /// What it has less may be chance.
    Even(Estimate),
    /// It has clearly less, and clearly no more than [`WORTH`].
    Close(Estimate),
    /// It has clearly less.
    Less(Estimate),
    /// Too little is known.
    Unknown(Option<Estimate>),
}

/// A point that trained something.
struct Spot {
    row: usize,
    name: String,
    rate: Estimate,
    age: Option<Estimate>,
    standing: Standing,
}

pub(super) fn of(results: &Results) -> Answer {
    let bound = results.meta.keys.iter().any(|key| is_bound(key));
    let question = match (bound, results.meta.keys.len()) {
        (true, 1) => "Which staleness bound should I choose, and why?".to_owned(),
        (true, _) => {
            "Which staleness bound and which settings should I choose, and why?".to_owned()
        }
        (false, _) => {
            let keys: Vec<String> =
                results.meta.keys.iter().map(|key| last(key).to_owned()).collect();
            format!("Which {} should I choose, and why?", joined(&keys))
        }
    };
    let spots = spots(results);
    let nothing = |answer: String| Answer {
        question: question.clone(),
        answer,
        is_known: false,
        because: Vec::new(),
        but: Vec::new(),
        chosen: None,
    };
    let Some(best) = spots.iter().find(|spot| spot.standing == Standing::Best) else {
        return nothing("Nothing can be concluded: no point trained anything.".into());
    };
    if best.rate.half_width.is_none() {
        let answer = format!(
            "Nothing can be concluded: with one replication no difference can be told from chance. The \
             highest throughput was {} samples/h, with {}.",
            with_interval(best.rate),
            best.name
        );
        let mut none = nothing(answer);
        none.because.push("Run it with --replications 8 or more.".into());
        return none;
    }
    let is_unknown = |spot: &Spot| matches!(spot.standing, Standing::Unknown(_));
    if spots.len() > 1 && spots.iter().all(|spot| spot.row == best.row || is_unknown(spot)) {
        let answer = format!(
            "Nothing can be concluded yet: the best throughput, with {}, is {} samples/h, and what the \
             others have less is known too poorly.",
            best.name,
            with_interval(best.rate)
        );
        let mut none = nothing(answer);
        none.because.push("Run more replications, or longer ones.".into());
        return none;
    }
    let choice = choice(&spots).unwrap_or(best);
    Answer {
        question,
        answer: headline(results, choice),
        is_known: true,
        because: because(results, &spots, best, choice),
        but: but(results, &spots, best, choice),
        chosen: Some(choice.row),
    }
}

/// The freshest of those that train as much as the best; of equals the first.
fn choice(spots: &[Spot]) -> Option<&Spot> {
    let is_as_good = |spot: &&Spot| {
        matches!(spot.standing, Standing::Best | Standing::Even(_) | Standing::Close(_))
    };
    spots
        .iter()
        .filter(is_as_good)
        .reduce(|least, next| if age(next).total_cmp(&age(least)).is_lt() { next } else { least })
}

fn age(spot: &Spot) -> f64 {
    spot.age.map_or(f64::INFINITY, |age| age.mean)
}

fn headline(results: &Results, choice: &Spot) -> String {
    let age = choice.age.map_or_else(String::new, |age| {
        let old = results.points.value(choice.row, OLD);
        format!(
            " at a mean staleness of {} learner versions (p99 {})",
            with_interval(age),
            number::short(old)
        )
    });
    format!("Take {}: it trains {} samples/h{age}.", choice.name, with_interval(choice.rate))
}

fn because(results: &Results, spots: &[Spot], best: &Spot, choice: &Spot) -> Vec<String> {
    let share = |less: Estimate| percent(scaled(less, 1.0 / best.rate.mean));
    let mut lines = Vec::new();
    let most = |less: Estimate| {
        format!(
            "The most is trained with {}: {} samples/h, which is {} more ({}; paired runs that saw the \
             same random numbers).",
            best.name,
            with_interval(best.rate),
            with_interval(less),
            share(less)
        )
    };
    match choice.standing {
        Standing::Even(less) => lines.push(format!("{} That may be chance.", most(less))),
        Standing::Close(less) => lines.push(format!(
            "{} That is clearly no more than {} of it, a loss that fresher samples are taken to be worth.",
            most(less),
            number::percent(Some(WORTH))
        )),
        _ => lines.push(format!(
            "Nothing fresher that was swept is known to come within {} of its throughput.",
            number::percent(Some(WORTH))
        )),
    }
    let (fresher, staler) = neighbours(results, spots, choice);
    if let Some(fresher) = fresher {
        let ages = ages(fresher);
        lines.push(match fresher.standing {
            Standing::Less(less) => format!(
                "A smaller bound costs throughput: {} trains {} samples/h less than the best ({}){ages}.",
                fresher.name,
                with_interval(less),
                share(less)
            ),
            _ => format!(
                "With {}, {} samples/h are trained{ages}; how much less that is than the best is not \
                 known well enough.",
                fresher.name,
                with_interval(fresher.rate)
            ),
        });
    }
    if let Some(staler) = staler {
        let gain = difference(results, choice.row, staler.row);
        let gain = gain.map_or_else(String::new, |gain| {
            let sign = if gain.mean < 0.0 { "" } else { "+" };
            let chance = if gain.excludes_zero() { "" } else { ", which may be chance" };
            let share = percent(scaled(gain, 1.0 / choice.rate.mean));
            format!(", for {sign}{share} of throughput{chance}")
        });
        let times = match (staler.age, choice.age) {
            (Some(old), Some(young)) if young.mean > 0.0 => {
                format!(
                    ", {} times as old",
                    number::short(Some(libm::round(old.mean / young.mean * 10.0) / 10.0))
                )
            }
            _ => String::new(),
        };
        let old = staler.age.map_or_else(|| "unknown".into(), with_interval);
        lines.push(format!(
            "A larger bound costs age: with {} the mean staleness is {old}{times}{gain}.",
            staler.name
        ));
    }
    let idle = Loops::of(|name| estimate(results, choice.row, name));
    lines.extend(idle.sentence().map(|limits| format!("With {}: {}", choice.name, lower(&limits))));
    lines
}

fn but(results: &Results, spots: &[Spot], best: &Spot, choice: &Spot) -> Vec<String> {
    let mut lines = Vec::new();
    let unknown: Vec<&Spot> = spots
        .iter()
        .filter(|spot| matches!(spot.standing, Standing::Unknown(_)) && age(spot) < age(choice))
        .collect();
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().take(4).map(|spot| spot.name.clone()).collect();
        let more = match unknown.len().saturating_sub(names.len()) {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        lines.push(format!(
            "Of {}{more}, which would be fresher, the throughput is known too poorly to compare; more \
             replications tell.",
            joined(&names)
        ));
    }
    if let Some(value) = at_the_end(results, best) {
        lines.push(format!(
            "The best point has the largest bound that was swept, {value}: whether throughput still rises \
             beyond it is not known."
        ));
    }
    if let Some(above) = estimate(results, choice.row, "staleness_above_bound_share")
        .filter(|above| above.mean > 0.0)
    {
        lines.push(format!(
            "{} of the samples that it trains are older than what the gate binds: stragglers, which \
             bound = \"aggregate\" counts and trains.",
            percent(above)
        ));
    }
    lines.push(format!(
        "Throughput counts samples; how much less an old sample teaches is not in it. Intervals are of 95% \
         over {} replications: they hold chance, and nothing of what is unknown about the scenario's \
         numbers.",
        results.meta.replications
    ));
    lines
}

/// The points that trained something, each with its standing.
fn spots(results: &Results) -> Vec<Spot> {
    let rows = 0..results.points.rows.len();
    let trained = |row: &usize| estimate(results, *row, RATE).is_some_and(|rate| rate.mean > 0.0);
    let rows: Vec<usize> = rows.filter(trained).collect();
    let rate = |row: usize| estimate(results, row, RATE).map_or(0.0, |rate| rate.mean);
    let best =
        rows.iter().copied().reduce(|best, next| if rate(next) > rate(best) { next } else { best });
    let Some(best) = best else { return Vec::new() };
    let spot = |row: usize| {
        Some(Spot {
            row,
            name: name(results, row),
            rate: estimate(results, row, RATE)?,
            age: estimate(results, row, AGE),
            standing: match row == best {
                true => Standing::Best,
                false => standing(difference(results, row, best), rate(best)),
            },
        })
    };
    rows.into_iter().filter_map(spot).collect()
}

/// How somebody stands who has `less` than the best.
fn standing(less: Option<Estimate>, best: f64) -> Standing {
    let Some(less) = less else { return Standing::Unknown(None) };
    let Some(half) = less.half_width else { return Standing::Unknown(Some(less)) };
    if less.mean - half > WORTH * best {
        return Standing::Less(less);
    }
    if half > BLUR * best {
        return Standing::Unknown(Some(less));
    }
    match less.excludes_zero() {
        false => Standing::Even(less),
        true if less.mean + half <= WORTH * best => Standing::Close(less),
        true => Standing::Less(less),
    }
}

/// What `to` trains more than `from`, in pairs of replications.
fn difference(results: &Results, from: usize, to: usize) -> Option<Estimate> {
    let runs = &results.runs;
    let of = |row: usize| -> Vec<(&str, f64)> {
        let point = results.points.text(row, "point");
        let rows = (0..runs.rows.len()).filter(|&run| runs.text(run, "point") == point);
        rows.filter_map(|run| Some((runs.text(run, "replication"), runs.value(run, RATE)?)))
            .collect()
    };
    let (from, to) = (of(from), of(to));
    let both = from.iter().filter_map(|(replication, value)| {
        let other = to.iter().find(|(other, _)| other == replication)?;
        Some((*value, other.1))
    });
    let (from, to): (Vec<f64>, Vec<f64>) = both.unzip();
    paired_difference(&from, &to)
}

/// The next smaller and the next larger bound beside a point; the other keys are the same.
fn neighbours<'s>(
    results: &Results,
    spots: &'s [Spot],
    choice: &Spot,
) -> (Option<&'s Spot>, Option<&'s Spot>) {
    let Some(key) = results.meta.keys.iter().find(|key| is_bound(key)) else { return (None, None) };
    let bound = |spot: &Spot| results.points.value(spot.row, key);
    let Some(here) = bound(choice) else { return (None, None) };
    let others = results.meta.keys.iter().filter(|other| *other != key);
    let others: Vec<&String> = others.collect();
    let is_akin = |spot: &&Spot| {
        others
            .iter()
            .all(|key| results.points.text(spot.row, key) == results.points.text(choice.row, key))
    };
    let mut akin: Vec<&Spot> = spots.iter().filter(is_akin).collect();
    akin.retain(|spot| bound(spot).is_some());
    akin.sort_by(|one, other| bound(one).unwrap_or(0.0).total_cmp(&bound(other).unwrap_or(0.0)));
    let fresher = akin.iter().copied().rfind(|spot| bound(spot) < Some(here));
    let staler = akin.iter().copied().find(|spot| bound(spot) > Some(here));
    (fresher, staler)
}

/// The largest bound that was swept, where the best has it and clearly trains more than the one below.
fn at_the_end(results: &Results, best: &Spot) -> Option<String> {
    let key = results.meta.keys.iter().find(|key| is_bound(key))?;
    let bound = |row: usize| results.points.value(row, key);
    let all = 0..results.points.rows.len();
    let here = bound(best.row)?;
    let below = all.clone().filter(|&row| bound(row) < Some(here));
    let below = below.reduce(|most, next| if bound(next) > bound(most) { next } else { most })?;
    let is_last = all.filter_map(bound).all(|other| other <= here);
    let rises = difference(results, below, best.row).is_some_and(|more| more.excludes_zero());
    (is_last && rises).then(|| results.points.text(best.row, key).to_owned())
}

/// Its staleness, in words that go on a sentence.
fn ages(spot: &Spot) -> String {
    let age = |age| format!(", at a mean staleness of {}", with_interval(age));
    spot.age.map_or_else(String::new, age)
}

/// What a point is called: its values of the swept keys.
fn name(results: &Results, row: usize) -> String {
    let keys = results.meta.keys.iter();
    let words: Vec<String> = keys.map(|key| setting(key, results.points.text(row, key))).collect();
    words.join(", ")
}

pub(super) fn estimate(results: &Results, row: usize, metric: &str) -> Option<Estimate> {
    let mean = results.points.value(row, metric)?;
    let half_width = results.points.value(row, &format!("{metric}_hw"));
    Some(Estimate { mean, half_width, count: results.meta.replications })
}

fn scaled(value: Estimate, by: f64) -> Estimate {
    Estimate { mean: value.mean * by, half_width: value.half_width.map(|half| half * by), ..value }
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().to_string()).unwrap_or_default()
        + letters.as_str()
}

fn is_bound(key: &str) -> bool {
    last(key) == BOUND
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

#[cfg(test)]
mod tests;
