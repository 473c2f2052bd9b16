//! Lines of a text that may be no text, one at a time.

use std::io::{BufRead, Read};

use super::{ImportError, Problem};

/// No row of a trace is longer: what is, is no table.
const LONGEST: usize = 4096;

/// A line, without its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: u64,
    pub(super) text: &'a str,
}

impl<'a> Line<'a> {
    /// Something is wrong with `part`, which is a part of this line.
    pub(super) fn wrong(&self, part: &str, problem: Problem) -> ImportError {
        // Both are addresses within one text; elsewhere the line's start has to do.
        let offset = (part.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize);
        let offset = offset.filter(|&offset| offset <= self.text.len()).unwrap_or(0);
        ImportError::Wrong { line: self.number, column: offset + 1, problem }
    }

    /// The values between the commas, if there are `N`.
    pub(super) fn values<const N: usize>(&self) -> Result<[&'a str; N], ImportError> {
        let mut values = [""; N];
        let mut found = 0;
        for value in self.text.split(',') {
            if let Some(place) = values.get_mut(found) {
                *place = value.trim();
            }
            found += 1;
        }
        if found == N {
            return Ok(values);
        }
        let problem = Problem::Values { row: self.text.into(), found, expected: N };
        Err(self.wrong(self.text, problem))
    }
}

/// Reads lines; holds one of them.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    longest: usize,
    number: u64,
    bytes: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self::up_to(LONGEST, reader)
    }

    /// Of a text whose lines may be as long as this.
    pub(super) fn up_to(longest: usize, reader: R) -> Self {
        Self { reader, longest, number: 0, bytes: Vec::new() }
    }

    /// Lines read so far.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// The next line that is not blank.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, ImportError> {
        loop {
            self.bytes.clear();
            let mut limited = (&mut self.reader).take(self.longest as u64 + 1);
            let length = limited.read_until(b'\n', &mut self.bytes).map_err(ImportError::Read)?;
            if length == 0 {
                return Ok(None);
            }
            self.number += 1;
            if !self.bytes.iter().all(u8::is_ascii_whitespace) || length > self.longest {
                break;
            }
        }
        let number = self.number;
        let wrong = |column, problem| ImportError::Wrong { line: number, column, problem };
        let limit = self.longest;
        if self.bytes.len() > limit && std::str::from_utf8(&self.bytes).is_ok() {
            return Err(wrong(limit, Problem::TooLong { limit }));
        }
        let text = std::str::from_utf8(&self.bytes)
            .map_err(|error| wrong(error.valid_up_to() + 1, Problem::NotText))?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        Ok(Some(Line { number, text: text.strip_suffix('\r').unwrap_or(text) }))
    }
}
