//! The trainer, weights, environments and faults of a record.

use headway_shared::config::KvOnSync;
use headway_shared::time::Time;

use super::decode::decode;
use super::estimate::{Estimates, Item, number};
use super::fit::{Line, Parameter, Unit, line, rate, share};
use super::measured::{Ended, Measured, Over, Stage, StageEnd, StepEnd};
use super::series::{Series, Values, seconds};

/// A line stands for train steps where it explains at least so much of their variance: the world's
/// line has no noise around it.
const MOST_OF_IT: f64 = 0.5;

/// Train steps: a law, or a line over the tokens of the batch.
pub(super) fn trainer(estimates: &mut Estimates, measured: &Measured, since: Time) {
    const TABLE: &str = "world.trainer";
    let steps = measured.steps.steps.iter().filter(|step| step.at >= since);
    let mut series = Series::default();
    let (mut tokens, mut secs) = (Vec::new(), Vec::new());
    for step in steps {
        let taken = seconds(step.until.since(step.at));
        match step.end {
            StepEnd::Done => {
                series.push(step.at, taken);
                tokens.push(step.tokens as f64);
                secs.push(taken);
            }
            StepEnd::Cancelled | StepEnd::Open => series.push_cut(step.at, taken),
            StepEnd::Failed => {}
        }
    }
    let along = line(&tokens, &secs).ok();
    if let Some(found) =
        along.as_ref().filter(|line| line.r_squared >= MOST_OF_IT && line.slope.low > 0.0)
    {
        estimates.items.push(step_line(found, &secs));
        return;
    }
    let explained = along.map_or(0.0, |line| line.r_squared);
    if estimates.law("train step", TABLE, "step", Unit::Seconds, series.values(since)) {
        estimates.note(format!(
            "train steps: the tokens of the batch explain {}% of their variance, so that a law \
             stands for them and not a line",
            (explained * 100.0).round()
        ));
    }
    if measured.steps.done() > 0 {
        estimates.note(
            "evaluations and checkpoints are part of the train steps: a record does not tell them \
             apart",
        );
    }
}

fn step_line(line: &Line, secs: &[f64]) -> Item {
    const TABLE: &str = "world.trainer";
    let values =
        vec![("base_sec", number(line.base.value)), ("sec_per_token", number(line.slope.value))];
    let path = |key| format!("{TABLE}.{key}");
    let parameters = vec![(path("base_sec"), line.base), (path("sec_per_token"), line.slope)];
    Item {
        values,
        parameters,
        r_squared: Some(line.r_squared),
        observed: secs.to_vec(),
        ..Item::number("train step", TABLE, "base_sec", "line", line.base, secs.len())
    }
}

/// Exports, transfers and loads.
pub(super) fn weights(estimates: &mut Estimates, measured: &Measured, since: Time) {
    const TABLE: &str = "world.weights";
    let of = |stages: &[Stage]| stage(stages, since);
    let found = [
        ("weight export", "save", of(&measured.weights.saves)),
        ("weight transfer", "transfer", of(&measured.weights.transfers)),
        ("weight load", "load", of(&measured.weights.loads)),
    ];
    for (what, key, values) in found {
        estimates.law(what, TABLE, key, Unit::Seconds, values);
    }
}

fn stage(stages: &[Stage], since: Time) -> Values {
    let mut series = Series::default();
    for stage in stages {
        // A failure may come at any time.
        if matches!(stage.end, StageEnd::Done | StageEnd::Cut) {
            series.push_span(stage.at, stage.until, stage.end == StageEnd::Done);
        }
    }
    series.values(since)
}

/// Resets and steps of environments that the core hosted.
pub(super) fn environments(estimates: &mut Estimates, measured: &Measured, since: Time) {
    const TABLE: &str = "world.environment";
    let environments = &measured.environments;
    if !environments.is_used() {
        return;
    }
    let (resets, steps) = (environments.resets.values(since), environments.steps.values(since));
    estimates.law("environment reset", TABLE, "reset", Unit::Seconds, resets);
    estimates.law("environment step", TABLE, "step", Unit::Seconds, steps);
    let ended = || environments.ended.iter().filter(|(at, _)| *at >= since);
    let count = |how| ended().filter(|(_, ended)| *ended == how).count() as u64;
    let all = ended().count() as u64;
    let failed = count(Ended::Failed);
    estimates.share("environment failures", TABLE, "failure_share", failed, all, 0);
    let cancelled = count(Ended::Cancelled);
    estimates.share("environment hangs", TABLE, "hang_share", cancelled, all, 0);
}

