//! `[world]` out of a scenario file.

use headway_shared::config::{Config, Diagnostics, Findings, Reader};
use headway_shared::time::Span;

use super::clients;
use super::columns::Columns;
use super::distribution::{Unit, optional, required};
use super::resources::Resources;
use super::{drift, faults, serving};
use crate::drift::Model;
use crate::rates::RateTable;
use crate::world::settings::{
    Environment, Judge, JudgeLatency, Learning, StepTime, Trainer, Transfer, Weights, WorldConfig,
};

/// A share.
pub(super) const SHARE: std::ops::RangeInclusive<f64> = 0.0..=1.0;

/// A key with all that another share leaves it.
pub(super) fn rest(key: &str, other: f64) -> String {
    // Millionths, so that 1 - 0.7 is 0.3.
    let left = ((1.0 - other) * 1e6).round() / 1e6;
    format!("`{key} = {left}`")
}
/// With 10, a chance of one in a thousand is a thousand to one two versions later.
const GROWTH: std::ops::RangeInclusive<f64> = 0.0..=10.0;
/// With 10, nearly every prompt is always solved or never.
const PROMPT_SPREAD: std::ops::RangeInclusive<f64> = 0.0..=10.0;
/// Any rate or time that is not zero.
const POSITIVE: std::ops::RangeInclusive<f64> = 1e-9..=1e12;

/// More GPUs than any replica has.
pub(super) const MOST_GPUS: u32 = 10_000;

/// Gives the scheduling sections under some more assignments.
pub(super) type Variant<'a> = &'a dyn Fn(&[String]) -> Result<Config, Diagnostics>;

/// What `[world]` says.
pub(super) struct Read {
    pub(super) config: WorldConfig,
    /// The table of rates that it names, if it does.
    pub(super) rates: Option<RateTable>,
    /// Which resources its loops take.
    pub(super) resources: Resources,
    pub(super) drift: Option<Model>,
}

/// Reads `[world]`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    columns: &mut Columns<'_>,
    findings: &Findings,
    variant: Variant<'_>,
) -> Read {
    let mut world = reader.table("world");
    let mut resources = Resources::default();
    let serving = world.table("serving");
    let (serving, rates) = serving::read(serving, columns, findings, &mut resources);
    let config = WorldConfig {
        serving,
        clients: clients::read(world.table("clients"), columns),
        environment: environment(world.table("environment"), columns),
        judge: judge(world.table("judge"), columns, &mut resources),
        trainer: trainer(world.table("trainer"), columns),
        weights: weights(world.table("weights"), columns),
        faults: faults::read(world.table("faults"), columns, variant),
    };
    let drift = drift::read(&mut world, config.judge.learning.positive_growth);
    world.finish();
    Read { config, rates, resources, drift }
}

fn environment(mut table: Reader<'_>, columns: &mut Columns<'_>) -> Environment {
    let environment = Environment {
        reset: optional(&mut table, "reset", Unit::Seconds, 0.0, columns),
        step: optional(&mut table, "step", Unit::Seconds, 0.0, columns),
        failure_share: table.float("failure_share", 0.0, SHARE),
        hang_share: table.float("hang_share", 0.0, SHARE),
    };
    table.finish();
    environment
}

