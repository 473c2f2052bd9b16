//! The command line: what is wrong with it, and what to write instead.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error, Parser};

/// Reads the command line. Where it is wrong, or asks for help, that is said and the process ends.
pub(crate) fn parse<C: Parser>() -> C {
    read(with_negative_numbers(C::command()), std::env::args_os())
        .unwrap_or_else(|error| error.exit())
}

fn read<C: Parser>(
    mut command: Command,
    words: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>,
) -> Result<C, Error> {
    let matches = command.try_get_matches_from_mut(words);
    let read = matches.and_then(|mut matches| C::from_arg_matches_mut(&mut matches));
    read.map_err(|error| with_remedy(error.format(&mut command)))
}

/// `--seed -1` is a number that is wrong, and no option that is not known.
fn with_negative_numbers(command: Command) -> Command {
    let allow = |argument: clap::Arg| match argument.get_action().takes_values() {
        true => argument.allow_negative_numbers(true),
        false => argument,
    };
    command.mut_args(allow).mut_subcommands(with_negative_numbers)
}

/// The parser says what is wrong with a number, and not what would be right.
fn with_remedy(mut error: Error) -> Error {
    if error.kind() == ErrorKind::ValueValidation
        && let Some(remedy) = error.source().and_then(|why| number(&why.to_string()))
    {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![remedy.into()]));
    }
    error
}

/// What number to write, by what the parser says of one.
fn number(said: &str) -> Option<String> {
    if let Some((_, range)) = said.split_once(" is not in ") {
        let (from, to) = range.split_once("..").unwrap_or((range, ""));
        let to = to.trim_start_matches('=');
        let open = to == u64::MAX.to_string() || to == u32::MAX.to_string() || to.is_empty();
        return Some(match open {
            true => format!("write a whole number, {from} or more"),
            false => format!("write a whole number from {from} to {to}"),
        });
    }
    let no_integer = ["invalid digit found in string", "cannot parse integer from empty string"];
    if no_integer.contains(&said) {
        return Some("write a whole number, 0 or more".to_owned());
    }
    said.starts_with("number too large").then(|| "write a smaller number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Words {
        #[arg(long)]
        seed: Option<u64>,
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=512))]
        jobs: Option<u16>,
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        runs: Option<u64>,
    }

    fn said(words: &[&str]) -> String {
        let words = std::iter::once("headway").chain(words.iter().copied());
        let read =
            read::<Words>(with_negative_numbers(<Words as clap::CommandFactory>::command()), words);
        read.unwrap_err().to_string()
    }

    #[test]
    fn a_number_that_is_wrong_comes_with_one_that_is_right() {
        for (words, tip) in [
            (["--seed", "x"], "tip: write a whole number, 0 or more"),
            (["--seed", "-1"], "tip: write a whole number, 0 or more"),
            (["--seed", "1.5"], "tip: write a whole number, 0 or more"),
            (["--seed", "99999999999999999999"], "tip: write a smaller number"),
            (["--jobs", "0"], "tip: write a whole number from 1 to 512"),
            (["--runs", "0"], "tip: write a whole number, 1 or more"),
        ] {
            let said = said(&words);
            assert!(said.contains(&format!("invalid value '{}'", words[1])), "{said}");
            assert!(said.contains(tip), "{said}");
        }
    }

    #[test]
    fn a_right_command_line_is_read() {
        let words = ["headway", "--seed", "3", "--jobs", "4", "--runs", "5"];
        let Words { seed, jobs, runs } =
            read(<Words as clap::CommandFactory>::command(), words).unwrap();
        assert_eq!((seed, jobs, runs), (Some(3), Some(4), Some(5)));
    }
}
