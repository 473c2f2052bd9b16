//! `headway sweep`

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use headway_sim::report::folder::{self, Folder};
use headway_sim::report::results::Kind;
use headway_sim::sweep::journal::{self, Asked, Header};
use headway_sim::sweep::resume::Begun;
use headway_sim::sweep::shard::Shard;
use headway_sim::sweep::{Contribution, Outline, Plan, RunError, over};

use crate::failure::Failure;
use crate::options::{self, Loaded, Output, Overrides};
use crate::progress::Bar;
use crate::terminal::{self, quoted};
use crate::{outcome, repeat, shards};

/// Simulate every point of a grid, replicated and in parallel: table, CSV and plots
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The scenario, a TOML file
    scenario: PathBuf,
    /// What to sweep: KEY=0,1,2,4 or KEY=0..16 or KEY=0..16/4, several make a grid; `cases`
    /// stands for the scenario's named variants [default: the scenario's]
    #[arg(long, value_name = "KEY=VALUES")]
    over: Vec<String>,
    /// Runs of each point [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replications: Option<u32>,
    /// Run one share of it: the K-th of N, counted from 1, into DIR/shard-K-of-N, for `headway
    /// merge`; `auto` takes it from Slurm's array variables or Kubernetes' job index, and N from
    /// HEADWAY_SHARDS where they do not say it
    #[arg(long, value_name = "K/N|auto", conflicts_with = "format")]
    shard: Option<String>,
    /// Go on where this sweep was killed: runs that had ended are not run again
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let shard = args.shard.as_deref().map(shards::wanted).transpose()?;
    let Loaded { scenario, tree } = options::load(&args.scenario, &args.overrides, &[])?;
    let axes = over::parse(&expressions(args, &scenario)?, &tree, &scenario.cases)?;
    let replications = args.replications.unwrap_or(scenario.replications);
    let plan = Plan::new(Kind::Sweep, &scenario, &axes, 0..replications)?;
    outcome::warn(&plan);

    let to = args.output.folder(&scenario.name);
    let to = shard.map_or_else(|| to.clone(), |shard| to.join(shard.folder()));
    let header = Header::new(plan.outline(), shard.unwrap_or(Shard::WHOLE), asked(args));
    let work = Work::begin(&to, &header, args)?;
    let (folder, runs) = work.finish(&plan, header.shard, args.output.threads())?;
    if let Some(shard) = shard {
        return deal(folder, &to, shard, &header.outline, &runs, args);
    }
    let mut done = header.outline.collect(runs.into_values());
    // The files come first: whoever closes the pipe early still has them.
    let wrote = outcome::save(folder, &to, &mut done.results, repeat::sweep(&header.asked))?;
    terminal::data(&outcome::text(&done.results, args.output.format)?)?;
    terminal::note(&wrote);
    outcome::judge(&done.trouble, &header.outline, &args.scenario, &args.overrides)
}

/// Puts a shard that is done in its place. Whatever went wrong in its runs, it is whole, and nobody
/// need run it again: whether the sweep is sound is for `headway merge` to say.
fn deal(
    folder: Folder,
    to: &Path,
    shard: Shard,
    outline: &Outline,
    runs: &BTreeMap<usize, Contribution>,
    args: &Args,
) -> Result<(), Failure> {
    let wrote = outcome::commit(folder, to)?;
    let (done, all) = (runs.len(), outline.runs());
    terminal::note(&format!("{wrote}: shard {shard}, {done} of {all} runs"));
    let _ = outcome::judge(&outline.trouble(runs), outline, &args.scenario, &args.overrides);
    let all = quoted(&to.parent().unwrap_or(to).display().to_string());
    terminal::note(&format!("to join it with the others: headway merge {all}"));
    Ok(())
}

/// A sweep at work, with the file that keeps its runs.
struct Work {
    folder: Folder,
    journal: journal::Writer,
    /// What is done, by the number of the run.
    done: BTreeMap<usize, Contribution>,
    /// The file of runs is its result.
    is_shard: bool,
}

