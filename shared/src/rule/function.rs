//! Names and functions.

use regex::{Regex, RegexBuilder};

use super::RuleError;
use super::lex::{Token, error};
use super::parse::{
    Arithmetic, Either, Expression, Name, Number, Parser, Part, Placed, Text, Truth,
};
use crate::config::nearest;

/// The largest automaton of a pattern, in bytes.
const MOST_AUTOMATON: usize = 1 << 20;

/// Key of a request's metadata that holds the expected answer.
const EXPECTED: &str = "answer";

/// Names and functions, each with what is written behind it.
const WORDS: [(&str, &str); 24] = [
    ("answer", ""),
    ("next_state", ""),
    ("prompt", ""),
    ("metadata", ".KEY"),
    ("exact", ""),
    ("true", ""),
    ("false", ""),
    ("trim", "(text)"),
    ("lower", "(text)"),
    ("capture", "(text, \"pattern\")"),
    ("number", "(text)"),
    ("length", "(text)"),
    ("agreement", "(text, text)"),
    ("abs", "(number)"),
    ("min", "(number, number)"),
    ("max", "(number, number)"),
    ("clamp", "(number, low, high)"),
    ("contains", "(text, text)"),
    ("starts_with", "(text, text)"),
    ("ends_with", "(text, text)"),
    ("matches", "(text, \"pattern\")"),
    ("has", "(metadata.KEY)"),
    ("default", "(value, otherwise)"),
    ("if", " ... then ... else ..."),
];

impl<'t> Parser<'t> {
    /// What a word means that was just taken; `start` is where it begins.
    pub(super) fn word(&mut self, word: &'t str, start: usize) -> Result<Expression, RuleError> {
        if let Some(name) = self.name(word)? {
            return Ok(Expression::Text(Text::Name(name)));
        }
        match word {
            "true" => Ok(Expression::Truth(Truth::Literal(true))),
            "false" => Ok(Expression::Truth(Truth::Literal(false))),
            "exact" => Ok(exact()),
            _ => match WORDS.iter().find(|(known, _)| *known == word) {
                Some((_, usage)) => {
                    let Token::Sign("(") = self.peek() else {
                        return Err(self.unexpected(&format!("write `{word}{usage}`")));
                    };
                    self.advance();
                    let expression = self.call(word)?;
                    self.expect(Token::Sign(")"), ")")?;
                    Ok(expression)
                }
                None => Err(unknown(word, start)),
            },
        }
    }

    /// The text of this name, if it is one.
    fn name(&mut self, word: &str) -> Result<Option<Name>, RuleError> {
        Ok(Some(match word {
            "answer" => Name::Answer,
            "prompt" => Name::Prompt,
            "next_state" => {
                self.reads_next_state = true;
                Name::NextState
            }
            "metadata" => self.key()?,
            _ => return Ok(None),
        }))
    }

    /// `.KEY` or `["KEY"]`
    fn key(&mut self) -> Result<Name, RuleError> {
        let bracket = self.takes(Token::Sign("["));
        if !bracket {
            self.expect(Token::Sign("."), ".KEY")?;
        }
        let key = match (self.peek(), bracket) {
            (Token::Word(key), false) | (Token::Text(key), true) => key,
            (_, false) => return Err(self.unexpected("write `metadata.KEY`")),
            (_, true) => return Err(self.unexpected("write `metadata[\"KEY\"]`")),
        };
        self.advance();
        if bracket {
            self.expect(Token::Sign("]"), "]")?;
        }
        Ok(Name::Metadata(key.into()))
    }

    /// The arguments of a function, and what it makes of them.
    fn call(&mut self, function: &str) -> Result<Expression, RuleError> {
        Ok(match function {
            "trim" => Expression::Text(Text::Trim(Box::new(self.text()?))),
            "lower" => Expression::Text(Text::Lower(Box::new(self.text()?))),
            "number" => Expression::Number(Number::Read(Box::new(self.text()?))),
            "length" => Expression::Number(Number::Length(Box::new(self.text()?))),
            "agreement" => {
                let text = self.text()?;
                self.comma()?;
                Expression::Number(Number::Agreement(Box::new((text, self.text()?))))
            }
            "abs" => Expression::Number(Number::Abs(Box::new(self.number()?))),
            "min" => Expression::Number(self.two(Arithmetic::Min)?),
            "max" => Expression::Number(self.two(Arithmetic::Max)?),
            "clamp" => {
                let value = self.number()?;
                self.comma()?;
                let low = self.number()?;
                self.comma()?;
                let raised = Number::Two(Arithmetic::Max, Box::new((value, low)));
                let high = self.number()?;
                Expression::Number(Number::Two(Arithmetic::Min, Box::new((raised, high))))
            }
            "contains" => self.within(Part::Anywhere)?,
            "starts_with" => self.within(Part::Start)?,
            "ends_with" => self.within(Part::End)?,
            "matches" => {
                let text = Box::new(self.text()?);
                self.comma()?;
                Expression::Truth(Truth::Matches(text, self.pattern()?))
            }
            "capture" => self.capture()?,
            "default" => self.fallback()?,
            // The last of the functions.
            _ => {
                let word = match self.peek() {
                    Token::Word(word) => word,
                    _ => "",
                };
                let place = self.place();
                self.advance();
                let name = self.name(word)?;
                let help = "write `has(metadata.KEY)` or `has(next_state)`";
                Expression::Truth(Truth::Has(
                    name.ok_or_else(|| error(place, "only a name can be there or not", help))?,
                ))
            }
        })
    }

