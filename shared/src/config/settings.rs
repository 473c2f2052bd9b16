//! The users' `settings.json`: the endpoint, and what the live runtime is to do.

use super::diagnostic::{Diagnostics, Origin};
use super::guard::GuardSettings;
use super::layers::Layers;
use super::node::Table;
use super::parse::{check_sections, parse_sections};
use super::reader::Reader;
use super::sections::Config;
use crate::time::Span;

/// `api`: one OpenAI-compatible endpoint for judges, policy and scripts. Where a rule judges, none
/// is needed, and what is not given is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    /// Its URL, with `/v1` at the end and no slash behind; empty: not given.
    pub base_url: String,
    /// The name of the environment variable that holds the key. The key itself is in no file.
    pub api_key_env: String,
    /// How long a request may take.
    pub timeout: Span,
    /// A file of certificates, as PEM, that are trusted beside the machine's own.
    pub ca_file: Option<String>,
}

/// `serving`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Samples are submitted for training.
    pub submission_enabled: bool,
    /// Requests get a 503 during a weight sync; says the same as `policy_serving`'s `sync_mode`.
    pub pause_on_weight_sync: bool,
    /// Where the serving engines listen, one replica each: URLs without a slash behind. Where none
    /// is given, `base_url` without `/v1`.
    pub engine_urls: Vec<String>,
    /// The directory of the served model: its tokenizer and chat template, and for engine `tch` its
    /// weights; `None`: the one that the first engine names.
    pub model_path: Option<String>,
    /// The longest sequence of a policy in this process that has a model's directory, in tokens.
    pub max_model_len: u32,
    /// What such a policy is served in.
    pub dtype: Dtype,
}

/// `serving.dtype`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dtype {
    /// 32 bits.
    #[default]
    Float32,
    /// 16 bits, 8 of them the exponent's.
    Bfloat16,
}

/// `training`
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// How long an external trainer has a task before another gets it, unless it says that it goes
    /// on.
    pub lease: Span,
    /// The learning rate of a trainer in this process; `None`: the policy's own.
    pub learning_rate: Option<f64>,
    /// The temperature that turns which train are sampled with, and scored by a trainer in this process; above 0,
    /// to 2.
    pub temperature: f64,
}

/// `judge`
#[derive(Clone, Debug, PartialEq)]
pub struct Judge {
    /// The model to ask.
    pub model: String,
    /// Its sampling temperature, 0 to 2.
    pub temperature: f64,
    /// The longest answer, in tokens.
    pub max_tokens: u32,
    /// What the judge is told to do; `None`: what is built in.
    pub system: Option<String>,
    /// The template of what it is asked; `None`: what is built in.
    pub prompt: Option<String>,
    /// How its answer says the score.
    pub score: ScoreForm,
}

/// `judge.score`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoreForm {
    /// The last `\\boxed{1}`, `\\boxed{0}` or `\\boxed{-1}` of its text.
    #[default]
    Boxed,
    /// A JSON object with a number `score` from -1 to 1, which the endpoint is asked to enforce.
    Json,
}

/// `logging`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logging {
    /// Log `train_rollout_logprob_abs_diff` with each step.
    pub log_rollout_logprob_diff: bool,
}

/// The whole file.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The endpoint.
    pub api: Api,
    /// Serving.
    pub serving: Serving,
    /// Training.
    pub training: Training,
    /// Judging.
    pub judge: Judge,
    /// Logging.
    pub logging: Logging,
}

/// The two files of a live run.
#[derive(Clone, Debug)]
pub struct Live {
    /// The scheduling sections.
    pub config: Config,
    /// `settings.json`
    pub settings: Settings,
    /// `[guard]`
    pub guard: Option<GuardSettings>,
    /// What is suspicious about them.
    pub warnings: Diagnostics,
}

