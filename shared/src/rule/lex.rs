//! The text of a rule into words and signs.

use std::ops::Range;

use super::RuleError;

/// A word or sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'t> {
    Word(&'t str),
    /// Between quotes, as it stands there.
    Text(&'t str),
    Number(f64),
    Sign(&'static str),
    End,
}

/// Every sign; one that begins another comes after it.
const SIGNS: [&str; 16] =
    ["==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "(", ")", "[", "]", ",", "."];

/// Every word and sign with its place, and the end.
pub(super) fn lex(text: &str) -> Result<Vec<(Token<'_>, Range<usize>)>, RuleError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (token, length) = if first.is_ascii_alphabetic() || first == '_' {
            let word = prefix(rest, |letter| letter.is_ascii_alphanumeric() || letter == '_');
            (Token::Word(word), word.len())
        } else if first.is_ascii_digit() {
            number(rest, at)?
        } else if first == '"' || first == '\'' {
            let Some(end) = rest[1..].find(first) else {
                let help = format!("end it with {first}");
                return Err(error(at..text.len(), "the text has no end", &help));
            };
            (Token::Text(&rest[1..=end]), end + 2)
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            return Err(unknown(first, at));
        };
        tokens.push((token, at..at + length));
        at += length;
    }
    tokens.push((Token::End, text.len()..text.len()));
    Ok(tokens)
}

fn prefix(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|letter| !belongs(letter)).unwrap_or(text.len())]
}

fn number(rest: &str, at: usize) -> Result<(Token<'static>, usize), RuleError> {
    let digits = prefix(rest, |letter| letter.is_ascii_digit() || letter == '.');
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((Token::Number(number), digits.len())),
        _ => Err(error(at..at + digits.len(), "this is no number", "write it as in 12 or 0.5")),
    }
}

fn unknown(sign: char, at: usize) -> RuleError {
    let help = match sign {
        '=' => "write `==` to compare",
        '&' => "write `and`",
        '|' => "write `or`",
        '!' => "write `not`, or `!=` to compare",
        '?' | ':' => "write `if ... then ... else ...`",
        _ => "a text stands in quotes",
    };
    let message = format!("`{sign}` means nothing here");
    error(at..at + sign.len_utf8(), &message, help)
}

pub(super) fn error(at: Range<usize>, message: &str, help: &str) -> RuleError {
    RuleError { at, message: message.to_owned(), help: help.to_owned() }
}
