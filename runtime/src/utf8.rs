//! Bytes that should be text.

/// As text, without a copy where it is that already; what is no UTF-8 is U+FFFD.
pub(crate) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|wrong| String::from_utf8_lossy(wrong.as_bytes()).into_owned())
}