/// Reads `config.toml` and `settings.json` together, as layers of one document.
///
/// # Errors
/// Everything that is wrong with either, and where they contradict each other.
pub fn load_live(layers: &Layers) -> Result<Live, Diagnostics> {
    let document = layers.merge()?;
    let mut root = document.reader();
    let config = parse_sections(&mut root);
    let settings = parse_settings(&mut root, &config, document.sources.json());
    let guard = GuardSettings::read(&mut root, &config);
    root.finish();
    check_sections(&document, &config);
    document.finish().map(|warnings| Live { config, settings, guard, warnings })
}

/// Reads the scheduling sections and `[guard]`, as a configuration is promoted. `others`: sections
/// of `settings.json` may stand beside them, and are not looked at.
///
/// # Errors
/// Everything that is wrong with them.
pub fn load_guarded(
    layers: &Layers,
    others: bool,
) -> Result<(Config, Option<GuardSettings>, Diagnostics), Diagnostics> {
    let document = layers.merge()?;
    let mut root = document.reader();
    let config = parse_sections(&mut root);
    let guard = GuardSettings::read(&mut root, &config);
    if others {
        // Asked for, so that they are known.
        for section in SECTIONS.into_iter().chain(["$schema"]) {
            let _ = root.node(section);
        }
    }
    root.finish();
    check_sections(&document, &config);
    document.finish().map(|warnings| (config, guard, warnings))
}

/// The sections of `settings.json`.
const SECTIONS: [&str; 5] = ["api", "serving", "training", "judge", "logging"];

/// Whether a JSON text of a document holds a section of `settings.json`.
#[must_use]
pub fn has_settings(root: &Table) -> bool {
    let is_json = |section| root.get(section).is_some_and(|entry| entry.key_origin.is_json());
    SECTIONS.into_iter().any(is_json)
}

/// Takes the settings out of a document; its other sections are left to the caller, who then calls
/// [`check_sections`]. `config` is what its scheduling sections say, and `start` where the file of the
/// settings begins: there is said which section is missing.
pub fn parse_settings(root: &mut Reader<'_>, config: &Config, start: Option<Origin>) -> Settings {
    // Names the file's schema for editors.
    let _ = root.string("$schema", "");
    let pauses = config.policy_serving.sync_mode.pauses();
    let asked = config.reward_judging.rule.is_empty();
    let mut api = root.table("api").else_at(start);
    let (url, variable) = (base_url(&mut api, asked), api_key_env(&mut api, asked));
    let timeout = api.span_sec("timeout_sec", Span::from_secs(60));
    let ca_file = text(&mut api, "ca_file");
    api.finish();

    let mut serving = root.table("serving");
    let submission_enabled = serving.boolean("submission_enabled", true);
    let pause_on_weight_sync = serving.boolean("pause_on_weight_sync", pauses);
    let mut engine_urls = engine_urls(&mut serving);
    if engine_urls.is_empty() && !url.is_empty() {
        engine_urls.push(url.trim_end_matches("/v1").to_owned());
    }
    let model_path = text(&mut serving, "model_path");
    let max_model_len = serving.u32("max_model_len", 2048, 2..=1 << 20);
    let dtype = dtype(&mut serving);
    serving.finish();

    let mut training = root.table("training");
    let lease = training.span_sec("lease_sec", Span::from_secs(600));
    if lease == Span::ZERO {
        training.error("lease_sec", "a lease of no time is none", "write 600");
    }
    let learning_rate = training.float("learning_rate", 0.0, 0.0..=1.0);
    let learning_rate = Some(learning_rate).filter(|rate| *rate > 0.0);
    let temperature = training.float("temperature", 1.0, 0.0..=2.0);
    if temperature == 0.0 {
        training.error(
            "temperature",
            "at temperature 0 nothing is sampled, so that no token has a ratio",
            "write 1, or another temperature above 0",
        );
    }
    training.finish();
    let training = Training { lease, learning_rate, temperature };

    let mut judge = root.table("judge").else_at(start);
    if asked {
        judge.require("model", "\"the judge's model\"");
    }
    let model = judge.string("model", "");
    let temperature = judge.float("temperature", 0.0, 0.0..=2.0);
    let max_tokens = judge.u32("max_tokens", 512, 1..=u32::MAX);
    let (system, prompt) = (text(&mut judge, "system"), text(&mut judge, "prompt"));
    let score = score_form(&mut judge);
    judge.finish();

    let mut logging = root.table("logging");
    let log_rollout_logprob_diff = logging.boolean("log_rollout_logprob_diff", true);
    logging.finish();

    Settings {
        api: Api { base_url: url, api_key_env: variable, timeout, ca_file },
        serving: Serving {
            submission_enabled,
            pause_on_weight_sync,
            engine_urls,
            model_path,
            max_model_len,
            dtype,
        },
        training,
        judge: Judge { model, temperature, max_tokens, system, prompt, score },
        logging: Logging { log_rollout_logprob_diff },
    }
}

