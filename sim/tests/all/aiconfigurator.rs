//! What `aiconfigurator cli estimate` printed becomes a table of rates, or an error that says where.

use std::fs;

use headway_sim::import::{Estimates, ImportError, ImportedRates};

use super::committed::root;

/// What the tool, 0.12.0, printed for Qwen3-8B on an H100 with vLLM: in its mode `static` at 1, 64,
/// 128 and 256 sequences, and in `static_gen` at 128 and 256. Log lines about its files are left
/// out. It says that the prompts of 128 do not fit at once, and 256 not even when they decode.
fn printed() -> String {
    fs::read_to_string(root().join("tests/data/aiconfigurator/qwen3-8b-h100-vllm.txt")).unwrap()
}

fn import(texts: &[&str], source: Option<&str>) -> Result<ImportedRates, ImportError> {
    let mut estimates = Estimates::default();
    texts.iter().try_for_each(|text| estimates.read(text.as_bytes()))?;
    estimates.finish(source)
}

/// Where the last of the texts is wrong, what is, and what to do.
fn wrong(texts: &[&str]) -> (u64, usize, String, String) {
    match import(texts, None) {
        Err(ImportError::Wrong { line, column, problem }) => {
            (line, column, problem.to_string(), problem.help())
        }
        other => panic!("it should be wrong, but: {other:?}"),
    }
}

