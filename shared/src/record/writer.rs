//! Writes a record.

use std::io::{self, BufWriter, Write};

use serde::Serialize;

use super::format::{
    Check, END, FORMAT_VERSION, Header, INPUT, InputRef, MAGIC, MAX_ENTRY, SNAPSHOT,
};
use super::{DECISION_VERSION, Decisions};
use crate::action::Action;
use crate::core::Scheduler;
use crate::input::Input;
use crate::snapshot;
use crate::time::Time;

/// Writes a record, buffered: the [header](Writer::new), then each [input](Writer::input) as it is
/// handled, [snapshots](Writer::snapshot) where they are wanted, and the [end](Writer::finish).
/// A record that is not finished reads as cut short.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: BufWriter<W>,
    buffer: Vec<u8>,
    last: Time,
    check: Check,
    decisions: Decisions,
}

impl<W: Write> Writer<W> {
    /// Begins a record.
    ///
    /// # Errors
    /// What writing to `out` gives.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        debug_assert_eq!(header.decision_version, DECISION_VERSION);
        let mut writer = Self {
            out: BufWriter::new(out),
            buffer: Vec::new(),
            last: Time::ZERO,
            check: Check::default(),
            decisions: Decisions::default(),
        };
        writer.out.write_all(&MAGIC)?;
        writer.out.write_all(&FORMAT_VERSION.to_le_bytes())?;
        writer.encode(&header.store())?;
        writer.frame(0)?;
        Ok(writer)
    }

    /// Adds an input, the time at which it was handled (one before the latest counts as the
    /// latest, as in the core), and all actions it caused.
    ///
    /// # Errors
    /// What writing gives; [`io::ErrorKind::InvalidInput`] for an input of more than 1 MiB.
    pub fn input(&mut self, now: Time, input: &Input, actions: &[Action]) -> io::Result<()> {
        let now = now.max(self.last);
        let digest = self.decisions.add(now, actions);
        let after = now.since(self.last).as_nanos();
        self.encode(&InputRef { after, input, actions: digest.value().to_le_bytes() })?;
        self.last = now;
        self.entry(INPUT)
    }

    /// Adds a snapshot of the core, as it is after the last input.
    ///
    /// # Errors
    /// What writing gives; [`io::ErrorKind::InvalidInput`] for a snapshot of more than 4 GiB.
    pub fn snapshot(&mut self, scheduler: &Scheduler) -> io::Result<()> {
        self.buffer = snapshot::to_bytes(scheduler).map_err(io::Error::other)?;
        self.frame(SNAPSHOT)
    }

    /// Ends the record, and returns what the run decided.
    ///
    /// # Errors
    /// What writing gives.
    pub fn finish(mut self) -> io::Result<Decisions> {
        let decisions = self.decisions;
        self.encode(&decisions)?;
        self.entry(END)?;
        self.out.flush()?;
        Ok(decisions)
    }

    fn encode(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.buffer.clear();
        let buffer = std::mem::take(&mut self.buffer);
        self.buffer = postcard::to_extend(value, buffer).map_err(io::Error::other)?;
        Ok(())
    }

    fn entry(&mut self, kind: u8) -> io::Result<()> {
        if self.buffer.len() > MAX_ENTRY {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "an input of more than 1 MiB"));
        }
        self.frame(kind)
    }

    /// Writes the buffer; kind 0 is the header, which has none in the file.
    fn frame(&mut self, kind: u8) -> io::Result<()> {
        let length = u32::try_from(self.buffer.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "an entry of over 4 GiB"))?;
        if kind > 0 {
            self.out.write_all(&[kind])?;
        }
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&self.buffer)?;
        self.out.write_all(&self.check.add(kind, &self.buffer))
    }
}
