//! Which shard of a sweep is meant, the commands that make one, and what is amiss with several.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;

use headway_sim::report::folder::Folder;
use headway_sim::sweep::Contribution;
use headway_sim::sweep::journal::{Asked, Header, JournalError};
use headway_sim::sweep::merge::MergeError;
use headway_sim::sweep::shard::Shard;

use crate::failure::Failure;
use crate::options::Overrides;
use crate::outcome;
use crate::terminal::{self, quoted};

/// How many shards there are, where neither the command nor the cluster says it.
const SHARDS: &str = "HEADWAY_SHARDS";
/// The number of a pod of a Kubernetes Indexed Job, from 0.
const INDEX: &str = "JOB_COMPLETION_INDEX";
/// The number of a task of a Slurm array, from any number.
const TASK: &str = "SLURM_ARRAY_TASK_ID";

/// Commands that a message lists at most.
const MOST_COMMANDS: usize = 4;

/// Reads `--shard`.
///
/// # Errors
/// It is no shard, or `auto` where nothing or something inconsistent is set.
pub(crate) fn wanted(text: &str) -> Result<Shard, Failure> {
    if text == "auto" {
        return automatic(&|name| env::var(name).ok().filter(|value| !value.is_empty()));
    }
    text.parse().map_err(|error| {
        let help = "write K/N, counted from 1, such as --shard 3/8, or --shard auto";
        Failure::input(format!("--shard: {error}\nhelp: {help}"))
    })
}

/// The variables of the process.
type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

fn automatic(get: Variables<'_>) -> Result<Shard, Failure> {
    match (get(TASK), get(INDEX)) {
        (Some(_), None) => slurm(get),
        (None, Some(_)) => kubernetes(get),
        (Some(_), Some(_)) => Err(wrong(
            &format!("both {TASK} and {INDEX} are set"),
            "unset the one that is not meant, or write --shard K/N",
        )),
        (None, None) => Err(wrong(
            &format!("neither {TASK} (Slurm) nor {INDEX} (Kubernetes) is set"),
            "submit the sweep as a job array or as an Indexed Job, or write --shard K/N, counted \
             from 1",
        )),
    }
}

/// A task of an array `A-B:STEP`, the first of which has shard 1; with `HEADWAY_SHARDS`, the task's
/// number is the shard's, so that some can be submitted again alone.
fn slurm(get: Variables<'_>) -> Result<Shard, Failure> {
    let task = number(get, TASK)?;
    if get(SHARDS).is_some() {
        let of = number(get, SHARDS)?;
        let help =
            format!("submit some of --array=1-{of}: with {SHARDS}, a task's number is its shard's");
        return Shard::new(task, of)
            .map_err(|error| wrong(&format!("{TASK} is {task}: {error}"), &help));
    }
    let part = |name: &str| number(get, &format!("SLURM_ARRAY_TASK_{name}"));
    let (min, max, count) = (part("MIN")?, part("MAX")?, part("COUNT")?);
    let step = if get("SLURM_ARRAY_TASK_STEP").is_some() { part("STEP")? } else { 1 };
    let said = format!("{TASK} is {task} in an array of {count} from {min} to {max} by {step}");
    let regular = step > 0 && min <= max && (max - min) / step + 1 == count;
    if !regular {
        let help = format!(
            "submit --array=1-N; to run some shards again, set {SHARDS} to N and submit theirs: \
             {SHARDS}=8 sbatch --array=3,5"
        );
        return Err(wrong(
            &format!("{said}: it has gaps, and does not say how many shards there are"),
            &help,
        ));
    }
    if !(min..=max).contains(&task) || (task - min) % step != 0 {
        return Err(wrong(&format!("{said}, which it is no task of"), "write --shard K/N"));
    }
    Shard::new((task - min) / step + 1, count)
        .map_err(|error| wrong(&error.to_string(), "submit fewer"))
}

/// A pod of an Indexed Job: indices count from 0, and the pod is not told how many there are.
fn kubernetes(get: Variables<'_>) -> Result<Shard, Failure> {
    let index = number(get, INDEX)?;
    let same = format!("set {SHARDS} in the pod's env to the Job's `completions`");
    if get(SHARDS).is_none() {
        let what =
            format!("{INDEX} is {index}, but {SHARDS} is not set: how many shards are there?");
        return Err(wrong(&what, &same));
    }
    let of = number(get, SHARDS)?;
    let number = index.saturating_add(1);
    Shard::new(number, of).map_err(|error| wrong(&format!("{INDEX} is {index}: {error}"), &same))
}

