//! The decision log of a golden: what a run decided, small enough to be committed.
//!
//! ```text
//! "HWYLOG1\n"  zlib of: counts, checks, blocks, actions
//! ```
//!
//! For the first inputs of a run there are all actions, and a 16-bit check of each input with its
//! time. Behind them there is a check for every [`BLOCK`] inputs, which covers all before it, so that
//! a difference there is known to lie in one block.
//!
//! Which samples a train step takes is a decision, too, and no part of its action: they follow it.
//!
//! An action is its postcard encoding taken as numbers, each less the one at its place in the action
//! of its kind before: ids count upward, so that what is left repeats, and compresses to a byte or
//! two. The compressor is pure Rust and pinned, so that equal runs give equal bytes.

use std::collections::BTreeMap;

use headway_shared::action::Action;
use headway_shared::core::Scheduler;
use headway_shared::digest::Digest;
use headway_shared::id::SampleId;
use headway_shared::input::Input;
use headway_shared::time::Time;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

/// Inputs in a block.
pub const BLOCK: u64 = 64;

const MAGIC: &[u8; 8] = b"HWYLOG1\n";
/// Of 0 to 10: beyond this it gets slow and hardly smaller.
const LEVEL: u8 = 9;
/// Far more than any log takes, and little enough to be unpacked whatever a damaged file says: two
/// bytes are an action at most.
const MOST_BYTES: usize = 1 << 25;
/// Kinds of actions that are told apart; far more than there are.
const KINDS: usize = 64;

/// A log that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no decision log, or it is damaged")]
pub struct DamagedLog;

/// What a run decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// A check of each of the first inputs, with its time.
    checks: Vec<u16>,
    /// Where the actions of each of them end.
    ends: Vec<usize>,
    /// Their actions, in order.
    actions: Vec<Action>,
    /// The samples of the step that one of them started, by the input.
    batches: BTreeMap<u64, Vec<SampleId>>,
    /// A check of everything up to the end of each further block.
    blocks: Vec<u32>,
}

impl Log {
    /// How many inputs it has with their actions.
    #[must_use]
    pub fn inputs(&self) -> u64 {
        self.checks.len() as u64
    }

    /// What it has of an input that it has with its actions.
    pub(super) fn entry(&self, index: u64) -> Option<Entry<'_>> {
        let batch = self.batches.get(&index).map_or(&[][..], Vec::as_slice);
        let index = usize::try_from(index).ok()?;
        let check = *self.checks.get(index)?;
        let start = if index == 0 { 0 } else { *self.ends.get(index - 1)? };
        Some(Entry { check, actions: self.actions.get(start..*self.ends.get(index)?)?, batch })
    }

    /// The check at the end of a block; `None`: it has none of that block.
    pub(super) fn block(&self, block: u64) -> Option<u32> {
        let first = self.inputs() / BLOCK;
        self.blocks.get(usize::try_from(block.checked_sub(first)?).ok()?).copied()
    }

    /// The log as bytes: equal logs, equal bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        put(&mut plain, self.checks.len() as u64);
        put(&mut plain, self.blocks.len() as u64);
        plain.extend(self.checks.iter().flat_map(|check| check.to_le_bytes()));
        plain.extend(self.blocks.iter().flat_map(|check| check.to_le_bytes()));
        let mut before = Before::default();
        let mut start = 0;
        for &end in &self.ends {
            put(&mut plain, (end - start) as u64);
            for action in &self.actions[start..end] {
                before.encode(action, &mut plain);
            }
            start = end;
        }
        put(&mut plain, self.batches.len() as u64);
        let (mut last, mut next) = (0, 0);
        for (&input, batch) in &self.batches {
            put(&mut plain, input - last);
            put(&mut plain, batch.len() as u64);
            for sample in batch {
                put(&mut plain, zigzag(sample.0.wrapping_sub(next).cast_signed()));
                next = sample.0.wrapping_add(1);
            }
            last = input;
        }
        [&MAGIC[..], &compress_to_vec_zlib(&plain, LEVEL)].concat()
    }

    /// A log from its bytes.
    ///
    /// # Errors
    /// [`DamagedLog`]; no bytes make it panic, or allocate much more than they unpack to.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedLog> {
        let packed = bytes.strip_prefix(MAGIC).ok_or(DamagedLog)?;
        let plain =
            decompress_to_vec_zlib_with_limit(packed, MOST_BYTES).map_err(|_| DamagedLog)?;
        Self::parse(&plain).ok_or(DamagedLog)
    }

    fn parse(mut plain: &[u8]) -> Option<Self> {
        let inputs = usize::try_from(take(&mut plain)?).ok()?;
        let blocks = usize::try_from(take(&mut plain)?).ok()?;
        let (checks, rest) = plain.split_at_checked(inputs.checked_mul(2)?)?;
        let (blocks, mut rest) = rest.split_at_checked(blocks.checked_mul(4)?)?;
        let mut log = Self {
            checks: checks
                .chunks_exact(2)
                .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
                .collect(),
            blocks: blocks
                .chunks_exact(4)
                .filter_map(|four| four.try_into().ok())
                .map(u32::from_le_bytes)
                .collect(),
            ..Self::default()
        };
        let mut before = Before::default();
        for _ in 0..inputs {
            for _ in 0..take(&mut rest)? {
                log.actions.push(before.decode(&mut rest)?);
            }
            log.ends.push(log.actions.len());
        }
        let (mut input, mut next) = (0_u64, 0_u64);
        for _ in 0..take(&mut rest)? {
            input = take(&mut rest)?.checked_add(input)?;
            let mut batch = Vec::new();
            for _ in 0..take(&mut rest)? {
                let sample = next.wrapping_add(unzigzag(take(&mut rest)?).cast_unsigned());
                batch.push(SampleId(sample));
                next = sample.wrapping_add(1);
            }
            log.batches.insert(input, batch);
        }
        rest.is_empty().then_some(log)
    }
}

