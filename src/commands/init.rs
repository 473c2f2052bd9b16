//! `headway init`

use std::path::{Path, PathBuf};

use headway_shared::config::{Layers, load_guarded};
use headway_sim::report::folder::Folder;
use headway_sim::scenario::is_name;

use crate::failure::Failure;
use crate::starter::{self, Engine, Kind, Wish, ask};
use crate::{options, outcome, schemas, terminal};

/// Write a commented configuration (config.toml, settings.json) and a scenario of it
///
/// Asks what it needs to know where it is called on a terminal; options answer instead. Beside the
/// files lie their JSON schemas, with which editors complete and check them.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder to write to
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Write the scenario of this config.toml, and nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "engine", "engine_url", "judge_url",
          "judge_model", "judge_key_env", "rule", "eta", "batch_size", "group_size"])]
    from: Option<PathBuf>,
    /// The scenario's name: small letters, digits, dashes
    #[arg(long, value_name = "NAME", default_value = "my-run")]
    name: String,
    /// Who asks
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// What serves and trains the policy
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    /// Where a serving engine listens, without /v1; repeatable
    #[arg(long, value_name = "URL")]
    engine_url: Vec<String>,
    /// The OpenAI-compatible endpoint that judges
    #[arg(long, value_name = "URL", conflicts_with = "rule")]
    judge_url: Option<String>,
    /// The model that judges
    #[arg(long, value_name = "MODEL", conflicts_with = "rule")]
    judge_model: Option<String>,
    /// The name of the environment variable that holds the judge's key
    #[arg(long, value_name = "NAME", conflicts_with = "rule")]
    judge_key_env: Option<String>,
    /// A rule judges, such as exact, and no endpoint
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// The bound on staleness, in learner versions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    eta: Option<u32>,
    /// Samples (or groups) per train step
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch_size: Option<u32>,
    /// Samples per group: the rollouts of one prompt
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    group_size: Option<u32>,
    /// Replace files that are there
    #[arg(long)]
    force: bool,
    /// Ask nothing: defaults for what no option says
    #[arg(long, short)]
    yes: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if !is_name(&args.name) {
        let help = "write small letters, digits and dashes: results go to a folder of that name";
        return Err(Failure::input(format!(
            "{:?} is no name of a scenario\nhelp: {help}",
            args.name
        )));
    }
    let mut files = match &args.from {
        Some(config) => vec![("scenario.toml", scenario_of(config, &args.name)?)],
        None => starter::files(&wish(args)?, &args.name)?,
    };
    refuse_to_replace(&args.dir, &files, args.force)?;
    let schemas: Vec<_> = schemas::beside(files.iter().map(|(name, _)| *name)).collect();
    files.extend(schemas);
    let unwritable = |error| Failure::unwritable(&args.dir, &error);
    let mut folder = Folder::open(&args.dir).map_err(unwritable)?;
    for (name, text) in &files {
        folder.write(name, text.as_bytes()).map_err(unwritable)?;
    }
    terminal::remark(&outcome::commit(folder, &args.dir)?);
    let scenario = terminal::quoted(&args.dir.join("scenario.toml").display().to_string());
    terminal::remark(&format!("try it: headway simulate {scenario}"));
    Ok(())
}

fn scenario_of(config: &Path, name: &str) -> Result<String, Failure> {
    let layers = Layers::new().toml(config.display().to_string(), options::read(config)?);
    let (config, _, warnings) = load_guarded(&layers, true)?;
    terminal::diagnose(&warnings);
    Ok(starter::scenario(&config, name, starter::in_sessions(&config)))
}

/// Files that a user may have written are not replaced unless that is asked for.
fn refuse_to_replace(
    dir: &Path,
    files: &[(&'static str, String)],
    force: bool,
) -> Result<(), Failure> {
    let there: Vec<String> = files
        .iter()
        .map(|(name, _)| dir.join(name))
        .filter(|path| path.exists() && !force)
        .map(|path| path.display().to_string())
        .collect();
    match there.as_slice() {
        [] => Ok(()),
        [one] => Err(Failure::input(format!("{one}: is there already\nhelp: {AGAIN}"))),
        several => {
            Err(Failure::input(format!("{}: are there already\nhelp: {AGAIN}", several.join(", "))))
        }
    }
}

const AGAIN: &str = "name another folder, or replace them with --force; `--from config.toml` writes the \
                     scenario of a configuration that is there";

/// What is wished for: what options say, what is answered, and defaults.
fn wish(args: &Args) -> Result<Wish, Failure> {
    let mut asker = ask::Asker::new(args.yes);
    let kind = match args.kind {
        Some(kind) => kind,
        None => asker.choose("Who asks the policy?", &Kind::CHOICES)?,
    };
    let engine = match args.engine {
        Some(engine) => engine,
        None => asker.choose("What serves and trains it?", &Engine::CHOICES)?,
    };
    let mut engine_urls = args.engine_url.clone();
    if engine_urls.is_empty() && engine == Engine::Sglang {
        engine_urls.push(asker.text("Where does the engine listen?", "http://127.0.0.1:31000")?);
    }
    let judge_url = match (&args.judge_url, &args.rule) {
        (given, Some(_)) | (given @ Some(_), None) => given.clone(),
        (None, None) => {
            let asked = "Which OpenAI-compatible endpoint judges? (none: a rule judges)";
            let default = if kind == Kind::Agents { "http://127.0.0.1:8000/v1" } else { "none" };
            Some(asker.text(asked, default)?).filter(|url| url != "none")
        }
    };
    let endpoint = match judge_url {
        None => None,
        Some(url) => Some(starter::Endpoint {
            url,
            model: asker.given_or(&args.judge_model, "Which model judges?", "judge-model")?,
            key_env: asker.given_or(
                &args.judge_key_env,
                "Which environment variable holds its key?",
                "JUDGE_API_KEY",
            )?,
        }),
    };
    let rule = args.rule.clone().unwrap_or_else(|| "exact".to_owned());
    let eta = asker.number(args.eta, "How many versions may a sample be behind (η)?", 2)?;
    let group = if kind == Kind::Tasks { 8 } else { 1 };
    let batch_size =
        asker.number(args.batch_size, "How many samples (or groups) make a batch?", 16)?;
    let group_size = asker.number(args.group_size, "How many samples make a group?", group)?;
    Ok(Wish { kind, engine, engine_urls, endpoint, rule, eta, batch_size, group_size })
}
