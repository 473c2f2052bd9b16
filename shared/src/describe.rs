//! Inputs, actions and states in words, for those who ask why a run did what it did.

mod gate;
pub mod overview;
mod state;

pub use gate::{capacity, deliberation};
pub use state::{place, state};

use crate::action::{Action, Discard, OperatorReply, Refusal, Reply};
use crate::input::{
    EnvironmentOutcome, Finish, Input, Operator, Segment, TurnType, VoteOutcome, WeightsEvent,
};

/// A decision in words.
#[must_use]
pub fn action(action: &Action) -> String {
    match *action {
        Action::StartGeneration { request, attempt, replica, sample, resume } => {
            let how = if resume { "resume" } else { "start" };
            let what = match sample {
                Some(sample) => format!("as {sample}"),
                None => "unrecorded".to_owned(),
            };
            format!("{how} {request} on {replica}, attempt {attempt}, {what}")
        }
        Action::AbortGeneration { request, attempt, replica } => {
            format!("abort {request} on {replica}, attempt {attempt}")
        }
        Action::Refuse { request, reason, retry_after } => {
            let status = reason.status();
            format!("refuse {request} with {status}, {reason}; retry after {retry_after}")
        }
        Action::Hold { request } => format!("hold {request}"),
        Action::Reply { request, reply } => {
            let how = match reply {
                Reply::Complete => "whole",
                Reply::Partial => "cut short",
                Reply::Failed => "failed",
            };
            format!("answer {request}: {how}")
        }
        Action::ResetEnvironment { session, attempt } => {
            format!("reset the environment of {session}, attempt {attempt}")
        }
        Action::StepEnvironment { session, attempt } => {
            format!("step the environment of {session}, attempt {attempt}")
        }
        Action::CancelEnvironment { session, attempt } => {
            format!("cancel the environment of {session}, attempt {attempt}")
        }
        Action::EndSession { session } => format!("end {session}"),
        Action::StartVote { vote, sample } => format!("start {vote} on {sample}"),
        Action::CancelVote { vote } => format!("cancel {vote}"),
        Action::StartStep { step, learner, samples } => {
            format!("start train {step} from version {} with {samples} samples", learner.number())
        }
        Action::CancelStep { step } => format!("cancel train {step}"),
        Action::Publish { publication, version } => {
            format!("publish version {} as {publication}", version.number())
        }
        Action::Load { publication, replica, version, .. } => {
            format!("load version {} of {publication} on {replica}", version.number())
        }
        Action::CancelLoad { publication, replica } => {
            format!("cancel the load of {publication} on {replica}")
        }
        Action::Discard { sample, reason } => format!("discard {sample}: {reason}"),
        Action::OperatorReply { reply: OperatorReply::Done } => "tell the operator: done".into(),
        Action::OperatorReply { reply: OperatorReply::Rejected } => {
            "tell the operator: rejected".into()
        }
        Action::Fail { error } => format!("end the run: {error}"),
    }
}

/// A fact in words.
#[must_use]
pub fn input(input: &Input) -> String {
    match input {
        Input::Request(request) => {
            let turn = match request.turn {
                TurnType::Main => "main",
                TurnType::Side => "side",
            };
            let group = request.group.map_or_else(String::new, |group| format!(" of {group}"));
            let last = if request.last { ", the last turn" } else { "" };
            format!(
                "{} of {}{group} arrives: a {turn} turn behind {} tokens{last}",
                request.request, request.session, request.prompt_tokens
            )
        }
        Input::ClientLeft { request } => format!("the client of {request} leaves"),
        Input::SessionStarted { session } => format!("{session} asks for an environment"),
        Input::NextState { session } => format!("the next state of {session} arrives"),
        Input::SessionEnded { session } => format!("{session} ends"),
        Input::SourceExhausted => "no new session will come".to_owned(),
        Input::GenerationEnded { request, attempt, finish, segments: parts, .. } => {
            let how = match finish {
                Finish::Stop => "ends",
                Finish::Length => "ends at its token limit",
                Finish::Aborted => "is aborted",
                Finish::Failed => "fails",
            };
            format!("the generation of {request}, attempt {attempt}, {how}: {}", segments(parts))
        }
        Input::EnvironmentEnded { session, attempt, outcome } => {
            let how = match outcome {
                EnvironmentOutcome::Ready => "is ready",
                EnvironmentOutcome::Done => "is done",
                EnvironmentOutcome::Failed => "failed",
            };
            format!("the environment of {session}, attempt {attempt}, {how}")
        }
        Input::VoteEnded { vote, outcome, .. } => format!("{vote} {}", vote_outcome(*outcome)),
        Input::StepEnded { step, ok: true } => format!("train {step} ends"),
        Input::StepEnded { step, ok: false } => format!("train {step} fails"),
        Input::Weights { publication, event } => match event {
            WeightsEvent::Saved => format!("{publication} is saved"),
            WeightsEvent::SaveFailed => format!("{publication} cannot be saved"),
            WeightsEvent::Transferred(replica) => format!("{publication} is on {replica}"),
            WeightsEvent::TransferFailed(replica) => {
                format!("{publication} cannot be brought to {replica}")
            }
            WeightsEvent::Loaded(replica) => format!("{replica} holds {publication}"),
            WeightsEvent::LoadFailed { replica, intact } => {
                let old = if *intact { "its old weights are whole" } else { "it has none" };
                format!("{replica} cannot load {publication}: {old}")
            }
        },
        Input::ReplicaUp { replica, deploy } => {
            format!("{replica} is up with version {}", deploy.number())
        }
        Input::ReplicaDown { replica } => format!("{replica} is down"),
        Input::Checkpointed { version } => {
            format!("version {} is checkpointed", version.number())
        }
        Input::Restored { checkpoint } => {
            format!("the learner is back at version {}", checkpoint.number())
        }
        Input::Operator(Operator::Reconfigure(config)) => {
            format!("an operator reconfigures (digest {})", config.digest())
        }
        Input::Operator(Operator::Pause) => "an operator pauses the run".to_owned(),
        Input::Operator(Operator::Resume) => "an operator resumes the run".to_owned(),
        Input::Operator(Operator::Publish) => "an operator wants a publication".to_owned(),
        Input::Measured(measured) => {
            let share = |value: u32| (f64::from(value) / 1e6).to_string();
            let words = [
                ("log-prob difference", measured.logprob_abs_diff),
                ("clipped fraction", measured.clipped_fraction),
                ("effective sample size", measured.ess),
            ];
            let words = words.map(|(name, value)| Some(format!("{name} {}", share(value?))));
            let words: Vec<String> = words.into_iter().flatten().collect();
            format!("train {} has measured: {}", measured.step, words.join(", "))
        }
        Input::CommitFailed => "the record cannot be written".to_owned(),
        Input::Tick => "time passes".to_owned(),
    }
}