    fn text(&mut self) -> Result<Text, RuleError> {
        self.expression(0)?.text()
    }

    fn number(&mut self) -> Result<Number, RuleError> {
        self.expression(0)?.number()
    }

    fn comma(&mut self) -> Result<(), RuleError> {
        self.expect(Token::Sign(","), ",")
    }

    fn two(&mut self, operation: Arithmetic) -> Result<Number, RuleError> {
        let one = self.number()?;
        self.comma()?;
        Ok(Number::Two(operation, Box::new((one, self.number()?))))
    }

    fn within(&mut self, part: Part) -> Result<Expression, RuleError> {
        let text = self.text()?;
        self.comma()?;
        Ok(Expression::Truth(Truth::Part(part, Box::new((text, self.text()?)))))
    }

    fn capture(&mut self) -> Result<Expression, RuleError> {
        let text = Box::new(self.text()?);
        self.comma()?;
        let pattern = self.pattern()?;
        let groups = pattern.captures_len() - 1;
        let mut group = groups.min(1);
        if self.takes(Token::Sign(",")) {
            let Token::Number(number) = self.peek() else {
                return Err(self.unexpected("write the number of a group, as in 1"));
            };
            // A number beyond the groups is beyond them after rounding, too.
            group = number as usize;
            if group > groups || number > group as f64 {
                let message = format!("the pattern has no group {number}");
                let help = format!("choose a whole number from 0 (all of it) to {groups}");
                return Err(error(self.place(), &message, &help));
            }
            self.advance();
        }
        Ok(Expression::Text(Text::Capture(text, pattern, group)))
    }

    fn fallback(&mut self) -> Result<Expression, RuleError> {
        let value = self.expression(0)?;
        self.comma()?;
        let otherwise = self.expression(0)?;
        Ok(match value.expression {
            Expression::Text(value) => {
                Expression::Text(Text::Either(Box::new(Either::Default(value, otherwise.text()?))))
            }
            Expression::Number(value) => {
                let both = Either::Default(value, otherwise.number()?);
                Expression::Number(Number::Either(Box::new(both)))
            }
            Expression::Truth(value) => {
                let both = Either::Default(value, otherwise.truth()?);
                Expression::Truth(Truth::Either(Box::new(both)))
            }
        })
    }

    /// A pattern stands there itself, so that what is wrong with it is known now.
    fn pattern(&mut self) -> Result<Regex, RuleError> {
        let Placed { expression, at } = self.expression(0)?;
        let Expression::Text(Text::Literal(text)) = expression else {
            return Err(error(
                at,
                "a pattern must be a text in quotes",
                "write it here, in quotes",
            ));
        };
        let built = RegexBuilder::new(&text).size_limit(MOST_AUTOMATON).build();
        built.map_err(|wrong| {
            let wrong = wrong.to_string();
            let why = wrong.lines().last().unwrap_or("").trim_start_matches("error: ");
            let message = format!("the pattern is no regular expression: {why}");
            error(at, &message, "`.` `*` `+` `?` `(` `[` `{` mean themselves behind a backslash")
        })
    }
}

/// The answer is the expected one, white space around both aside.
pub(super) fn exact() -> Expression {
    let trimmed = |name| Text::Trim(Box::new(Text::Name(name)));
    let expected = trimmed(Name::Metadata(EXPECTED.into()));
    Expression::Truth(Truth::SameText(Box::new((trimmed(Name::Answer), expected))))
}

fn unknown(word: &str, start: usize) -> RuleError {
    let names: Vec<&str> = WORDS.iter().map(|(name, _)| *name).collect();
    let help = match nearest(word, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("a text stands in quotes; the names are {}", names.join(", ")),
    };
    error(start..start + word.len(), &format!("unknown name `{word}`"), &help)
}
