//! `[world.clients]` out of a scenario file.

use headway_shared::config::Reader;
use headway_shared::time::{Span, Time};

use super::columns::Columns;
use super::distribution::{Unit, number_in, optional, required};
use super::words::words;
use super::world::SHARE;
use crate::world::settings::{Arrivals, ClientKind, Clients, Retries, Sessions, Slots};
use crate::world::span;

/// More users would share random streams.
const MAX_USERS: u32 = 100_000;

words! {
    Kind {
        Sessions = "sessions", "People and agents that come, think, and leave.";
        Slots = "slots", "A closed loop, as batch RL has it.";
    }
}

words! {
    ArrivalKind {
        Poisson = "poisson", "At random, independently of each other.";
        Users = "users", "A fixed population that starts sessions after pauses.";
        Replay = "replay", "At recorded times.";
    }
}

/// Reads `[world.clients]`.
pub(super) fn read(mut table: Reader<'_>, columns: &mut Columns<'_>) -> Clients {
    table.require("kind", "\"sessions\"");
    let kind = table.choice("kind", Kind::Slots);
    let clients = Clients {
        turns: optional(&mut table, "turns", Unit::Count, 1.0, columns),
        prompt_tokens: required(&mut table, "prompt_tokens", Unit::Count, columns),
        growth_tokens: optional(&mut table, "growth_tokens", Unit::Count, 0.0, columns),
        output_tokens: required(&mut table, "output_tokens", Unit::Count, columns),
        max_output_tokens: table.u32("max_output_tokens", 0, 0..=u32::MAX),
        streamed_share: table.float("streamed_share", 0.0, SHARE),
        limit: table.u64("limit", 0, 0..=u64::MAX),
        kind: match kind {
            Kind::Sessions => ClientKind::Sessions(sessions(&mut table, columns)),
            Kind::Slots => ClientKind::Slots(slots(&mut table)),
        },
    };
    if let ClientKind::Slots(slots) = &clients.kind
        && !slots.environment
        && clients.turns.max() > 1.0
    {
        table.error(
            "turns",
            "a slot's task has one turn unless an environment answers it",
            "write `environment = true`, or leave `turns` out",
        );
    }
    table.finish();
    clients
}

fn slots(table: &mut Reader<'_>) -> Slots {
    table.require("slots", "256");
    Slots {
        slots: table.u32("slots", 1, 1..=10_000_000),
        environment: table.boolean("environment", false),
        whole_groups: table.boolean("whole_groups", false),
    }
}

fn sessions(table: &mut Reader<'_>, columns: &mut Columns<'_>) -> Sessions {
    let per_hour = table.peek("arrivals").and_then(number_in).unwrap_or_else(|| "60".to_owned());
    let example = format!("{{ kind = \"poisson\", per_hour = {per_hour} }}");
    table.require("arrivals", &example);
    Sessions {
        arrivals: arrivals(table.short_table("arrivals", &example), columns),
        think: optional(table, "think", Unit::Seconds, 0.0, columns),
        tool: optional(table, "tool", Unit::Seconds, 0.0, columns),
        tool_share: table.float("tool_share", 0.0, SHARE),
        side_share: table.float("side_share", 0.0, SHARE),
        done_share: table.float("done_share", 1.0, SHARE),
        retries: retries(table.table("retries"), columns),
    }
}

fn arrivals(mut table: Reader<'_>, columns: &mut Columns<'_>) -> Arrivals {
    let arrivals = match table.choice("kind", ArrivalKind::Poisson) {
        ArrivalKind::Poisson => {
            table.require("per_hour", "60");
            Arrivals::Poisson { per_hour: table.float("per_hour", 1.0, 1e-6..=1e9) }
        }
        ArrivalKind::Users => {
            table.require("users", "48");
            Arrivals::Users {
                users: table.u32("users", 1, 1..=MAX_USERS),
                pause: optional(&mut table, "pause", Unit::Seconds, 0.0, columns),
            }
        }
        ArrivalKind::Replay => {
            let seconds = columns.of(&mut table).unwrap_or_else(|| [0.0].into());
            if seconds.windows(2).any(|pair| pair[1] < pair[0]) {
                table.error("column", "the arrivals are not in order", "sort the file by them");
            }
            let times = seconds.iter().map(|&secs| Time::ZERO + span(secs)).collect();
            Arrivals::Replay { times }
        }
    };
    table.finish();
    arrivals
}

/// The defaults are those of the official OpenAI client (openai-python: two retries, 0.5 s
/// doubling to 8 s, `Retry-After` up to 60 s, 600 s).
fn retries(mut table: Reader<'_>, columns: &mut Columns<'_>) -> Retries {
    let retries = Retries {
        max_retries: table.u32("max_retries", 2, 0..=1000),
        backoff: table.span_sec("backoff_sec", Span::from_millis(500)),
        backoff_max: table.span_sec("backoff_max_sec", Span::from_secs(8)),
        retry_after_max: table.span_sec("retry_after_max_sec", Span::from_secs(60)),
        timeout: table.span_sec("timeout_sec", Span::from_secs(600)),
        return_share: table.float("return_share", 1.0, SHARE),
        return_after: optional(&mut table, "return_after", Unit::Seconds, 60.0, columns),
    };
    table.finish();
    retries
}
