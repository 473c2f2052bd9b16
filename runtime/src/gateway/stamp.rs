//! What an answer says of the policies that generated it, and of the sample it became.

use axum::http::{HeaderMap, HeaderValue};
use headway_shared::input::{Segment, Segments};
use serde_json::{Value, json};

use crate::driver::Answer;
use crate::engine::{Token, segments};

/// The versions of an answer: `version:tokens`, in the order in which they were generated; the
/// choices of an answer are separated by `;`.
const VERSIONS: &str = "x-policy-versions";
/// The version of the first token, where an answer is streamed.
const FIRST_VERSION: &str = "x-policy-version";
/// The sample that the first choice became.
const SAMPLE: &str = "x-sample-id";

/// The headers of a whole answer.
pub(super) fn put(headers: &mut HeaderMap, answers: &[Answer]) {
    let lists: Vec<String> = answers.iter().map(|answer| list(&segments(&answer.tokens))).collect();
    put_one(headers, VERSIONS, &lists.join(";"));
    if let Some(sample) = answers.first().and_then(|answer| answer.sample) {
        put_one(headers, SAMPLE, &sample.0.to_string());
    }
}

/// The header of a streamed answer.
pub(super) fn put_first_version(headers: &mut HeaderMap, token: Token) {
    put_one(headers, FIRST_VERSION, &token.version.number().to_string());
}

pub(super) fn versions(tokens: &[Token]) -> Value {
    json!(pairs(tokens))
}

/// Versions, each with the number of its tokens.
pub(super) fn pairs(tokens: &[Token]) -> Vec<(u32, u32)> {
    let pair = |segment: &Segment| (segment.version.number(), segment.tokens);
    segments(tokens).iter().map(pair).collect()
}

fn list(segments: &Segments) -> String {
    let pairs: Vec<String> = segments
        .iter()
        .map(|segment| format!("{}:{}", segment.version.number(), segment.tokens))
        .collect();
    pairs.join(",")
}

fn put_one(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
