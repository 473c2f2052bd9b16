//! Into a run that is going on, and back.

use std::env;
use std::path::Path;

use headway_runtime::operator::{Changed, Reconfigured, Remote, RemoteError};
use headway_runtime::secret::{ADMIN_TOKEN, Secret};
use headway_shared::config::keys::sections_toml;
use tokio::runtime::Runtime;

use super::tuned::Promotable;
use super::{difference, plan};
use crate::failure::Failure;
use crate::{options, terminal};

/// A run, and what is in force there.
pub(crate) struct Connection {
    runtime: Runtime,
    remote: Remote,
    /// What messages call the configuration in force.
    name: String,
    /// The configuration in force.
    text: String,
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Silent { .. } => Self::broken(error),
            _ => Self::input(error),
        }
    }
}

/// Asks a run what is in force.
pub(crate) fn connect(url: &str, token_file: Option<&Path>) -> Result<Connection, Failure> {
    let remote = Remote::new(url, token(token_file)?)?;
    let runtime = Runtime::new().map_err(Failure::broken)?;
    let text = runtime.block_on(remote.config())?;
    let name = format!("{}/admin/config", remote.url());
    Ok(Connection { runtime, remote, name, text })
}

/// The admin token: of a file, else of the variable.
fn token(file: Option<&Path>) -> Result<Secret, Failure> {
    let (text, place) = match file {
        Some(path) => (options::read(path)?, path.display().to_string()),
        None => (env::var(ADMIN_TOKEN).unwrap_or_default(), format!("the variable {ADMIN_TOKEN}")),
    };
    Secret::new(&text).ok_or_else(|| {
        Failure::input(format!(
            "{place} holds no token\nhelp: export {ADMIN_TOKEN} as the run was started with it, or name \
             a file that holds it with --token-file FILE"
        ))
    })
}

/// Hands a tuned configuration over.
pub(crate) fn promote(
    connection: &Connection,
    from: &Promotable,
    dry_run: bool,
) -> Result<(), Failure> {
    let promotion = plan::promote(&connection.name, &connection.text, from)?;
    if promotion.text == connection.text {
        let url = connection.remote.url();
        terminal::note(&format!("{url}: what was tuned is in force; nothing is changed"));
        return Ok(());
    }
    connection.hand_over(&promotion.text, dry_run)?;
    if !dry_run {
        terminal::note(
            "a restart takes config.toml again: promote to it too, by --to; --rollback --live goes back",
        );
    }
    Ok(())
}

/// Goes back to what the guard of the run knows as the previous configuration; there is no guard
/// any more then.
pub(crate) fn roll_back(connection: &Connection, dry_run: bool) -> Result<(), Failure> {
    let (_, guard) = plan::read(&connection.name, &connection.text)?;
    let Some(previous) = guard.and_then(|guard| guard.previous) else {
        return Err(Failure::input(format!(
            "{}: there is nothing to go back to: its [guard] has no [guard.previous]\nhelp: promote the \
             tuned file of the configuration that you want",
            connection.remote.url()
        )));
    };
    connection.hand_over(&sections_toml(&previous, "", &plan::all_keys()), dry_run)
}

impl Connection {
    /// Sends a configuration, and says what changes when.
    fn hand_over(&self, text: &str, dry_run: bool) -> Result<(), Failure> {
        let done = self.runtime.block_on(self.remote.reconfigure(text, dry_run))?;
        terminal::data(&told(self.remote.url(), &done))?;
        terminal::note(match dry_run {
            true => "nothing is changed: --dry-run",
            false => "it is in force, and in the run's record",
        });
        Ok(())
    }
}

/// What changes when, a key a line.
fn told(url: &str, done: &Reconfigured) -> String {
    let row = |changed: &Changed| {
        let values = format!("{} -> {}", changed.old, changed.new);
        [changed.key.clone(), values, changed.effect.clone()]
    };
    let rows: Vec<_> = done.changed.iter().map(row).collect();
    difference::head(url, rows.len()) + &difference::rows(&rows)
}
