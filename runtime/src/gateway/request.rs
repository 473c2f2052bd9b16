//! A turn that a client asks for, whichever surface it came by.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use headway_shared::input::TurnType;
use serde::Deserialize;
use serde_json::Value;

use super::conversation::Conversation;
use super::error::ApiError;

/// A turn, checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TurnRequest {
    pub(super) conversation: Conversation,
    /// What followed the session's turn before.
    pub(super) next_state: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) max_tokens: Option<u32>,
    /// `None`: that of the policy.
    pub(super) temperature: Option<f32>,
    pub(super) seed: Option<u64>,
    pub(super) stop: Vec<String>,
    pub(super) n: u32,
    pub(super) stream: bool,
    pub(super) place: Place,
}

/// Where a turn belongs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) session: Option<String>,
    pub(super) group: Option<String>,
    pub(super) turn: TurnType,
    pub(super) last: bool,
}

/// What a body may say of it.
#[derive(Deserialize)]
pub(super) struct PlaceBody {
    session_id: Option<String>,
    group_id: Option<String>,
    turn_type: Option<String>,
    session_done: Option<Value>,
}

impl Place {
    /// Where a body and the headers that belong to it say; a header wins over its field.
    pub(super) fn read(headers: &HeaderMap, body: PlaceBody) -> Result<Self, ApiError> {
        let PlaceBody { session_id, group_id, turn_type, session_done } = body;
        // Also where a header wins over it.
        turn(turn_type.as_deref().filter(|name| !name.is_empty()))?;
        let named = |name, field: Option<String>| {
            let text = header(headers, name)?.map(str::to_owned).or(field);
            Ok(text.filter(|text| !text.is_empty()))
        };
        let done = match session_done {
            None | Some(Value::Null) => false,
            Some(Value::Bool(done)) => done,
            Some(Value::String(text)) => says_yes(&text),
            Some(Value::Number(number)) => number.as_u64() == Some(1),
            Some(_) => return Err(ApiError::bad_request("session_done must be true or false")),
        };
        Ok(Self {
            session: named("x-session-id", session_id)?,
            group: named("x-group-id", group_id)?,
            turn: turn(named("x-turn-type", turn_type)?.as_deref())?,
            last: header(headers, "x-session-done")?.map_or(done, says_yes),
        })
    }
}

/// The temperature, where it is one.
pub(super) fn temperature(given: Option<f32>) -> Result<Option<f32>, ApiError> {
    if given.is_none_or(|temperature| (0.0..=2.0).contains(&temperature)) {
        return Ok(given);
    }
    Err(ApiError::bad_request("temperature must be between 0 and 2"))
}

/// What would be sampled from another distribution than the recorded one is refused.
pub(super) fn top_p(given: Option<f32>) -> Result<(), ApiError> {
    let message = "top_p other than 1 is not supported: it changes what is sampled from";
    if given.is_some_and(|top_p| top_p != 1.0) {
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}

/// How many texts may end a turn, and that each is one.
pub(super) fn stops(given: Vec<String>, name: &str, most: usize) -> Result<Vec<String>, ApiError> {
    if given.len() > most || given.iter().any(String::is_empty) {
        let message = format!("{name} must be up to {most} texts that are not empty");
        return Err(ApiError::bad_request(&message));
    }
    Ok(given)
}

/// Reads a body.
pub(super) fn json<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::bad_request(&format!("the body is wrong: {error}")))
}

/// A header as text. One that is none is refused: without it the turn would be another session's.
fn header<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, ApiError> {
    let text = headers.get(name).map(|value| value.to_str()).transpose();
    text.map_err(|_| ApiError::bad_request(&format!("the header {name} must be ASCII text")))
}

fn says_yes(text: &str) -> bool {
    ["1", "true", "yes", "on"].iter().any(|yes| text.trim().eq_ignore_ascii_case(yes))
}

fn turn(named: Option<&str>) -> Result<TurnType, ApiError> {
    match named.map(str::trim) {
        None => Ok(TurnType::Side),
        Some(name) if name.eq_ignore_ascii_case("main") => Ok(TurnType::Main),
        Some(name) if name.eq_ignore_ascii_case("side") => Ok(TurnType::Side),
        Some(_) => Err(ApiError::bad_request("the turn type must be \"main\" or \"side\"")),
    }
}
