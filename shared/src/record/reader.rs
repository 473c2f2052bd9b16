//! Reads a record.

use std::io::{BufReader, ErrorKind, Read};

use super::Decisions;
use super::format::{
    Check, END, FORMAT_VERSION, Header, INPUT, MAGIC, MAX_ENTRY, RecordError, SNAPSHOT,
    StoredHeader, StoredInput,
};
use crate::digest::Digest;
use crate::input::Input;
use crate::time::{Span, Time};

/// The bytes of a check behind an entry.
const CHECK: u64 = 4;

/// One entry of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The core handled an input.
    Input {
        /// When.
        at: Time,
        /// What.
        input: Input,
        /// The digest of the actions it caused: see [`Decisions::add`].
        actions: Digest,
    },
    /// The core as it was after the input before; for
    /// [`snapshot::from_bytes`](crate::snapshot::from_bytes).
    Snapshot(Vec<u8>),
    /// The end: what the whole run decided.
    End(Decisions),
}

/// Reads a record, entry by entry. The last is [`Entry::End`]; after it or an error comes nothing.
///
/// No bytes make it panic, and no length in them makes it allocate more than a small multiple of
/// what the file holds.
#[derive(Debug)]
pub struct Reader<R: Read> {
    source: BufReader<R>,
    header: Header,
    buffer: Vec<u8>,
    entries: u64,
    inputs: u64,
    last: Time,
    check: Check,
    over: bool,
}

impl<R: Read> Reader<R> {
    /// Opens a record, and reads its header.
    ///
    /// # Errors
    /// [`RecordError::NotARecord`], [`OtherFormat`](RecordError::OtherFormat),
    /// [`DamagedHeader`](RecordError::DamagedHeader), [`UnknownConfig`](RecordError::UnknownConfig)
    /// or what reading gives.
    pub fn open(source: R) -> Result<Self, RecordError> {
        let mut source = BufReader::new(source);
        let magic = bytes(&mut source)?.ok_or(RecordError::NotARecord)?;
        if magic != MAGIC {
            return Err(RecordError::NotARecord);
        }
        let found = u16::from_le_bytes(bytes(&mut source)?.ok_or(RecordError::DamagedHeader)?);
        if found != FORMAT_VERSION {
            return Err(RecordError::OtherFormat { found });
        }
        let (mut buffer, mut check) = (Vec::new(), Check::default());
        let state = frame(&mut source, &mut buffer, &mut check, 0)?;
        if state != Frame::Whole {
            return Err(RecordError::DamagedHeader);
        }
        let stored: StoredHeader = decode(&buffer).ok_or(RecordError::DamagedHeader)?;
        let header = stored.restore().ok_or(RecordError::UnknownConfig)?;
        let (entries, inputs, last, over) = (0, 0, Time::ZERO, false);
        Ok(Self { source, header, buffer, entries, inputs, last, check, over })
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// How many inputs come yet, for whoever waits for them: up to where the record ends or breaks off.
    /// They are not looked into.
    #[must_use]
    pub fn count_inputs(mut self) -> u64 {
        let mut inputs = 0;
        loop {
            match self.pass() {
                Ok(Some(INPUT)) => inputs += 1,
                Ok(Some(SNAPSHOT)) => {}
                _ => return inputs,
            }
        }
    }

    /// Goes behind the next entry. Gives its kind; `None`: the record breaks off.
    fn pass(&mut self) -> Result<Option<u8>, RecordError> {
        let Some([kind]) = bytes(&mut self.source)? else { return Ok(None) };
        let Some(length) = bytes(&mut self.source)? else { return Ok(None) };
        let length = u64::from(u32::from_le_bytes(length)) + CHECK;
        self.buffer.clear();
        let read = self.source.by_ref().take(length).read_to_end(&mut self.buffer)?;
        Ok((read as u64 == length).then_some(kind))
    }

    fn read(&mut self) -> Result<Entry, RecordError> {
        let entry = self.entries;
        let [kind] = bytes(&mut self.source)?.ok_or(RecordError::Truncated { entry })?;
        if !matches!(kind, INPUT | SNAPSHOT | END) {
            return Err(RecordError::Corrupt { entry });
        }
        match frame(&mut self.source, &mut self.buffer, &mut self.check, kind)? {
            Frame::Whole => {}
            Frame::Truncated => return Err(RecordError::Truncated { entry }),
            Frame::Corrupt => return Err(RecordError::Corrupt { entry }),
        }
        self.entries += 1;
        self.parse(kind).ok_or(RecordError::Corrupt { entry })
    }

    fn parse(&mut self, kind: u8) -> Option<Entry> {
        match kind {
            INPUT => {
                let stored: StoredInput = decode(&self.buffer)?;
                self.inputs += 1;
                self.last += Span::from_nanos(stored.after);
                let actions = Digest::from_value(u64::from_le_bytes(stored.actions));
                Some(Entry::Input { at: self.last, input: stored.input, actions })
            }
            SNAPSHOT => Some(Entry::Snapshot(std::mem::take(&mut self.buffer))),
            _ => {
                let end: Decisions = decode(&self.buffer)?;
                self.over = true;
                (end.inputs == self.inputs).then_some(Entry::End(end))
            }
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Entry, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let entry = self.read();
        self.over |= entry.is_err();
        Some(entry)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    Whole,
    Truncated,
    Corrupt,
}

/// Reads length, content and check. A header (kind 0) and inputs have a greatest length; the
/// content of a snapshot grows only as it is read.
fn frame(
    source: &mut impl Read,
    buffer: &mut Vec<u8>,
    check: &mut Check,
    kind: u8,
) -> Result<Frame, RecordError> {
    let Some(length) = bytes(source)? else { return Ok(Frame::Truncated) };
    let length = u32::from_le_bytes(length);
    if kind != SNAPSHOT && length as usize > MAX_ENTRY {
        return Ok(Frame::Corrupt);
    }
    buffer.clear();
    source.by_ref().take(length.into()).read_to_end(buffer)?;
    if buffer.len() < length as usize {
        return Ok(Frame::Truncated);
    }
    let Some(stored) = bytes::<4>(source)? else { return Ok(Frame::Truncated) };
    Ok(if stored == check.add(kind, buffer) { Frame::Whole } else { Frame::Corrupt })
}

/// The next `N` bytes; `None` where the source ends before.
fn bytes<const N: usize>(source: &mut impl Read) -> Result<Option<[u8; N]>, RecordError> {
    let mut bytes = [0; N];
    match source.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// `None` if the bytes are no `T`, or more than one.
fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(value)
}
