use std::sync::atomic::Ordering;

use serde_json::json;

use super::*;

fn piece(ids: &[u32], end: Option<(&str, Value)>) -> String {
    let content: Vec<Value> = ids
        .iter()
        .map(|id| json!({"token_id": id, "logprob": -0.5, "rank": 2, "top_logprobs": []}))
        .collect();
    let (finish, spans) =
        end.map_or((Value::Null, Value::Null), |(finish, spans)| (json!(finish), spans));
    let choice = json!({
        "index": 0, "token_ids": ids, "logprobs": {"content": content},
        "finish_reason": finish, "weight_versions": spans,
    });
    format!("data: {}\n\n", json!({"request_id": "r", "choices": [choice]}))
}

fn span(version: &str, start: usize, end: usize) -> Value {
    json!({"version": version, "start": start, "end": end})
}

fn read(reader: &mut Reader, text: &str) -> Result<Vec<(u32, u32)>, Broken> {
    let mut tokens = Vec::new();
    // However the connection cuts it.
    for part in text.as_bytes().chunks(7) {
        for piece in reader.pieces(part)? {
            tokens.extend(piece.tokens.iter().map(|token| (token.id, token.version.number())));
        }
    }
    Ok(tokens)
}

/// All of a turn under weights 3, under which nothing is loaded.
fn whole(text: &str) -> Result<Vec<(u32, u32)>, Broken> {
    read(&mut Reader::new(Standing::of(3).0), text)
}

#[test]
fn tokens_come_at_once_where_no_load_has_begun_since_the_turn_did() {
    let mut reader = Reader::new(Standing::of(3).0);
    assert_eq!(read(&mut reader, &piece(&[1, 2], None)).unwrap(), [(1, 3), (2, 3)]);
    let end = piece(&[9], Some(("stop", json!([span("headway-3", 0, 3)]))));
    assert_eq!(read(&mut reader, &end).unwrap(), [(9, 3)]);
}

#[test]
fn what_comes_after_a_load_has_begun_is_stamped_by_what_the_server_says_at_the_end() {
    let (standing, epoch) = Standing::of(3);
    let mut reader = Reader::new(standing);
    assert_eq!(read(&mut reader, &piece(&[1, 2], None)).unwrap(), [(1, 3), (2, 3)]);
    epoch.fetch_add(1, Ordering::SeqCst);
    // The first of these was made before the pause and came after it.
    assert_eq!(read(&mut reader, &piece(&[7], None)).unwrap(), []);
    assert_eq!(read(&mut reader, &piece(&[8], None)).unwrap(), []);
    let spans = json!([span("headway-3", 0, 3), span("headway-4", 3, 5)]);
    let end = piece(&[9], Some(("length", spans)));
    assert_eq!(read(&mut reader, &end).unwrap(), [(7, 3), (8, 4), (9, 4)]);
}

#[test]
fn a_stamp_that_the_server_does_not_confirm_fails_its_turn() {
    let end = |spans: Value| whole(&piece(&[1, 2], Some(("stop", spans))));
    assert_eq!(
        end(json!([span("headway-3", 0, 1), span("headway-4", 1, 2)])),
        Err(Broken::Stamp { stamped: 3, said: 4 })
    );
    assert_eq!(end(json!([span("default", 0, 2)])), Err(Broken::Foreign("default".to_owned())));
    assert_eq!(
        end(json!([span("headway-loading", 0, 2)])),
        Err(Broken::Foreign("headway-loading".to_owned()))
    );
    assert_eq!(end(Value::Null), Err(Broken::Unlabelled));
    for spans in [
        json!([]),
        json!([span("headway-3", 0, 1)]),
        json!([span("headway-3", 0, 3)]),
        json!([span("headway-3", 1, 2)]),
        json!([span("headway-3", 0, 2), span("headway-3", 1, 2)]),
    ] {
        assert_eq!(end(spans.clone()), Err(Broken::Spans), "{spans}");
    }
}

#[test]
fn an_abort_keeps_what_was_there() {
    let mut reader = Reader::new(Standing::of(0).0);
    reader.pieces(piece(&[1], None).as_bytes()).unwrap();
    let end = piece(&[], Some(("abort", json!([span("headway-0", 0, 1)]))));
    let pieces = reader.pieces(end.as_bytes()).unwrap();
    assert_eq!((pieces[0].tokens.len(), pieces[0].finish), (0, Some(Finish::Aborted)));
    // One that was aborted before its first token has no labels.
    let bare = piece(&[], Some(("abort", Value::Null)));
    let pieces = Reader::new(Standing::of(0).0).pieces(bare.as_bytes()).unwrap();
    assert_eq!(pieces[0].finish, Some(Finish::Aborted));
}

#[test]
fn log_probabilities_that_do_not_fit_their_tokens_are_never_padded() {
    let short = piece(&[1, 2], None).replace("\"token_ids\":[1,2]", "\"token_ids\":[1,2,3]");
    assert_eq!(whole(&short), Err(Broken::Count { tokens: 3, logprobs: 2 }));
    let other = piece(&[1, 2], None).replace("\"token_ids\":[1,2]", "\"token_ids\":[1,5]");
    assert_eq!(whole(&other), Err(Broken::OtherToken));
    for none in ["null", "-9999.0"] {
        let text = piece(&[5], None).replace("-0.5", none);
        let pieces = Reader::new(Standing::of(0).0).pieces(text.as_bytes()).unwrap();
        assert!(pieces[0].tokens[0].logprob.is_nan(), "{none}");
    }
}

#[test]
fn garbage_is_named() {
    assert!(matches!(whole("data: {\"choices\": 1\n"), Err(Broken::Garbage(_))));
    let error = "data: {\"error\": {\"message\": \"my secret prompt\", \"code\": 500}}\n";
    assert_eq!(whole(error), Err(Broken::Error("500".to_owned())), "its message is not shown");
    let finish = piece(&[], Some(("error", Value::Null)));
    assert_eq!(whole(&finish), Err(Broken::Finish("error".to_owned())));
}

proptest::proptest! {
    /// What it believes has a version that the server named, and a log-probability for each token.
    #[test]
    fn no_bytes_of_a_server_make_it_panic(
        at in 0..900_usize,
        gone in 0..60_usize,
        new in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40),
        cut in 1..64_usize,
        loads in proptest::bool::ANY,
    ) {
        let spans = json!([span("headway-3", 0, 2), span("headway-4", 2, 3)]);
        let whole = piece(&[1, 2], None) + &piece(&[9], Some(("stop", spans)));
        let mut bytes = whole.into_bytes();
        let at = at.min(bytes.len());
        let end = (at + gone).min(bytes.len());
        drop(bytes.splice(at..end, new));
        let (standing, epoch) = Standing::of(3);
        epoch.fetch_add(u64::from(loads), Ordering::SeqCst);
        let mut reader = Reader::new(standing);
        for part in bytes.chunks(cut) {
            let Ok(pieces) = reader.pieces(part) else { break };
            for token in pieces.iter().flat_map(|piece| &piece.tokens) {
                proptest::prop_assert!(token.logprob.is_nan() || token.logprob <= 0.0);
            }
        }
    }
}
