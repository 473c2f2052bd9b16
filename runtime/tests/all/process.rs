//! A run in a process of its own: this test binary, told to run one ignored test alone.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The variable that says where the run's files are.
pub(super) const FOLDER: &str = "HEADWAY_TEST_FOLDER";

/// Starts the process; its URL once it serves, or `None` if it ended before.
pub(super) fn start(test: &str, variables: &[(&str, &OsStr)]) -> (Child, Option<String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("serves at ")?.1.to_owned()));
    // Until it ends, somebody has to read what it says.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    (child, url)
}

/// Sends a signal, such as `TERM`.
pub(super) fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
}
