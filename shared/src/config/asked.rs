//! What readers ask for, written down: the form of a file, from the code that reads it.

use std::cell::RefCell;

/// What a key can hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A whole number, from the first to the second.
    Whole(u64, u64),
    /// A number, from the first to the second.
    Number(f64, f64),
    /// Two numbers in a list, each from the first to the second.
    Pair(f64, f64),
    /// True or false.
    Boolean,
    /// Text.
    Text,
    /// One of a few words.
    Words(Vec<&'static str>),
    /// A list of texts.
    Texts,
    /// A table, whose keys are asked for below its path.
    Table,
    /// A list of such tables.
    Tables,
    /// A table of a form that several keys have, by the name of that form.
    Form(&'static str),
    /// Something that its reader looks at itself.
    Any,
}

/// What a reader asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// A key of the table at a path; items of a list of tables are `[]`.
    Key {
        /// The path.
        path: String,
        /// The key.
        key: &'static str,
        /// What it can hold.
        shape: Shape,
    },
    /// The key has to be there.
    Required {
        /// The path.
        path: String,
        /// The key.
        key: &'static str,
    },
    /// The table was read to its end.
    Finished {
        /// The path.
        path: String,
    },
}

/// Writes down what is asked, if that is wanted.
#[derive(Debug, Default)]
pub(super) struct Notes(RefCell<Option<Vec<Asked>>>);

impl Notes {
    pub(super) fn begin(&self) {
        *self.0.borrow_mut() = Some(Vec::new());
    }

    pub(super) fn take(&self) -> Vec<Asked> {
        self.0.take().unwrap_or_default()
    }

    /// `asked` is made only if it is kept.
    pub(super) fn note(&self, path: &str, asked: impl FnOnce(String) -> Asked) {
        if let Some(notes) = self.0.borrow_mut().as_mut() {
            notes.push(asked(without_numbers(path)));
        }
    }
}

/// `at[3].kind` as `at[].kind`.
fn without_numbers(path: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for letter in path.chars() {
        inside = (inside || letter == '[') && letter != ']';
        if !inside || letter == '[' {
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_a_list_have_one_path() {
        assert_eq!(without_numbers("world.faults.at[12].set"), "world.faults.at[].set");
        assert_eq!(without_numbers("queue.output"), "queue.output");
    }
}
