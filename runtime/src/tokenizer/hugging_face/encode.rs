//! Text to ids as `tokenizers` does it, in a small part of its time.
//!
//! The library keeps for every letter where it came from, runs a regular expression that backtracks, and
//! copies each word several times. What a prompt needs are ids alone. So here marks (added tokens) are found
//! first, what stands between them is cut into words by the same pattern without its look-ahead, and the ids
//! of a word, which depend on nothing else, are asked of the library's model once and then remembered.
//!
//! It is exact or absent: [`Encoder::of`] takes only tokenizers of the form that byte-level models have (GPT-2,
//! Llama 3, Qwen, Mistral), and whatever it does not know is left to the library.

use regex::Regex;
use serde_json::{Value, json};
use tokenizers::{
    Model as _, ModelWrapper, NormalizedString, Normalizer as _, PreTokenizerWrapper,
    Tokenizer as Model,
};

use super::bytes::letters;
use super::words::{MOST_BYTES, Words};

/// How GPT-2 cuts text, where a tokenizer names no pattern.
const GPT_2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// How all known patterns end: space belongs to the word behind it.
const SPACE: &str = r"|\s+(?!\S)|\s+";
/// The patterns for which [`Quick`] cuts ASCII: GPT-2's, and those of Llama 3 and Qwen but for their numbers.
const KNOWN: [(&str, &str, Quick); 2] = [
    (GPT_2, "", Quick { joined: false }),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Quick { joined: true },
    ),
];
/// Repetitions that never give back what they took: other libraries read them as something else.
const POSSESSIVE: &str = r"[*+?]\+|\{[\d,]+\}\+";
/// Escapes that mean the same in all libraries.
const ESCAPES: &[char] = &['p', 'P', 's', 'S', 'r', 'n', 't', 'd', 'D', '/', '-', '\'', '.', '|'];
/// The library gives up in longer words, after a million steps.
const LONGEST_WORD: usize = 1 << 16;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Encoder {
    /// Marks that are looked for in the text as it is,
    raw: Marks,
    /// and in what the normalizer makes of it.
    normalized: Marks,
    pattern: Pattern,
    letters: [char; 256],
    words: Words,
}

impl Encoder {
    /// For this tokenizer, if it is of the known form.
    pub(super) fn of(model: &Model) -> Option<Self> {
        let ModelWrapper::BPE(bpe) = model.get_model() else { return None };
        let plain = bpe.dropout.is_none_or(|dropout| dropout == 0.0)
            && model.get_truncation().is_none()
            && model.get_padding().is_none()
            && !model.get_encode_special_tokens()
            && model.get_normalizer().is_none_or(|normalizer| is(normalizer, &["NFC"]))
            && model.get_post_processor().is_none_or(adds_nothing);
        if !plain {
            return None;
        }
        let pattern = Pattern::read(&pattern(model.get_pre_tokenizer()?)?)?;
        let (raw, normalized) = (Marks::of(model, false)?, Marks::of(model, true)?);
        Some(Self { raw, normalized, pattern, letters: letters(), words: Words::new() })
    }

    /// The ids of a text; `None`: the library is to say it.
    pub(super) fn ids(&self, model: &Model, text: &str) -> Option<Vec<u32>> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        let (known, mut fresh) = (self.words.read(), Vec::new());
        let done = self.raw.split(text, |part| match part {
            Part::Mark(id) => {
                ids.push(id);
                Some(())
            }
            Part::Text(text) => self.normalize(model, text, |text| {
                self.normalized.split(text, |part| match part {
                    Part::Mark(id) => {
                        ids.push(id);
                        Some(())
                    }
                    Part::Text(text) => self.pattern.words(text, |word| {
                        if let Some(found) = known.get(word) {
                            match *found {
                                [id] => ids.push(id),
                                _ => ids.extend_from_slice(found),
                            }
                            return Some(());
                        }
                        let found = self.word(model, word)?;
                        ids.extend_from_slice(&found);
                        if word.len() <= MOST_BYTES {
                            fresh.push((word.into(), found));
                        }
                        Some(())
                    }),
                })
            }),
        });
        drop(known);
        self.words.add(fresh);
        done.map(|()| ids)
    }

    /// Hands on what the normalizer makes of a text. All of ASCII is as NFC wants it.
    fn normalize(
        &self,
        model: &Model,
        text: &str,
        mut then: impl FnMut(&str) -> Option<()>,
    ) -> Option<()> {
        match model.get_normalizer().filter(|_| !text.is_ascii()) {
            None => then(text),
            Some(normalizer) => {
                let mut made = NormalizedString::from(text);
                normalizer.normalize(&mut made).ok()?;
                then(made.get())
            }
        }
    }

    /// What the model makes of a word, whose bytes it knows as letters.
    fn word(&self, model: &Model, word: &str) -> Option<Box<[u32]>> {
        let letters: String = word.bytes().map(|byte| self.letters[usize::from(byte)]).collect();
        let tokens = model.get_model().tokenize(&letters).ok()?;
        Some(tokens.iter().map(|token| token.id).collect())
    }
}

