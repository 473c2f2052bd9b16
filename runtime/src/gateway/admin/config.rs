//! `/admin/config`: the configuration in force, and another one for a run that is going on.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::RawQuery;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use headway_shared::action::OperatorReply;
use headway_shared::config::edit::{Change, changes};
use headway_shared::config::keys::{Effect, Key, keys, sections_toml};
use headway_shared::config::{Config, GuardSettings, Layers, load_guarded};
use serde_json::{Value, json};

use super::{Answer, ApiError, Gate};
use crate::driver::InForce;

/// What messages call the body.
const BODY: &str = "body";

/// `GET /admin/config`
pub(in crate::gateway) async fn config(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    gate.admit_operator(&headers)?;
    let InForce { config, guard } = gate.driver.in_force().await.ok_or_else(ApiError::ending)?;
    let all: Vec<String> = keys().iter().map(Key::path).collect();
    let mut text = sections_toml(&config, "", &all);
    if let Some(guard) = guard {
        text += &format!("\n{}", guard.to_toml());
    }
    Ok(([(header::CONTENT_TYPE, "application/toml")], text).into_response())
}

/// `POST /admin/config[?dry_run=true]`
pub(in crate::gateway) async fn reconfigure(
    State(gate): State<Arc<Gate>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Answer {
    gate.admit_operator(&headers)?;
    let dry_run = is_dry_run(query.as_deref().unwrap_or_default())?;
    let body = body.map_err(|error| ApiError::body(error.status(), &error.body_text()))?;
    let (config, guard) = read(&body)?;
    let now = gate.driver.in_force().await.ok_or_else(ApiError::ending)?;
    let wished = changes(&now.config, &config);
    keep_what_a_restart_changes(&wished)?;
    if dry_run {
        return Ok(answer(false, &wished));
    }
    let done = gate.driver.reconfigure(config.clone(), guard).await;
    let done = done.ok_or_else(ApiError::ending)?;
    match done.reply {
        OperatorReply::Done => Ok(answer(true, &changes(&done.before.config, &config))),
        OperatorReply::Rejected => {
            Err(ApiError::bad_request("the core rejects this; nothing has changed"))
        }
    }
}

fn is_dry_run(query: &str) -> Result<bool, ApiError> {
    match query {
        "" | "dry_run=false" => Ok(false),
        "dry_run" | "dry_run=true" => Ok(true),
        _ => Err(ApiError::bad_request("the only parameter here is dry_run: true or false")),
    }
}

fn read(body: &[u8]) -> Result<(Config, Option<GuardSettings>), ApiError> {
    let text = str::from_utf8(body)
        .map_err(|_| ApiError::bad_request("the body is no UTF-8 text; nothing has changed"))?;
    let said = |findings| {
        ApiError::bad_request(&format!(
            "nothing has changed: the configuration is wrong\n{findings}"
        ))
    };
    let layers = Layers::new().toml(BODY, text);
    let tree = layers.merge().map_err(said)?.root;
    if !keys().iter().any(|key| tree.find(key.section).is_some()) {
        return Err(ApiError::bad_request(
            "nothing has changed: the body holds no scheduling section; send all of them as TOML, \
             as GET /admin/config gives them",
        ));
    }
    let (config, guard, _) = load_guarded(&layers, false).map_err(said)?;
    Ok((config, guard))
}

/// What only a restart changes stays as it is.
fn keep_what_a_restart_changes(changes: &[Change]) -> Result<(), ApiError> {
    let Some(change) = changes.iter().find(|change| change.key.effect == Effect::Restart) else {
        return Ok(());
    };
    let (key, old, new) = (change.key.path(), change.old_text(), change.new_text());
    Err(ApiError::bad_request(&format!(
        "nothing has changed: `{key}` is {old}, and {new} needs a restart; send it as it is, as GET \
         /admin/config gives it"
    )))
}

fn answer(applied: bool, changes: &[Change]) -> Json<Value> {
    // TOML's numbers, words and texts are JSON's.
    let value = |text: &Option<String>| {
        let text = text.as_deref().unwrap_or("null");
        serde_json::from_str::<Value>(text).unwrap_or_else(|_| json!(text))
    };
    let changed = changes.iter().map(|change| {
        json!({
            "key": change.key.path(),
            "old": value(&change.old),
            "new": value(&change.new),
            "effect": change.key.effect.to_string(),
        })
    });
    Json(json!({"applied": applied, "changed": changed.collect::<Vec<_>>()}))
}
