//! Writing a folder of results so that a reader never finds a half-written file.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Names of folders that are being written begin with this.
pub const PREFIX: &str = ".headway-";

/// The file in a staging folder that its process keeps locked.
const LOCK: &str = "lock";

/// Files on their way into a folder: written beside it, then renamed into it one by one.
///
/// Whoever is killed before [`commit`](Self::commit) leaves the folder as it was; a file is
/// replaced whole or not at all. What was staged and not committed is deleted when this is
/// dropped; a killed process leaves it in a folder whose name begins with [`PREFIX`], which the
/// next one removes, if it does not [go on](Self::beside_leftovers) with it. Processes that write
/// to one folder at once do not disturb each other; the last one to commit wins.
#[derive(Debug)]
pub struct Folder {
    target: PathBuf,
    staging: TempDir,
    names: Vec<String>,
    /// What is deleted with the commit, if nothing staged has its name.
    obsolete: Vec<String>,
    /// Held for as long as the staging folder is in use; the system frees it when we die.
    _lock: fs::File,
}

impl Folder {
    /// Prepares to write into `target`, which is made where it is missing.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn open(target: &Path) -> io::Result<Self> {
        fs::create_dir_all(target)?;
        remove_leftovers(target)?;
        Self::beside_leftovers(target)
    }

    /// The same, but what killed processes left stays: for who wants to go on with it.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn beside_leftovers(target: &Path) -> io::Result<Self> {
        fs::create_dir_all(target)?;
        // Inside the target, so that it is on the same file system and a rename is atomic.
        let staging = tempfile::Builder::new().prefix(PREFIX).tempdir_in(target)?;
        let lock = fs::File::create(staging.path().join(LOCK))?;
        lock.lock()?;
        Ok(Self {
            target: target.into(),
            staging,
            names: Vec::new(),
            obsolete: Vec::new(),
            _lock: lock,
        })
    }

    /// Stages a file that is written bit by bit, before the commit.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn create(&mut self, name: &str) -> io::Result<fs::File> {
        self.names.push(name.into());
        fs::File::create(self.staging.path().join(name))
    }

    /// Stages a file.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.create(name)?.write_all(bytes)
    }

    /// A file beside the staged ones that no commit puts anywhere.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn scratch(&self, name: &str) -> io::Result<fs::File> {
        fs::File::create(self.staging.path().join(name))
    }

    /// The staging folders of `target` in order of their names, each with whether a process is at
    /// work in it; none where there is no such folder.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn staged(target: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
        let mut staged = Vec::new();
        let entries = match fs::read_dir(target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(staged),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
            if is_ours && entry.file_type()?.is_dir() {
                let path = entry.path();
                let is_in_use = is_in_use(&path);
                staged.push((path, is_in_use));
            }
        }
        staged.sort();
        Ok(staged)
    }

    /// From now on, what is not committed stays where it is staged, as when the process is killed.
    pub fn keep(&mut self) {
        self.staging.disable_cleanup(true);
    }

    /// Names files of an earlier result: the commit deletes those that it does not replace.
    pub fn replaces(&mut self, names: Vec<String>) {
        self.obsolete.extend(names);
    }

    /// The names of the staged files, in order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Puts every staged file in its place, in the order in which they were written.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn commit(self) -> io::Result<()> {
        for name in &self.names {
            fs::rename(self.staging.path().join(name), self.target.join(name))?;
        }
        for name in self.obsolete.iter().filter(|name| !self.names.contains(name)) {
            match fs::remove_file(self.target.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.staging.close()
    }
}

/// Removes what earlier processes left when they were killed.
///
/// # Errors
/// What the file system reports.
pub fn remove_leftovers(target: &Path) -> io::Result<()> {
    for (staging, _) in Folder::staged(target)?.iter().filter(|(_, is_in_use)| !is_in_use) {
        fs::remove_dir_all(staging)?;
    }
    Ok(())
}

/// Whether the process that made a staging folder is alive.
fn is_in_use(staging: &Path) -> bool {
    // For writing: a network file system gives its exclusive locks to writers alone.
    match fs::File::options().write(true).open(staging.join(LOCK)) {
        Ok(lock) => matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock)),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into()).collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_seen_before_the_commit() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("out/name");
        let mut folder = Folder::open(&target).unwrap();
        folder.write("a.csv", b"new").unwrap();
        assert!(!target.join("a.csv").exists());
        folder.commit().unwrap();
        assert_eq!(names(&target), ["a.csv"]);
        assert_eq!(fs::read(target.join("a.csv")).unwrap(), b"new");
    }

    #[test]
    fn what_was_given_up_leaves_the_old_files() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.csv"), "old").unwrap();
        let mut folder = Folder::open(dir.path()).unwrap();
        folder.write("a.csv", b"new").unwrap();
        drop(folder);
        assert_eq!(names(dir.path()), ["a.csv"]);
        assert_eq!(fs::read(dir.path().join("a.csv")).unwrap(), b"old");
    }

    #[test]
    fn what_an_earlier_result_had_and_this_one_has_not_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.svg", "b.svg", "mine.txt"] {
            fs::write(dir.path().join(name), "old").unwrap();
        }
        let mut folder = Folder::open(dir.path()).unwrap();
        folder.replaces(["a.svg", "b.svg", "gone.svg"].map(str::to_owned).to_vec());
        folder.write("a.svg", b"new").unwrap();
        folder.commit().unwrap();
        assert_eq!(names(dir.path()), ["a.svg", "mine.txt"]);
    }

    #[test]
    fn two_that_write_at_once_do_not_disturb_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Folder::open(dir.path()).unwrap();
        first.write("a.csv", b"first").unwrap();
        let mut second = Folder::open(dir.path()).unwrap();
        second.write("a.csv", b"second").unwrap();
        first.commit().unwrap();
        second.commit().unwrap();
        assert_eq!(names(dir.path()), ["a.csv"]);
        assert_eq!(fs::read(dir.path().join("a.csv")).unwrap(), b"second");
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join(format!("{PREFIX}left"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("half.csv"), "ha").unwrap();
        Folder::open(dir.path()).unwrap().commit().unwrap();
        assert_eq!(names(dir.path()), Vec::<String>::new());
    }
}
