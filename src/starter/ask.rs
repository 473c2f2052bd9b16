//! Questions on a terminal.

use std::io::{self, IsTerminal};

use crate::failure::Failure;
use crate::terminal;

/// Asks where someone can answer; else every answer is the default.
pub(crate) struct Asker {
    asks: bool,
}

impl Asker {
    /// `yes`: nothing is asked.
    pub(crate) fn new(yes: bool) -> Self {
        Self { asks: !yes && io::stdin().is_terminal() && io::stderr().is_terminal() }
    }

    /// A text.
    ///
    /// # Errors
    /// The answers end.
    pub(crate) fn text(&mut self, question: &str, default: &str) -> Result<String, Failure> {
        let answer = self.answer(&format!("{question} [{default}]"))?;
        Ok(if answer.is_empty() { default.to_owned() } else { answer })
    }

    /// A text, unless an option has given it.
    ///
    /// # Errors
    /// As [`text`](Self::text).
    pub(crate) fn given_or(
        &mut self,
        given: &Option<String>,
        question: &str,
        default: &str,
    ) -> Result<String, Failure> {
        match given {
            Some(given) => Ok(given.clone()),
            None => self.text(question, default),
        }
    }

    /// A number, unless an option has given it.
    ///
    /// # Errors
    /// As [`text`](Self::text).
    pub(crate) fn number(
        &mut self,
        given: Option<u32>,
        question: &str,
        default: u32,
    ) -> Result<u32, Failure> {
        if let Some(given) = given {
            return Ok(given);
        }
        loop {
            match self.text(question, &default.to_string())?.parse() {
                Ok(number) => return Ok(number),
                Err(_) => terminal::note("write a whole number"),
            }
        }
    }

    /// One of a few; the first is the default.
    ///
    /// # Errors
    /// As [`text`](Self::text).
    pub(crate) fn choose<T: Copy>(
        &mut self,
        question: &str,
        choices: &[(&str, T)],
    ) -> Result<T, Failure> {
        if self.asks {
            for (number, (words, _)) in (1..).zip(choices) {
                terminal::note(&format!("  {number}  {words}"));
            }
        }
        loop {
            let number = self.text(question, "1")?.parse::<usize>().unwrap_or(0);
            match number.checked_sub(1).and_then(|place| choices.get(place)) {
                Some((_, choice)) => return Ok(*choice),
                None => terminal::note(&format!("write a number from 1 to {}", choices.len())),
            }
        }
    }

    /// A line; empty where nothing is asked.
    fn answer(&mut self, question: &str) -> Result<String, Failure> {
        if !self.asks {
            return Ok(String::new());
        }
        terminal::note(question);
        let mut line = String::new();
        match io::stdin().read_line(&mut line) {
            Ok(0) => Err(Failure::input("the answers end here: nothing is written")),
            Ok(_) => Ok(line.trim().to_owned()),
            Err(error) => Err(Failure::input(format!("stdin cannot be read: {error}"))),
        }
    }
}
