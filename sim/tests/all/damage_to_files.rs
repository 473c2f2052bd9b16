//! Files that something happened to: whatever reads them says what is wrong and where, or reads
//! them; nothing panics, hangs, or takes memory without end.

use std::fs;
use std::io;
use std::path::Path;

use headway_shared::config::{Diagnostics, Layers, Severity};
use headway_sim::calibrate::column::column;
use headway_sim::calibrate::fit::Unit;
use headway_sim::check::{Golden, GoldenError, Log};
use headway_sim::import::{
    Estimates, ImportError, MetricsLog, OpenClawTable, System, import_azure_llm, import_mooncake,
    import_openclaw,
};
use headway_sim::plan::constraint::Constraint;
use headway_sim::plan::results::PlanResults;
use headway_sim::rates::RateTable;
use headway_sim::report::csv::Csv;
use headway_sim::report::results::{Kind, Results};
use headway_sim::report::{html, json, plot};
use headway_sim::scenario::Scenario;
use headway_sim::sweep::{Plan, over};
use headway_sim::tournament::results::TournamentResults;
use headway_sim::tune::results::TuneResults;
use headway_sim::validate::{Tolerances, Validation};
use proptest::sample::Index;

use super::committed::root;
use super::damage::{Damage, damages};
use super::world_support::{SLOTS, Silent, load, shipped};

/// What is wrong has a place within a file, and a remedy.
fn says_where(problems: &Diagnostics) {
    assert!(!problems.to_string().is_empty());
    for item in problems.of(Severity::Error) {
        let length = problems.sources.text(item.origin.source).len();
        assert!(item.origin.start <= item.origin.end && item.origin.end <= length, "{problems}");
        assert!(item.help.is_some(), "{problems}");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const TRACE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\n\
    2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n";
const COLUMN: &str = "when,secs\n1,2.5\n\n2,3\n3,0.25\n";
const CONSTRAINT: &str = "staleness_head_mean <= 4.5";

#[derive(Debug)]
struct Folder(tempfile::TempDir);

impl Folder {
    fn of(files: &[(String, Vec<u8>)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, bytes)| folder.put(name, bytes));
        folder
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.path().join(name), bytes).unwrap();
    }

    /// One of the files damaged, while `read` looks at the folder.
    fn with(
        &self,
        files: &[(String, Vec<u8>)],
        (which, damage): &(Index, Damage),
        read: impl Fn(&Path, &str),
    ) {
        let (name, bytes) = &files[which.index(files.len())];
        self.put(name, &damage.of(bytes));
        read(self.0.path(), name);
        self.put(name, bytes);
    }
}

/// The files of a small sweep.
fn swept() -> Vec<(String, Vec<u8>)> {
    let scenario = load(SLOTS, &["scenario.steps=6", "scenario.warmup_steps=2"]);
    let sweep = ["max_head_off_policyness=0,4".to_owned()];
    let layers = Layers::new().toml("test.toml", SLOTS);
    let axes = over::parse(&sweep, &layers.merge().unwrap().root, &[]).unwrap();
    let plan = Plan::new(Kind::Sweep, &scenario, &axes, 0..2).unwrap();
    plan.run(1, None::<io::Sink>, &Silent).unwrap().results.files().unwrap()
}

/// The files of a folder that are no pictures.
fn tables(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|kind| kind == "csv" || kind == "json"))
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// The error names the file.
fn names<T>(read: Result<T, impl ToString>, name: &str) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains(name) || error.contains("no result"), "{name}: {error}");
            None
        }
    }
}

fn check(cases: usize, test: impl Fn(&(Index, Damage))) {
    for damage in damages(cases) {
        // Where it panics, this says on what.
        println!("{damage:?}");
        test(&damage);
    }
}

#[test]
fn a_sweep_that_is_read_back_is_drawn_or_its_damage_is_named() {
    let files = swept();
    let folder = Folder::of(&files);
    assert!(plot::draw(&Results::read(folder.0.path()).unwrap()).unwrap().len() > 1);
    check(24, |damage| {
        folder.with(&files, damage, |path, name| {
            let _ = Results::own_files(path);
            if let Some(results) = names(Results::read(path), name) {
                let _ = plot::draw(&results);
                json::document(&results).unwrap();
                results.files().unwrap();
            }
        });
    });
}

#[test]
fn a_tournament_that_is_read_back_is_drawn_or_its_damage_is_named() {
    let files = tables(&root().join("results/tournament"));
    let folder = Folder::of(&files);
    assert!(TournamentResults::read(folder.0.path()).unwrap().is_some());
    check(12, |damage| {
        folder.with(&files, damage, |path, name| {
            if let Some(Some(results)) = names(TournamentResults::read(path), name) {
                let _ = plot::draw_tournament(&results);
                results.document().unwrap();
                results.files().unwrap();
            }
        });
    });
}

