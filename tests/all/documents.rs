//! The documents: links, the book's contents, the commands they name, and their pictures.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::all::blessed::{check, root, text};
use crate::all::support::succeed;

/// Every page: those at the root, and those of the book.
fn pages() -> Vec<String> {
    let mut pages: Vec<String> = names(root()).collect();
    pages.extend(names(&root().join("docs")).map(|name| format!("docs/{name}")));
    pages.sort();
    pages
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".md"))
}

/// Where the links of a page lead, code aside.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(text) {
        let parts = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        links.extend(parts.map(str::to_owned));
    }
    links
}

/// The lines outside of fences.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        fenced ^= line.starts_with("```");
        !fenced
    })
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let mut wrong = Vec::new();
    for page in pages() {
        for link in links(&text(&page)).iter().filter(|link| !link.starts_with("http")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => root().join(&page),
                file => root().join(&page).with_file_name(file),
            };
            let there = target.exists()
                && (anchor.is_empty()
                    || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor));
            if !there {
                wrong.push(format!("{page} links to {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_book_has_every_page_once() {
    let mut listed = links(&text("docs/SUMMARY.md"));
    listed.push("SUMMARY.md".to_owned());
    listed.sort();
    let mut there: Vec<String> = names(&root().join("docs")).collect();
    there.sort();
    assert_eq!(listed, there);
}

/// The commands of a page that run `headway`: those of its examples, whole, a `\` at the end of a
/// line joining it to the next.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut going_on = false;
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        let code = fenced || line.starts_with("    ");
        let line = line.trim().trim_start_matches("$ ");
        if going_on && let Some(command) = commands.last_mut() {
            *command += " ";
            *command += line.trim_end_matches('\\');
        } else if code && line.starts_with("headway ") {
            commands.push(line.trim_end_matches('\\').to_owned());
        } else {
            continue;
        }
        going_on = line.ends_with('\\');
    }
    commands
}

#[test]
fn every_command_of_the_documents_exists_with_its_options() {
    let mut wrong = Vec::new();
    for page in pages() {
        for command in commands(&text(&page)) {
            // What stands behind `#` is a comment, and behind `|` or `>` another program.
            let own = command.split(" #").next().unwrap();
            let own = own.split([';', '|', '>']).next().unwrap();
            let mut words = own.split_whitespace().skip(1);
            let Some(name) = words.next() else { continue };
            if name.starts_with('-') {
                continue;
            }
            let mut path = vec![name];
            if name == "import" {
                path.extend(words.next());
            }
            path.push("--help");
            let output = crate::all::support::run(root(), &path);
            let help = String::from_utf8_lossy(&output.stdout);
            let options = words.filter(|word| word.starts_with("--"));
            let unknown = options
                .map(|option| option.split('=').next().unwrap())
                .find(|option| !help.contains(option));
            if !output.status.success() || unknown.is_some() {
                wrong.push(format!("{page}: {command}: {}", unknown.unwrap_or(name)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A picture of the pages, the command that draws it, and which of its files it is.
const PICTURES: [(&str, &[&str], &str); 5] = [
    ("parts", &["sweep", "scenarios/openclaw.toml"], "parts"),
    ("queue-size", &["sweep", "scenarios/trouble-queue-full.toml"], "refusals"),
    (
        "sync-refusals",
        &[
            "sweep",
            "scenarios/openclaw.toml",
            "--over",
            "sync_mode=pause_drain,pause_abort,pause_keep,in_flight,rolling",
        ],
        "refusals",
    ),
    (
        "judge-concurrency",
        &["sweep", "scenarios/openclaw.toml", "--over", "judge_concurrency=4,8,12,16,24,32"],
        "throughput",
    ),
    ("ratios", &["sweep", "scenarios/drift-tiny-run.toml"], "ratios"),
];

#[test]
fn the_pictures_of_the_pages_are_what_their_commands_draw() {
    let out = tempfile::tempdir().unwrap();
    for (picture, command, file) in PICTURES {
        let folder = out.path().join(picture);
        succeed(root(), &[command, &["--out", folder.to_str().unwrap()]].concat());
        let drawn = fs::read_to_string(folder.join(format!("{file}.svg"))).unwrap();
        check(&format!("docs/images/{picture}.svg"), &drawn);
        let shown = format!("](images/{picture}.svg)");
        assert!(pages().iter().any(|page| text(page).contains(&shown)), "no page shows {picture}");
    }
}
