//! What an endpoint is asked, and how its answer says the score.

use headway_shared::config::{Judge as JudgeSettings, ScoreForm};
use headway_shared::input::Score;
use minijinja::{Environment, UndefinedBehavior, Value as Jinja};
use serde_json::{Value, json};

use crate::judge::Case;

/// What the judge is told to do.
const TASK: &str = "You grade one turn of an assistant. You see the conversation, the assistant's \
    turn, and what followed it. Grade the turn alone, by what followed. Think briefly, then";
const BOXED: &str = "end with \\boxed{1} if it helped, \\boxed{-1} if it did harm or was wrong, and \
    \\boxed{0} if you cannot tell.";
const JSON: &str = "answer with a JSON object: `reason`, a text, then `score`, a number from -1 (it \
    did harm or was wrong) to 1 (it helped), 0 if you cannot tell.";

/// What it is asked, where no template is given.
const PROMPT: &str = "{% for message in messages %}[{{ message.role }}]\n{{ message.content }}\n\n\
    {% endfor %}[the assistant's turn]\n{{ answer }}\n\n\
    [what followed]\n{% if next_state is defined %}{{ next_state }}{% else %}(nothing){% endif %}";

const NAME: &str = "judge.prompt";

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Form {
    templates: Environment<'static>,
    system: String,
    score: ScoreForm,
}

impl Form {
    /// The error says where the template is wrong, by its line.
    pub(super) fn new(judge: &JudgeSettings) -> Result<Self, String> {
        let mut templates = Environment::new();
        // A name that is not there is a mistake, not an empty text.
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        templates.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        let source = judge.prompt.clone().unwrap_or_else(|| PROMPT.to_owned());
        templates.add_template_owned(NAME, source).map_err(|error| {
            let what = error.detail().unwrap_or("it cannot be read").to_owned();
            error.line().map_or(what.clone(), |line| format!("line {line}: {what}"))
        })?;
        let own =
            || format!("{TASK} {}", if judge.score == ScoreForm::Json { JSON } else { BOXED });
        let system = judge.system.clone().unwrap_or_else(own);
        Ok(Self { templates, system, score: judge.score })
    }

    /// The messages, and what else the request says of the answer. The error shows nothing of what is
    /// judged.
    pub(super) fn ask(&self, case: &Case) -> Result<Value, String> {
        let messages: Jinja = case
            .question
            .messages
            .iter()
            .map(|message| {
                let (role, content) = (message.role.as_str(), message.content.as_str());
                Jinja::from_pairs([("role", role), ("content", content)])
            })
            .collect();
        let metadata = case.question.metadata.iter();
        let metadata: Vec<(&str, Jinja)> =
            metadata.map(|(key, value)| (key.as_str(), Jinja::from(value.as_str()))).collect();
        let prompt = case.question.messages.last().map_or("", |message| &message.content);
        let mut known = vec![
            ("messages", messages),
            ("prompt", Jinja::from(prompt)),
            ("answer", Jinja::from(&*case.response)),
            ("metadata", Jinja::from_pairs(metadata)),
        ];
        known.extend(case.next_state.as_deref().map(|state| ("next_state", Jinja::from(state))));
        let template =
            self.templates.get_template(NAME).map_err(|error| error.kind().to_string())?;
        let shown = template.render(Jinja::from_pairs(known)).map_err(|error| {
            let line = error.line().unwrap_or(1);
            format!("line {line}: {}", error.kind())
        })?;
        let mut body = json!({
            "messages": [
                {"role": "system", "content": self.system},
                {"role": "user", "content": shown},
            ],
        });
        if self.score == ScoreForm::Json {
            body["response_format"] = json!({"type": "json_schema", "json_schema": {
                "name": "grade",
                "strict": true,
                "schema": {
                    "type": "object",
                    "properties": {"reason": {"type": "string"}, "score": {"type": "number"}},
                    "required": ["reason", "score"],
                    "additionalProperties": false,
                },
            }});
        }
        Ok(body)
    }

    /// The score that an answer says, in millionths.
    pub(super) fn score(&self, answer: &str) -> Option<Score> {
        match self.score {
            ScoreForm::Boxed => boxed(answer),
            ScoreForm::Json => {
                let answer: Value = serde_json::from_str(answer.trim()).ok()?;
                let score = answer.get("score")?.as_f64()?;
                let possible = (-1.0..=1.0).contains(&score);
                possible.then(|| rounded(score * 1_000_000.0))
            }
        }
    }
}

/// The nearest whole number of one that is small.
fn rounded(number: f64) -> Score {
    (if number < 0.0 { number - 0.5 } else { number + 0.5 }) as Score
}

/// The last `\boxed{1|0|-1}`, as a score.
fn boxed(text: &str) -> Option<Score> {
    text.rmatch_indices("\\boxed{").find_map(|(start, mark)| {
        let inside = text[start + mark.len()..].split_once('}')?.0;
        match inside.trim() {
            "1" => Some(1_000_000),
            "0" => Some(0),
            "-1" => Some(-1_000_000),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_box_that_holds_a_vote_counts() {
        assert_eq!(boxed(r"maybe \boxed{0}, no: \boxed{-1}"), Some(-1_000_000));
        assert_eq!(boxed(r"\boxed{1} and \boxed{helpful}"), Some(1_000_000));
        assert_eq!(boxed(r"\boxed{ 0 }"), Some(0));
        for none in ["", "1", r"\boxed{2}", r"\boxed{1", r"\boxed{}"] {
            assert_eq!(boxed(none), None, "{none}");
        }
    }

    #[test]
    fn a_score_of_a_structured_answer_is_its_number_and_nothing_else() {
        let judge = JudgeSettings {
            model: "m".to_owned(),
            temperature: 0.0,
            max_tokens: 1,
            system: None,
            prompt: None,
            score: ScoreForm::Json,
        };
        let form = Form::new(&judge).unwrap();
        for (answer, score) in [
            (r#" {"reason": "good", "score": 0.25} "#, Some(250_000)),
            (r#"{"score": -1}"#, Some(-1_000_000)),
            (r#"{"score": -0.3333335}"#, Some(-333_334)),
            (r#"{"score": 1.5}"#, None),
            (r#"{"score": "1"}"#, None),
            (r#"{"reason": "good"}"#, None),
            (r"\boxed{1}", None),
            ("", None),
        ] {
            assert_eq!(form.score(answer), score, "{answer}");
        }
    }
}
