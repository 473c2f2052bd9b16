//! The worlds of a tournament.

use std::path::{Path, PathBuf};

use headway_shared::config::{Layers, nearest};
use headway_sim::scenario::Scenario;

use crate::failure::Failure;
use crate::options::{self, Overrides};

/// The workloads that come with Headway, within the program: they work in any folder.
const WORKLOADS: [(&str, &str); 3] = [
    ("mild", include_str!("../scenarios/tournament-mild.toml")),
    ("heavy", include_str!("../scenarios/tournament-heavy.toml")),
    ("sessions", include_str!("../scenarios/tournament-sessions.toml")),
];

/// The worlds that were asked for, each a name or a file; all that come with Headway where none was.
pub(crate) fn load(given: &[String], overrides: &Overrides) -> Result<Vec<Scenario>, Failure> {
    let names: Vec<&str> = match given.is_empty() {
        true => WORKLOADS.iter().map(|(name, _)| *name).collect(),
        false => given.iter().map(String::as_str).collect(),
    };
    let load = |name: &str| match WORKLOADS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => {
            let file = format!("scenarios/tournament-{name}.toml");
            let layers = Layers::new().toml(file, (*text).to_owned());
            options::lay_over(layers, Path::new("."), overrides, &[])
        }
        None => {
            let path = PathBuf::from(name);
            if !path.exists() {
                let known = WORKLOADS.map(|(name, _)| name);
                let help = match nearest(name, &known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        format!("write {}, or the name of a scenario's file", known.join(", "))
                    }
                };
                return Err(Failure::input(format!(
                    "no workload and no file `{name}`\nhelp: {help}"
                )));
            }
            options::load(&path, overrides, &[])
        }
    };
    let scenario = |name| load(name).map(|loaded| loaded.scenario);
    let found: Vec<Scenario> = names.into_iter().map(scenario).collect::<Result<_, _>>()?;
    for (place, scenario) in found.iter().enumerate() {
        if found[..place].iter().any(|other| other.name == scenario.name) {
            let message = format!("two workloads are named `{}`", scenario.name);
            return Err(Failure::input(format!("{message}\nhelp: name each of them once")));
        }
    }
    Ok(found)
}
