//! The replica beside a model of it that has no clock trick: every sequence keeps its own count of
//! tokens to go, and each event walks over all of them.

use headway_shared::config::KvOnSync;
use headway_shared::digest::mix;
use headway_shared::time::{Span, Time};
use headway_shared::version::DeployVersion;
use headway_sim::world::replica::{DecodeLaw, Outcome, Replica, ReplicaSpec, Ticket, Turn, Wake};

const PREFILL_TOKENS_PER_SEC: f64 = 700.0;
const MAX_BATCH: usize = 5;

#[derive(Clone, Debug)]
struct Plain {
    handle: usize,
    prompt: f64,
    tokens: f64,
    generated: f64,
    /// Whole tokens by version; the last is open.
    marks: Vec<(u32, f64)>,
}

/// What a turn came to: its handle, its time in seconds, whether it is complete, its segments.
#[derive(Clone, Debug, PartialEq)]
struct End {
    handle: usize,
    at: f64,
    complete: bool,
    segments: Vec<(u32, u32)>,
}

#[derive(Default)]
struct Model {
    at: f64,
    version: u32,
    speed: f64,
    frozen: bool,
    waiting: Vec<Plain>,
    prefilling: Option<(Plain, f64)>,
    decoding: Vec<Plain>,
    ends: Vec<End>,
}

impl Model {
    fn speed(&self) -> f64 {
        if self.frozen { 0.0 } else { self.speed }
    }

    fn start(&mut self) {
        let started = self.decoding.len();
        if !self.frozen
            && self.prefilling.is_none()
            && started < MAX_BATCH
            && !self.waiting.is_empty()
        {
            let plain = self.waiting.remove(0);
            let context = plain.prompt + plain.generated;
            self.prefilling = Some((plain, context));
        }
    }

    fn run(&mut self, law: &DecodeLaw, until: f64) {
        loop {
            self.start();
            let rate = self.speed() * law.rate(self.decoding.len() as u32);
            let prefill_rate = self.speed() * PREFILL_TOKENS_PER_SEC;
            let to_go = self.decoding.iter().map(|plain| plain.tokens - plain.generated);
            let least = to_go.fold(f64::INFINITY, f64::min);
            let reading = self.prefilling.as_ref().map_or(f64::INFINITY, |(_, left)| *left);
            let (leave, read) = (least / rate, reading / prefill_rate);
            let step = leave.min(read).min(until - self.at);
            for plain in &mut self.decoding {
                plain.generated += rate * step;
            }
            if let Some((_, left)) = &mut self.prefilling {
                *left -= prefill_rate * step;
            }
            self.at += step;
            if leave <= step {
                let (done, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.decoding)
                    .into_iter()
                    .partition(|plain| plain.tokens - plain.generated < 1e-7);
                self.decoding = rest;
                done.into_iter().for_each(|plain| self.end(plain, true));
            } else if read <= step {
                self.decoding.extend(self.prefilling.take().map(|(plain, _)| plain));
            } else {
                return;
            }
        }
    }

    fn mark(version: u32, plain: &mut Plain, generated: f64) {
        plain.marks.push((version, generated));
    }

    fn end(&mut self, mut plain: Plain, complete: bool) {
        let whole = if complete { plain.tokens } else { plain.generated.floor() };
        Self::mark(self.version, &mut plain, whole);
        let mut segments: Vec<(u32, u32)> = Vec::new();
        let mut before = 0.0;
        for (version, mark) in plain.marks {
            if mark > before {
                segments.push((version, (mark - before) as u32));
            }
            before = mark;
        }
        self.ends.push(End { handle: plain.handle, at: self.at, complete, segments });
    }

    fn swap(&mut self, version: u32, recompute: bool) {
        let old = self.version;
        let (waiting, prefilling) = (&mut self.waiting, &mut self.prefilling);
        for plain in waiting.iter_mut().chain(prefilling.iter_mut().map(|(plain, _)| plain)) {
            Self::mark(old, plain, plain.generated);
        }
        for plain in &mut self.decoding {
            let whole = plain.generated.floor();
            Self::mark(old, plain, whole);
            if recompute {
                plain.generated = whole;
            }
        }
        if recompute {
            let mut front = std::mem::take(&mut self.decoding);
            front.extend(prefilling.take().map(|(plain, _)| plain));
            front.append(waiting);
            *waiting = front;
        }
        self.version = version;
    }

    fn abort(&mut self, handle: usize) {
        let all = [&mut self.waiting, &mut self.decoding];
        let found = all.into_iter().find_map(|list| {
            let at = list.iter().position(|plain| plain.handle == handle)?;
            Some(list.remove(at))
        });
        let reading = self.prefilling.take_if(|(plain, _)| plain.handle == handle);
        if let Some(plain) = found.or(reading.map(|(plain, _)| plain)) {
            self.end(plain, false);
        }
    }
}