/// An input that a log has with its actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// Of the input and its time.
    pub(super) check: u16,
    pub(super) actions: &'a [Action],
    /// The samples of the step that starts.
    pub(super) batch: &'a [SampleId],
}

/// The samples of the step that one of these actions starts, in batch order.
pub(super) fn batch(actions: &[Action], core: &Scheduler) -> Vec<SampleId> {
    let starts = |action: &Action| matches!(action, Action::StartStep { .. });
    match actions.iter().any(starts) {
        true => core.batch().map(|sample| sample.id).collect(),
        false => Vec::new(),
    }
}

/// Writes the log of a run, input by input.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    log: Log,
    /// How many inputs it keeps with their actions.
    detailed: u64,
    running: Running,
}

impl Writer {
    pub(super) fn new(detailed: u64) -> Self {
        Self { log: Log::default(), detailed, running: Running::default() }
    }

    pub(super) fn add(&mut self, at: Time, input: &Input, actions: &[Action], batch: &[SampleId]) {
        let index = self.running.inputs;
        let (check, block) = self.running.add(at, input, actions, batch);
        if self.log.inputs() < self.detailed {
            if !batch.is_empty() {
                self.log.batches.insert(index, batch.to_vec());
            }
            self.log.checks.push(check);
            self.log.actions.extend_from_slice(actions);
            self.log.ends.push(self.log.actions.len());
        } else if let Some(block) = block {
            self.log.blocks.push(block);
        }
    }

    /// The run has ended: what is left over is a block, too.
    pub(super) fn finish(mut self) -> Log {
        if self.running.inputs > self.log.inputs() && !self.running.inputs.is_multiple_of(BLOCK) {
            self.log.blocks.push(self.running.check());
        }
        self.log
    }
}

/// The check of everything so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    digest: Digest,
    /// Inputs so far.
    pub(super) inputs: u64,
    buffer: Vec<u8>,
}

impl Running {
    /// Adds an input: its own check, and that of its block where it ends one.
    pub(super) fn add(
        &mut self,
        at: Time,
        input: &Input,
        actions: &[Action],
        batch: &[SampleId],
    ) -> (u16, Option<u32>) {
        self.buffer.clear();
        // Integers and enums always encode.
        let bytes = postcard::to_extend(input, std::mem::take(&mut self.buffer));
        self.buffer = bytes.unwrap_or_default();
        let mut check = Digest::of(&self.buffer);
        check.fold(at.as_nanos());
        self.digest.fold(check.value());
        for action in actions {
            action.digest_into(&mut self.digest);
        }
        batch.iter().for_each(|sample| self.digest.fold(sample.0));
        self.inputs += 1;
        let ends = self.inputs.is_multiple_of(BLOCK);
        (check.value() as u16, ends.then(|| self.check()))
    }

    pub(super) const fn check(&self) -> u32 {
        self.digest.value() as u32
    }
}

/// The numbers of the last action of each kind.
struct Before([Vec<u64>; KINDS]);

impl Default for Before {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Vec::new()))
    }
}

impl Before {
    /// The kind, how many numbers follow, and each less the one before it.
    fn encode(&mut self, action: &Action, out: &mut Vec<u8>) {
        // Integers and enums always encode, and their encoding is a row of variable-length numbers.
        let bytes = postcard::to_extend(action, Vec::new()).unwrap_or_default();
        let mut bytes = bytes.as_slice();
        let numbers: Vec<u64> = std::iter::from_fn(|| take(&mut bytes)).collect();
        let kind = numbers.first().copied().unwrap_or(0);
        put(out, kind);
        put(out, numbers.len() as u64);
        let before = &mut self.0[kind as usize % KINDS];
        for (place, &number) in numbers.iter().enumerate().skip(1) {
            let difference = number.wrapping_sub(before.get(place).copied().unwrap_or(0));
            put(out, zigzag(difference.cast_signed()));
        }
        *before = numbers;
    }

