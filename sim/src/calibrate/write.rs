//! The scenario as a file, and the columns beside it.

use std::fmt::Write;

use headway_shared::config::Config;
use headway_shared::config::keys::keys;

use super::Head;
use super::estimate::{Estimates, Item, number};
use crate::report::number as numbers;

/// The tables of a scenario, in order.
const TABLES: [&str; 10] = [
    "world.serving",
    "world.clients",
    "world.clients.arrivals",
    "world.clients.retries",
    "world.environment",
    "world.judge",
    "world.trainer",
    "world.weights",
    "world.faults",
    "world.drift",
];

/// Train steps of a scenario whose record has none.
const STEPS: usize = 200;

/// Sorts items as the scenario has them.
pub(super) fn order(items: &mut [Item]) {
    let place = |item: &Item| TABLES.iter().position(|table| *table == item.table);
    items.sort_by_key(place);
}

/// The columns that laws draw from.
pub(super) fn files(items: &[Item]) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for item in items {
        if let Some(column) = &item.column {
            let mut text = format!("{}\n", column.name);
            for value in &item.observed {
                // Writing to a `String` cannot fail.
                let _ = writeln!(text, "{}", exact(*value));
            }
            files.push((column.file.clone(), text.into_bytes()));
        }
    }
    files
}

/// Times to the nanosecond.
fn exact(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

/// The whole file.
pub(super) fn scenario(head: &Head, estimates: &Estimates, assumed: &[String]) -> String {
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = write_scenario(&mut text, head, estimates, assumed);
    text
}

fn write_scenario(
    text: &mut String,
    head: &Head,
    estimates: &Estimates,
    assumed: &[String],
) -> std::fmt::Result {
    let Head { name, from, sources, config, steps, warmup, lasted } = head;
    writeln!(
        text,
        "# Written by `headway calibrate`. Behind # stands what each number comes from:"
    )?;
    writeln!(text, "# how many observations, its 90% interval, and how well the law fits them.\n")?;
    writeln!(text, "[scenario]\nname = {}", quoted(name))?;
    writeln!(text, "title = {}", quoted(&format!("Calibrated: {from}")))?;
    list(text, "sources", sources)?;
    list(text, "assumed", &[estimates.notes.as_slice(), assumed].concat())?;
    let steps = if *steps == 0 { STEPS } else { *steps };
    // A run that is four times as slow is not the same run any more.
    let duration = match lasted.as_nanos() {
        0 => 1e6,
        _ => (4.0 * lasted.as_secs_f64()).ceil().max(60.0),
    };
    writeln!(text, "seed = 1\nduration_sec = {}\nsteps = {steps}", number(duration))?;
    writeln!(text, "warmup_steps = {}\nreplications = 8", (*warmup).min(steps.saturating_sub(1)))?;
    text.push_str(&sections(config));
    for table in TABLES {
        let items: Vec<&Item> = estimates.items.iter().filter(|item| item.table == table).collect();
        if !items.is_empty() {
            writeln!(text, "\n[{table}]")?;
        }
        for item in items {
            comment(text, item)?;
            for (key, value) in &item.values {
                writeln!(text, "{key} = {value}")?;
            }
        }
    }
    calibration(text, from, &estimates.items)
}

/// What a number comes from.
fn comment(text: &mut String, item: &Item) -> std::fmt::Result {
    if item.family == "setting" {
        return Ok(());
    }
    write!(text, "# {}: {} of {}", item.what, item.family, item.count)?;
    if item.cut > 0 {
        write!(text, ", {} more seen in part", item.cut)?;
    }
    for (path, parameter) in &item.parameters {
        let key = path.rsplit('.').next().unwrap_or(path);
        write!(text, "; {key} {} to {}", number(parameter.low), number(parameter.high))?;
    }
    if let Some((ks, p)) = item.distance.filter(|_| item.family != "constant") {
        write!(text, "; distance {} (p {})", numbers::short(Some(ks)), numbers::short(Some(p)))?;
    }
    if let Some(r_squared) = item.r_squared {
        write!(text, "; R² {}", numbers::short(Some(r_squared)))?;
    }
    writeln!(text)
}

fn calibration(text: &mut String, from: &str, items: &[Item]) -> std::fmt::Result {
    writeln!(text, "\n[calibration]\nfrom = {}\nparameters = [", quoted(from))?;
    for item in items {
        for (at, (path, parameter)) in item.parameters.iter().enumerate() {
            let [value, low, high] = [parameter.value, parameter.low, parameter.high].map(number);
            let path = quoted(path);
            write!(text, "    {{ key = {path}, value = {value}, low = {low}, high = {high}")?;
            if let Some(Some((other, correlation))) = item.with.get(at) {
                let (other, correlation) = (quoted(other), number(*correlation));
                write!(text, ", with = {other}, correlation = {correlation}")?;
            }
            writeln!(text, " }},")?;
        }
    }
    writeln!(text, "]")
}

fn list(text: &mut String, key: &str, items: &[String]) -> std::fmt::Result {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(text, "{key} = [")?;
    for item in items {
        writeln!(text, "    {},", quoted(item))?;
    }
    writeln!(text, "]")
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted.push(' '),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// The scheduling sections: what differs from the defaults, and what other defaults would follow
/// from. What is live only is left out.
fn sections(config: &Config) -> String {
    let defaults = Config::default();
    let (mut text, mut section) = (String::new(), "");
    let alike = |name: &str| {
        let of = |queue: &str| {
            let key = keys().iter().find(|key| key.section == queue && key.name == name);
            key.map(|key| key.describe(config).value)
        };
        of("queue.rollout") == of("queue.output")
    };
    for key in keys() {
        let live_only = key.about.contains("live only") || key.about.contains("(live");
        let again = matches!(
            (key.section, key.name),
            ("policy_serving", "weight_sync_pause")
                | ("policy_training", "max_head_offpolicyness" | "queue_type")
        );
        let in_one = key.section.starts_with("queue.");
        let both = key.section == "queue";
        if live_only || again || (in_one && alike(key.name)) || (both && !alike(key.name)) {
            continue;
        }
        let follows = key.default_text.is_some() && !both && !in_one;
        let (value, default) = (key.describe(config).value, key.describe(&defaults).value);
        let Some(value) = value.filter(|value| follows || Some(value) != default.as_ref()) else {
            continue;
        };
        if section != key.section {
            section = key.section;
            let _ = write!(text, "\n[{section}]\n");
        }
        let _ = writeln!(text, "{} = {value}", key.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use headway_shared::config::{Layers, load_config};
    use headway_shared::time::Span;

    use super::*;

    fn read_again(config: &Config) -> Config {
        let layers = Layers::new().toml("config.toml", sections(config));
        load_config(&layers).unwrap_or_else(|problems| panic!("{problems}")).0
    }

    #[test]
    fn the_scheduling_sections_read_as_they_were() {
        let mut config = Config::default();
        assert_eq!(read_again(&config), config);
        config.policy_serving.sync_mode = headway_shared::config::SyncMode::InFlight;
        config.policy_serving.hold = Span::from_millis(1500);
        config.reward_judging.votes = 5;
        config.reward_judging.min_votes = 2;
        config.policy_training.group_size = 8;
        config.policy_training.min_group_size = 3;
        config.policy_training.over_sampling = 1_250_000;
        config.policy_training.stale_filter_steps = Some(7);
        config.queue.rollout.max_size = 1024;
        config.queue.output.max_size = 2048;
        config.queue.rollout.drop_policy = headway_shared::config::DropPolicy::Block;
        config.queue.output.drop_policy = headway_shared::config::DropPolicy::Block;
        assert_eq!(read_again(&config), config);
    }

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quoted("a \"b\" \\ c\n"), r#""a \"b\" \\ c ""#);
    }
}