fn number(get: Variables<'_>, name: &str) -> Result<u64, Failure> {
    let Some(text) = get(name) else {
        return Err(wrong(&format!("{name} is not set"), "write --shard K/N, counted from 1"));
    };
    let number = text.trim().parse();
    number.map_err(|_| wrong(&format!("{name} is `{text}`"), "set it to a whole number"))
}

fn wrong(what: &str, help: &str) -> Failure {
    Failure::input(format!("--shard auto: {what}\nhelp: {help}"))
}

/// The command that runs a shard, or a whole sweep, once more.
pub(crate) fn command(asked: &Asked, more: &[String]) -> String {
    let Asked { scenario, over, replications, .. } = asked;
    let mut words = vec!["headway sweep".to_owned(), quoted(scenario)];
    words.extend(over.iter().map(|over| format!("--over {}", quoted(over))));
    words.extend(Overrides::from(asked).words(&[]));
    words.extend(replications.iter().map(|number| format!("--replications {number}")));
    words.extend_from_slice(more);
    words.join(" ")
}

/// Puts a shard that is done in its place. Whatever went wrong in its runs, it is whole, and nobody
/// need run it again: whether the sweep is sound is for `headway merge` to say.
pub(crate) fn deal(
    folder: Folder,
    to: &Path,
    header: &Header,
    runs: &BTreeMap<usize, Contribution>,
) -> Result<(), Failure> {
    let Header { shard, outline, asked, .. } = header;
    let wrote = outcome::commit(folder, to)?;
    let (done, all) = (runs.len(), outline.runs());
    terminal::remark(&format!("{wrote}: shard {shard}, {done} of {all} runs"));
    let (trouble, scenario) = (outline.trouble(runs), Path::new(&asked.scenario));
    let _ = outcome::judge(&trouble, outline, scenario, &asked.into());
    let all = quoted(&to.parent().unwrap_or(to).display().to_string());
    terminal::remark(&format!("to join it with the others: headway merge {all}"));
    Ok(())
}

/// Why the shards cannot be joined, and what to do.
pub(crate) fn refused(error: &MergeError) -> Failure {
    let help = match error {
        MergeError::Io { .. } => "name folders that exist and that you may read".to_owned(),
        MergeError::WholeResult { .. } => {
            "it needs no merge: leave it out, or name the folders of `headway sweep --shard`"
                .to_owned()
        }
        MergeError::NoShard(_) => "name the folders that `headway sweep --shard` wrote".to_owned(),
        MergeError::Unfinished { at_work: true, .. } => "wait until it is done".to_owned(),
        MergeError::Unfinished { folder, header, .. } => {
            format!("finish it: {}", again(header, header.shard, folder))
        }
        MergeError::Unreadable { path, header: Some(header), .. } => {
            let folder = path.parent().unwrap_or(path);
            format!("run again what is lost: {}", again(header, header.shard, folder))
        }
        MergeError::Unreadable { error: JournalError::OtherBuild { .. }, .. } => {
            "join the shards with the build that ran them, or run all of them with this one"
                .to_owned()
        }
        MergeError::Unreadable { .. } => "run the shard again".to_owned(),
        MergeError::OtherSweep { .. } => {
            "join shards of one sweep: the same scenario, --over, --set, --config, --replications \
             and --seed"
                .to_owned()
        }
        MergeError::OtherDivision { .. } => {
            "join shards of one division, each K of the same N".to_owned()
        }
        MergeError::Twice { .. } => "name each shard once".to_owned(),
        MergeError::Missing { missing, header, folder } => {
            let one = |number: &u32| {
                let shard = Shard::new((*number).into(), header.shard.of().into()).ok()?;
                let sibling = folder.with_file_name(shard.folder());
                Some(format!("\n  {}", again(header, shard, &sibling)))
            };
            let shown: String = missing.iter().take(MOST_COMMANDS).filter_map(one).collect();
            let more = missing.len().saturating_sub(MOST_COMMANDS);
            let rest =
                if more > 0 { format!("\n  and so on with {more} more") } else { String::new() };
            format!("run what is missing:{shown}{rest}")
        }
    };
    Failure::input(format!("{error}\nhelp: {help}"))
}

/// The command that does in `folder` what is left to do of a shard.
fn again(header: &Header, shard: Shard, folder: &Path) -> String {
    let is_named = folder.file_name().is_some_and(|name| *name == *shard.folder());
    let parent = folder.parent().filter(|parent| *parent != Path::new(""));
    let out = match is_named {
        true => parent.unwrap_or(Path::new(".")),
        false => folder,
    };
    let out = format!("--out {}", quoted(&out.display().to_string()));
    let resume = "--resume".to_owned();
    match is_named || shard != Shard::WHOLE {
        true => command(&header.asked, &[format!("--shard {shard}"), resume, out]),
        false => command(&header.asked, &[resume, out]),
    }
}
