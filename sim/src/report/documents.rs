//! The JSON files that results consist of, as JSON schemas.

use serde_json::Value;

use super::described::schema;
use super::results::Meta;
use crate::check::Golden;
use crate::plan::results::PlanMeta;
use crate::tournament::results::TournamentMeta;
use crate::tune::results::TuneMeta;
use crate::validate::ValidationDocument;

/// Of `run.json` and `sweep.json`.
#[must_use]
pub fn result() -> Value {
    schema::<Meta>("run.json or sweep.json of Headway")
}

/// Of `plan.json`.
#[must_use]
pub fn plan() -> Value {
    schema::<PlanMeta>("plan.json of Headway")
}

/// Of `tune.json`.
#[must_use]
pub fn tune() -> Value {
    schema::<TuneMeta>("tune.json of Headway")
}

/// Of `tournament.json`.
#[must_use]
pub fn tournament() -> Value {
    schema::<TournamentMeta>("tournament.json of Headway")
}

/// Of `validation.json`.
#[must_use]
pub fn validation() -> Value {
    schema::<ValidationDocument>("validation.json of Headway")
}

/// Of what `headway check` compares a scenario with.
#[must_use]
pub fn golden() -> Value {
    schema::<Golden>("What headway check compares a scenario with")
}
