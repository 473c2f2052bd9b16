//! Lines of a text.

/// Where the line of a place begins.
pub(super) fn start_of_line(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Where the line after that of a place begins.
pub(super) fn end_of_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// How the text ends its lines.
pub(super) fn line_break(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Whether this is nothing but what a key may have before its last name: spaces, and names of
/// tables with dots.
pub(super) fn is_key_path(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim();
    text.is_empty() || (text.ends_with('.') && !text.contains(['{', '=', '#', ',']))
}
