//! Writing to stdout and stderr.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal, Write};
use std::panic::PanicHookInfo;

use headway_shared::config::{Diagnostic, Diagnostics, Origin, Severity};
use miette::{LabeledSpan, MietteDiagnostic, NamedSource, Report};

use crate::failure::Failure;
use crate::progress;

/// The width of text in files and pipes, in characters.
const PLAIN_WIDTH: usize = 100;

/// Writes data to stdout.
///
/// # Errors
/// The reader has gone away, or stdout cannot be written.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| unwritten(&error))
}

/// Writes what is to be read beside data: behind a table to stdout, else to stderr, which leaves
/// stdout to those who parse it.
///
/// # Errors
/// As [`data`].
pub(crate) fn beside(text: &str, is_table: bool) -> Result<(), Failure> {
    if is_table {
        return data(text);
    }
    let _ = io::stderr().lock().write_all(text.as_bytes());
    Ok(())
}

/// How wide text may be: as wide as the terminal, or [`PLAIN_WIDTH`] where stdout is none.
pub(crate) fn width() -> usize {
    let terminal = if io::stdout().is_terminal() { terminal_size::terminal_size() } else { None };
    terminal.map_or(PLAIN_WIDTH, |(width, _)| usize::from(width.0))
}

/// Stdout did not take what was written to it.
pub(crate) fn unwritten(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Unread,
        _ => Failure::broken(format!("stdout cannot be written: {error}")),
    }
}

/// Writes a line to stderr. If that fails there is nobody left to tell.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes a line to stderr about what went well, unless `--quiet` is given.
pub(crate) fn remark(text: &str) {
    if !progress::is_quiet() {
        note(text);
    }
}

/// Says where Headway broke: a bug of its own, in one line; with the stack if `RUST_BACKTRACE` asks
/// for it.
pub(crate) fn internal_error(panic: &PanicHookInfo<'_>) {
    let text = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
    note(&format!("internal error{place}: {text}"));
    let stack = Backtrace::capture();
    if stack.status() == BacktraceStatus::Captured {
        note(&stack.to_string());
    }
}

/// Shows findings on stderr: with the source around them on a terminal, else as
/// `file:line:column: message`, which editors and scripts can read.
pub(crate) fn diagnose(diagnostics: &Diagnostics) {
    if !io::stderr().is_terminal() {
        let _ = write!(io::stderr().lock(), "{diagnostics}");
        return;
    }
    for item in &diagnostics.items {
        note(&format!("{:?}", report(diagnostics, item)));
    }
}

fn report(diagnostics: &Diagnostics, item: &Diagnostic) -> Report {
    let sources = &diagnostics.sources;
    let label = |origin: Origin, text: Option<String>| {
        LabeledSpan::new(text, origin.start, origin.end.saturating_sub(origin.start))
    };
    // One report shows one text: places in others are left to the plain form.
    let related = item
        .related
        .iter()
        .filter(|(origin, _)| origin.source == item.origin.source)
        .map(|(origin, note)| label(*origin, Some(note.clone())));
    let mut shown = MietteDiagnostic::new(item.message.clone())
        .with_severity(match item.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
        .with_labels(std::iter::once(label(item.origin, None)).chain(related));
    shown.help.clone_from(&item.help);
    let source = item.origin.source;
    Report::new(shown)
        .with_source_code(NamedSource::new(sources.name(source), sources.text(source).to_owned()))
}

/// A word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted("a.b=1"), "a.b=1");
        assert_eq!(quoted("a={ kind = \"x\" }"), "'a={ kind = \"x\" }'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
