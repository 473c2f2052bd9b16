//! Lists of token ids as JSON: most of what is written for a turn.

use serde::Serializer;

/// Appends a list of ids, `[1,2,3]`, which need not be a list before.
pub(crate) fn put_ids(to: &mut Vec<u8>, ids: impl Iterator<Item = u32>) {
    // Memory takes whatever is written, and numbers are JSON.
    let _ = serde_json::Serializer::new(to).collect_seq(ids);
}

/// A list of ids, as a text.
pub(crate) fn ids(ids: impl ExactSizeIterator<Item = u32>) -> String {
    // Ids of large vocabularies have six digits.
    let mut bytes = Vec::with_capacity(2 + 7 * ids.len());
    put_ids(&mut bytes, ids);
    // Digits and commas are.
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    proptest::proptest! {
        #[test]
        fn ids_are_written_as_json(
            list in proptest::collection::vec(proptest::prelude::any::<u32>(), 0..9),
            small in proptest::collection::vec(0..1100_u32, 0..9),
        ) {
            for list in [list, small] {
                let text = super::ids(list.iter().copied());
                proptest::prop_assert_eq!(text, serde_json::to_string(&list).unwrap());
            }
        }
    }
}