fn run_replica(
    replica: &mut Replica,
    pending: &mut Option<Wake>,
    until: Time,
    ends: &mut Vec<End>,
) {
    let mut now = Time::ZERO;
    loop {
        while let Some(ended) = replica.poll_ended() {
            let segment = |segment: &headway_shared::input::Segment| {
                (segment.version.number(), segment.tokens)
            };
            ends.push(End {
                handle: ended.handle as usize,
                at: now.as_secs_f64(),
                complete: ended.outcome == Outcome::Complete,
                segments: ended.segments.iter().map(segment).collect(),
            });
        }
        *pending = replica.poll_wake().or(*pending);
        match pending.take_if(|wake| wake.at <= until) {
            Some(wake) => {
                now = wake.at;
                replica.wake(now, wake.epoch);
            }
            None => return,
        }
    }
}

fn turn(handle: usize, word: u64) -> Turn {
    let (prompt_tokens, tokens) = (1 + (word % 90) as u32, 1 + (word >> 20) as u32 % 200);
    Turn { handle: handle as u64, session: None, prompt_tokens, tokens }
}

/// Plays one random run on both; 60 operations, 0.1 to 0.6 s apart.
fn play(seed: u64) -> (Vec<End>, Vec<End>) {
    let decode = DecodeLaw::linear(0.004_3, 0.001_1).unwrap();
    let spec = ReplicaSpec {
        max_batch: MAX_BATCH as u32,
        prefill_tokens_per_sec: Some(PREFILL_TOKENS_PER_SEC),
        ..ReplicaSpec::new(decode.clone())
    };
    let mut replica = Replica::new(spec, DeployVersion::new(0));
    let mut model = Model { speed: 1.0, ..Model::default() };
    let (mut ends, mut tickets): (Vec<End>, Vec<Ticket>) = (Vec::new(), Vec::new());
    let (mut now, mut word, mut pending) = (Time::ZERO, seed, None);
    for operation in 0..60 {
        word = mix(word.wrapping_add(operation));
        now += Span::from_nanos(100_000_000 + word % 500_000_000);
        run_replica(&mut replica, &mut pending, now, &mut ends);
        model.run(&decode, now.as_secs_f64());
        word = mix(word);
        match word % 16 {
            0..9 => {
                let turn = turn(tickets.len(), mix(word));
                tickets.push(replica.submit(now, turn));
                model.waiting.push(Plain {
                    handle: turn.handle as usize,
                    prompt: f64::from(turn.prompt_tokens),
                    tokens: f64::from(turn.tokens),
                    generated: 0.0,
                    marks: Vec::new(),
                });
            }
            9 if !tickets.is_empty() => {
                let which = (word >> 8) as usize % tickets.len();
                replica.abort(now, tickets[which]);
                model.abort(which);
            }
            10 => {
                replica.freeze(now);
                model.frozen = true;
            }
            11 | 12 => {
                replica.unfreeze(now);
                model.frozen = false;
            }
            13 => {
                model.speed = 0.3 + (word >> 8 & 7) as f64 * 0.21;
                replica.set_speed(now, model.speed);
            }
            kind => {
                let recompute = kind == 14;
                let kv = if recompute { KvOnSync::Recompute } else { KvOnSync::Keep };
                let version = operation as u32 + 1;
                replica.swap_weights(now, DeployVersion::new(version), kv);
                model.swap(version, recompute);
            }
        }
    }
    replica.unfreeze(now);
    model.frozen = false;
    run_replica(&mut replica, &mut pending, Time::from_secs(3600), &mut ends);
    model.run(&decode, 3600.0);
    (ends, model.ends)
}

#[test]
fn the_progress_clock_agrees_with_counting_each_sequence() {
    for seed in 0..400 {
        let (mut found, mut expected) = play(seed);
        // Ends of one instant may be in either order, and an abort's time is its operation's.
        found.sort_by_key(|end| end.handle);
        expected.sort_by_key(|end| end.handle);
        assert_eq!(found.len(), expected.len(), "seed {seed}");
        for (found, expected) in found.iter().zip(&expected) {
            let close = (found.at - expected.at).abs() < 1e-6 || !found.complete;
            assert!(close, "seed {seed}: {found:?} {expected:?}");
            assert_eq!(found.complete, expected.complete, "seed {seed}");
            assert_eq!(found.segments, expected.segments, "seed {seed}");
        }
    }
}
