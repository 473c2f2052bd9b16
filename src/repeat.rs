//! The command that repeats a result, as its page shows it.
//!
//! How many threads, which folder and which format are no part of it: no result depends on them. A path
//! that says where this machine keeps its files is cut down to the file's name.

use std::path::{Path, PathBuf};

use headway_sim::sweep::journal::Asked;

use crate::options::Overrides;
use crate::shards;
use crate::terminal::quoted;

/// A command of Headway with its words.
pub(crate) fn command(name: &str, words: Vec<String>) -> String {
    std::iter::once(format!("headway {name}")).chain(words).collect::<Vec<_>>().join(" ")
}

/// A sweep, or its shards together.
pub(crate) fn sweep(asked: &Asked) -> String {
    let of = |path: &String| shown(Path::new(path));
    let config = asked.config.iter().map(of).collect();
    let asked = Asked { scenario: of(&asked.scenario), config, ..asked.clone() };
    shards::command(&asked, &[])
}

/// A path as a word.
pub(crate) fn path(path: &Path) -> String {
    quoted(&shown(path))
}

/// A path that says nothing of this machine.
pub(crate) fn shown(path: &Path) -> String {
    let name = path.file_name().filter(|_| path.is_absolute());
    name.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// What is laid over a scenario.
pub(crate) fn overrides(overrides: &Overrides) -> Vec<String> {
    let config = overrides.config.iter().map(|path| PathBuf::from(shown(path))).collect();
    Overrides { config, ..overrides.clone() }.words(&[])
}

/// An option for each text.
pub(crate) fn texts<'t>(option: &str, texts: impl IntoIterator<Item = &'t String>) -> Vec<String> {
    texts.into_iter().map(|text| format!("{option} {}", quoted(text))).collect()
}

/// An option with a number, where it is not what it would be without.
pub(crate) fn number(option: &str, value: u32, default: u32) -> Option<String> {
    (value != default).then(|| format!("{option} {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_nothing_of_the_machine_that_gave_it() {
        let asked = Asked {
            scenario: "/home/somebody/worlds/mine.toml".into(),
            over: vec!["max_head_off_policyness=0,1".into()],
            replications: Some(3),
            set: vec!["batch_size = 4".into()],
            config: vec!["live/config.toml".into()],
            seed: None,
        };
        assert_eq!(
            sweep(&asked),
            "headway sweep mine.toml --over max_head_off_policyness=0,1 --config live/config.toml \
             --set 'batch_size = 4' --replications 3"
        );
    }

    #[test]
    fn what_is_as_without_it_is_left_out() {
        assert_eq!(number("--replications", 1, 1), None);
        let two = number("--replications", 2, 1);
        assert_eq!(
            command("simulate", two.into_iter().collect()),
            "headway simulate --replications 2"
        );
    }
}
