//! When sessions begin: at random, by a fixed population, or when they began.

use std::collections::BTreeSet;

use headway_shared::time::Time;

use super::TABLE;
use crate::calibrate::Choice;
use crate::calibrate::estimate::{Column, Estimates, Item, number};
use crate::calibrate::fit::{Unit, rate};
use crate::calibrate::measured::{Measured, Session};
use crate::calibrate::series::{Series, seconds};

/// A population is fixed where the variance of the number of live sessions is below so much of its
/// mean: of independent arrivals it is the mean, of a population that pauses for a share q of its time
/// it is q of the mean.
const FIXED: f64 = 0.6;

/// And where it is within so much of the most that there ever were,
const NEAR: f64 = 0.98;
/// for so much of the time in both halves of the record: independent arrivals touch their maximum for
/// a moment, and a crowd that grows in the second half.
const OFTEN: f64 = 0.02;
/// Of fewer the maximum is no sign.
const FEW: u32 = 8;

const NESTED: &str = "world.clients.arrivals";

/// Adds `arrivals`, or for hosted environments `slots`.
pub(super) fn arrivals(
    estimates: &mut Estimates,
    measured: &Measured,
    since: Time,
    choice: Choice,
) {
    let lives = lives(measured);
    let live = Live::of(&lives, since, measured.end);
    if lives.is_empty() {
        return;
    }
    if measured.environments.is_used() {
        let slots = live.most.max(1).to_string();
        estimates.items.push(Item::setting("slots", TABLE, "slots", slots, lives.len()));
        return;
    }
    let dispersion = live.variance / live.mean.max(1e-9);
    let fixed = match choice {
        Choice::Users => true,
        Choice::Poisson | Choice::Replay => false,
        Choice::Seen => dispersion < FIXED || live.is_full(),
    };
    if choice == Choice::Replay {
        return replay(estimates, &lives);
    }
    let (kind, other) = match fixed {
        true => ("a fixed population", "poisson"),
        false => ("independent arrivals", "users"),
    };
    if choice == Choice::Seen {
        estimates.note(format!(
            "arrivals: {kind}, since the number of live sessions has a variance of {} of its mean \
             ({}), and is about its most ({}) for {}% of the time; --clients {other} says otherwise",
            number((dispersion * 100.0).round() / 100.0),
            number((live.mean * 10.0).round() / 10.0),
            live.most,
            number((live.full * 1000.0).round() / 10.0),
        ));
    }
    match fixed {
        true => users(estimates, &lives, &live, since),
        false => poisson(estimates, &lives, since, measured.end),
    }
}

fn poisson(estimates: &mut Estimates, lives: &[(Time, Time)], since: Time, end: Time) {
    let count = lives.iter().filter(|(from, _)| *from >= since).count();
    let hours = seconds(end.since(since)) / 3600.0;
    let per_hour = rate(count as u64, hours);
    let item = Item::number("sessions", NESTED, "per_hour", "rate", per_hour, count);
    estimates.items.push(Item::setting("sessions", NESTED, "kind", "\"poisson\"".into(), count));
    estimates.items.push(item);
}

/// Users who pause for a share q of their time: `mean = users (1 - q)`, `variance = mean q`.
fn users(estimates: &mut Estimates, lives: &[(Time, Time)], live: &Live, since: Time) {
    let count = lives.len();
    let pausing = live.variance / live.mean.max(1e-9);
    // Pauses that come in bursts, as after a weight sync, would make too many of them.
    let by_pauses = match live.is_full() || pausing >= FIXED {
        true => 0.0,
        false => (live.mean / (1.0 - pausing)).round(),
    };
    let users = by_pauses.max(f64::from(live.most.max(1)));
    let setting = |key, value: String| Item::setting("users", NESTED, key, value, count);
    estimates.items.push(setting("kind", "\"users\"".to_owned()));
    estimates.items.push(setting("users", number(users)));
    let pauses = between(lives, users as usize, since).values(Time::ZERO);
    if pauses.values.iter().any(|secs| *secs > 0.0) {
        estimates.law("pause between sessions", NESTED, "pause", Unit::Seconds, pauses);
        estimates.note(
            "which user begins which session is not known: the mean of the pauses between sessions \
             is that of the record, their law only about so",
        );
    }
}

