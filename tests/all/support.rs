//! Running the real binary.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A scenario that takes a moment.
pub(crate) fn small() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/small.toml")
}

/// A file of a live run, as users have it.
pub(crate) fn live(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/live").join(name)
}

/// The binary, in a folder of its own.
pub(crate) fn headway(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    // Whether the tests run in CI is not what they are about.
    command.current_dir(folder).env_remove("CI");
    command
}

/// Runs the binary in `folder`.
pub(crate) fn run(folder: &Path, args: &[&str]) -> Output {
    headway(folder).args(args).output().expect("the binary starts")
}

/// The same; it must succeed. Gives what it wrote to stdout.
pub(crate) fn succeed(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).expect("stdout is text")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every file of a folder with its bytes.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    entries
        .map(|entry| {
            let path = entry.expect("it can be listed").path();
            let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
            (name, fs::read(path).expect("it is a file"))
        })
        .collect()
}
