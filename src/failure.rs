//! Why a command did not succeed, and what the shell is told.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use headway_shared::config::{Diagnostics, nearest};
use headway_sim::import::ImportError;
use headway_sim::plan::PlanError;
use headway_sim::sweep::Misfit;
use headway_sim::tune::TuneError;
use headway_sim::validate::ValidateError;

use crate::terminal::{self, quoted};

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input is wrong, and it is known where.
    Diagnosed(Diagnostics),
    /// The input is wrong at one point of a sweep.
    Misfit(Box<Misfit>),
    /// The input is wrong: a message with its remedy.
    Input(String),
    /// It was done, and the answer is no; everything has been said.
    Negative,
    /// It could not be done.
    Broken(String),
    /// Whoever reads the output wants no more of it.
    Unread,
}

impl Failure {
    /// The input is wrong.
    pub(crate) fn input(message: impl Display) -> Self {
        Self::Input(message.to_string())
    }

    /// Something that does not depend on the input went wrong.
    pub(crate) fn broken(message: impl Display) -> Self {
        Self::Broken(message.to_string())
    }

    /// A file of the input cannot be read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let (what, help) = match error.kind() {
            io::ErrorKind::NotFound => (format!("cannot be read: {error}"), instead_of(path)),
            io::ErrorKind::IsADirectory => {
                ("cannot be read: this is a folder".to_owned(), "name a file in it".to_owned())
            }
            io::ErrorKind::PermissionDenied => {
                let help = "name a file that you may read, or let its owner allow it";
                (format!("cannot be read: {error}"), help.to_owned())
            }
            _ => {
                let help = "name a file that exists and that you may read";
                (format!("cannot be read: {error}"), help.to_owned())
            }
        };
        Self::Input(format!("{}: {what}\nhelp: {help}", path.display()))
    }

    /// Files cannot be written to a folder.
    pub(crate) fn unwritable(folder: &Path, error: &io::Error) -> Self {
        let what = match folder.is_file() {
            true => "cannot be written: this is a file".to_owned(),
            false => format!("cannot be written: {error}"),
        };
        let help = "choose another folder with --out DIR";
        Self::Input(format!("{}: {what}\nhelp: {help}", folder.display()))
    }

    /// What is imported is wrong, or the table cannot be written.
    pub(crate) fn import(
        file: &Path,
        error: ImportError,
        unwritable: impl FnOnce(io::Error) -> Self,
    ) -> Self {
        let name = file.display();
        match error {
            ImportError::Read(error) => Self::unreadable(file, &error),
            ImportError::Write(error) => unwritable(error),
            ImportError::NothingFits => Self::Input(format!(
                "{name}: {error}\nhelp: take smaller batches, or more GPUs (--tp-size)"
            )),
            ImportError::Wrong { line, column, problem } => {
                Self::Input(format!("{name}:{line}:{column}: {problem}\nhelp: {}", problem.help()))
            }
        }
    }

    /// Says on stderr what went wrong.
    pub(crate) fn report(&self) {
        match self {
            Self::Diagnosed(diagnostics) => terminal::diagnose(diagnostics),
            Self::Misfit(misfit) => {
                terminal::note(&format!("with {}:", misfit.set.join(", ")));
                terminal::diagnose(&misfit.diagnostics);
                if let Some(fitting) = &misfit.fitting {
                    terminal::note(&format!("or sweep what fits: --over {}", quoted(fitting)));
                }
            }
            Self::Input(message) | Self::Broken(message) => terminal::note(message),
            Self::Negative | Self::Unread => {}
        }
    }

    /// 1: a threshold, invariant or comparison failed; 2: the input is wrong.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Diagnosed(_) | Self::Misfit(_) | Self::Input(_) => ExitCode::from(2),
            Self::Negative | Self::Broken(_) => ExitCode::FAILURE,
            Self::Unread => ExitCode::SUCCESS,
        }
    }
}

/// What to name instead of a file that is not there.
fn instead_of(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else {
        return format!("there is no folder {}: name a file that exists", folder.display());
    };
    // An ending that both have makes no two names alike.
    let there = entries.filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name())));
    let there = there.filter(|file| file.extension() == path.extension());
    let mut stems: Vec<String> =
        there.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
    stems.sort();
    let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let Some(near) = nearest(&stem, &stems) else {
        return "name a file that exists and that you may read".to_owned();
    };
    let mut near = path.with_file_name(near);
    if let Some(extension) = path.extension() {
        near.as_mut_os_string().push(".");
        near.as_mut_os_string().push(extension);
    }
    format!("did you mean {}?", near.display())
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Diagnosed(diagnostics)
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Scenario(diagnostics) => Self::Diagnosed(diagnostics),
            PlanError::Misfit(misfit) => Self::Misfit(misfit),
            PlanError::TooFew(_) | PlanError::TooMany(_) => Self::input(error),
            PlanError::Run(_) => Self::broken(error),
        }
    }
}

impl From<TuneError> for Failure {
    fn from(error: TuneError) -> Self {
        match error {
            TuneError::Misfit(misfit) => Self::Misfit(misfit),
            TuneError::Window(_) => Self::input(error),
            TuneError::Run(_) => Self::broken(error),
        }
    }
}

impl From<ValidateError> for Failure {
    fn from(error: ValidateError) -> Self {
        match error {
            ValidateError::Scenario(diagnostics) => Self::Diagnosed(diagnostics),
            ValidateError::Scheduling { .. } => Self::input(error),
            ValidateError::Threads(_) => Self::broken(error),
        }
    }
}

impl From<Misfit> for Failure {
    fn from(misfit: Misfit) -> Self {
        Self::Misfit(Box::new(misfit))
    }
}