/// Whoever has paused the longest begins the next session: of so many users, the k-th to begin again
/// is the k-th who ended.
fn between(lives: &[(Time, Time)], users: usize, since: Time) -> Series {
    let mut starts: Vec<Time> = lives.iter().map(|(from, _)| *from).collect();
    let mut ends: Vec<Time> = lives.iter().map(|(_, to)| *to).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let mut pauses = Series::default();
    for (start, end) in starts.iter().skip(users).zip(&ends) {
        if *start >= since && end <= start {
            pauses.push_span(*end, *start, true);
        }
    }
    pauses
}

fn replay(estimates: &mut Estimates, lives: &[(Time, Time)]) {
    let file = estimates.file("clients-arrivals");
    let count = lives.len();
    let setting = |key, value| Item::setting("sessions", NESTED, key, value, count);
    let column = Column { file: file.clone(), name: "arrival_sec" };
    let times = lives.iter().map(|(from, _)| seconds(from.since(Time::ZERO))).collect();
    estimates.items.push(setting("kind", "\"replay\"".to_owned()));
    estimates.items.push(setting("column", format!("{:?}", column.name)));
    let item = setting("file", format!("{file:?}"));
    estimates.items.push(Item { column: Some(column), observed: times, ..item });
}

/// From when to when each session lived, in the order in which they began.
fn lives(measured: &Measured) -> Vec<(Time, Time)> {
    let begun = |session: &&Session| !session.turns.is_empty() || measured.environments.is_used();
    let life = |session: &Session| {
        let to = if session.over { session.until } else { measured.end };
        (session.at, to)
    };
    measured.sessions.all.iter().filter(begun).map(life).collect()
}

/// How many sessions live at once.
#[derive(Clone, Copy, Debug, Default)]
struct Live {
    most: u32,
    mean: f64,
    variance: f64,
    /// The share of the time in which about the most were there, in the half in which that is less.
    full: f64,
}

impl Live {
    fn is_full(&self) -> bool {
        self.full > OFTEN && self.most >= FEW
    }

    fn of(lives: &[(Time, Time)], since: Time, end: Time) -> Self {
        let times: BTreeSet<Time> =
            lives.iter().flat_map(|(from, to)| [*from, *to]).filter(|at| *at > since).collect();
        let mut starts: Vec<Time> = lives.iter().map(|(from, _)| *from).collect();
        let mut ends: Vec<Time> = lives.iter().map(|(_, to)| *to).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        let (mut sum, mut squares, mut total) = (0.0, 0.0, 0.0);
        let (mut from, mut most) = (since, 0);
        let mut spans: Vec<(f64, f64)> = Vec::new();
        for to in times.into_iter().chain([end]) {
            // Those that end at this instant are no longer there, those that begin are.
            let begun = starts.partition_point(|at| *at <= from);
            let over = ends.partition_point(|at| *at <= from);
            let (live, secs) = ((begun - over.min(begun)) as f64, seconds(to.since(from)));
            if secs > 0.0 {
                (sum, squares, total) =
                    (sum + live * secs, squares + live * live * secs, total + secs);
                most = most.max(live as u32);
                spans.push((live, secs));
            }
            from = to;
        }
        let mean = if total > 0.0 { sum / total } else { 0.0 };
        let variance = if total > 0.0 { (squares / total - mean * mean).max(0.0) } else { 0.0 };
        let (mut at, mut halves) = (0.0, [0.0; 2]);
        for (live, secs) in spans {
            let near = live >= NEAR * f64::from(most);
            halves[usize::from(2.0 * at > total)] += if near { secs } else { 0.0 };
            at += secs;
        }
        let full = halves[0].min(halves[1]) / (0.5 * total).max(1e-12);
        Self { most, mean, variance, full }
    }
}
