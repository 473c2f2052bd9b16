//! `docs/scenarios.md` against the parser.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use headway_shared::config::{Diagnostics, Layers};
use headway_sim::rates;
use headway_sim::scenario::Scenario;

use super::blessed;

const PAGE: &str = "docs/scenarios.md";

/// A key that no table has, nor one like it.
const UNKNOWN: &str = "qqqqqqqq";

/// Worlds that use every table and every alternative between them.
const WORLDS: [&str; 3] = [
    r#"
[scenario]
[[scenario.cases]]
[world.serving]
decode_base_sec = 0.02
[world.clients]
kind = "sessions"
[world.clients.arrivals]
kind = "poisson"
[world.clients.retries]
[world.environment]
[world.judge]
vote = { kind = "constant", sec = 1 }
[world.trainer]
step = { kind = "constant", sec = 30 }
[world.weights]
transfer = { kind = "constant", sec = 1 }
[world.faults]
[world.drift]
[[world.drift.windows]]
[plan]
[calibration]
[[calibration.parameters]]
"#,
    r#"
[scenario]
[world.serving]
decode_table = [[1, 60]]
[world.clients]
kind = "slots"
[world.judge]
read_tokens_per_sec = 1
write_tokens_per_sec = 1
[world.trainer]
sec_per_token = 0.1
[world.weights]
size_gb = 1
"#,
    r#"
[world.serving]
decode_rates = "qwen3-8b-h100-vllm-tp1"
"#,
];

const ARRIVALS: [&str; 2] = ["users", "replay"];

fn load(text: &str) -> Result<Scenario, Diagnostics> {
    Scenario::load(&Layers::new().toml("page", text), Path::new(".")).map(|(scenario, _)| scenario)
}

/// The keys that the parser asks for in every table that holds the unknown key.
fn asked(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let problems = load(text).expect_err("a key is unknown");
    for problem in &problems.items {
        let Some(place) = problem.message.strip_prefix(&format!("unknown key `{UNKNOWN}` in "))
        else {
            continue;
        };
        let keys = problem.help.as_deref().and_then(|help| help.strip_prefix("the keys here are "));
        let keys = keys.expect("no key is like it").split(", ").map(str::to_owned);
        let table = place.trim_matches(['[', ']']);
        let table = table.split_once('[').map_or(table, |(list, _)| list);
        tables.entry(table.to_owned()).or_default().extend(keys);
    }
    tables
}

fn keys_of_the_parser(kinds: &BTreeSet<String>) -> BTreeMap<String, BTreeSet<String>> {
    let probe = |text: &str| -> String {
        let line = |line: &str| match line.starts_with('[') {
            true => format!("{line}\n{UNKNOWN} = 0\n"),
            false => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    };
    let mut texts: Vec<String> = WORLDS.iter().map(|world| probe(world)).collect();
    let sessions = texts[0].clone();
    texts.extend(ARRIVALS.iter().map(|kind| sessions.replace("poisson", kind)));
    texts.extend(kinds.iter().map(|kind| {
        probe(WORLDS[0]) + &format!("[[world.faults.at]]\nkind = \"{kind}\"\n{UNKNOWN} = 0\n")
    }));
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (table, keys) in texts.iter().flat_map(|text| asked(text)) {
        all.entry(table).or_default().extend(keys);
    }
    // A table within a table has a heading of its own.
    let tables: Vec<String> = all.keys().cloned().collect();
    for table in tables {
        if let Some((parent, name)) = table.rsplit_once('.')
            && parent == "world.faults.at"
        {
            all.get_mut(parent).expect("its own keys").remove(name);
        }
    }
    all
}

/// The first column of the page's tables, by heading and by the table's own heading.
fn columns_of_the_page() -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut columns: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    let (mut section, mut column) = (String::new(), String::new());
    let mut in_example = false;
    for line in blessed::text(PAGE).lines() {
        in_example ^= line.starts_with("```");
        // A comment in an example is no heading.
        if let Some(heading) = line.strip_prefix('#').filter(|_| !in_example) {
            section = heading.trim_start_matches('#').trim().trim_matches(['`', '[', ']']).into();
        }
        let Some(cell) = line.strip_prefix("| ").and_then(|line| line.split(" |").next()) else {
            continue;
        };
        match cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')) {
            Some(key) => {
                let place = (section.clone(), column.clone());
                columns.entry(place).or_default().insert(key.to_owned());
            }
            None => cell.clone_into(&mut column),
        }
    }
    columns
}

#[test]
fn every_key_is_on_the_page_and_every_key_on_the_page_exists() {
    let columns = columns_of_the_page();
    let faults = &columns[&("world.faults.at".to_owned(), "kind".to_owned())];
    let parser = keys_of_the_parser(faults);
    let page: BTreeMap<String, BTreeSet<String>> = columns
        .iter()
        .filter(|((_, column), _)| column == "key")
        .map(|((section, _), keys)| (section.clone(), keys.clone()))
        .collect();
    assert_eq!(page.keys().collect::<Vec<_>>(), parser.keys().collect::<Vec<_>>());
    for (table, keys) in &parser {
        assert_eq!(&page[table], keys, "[{table}]: on the page, and in the parser");
    }
}

/// The words that can be written for a key, out of the message about a wrong one.
fn words(text: &str) -> BTreeSet<String> {
    let problems = load(text).expect_err("a word is wrong");
    let help = problems
        .items
        .iter()
        .filter(|problem| problem.message.contains(UNKNOWN))
        .find_map(|problem| problem.help.as_deref()?.strip_prefix("write one of "))
        .unwrap_or_else(|| panic!("{problems}"));
    help.split(", ").map(str::to_owned).collect()
}

#[test]
fn every_kind_of_fault_and_distribution_is_on_the_page() {
    let columns = columns_of_the_page();
    let kinds = |section: &str| &columns[&(section.to_owned(), "kind".to_owned())];
    let fault = format!("[[world.faults.at]]\nkind = \"{UNKNOWN}\"\n");
    assert_eq!(kinds("world.faults.at"), &words(&fault));
    let law = format!("[world.judge]\nvote = {{ kind = \"{UNKNOWN}\" }}\n");
    assert_eq!(kinds("Distributions"), &words(&law));
}

#[test]
fn the_smallest_scenario_and_every_example_of_a_distribution_load() {
    let page = blessed::text(PAGE);
    let smallest = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let smallest = smallest.expect("an example");
    load(smallest).unwrap_or_else(|problems| panic!("{problems}"));

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("trace.csv"), "seconds\n1.5\n2\n").unwrap();
    let rows = page.lines().filter(|line| line.contains("| `{ kind = "));
    let examples: Vec<&str> = rows.filter_map(|line| line.split('`').nth(3)).collect();
    assert_eq!(examples.len(), 10);
    for example in examples {
        let layers = Layers::new().toml("page", smallest);
        let layers = layers.set(format!("world.trainer.step={example}"));
        Scenario::load(&layers, folder.path()).unwrap_or_else(|problems| panic!("{problems}"));
    }
}

#[test]
fn every_table_of_rates_and_its_columns_are_on_the_page() {
    let columns = columns_of_the_page();
    let on_the_page = |column: &str| -> Vec<&str> {
        let cells = &columns[&("Tables of rates".to_owned(), column.to_owned())];
        cells.iter().map(String::as_str).collect()
    };
    assert_eq!(on_the_page("table"), rates::names().collect::<Vec<_>>());
    let mut known = rates::COLUMNS;
    known.sort_unstable();
    assert_eq!(on_the_page("column"), known);
}
