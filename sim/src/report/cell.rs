//! A cell of a table that people read.

/// What is shown, and what stands behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// What it is sorted by, as CSV has it.
    pub raw: String,
}

impl Cell {
    /// A cell that shows what it is sorted by.
    pub fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { raw: text.clone(), text }
    }
}
