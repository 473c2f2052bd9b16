//! A record as a run to read.

use super::{DECISION_VERSION, Entry, Header, Reader};
use crate::config::Config;
use crate::core::Scheduler;
use crate::digest::Digest;
use crate::input::Input;
use crate::source::{Reported, RunSource, SourceError};
use crate::time::Time;

/// A simulated run, from the bytes of its record.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    name: String,
    bytes: Vec<u8>,
    header: Header,
}

impl RecordedRun {
    /// Reads the header of a record. `name`: what tables call it.
    ///
    /// # Errors
    /// It is no record, or one of a core that may decide otherwise.
    pub fn open(name: &str, bytes: Vec<u8>) -> Result<Self, SourceError> {
        let run = Self::open_any(name, bytes)?;
        match run.header.decision_version {
            DECISION_VERSION => Ok(run),
            found => Err(SourceError::OtherDecisions { found }),
        }
    }

    /// The same of a record of any decision version: what this build decides on its inputs need not
    /// be what was decided.
    ///
    /// # Errors
    /// It is no record.
    pub fn open_any(name: &str, bytes: Vec<u8>) -> Result<Self, SourceError> {
        let header = Reader::open(&bytes[..])?.header().clone();
        Ok(Self { name: name.to_owned(), bytes, header })
    }

    /// What the record is of.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }
}

impl RunSource for RecordedRun {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn config(&self) -> &Config {
        &self.header.config
    }

    fn core(&self) -> Result<Scheduler, SourceError> {
        Ok(Scheduler::new(self.header.config.clone()))
    }

    fn inputs(&self, each: &mut dyn FnMut(Time, &Input)) -> Result<(), SourceError> {
        self.decided(&mut |at, input, _| each(at, input))
    }

    fn decided(
        &self,
        each: &mut dyn FnMut(Time, &Input, Option<Digest>),
    ) -> Result<(), SourceError> {
        for entry in Reader::open(&self.bytes[..])? {
            if let Entry::Input { at, input, actions } = entry? {
                each(at, &input, Some(actions));
            }
        }
        Ok(())
    }

    fn length(&self) -> Option<u64> {
        Some(Reader::open(&self.bytes[..]).ok()?.count_inputs())
    }

    fn decision_version(&self) -> u32 {
        self.header.decision_version
    }

    /// A simulated learner computes no loss: there is nothing to report.
    fn reported(&self) -> Result<Vec<Reported>, SourceError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{Check, FORMAT_VERSION, MAGIC};
    use super::*;

    #[test]
    fn a_run_of_another_decision_version_is_not_read() {
        let mut header = Header::new("any", Digest::new(), 1, 0, &Config::default());
        header.decision_version += 1;
        let stored = postcard::to_extend(&header.store(), Vec::new()).unwrap();
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&stored);
        bytes.extend_from_slice(&Check::default().add(0, &stored));
        let error = RecordedRun::open("any.record", bytes).unwrap_err();
        let found = DECISION_VERSION + 1;
        let said = format!("the record has decision version {found}; this build decides as");
        assert!(error.to_string().starts_with(&said), "{error}");
    }
}
