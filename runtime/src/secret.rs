//! Keys and tokens, which are never shown.

use std::fmt;

/// Requests to the gateway need the key that this variable holds, if it is set.
pub const API_KEY: &str = "HEADWAY_API_KEY";
/// The admin API needs the token that this variable holds; not set: there is none.
pub const ADMIN_TOKEN: &str = "HEADWAY_ADMIN_TOKEN";

/// A key or token. Its `Debug` shows nothing of it, and it has no `Display`.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// The secret with this text, without white space around it; `None` if nothing is left.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// Its text, to be sent and nowhere else.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether `other` is the same, in a time that depends on its length alone.
    #[must_use]
    pub fn is(&self, other: &str) -> bool {
        let (ours, theirs) = (self.0.as_bytes(), other.as_bytes());
        let differing = ours.iter().cycle().zip(theirs).fold(0, |all, (a, b)| all | (a ^ b));
        differing == 0 && ours.len() == theirs.len()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_is_itself_alone_and_shows_nothing() {
        let secret = Secret::new(" key-1\n").unwrap();
        assert!(secret.is("key-1"));
        for other in ["", "key-", "key-2", "key-1key-1", "key-11"] {
            assert!(!secret.is(other), "{other}");
        }
        assert!(!format!("{secret:?}").contains("key"));
        assert!(Secret::new(" \n").is_none());
    }
}
