//! `GET /openapi.json`: what the gateway speaks.

use serde_json::{Value, json};

/// The description of every route. The paths below `/admin` answer only where a
/// token is set, those below `/trainer` where an external trainer trains.
pub(super) fn description(has_trainer: bool) -> Value {
    let mut description = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Headway gateway",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "OpenAI-compatible chat completions of the policy that is being trained.",
        },
        "paths": {
            "/v1/chat/completions": {"post": chat()},
            "/v1/models": {"get": simple("The policy, with the learner's version.", "api_key")},
            "/healthz": {"get": open("The process answers: {\"ok\": true}.")},
            "/readyz": {"get": {
                "summary": "Whether requests are served now; if not, why, and which loop blocks.",
                "responses": {
                    "200": response("Ready."),
                    "503": response("Not ready; `reason` says why."),
                },
            }},
            "/metrics": {"get": open("Counters, gauges and metrics in Prometheus' text format.")},
            "/openapi.json": {"get": open("This description.")},
            "/admin/state": {"get": simple("What is where, now.", "admin_token")},
            "/admin/ledger": {"get": simple("Every counter of requests and samples.", "admin_token")},
            "/admin/steps": {"get": simple("The newest train steps.", "admin_token")},
            "/admin/config": {
                "get": simple("The configuration in force, as TOML: every scheduling key, and \
                    [guard] where there is one.", "admin_token"),
                "post": reconfigure(),
            },
            "/admin/publish": {"post": simple("Publish weights now and load them on every \
                replica; answered before that is done.", "admin_token")},
            "/admin/pause": {"post": simple("Admit nothing until resumed (503).", "admin_token")},
            "/admin/resume": {"post": simple("Admit again.", "admin_token")},
        },
        "components": {
            "securitySchemes": {
                "api_key": {"type": "http", "scheme": "bearer"},
                "admin_token": {"type": "http", "scheme": "bearer"},
            },
            "schemas": {"Error": error(), "ChatRequest": request(), "ChatCompletion": completion()},
        },
    });
    if has_trainer {
        super::training::describe(&mut description);
    }
    description
}

fn response(about: &str) -> Value {
    json!({"description": about})
}

fn failure(about: &str) -> Value {
    let schema = json!({"$ref": "#/components/schemas/Error"});
    json!({"description": about, "content": {"application/json": {"schema": schema}}})
}

/// A failure that says when to try again.
fn retry(about: &str) -> Value {
    let mut response = failure(about);
    response["headers"] = json!({"Retry-After": {
        "description": "Seconds, at most 60.", "schema": {"type": "integer"},
    }});
    response
}

fn open(about: &str) -> Value {
    json!({"summary": about, "responses": {"200": response("Always.")}})
}

fn simple(about: &str, key: &str) -> Value {
    json!({
        "summary": about,
        "security": [{key: []}],
        "responses": {
            "200": response("Done."),
            "401": failure("No key, or a wrong one."),
        },
    })
}

fn reconfigure() -> Value {
    json!({
        "summary": "Another configuration from now on; answered when that is on disk. An invalid one \
            changes nothing.",
        "security": [{"admin_token": []}],
        "parameters": [{
            "name": "dry_run", "in": "query", "schema": {"type": "boolean", "default": false},
            "description": "Say what would change, and change nothing.",
        }],
        "requestBody": {"required": true, "content": {"application/toml": {
            "schema": {"type": "string", "description": "The scheduling sections, whole: keys that \
                are absent have their defaults. Without [guard] there is no guard any more."},
        }}},
        "responses": {
            "200": response("{applied, changed: [{key, old, new, effect}]}: what changes when."),
            "400": failure("It is invalid, or changes what only a restart can change."),
            "401": failure("No key, or a wrong one."),
            "503": failure("The run is ending."),
        },
    })
}

fn chat() -> Value {
    let header = |name: &str, about: &str| json!({"name": name, "in": "header", "description": about, "schema": {"type": "string"}});
    json!({
        "summary": "The next turn of a conversation.",
        "security": [{"api_key": []}],
        "parameters": [
            header("X-Session-Id", "The session; also `session_id` in the body."),
            header("X-Turn-Type", "`main` trains, `side` (default) does not; also `turn_type`."),
            header("X-Session-Done", "1, true, yes, on: the session's last turn; also `session_done`."),
            header("X-Group-Id", "The group of rollouts of one prompt; also `group_id`."),
        ],
        "requestBody": {"required": true, "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/ChatRequest"},
        }}},
        "responses": {
            "200": {
                "description": "The turn. X-Policy-Versions lists `version:tokens` of its segments; \
                    a stream has X-Policy-Version, of its first token.",
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/ChatCompletion"}},
                    "text/event-stream": {"schema": {"type": "string"}},
                },
            },
            "400": failure("The request is wrong."),
            "401": failure("No key, or a wrong one."),
            "413": failure("The body is too long."),
            "429": retry("No place for it now: the staleness bound, a queue, or a limit."),
            "500": failure("The turn could not be generated or recorded."),
            "503": retry("Weights are updated, or nothing serves."),
        },
    })
}

fn error() -> Value {
    json!({"type": "object", "properties": {"error": {"type": "object", "properties": {
        "message": {"type": "string"},
        "type": {"type": "string"},
        "param": {"type": ["string", "null"]},
        "code": {"type": "string", "description": "Why, such as `weight_sync` or `stale`."},
    }}}})
}

fn request() -> Value {
    json!({
        "type": "object",
        "required": ["messages"],
        "properties": {
            "model": {"type": "string", "description": "Ignored: there is one policy."},
            "messages": {"type": "array", "minItems": 1, "items": {"type": "object"}},
            "max_tokens": {"type": "integer", "minimum": 1},
            "max_completion_tokens": {"type": "integer", "minimum": 1},
            "temperature": {"type": "number", "minimum": 0, "maximum": 2, "default": 1},
            "seed": {"type": "integer"},
            "stop": {"oneOf": [
                {"type": "string"},
                {"type": "array", "maxItems": 4, "items": {"type": "string"}},
            ]},
            "n": {"type": "integer", "minimum": 1, "maximum": 128, "default": 1},
            "stream": {"type": "boolean", "default": false},
            "stream_options": {"type": "object"},
            "logprobs": {"type": "boolean", "default": false},
            "top_logprobs": {"type": "integer", "description": "Accepted; always answered empty."},
            "return_token_ids": {"type": "boolean", "default": false},
            "metadata": {"type": "object", "description": "Kept with the sample; a rule can read \
                it."},
            "session_id": {"type": "string"},
            "turn_type": {"enum": ["main", "side"]},
            "session_done": {"type": "boolean"},
            "group_id": {"type": "string"},
        },
    })
}

fn completion() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "object": {"const": "chat.completion"},
            "created": {"type": "integer"},
            "model": {"type": "string"},
            "session_id": {"type": "string"},
            "choices": {"type": "array", "items": {"type": "object"}},
            "usage": {"type": "object"},
            "policy_versions": {"type": "array", "description": "For each choice its segments, \
                each [version, tokens]."},
            "sample_id": {"type": ["integer", "null"], "description": "The sample that the first \
                choice became; null: it is not trained on."},
        },
    })
}