impl Work {
    /// Begins a sweep or a shard, or goes on with what is there of it.
    fn begin(to: &Path, header: &Header, args: &Args) -> Result<Self, Failure> {
        let unwritable = |error: io::Error| Failure::unwritable(to, &error);
        let is_shard = args.shard.is_some();
        if !args.resume {
            let mut folder = Folder::open(to).map_err(unwritable)?;
            let file = file(&mut folder, is_shard).map_err(unwritable)?;
            let journal = journal::Writer::new(file, header).map_err(unwritable)?;
            folder.keep();
            return Ok(Self { folder, journal, done: BTreeMap::new(), is_shard });
        }
        let begun = Begun::find(to, header).map_err(|error| Failure::unreadable(to, &error))?;
        let begun = match begun {
            Begun::Other { path, difference } => return Err(other(&path, &difference)),
            Begun::Sweep { bytes, journal } => Some((bytes, journal)),
            Begun::Nothing => None,
        };
        let mut folder = Folder::beside_leftovers(to).map_err(unwritable)?;
        let file = file(&mut folder, is_shard).map_err(unwritable)?;
        let (journal, done) = match begun {
            Some((bytes, journal)) => (journal::Writer::behind(file, &bytes), journal.runs),
            None => (journal::Writer::new(file, header), BTreeMap::new()),
        };
        let journal = journal.map_err(unwritable)?;
        folder.keep();
        // Only now: whoever is killed before leaves what it found.
        folder::remove_leftovers(to).map_err(unwritable)?;
        let all = header.shard.runs(header.outline.runs()).count();
        terminal::note(&match done.len() {
            0 => "nothing to go on with: the sweep begins".to_owned(),
            done => format!("goes on: {done} of {all} runs are there"),
        });
        Ok(Self { folder, journal, done, is_shard })
    }

    /// Runs what is to be run yet. Gives all runs, and the folder to write to.
    fn finish(
        self,
        plan: &Plan,
        shard: Shard,
        jobs: usize,
    ) -> Result<(Folder, BTreeMap<usize, Contribution>), Failure> {
        let Self { folder, journal, mut done, is_shard } = self;
        let rest: Vec<usize> =
            shard.runs(plan.runs()).filter(|run| !done.contains_key(run)).collect();
        let bar = Bar::new(rest.len());
        let keep = |run: usize, contribution: &Contribution| journal.add(run, contribution);
        let ran = plan.run_some(&rest, jobs, &keep, &bar);
        drop(bar);
        // A shard is to be there whatever happens; what a whole sweep kept is of no more use.
        let synced = |ran| match is_shard {
            true => journal.finish().map(|()| ran).map_err(RunError::Keep),
            false => Ok(ran),
        };
        let ran = ran.and_then(synced).map_err(|error| match error {
            RunError::Keep(_) => Failure::broken(format!(
                "{error}\nhelp: make room, and give the same command with --resume"
            )),
            error => Failure::broken(error),
        })?;
        done.extend(rest.into_iter().zip(ran));
        Ok((folder, done))
    }
}

/// The file of runs: a shard's result, and what a whole sweep needs no more once it is done.
fn file(folder: &mut Folder, is_shard: bool) -> io::Result<File> {
    match is_shard {
        true => folder.create(journal::FILE),
        false => folder.scratch(journal::FILE),
    }
}

/// There is something else to go on with.
fn other(path: &Path, difference: &str) -> Failure {
    Failure::input(format!(
        "{}: not of this sweep: {difference}\nhelp: give the command of that sweep, or choose \
         another folder with --out DIR; without --resume this sweep begins, and replaces what is \
         there",
        path.display()
    ))
}

/// The command, for whoever has to give it again.
fn asked(args: &Args) -> Asked {
    let name = |path: &PathBuf| path.display().to_string();
    let Overrides { set, config, seed } = &args.overrides;
    Asked {
        scenario: name(&args.scenario),
        over: args.over.clone(),
        replications: args.replications,
        set: set.clone(),
        config: config.iter().map(name).collect(),
        seed: *seed,
    }
}

/// What to sweep: as asked, else as the scenario says, else its cases.
fn expressions(
    args: &Args,
    scenario: &headway_sim::scenario::Scenario,
) -> Result<Vec<String>, Failure> {
    if !args.over.is_empty() {
        return Ok(args.over.clone());
    }
    if !scenario.sweep.is_empty() {
        return Ok(scenario.sweep.clone());
    }
    if !scenario.cases.is_empty() {
        return Ok(vec![over::CASES.into()]);
    }
    Err(Failure::input(format!(
        "{}: says nothing to sweep\nhelp: add --over KEY=VALUES, such as --over \
         max_head_off_policyness=0,1,2,4,8",
        args.scenario.display()
    )))
}