#[test]
fn a_plan_that_is_read_back_is_drawn_or_its_damage_is_named() {
    let files = super::plan::some_files();
    let folder = Folder::of(&files);
    assert!(PlanResults::read(folder.0.path()).unwrap().is_some());
    check(40, |damage| {
        folder.with(&files, damage, |path, name| {
            if let Some(Some(results)) = names(PlanResults::read(path), name) {
                let _ = plot::draw_plan(&results);
                results.document().unwrap();
                results.files().unwrap();
            }
        });
    });
}

#[test]
fn a_search_that_is_read_back_is_drawn_or_its_damage_is_named() {
    let files = super::tune::some_files();
    let folder = Folder::of(&files);
    assert!(TuneResults::read(folder.0.path()).unwrap().is_some());
    check(40, |damage| {
        folder.with(&files, damage, |path, name| {
            if let Some(Some(results)) = names(TuneResults::read(path), name) {
                let _ = plot::draw_tune(&results);
                results.document().unwrap();
                results.files().unwrap();
            }
        });
    });
}

#[test]
fn a_validation_that_is_read_back_is_drawn_or_its_damage_is_named() {
    let files = super::validate::some_files();
    let folder = Folder::of(&files);
    assert!(Validation::read(folder.0.path()).unwrap().is_some());
    check(40, |damage| {
        folder.with(&files, damage, |path, name| {
            if let Some(Some(validation)) = names(Validation::read(path), name) {
                let pictures = plot::draw_validation(&validation).unwrap_or_default();
                assert!(!html::of_validation(&validation, &pictures).is_empty());
                validation.files().unwrap();
            }
        });
    });
}

/// What was accepted of a scenario is never taken for something else: its log has a digest, and
/// the rest is compared.
#[test]
fn a_damaged_golden_is_named_and_its_log_never_read_as_another() {
    let (json, log) = (Golden::file("openclaw"), Golden::log_file("openclaw"));
    let bytes = |name: &str| fs::read(root().join("results/check").join(name)).unwrap();
    let files = [(json.clone(), bytes(&json)), (log.clone(), bytes(&log))];
    let folder = Folder::of(&files);
    let (golden, whole) = Golden::load(folder.0.path(), "openclaw").unwrap();
    assert_eq!(golden.to_text().as_bytes(), files[0].1, "what is read is what is written");
    assert_eq!(whole.to_bytes(), files[1].1);
    check(120, |damage| {
        folder.with(&files, damage, |path, name| match Golden::load(path, "openclaw") {
            Ok((_, found)) => assert_eq!(found, whole),
            Err(GoldenError::Missing) => panic!("{name} is there"),
            Err(error) => assert!(error.to_string().contains("openclaw"), "{error}"),
        });
        // Also where the digest does not stand in the way.
        let _ = Log::from_bytes(&damage.1.of(&files[1].1));
    });
}

#[test]
fn a_scenario_with_a_column_and_rates_says_where_either_is_wrong() {
    let scenario = SLOTS.replace("decode_base_sec = 0.1", "decode_table = \"rates.csv\"");
    assert_ne!(scenario, SLOTS);
    let rates = fs::read(root().join("scenarios/data/rates/qwen3-8b-h100-vllm-tp1.csv"));
    let files = [
        ("scenario.toml".to_owned(), scenario.into_bytes()),
        ("rates.csv".to_owned(), rates.unwrap()),
        ("openclaw.toml".to_owned(), fs::read(shipped("openclaw")).unwrap()),
        ("verl-fully-async.toml".to_owned(), fs::read(shipped("verl-fully-async")).unwrap()),
    ];
    let folder = Folder::of(&files);
    let read = |path: &Path, name: &str| {
        let layers = Layers::new().toml(name, text(&fs::read(path.join(name)).unwrap()));
        Scenario::load(&layers, path)
    };
    for (name, _) in files.iter().filter(|(name, _)| name != "rates.csv") {
        read(folder.0.path(), name).unwrap_or_else(|problems| panic!("{problems}"));
    }
    check(400, |damage| {
        folder.with(&files, damage, |path, name| {
            let name = if name == "rates.csv" { "scenario.toml" } else { name };
            match read(path, name) {
                Ok((scenario, _)) => drop(scenario.digest()),
                Err(problems) => says_where(&problems),
            }
        });
    });
}

