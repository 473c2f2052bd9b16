//! Making a draft say what another configuration says.

use super::{Draft, NoPlace};
use crate::config::keys::{Key, keys};
use crate::config::sections::Config;

/// A value that both queues can share, with the names under which a file gives it for both.
struct Shared {
    name: &'static str,
    both: &'static [&'static [&'static str]],
}

const QUEUES: [&str; 2] = ["rollout", "output"];

const SHARED: [Shared; 3] = [
    Shared { name: "max_size", both: &[&["queue", "max_size"]] },
    Shared {
        name: "queue_type",
        both: &[&["queue", "queue_type"], &["policy_training", "queue_type"]],
    },
    Shared { name: "drop_policy", both: &[&["queue", "drop_policy"]] },
];

const PAUSE: [&str; 2] = ["policy_serving", "weight_sync_pause"];
const ETA: [&str; 2] = ["policy_training", "max_head_off_policyness"];
const AREALS_ETA: [&str; 2] = ["policy_training", "max_head_offpolicyness"];

impl Draft {
    /// Changes the scheduling keys until they say what `wished` says, each under the name that the
    /// text gives it; a key that says the same already is not touched.
    ///
    /// # Errors
    /// There is no place for a key.
    pub fn adopt(&mut self, wished: &Config) -> Result<(), NoPlace> {
        // What other keys follow from stands before them, so that no key is set twice.
        for key in keys().iter().filter(|key| !key.is_alias()) {
            let value = key.describe(wished).value;
            if key.describe(&self.config()).value != value {
                self.adopt_key(key, value.as_deref(), wished)?;
            }
        }
        Ok(())
    }

    fn adopt_key(
        &mut self,
        key: &Key,
        value: Option<&str>,
        wished: &Config,
    ) -> Result<(), NoPlace> {
        let section: Vec<&str> = key.section.split('.').collect();
        let path = [section.as_slice(), &[key.name]].concat();
        let Some(value) = value else { return self.remove(&path) };
        if let Some(shared) = SHARED.iter().find(|shared| shared.name == key.name)
            && key.section.starts_with("queue.")
        {
            return self.adopt_shared(shared, &path, value, wished);
        }
        if path == ETA && self.find(&AREALS_ETA).is_some() {
            self.set(&AREALS_ETA, value)?;
            return if self.find(&ETA).is_some() { self.set(&ETA, value) } else { Ok(()) };
        }
        if path == ["policy_serving", "sync_mode"] && self.find(&PAUSE).is_some() {
            let pauses = wished.policy_serving.sync_mode.pauses();
            self.set(&PAUSE, if pauses { "true" } else { "false" })?;
            let says_it = self.config().policy_serving.sync_mode == wished.policy_serving.sync_mode;
            return if says_it { Ok(()) } else { self.set(&path, value) };
        }
        self.set(&path, value)
    }

    /// A queue's own key where it is given; else the key for both, where that does not change the
    /// other queue.
    fn adopt_shared(
        &mut self,
        shared: &Shared,
        path: &[&str],
        value: &str,
        wished: &Config,
    ) -> Result<(), NoPlace> {
        if self.find(path).is_some() {
            return self.set(path, value);
        }
        let wants = |queue: &str| {
            let section = format!("queue.{queue}");
            let key = keys().iter().find(|key| key.section == section && key.name == shared.name);
            key.and_then(|key| key.describe(wished).value)
        };
        let follow = |queue: &&str| self.find(&["queue", queue, shared.name]).is_none();
        let agree = QUEUES
            .iter()
            .filter(|queue| follow(queue))
            .all(|queue| wants(queue).as_deref() == Some(value));
        let given: Vec<_> = shared.both.iter().filter(|both| self.find(both).is_some()).collect();
        if !agree {
            return self.set(path, value);
        }
        if given.is_empty() {
            let both = follow(&QUEUES[0]) && follow(&QUEUES[1]);
            if both && self.set(shared.both[0], value).is_ok() {
                return Ok(());
            }
            return self.set(path, value);
        }
        given.into_iter().try_for_each(|both| self.set(both, value))
    }
}
