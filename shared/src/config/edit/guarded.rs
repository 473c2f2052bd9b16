//! `[guard]` in a draft.

use super::{Draft, NoPlace};
use crate::config::choices::OnDeviation;
use crate::config::envelope::Envelope;
use crate::config::guard::GuardSettings;
use crate::config::keys::{keys, sections_toml};
use crate::config::node::Table;
use crate::config::sections::Config;

/// How many windows in a row a metric has to be outside, where a file does not say.
const PATIENCE: u32 = 2;

impl Draft {
    /// Writes what a run is held to from now on, and, where it is given, the configuration to go
    /// back to. What `[guard]` does on a deviation stays as it is; where there is no `[guard]`, it
    /// logs.
    ///
    /// # Errors
    /// There is no place for a key.
    pub fn hold_to(
        &mut self,
        envelope: &Envelope,
        previous: Option<&Config>,
    ) -> Result<(), NoPlace> {
        if self.find(&["guard"]).is_none() {
            let settings = GuardSettings {
                on_deviation: OnDeviation::Log,
                patience: PATIENCE,
                settle: envelope.window,
                envelope: envelope.clone(),
                previous: previous.map(|config| Box::new(config.clone())),
            };
            return self.append(&settings.to_toml());
        }
        let window = envelope.window.to_string();
        self.set(&["guard", "window_sec"], window.trim_end_matches('s'))?;
        let ranges = envelope.ranges.iter().map(|(metric, range)| {
            (metric.name.to_owned(), format!("[{:?}, {:?}]", range.low, range.high))
        });
        self.sync(&["guard", "envelope"], &ranges.collect::<Vec<_>>())?;
        previous.map_or(Ok(()), |previous| self.hold_previous(previous))
    }

    /// Writes the configuration to go back to.
    fn hold_previous(&mut self, previous: &Config) -> Result<(), NoPlace> {
        let text = sections_toml(previous, "guard.previous", &[]);
        let written = Self::new("guard.previous", &text).ok();
        let mut sections: Vec<&str> = keys().iter().map(|key| key.section).collect();
        sections.dedup();
        for section in sections {
            let path: Vec<&str> =
                ["guard", "previous"].into_iter().chain(section.split('.')).collect();
            let wanted = written.as_ref().map_or_else(Vec::new, |written| written.values(&path));
            self.sync(&path, &wanted)?;
        }
        if self.find(&["guard", "previous"]).is_none() {
            // The defaults are something to go back to as well.
            return if self.is_inline(&["guard"]) {
                self.set(&["guard", "previous"], "{}")
            } else {
                self.append("[guard.previous]\n")
            };
        }
        Ok(())
    }

    /// The keys of a table with their values as they are written, tables in it aside.
    fn values(&self, path: &[&str]) -> Vec<(String, String)> {
        let table = self.find(path).and_then(|entry| entry.node.as_table());
        let entries = table.into_iter().flat_map(Table::entries);
        entries
            .filter(|entry| entry.node.as_table().is_none())
            .map(|entry| (entry.key.clone(), self.written(entry).to_owned()))
            .collect()
    }

    /// Makes a table hold these keys and no others, tables in it aside.
    fn sync(&mut self, path: &[&str], wanted: &[(String, String)]) -> Result<(), NoPlace> {
        let there = self.values(path);
        for (name, _) in there.iter().filter(|(name, _)| wanted.iter().all(|(key, _)| key != name))
        {
            self.remove(&[path, &[name.as_str()]].concat())?;
        }
        for (name, value) in wanted {
            self.set(&[path, &[name.as_str()]].concat(), value)?;
        }
        Ok(())
    }
}