/// The error has a place within the text, and a remedy; or there is none.
fn placed<T>(bytes: &[u8], read: Result<T, ImportError>) -> Option<T> {
    let lines = bytes.split(|&byte| byte == b'\n').count() as u64;
    match read {
        Ok(value) => Some(value),
        Err(ImportError::Wrong { line, column, problem }) => {
            assert!((1..=lines + 1).contains(&line) && column >= 1, "{line}:{column}");
            assert!(!problem.help().is_empty());
            None
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn whatever_a_log_is_it_becomes_a_table_or_the_line_is_named() {
    let logs =
        [(System::Verl, "verl.jsonl"), (System::Slime, "slime.log"), (System::Areal, "areal.csv")];
    let logs = logs.map(|(system, name)| (system, name, super::import_logs::example(name)));
    let [trace, records] = ["mooncake.jsonl", "openclaw.jsonl"].map(super::import_logs::example);
    check(200, |(_, damage)| {
        for (system, name, valid) in &logs {
            let bytes = damage.of(valid.as_bytes());
            let (mut log, mut table) = (MetricsLog::new(*system), Vec::new());
            let read = log.read(&bytes[..], name).and_then(|()| log.write(&[], &mut table));
            if let Some(report) = placed(&bytes, read) {
                // What was written is read.
                for name in report.columns {
                    let found = column("t.csv", &text(&table), name, Unit::Seconds);
                    assert!(name == "staleness_mean" || found.is_ok(), "{name}: {found:?}");
                }
            }
        }
        let bytes = damage.of(trace.as_bytes());
        placed(&bytes, import_mooncake(&bytes[..], Vec::new()));
        let bytes = damage.of(records.as_bytes());
        for table in [OpenClawTable::Sessions, OpenClawTable::Turns] {
            placed(&bytes, import_openclaw(&bytes[..], Vec::new(), table));
        }
    });
}

#[test]
fn whatever_a_trace_is_it_becomes_a_table_or_the_line_is_named() {
    let estimate = fs::read(root().join("tests/data/aiconfigurator/qwen3-8b-h100-vllm.txt"));
    let estimate = estimate.unwrap();
    check(400, |(_, damage)| {
        let trace = damage.of(TRACE.as_bytes());
        let lines = trace.split(|&byte| byte == b'\n').count() as u64;
        let mut table = Vec::new();
        match import_azure_llm(&trace[..], &mut table) {
            // What was written is read.
            Ok(report) => {
                let table = text(&table);
                let found = column("t.csv", &table, "arrival_sec", Unit::Seconds);
                assert_eq!(found.unwrap().len() as u64, report.rows);
            }
            Err(ImportError::Wrong { line, column, problem }) => {
                assert!((1..=lines + 1).contains(&line) && column >= 1, "{line}:{column}");
                assert!(!problem.help().is_empty());
            }
            Err(other) => panic!("{other}"),
        }
        let mut estimates = Estimates::default();
        if estimates.read(&damage.of(&estimate)[..]).is_ok() {
            let made = estimates.finish(None);
            assert!(made.is_ok() || matches!(made, Err(ImportError::NothingFits)), "{made:?}");
        }
    });
}

#[test]
fn whatever_a_column_is_its_numbers_are_read_or_the_place_is_named() {
    check(600, |(_, damage)| {
        let csv = text(&damage.of(COLUMN.as_bytes()));
        for (name, unit) in [("secs", Unit::Seconds), ("when", Unit::Count)] {
            match column("log.csv", &csv, name, unit) {
                Ok(values) => {
                    assert!(!values.is_empty());
                    assert!(values.iter().all(|value| (0.0..=1e15).contains(value)));
                }
                Err(problems) => says_where(&problems),
            }
        }
        let rates = format!("batch,tokens_per_sec\n1,{csv}");
        if let Err(error) = RateTable::read(&rates) {
            assert!(error.start <= error.end && error.end <= rates.len(), "{error:?}");
        }
        if let Ok(table) = Csv::parse(csv.as_bytes()) {
            assert_eq!(Csv::parse(&table.to_bytes().unwrap()).unwrap(), table);
        }
    });
}

#[test]
fn whatever_an_option_says_it_is_read_or_what_is_wrong_is_said() {
    let layers = Layers::new().toml("test.toml", SLOTS);
    let tree = layers.merge().unwrap().root;
    check(600, |(_, damage)| {
        if let Err(error) = Constraint::parse(&text(&damage.of(CONSTRAINT.as_bytes()))) {
            assert!(!error.to_string().is_empty() && !error.help().is_empty());
        }
        let expression = text(&damage.of(b"max_head_off_policyness=0..16,20,64"));
        match over::parse(&[expression], &tree, &[]) {
            Ok(axes) => assert!(axes.iter().all(|axis| axis.choices.len() <= 1 << 20)),
            Err(problems) => says_where(&problems),
        }
        let mut tolerances = Tolerances::default();
        if let Err(error) = tolerances.set(&text(&damage.of(b"staleness_mean=0.25"))) {
            assert!(!error.to_string().is_empty() && !error.help().is_empty());
        }
    });
}
