//! Tables of rates: those that come with Headway, and those of a user.

use std::fs;
use std::path::Path;

use headway_shared::config::{Diagnostics, Layers};
use headway_sim::rates::{self, COLUMNS, RateTable};
use headway_sim::scenario::Scenario;

use super::committed::root;
use super::world_support::{SLOTS, problems};

const QWEN: &str = "qwen3-32b-h200-vllm-tp4";

/// A scenario with this line in `[world.serving]` instead of its law.
fn with(line: &str) -> String {
    SLOTS.replace("decode_base_sec = 0.1", line)
}

/// The scenario beside a file `rates.csv`.
fn beside(csv: &str, line: &str) -> Result<Scenario, Diagnostics> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rates.csv"), csv).unwrap();
    let layers = Layers::new().toml("test.toml", with(line));
    Scenario::load(&layers, folder.path()).map(|(scenario, _)| scenario)
}

fn load(line: &str) -> Scenario {
    beside("", line).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn every_shipped_table_is_of_what_its_name_says() {
    let names: Vec<&str> = rates::names().collect();
    assert!(names.is_sorted(), "{names:?}");
    assert_eq!(names.len(), 12, "three models, two GPUs, two engines");
    for name in names {
        let table = rates::find(name).unwrap();
        let model = table.model.rsplit('/').next().unwrap().to_lowercase();
        let gpu = table.system.strip_suffix("_sxm").unwrap();
        let gpus = table.gpus_per_replica.unwrap();
        assert_eq!(name, format!("{model}-{gpu}-{}-tp{gpus}", table.engine));
        assert_eq!((table.input_tokens, table.output_tokens), (Some(2048), Some(1024)), "{name}");
        assert!(!table.engine_version.is_empty(), "{name}");
        let command = format!(
            "aiconfigurator cli estimate --model-path {} --system {} --backend {} --estimate-mode \
             static --batch-size BATCH --isl 2048 --osl 1024 --tp-size {gpus}",
            table.model, table.system, table.engine
        );
        assert!(table.source.contains(&command), "{name}: {}", table.source);
        assert!(table.source.starts_with("aiconfigurator 0.12.0: "), "{name}: {}", table.source);
    }
}

#[test]
fn in_every_shipped_table_a_larger_batch_gives_more_together_and_less_to_each() {
    for name in rates::names() {
        let table = rates::find(name).unwrap();
        let batches: Vec<u32> = table.points.iter().map(|&(batch, _)| batch).collect();
        let doubled: Vec<u32> = (0..batches.len()).map(|power| 1 << power).collect();
        assert_eq!(batches, doubled, "{name}");
        assert!(batches.len() >= 7, "{name}: {batches:?}");
        assert!(table.prefill_tokens_per_sec.unwrap() > 10_000.0, "{name}");
        for pair in table.points.windows(2) {
            let [(few, slow), (many, fast)] = [pair[0], pair[1]];
            assert!(fast > slow, "{name}: {many} sequences are slower than {few}");
            // Measured kernels of two sequences can be some percent faster than those of one.
            let each = table.law().rate(many) / table.law().rate(few);
            assert!(each < 1.04, "{name}: each of {many} is faster than each of {few}: {each}");
        }
    }
}

#[test]
fn the_rows_of_the_shipped_files_agree_with_themselves() {
    for name in rates::names() {
        let text = fs::read_to_string(root().join(format!("scenarios/data/rates/{name}.csv")));
        let text = text.unwrap();
        assert_eq!(RateTable::read(&text).unwrap(), rates::find(name).unwrap(), "{name}");
        let mut rows = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(rows.headers().unwrap(), COLUMNS.as_slice(), "{name}");
        for row in rows.records() {
            let row = row.unwrap();
            let cell = |column: &str| -> f64 {
                let index = COLUMNS.iter().position(|name| *name == column).unwrap();
                row[index].parse().unwrap()
            };
            let together = cell("batch") / cell("sec_per_token");
            let error = (cell("tokens_per_sec") / together - 1.0).abs();
            assert!(error < 1e-5, "{name}: {row:?}");
        }
    }
    let folder = fs::read_dir(root().join("scenarios/data/rates")).unwrap();
    assert_eq!(folder.count(), rates::names().count(), "a file that no name finds");
}

#[test]
fn the_figures_of_the_tools_own_output_are_in_the_table_of_qwen3_32b_on_h200_with_vllm() {
    let table = rates::find(QWEN).unwrap();
    for (batch, milliseconds) in [(1, "7.06"), (16, "7.86"), (64, "10.63")] {
        let found = format!("{:.2}", 1000.0 / table.law().rate(batch));
        assert_eq!(found, milliseconds, "at a batch of {batch}");
    }
}

#[test]
fn a_name_that_no_table_has_names_the_nearest_and_all() {
    let set = "world.serving.decode_rates=qwen3-32b-h20-vllm-tp4";
    let problems = problems(SLOTS, &[set]);
    assert!(
        problems.contains("no table of rates is called `qwen3-32b-h20-vllm-tp4`"),
        "{problems}"
    );
    assert!(problems.contains(&format!("did you mean `{QWEN}`?")), "{problems}");
    assert!(rates::names().all(|name| problems.contains(name)), "{problems}");
    let empty = rates::find("").unwrap_err();
    assert!(!empty.help().contains("did you mean"), "{}", empty.help());
}

#[test]
fn a_scenario_takes_a_table_by_name_with_its_prefill_rate() {
    let scenario = load(&format!("decode_rates = \"{QWEN}\""));
    let table = rates::find(QWEN).unwrap();
    let replica = &scenario.world.serving.replica;
    assert_eq!(&replica.decode, table.law());
    assert_eq!(replica.prefill_tokens_per_sec, table.prefill_tokens_per_sec);
    assert_eq!(scenario.rates, Some(table));

    let own = load(&format!("decode_rates = \"{QWEN}\"\nprefill_tokens_per_sec = 5000"));
    assert_eq!(own.world.serving.replica.prefill_tokens_per_sec, Some(5000.0));
    let none = load(&format!("decode_rates = \"{QWEN}\"\nprefill_tokens_per_sec = 0"));
    assert_eq!(none.world.serving.replica.prefill_tokens_per_sec, None);
}

#[test]
fn a_table_in_a_file_is_the_same_world_as_the_table_written_out() {
    let inline = load("decode_table = [[1, 60], [32, 1400.5]]");
    assert_eq!(inline.rates, None);
    let line = "decode_table = \"rates.csv\"";
    for csv in [
        "batch,tokens_per_sec\n1,60\n32,1400.5\n",
        "note, tokens_per_sec ,batch\r\n\"a, b\",60,1\r\n,1400.5,32",
    ] {
        let file = beside(csv, line).unwrap();
        assert_eq!(file.world, inline.world);
        assert_eq!(file.digest(), inline.digest());
        let table = file.rates.unwrap();
        assert_eq!((table.gpus_per_replica, table.prefill_tokens_per_sec), (None, None));
    }
}

#[test]
fn set_puts_one_law_in_the_place_of_another() {
    let layers = |set: &str| Layers::new().toml("test.toml", SLOTS).set(set);
    let load = |layers| Scenario::load(&layers, Path::new(".")).unwrap().0;
    let named = layers(&format!("world.serving.decode_rates={QWEN}"));
    assert!(load(named.clone()).rates.is_some());
    let table = load(named.clone().set("world.serving.decode_table=[[1, 60]]"));
    assert_eq!((table.rates, table.world.serving.replica.decode.rate(2)), (None, 30.0));
    let linear = load(named.set("world.serving.decode_base_sec=0.1"));
    assert_eq!((linear.rates, linear.world.serving.replica.decode.rate(2)), (None, 10.0));
}

#[test]
fn two_laws_in_one_file_are_a_contradiction() {
    let lines = ["decode_rates = \"x\"", "decode_table = [[1, 60]]", "decode_base_sec = 0.1"];
    for (first, second) in [(0, 1), (0, 2), (1, 2)] {
        let text = with(&format!("{}\n{}", lines[first], lines[second]));
        let problems = problems(&text, &[]);
        assert!(problems.contains("both say how fast a replica decodes"), "{problems}");
        assert!(problems.contains("help: keep one"), "{problems}");
    }
}

#[test]
fn what_is_wrong_with_a_table_in_a_file_is_said_with_its_line() {
    let head = "batch,tokens_per_sec";
    let cases = [
        (String::new(), "rates.csv:1:1: there is no column `batch`"),
        ("batch,tokens\n1,60\n".into(), "rates.csv:1:1: there is no column `tokens_per_sec`"),
        (format!("{head}\n"), "rates.csv:1:1: no rows"),
        (format!("{head}\n1,60\n\n0,70\n"), "rates.csv:4:1: `0` is no `batch`"),
        (format!("{head}\r\n1,60\r\n\r\n\r\n0,70\r\n"), "rates.csv:5:1: `0` is no `batch`"),
        (format!("{head}\n1.5,60\n"), "rates.csv:2:1: `1.5` is no `batch`"),
        (format!("{head}\n1,60\n2,\n"), "rates.csv:3:1: `tokens_per_sec` is missing"),
        (format!("{head}\n1,60\n2,fast\n"), "rates.csv:3:1: `fast` is no `tokens_per_sec`"),
        (format!("{head}\n1,nan\n"), "rates.csv:2:1: `nan` is no `tokens_per_sec`"),
        (format!("{head}\n1,-5\n"), "rates.csv:2:1: `-5` is no `tokens_per_sec`"),
        (format!("{head}\n4,60\n2,70\n"), "rates.csv:3:1: batch 2 is not above"),
        (format!("{head}\n4,60\n4,70\n"), "rates.csv:3:1: batch 4 is not above"),
        (
            format!("model,{head}\na,1,60\nb,2,70\n"),
            "rates.csv:3:1: `model` is `b` here and `a` in the first row",
        ),
        (format!("gpus_per_replica,{head}\n0,1,60\n"), "`0` is no `gpus_per_replica`"),
    ];
    for (csv, said) in cases {
        let problems = beside(&csv, "decode_table = \"rates.csv\"").unwrap_err().to_string();
        assert!(problems.contains(said), "{said}: {problems}");
        assert_eq!(problems.matches("help: ").count(), 1, "{problems}");
    }
    let missing = beside("", "decode_table = \"rate.csv\"").unwrap_err().to_string();
    assert!(missing.contains("test.toml:14:16: cannot read"), "{missing}");
    let number = beside("", "decode_table = 7").unwrap_err().to_string();
    assert!(number.contains("test.toml:14:16: `decode_table` cannot be"), "{number}");
    let name = beside("", "decode_rates = 7").unwrap_err().to_string();
    assert!(name.contains("`decode_rates` must be text"), "{name}");
}
