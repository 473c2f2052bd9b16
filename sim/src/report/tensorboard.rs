//! Event files, as TensorBoard reads them.
//!
//! A file is a sequence of records: the length of the data (8 bytes), its checksum (4), the data,
//! its checksum (4), all little-endian. A checksum is a CRC-32C, masked so that a checksum of data
//! that holds checksums is still a good one. The data are protocol buffers: `Event` with `wall_time`
//! (field 1, double), `step` (2, varint), `file_version` (3, text) or `summary` (5, message), whose
//! `value`s (1) have a `tag` (1, text) and a `simple_value` (2, float).

/// TensorBoard takes a file for one of its own by this part of its name.
pub const FILE_NAME: &str = "events.out.tfevents.0.headway";

/// What the first event of a file says.
const FILE_VERSION: &str = "brain.Event:2";
/// CRC-32C (Castagnoli), its bits reversed.
const POLYNOMIAL: u32 = 0x82F6_3B78;
const MASK_DELTA: u32 = 0xA282_EAD8;

/// An event file that is being written, in memory.
#[derive(Clone, Debug)]
pub struct EventFile {
    bytes: Vec<u8>,
}

impl EventFile {
    /// A file without values. Its time is 0, so that the same values make the same bytes.
    #[must_use]
    pub fn new() -> Self {
        let mut file = Self { bytes: Vec::new() };
        let mut event = Vec::new();
        double(&mut event, 1, 0.0);
        bytes(&mut event, 3, FILE_VERSION.as_bytes());
        file.record(&event);
        file
    }

    /// Adds the values of a step, at a time in seconds.
    pub fn add<'t>(
        &mut self,
        step: u64,
        seconds: f64,
        values: impl IntoIterator<Item = (&'t str, f64)>,
    ) {
        let mut summary = Vec::new();
        for (tag, value) in values {
            let mut message = Vec::new();
            bytes(&mut message, 1, tag.as_bytes());
            key(&mut message, 2, 5);
            message.extend((value as f32).to_le_bytes());
            bytes(&mut summary, 1, &message);
        }
        let mut event = Vec::new();
        double(&mut event, 1, seconds);
        key(&mut event, 2, 0);
        varint(&mut event, step);
        bytes(&mut event, 5, &summary);
        self.record(&event);
    }

    /// The whole file.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn record(&mut self, data: &[u8]) {
        let length = (data.len() as u64).to_le_bytes();
        self.bytes.extend(length);
        self.bytes.extend(masked(crc32c(&length)).to_le_bytes());
        self.bytes.extend(data);
        self.bytes.extend(masked(crc32c(data)).to_le_bytes());
    }
}

impl Default for EventFile {
    fn default() -> Self {
        Self::new()
    }
}

fn key(message: &mut Vec<u8>, field: u64, kind: u64) {
    varint(message, field << 3 | kind);
}

fn varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

fn double(message: &mut Vec<u8>, field: u64, value: f64) {
    key(message, field, 1);
    message.extend(value.to_le_bytes());
}

fn bytes(message: &mut Vec<u8>, field: u64, value: &[u8]) {
    key(message, field, 2);
    varint(message, value.len() as u64);
    message.extend(value);
}

fn crc32c(data: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
    !data.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

const fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_that_rfc_3720_lists() {
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
        let up: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&up), 0x46DD_794E);
        let down: Vec<u8> = (0..32).rev().collect();
        assert_eq!(crc32c(&down), 0x113F_DB5C);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn the_bytes_of_a_small_file_are_these() {
        let mut file = EventFile::new();
        file.add(300, 1.5, [("a/b", 0.25)]);
        let bytes = file.into_bytes();
        // wall_time 0, file_version.
        let first = [&[0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0x1A, 13][..], b"brain.Event:2"].concat();
        assert_eq!(bytes[..8], (first.len() as u64).to_le_bytes());
        assert_eq!(bytes[12..12 + first.len()], first);
        let second = &bytes[16 + first.len()..];
        let event = [
            &[0x09, 0, 0, 0, 0, 0, 0, 0xF8, 0x3F, 0x10, 0xAC, 0x02, 0x2A, 12][..],
            &[0x0A, 10, 0x0A, 3, b'a', b'/', b'b', 0x15, 0, 0, 0x80, 0x3E],
        ]
        .concat();
        assert_eq!(second[12..12 + event.len()], event);
        assert_eq!(second.len(), 16 + event.len());
        let length = (event.len() as u64).to_le_bytes();
        assert_eq!(second[8..12], masked(crc32c(&length)).to_le_bytes());
        assert_eq!(second[12 + event.len()..], masked(crc32c(&event)).to_le_bytes());
    }
}