/// A part of a tokenizer is of one of these kinds.
fn is(part: &impl serde::Serialize, kinds: &[&str]) -> bool {
    serde_json::to_value(part).is_ok_and(|part| kinds.iter().any(|kind| part["type"] == *kind))
}

/// What is done behind the model changes no ids while special tokens are not asked for.
fn adds_nothing(processor: &impl serde::Serialize) -> bool {
    fn plain(part: &Value) -> bool {
        let whole = |pieces: &Value| {
            let pieces = pieces.as_array().map(Vec::as_slice).unwrap_or_default();
            pieces.iter().filter(|piece| piece.get("Sequence").is_some()).count() == 1
        };
        match part["type"].as_str() {
            Some("ByteLevel") => true,
            Some("TemplateProcessing") => whole(&part["single"]),
            Some("Sequence") => {
                part["processors"].as_array().is_some_and(|parts| parts.iter().all(plain))
            }
            _ => false,
        }
    }
    serde_json::to_value(processor).is_ok_and(|processor| plain(&processor))
}

/// The pattern by which a pre-tokenizer cuts text before it takes bytes for letters.
fn pattern(part: &PreTokenizerWrapper) -> Option<String> {
    let part = serde_json::to_value(part).ok()?;
    let bytes = |part: &Value, pattern: bool| {
        part["type"] == "ByteLevel"
            && part["add_prefix_space"] == false
            && part["use_regex"] == pattern
    };
    if bytes(&part, true) {
        return Some(GPT_2.to_owned());
    }
    let [split, last] = part["pretokenizers"].as_array()?.as_slice() else { return None };
    let whole = split["type"] == "Split"
        && split["behavior"] == "Isolated"
        && split["invert"] == json!(false)
        && bytes(last, false);
    split["pattern"]["Regex"].as_str().filter(|_| whole).map(str::to_owned)
}

/// A piece of a text.
enum Part<'t> {
    Mark(u32),
    Text(&'t str),
}

/// Added tokens, which are found in a text before anything else: of those that begin at a place, the
/// longest.
#[derive(Debug)]
struct Marks {
    any: Option<Regex>,
    ids: Vec<(String, u32)>,
}

impl Marks {
    fn of(model: &Model, normalized: bool) -> Option<Self> {
        let mut ids = Vec::new();
        for (id, token) in model.get_added_tokens_decoder() {
            // In normalized text, it is the normalized mark that is looked for.
            let same = !token.normalized || token.content.is_ascii();
            let plain = !token.single_word && !token.lstrip && !token.rstrip;
            if !same || !plain || token.content.is_empty() {
                return None;
            }
            if token.normalized == normalized {
                ids.push((token.content, id));
            }
        }
        ids.sort_by(|(one, _), (other, _)| (other.len(), one).cmp(&(one.len(), other)));
        let texts: Vec<String> = ids.iter().map(|(text, _)| regex::escape(text)).collect();
        // The first alternative that fits is taken: the longest stands first.
        let any = (!texts.is_empty()).then(|| Regex::new(&texts.join("|"))).transpose().ok()?;
        ids.sort();
        Some(Self { any, ids })
    }

    fn split<'t>(&self, text: &'t str, mut take: impl FnMut(Part<'t>) -> Option<()>) -> Option<()> {
        let mut at = 0;
        for found in self.any.iter().flat_map(|any| any.find_iter(text)) {
            if at < found.start() {
                take(Part::Text(&text[at..found.start()]))?;
            }
            let place = self.ids.binary_search_by(|(mark, _)| mark.as_str().cmp(found.as_str()));
            take(Part::Mark(self.ids[place.ok()?].1))?;
            at = found.end();
        }
        if at < text.len() { take(Part::Text(&text[at..])) } else { Some(()) }
    }
}