fn judge(mut table: Reader<'_>, columns: &mut Columns<'_>, resources: &mut Resources) -> Judge {
    let by_tokens = table.has("read_tokens_per_sec") || table.has("write_tokens_per_sec");
    let latency = if by_tokens {
        if table.has("vote") {
            table.error(
                "vote",
                "`vote` and rates of tokens both say how long a vote takes",
                "keep one of them",
            );
        }
        for key in ["read_tokens_per_sec", "write_tokens_per_sec"] {
            table.require(key, "5000");
        }
        JudgeLatency::Tokens {
            base_sec: table.float("base_sec", 0.0, 0.0..=1e6),
            read_per_sec: table.float("read_tokens_per_sec", 1.0, POSITIVE),
            write_per_sec: table.float("write_tokens_per_sec", 1.0, POSITIVE),
        }
    } else {
        JudgeLatency::Time(required(&mut table, "vote", Unit::Seconds, columns))
    };
    let quota = table.u32("quota", 0, 0..=u32::MAX);
    resources.judge_replicas = table.u32("replicas", 1, 1..=10_000);
    resources.judge_gpus = table.u32("gpus_per_replica", 0, 0..=MOST_GPUS);
    let judge = Judge {
        latency,
        verdict_tokens: optional(&mut table, "verdict_tokens", Unit::Count, 0.0, columns),
        quota: quota.saturating_mul(resources.judge_replicas),
        finishes_abandoned: table.boolean("finishes_abandoned", false),
        invalid_share: table.float("invalid_share", 0.0, SHARE),
        failed_share: table.float("failed_share", 0.0, SHARE),
        hang_share: table.float("hang_share", 0.0, SHARE),
        positive_share: table.float("positive_share", 0.5, SHARE),
        negative_share: table.float("negative_share", 0.0, SHARE),
        agreement: table.float("agreement", 1.0, SHARE),
        solved_share: table.float("solved_share", 0.0, SHARE),
        hopeless_share: table.float("hopeless_share", 0.0, SHARE),
        learning: Learning {
            positive_growth: table.float("positive_growth", 0.0, GROWTH),
            prompt_spread: table.float("prompt_spread", 0.0, PROMPT_SPREAD),
        },
    };
    if judge.solved_share + judge.hopeless_share > 1.0 {
        table.error(
            "hopeless_share",
            "`solved_share` and `hopeless_share` are more than 1 together",
            format!(
                "write {} or less: the rest of the prompts are solved by some of their group",
                rest("hopeless_share", judge.solved_share)
            ),
        );
    }
    if judge.positive_share + judge.negative_share > 1.0 {
        table.error(
            "negative_share",
            "`positive_share` and `negative_share` are more than 1 together",
            format!(
                "write {} or less: the rest of the samples deserve 0",
                rest("negative_share", judge.positive_share)
            ),
        );
    }
    table.finish();
    judge
}

fn trainer(mut table: Reader<'_>, columns: &mut Columns<'_>) -> Trainer {
    let step = if table.has("step") || !table.has("sec_per_token") {
        if table.has("sec_per_token") {
            table.error(
                "step",
                "`step` and `sec_per_token` both say how long a step takes",
                "keep one of them",
            );
        }
        StepTime::Time(required(&mut table, "step", Unit::Seconds, columns))
    } else {
        StepTime::Tokens {
            base_sec: table.float("base_sec", 0.0, 0.0..=1e6),
            sec_per_token: table.float("sec_per_token", 0.0, 0.0..=1e6),
            gpus: table.u32("gpus", 1, 1..=1_000_000),
        }
    };
    let trainer = Trainer {
        step,
        evaluate_every: table.u32("evaluate_every_steps", 0, 0..=u32::MAX),
        evaluate: optional(&mut table, "evaluate", Unit::Seconds, 0.0, columns),
        checkpoint_every: table.u32("checkpoint_every_steps", 0, 0..=u32::MAX),
        checkpoint: optional(&mut table, "checkpoint", Unit::Seconds, 0.0, columns),
    };
    table.finish();
    trainer
}

fn weights(mut table: Reader<'_>, columns: &mut Columns<'_>) -> Weights {
    let save = optional(&mut table, "save", Unit::Seconds, 0.0, columns);
    let transfer = if table.has("size_gb") {
        if table.has("transfer") {
            table.error(
                "transfer",
                "`transfer` and `size_gb` both say how long it takes",
                "keep one of them",
            );
        }
        table.require("link_gb_per_sec", "25");
        let size = table.float("size_gb", 1.0, POSITIVE);
        let rate = table.float("link_gb_per_sec", 1.0, POSITIVE);
        Transfer::Link {
            // A copy longer than any run is as good as none.
            copy_sec: (size / rate).min(Span::MAX.as_secs_f64()),
            shared: table.boolean("shared_link", false),
        }
    } else {
        Transfer::Time(optional(&mut table, "transfer", Unit::Seconds, 0.0, columns))
    };
    let load = optional(&mut table, "load", Unit::Seconds, 0.0, columns);
    table.finish();
    Weights { save, transfer, load }
}
