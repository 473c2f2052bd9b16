//! The two sides of a comparison.

use std::path::Path;

use headway_sim::report::results::Kind;
use headway_sim::scenario::Scenario;
use headway_sim::sweep::{Outcome, Plan};

use crate::failure::Failure;
use crate::options::{self, Loaded, Overrides};
use crate::outcome;

/// What a side is asked to be.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Its scenario.
    pub(crate) path: &'a Path,
    /// A case of that, by its name.
    pub(crate) case: Option<&'a str>,
    /// What is set in it alone; it wins over what the case sets.
    pub(crate) set: &'a [String],
}

/// One of the two.
pub(crate) struct Side<'a> {
    path: &'a Path,
    /// What is set in it alone.
    set: Vec<String>,
    pub(crate) scenario: Scenario,
}

impl<'a> Side<'a> {
    fn load(wanted: Wanted<'a>, overrides: &Overrides) -> Result<Self, Failure> {
        let Wanted { path, case, set } = wanted;
        let load = |set: &[String]| options::load(path, overrides, set);
        let mut all = match case {
            Some(name) => load(&[])?.scenario.case(name).map_err(Failure::input)?.set.clone(),
            None => Vec::new(),
        };
        all.extend_from_slice(set);
        let Loaded { scenario, .. } = load(&all)?;
        Ok(Self { path, set: all, scenario })
    }

    pub(crate) fn plan(&self, replications: u32) -> Result<Plan, Failure> {
        let plan = Plan::new(Kind::Run, &self.scenario, &[], 0..replications)?;
        outcome::warn(&plan);
        Ok(plan)
    }

    /// Says what went wrong in its runs.
    pub(crate) fn judge(
        &self,
        overrides: &Overrides,
        plan: &Plan,
        done: &Outcome,
    ) -> Result<(), Failure> {
        let mut overrides = overrides.clone();
        overrides.set.extend_from_slice(&self.set);
        outcome::judge(&done.trouble, &plan.outline(), self.path, &overrides)
    }
}

/// Reads both scenarios; they must differ, and have one seed.
pub(crate) fn load<'a>(
    wanted: [Wanted<'a>; 2],
    overrides: &Overrides,
) -> Result<[Side<'a>; 2], Failure> {
    let [a, b] = wanted.map(|wanted| Side::load(wanted, overrides));
    let (a, b) = (a?, b?);
    if a.path == b.path && a.set == b.set {
        return Err(Failure::input(
            "A and B are the same\nhelp: name two scenarios, or change one: --set-b KEY=VALUE, or \
             --case-b NAME",
        ));
    }
    let (seed_a, seed_b) = (a.scenario.seed, b.scenario.seed);
    if seed_a != seed_b {
        return Err(Failure::input(format!(
            "A has seed {seed_a} and B has seed {seed_b}: pairs need the same random numbers\n\
             help: give both one seed with --seed N"
        )));
    }
    Ok([a, b])
}

/// What a comparison is called, by the names of both scenarios.
pub(crate) fn name(a: &Side<'_>, b: &Side<'_>) -> String {
    let (a, b) = (&a.scenario.name, &b.scenario.name);
    if a == b { format!("{a}/compare") } else { format!("{a}-vs-{b}") }
}
