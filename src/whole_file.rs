//! A file that an option names, written whole or not at all.

use std::io;
use std::path::Path;

use headway_sim::report::folder::Folder;

use crate::failure::Failure;
use crate::terminal::quoted;

/// A file to write, and the option that names it.
#[derive(Clone, Copy)]
pub(crate) struct WholeFile<'a> {
    /// The file, as it was given.
    pub(crate) path: &'a Path,
    /// The option, such as `--out`.
    pub(crate) option: &'static str,
    /// What it could name, such as `table.csv`.
    pub(crate) example: &'static str,
}

impl<'a> WholeFile<'a> {
    /// The folder that it goes to.
    pub(crate) fn folder(self) -> &'a Path {
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new("."))
    }

    /// Where it is staged, and its name there.
    ///
    /// # Errors
    /// It names no file, or one that cannot be written.
    pub(crate) fn stage(self) -> Result<(Folder, String), Failure> {
        let Self { path, option, example } = self;
        if path.is_dir() {
            let example = quoted(&path.join(example).display().to_string());
            let what = "cannot be written: this is a folder";
            return Err(self.wrong(&format!("{what}\nhelp: name one, such as {option} {example}")));
        }
        let Some(name) = path.file_name() else {
            return Err(self.wrong(&format!("names no file\nhelp: write {option} {example}")));
        };
        let folder = Folder::open(self.folder()).map_err(|error| self.unwritable(&error))?;
        Ok((folder, name.to_string_lossy().into_owned()))
    }

    /// It cannot be written.
    pub(crate) fn unwritable(self, error: &io::Error) -> Failure {
        self.wrong(&format!(
            "cannot be written: {error}\nhelp: choose another {} FILE",
            self.option
        ))
    }

    fn wrong(self, what: &str) -> Failure {
        Failure::input(format!("{}: {what}", self.path.display()))
    }
}
