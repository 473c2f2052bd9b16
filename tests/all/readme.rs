//! The README, in both languages: what its examples print, its picture, and its lists.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Stdio;

use super::blessed;
use super::support;

const README: &str = "README.md";
const CHINESE: &str = "README.zh-CN.md";

/// What the first example draws, and where the README shows it.
const PICTURE: (&str, &str) = ("out/openclaw/staleness.svg", "docs/images/openclaw-staleness.svg");

/// A folder with what a clone has: the scenarios and their data.
fn clone() -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
            match path.is_dir() {
                true => copy(&path, &to.join(name)),
                false => fs::copy(&path, to.join(name)).map(drop).unwrap(),
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    copy(&blessed::root().join("scenarios"), &folder.path().join("scenarios"));
    folder
}

/// The words after the command's name, if the line runs it: with cargo, or installed.
fn arguments(line: &str) -> Option<Vec<&str>> {
    let rest = line.strip_prefix("$ ")?;
    let rest = rest.strip_prefix("cargo run --release -- ").or(rest.strip_prefix("headway "))?;
    assert!(!rest.contains(['"', '\'', '|', '>']), "{line}: plain words only");
    Some(rest.split_whitespace().collect())
}

/// What a command writes, to stdout and stderr as they come.
fn output_of(folder: &Path, arguments: &[&str]) -> String {
    let mut written = tempfile::tempfile().unwrap();
    let status = support::headway(folder)
        .args(arguments)
        .stdout(Stdio::from(written.try_clone().unwrap()))
        .stderr(Stdio::from(written.try_clone().unwrap()))
        .status()
        .unwrap();
    let mut text = String::new();
    written.seek(SeekFrom::Start(0)).unwrap();
    written.read_to_string(&mut text).unwrap();
    assert!(status.success(), "{arguments:?}\n{text}");
    text
}

/// The README with what its `console` examples print now. Commands of other programs stay as they
/// are, and so does what stands below them. A `toml` example that begins with `# NAME` is the file
/// of that name. `said` remembers what commands print: both languages show the same ones.
fn printed(text: &str, folder: &Path, said: &mut BTreeMap<String, String>) -> String {
    let mut fresh = String::new();
    let mut lines = text.lines().peekable();
    let mut fence = "";
    while let Some(line) = lines.next() {
        fresh += line;
        fresh += "\n";
        match (line.strip_prefix("```"), fence) {
            (Some(language), "") => fence = if language.is_empty() { "text" } else { language },
            (Some(_), _) => fence = "",
            (None, "toml") if line.starts_with("# ") => {
                let name = line.trim_start_matches("# ");
                let body: Vec<&str> = lines.clone().take_while(|line| *line != "```").collect();
                fs::write(folder.join(name), body.join("\n") + "\n").unwrap();
            }
            (None, "console") => {
                let Some(arguments) = arguments(line) else { continue };
                let output = said.entry(arguments.join(" "));
                fresh += output.or_insert_with(|| output_of(folder, &arguments));
                while lines.next_if(|line| !line.starts_with("$ ") && *line != "```").is_some() {}
            }
            (None, _) => {}
        }
    }
    fresh
}

#[test]
fn the_examples_print_what_the_readme_shows() {
    let folder = clone();
    let (drawn, shown) = PICTURE;
    let mut said = BTreeMap::new();
    for readme in [README, CHINESE] {
        let text = blessed::text(readme);
        blessed::check(readme, &printed(&text, folder.path(), &mut said));
        assert!(text.contains(&format!("]({shown})")), "{readme} shows {shown}");
    }
    blessed::check(shown, &fs::read_to_string(folder.path().join(drawn)).unwrap());
}

#[test]
fn every_scenario_is_listed_with_its_title() {
    let text = blessed::text(README);
    for path in blessed::scenarios() {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let scenario = fs::read_to_string(&path).unwrap();
        let line = scenario.lines().find_map(|line| line.strip_prefix("title = "));
        let title = line.expect("a title").trim_matches('"');
        let row = format!("| [`{name}`](scenarios/{name}.toml) | {title} |");
        assert!(text.contains(&row), "the README lacks\n{row}");
    }
}

#[test]
fn every_command_is_listed_and_every_command_listed_exists() {
    let text = blessed::text(README);
    let listed = text.lines().filter_map(|line| line.strip_prefix("| `headway "));
    let mut listed: Vec<&str> = listed.filter_map(|row| row.split([' ', '`']).next()).collect();
    listed.sort_unstable();
    let help = output_of(blessed::root(), &["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let mut commands: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        // A description may go on in a second line.
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    commands.sort_unstable();
    assert_eq!(listed, commands);
}
