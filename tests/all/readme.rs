//! The README: what its examples print, its picture, and its lists.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Stdio;

use super::blessed;
use super::support;

const README: &str = "README.md";

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
/// of that name.
fn printed(text: &str, folder: &Path) -> String {
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
                fresh += &output_of(folder, &arguments);
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
    let text = blessed::text(README);
    blessed::check(README, &printed(&text, folder.path()));
    let (drawn, shown) = PICTURE;
    assert!(text.contains(&format!("]({shown})")), "the README shows {shown}");
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

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let mut pages =
        vec![README.to_owned(), "CONTRIBUTING.md".to_owned(), "CHANGELOG.md".to_owned()];
    for entry in fs::read_dir(blessed::root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            pages.push(format!("docs/{name}"));
        }
    }
    for page in pages {
        let text = blessed::text(&page);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            if file.is_empty() || link.starts_with("http") {
                continue;
            }
            let target = blessed::root().join(&page).with_file_name(file);
            assert!(target.exists(), "{page} links to {link}");
        }
    }
}
