//! A stream of server-sent events, line by line.

use crate::utf8;

/// A longer line is no answer.
const LONGEST_LINE: usize = 64 << 20;

/// A line has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line is too long")]
pub(in crate::engine) struct LongLine;

/// Cuts what a connection gives into lines.
#[derive(Debug, Default)]
pub(in crate::engine) struct Lines {
    bytes: Vec<u8>,
    /// How much of `bytes` holds no end of a line.
    seen: usize,
}

impl Lines {
    /// Takes what the connection gave; the data of the lines that are whole now.
    pub(in crate::engine) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, LongLine> {
        self.bytes.extend_from_slice(bytes);
        let mut data = Vec::new();
        while let Some(end) = self.bytes[self.seen..].iter().position(|&byte| byte == b'\n') {
            let rest = self.bytes.split_off(self.seen + end + 1);
            let line = std::mem::replace(&mut self.bytes, rest);
            self.seen = 0;
            let line = utf8::lossy(line);
            // Empty lines and comments are part of the format.
            match line.trim().strip_prefix("data:").map(str::trim) {
                None | Some("[DONE]") => {}
                Some(text) => data.push(text.to_owned()),
            }
        }
        self.seen = self.bytes.len();
        if self.seen > LONGEST_LINE { Err(LongLine) } else { Ok(data) }
    }
}
