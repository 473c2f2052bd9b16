//! A sweep whose runs are kept as they end, so that it can go on where it was killed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use headway_sim::report::folder::{self, Folder};
use headway_sim::sweep::journal::{self, Header};
use headway_sim::sweep::resume::Begun;
use headway_sim::sweep::shard::Shard;
use headway_sim::sweep::{Contribution, Plan, RunError};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::{outcome, terminal};

/// A sweep at work, with the file that keeps its runs.
pub(crate) struct KeptSweep {
    folder: Folder,
    journal: journal::Writer,
    /// What is done, by the number of the run.
    done: BTreeMap<usize, Contribution>,
    /// The file of runs is its result.
    is_shard: bool,
}

impl KeptSweep {
    /// Begins a sweep, or a shard of one.
    pub(crate) fn begin(to: &Path, header: &Header, is_shard: bool) -> Result<Self, Failure> {
        let unwritable = |error: io::Error| Failure::unwritable(to, &error);
        let mut folder = outcome::folder(to)?;
        let file = file(&mut folder, is_shard).map_err(unwritable)?;
        let journal = journal::Writer::new(file, header).map_err(unwritable)?;
        folder.keep();
        Ok(Self { folder, journal, done: BTreeMap::new(), is_shard })
    }

    /// Goes on with what is there of it.
    pub(crate) fn resume(to: &Path, header: &Header, is_shard: bool) -> Result<Self, Failure> {
        let unwritable = |error: io::Error| Failure::unwritable(to, &error);
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
        terminal::remark(&match done.len() {
            0 => "nothing to go on with: the sweep begins".to_owned(),
            done => format!("goes on: {done} of {all} runs are there"),
        });
        Ok(Self { folder, journal, done, is_shard })
    }

    /// Runs what is to be run yet. Gives all runs, and the folder to write to.
    pub(crate) fn finish(
        self,
        plan: &Plan,
        shard: Shard,
        jobs: usize,
    ) -> Result<(Folder, BTreeMap<usize, Contribution>), Failure> {
        let Self { folder, journal, mut done, is_shard } = self;
        let rest: Vec<usize> =
            shard.runs(plan.runs()).filter(|run| !done.contains_key(run)).collect();
        let keep = |run: usize, contribution: &Contribution| journal.add(run, contribution);
        let ran = plan.run_some(&rest, jobs, &keep, &Bar::new(rest.len()));
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