/// How text is cut into words.
#[derive(Debug)]
struct Pattern {
    /// A word, or space.
    any: Regex,
    /// A word.
    word: Regex,
    /// What needs no search.
    quick: Option<Quick>,
}

impl Pattern {
    /// The pattern without its look-ahead, if the rest means the same to any library.
    fn read(pattern: &str) -> Option<Self> {
        let word = pattern.strip_suffix(SPACE)?;
        let mut escaped = word.split('\\').skip(1);
        let known = escaped.all(|rest| rest.starts_with(ESCAPES));
        let groups = ["(?=", "(?!", "(?<", "(?>", "(?|", "(?(", "&&", "--", "~~"];
        let possessive = Regex::new(POSSESSIVE).ok()?.is_match(word);
        if !known || possessive || groups.into_iter().any(|other| word.contains(other)) {
            return None;
        }
        let any = Regex::new(&format!(r"{word}|\s+")).ok()?;
        let quick = KNOWN.into_iter().find(|(first, last, _)| {
            let between = pattern.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
            between.is_some_and(|between| ["", "{1,3}"].contains(&between))
        });
        Some(Self { any, word: Regex::new(word).ok()?, quick: quick.map(|(_, _, quick)| quick) })
    }

    /// Hands on the words of a text, in order; what fits nothing is a word of its own.
    fn words(&self, text: &str, mut take: impl FnMut(&str) -> Option<()>) -> Option<()> {
        let mut at = 0;
        while at < text.len() {
            if let Some(end) = self.quick.and_then(|quick| quick.end(text.as_bytes(), at)) {
                take(&text[at..end])?;
                at = end;
                continue;
            }
            let Some(found) = self.any.find_at(text, at) else { return take(&text[at..]) };
            let (start, end) = (found.start(), self.end(text, found.start(), found.end()));
            if start == end || end - start > LONGEST_WORD {
                return None;
            }
            if at < start {
                take(&text[at..start])?;
            }
            take(&text[start..end])?;
            at = end;
        }
        Some(())
    }

    /// Where a match ends that began at `start`. `\s+(?!\S)` leaves the last of several spaces to the word
    /// behind them.
    fn end(&self, text: &str, start: usize, end: usize) -> usize {
        let found = &text[start..end];
        let mut letters = found.chars();
        let (first, last) = (letters.next(), letters.next_back());
        let (Some(first), Some(last)) = (first, last) else { return end };
        if end == text.len() || !first.is_whitespace() || !last.is_whitespace() {
            return end;
        }
        // Perhaps it is a word, though it begins and ends with space.
        let word = self.word.find_at(text, start).is_some_and(|word| word.start() == start);
        if word { end } else { end - last.len_utf8() }
    }
}

/// Cuts words of ASCII as the known patterns do, without a search.
#[derive(Clone, Copy, Debug)]
struct Quick {
    /// As Llama 3: letters take any mark before them along, and marks the ends of lines behind them. Else as
    /// GPT-2: both take one space before them.
    joined: bool,
}

impl Quick {
    /// Where the word that begins at `at` ends; `None`: that is not seen at a glance.
    fn end(self, text: &[u8], at: usize) -> Option<usize> {
        let whole = |end: usize| text.get(end).is_none_or(u8::is_ascii) && end - at < LONGEST_WORD;
        let first = text[at];
        let second = text.get(at + 1).copied().unwrap_or_default();
        let mark = first.is_ascii_punctuation() && first != b'\'';
        let letters = first.is_ascii_alphabetic()
            || second.is_ascii_alphabetic() && (first == b' ' || self.joined && mark);
        if letters {
            let end = run(text, at + 1, u8::is_ascii_alphabetic);
            return whole(end).then_some(end);
        }
        if mark || first == b' ' && second.is_ascii_punctuation() {
            let end = run(text, at + 1, u8::is_ascii_punctuation);
            // What is neither letter, number nor space belongs to them, too.
            let over = text.get(end).is_none_or(|byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
            });
            let lines = |byte: &u8| matches!(byte, b'\r' | b'\n');
            let end = if self.joined { run(text, end, lines) } else { end };
            return (over && end - at < LONGEST_WORD).then_some(end);
        }
        None
    }
}

/// Where bytes end that are so.
fn run(text: &[u8], from: usize, so: impl Fn(&u8) -> bool) -> usize {
    let rest = &text[from..];
    from + rest.iter().position(|byte| !so(byte)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests;