/// What broke, where anything did.
pub(super) fn faults(estimates: &mut Estimates, measured: &Measured, since: Time) {
    const TABLE: &str = "world.faults";
    replicas(estimates, measured, since);
    let generations = measured.generations.all.iter().filter(|turn| turn.at >= since);
    let over: Vec<_> = generations.map(|turn| turn.over).collect();
    let of = |how| over.iter().filter(|over| **over == how).count() as u64;
    let failed = of(Over::Failed);
    let all = over.len() as u64 - of(Over::Lost);
    estimates.share("failed generations", TABLE, "failed_generation_share", failed, all, 0);
    let steps = || measured.steps.steps.iter().filter(|step| step.at >= since);
    let failed = steps().filter(|step| step.end == StepEnd::Failed).count() as u64;
    let done = steps().filter(|step| step.end == StepEnd::Done).count() as u64;
    estimates.share("failed train steps", TABLE, "failed_step_share", failed, failed + done, 0);
    let weights = &measured.weights;
    let stages = [
        ("failed exports", "failed_save_share", &weights.saves, StageEnd::Failed),
        ("failed transfers", "failed_transfer_share", &weights.transfers, StageEnd::Failed),
        ("failed loads", "failed_load_share", &weights.loads, StageEnd::Failed),
        ("broken loads", "broken_load_share", &weights.loads, StageEnd::Broken),
    ];
    for (what, key, stages, how) in stages {
        let over = || stages.iter().filter(|stage| stage.at >= since && stage.end != StageEnd::Cut);
        let failed = over().filter(|stage| stage.end == how).count() as u64;
        estimates.share(what, TABLE, key, failed, over().count() as u64, 0);
    }
}

fn replicas(estimates: &mut Estimates, measured: &Measured, since: Time) {
    const TABLE: &str = "world.faults";
    let replicas = &measured.replicas;
    // A replica that goes when nothing begins any more goes with the run.
    let last = measured.generations.all.iter().map(|turn| turn.at).max().unwrap_or(since);
    let deaths = replicas.deaths.iter().filter(|at| **at >= since && **at < last).count() as u64;
    if deaths == 0 {
        return;
    }
    let hours = replicas.up_sec / 3600.0;
    let found = rate(deaths, hours);
    let between = |per_hour: f64| 3600.0 / per_hour.max(1e-9);
    let mtbf = Parameter {
        value: between(found.value),
        low: between(found.high),
        high: between(found.low),
    };
    let (what, key) = ("time between replica deaths", "replica_mtbf_sec");
    estimates.items.push(Item::number(what, TABLE, key, "rate", mtbf, deaths as usize));
    let back = replicas.restarts.values(since);
    estimates.law("replica restart", TABLE, "replica_restart", Unit::Seconds, back);
}

/// Replicas, and how fast they are.
pub(super) fn serving(estimates: &mut Estimates, measured: &Measured, since: Time) {
    const TABLE: &str = "world.serving";
    let most = measured.replicas.most.max(1);
    let replicas =
        Item::setting("serving replicas", TABLE, "replicas", most.to_string(), most as usize);
    estimates.items.push(replicas);
    let recompute = measured.config.policy_serving.kv_on_sync == KvOnSync::Recompute;
    let Some(found) = decode(measured, since, recompute) else {
        estimates.note("too few turns were generated to fit how fast replicas are");
        return;
    };
    let path = |key| format!("{TABLE}.{key}");
    let law = Item {
        values: vec![
            ("decode_base_sec", number(found.base.value)),
            ("decode_per_sequence_sec", number(found.per_sequence.value)),
        ],
        parameters: vec![
            (path("decode_base_sec"), found.base),
            (path("decode_per_sequence_sec"), found.per_sequence),
        ],
        r_squared: Some(found.r_squared),
        ..Item::number("decode step", TABLE, "decode_base_sec", "line", found.base, found.count)
    };
    estimates.items.push(law);
    let mut add = |what, key, family, parameter: Option<_>| {
        let item = parameter.map(|it| Item::number(what, TABLE, key, family, it, found.count));
        estimates.items.extend(item);
    };
    add("prefill", "prefill_tokens_per_sec", "rate", found.prefill);
    add("decode speed during a train step", "speed_during_step", "share", found.during_step);
    add("decode speed during a load", "speed_during_load", "share", found.during_load);
    if let Some(most) = found.max_batch {
        let (what, key) = ("largest batch", "max_batch");
        estimates.items.push(Item::setting(what, TABLE, key, most.to_string(), found.count));
    }
    let (low, high) = found.batches;
    estimates.note(format!(
        "the decode law was seen at batches of {} to {}: beyond, it is a straight line that nobody \
         has measured",
        number((low * 10.0).round() / 10.0),
        number((high * 10.0).round() / 10.0)
    ));
    if found.prefill.is_some() {
        estimates.note(
            "prefill is per token of the whole prompt: what a prefix cache saves is in it, and \
             `cached_sessions` is not told apart",
        );
    }
    if found.left_out > 0 {
        estimates.note(format!(
            "{} turns whose prompt was read again as weights changed are no part of the decode law",
            found.left_out
        ));
    }
}

/// A share of votes and the like.
pub(super) fn share_item(
    what: &str,
    table: &'static str,
    key: &'static str,
    hits: f64,
    of: f64,
) -> Item {
    let found = share(hits.round().max(0.0) as u64, of.round().max(1.0) as u64);
    Item::number(what, table, key, "share", found, of.round() as usize)
}
