//! The log: lines on stderr about what the run does, for people or as JSON.
//!
//! Only events of the target [`TARGET`] are written, whatever the level: what libraries log may hold
//! URLs, headers or bodies. Nothing under that target holds a key, a token, a prompt or an answer.

use std::fmt;
use std::io;
use std::str::FromStr;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry, fmt as lines};

/// The target of everything that is logged.
pub const TARGET: &str = "headway";

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Nothing.
    Off,
    /// What ends or breaks something.
    Error,
    /// Also what an operator should look at.
    Warn,
    /// Also each step, publication and change.
    #[default]
    Info,
    /// Also each request that is answered with an error.
    Debug,
    /// Also each input and how many decisions it caused.
    Trace,
}

impl Level {
    /// Every level with its name.
    pub const ALL: [(&'static str, Self); 6] = [
        ("off", Self::Off),
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];
}

/// A text is no level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write off, error, warn, info, debug or trace")]
pub struct NoLevel;

impl FromStr for Level {
    type Err = NoLevel;

    fn from_str(text: &str) -> Result<Self, NoLevel> {
        let named = Self::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(text.trim()));
        named.map(|(_, level)| *level).ok_or(NoLevel)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.iter().find(|(_, level)| level == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// A JSON object, with the fields of the line.
    Json,
}

/// Takes events and writes lines.
pub fn subscriber<W>(level: Level, format: Format, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = match level {
        Level::Off => LevelFilter::OFF,
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    let only_ours = Targets::new().with_target(TARGET, filter);
    let layer = lines::layer().with_target(false).with_writer(writer);
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match format {
        Format::Text => layer.with_ansi(false).boxed(),
        Format::Json => layer.json().flatten_event(true).with_current_span(false).boxed(),
    };
    Registry::default().with(layer.with_filter(only_ours))
}

/// A line of its own, such as where a run serves. It must hold no key, token, prompt or answer.
pub fn line(text: &str) {
    tracing::info!(target: "headway", "{text}");
}

/// Writes to stderr from now on, for the whole process. A second call changes nothing.
pub fn start(level: Level, format: Format) {
    let _ = tracing::subscriber::set_global_default(subscriber(level, format, io::stderr));
}