/// Runs of tokens with their versions.
#[must_use]
pub fn segments(segments: &[Segment]) -> String {
    let one =
        |part: &Segment| format!("{} tokens of version {}", part.tokens, part.version.number());
    match segments {
        [] => "no tokens".to_owned(),
        parts => parts.iter().map(one).collect::<Vec<_>>().join(", then "),
    }
}

/// What a vote said.
#[must_use]
pub fn vote_outcome(outcome: VoteOutcome) -> String {
    match outcome {
        VoteOutcome::Score(score) => format!("scores {}", f64::from(score) / 1e6),
        VoteOutcome::Invalid => "is invalid".to_owned(),
        VoteOutcome::Failed => "fails".to_owned(),
    }
}

/// Why a request was refused, in a sentence.
#[must_use]
pub const fn refusal(reason: Refusal) -> &'static str {
    match reason {
        Refusal::Stale => "429: the staleness bound left no place",
        Refusal::QueueFull => "429: a queue had no room to reserve",
        Refusal::Concurrency => "429: max_concurrent_rollouts were running",
        Refusal::HoldExpired => "429: it was held for hold_sec and found no place",
        Refusal::WeightSync => "503: weights were being updated",
        Refusal::NoReplica => "503: no replica held whole weights",
        Refusal::Paused => "503: an operator had paused the run",
        Refusal::Ended => "503: the run had ended",
        Refusal::BadGroup => "400: it named no group that takes members",
    }
}

/// Why a sample was discarded, in a sentence.
#[must_use]
pub const fn discard(reason: Discard) -> &'static str {
    match reason {
        Discard::Late => "older than max_head_off_policyness, under a strict bound",
        Discard::StaleFilter => "older than stale_filter_steps",
        Discard::StaleParked => {
            "parked, and too old before its next state had come and a place was free"
        }
        Discard::Aborted => "its generation was aborted by a weight sync",
        Discard::ClientLeft => "its client left",
        Discard::GenerationFailed => {
            "the engine failed, or took longer than generation_timeout_sec"
        }
        Discard::ReplicaLost => "its replica went down",
        Discard::BadStamp => "its version stamps are impossible",
        Discard::Empty => "it has no tokens",
        Discard::NoNextState => "its session ended without a next state",
        Discard::EnvironmentFailed => "its environment failed",
        Discard::JudgeFailed => "too few votes were valid",
        Discard::Tie => "its votes were a tie",
        Discard::ZeroScore => "its score was zero",
        Discard::RolloutQueueFull => "the rollout queue was full",
        Discard::OutputQueueFull => "the output queue was full",
        Discard::GroupTooSmall => "its group kept fewer than min_group_size members",
        Discard::Surplus => "a step or a drain took it and kept only a batch",
        Discard::StepFailed => "its train step failed more than train_retries times",
        Discard::LostWeights => "the policy that generated it no longer exists: a rollback",
        Discard::Straggler => "its group waited for it no longer",
        Discard::ZeroVariance => {
            "all scores of its group were equal, and the filter drops such groups"
        }
    }
}
