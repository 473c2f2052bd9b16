//! Words where there is little room for them: on a phone, or in one of many panels.

use super::axis::{Axis, Form, LETTERS, cut};
use super::canvas::font;
use super::theme::{TEXT, px};
use crate::report::number;

/// The least width of a letter that is reckoned with, in pixels.
const LETTER: i32 = 8;
/// Names with fewer letters are left out rather than cut.
const LEAST: usize = 4;

/// Width of a text in units.
pub(crate) fn width(text: &str) -> i32 {
    font::width(text, f64::from(px(TEXT))).ceil() as i32
}

/// The text in lines of at most `room` units, broken between words; a word alone may be wider.
pub(crate) fn lines(text: &str, room: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line) + width(" ") + width(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The text, cut where it is wider than `room` units.
pub(crate) fn within(text: &str, room: i32) -> String {
    let mut letters = text.chars().count();
    let mut shown = text.to_owned();
    while width(&shown) > room && letters > 1 {
        letters -= 1;
        shown = cut(text, letters);
    }
    shown
}

/// Letters that have room side by side in `room` units.
pub(crate) fn letters(room: i32) -> usize {
    LETTERS.min((room / px(LETTER)).max(0) as usize)
}

/// The ticks of a horizontal axis that is `room` units wide, each with its name: where they would lie on
/// each other, words are cut, and then every other one is left out, or more.
pub(crate) fn ticks(axis: &Axis, room: i32) -> Vec<(f64, String)> {
    let at = |value: f64| {
        let (low, high) = axis.range;
        (value - low) / (high - low) * f64::from(room)
    };
    let is_clear = |ticks: &[(f64, String)]| {
        ticks.windows(2).all(|pair| {
            let half = |name: &str| f64::from(width(name)) / 2.0;
            at(pair[0].0) + half(&pair[0].1) <= at(pair[1].0) - half(&pair[1].1)
        })
    };
    let mut ticks = axis.ticks.clone();
    if is_clear(&ticks) {
        return ticks;
    }
    if let Form::Places(names) = &axis.form
        && names.iter().any(|name| number::parse(name).is_none())
    {
        let each = letters(room) / names.len().max(1);
        if each >= LEAST {
            ticks.iter_mut().for_each(|(_, name)| *name = cut(name, each));
        }
    }
    let every = |step: usize| ticks.iter().step_by(step).cloned().collect::<Vec<_>>();
    (1..ticks.len()).map(every).find(|ticks| is_clear(ticks)).unwrap_or_else(|| every(ticks.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_are_no_wider_than_their_room() {
        let text = "p99 of head staleness, learner versions (16 and more at the edge)";
        let broken = lines(text, px(300));
        assert!(
            broken.len() == 2 && broken.iter().all(|line| width(line) <= px(300)),
            "{broken:?}"
        );
        assert_eq!(broken.join(" "), text);
        assert_eq!(
            (lines("", px(9)), lines("wide", px(9))),
            (vec![String::new()], vec!["wide".into()])
        );
        assert!(within(text, px(100)).ends_with('…') && width(&within(text, px(100))) <= px(100));
    }

    #[test]
    fn names_never_lie_on_each_other() {
        let names = |axis: &Axis, room: i32| -> Vec<String> {
            ticks(axis, px(room)).into_iter().map(|tick| tick.1).collect()
        };
        let numbers = Axis::until("", 12.0, 12);
        assert_eq!(names(&numbers, 800).len(), 13);
        assert_eq!(names(&numbers, 150), ["0", "2", "4", "6", "8", "10", "12"]);
        let words = ["as-it-was-before", "with-parking", "both"].map(str::to_owned);
        let cut = names(&Axis::places("", &words), 300);
        assert!(cut.len() == 3 && cut[0].ends_with('…'), "{cut:?}");
    }
}
