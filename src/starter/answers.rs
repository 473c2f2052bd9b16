//! What options answer of what `headway init` asks, and the rest asked.

use super::ask::Asker;
use super::{Endpoint, Engine, Kind, Wish};
use crate::failure::Failure;

/// Answers that options give.
#[derive(clap::Args)]
pub(crate) struct Answers {
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
}

impl Answers {
    /// What is wished for: what options say, what is answered, and defaults.
    pub(crate) fn wish(&self, asker: &mut Asker) -> Result<Wish, Failure> {
        let kind = match self.kind {
            Some(kind) => kind,
            None => asker.choose("Who asks the policy?", &Kind::CHOICES)?,
        };
        let engine = match self.engine {
            Some(engine) => engine,
            None => asker.choose("What serves and trains it?", &Engine::CHOICES)?,
        };
        let mut engine_urls = self.engine_url.clone();
        if engine_urls.is_empty() && engine == Engine::Sglang {
            engine_urls
                .push(asker.text("Where does the engine listen?", "http://127.0.0.1:31000")?);
        }
        let judge_url = match (&self.judge_url, &self.rule) {
            (given, Some(_)) | (given @ Some(_), None) => given.clone(),
            (None, None) => {
                let asked = "Which OpenAI-compatible endpoint judges? (none: a rule judges)";
                let default =
                    if kind == Kind::Agents { "http://127.0.0.1:8000/v1" } else { "none" };
                Some(asker.text(asked, default)?).filter(|url| url != "none")
            }
        };
        let endpoint = match judge_url {
            None => None,
            Some(url) => Some(Endpoint {
                url,
                model: asker.given_or(&self.judge_model, "Which model judges?", "judge-model")?,
                key_env: asker.given_or(
                    &self.judge_key_env,
                    "Which environment variable holds its key?",
                    "JUDGE_API_KEY",
                )?,
            }),
        };
        let rule = self.rule.clone().unwrap_or_else(|| "exact".to_owned());
        let eta = asker.number(self.eta, "How many versions may a sample be behind (η)?", 2)?;
        let group = if kind == Kind::Tasks { 8 } else { 1 };
        let batch_size =
            asker.number(self.batch_size, "How many samples (or groups) make a batch?", 16)?;
        let group_size = asker.number(self.group_size, "How many samples make a group?", group)?;
        Ok(Wish { kind, engine, engine_urls, endpoint, rule, eta, batch_size, group_size })
    }
}
