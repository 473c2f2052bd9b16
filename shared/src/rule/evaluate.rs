//! Values of expressions.

use std::borrow::Cow;

use super::parse::{Arithmetic, Comparison, Either, Name, Number, Part, Text, Truth};
use super::{Facts, NoScore};

pub(super) fn text<'a>(text: &'a Text, facts: &Facts<'a>) -> Result<Cow<'a, str>, NoScore> {
    Ok(match text {
        Text::Literal(literal) => Cow::Borrowed(literal),
        Text::Name(name) => Cow::Borrowed(named(name, facts)?),
        Text::Trim(inner) => match self::text(inner, facts)? {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
        },
        Text::Lower(inner) => Cow::Owned(self::text(inner, facts)?.to_lowercase()),
        Text::Capture(inner, pattern, group) => {
            let text = self::text(inner, facts)?;
            let found = pattern.captures(&text).and_then(|captures| captures.get(*group));
            let range = found.ok_or(NoScore::NotFound)?.range();
            match text {
                Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
                Cow::Owned(text) => Cow::Owned(text[range].to_owned()),
            }
        }
        Text::Either(either) => one_of(either, facts, self::text)?,
    })
}

pub(super) fn number(number: &Number, facts: &Facts<'_>) -> Result<f64, NoScore> {
    let value = match number {
        Number::Literal(literal) => *literal,
        Number::Read(inner) => {
            let read = text(inner, facts)?.trim().parse::<f64>().ok();
            read.filter(|number| number.is_finite()).ok_or(NoScore::NotANumber)?
        }
        Number::Length(inner) => text(inner, facts)?.chars().count() as f64,
        Number::Agreement(both) => agreement(&text(&both.0, facts)?, &text(&both.1, facts)?)?,
        Number::Negative(inner) => -self::number(inner, facts)?,
        Number::Abs(inner) => self::number(inner, facts)?.abs(),
        Number::Two(operation, both) => {
            let (one, other) = (self::number(&both.0, facts)?, self::number(&both.1, facts)?);
            arithmetic(*operation, one, other)?
        }
        Number::Either(either) => one_of(either, facts, self::number)?,
    };
    if value.is_finite() { Ok(value) } else { Err(NoScore::Overflow) }
}

fn agreement(one: &str, wanted: &str) -> Result<f64, NoScore> {
    let right = wanted.chars().zip(one.chars()).filter(|(wanted, is)| wanted == is).count();
    match wanted.chars().count() {
        0 => Err(NoScore::DividedByZero),
        all => Ok(right as f64 / all as f64),
    }
}

fn arithmetic(operation: Arithmetic, one: f64, other: f64) -> Result<f64, NoScore> {
    Ok(match operation {
        Arithmetic::Add => one + other,
        Arithmetic::Subtract => one - other,
        Arithmetic::Multiply => one * other,
        Arithmetic::Divide if other == 0.0 => return Err(NoScore::DividedByZero),
        Arithmetic::Divide => one / other,
        Arithmetic::Min => one.min(other),
        Arithmetic::Max => one.max(other),
    })
}

pub(super) fn truth(truth: &Truth, facts: &Facts<'_>) -> Result<bool, NoScore> {
    let texts = |both: &(Text, Text), holds: fn(&str, &str) -> bool| {
        Ok(holds(&text(&both.0, facts)?, &text(&both.1, facts)?))
    };
    match truth {
        Truth::Literal(literal) => Ok(*literal),
        Truth::Not(inner) => Ok(!self::truth(inner, facts)?),
        Truth::And(both) => Ok(self::truth(&both.0, facts)? && self::truth(&both.1, facts)?),
        Truth::Or(both) => Ok(self::truth(&both.0, facts)? || self::truth(&both.1, facts)?),
        Truth::SameText(both) => texts(both, |one, other| one == other),
        Truth::BothOrNeither(both) => {
            Ok(self::truth(&both.0, facts)? == self::truth(&both.1, facts)?)
        }
        Truth::Compare(comparison, both) => {
            let (one, other) = (number(&both.0, facts)?, number(&both.1, facts)?);
            Ok(match comparison {
                Comparison::Equal => one == other,
                Comparison::Less => one < other,
                Comparison::AtMost => one <= other,
            })
        }
        Truth::Part(Part::Anywhere, both) => texts(both, |text, part| text.contains(part)),
        Truth::Part(Part::Start, both) => texts(both, |text, part| text.starts_with(part)),
        Truth::Part(Part::End, both) => texts(both, |text, part| text.ends_with(part)),
        Truth::Matches(inner, pattern) => Ok(pattern.is_match(&text(inner, facts)?)),
        Truth::Has(name) => Ok(named(name, facts).is_ok()),
        Truth::Either(either) => one_of(either, facts, self::truth),
    }
}

fn named<'a>(name: &Name, facts: &Facts<'a>) -> Result<&'a str, NoScore> {
    match name {
        Name::Answer => Ok(facts.answer),
        Name::Prompt => Ok(facts.prompt),
        Name::NextState => facts.next_state.ok_or(NoScore::NoNextState),
        Name::Metadata(key) => {
            let value = facts.metadata.get(&**key).map(String::as_str);
            value.ok_or_else(|| NoScore::NoMetadata(key.to_string()))
        }
    }
}

fn one_of<'a, T, V>(
    either: &'a Either<T>,
    facts: &Facts<'a>,
    value: impl Fn(&'a T, &Facts<'a>) -> Result<V, NoScore>,
) -> Result<V, NoScore> {
    match either {
        Either::If(condition, one, _) if truth(condition, facts)? => value(one, facts),
        Either::If(_, _, other) => value(other, facts),
        Either::Default(first, otherwise) => {
            value(first, facts).or_else(|_| value(otherwise, facts))
        }
    }
}
