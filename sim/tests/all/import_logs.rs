//! Logs of other trainers, traces of Mooncake and records of OpenClaw-RL become tables, or an error
//! that says where.

use std::fs;

use headway_sim::import::{
    ImportError, MetricsLog, MetricsReport, OpenClawTable, System, import_mooncake, import_openclaw,
};

use super::committed::root;

/// What ships as an example.
pub(super) fn example(name: &str) -> String {
    fs::read_to_string(root().join("tests/data/import").join(name)).unwrap()
}

/// Reads files of one run.
pub(super) fn log(
    system: System,
    files: &[(&str, &str)],
    columns: &[&'static str],
) -> Result<(String, MetricsReport), ImportError> {
    let mut log = MetricsLog::new(system);
    for (name, text) in files {
        log.read(text.as_bytes(), name)?;
    }
    let mut table = Vec::new();
    let report = log.write(columns, &mut table)?;
    Ok((String::from_utf8(table).unwrap(), report))
}

/// Where the text is wrong, and what is.
fn wrong<T: std::fmt::Debug>(read: Result<T, ImportError>) -> String {
    match read {
        Err(ImportError::Wrong { line, column, problem }) => {
            assert!(!problem.help().is_empty());
            format!("{line}:{column}: {problem}")
        }
        other => panic!("it should be wrong, but: {other:?}"),
    }
}

#[test]
fn a_step_of_verl_is_the_sum_of_its_parts() {
    let (table, report) = log(System::Verl, &[("run.jsonl", &example("verl.jsonl"))], &[]).unwrap();
    let expected = "step,rollout_sec,step_sec,update_sec,transfer_sec,reward_sec,iteration_sec,\
                    prompt_tokens,output_tokens\n\
                    1,41.2,34.2,22.9,3.1,0.8,79.5,187,1531\n";
    assert!(table.starts_with(expected), "{table}");
    assert_eq!((report.rows, report.short), (4, 0));
    assert_eq!(report.rare, [("checkpoint_sec", 1)]);
    assert_eq!(report.unknown, ["actor/ppo_kl", "critic/rewards/mean"]);
}

#[test]
fn the_forms_of_a_log_give_the_same_table() {
    let files: [(&str, &str); 4] = [
        (
            "flat.jsonl",
            "{\"_step\": 1, \"timing_s/gen\": 2.5, \"note\": \"x\"}\n{\"_step\": 2, \"timing_s/gen\": 3}\n",
        ),
        ("history.csv", "_step,_runtime,timing_s/gen\r\n1,10,2.5\r\n\r\n2,20,3.0\r\n"),
        (
            "panel.csv",
            "\"Step\",\"a - b - timing_s/gen\",\"a - b - timing_s/gen__MIN\"\n1,2.5,2.5\n2,3,3\n",
        ),
        (
            "run.log",
            "Loading\nstep:1 - timing_s/gen:2.5 - actor/lr:1e-06\n(pid=7) step:2 - timing_s/gen:np.float64(3.0)\n",
        ),
    ];
    for (name, text) in files {
        let (table, _) = log(System::Verl, &[(name, text)], &[]).unwrap();
        assert_eq!(table, "step,rollout_sec\n1,2.5\n2,3\n", "{name}");
    }
}

#[test]
fn what_slime_printed_is_joined_by_rollout() {
    let text = example("slime.log");
    let (table, report) = log(System::Slime, &[("slime.log", &text)], &[]).unwrap();
    assert_eq!(
        table,
        "step,rollout_sec,step_sec,update_sec,iteration_sec,output_tokens,logprob_abs_diff\n\
         0,95.25,26.5,18.25,123,904,0.0121\n1,98.75,27.25,18.75,126.75,951,0.0119\n\
         2,101.5,27.75,19,130,978,0.0123\n",
        "{report:?}"
    );
    assert!(report.unknown.contains(&"train/loss".to_owned()), "{report:?}");
    assert_eq!(report.rare, [("transfer_sec", 1)]);
}

#[test]
fn files_of_tensorboard_are_known_by_their_names_and_joined() {
    let file = "Wall time,Step,Value\n1.7e9,0,26.5\n1.7e9,1,27.25\n";
    let other = "Wall time,Step,Value\n1.7e9,1,4.5\n";
    let names = ["run-a-tag-perf_train_time.csv", "run-a-tag-perf_update_weights_time.csv"];
    let files = [(names[0], file), (names[1], other)];
    let (table, report) = log(System::Slime, &files, &[]).unwrap();
    assert_eq!(table, "step,step_sec,transfer_sec\n1,27.25,4.5\n");
    assert_eq!(report.short, 1);
    let (table, _) = log(System::Slime, &files, &["step_sec"]).unwrap();
    assert_eq!(table, "step,step_sec\n0,26.5\n1,27.25\n");
    let stranger = [("run-a-tag-train_loss.csv", file)];
    assert!(wrong(log(System::Slime, &stranger, &[])).contains("which metric"));
}

#[test]
fn a_table_of_areal_has_staleness_and_what_was_generated() {
    let (table, report) = log(System::Areal, &[("areal.csv", &example("areal.csv"))], &[]).unwrap();
    assert_eq!(
        table,
        "step,rollout_sec,step_sec,update_sec,transfer_sec,prompt_tokens,output_tokens,\
         staleness_mean,staleness_max\n\
         0,31.5,11.875,9.5,1.75,98,314,0,0\n1,12.25,11.875,9.25,1.5,98,308,0.75,1\n"
    );
    assert_eq!(report.short, 1, "its last step lacks the transfer");
}

#[test]
fn a_wrong_log_is_named_by_line_and_column() {
    let csv = "step,timing_s/gen\n1,2.5\n";
    for (text, said) in [
        ("", "1:1: no line has a step"),
        ("nothing here\n", "1:1: no line has a step"),
        (&format!("{csv}2\n"), "3:1: the header has 2 columns"),
        (&format!("{csv}x,2\n"), "3:1: `x` is no step"),
        (&format!("{csv}2,fast\n"), "3:3: `fast` is no number"),
        (&format!("{csv}2,-1\n"), "3:3: `-1` is no number"),
        ("step,a - timing_s/gen,b - timing_s/gen\n", "1:1: `timing_s/gen` is there for two runs"),
        ("{\"step\": 1,\n", "1:11: no JSON object"),
        ("{\"step\": 1, \"timing_s/gen\": [3]}\n", "1:13: `[3]` is no number"),
        ("{\"step\": -1, \"timing_s/gen\": 3}\n", "1:2: `-1` is no step"),
        ("step:1 - timing_s/gen:soon\n", "1:23: `soon` is no number"),
    ] {
        let found = wrong(log(System::Verl, &[("log", text)], &[]));
        assert!(found.starts_with(said), "{text:?}: {found}");
    }
    let none = wrong(log(System::Verl, &[("log", csv)], &["transfer_sec"]));
    assert!(none.contains("no step has all of these columns: transfer_sec"), "{none}");
}

#[test]
fn a_trace_of_mooncake_counts_from_its_first_request() {
    let mut table = Vec::new();
    let example = example("mooncake.jsonl");
    let trace: String = example.lines().take(3).map(|line| format!("{line}\n")).collect();
    let report = import_mooncake(trace.as_bytes(), &mut table).unwrap();
    let expected = "arrival_sec,prompt_tokens,output_tokens\n0,6955,52\n0,758,500\n3.053,1290,26\n";
    assert_eq!(String::from_utf8(table).unwrap(), expected);
    assert_eq!((report.rows, report.prompt_tokens, report.output_tokens), (3, 9003, 578));
    let good = "{\"timestamp\": 5, \"input_length\": 1, \"output_length\": 2}\n";
    for (line, said) in [
        ("", "1:1: the file is empty"),
        ("[]", "1:1: no JSON object: it is no object"),
        (
            &format!("{good}{{\"timestamp\": 4, \"input_length\": 1, \"output_length\": 2}}"),
            "2:2: `4` is earlier",
        ),
        (
            &format!("{good}{{\"timestamp\": 6, \"input_length\": 1.5, \"output_length\": 2}}"),
            "2:18: `1.5` is no whole",
        ),
        (
            &format!("{good}{{\"timestamp\": 6, \"output_length\": 2}}"),
            "2:1: `nothing` is no whole number up to 4294967295 (`input_length`)",
        ),
    ] {
        let found = wrong(import_mooncake(line.as_bytes(), Vec::new()));
        assert!(found.starts_with(said), "{line:?}: {found}");
    }
}

#[test]
fn records_of_openclaw_give_sessions_and_what_was_between_turns() {
    let read = |text: &str, table| {
        let mut written = Vec::new();
        let report = import_openclaw(text.as_bytes(), &mut written, table)?;
        Ok::<_, ImportError>((String::from_utf8(written).unwrap(), report))
    };
    let text = example("openclaw.jsonl");
    let (table, report) = read(&text, OpenClawTable::Sessions).unwrap();
    assert_eq!(table, "arrival_sec,turns\n0,2\n4,2\n");
    assert_eq!((report.sessions, report.turns, report.rows), (2, 4, 2));
    let (table, _) = read(&text, OpenClawTable::Turns).unwrap();
    assert_eq!(table, "session,turn,between_sec,next_state\n1,2,12,tool\n0,2,120,user\n");
    let first = text.lines().next().unwrap();
    assert!(wrong(read(first, OpenClawTable::Turns)).contains("more than one turn"));
    let late = first.replace("2026-03-14 19:00:05", "yesterday");
    assert!(wrong(read(&late, OpenClawTable::Turns)).contains("`yesterday` is no time"));
    let strange = first.replace("\"role\": \"user\", \"content\": \"and", "\"content\": \"and");
    assert!(wrong(read(&strange, OpenClawTable::Turns)).contains("next_state"));
}

/// The trace that Mooncake publishes; skipped, and said so, where it is not beside the workspace.
#[test]
fn the_published_trace_of_mooncake_is_read_whole() {
    let Some(trace) = super::committed::beside("traces/conversation_trace.jsonl") else { return };
    let report = import_mooncake(trace.as_bytes(), std::io::sink()).unwrap();
    assert_eq!(report.rows, 12_031, "as its README says");
    assert_eq!(report.prompt_tokens / report.rows, 12_035);
    assert_eq!(report.output_tokens / report.rows, 343);
}
