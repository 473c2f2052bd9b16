//! Traces of other systems become tables that a scenario replays, or an error that says where.

use std::io::{self, BufReader, Write};

use headway_sim::import::{ImportError, ImportReport, Problem, import_azure_llm};

const HEADER: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";

fn import(trace: impl AsRef<[u8]>) -> Result<(String, ImportReport), ImportError> {
    let mut table = Vec::new();
    let report = import_azure_llm(trace.as_ref(), &mut table)?;
    Ok((String::from_utf8(table).unwrap(), report))
}

/// Where the trace is wrong, what is, and what to do.
fn wrong(trace: impl AsRef<[u8]>) -> (u64, usize, String, String) {
    match import(trace) {
        Err(ImportError::Wrong { line, column, problem }) => {
            (line, column, problem.to_string(), problem.help())
        }
        other => panic!("it should be wrong, but: {other:?}"),
    }
}

fn rows(rows: &[&str]) -> String {
    rows.iter().fold(HEADER.to_owned(), |text, row| text + "\n" + row)
}

#[test]
fn arrivals_count_from_the_first_request() {
    let trace = rows(&[
        "2023-11-16 18:15:46.6805900,374,44",
        "2023-11-16 18:15:50.9951690,396,109",
        "2023-11-16 18:15:50.9951690,0,0",
        "2023-11-17 18:15:46.6805900,879,55",
    ]);
    let (table, report) = import(trace).unwrap();
    assert_eq!(
        table,
        "arrival_sec,prompt_tokens,output_tokens\n\
         0,374,44\n4.314579,396,109\n4.314579,0,0\n86400,879,55\n"
    );
    let ticks = 86_400 * 10_000_000;
    assert_eq!(report, ImportReport { rows: 4, ticks, prompt_tokens: 1649, output_tokens: 208 });
}

#[test]
fn line_ends_blank_lines_and_byte_order_marks_make_no_difference() {
    let plain = import(rows(&["2023-11-16 18:15:46,1,2", "2023-11-16 18:15:47.5,3,4"])).unwrap();
    let dressed = "\u{feff}TIMESTAMP, ContextTokens, GeneratedTokens\r\n\r\n\
                   2023-11-16 18:15:46.0000000,1,2\r\n2023-11-16 18:15:47.5000000, 3 ,4\r\n\r\n";
    assert_eq!(import(dressed).unwrap(), plain);
}

#[test]
fn a_wrong_trace_is_named_by_line_and_column() {
    let good = "2023-11-16 18:15:46,1,2";
    let cases = [
        (String::new(), 1, 1, "the file is empty", "download"),
        (format!("{HEADER}\n"), 1, 1, "there are no rows", "download"),
        (good.into(), 1, 1, "is not the header", HEADER),
        ("arrival_sec,prompt_tokens,output_tokens".into(), 1, 1, "is not the header", HEADER),
        (
            rows(&[good, "2023-11-16 18:15:47,1"]),
            3,
            1,
            "3 columns, and `2023-11-16 18:15:47,1` has 2",
            "3 values",
        ),
        (rows(&[good, "2023-11-16 18:15:47,1,2,3"]), 3, 1, "47,1,2,3` has 4", "3 values"),
        (rows(&[good, "", "16.11.2023,1,2"]), 4, 1, "`16.11.2023` is no time", "2023-11-16 18:15"),
        (rows(&["2023-11-16 18:15:46,-1,2"]), 2, 21, "`-1` is no number of tokens", "whole"),
        (rows(&["2023-11-16 18:15:46,1, 2.5"]), 2, 24, "(`GeneratedTokens`)", "whole"),
        (rows(&["2023-11-16 18:15:46,1,"]), 2, 23, "`` is no number of tokens", "whole"),
        (rows(&["2023-11-16 18:15:46,4294967296,2"]), 2, 21, "`4294967296`", "4294967295"),
        (rows(&[good, "2023-11-16 18:15:45,1,2"]), 3, 1, "earlier than the row before", "sort"),
    ];
    for (trace, line, column, what, help) in cases {
        let found = wrong(&trace);
        assert_eq!((found.0, found.1), (line, column), "{trace}");
        assert!(found.2.contains(what), "{}", found.2);
        assert!(found.3.contains(help), "{}", found.3);
    }
}

#[test]
fn what_is_no_text_is_an_error_and_is_not_held_in_memory() {
    let mut trace = rows(&["2023-11-16 18:15:46,1,2"]).into_bytes();
    trace.extend_from_slice(b"\n2023-11-16 \xff18:15:46,1,2\n");
    assert_eq!((wrong(&trace).0, wrong(&trace).1), (3, 12));
    assert_eq!(wrong(&trace).2, Problem::NotText.to_string());
    let endless = BufReader::new(io::repeat(b'7'));
    let error = import_azure_llm(endless, io::sink()).unwrap_err();
    assert!(error.to_string().contains("longer than 4096 bytes"), "{error}");
}

#[test]
fn a_table_that_cannot_be_written_is_no_trouble_of_the_trace() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let error = import_azure_llm(rows(&["2023-11-16 18:15:46,1,2"]).as_bytes(), Full).unwrap_err();
    assert!(matches!(error, ImportError::Write(_)), "{error}");
}
