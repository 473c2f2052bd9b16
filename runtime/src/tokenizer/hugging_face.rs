//! The tokenizer and chat template of a Hugging Face checkpoint.

mod bytes;
mod decode;
mod encode;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde};
use minijinja::{Environment, Error, ErrorKind, context};
use serde_json::Value;
use tokenizers::Tokenizer as Model;

use decode::Decoder;
use encode::Encoder;

use super::tools::{CALL, CALL_END, Entry, NoTools, Trial, indented_json, python_json};
use super::{Message, PromptError, Tokenizer};

/// A directory from which no tokenizer can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct TokenizerError {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// The tokenizer of a checkpoint: `tokenizer.json`, and the chat template and names of tokens in
/// `tokenizer_config.json` (or `chat_template.jinja`). Templates are rendered as `transformers`
/// does. Made for byte-level vocabularies (Qwen, Llama 3): text is decoded piece by piece.
#[derive(Debug)]
pub struct HuggingFace {
    model: Model,
    encoder: Option<Encoder>,
    decoder: Option<Decoder>,
    templates: Environment<'static>,
    end: u32,
    begin_text: String,
    end_text: String,
    takes_tools: Result<(), NoTools>,
}

const TEMPLATE: &str = "chat";
/// No template indents JSON by more spaces.
const MOST_INDENT: usize = 16;

impl HuggingFace {
    /// Reads a checkpoint's directory.
    ///
    /// # Errors
    /// [`TokenizerError`].
    pub fn load(dir: &Path) -> Result<Self, TokenizerError> {
        let path = dir.join("tokenizer.json");
        let failed = |path: &Path, reason: String| TokenizerError { path: path.to_owned(), reason };
        let model = Model::from_file(&path).map_err(|error| failed(&path, error.to_string()))?;
        let path = dir.join("tokenizer_config.json");
        let text = fs::read_to_string(&path).map_err(|error| failed(&path, error.to_string()))?;
        let config: Value =
            serde_json::from_str(&text).map_err(|error| failed(&path, error.to_string()))?;
        let end_text = token(&config, "eos_token");
        let end = end_text.as_deref().and_then(|text| model.token_to_id(text));
        let end = end.ok_or_else(|| {
            failed(&path, "`eos_token` names no token: with what does a turn end?".to_owned())
        })?;
        let beside = fs::read_to_string(dir.join("chat_template.jinja")).ok();
        let source = beside.or_else(|| template(&config)).ok_or_else(|| {
            failed(
                &path,
                "there is no `chat_template`: it is a model that does not chat".to_owned(),
            )
        })?;
        let mut templates = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        templates.set_syntax(syntax.map_err(|error| failed(dir, error.to_string()))?);
        templates.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        templates.add_function("raise_exception", |why: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, why))
        });
        // That of the library escapes HTML; models have seen what Python writes.
        templates.add_filter("tojson", to_json);
        templates
            .add_template_owned(TEMPLATE, source)
            .map_err(|error| failed(dir, format!("its chat template: {error}")))?;
        let begin_text = token(&config, "bos_token").unwrap_or_default();
        let end_text = end_text.unwrap_or_default();
        let takes_tools = Err(NoTools::NotRendered);
        let (encoder, decoder) = (Encoder::of(&model), Decoder::of(&model));
        let mut made =
            Self { model, encoder, decoder, templates, end, begin_text, end_text, takes_tools };
        made.takes_tools = made.try_tools();
        Ok(made)
    }

    /// Gives the template a call, and looks what it makes of it.
    fn try_tools(&self) -> Result<(), NoTools> {
        let trial = Trial::new();
        let messages: Vec<Value> = trial.entries.iter().map(Entry::for_template).collect();
        let tools = minijinja::Value::from(Serde(&trial.tools));
        let rendered = self.render(minijinja::Value::from(Serde(messages)), tools).ok();
        trial.judge(rendered.as_deref())?;
        // Marks that are special tokens are not seen in what is generated.
        let seen = |mark: &str| self.ids(mark).is_ok_and(|ids| self.decode(&ids) == mark);
        if [CALL, CALL_END].into_iter().all(seen) { Ok(()) } else { Err(NoTools::NotRead) }
    }

    fn render(
        &self,
        messages: minijinja::Value,
        tools: minijinja::Value,
    ) -> Result<String, PromptError> {
        let failed = |error: Error| PromptError(error.detail().unwrap_or("it fails").to_owned());
        let template = self.templates.get_template(TEMPLATE).map_err(failed)?;
        let text = template.render(context! {
            messages,
            tools,
            add_generation_prompt => true,
            bos_token => &self.begin_text,
            eos_token => &self.end_text,
        });
        text.map_err(failed)
    }

    fn ids(&self, text: &str) -> Result<Vec<u32>, String> {
        let known = self.encoder.as_ref().and_then(|encoder| encoder.ids(&self.model, text));
        if let Some(ids) = known {
            return Ok(ids);
        }
        let encoding = self.model.encode_fast(text, false).map_err(|error| error.to_string())?;
        Ok(encoding.get_ids().to_vec())
    }
}

