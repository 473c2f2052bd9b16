//! What a replica did over time: how many sequences decoded, and what slowed them.

use headway_shared::time::Time;

use crate::calibrate::measured::{Measured, Period};
use crate::calibrate::series::seconds;

/// What changes at an instant.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    decoding: i64,
    waiting: i64,
    training: i64,
    loading: i64,
    frozen: i64,
}

/// Sums from the beginning up to an instant; between two they grow evenly.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    /// Decode steps made.
    steps: f64,
    /// Sum over them of the batch.
    batches: f64,
    training: f64,
    loading: f64,
    frozen: f64,
}

/// From an instant to the next.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: Time,
    decoding: u32,
    /// Turns that are on the replica and do not decode.
    waiting: u32,
    training: bool,
    loading: bool,
    frozen: bool,
    before: Totals,
}

impl Piece {
    fn nothing(from: Time) -> Self {
        Self {
            from,
            decoding: 0,
            waiting: 0,
            training: false,
            loading: false,
            frozen: false,
            before: Totals::default(),
        }
    }
}

/// What a turn lived through while it decoded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overlap {
    /// The mean batch over its steps.
    pub(super) batch: f64,
    /// Seconds during train steps, without those in which the replica stood still.
    pub(super) step: f64,
    /// Seconds during loads, likewise.
    pub(super) load: f64,
    /// Seconds in which the replica stood still.
    pub(super) frozen: f64,
}

/// One replica.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    pub(super) replica: u32,
    pieces: Vec<Piece>,
}

impl Timeline {
    /// One for each replica on which something was generated.
    pub(super) fn of(measured: &Measured) -> Vec<Self> {
        let mut replicas: Vec<u32> =
            measured.generations.all.iter().map(|turn| turn.replica).collect();
        replicas.sort_unstable();
        replicas.dedup();
        replicas.into_iter().map(|replica| Self::new(measured, replica)).collect()
    }

    fn new(measured: &Measured, replica: u32) -> Self {
        let mut changes: Vec<(Time, Change)> = Vec::new();
        let mut add = |from: Time, to: Time, change: Change| {
            if to > from {
                let Change { decoding, waiting, training, loading, frozen } = change;
                changes.push((from, change));
                let back = Change {
                    decoding: -decoding,
                    waiting: -waiting,
                    training: -training,
                    loading: -loading,
                    frozen: -frozen,
                };
                changes.push((to, back));
            }
        };
        for turn in measured.generations.all.iter().filter(|turn| turn.replica == replica) {
            let first = turn.first.unwrap_or(turn.until);
            add(turn.at, first, Change { waiting: 1, ..Change::default() });
            add(first, turn.until, Change { decoding: 1, ..Change::default() });
        }
        for (from, to) in measured.training() {
            add(from, to, Change { training: 1, ..Change::default() });
        }
        let on = |period: &&Period| period.replica == replica;
        for period in measured.weights.loading.iter().filter(on) {
            add(period.from, period.to, Change { loading: 1, ..Change::default() });
        }
        for period in measured.weights.frozen.iter().filter(on) {
            add(period.from, period.to, Change { frozen: 1, ..Change::default() });
        }
        changes.sort_by_key(|(at, _)| *at);
        let mut pieces = pieces(&changes);
        // The end of the last piece begins one in which nothing is.
        if pieces.last().is_some_and(|last| last.from < measured.end) {
            pieces.push(Piece::nothing(measured.end));
        }
        Self { replica, pieces }
    }

    /// Counts decode steps by a law and the speeds during train steps and loads.
    pub(super) fn set_law(&mut self, base: f64, per_sequence: f64, [step, load]: [f64; 2]) {
        let mut totals = Totals::default();
        for index in 0..self.pieces.len() {
            let to = self.pieces.get(index + 1).map(|next| next.from);
            let piece = &mut self.pieces[index];
            piece.before = totals;
            let Some(to) = to else { break };
            let secs = seconds(to.since(piece.from));
            let batch = f64::from(piece.decoding);
            let mut speed = if piece.frozen { 0.0 } else { 1.0 };
            speed *= if piece.training { step } else { 1.0 };
            speed *= if piece.loading { load } else { 1.0 };
            let made = secs * speed / (base + per_sequence * batch).max(1e-12);
            totals.steps += made;
            totals.batches += made * batch;
            totals.frozen += if piece.frozen { secs } else { 0.0 };
            totals.training += if piece.training && !piece.frozen { secs } else { 0.0 };
            totals.loading += if piece.loading && !piece.frozen { secs } else { 0.0 };
        }
    }

