//! Words that are nearly right.

/// "did you mean `x`?" where a candidate is near, else `otherwise`.
pub(super) fn did_you_mean(word: &str, candidates: &[&str], otherwise: &str) -> String {
    match nearest(word, candidates) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    }
}

/// No candidate is nearly as long, and comparing takes time and memory of both lengths.
const LONGEST_WORD: usize = 128;
/// Shorter words are parts of too many.
const SHORTEST_PART: usize = 4;

/// What other systems and papers call a key, and what it is called here.
const SYNONYMS: [(&str, &str); 4] = [
    ("eta", "max_head_off_policyness"),
    ("η", "max_head_off_policyness"),
    ("max_staleness", "max_head_off_policyness"),
    ("staleness_bound", "max_head_off_policyness"),
];

/// The candidate that is most like `word`, if it is like it at all: up to a third of the letters may
/// differ, whatever their case; or it is a longer or a shorter form of the word, or has another unit.
#[must_use]
pub fn nearest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    let plain = word.trim().to_lowercase().replace(['-', ' '], "_");
    let named = SYNONYMS.iter().find(|(other, _)| *other == plain).map(|(_, name)| *name);
    let known = candidates.iter().find(|candidate| Some(**candidate) == named).copied();
    if known.is_some() {
        return known;
    }
    candidates
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&plain, candidate), *candidate))
        .filter(|(distance, candidate)| distance * 3 <= candidate.len().max(plain.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
        .or_else(|| candidates.iter().find(|candidate| lacks_unit(&plain, candidate)).copied())
        .or_else(|| only(candidates, |candidate| is_part(&plain, candidate)))
}

/// `median` for `median_sec`, or `duration_hours` for `duration_sec`.
fn lacks_unit(word: &str, candidate: &str) -> bool {
    let longer = candidate.strip_prefix(word).is_some_and(|rest| rest.starts_with('_'));
    let stem = word.rsplit_once('_').map(|(stem, _)| stem);
    longer || (stem.is_some() && candidate.strip_suffix("_sec") == stem)
}

/// `training` for `policy_training`, or `asynchronous` for `async`.
fn is_part(word: &str, candidate: &str) -> bool {
    let (short, long) =
        if word.len() < candidate.len() { (word, candidate) } else { (candidate, word) };
    let behind = long.strip_suffix(short).is_some_and(|rest| rest.ends_with('_'));
    short.len() >= SHORTEST_PART && (long.starts_with(short) || behind)
}

/// The candidate that fits, if no other does.
fn only<'c>(candidates: &[&'c str], fits: impl Fn(&str) -> bool) -> Option<&'c str> {
    let mut fitting = candidates.iter().filter(|candidate| fits(candidate));
    let first = fitting.next()?;
    fitting.all(|other| other == first).then_some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_known_by_its_slips_its_case_its_unit_and_its_parts() {
        let keys = ["batch_size", "max_head_off_policyness", "duration_sec", "publish_interval"];
        for (word, key) in [
            ("batch_sise", "batch_size"),
            ("Batch-Size", "batch_size"),
            ("eta", "max_head_off_policyness"),
            ("max_head_off", "max_head_off_policyness"),
            ("duration", "duration_sec"),
            ("duration_hours", "duration_sec"),
            ("interval", "publish_interval"),
        ] {
            assert_eq!(nearest(word, &keys), Some(key), "{word}");
        }
        assert_eq!(
            nearest("training", &["policy_serving", "policy_training"]),
            Some("policy_training")
        );
        assert_eq!(nearest("asynchronous", &["async", "sync"]), Some("async"));
    }

    #[test]
    fn a_word_that_fits_two_or_none_is_left_alone() {
        assert_eq!(nearest("size", &["batch_size", "group_size"]), None);
        assert_eq!(nearest("x", &["batch_size"]), None);
        assert_eq!(nearest("gpu", &["cpus", "gpus_per_replica", "gpus"]), Some("gpus"));
        assert_eq!(nearest(&"long".repeat(1000), &["longest"]), None);
    }
}
