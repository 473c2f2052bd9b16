//! Inputs of every kind in every order, with identities that may mean nothing.

use headway_shared::config::Config;
use headway_shared::id::{GroupId, PublicationId, ReplicaId, RequestId, SessionId, StepId, VoteId};
use headway_shared::input::{
    EnvironmentOutcome, Finish, Input, Measured, Operator, Request, Segment, Segments, TurnType,
    VoteOutcome, WeightsEvent,
};
use headway_shared::time::{Span, Time};
use headway_shared::version::{DeployVersion, LearnerVersion, RolloutVersion};
use proptest::prelude::*;

use super::harness::{Bench, Watch, World, adaptive_config, any_config, any_plan, sane_config};
use super::properties::cases;

/// Four small numbers that become one input.
pub(crate) type Seed = (u8, u8, u8, u16);

pub(crate) fn seeds(most: usize) -> impl Strategy<Value = Vec<Seed>> {
    prop::collection::vec(any::<Seed>(), 1..most)
}

fn pick<'a, T>(items: impl Iterator<Item = T> + 'a, which: u8) -> Option<T> {
    let items: Vec<T> = items.collect();
    let count = items.len();
    items.into_iter().nth(usize::from(which) % count.max(1))
}

fn segments(a: u8, b: u8) -> Segments {
    let segment = |version: u8, tokens: u8| Segment {
        version: RolloutVersion::new(u32::from(version)),
        tokens: u32::from(tokens),
    };
    match b % 5 {
        0 => Segments::new(),
        1 => [segment(a % 3, 0)].into_iter().collect(),
        2 => [segment(b % 3, 2), segment(a % 7, 1)].into_iter().collect(),
        3 => [segment(a, 255)].into_iter().collect(),
        _ => [segment(0, 4)].into_iter().collect(),
    }
}

fn weights_event(a: u8, replica: ReplicaId) -> WeightsEvent {
    match a % 6 {
        0 => WeightsEvent::Saved,
        1 => WeightsEvent::SaveFailed,
        2 => WeightsEvent::Transferred(replica),
        3 => WeightsEvent::TransferFailed(replica),
        4 => WeightsEvent::Loaded(replica),
        _ => WeightsEvent::LoadFailed { replica, intact: a > 127 },
    }
}