    fn decode(&mut self, from: &mut &[u8]) -> Option<Action> {
        let kind = take(from)?;
        let before = &mut self.0[kind as usize % KINDS];
        let mut numbers = vec![kind];
        for place in 1..take(from)? {
            let before = before.get(usize::try_from(place).ok()?).copied().unwrap_or(0);
            numbers.push(before.wrapping_add(unzigzag(take(from)?).cast_unsigned()));
        }
        let mut bytes = Vec::new();
        numbers.iter().for_each(|&number| put(&mut bytes, number));
        *before = numbers;
        let (action, rest) = postcard::take_from_bytes(&bytes).ok()?;
        rest.is_empty().then_some(action)
    }
}

const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// Appends a number in groups of seven bits, as postcard does.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes such a number off the front; `None`: there is none.
fn take(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use headway_shared::action::{Discard, Refusal, RunError};
    use headway_shared::id::{ReplicaId, RequestId, SampleId, StepId, VoteId};
    use headway_shared::time::Span;
    use headway_shared::version::LearnerVersion;

    use super::*;

    fn some_actions(number: u64) -> Vec<Action> {
        let (request, sample) = (RequestId(number * 3), SampleId(number));
        match number % 5 {
            0 => Vec::new(),
            1 => vec![
                Action::StartGeneration {
                    request,
                    attempt: 1,
                    replica: ReplicaId(number as u32 % 4),
                    sample: number.is_multiple_of(2).then_some(sample),
                    resume: false,
                },
                Action::StartVote { vote: VoteId(number), sample },
            ],
            2 => vec![Action::Refuse {
                request,
                reason: Refusal::Stale,
                retry_after: Span::from_secs(60),
            }],
            3 => vec![Action::Discard { sample, reason: Discard::Late }],
            _ => vec![
                Action::StartStep {
                    step: StepId(u64::MAX - number),
                    learner: LearnerVersion::new(number as u32),
                    samples: 16,
                },
                Action::Fail { error: RunError::PublicationFailed { attempts: 3 } },
            ],
        }
    }

    fn some_batch(number: u64) -> Vec<SampleId> {
        let first = number / 2;
        if number % 5 == 4 { (first..first + 16).rev().map(SampleId).collect() } else { Vec::new() }
    }

    fn log(inputs: u64, detailed: u64) -> Log {
        let mut writer = Writer::new(detailed);
        for number in 0..inputs {
            let actions = some_actions(number);
            writer.add(Time::from_secs(number), &Input::Tick, &actions, &some_batch(number));
        }
        writer.finish()
    }

    #[test]
    fn a_log_comes_back_from_its_bytes_and_is_small() {
        for (inputs, detailed) in [(0, 10), (1, 10), (1000, 1000), (1000, 300), (1000, 0), (64, 0)]
        {
            let log = log(inputs, detailed);
            let bytes = log.to_bytes();
            assert_eq!(Log::from_bytes(&bytes), Ok(log.clone()));
            assert_eq!(log.inputs(), inputs.min(detailed));
            assert_eq!(bytes, log.to_bytes());
        }
        let bytes = log(10_000, 10_000).to_bytes().len();
        assert!(bytes < 40_000, "{bytes} bytes for 10,000 inputs");
    }

    #[test]
    fn an_entry_is_what_was_written_and_further_inputs_have_blocks() {
        let log = log(1000, 100);
        for index in 0..100 {
            let entry = log.entry(index).unwrap();
            assert_eq!((entry.actions, entry.batch), (&*some_actions(index), &*some_batch(index)));
        }
        assert_eq!(log.entry(100), None);
        // Blocks 0 and 1 are at least begun before input 100; 1000 inputs have 15 whole ones and a rest.
        assert_eq!(log.block(1), log.blocks.first().copied());
        assert_eq!(log.blocks.len(), 15);
    }

    #[test]
    fn bytes_that_are_cut_or_changed_are_no_log() {
        let bytes = log(200, 100).to_bytes();
        for length in 0..bytes.len() {
            assert_eq!(Log::from_bytes(&bytes[..length]), Err(DamagedLog), "cut at {length}");
        }
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            // zlib has a checksum of what is packed.
            assert_eq!(Log::from_bytes(&changed), Err(DamagedLog), "changed at {place}");
        }
    }
}