/// With and without `/v1` at its end, a URL means the same.
fn base_url(api: &mut Reader<'_>, asked: bool) -> String {
    if asked {
        api.require("base_url", "\"http://127.0.0.1:8000/v1\"");
    }
    let given = api.string("base_url", "");
    let host = given.trim_end_matches('/').trim_end_matches("/v1").trim_end_matches('/');
    if !is_url(host) && !given.is_empty() {
        api.error(
            "base_url",
            "`base_url` is no URL",
            "write it with its scheme, such as \"http://127.0.0.1:8000/v1\"",
        );
    }
    if let Some(base) = host.strip_suffix("/chat/completions") {
        let base = base.trim_end_matches("/v1");
        api.error(
            "base_url",
            "`base_url` names one request of the API",
            format!("write what stands before it: \"{base}/v1\""),
        );
    }
    if given.is_empty() { given } else { format!("{host}/v1") }
}

/// Whether a text is the URL of a server, with its scheme.
#[must_use]
pub fn is_url(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty() && !rest.contains(' '))
    })
}

/// A text that need not be given.
fn text(section: &mut Reader<'_>, key: &'static str) -> Option<String> {
    Some(section.string(key, "")).filter(|text| !text.is_empty())
}

fn score_form(judge: &mut Reader<'_>) -> ScoreForm {
    match judge.string("score", "boxed").as_str() {
        "boxed" => ScoreForm::Boxed,
        "json" => ScoreForm::Json,
        other => {
            let what = format!("`{other}` is no form of a score");
            judge.error("score", what, "write \"boxed\" or \"json\"");
            ScoreForm::Boxed
        }
    }
}

fn dtype(serving: &mut Reader<'_>) -> Dtype {
    match serving.string("dtype", "float32").as_str() {
        "float32" => Dtype::Float32,
        "bfloat16" => Dtype::Bfloat16,
        other => {
            let what = format!("`{other}` is no type that a policy is served in");
            serving.error("dtype", what, "write \"float32\" or \"bfloat16\"");
            Dtype::Float32
        }
    }
}

fn engine_urls(serving: &mut Reader<'_>) -> Vec<String> {
    let given = serving.strings("engine_urls");
    let urls: Vec<String> = given.iter().map(|url| url.trim_end_matches('/').to_owned()).collect();
    if let Some(wrong) = urls.iter().find(|url| !is_url(url) || url.ends_with("/v1")) {
        serving.error(
            "engine_urls",
            format!("`{wrong}` is no address of an engine"),
            "write each with its scheme and without /v1, such as \"http://127.0.0.1:31000\"",
        );
    }
    urls
}

fn api_key_env(api: &mut Reader<'_>, asked: bool) -> String {
    if asked {
        api.require("api_key_env", "\"OPENAI_API_KEY\"");
    }
    let name = api.string("api_key_env", "");
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name && !name.is_empty() {
        // Perhaps someone wrote the key itself here.
        api.hide("api_key_env");
        api.error(
            "api_key_env",
            "`api_key_env` must be the name of an environment variable",
            "export the key in a variable, and write that variable's name here",
        );
    }
    name
}