/// The input of a seed: every other one refers to something that is under way, if it can.
pub(crate) fn input(seed: Seed, now: Time, watch: &Watch, next: &mut u64) -> Input {
    let (kind, a, b, _) = seed;
    let known = b % 2 == 0;
    let session = SessionId(u64::from(a % 6));
    let replica = ReplicaId(u32::from(a % 3));
    match kind % 25 {
        0..=4 => {
            *next += 1;
            let live = pick(watch.running(), a);
            Input::Request(Request {
                request: live.filter(|_| b % 8 == 7).unwrap_or(RequestId(*next)),
                session,
                group: (b % 3 > 0).then_some(GroupId(u64::from(a % 4))),
                turn: if b % 7 == 0 { TurnType::Side } else { TurnType::Main },
                prompt_tokens: u32::from(b),
                streamed: a % 2 == 0,
                last: a % 5 == 0,
            })
        }
        5 => Input::ClientLeft { request: RequestId(next.saturating_sub(u64::from(a % 8))) },
        6 => Input::SessionStarted { session },
        7 => Input::NextState { session },
        8 => Input::SessionEnded { session },
        9 => Input::SourceExhausted,
        10..=12 => {
            let live = pick(watch.generations.keys().copied(), a).filter(|_| known);
            let (request, attempt) = live.unwrap_or((RequestId(u64::from(a)), u32::from(b % 3)));
            let finish = [Finish::Stop, Finish::Length, Finish::Aborted, Finish::Failed];
            let first = [None, Some(Time::ZERO), Some(now), Some(Time::MAX)];
            Input::GenerationEnded {
                request,
                attempt,
                finish: finish[usize::from(a / 3 % 4)],
                first_token: first[usize::from(a / 5 % 4)],
                segments: segments(a, b),
            }
        }
        13 => {
            let live = watch.environments.iter().map(|(session, attempt)| (*session, *attempt));
            let live = pick(live, a).filter(|_| known);
            let (session, attempt) = live.unwrap_or((session, u32::from(b % 4)));
            let outcome = match a % 3 {
                0 => EnvironmentOutcome::Ready,
                1 => EnvironmentOutcome::Done,
                _ => EnvironmentOutcome::Failed,
            };
            Input::EnvironmentEnded { session, attempt, outcome }
        }
        14..=16 => {
            let live = pick(watch.votes.keys().copied(), a).filter(|_| known);
            let outcome = match a % 5 {
                0 => VoteOutcome::Invalid,
                1 => VoteOutcome::Failed,
                2 => VoteOutcome::Score(i32::MIN),
                _ => VoteOutcome::Score(i32::from(a % 3) * 1_000_000),
            };
            let vote = live.unwrap_or(VoteId(u64::from(b)));
            Input::VoteEnded { vote, outcome, tokens: u32::MAX, judge_version: u32::from(b) }
        }
        17 => {
            let step = watch.step.filter(|_| known).unwrap_or(StepId(u64::from(b)));
            Input::StepEnded { step, ok: a % 4 != 0 }
        }
        18..=19 => {
            let live = watch.publication.filter(|_| b % 4 != 0);
            let publication = live.unwrap_or(PublicationId(u64::from(b % 8)));
            Input::Weights { publication, event: weights_event(a, replica) }
        }
        20 if known => Input::ReplicaUp { replica, deploy: DeployVersion::new(u32::from(b % 16)) },
        20 => Input::ReplicaDown { replica },
        21 if a % 8 == 0 => Input::Restored { checkpoint: LearnerVersion::new(u32::from(b % 32)) },
        21 => Input::Checkpointed { version: LearnerVersion::new(u32::from(b)) },
        22 if a % 4 == 0 => Input::Operator(Operator::Pause),
        22 if a % 4 == 1 => Input::Operator(Operator::Publish),
        22 => Input::Operator(Operator::Resume),
        23 => {
            let latest = watch.step.map_or(0, |step| step.0).wrapping_sub(u64::from(b % 3));
            let step = StepId(if known { latest } else { u64::from(b) });
            let number = [None, Some(0), Some(u32::from(a)), Some(u32::MAX)];
            let number = number[usize::from(a % 4)];
            let (logprob_abs_diff, clipped_fraction, ess) = (number, number, number);
            Input::Measured(Measured { step, logprob_abs_diff, clipped_fraction, ess })
        }
        _ => Input::Tick,
    }
}

/// Gives a bench one input made of a seed, after a while.
fn poke(bench: &mut Bench, seed: Seed, next: &mut u64) {
    // Sometimes the clock stands still, sometimes it leaps.
    let millis = u64::from(seed.3);
    bench.now += Span::from_millis(if millis % 7 == 0 { millis * 40 } else { millis % 400 });
    let input = input(seed, bench.now, &bench.watch, next);
    bench.give(input);
}

fn reconfigure(bench: &mut Bench, config: &Config) {
    bench.give(Input::Operator(Operator::Reconfigure(Box::new(config.clone()))));
}

proptest! {
    #![proptest_config(cases(300, 3))]

    #[test]
    fn any_inputs_in_any_order_break_nothing(
        config in prop_oneof![sane_config(), adaptive_config()],
        others in prop::collection::vec(any_config(), 2),
        seeds in seeds(300),
    ) {
        let mut bench = Bench::bare(config);
        bench.replica_up(ReplicaId(0), 0);
        let mut next = 0;
        for (index, seed) in seeds.iter().enumerate() {
            poke(&mut bench, *seed, &mut next);
            if index % 60 == 59 {
                let config = others[index / 60 % 2].clone();
                reconfigure(&mut bench, &config);
            }
        }
    }

    #[test]
    fn a_busy_world_survives_senseless_inputs(
        config in sane_config(),
        other in prop_oneof![any_config(), adaptive_config()],
        plan in any_plan(),
        seeds in seeds(100),
    ) {
        let mut world = World::new(config, plan);
        let mut next = 1_000_000;
        for (index, seed) in seeds.iter().enumerate() {
            for _ in 0..4 {
                if !world.turn() {
                    break;
                }
            }
            let input = input(*seed, world.bench.now, &world.bench.watch, &mut next);
            world.give(input);
            if index == 50 {
                world.give(Input::Operator(Operator::Reconfigure(Box::new(other.clone()))));
            }
        }
    }
}
