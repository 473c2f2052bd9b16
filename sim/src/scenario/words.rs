//! Values of a scenario that are one of a few words.

/// An enum of words, each with what it means.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal, $about:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name { $(#[doc = $about] $variant,)* }

        impl headway_shared::config::Choice for $name {
            const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)*];
            const ABOUT: &'static [&'static str] = &[$($about,)*];
        }
    };
}

pub(super) use words;