/// The box of the first estimate, and no log.
fn first_box() -> String {
    let text = printed();
    let lines = text.lines().skip_while(|line| !line.starts_with("===="));
    let mut closed = 0;
    let lines = lines.take_while(|line| {
        closed += u32::from(line.starts_with("===="));
        closed < 4 && !line.contains("[aiconfigurator]")
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn estimates_become_a_row_per_batch_that_fits() {
    let rates = import(&[&printed()], None).unwrap();
    let of = "Qwen/Qwen3-8B,h100_sxm,vllm,0.24.0,1,2048,1024";
    let expected = format!(
        "model,system,engine,engine_version,gpus_per_replica,input_tokens,output_tokens,batch,\
         sec_per_token,tokens_per_sec,prefill_tokens_per_sec,source\n\
         {of},1,0.006438,155.328,46002.8,aiconfigurator 0.12.0\n\
         {of},64,0.014861,4306.57,46975.2,aiconfigurator 0.12.0\n\
         {of},128,0.022409,5711.99,,aiconfigurator 0.12.0\n"
    );
    assert_eq!(rates.csv, expected);
    assert_eq!(rates.left_out, [256]);
    assert_eq!(rates.table.gpus_per_replica, Some(1));
    assert_eq!(rates.table.prefill_tokens_per_sec, Some(46002.8));
    assert_eq!(rates.table.points, [(1, 155.328), (64, 4306.57), (128, 5711.99)]);
}

#[test]
fn several_files_in_any_order_are_as_one() {
    let text = printed();
    let half = text.find("20:06:19").unwrap();
    let (first, second) = text.split_at(half);
    let whole = import(&[&text], None).unwrap();
    assert_eq!(import(&[first, second], None).unwrap(), whole);
    assert_eq!(import(&[second, first], None).unwrap(), whole);
}

#[test]
fn warnings_that_overtook_their_estimates_count_for_the_right_ones() {
    // Where Python writes to a file, its log comes before what it prints.
    let mut runs: Vec<Vec<&str>> = Vec::new();
    let text = printed();
    for line in text.lines() {
        if line.contains("Loading AIConfigurator version") {
            runs.push(Vec::new());
        }
        runs.last_mut().unwrap().push(line);
    }
    for run in &mut runs {
        run.sort_by_key(|line| !line.contains("[aiconfigurator]"));
    }
    let buffered = runs.concat().join("\n");
    assert_ne!(buffered, text.trim_end());
    assert_eq!(import(&[&buffered], None).unwrap(), import(&[&text], None).unwrap());
}

#[test]
fn a_source_can_be_given_and_without_a_log_the_version_is_not_made_up() {
    let text = first_box();
    let plain = import(&[&text], None).unwrap();
    assert_eq!(plain.table.source, "aiconfigurator");
    let given = import(&[&text], Some("our cluster, \"May\"")).unwrap();
    assert_eq!(given.table.source, "our cluster, \"May\"");
    assert_eq!(given.table.points, plain.table.points);
}

#[test]
fn ranks_of_data_parallel_attention_make_one_replica() {
    let text = first_box()
        .replace("  PP Size:          1\n", "  PP Size:          1\n  Attention DP:     2\n")
        .replace("Concurrency:      1\n", "Concurrency:      2\n");
    let rates = import(&[&text], None).unwrap();
    assert_eq!(rates.table.gpus_per_replica, Some(2));
    assert_eq!(rates.table.points, [(2, 310.655)]);
    assert_eq!(rates.table.prefill_tokens_per_sec, Some(92005.7));
}

#[test]
fn what_is_no_estimate_of_decoding_is_named_by_line_and_column() {
    let text = first_box();
    let change = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    };
    let cases = [
        (String::new(), 1, 1, "there is no estimate", "once for each batch size"),
        ("hello\n".into(), 1, 1, "there is no estimate", "aiconfigurator cli estimate"),
        ("model,isl,osl,prefix\n".into(), 1, 1, "`aiconfigurator cli default` saved", "mix"),
        (change("(static)", "(agg)"), 2, 25, "mode `agg`", "--estimate-mode static"),
        (change("(static)", "(static_ctx)"), 2, 25, "mode `static_ctx`", "static"),
        (change("TPOT:", "TPOTS:"), 2, 1, "no line `TPOT`", "2>&1"),
        (change("Concurrency:", "C:"), 2, 1, "no line `Concurrency`", "2>&1"),
        (change("6.438 ms", "6.438 s"), 15, 21, "`6.438 s` is no time (`TPOT`)", "10.631 ms"),
        (change("6.438 ms", "0.000 ms"), 15, 21, "`0.000 ms` is no time", "10.631 ms"),
        (change("44.519 ms", "nan ms"), 14, 21, "`nan ms` is no time (`TTFT`)", "ms"),
        (change("ISL:              2048", "ISL:              2k"), 8, 21, "`2k` is no", "whole"),
        (change("PP Size:          1", "PP Size:          2"), 12, 3, "for `PP Size`", "without"),
        (change("  Batch", "  Prefix:           9\n  Batch"), 10, 3, "for `Prefix`", "without"),
        (text[..text.find("  Power").unwrap()].to_owned(), 2, 1, "cut short", "2>&1"),
        (format!("{}{text}", &text[..text.find("  ISL").unwrap()]), 2, 1, "cut short", "2>&1"),
    ];
    for (text, line, column, what, help) in cases {
        let found = wrong(&[&text]);
        assert_eq!((found.0, found.1), (line, column), "{}: {text}", found.2);
        assert!(found.2.contains(what), "{}", found.2);
        assert!(found.3.contains(help), "{}", found.3);
    }
}

#[test]
fn estimates_that_do_not_belong_together_are_refused() {
    let text = first_box();
    let twice = wrong(&[&text, &format!("\n{text}")]);
    assert_eq!((twice.0, twice.2.as_str()), (3, "there are two estimates for a batch of 1"));
    let other = text.replace("h100_sxm", "h200_sxm").replace("Size:       1", "Size:       2");
    let other = wrong(&[&text, &other]);
    let said = "`System` is h200_sxm here and h100_sxm in the estimates before";
    assert_eq!((other.0, other.2.as_str()), (2, said));
}

#[test]
fn where_nothing_fits_there_is_no_table() {
    let text = printed();
    let last = &text[text.find("20:06:27").unwrap()..];
    assert!(matches!(import(&[last], None), Err(ImportError::NothingFits)));
}
