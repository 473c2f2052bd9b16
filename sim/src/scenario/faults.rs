//! `[world.faults]` out of a scenario file.

use headway_shared::config::Reader;
use headway_shared::time::{Span, Time};

use super::columns::Columns;
use super::distribution::{Unit, optional};
use super::words::words;
use super::world::{SHARE, Variant};
use crate::world::settings::{Fault, Faults, Scheduled, WeightsStage};

words! {
    Kind {
        ReplicaDown = "replica_down", "A replica goes, for `lasting_sec` or for good.";
        ReplicaUp = "replica_up", "A replica comes, or comes back.";
        JudgeHang = "judge_hang", "No judge answers for `lasting_sec`.";
        JudgeSlow = "judge_slow", "Votes that start within `lasting_sec` take `factor` times as long.";
        EqualScores = "equal_scores", "Every score is 1 for `lasting_sec`.";
        TrainerPause = "trainer_pause", "A step takes `lasting_sec` longer.";
        SaveFails = "save_fails", "The next exports of weights fail.";
        TransferFails = "transfer_fails", "The next transfers fail.";
        LoadFails = "load_fails", "The next loads fail, and the old weights are whole.";
        LoadBreaks = "load_breaks", "The next loads break half-way.";
        LoadHangs = "load_hangs", "The next loads never end.";
        Rollback = "rollback", "The learner goes back by `steps` versions.";
        OperatorPause = "operator_pause", "An operator closes the gate.";
        OperatorResume = "operator_resume", "An operator opens it.";
        Reconfigure = "reconfigure", "An operator changes the configuration by `set`.";
    }
}

/// Reads `[world.faults]`.
pub(super) fn read(
    mut table: Reader<'_>,
    columns: &mut Columns<'_>,
    variant: Variant<'_>,
) -> Faults {
    let listed = table.tables("at").into_iter();
    let mut at: Vec<Scheduled> = listed.map(|item| scheduled(item, variant)).collect();
    at.sort_by_key(|scheduled| scheduled.time);
    let faults = Faults {
        replica_mtbf: table.span_sec("replica_mtbf_sec", Span::ZERO),
        replica_restart: optional(&mut table, "replica_restart", Unit::Seconds, 300.0, columns),
        restart_newest: table.boolean("restart_newest", true),
        failed_generation: table.float("failed_generation_share", 0.0, SHARE),
        lost_completion: table.float("lost_completion_share", 0.0, SHARE),
        duplicate_completion: table.float("duplicate_completion_share", 0.0, SHARE),
        failed_step: table.float("failed_step_share", 0.0, SHARE),
        failed_save: table.float("failed_save_share", 0.0, SHARE),
        failed_transfer: table.float("failed_transfer_share", 0.0, SHARE),
        failed_load: table.float("failed_load_share", 0.0, SHARE),
        broken_load: table.float("broken_load_share", 0.0, SHARE),
        at,
    };
    table.finish();
    faults
}

fn scheduled(mut table: Reader<'_>, variant: Variant<'_>) -> Scheduled {
    table.require("time_sec", "3600");
    table.require("kind", "\"replica_down\"");
    let time = Time::ZERO + table.span_sec("time_sec", Span::ZERO);
    let fault = match table.choice("kind", Kind::OperatorResume) {
        Kind::ReplicaDown => {
            let lasting = table.has("lasting_sec").then(|| lasting(&mut table));
            Fault::ReplicaDown { replica: replica(&mut table), lasting }
        }
        Kind::ReplicaUp => Fault::ReplicaUp { replica: replica(&mut table) },
        Kind::JudgeHang => Fault::JudgeHang { lasting: lasting(&mut table) },
        Kind::JudgeSlow => {
            table.require("factor", "5.0");
            let factor = table.float("factor", 1.0, 0.0..=1e6);
            Fault::JudgeSlow { lasting: lasting(&mut table), factor }
        }
        Kind::EqualScores => Fault::EqualScores { lasting: lasting(&mut table) },
        Kind::TrainerPause => Fault::TrainerPause { lasting: lasting(&mut table) },
        Kind::SaveFails => weights(&mut table, WeightsStage::Save),
        Kind::TransferFails => weights(&mut table, WeightsStage::Transfer),
        Kind::LoadFails => weights(&mut table, WeightsStage::Load),
        Kind::LoadBreaks => weights(&mut table, WeightsStage::Broken),
        Kind::LoadHangs => weights(&mut table, WeightsStage::Hang),
        Kind::Rollback => {
            table.require("steps", "20");
            Fault::Rollback { steps: table.u32("steps", 1, 1..=u32::MAX) }
        }
        Kind::OperatorPause => Fault::OperatorPause,
        Kind::OperatorResume => Fault::OperatorResume,
        Kind::Reconfigure => reconfigure(&mut table, variant),
    };
    table.finish();
    Scheduled { time, fault }
}

fn reconfigure(table: &mut Reader<'_>, variant: Variant<'_>) -> Fault {
    table.require("set", "[\"max_head_off_policyness=4\"]");
    match variant(&table.strings("set")) {
        Ok(config) => Fault::Reconfigure(Box::new(config)),
        Err(problems) => {
            let first = problems.items.first();
            let what = first.map_or("", |problem| &problem.message);
            let help = first.and_then(|problem| problem.help.as_deref());
            table.error(
                "set",
                format!("no valid configuration: {what}"),
                help.unwrap_or("set other values"),
            );
            Fault::OperatorResume
        }
    }
}

fn replica(table: &mut Reader<'_>) -> u32 {
    table.require("replica", "0");
    table.u32("replica", 0, 0..=9_999)
}

fn lasting(table: &mut Reader<'_>) -> Span {
    table.require("lasting_sec", "300");
    table.span_sec("lasting_sec", Span::ZERO)
}

fn weights(table: &mut Reader<'_>, stage: WeightsStage) -> Fault {
    Fault::WeightsFail { stage, times: table.u32("times", 1, 1..=u32::MAX) }
}