/// The filter `tojson`, as `transformers` has it.
#[expect(clippy::needless_pass_by_value, reason = "a filter is given its arguments")]
fn to_json(value: minijinja::Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    // What else Python's takes, no template needs here: `ensure_ascii` is off for all of them.
    let indented = |indent: usize| indented_json(&value, indent.min(MOST_INDENT));
    Ok(indent.map_or_else(|| python_json(&value), indented))
}

/// A named token, which is a text or an object.
fn token(config: &Value, name: &str) -> Option<String> {
    let named = &config[name];
    named.as_str().or_else(|| named["content"].as_str()).map(str::to_owned)
}

/// The template, or of several the one called `default`.
fn template(config: &Value) -> Option<String> {
    let given = &config["chat_template"];
    let default = |list: &Vec<Value>| {
        let found = list.iter().find(|entry| entry["name"] == "default");
        found.and_then(|entry| entry["template"].as_str()).map(str::to_owned)
    };
    given.as_str().map(str::to_owned).or_else(|| given.as_array().and_then(default))
}

impl Tokenizer for HuggingFace {
    fn prompt(&self, messages: &[Message]) -> Result<Vec<u32>, PromptError> {
        let messages: minijinja::Value = messages
            .iter()
            .map(|message| {
                let (role, content) = (message.role.as_str(), message.content.as_str());
                minijinja::Value::from_pairs([("role", role), ("content", content)])
            })
            .collect();
        let text = self.render(messages, minijinja::Value::from(()))?;
        self.ids(&text).map_err(PromptError)
    }

    fn takes_tools(&self) -> Result<(), NoTools> {
        self.takes_tools
    }

    fn prompt_with_tools(
        &self,
        entries: &[Entry],
        tools: &[Value],
    ) -> Result<Vec<u32>, PromptError> {
        let messages: Vec<Value> = entries.iter().map(Entry::for_template).collect();
        // No tools are none, not an empty list, as in `transformers`.
        let tools = Some(tools).filter(|tools| !tools.is_empty());
        let (messages, tools) =
            (minijinja::Value::from(Serde(messages)), minijinja::Value::from(Serde(tools)));
        let text = self.render(messages, tools)?;
        self.ids(&text).map_err(PromptError)
    }

    fn encode(&self, text: &str) -> Vec<u32> {
        // Only a tokenizer without an unknown token refuses a text; it never generates it either.
        self.ids(text).unwrap_or_default()
    }

    fn decode(&self, ids: &[u32]) -> String {
        let known = self.decoder.as_ref().and_then(|decoder| decoder.text(ids));
        known.unwrap_or_else(|| self.model.decode(ids, true).unwrap_or_default())
    }

    fn end_of_turn(&self) -> u32 {
        self.end
    }
}