    fn totals(&self, at: Time) -> Totals {
        let place = self.pieces.partition_point(|piece| piece.from <= at);
        let Some(piece) = place.checked_sub(1).map(|place| &self.pieces[place]) else {
            return Totals::default();
        };
        let Some(next) = self.pieces.get(place) else { return piece.before };
        let share = seconds(at.since(piece.from)) / seconds(next.from.since(piece.from)).max(1e-12);
        let between = |from: f64, to: f64| from + (to - from) * share;
        let (from, to) = (piece.before, next.before);
        Totals {
            steps: between(from.steps, to.steps),
            batches: between(from.batches, to.batches),
            training: between(from.training, to.training),
            loading: between(from.loading, to.loading),
            frozen: between(from.frozen, to.frozen),
        }
    }

    /// What lies between two instants.
    pub(super) fn overlap(&self, from: Time, to: Time) -> Overlap {
        let (from, to) = (self.totals(from), self.totals(to));
        let steps = to.steps - from.steps;
        Overlap {
            batch: if steps > 0.0 { (to.batches - from.batches) / steps } else { 1.0 },
            step: to.training - from.training,
            load: to.loading - from.loading,
            frozen: to.frozen - from.frozen,
        }
    }

    /// The largest batch.
    pub(super) fn most(&self) -> u32 {
        self.pieces.iter().map(|piece| piece.decoding).max().unwrap_or(0)
    }

    /// Seconds in which at least `most - 1` decoded while more than `all` turns were there.
    pub(super) fn waiting(&self, since: Time, most: u32, all: u32) -> f64 {
        let full =
            |piece: &Piece| piece.decoding + 1 >= most && piece.decoding + piece.waiting > all;
        self.spans(since).filter(|(piece, _)| full(piece)).fold(0.0, |sum, (_, secs)| sum + secs)
    }

    /// Seconds from `since` to the end.
    pub(super) fn length(&self, since: Time) -> f64 {
        self.spans(since).fold(0.0, |sum, (_, secs)| sum + secs)
    }

    fn spans(&self, since: Time) -> impl Iterator<Item = (&Piece, f64)> {
        let pairs = self.pieces.windows(2).filter(move |pair| pair[0].from >= since);
        pairs.map(|pair| (&pair[0], seconds(pair[1].from.since(pair[0].from))))
    }

    /// When, before `at`, a place became free in a batch of `most`: the end of the last piece in
    /// which it was full.
    pub(super) fn freed(&self, most: u32, at: Time) -> Time {
        let place = self.pieces.partition_point(|piece| piece.from < at);
        let full = |piece: &Piece| piece.decoding >= most;
        let last = self.pieces[..place].iter().rposition(full);
        last.and_then(|last| self.pieces.get(last + 1)).map_or(Time::ZERO, |next| next.from.min(at))
    }
}

fn pieces(changes: &[(Time, Change)]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut now = Change::default();
    for (at, change) in changes {
        now.decoding += change.decoding;
        now.waiting += change.waiting;
        now.training += change.training;
        now.loading += change.loading;
        now.frozen += change.frozen;
        let piece = Piece {
            from: *at,
            decoding: now.decoding.max(0) as u32,
            waiting: now.waiting.max(0) as u32,
            training: now.training > 0,
            loading: now.loading > 0,
            frozen: now.frozen > 0,
            before: Totals::default(),
        };
        match pieces.last_mut().filter(|last| last.from == *at) {
            Some(last) => *last = piece,
            None => pieces.push(piece),
        }
    }
    pieces
}
