//! Bytes as the letters that byte-level vocabularies spell them with, as GPT-2 does.

/// Each byte's letter: itself where it can be seen, else one from U+0100 on.
pub(super) fn letters() -> [char; 256] {
    let mut hidden = (0x100..).filter_map(char::from_u32);
    std::array::from_fn(|byte| {
        let byte = byte as u8;
        match byte {
            b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
            _ => hidden.next().unwrap_or_default(),
        }
    })
}

/// The byte of each letter.
pub(super) fn bytes() -> impl Fn(char) -> Option<u8> {
    let mut bytes = [None; 0x144];
    for (byte, letter) in letters().into_iter().enumerate() {
        bytes[letter as usize] = Some(byte as u8);
    }
    move |letter| bytes.get(letter as usize).copied().flatten()
}
