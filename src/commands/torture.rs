//! `headway torture`

use std::fmt::Write;
use std::path::{Path, PathBuf};

use headway_sim::report::folder::Folder;
use headway_sim::torture::{Broken, Case, Limits, play, reduce, torture};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::terminal;

/// Broken seeds that are reduced: each takes some hundred runs.
const REDUCED: usize = 3;

/// Play random scenarios with every fault, and look whether every rule holds
///
/// Each seed picks its own gate, sync mode, queues, clients and faults. While faults happen, every
/// counter of the core is recounted after each input; then they stop, and everything must come to
/// its end. Each run is made twice and must be the same. What breaks is reduced to a small scenario.
/// Exit code 1: a seed broke something.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 1000)]
    seeds: u32,
    /// The first of them
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: u32,
    /// Inputs of each run while faults happen
    #[arg(long, value_name = "N", default_value_t = Limits::default().inputs)]
    inputs: u64,
    /// Folder for reduced scenarios
    #[arg(long, value_name = "DIR", default_value = "out/torture")]
    out: PathBuf,
    /// Threads; results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    jobs: Option<u16>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let limits = Limits { inputs: args.inputs, ..Limits::default() };
    let seeds = args.first..args.first.saturating_add(args.seeds);
    let bar = Bar::new(args.seeds as usize);
    let jobs = args.jobs.map_or(0, usize::from);
    let broken = torture(seeds, limits, jobs, &bar).map_err(Failure::broken)?;
    drop(bar);
    let mut text = String::new();
    for (place, Broken { seed, what }) in broken.iter().enumerate() {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "seed {seed}: {what}");
        let inputs = match args.inputs {
            inputs if inputs == Limits::default().inputs => String::new(),
            inputs => format!(" --inputs {inputs}"),
        };
        let _ = writeln!(text, "  repeat it: headway torture --first {seed} --seeds 1{inputs}");
        if place < REDUCED {
            let file = save(&args.out, *seed, limits)?;
            let _ = writeln!(text, "  reduced to {}", file.display());
        }
    }
    let (all, bad) = (args.seeds, broken.len());
    let _ = writeln!(text, "{all} seeds, of which {bad} broke something");
    terminal::data(&text)?;
    if broken.is_empty() { Ok(()) } else { Err(Failure::Negative) }
}

/// Reduces the scenario of a seed, and writes it.
fn save(out: &Path, seed: u32, limits: Limits) -> Result<PathBuf, Failure> {
    let (small, least) = reduce(&Case::of_seed(u64::from(seed)), limits);
    let what = play(&small, least).err().unwrap_or_default();
    let set: Vec<String> = small.set.iter().map(|set| format!("    {set:?},\n")).collect();
    let comment: String = what.lines().map(|line| format!("# {line}\n")).collect();
    let text = format!(
        "# Seed {seed} of `headway torture`, reduced; {} inputs with faults.\n{comment}\
         # `headway sweep FILE --over cases` runs it.\n{}\n[[scenario.cases]]\nname = \"reduced\"\n\
         set = [\n{}]\n",
        least.inputs,
        small.text,
        set.concat()
    );
    let unwritable = |error| Failure::unwritable(out, &error);
    let name = format!("seed-{seed}.toml");
    let mut folder = Folder::open(out).map_err(unwritable)?;
    folder.write(&name, text.as_bytes()).map_err(unwritable)?;
    folder.commit().map_err(unwritable)?;
    Ok(out.join(name))
}
