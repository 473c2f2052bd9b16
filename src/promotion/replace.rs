//! A file is replaced whole or not at all, and what it was is kept beside it.
//!
//! The new text is written to a file of another name in the same folder, with the owner and the
//! rights of the old one, put on disk, and renamed over it. Whoever is killed on the way leaves the
//! old file whole; what is left over is that other file, which nothing reads.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

/// A text that is on disk, beside the file whose place it is to take. Deleted when it is dropped.
struct Staged(PathBuf);

impl Drop for Staged {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Staged {
    /// Writes a text beside `file`, as `file` is owned and protected.
    fn write(file: &Path, text: &str) -> io::Result<Self> {
        let path = sibling(file, &format!("promote-{}", process::id()));
        let like = fs::metadata(file)?;
        // From a process of the same number that was killed.
        let _ = fs::remove_file(&path);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut staged = options.open(&path)?;
        let this = Self(path);
        own(&staged, &like)?;
        staged.set_permissions(like.permissions())?;
        staged.write_all(text.as_bytes())?;
        staged.sync_all()?;
        Ok(this)
    }

    /// Takes a place, in one step.
    fn rename(self, place: &Path) -> io::Result<()> {
        fs::rename(&self.0, place)?;
        // The name is taken: nothing is left to delete.
        std::mem::forget(self);
        sync_folder(place);
        Ok(())
    }
}

#[cfg(unix)]
fn own(staged: &File, like: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let is = staged.metadata()?;
    if (is.uid(), is.gid()) == (like.uid(), like.gid()) {
        return Ok(());
    }
    fchown(staged, Some(like.uid()), Some(like.gid())).map_err(|error| {
        io::Error::new(error.kind(), format!("its owner could not be kept: {error}"))
    })
}

#[cfg(not(unix))]
fn own(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// The rename is on disk, where the system can say so.
fn sync_folder(place: &Path) {
    if let Some(folder) = place.parent()
        && let Ok(folder) = File::open(folder)
    {
        let _ = folder.sync_all();
    }
}

/// The file `NAME.EXTENSION` beside the file `NAME`.
fn sibling(file: &Path, extension: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{extension}"));
    file.with_file_name(name)
}

/// Replaces a file that holds `before`.
///
/// # Errors
/// What the file system says; it is write-protected; someone else has changed it since.
pub(super) fn replace(file: &Path, before: &str, after: &str) -> io::Result<()> {
    writable(file)?;
    let staged = Staged::write(file, after)?;
    if fs::read(file)? != before.as_bytes() {
        return Err(io::Error::other("someone else has changed it meanwhile"));
    }
    staged.rename(file)
}

/// Whether its owner wants it to be changed. Whoever may write to its folder could all the same.
fn writable(file: &Path) -> io::Result<()> {
    if fs::metadata(file)?.permissions().readonly() {
        let why = "it is write-protected";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

/// Keeps a text beside a file under a name that no other has, `FILE.KIND` or `FILE.KIND.2` and so
/// on; the newest copy serves again if it is the same. Returns it, and whether it is new.
///
/// # Errors
/// What the file system says.
pub(super) fn keep(file: &Path, text: &str, kind: &str) -> io::Result<(PathBuf, bool)> {
    let newest = kept(file, kind)?;
    if let Some((_, path)) = &newest
        && fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes())
    {
        return Ok((path.clone(), false));
    }
    let number = newest.map_or(1, |(number, _)| number + 1);
    let extension = if number == 1 { kind.to_owned() } else { format!("{kind}.{number}") };
    let path = sibling(file, &extension);
    Staged::write(file, text)?.rename(&path)?;
    Ok((path, true))
}

/// The newest copy of a kind that is kept beside a file, and its number.
///
/// # Errors
/// What the file system says.
pub(super) fn kept(file: &Path, kind: &str) -> io::Result<Option<(u32, PathBuf)>> {
    let first = sibling(file, kind);
    let first = first.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let number = |name: &str| match name.strip_prefix(&first)? {
        "" => Some(1),
        rest => rest.strip_prefix('.')?.parse().ok().filter(|&number: &u32| number > 1),
    };
    let mut newest = None;
    for entry in fs::read_dir(file.parent().unwrap_or(Path::new(".")))? {
        let entry = entry?;
        let number = number(&entry.file_name().to_string_lossy());
        newest = newest.max(number.map(|number| (number, entry.path())));
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        fs::write(&file, text).unwrap();
        (dir, file)
    }

    fn names(dir: &tempfile::TempDir) -> Vec<String> {
        let entries = fs::read_dir(dir.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_process_killed_before_the_rename_leaves_the_old_file_whole() {
        let (dir, file) = folder("old");
        // Killed: nothing of what it would do afterwards is done.
        std::mem::forget(Staged::write(&file, "new").unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(names(&dir).len(), 2);
        // Neither is what is left over in the way of the next one, nor is it taken for a copy.
        assert_eq!(kept(&file, "before-promote").unwrap(), None);
        replace(&file, "old", "new").unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap(), names(&dir).len()), ("new".into(), 1));
    }

    #[test]
    fn what_fails_leaves_nothing_behind() {
        let (dir, file) = folder("theirs");
        let told = replace(&file, "old", "new").unwrap_err().to_string();
        assert_eq!(told, "someone else has changed it meanwhile");
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        let mut rights = fs::metadata(&file).unwrap().permissions();
        rights.set_readonly(true);
        fs::set_permissions(&file, rights).unwrap();
        let told = replace(&file, "theirs", "new").unwrap_err().to_string();
        assert_eq!(told, "it is write-protected");
        assert_eq!(names(&dir), ["config.toml"]);
    }

    #[test]
    fn copies_are_numbered_and_none_is_overwritten() {
        let (dir, file) = folder("one");
        for (text, number) in [("one", 1), ("two", 2), ("two", 2), ("three", 3)] {
            let (path, _) = keep(&file, text, "before-promote").unwrap();
            assert_eq!(kept(&file, "before-promote").unwrap(), Some((number, path.clone())));
            assert_eq!(fs::read_to_string(path).unwrap(), text);
        }
        let kept = ["", ".before-promote", ".before-promote.2", ".before-promote.3"];
        assert_eq!(names(&dir), kept.map(|end| format!("config.toml{end}")));
    }

    #[cfg(unix)]
    #[test]
    fn rights_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, file) = folder("old");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let (copy, _) = keep(&file, "old", "before-promote").unwrap();
        replace(&file, "old", "new").unwrap();
        for path in [&file, &copy] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o7777, 0o640);
        }
    }
}
