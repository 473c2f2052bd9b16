//! What clients, environments and judges of the simulated world do.

use std::collections::BTreeMap;

use headway_shared::action::{Action, Refusal};
use headway_shared::input::{EnvironmentOutcome, Input, VoteOutcome};
use headway_shared::time::{Span, Time};

use super::world_support::{Moment, SESSIONS, SLOTS, load, watch};

fn requests(moments: &[Moment]) -> Vec<(Time, headway_shared::input::Request)> {
    moments
        .iter()
        .filter_map(|(time, input, _)| match input {
            Input::Request(request) => Some((*time, *request)),
            _ => None,
        })
        .collect()
}

#[test]
fn two_policies_at_one_seed_see_the_same_sessions() {
    let end = Time::from_secs(3600);
    let strict = watch(&load(SESSIONS, &["max_head_off_policyness=0"]), end).0;
    let loose = watch(&load(SESSIONS, &["max_head_off_policyness=8"]), end).0;
    let lengths = |moments: &[Moment]| {
        let mut by_session: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for (_, request) in requests(moments) {
            let prompts = by_session.entry(request.session.0).or_default();
            if prompts.last() != Some(&request.prompt_tokens) {
                prompts.push(request.prompt_tokens);
            }
        }
        by_session
    };
    let (strict, loose) = (lengths(&strict), lengths(&loose));
    assert!(strict.len() > 80);
    for (session, prompts) in &strict {
        let other = &loose[session];
        let common = prompts.len().min(other.len());
        assert_eq!(prompts[..common], other[..common], "session {session}");
    }
}

/// How long each vote (by request and turn of the vote) and each train step took.
fn times(moments: &[Moment]) -> (BTreeMap<(u64, u32), Span>, Vec<Span>) {
    let (mut requests, mut started) = (BTreeMap::new(), BTreeMap::new());
    let (mut counts, mut votes): (BTreeMap<u64, u32>, _) = (BTreeMap::new(), BTreeMap::new());
    let (mut step, mut steps) = (Time::ZERO, Vec::new());
    for (now, input, actions) in moments {
        match input {
            Input::VoteEnded { vote, outcome: VoteOutcome::Score(_), .. } => {
                if let Some((place, since)) = started.remove(&vote.0) {
                    votes.insert(place, now.since(since));
                }
            }
            Input::StepEnded { .. } => steps.push(now.since(step)),
            _ => {}
        }
        for action in actions {
            match *action {
                Action::StartGeneration { request, sample: Some(sample), .. } => {
                    requests.insert(sample.0, request.0);
                }
                Action::StartVote { vote, sample } => {
                    let request = requests[&sample.0];
                    let count = counts.entry(request).or_default();
                    started.insert(vote.0, ((request, *count), *now));
                    *count += 1;
                }
                Action::StartStep { .. } => step = *now,
                _ => {}
            }
        }
    }
    (votes, steps)
}

#[test]
fn two_policies_at_one_seed_see_the_same_times_of_judge_and_trainer() {
    let run = |eta: &str, queue: &str| {
        let set = [
            eta,
            queue,
            "over_limit=\"hold\"",
            "votes=2",
            "aggregate=\"mean\"",
            "world.judge.vote={ kind = \"lognormal\", median_sec = 3, p99_sec = 20 }",
            "world.trainer.step={ kind = \"lognormal\", median_sec = 5, p99_sec = 40 }",
        ];
        times(&watch(&load(SLOTS, &set), Time::from_secs(3000)).0)
    };
    let (votes, steps) = run("max_head_off_policyness=0", "queue_type=\"fifo\"");
    let (others, other_steps) = run("max_head_off_policyness=4", "queue_type=\"lifo\"");
    let common = steps.len().min(other_steps.len());
    assert!(common > 50 && steps != other_steps);
    assert_eq!(steps[..common], other_steps[..common]);
    let same: Vec<_> = votes.iter().filter(|(place, _)| others.contains_key(place)).collect();
    assert!(same.len() > 200, "{} votes", same.len());
    for (place, time) in same {
        assert_eq!(*time, others[place], "{place:?}");
    }
}

#[test]
fn a_refused_client_tries_as_the_official_one_does_and_its_user_comes_back_later() {
    let set = [
        "world.clients.arrivals={ kind = \"users\", users = 1 }",
        "world.clients.retries.return_after={ kind = \"constant\", sec = 300 }",
        "world.faults.at=[{ time_sec = 0, kind = \"operator_pause\" }]",
    ];
    let moments = watch(&load(SESSIONS, &set), Time::from_secs(1000)).0;
    let refused =
        moments.iter().flat_map(|(.., actions)| actions).filter_map(|action| match action {
            Action::Refuse { reason: Refusal::Paused, retry_after, .. } => Some(*retry_after),
            _ => None,
        });
    let retry_after = refused.max().unwrap();
    assert!(retry_after <= Span::from_secs(60));
    let times: Vec<Time> = requests(&moments).iter().map(|(time, _)| *time).collect();
    let waits: Vec<Span> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    // Three tries, then the user pauses.
    assert!(waits.len() >= 6, "{waits:?}");
    assert_eq!((waits[2], waits[5]), (Span::from_secs(300), Span::from_secs(300)), "{waits:?}");
    assert!(waits[0] <= Span::from_secs(60) && waits[1] <= Span::from_secs(60), "{waits:?}");
}

#[test]
fn a_client_that_waits_too_long_leaves() {
    let set = [
        "world.clients.retries.timeout_sec=1",
        "world.clients.output_tokens={ kind = \"constant\", value = 500 }",
        "world.clients.retries.max_retries=0",
        "world.clients.retries.return_share=0",
    ];
    let moments = watch(&load(SESSIONS, &set), Time::from_secs(600)).0;
    let asked = requests(&moments).len();
    let left = moments.iter().filter(|(_, input, _)| matches!(input, Input::ClientLeft { .. }));
    assert!(asked > 10);
    // A turn takes at least 5 s: everyone leaves, but for those who have just come.
    assert!(left.count() + 2 >= asked);
}

#[test]
fn a_slot_asks_for_its_next_task_as_soon_as_its_turn_has_ended() {
    let set = ["policy_training.gate=\"none\"", "sync_mode=\"in_flight\""];
    let moments = watch(&load(SLOTS, &set), Time::from_secs(95)).0;
    let requests = requests(&moments);
    for (index, (time, request)) in requests.iter().enumerate() {
        assert_eq!(request.session.0, index as u64);
        // Eight slots, 10 s a turn.
        assert_eq!(*time, Time::from_secs(index as u64 / 8 * 10), "request {index}");
    }
    assert_eq!(requests.len(), 80);
}

#[test]
fn the_tasks_of_a_group_follow_each_other() {
    let set = ["group_size=4", "batch_size=1"];
    let moments = watch(&load(SLOTS, &set), Time::from_secs(300)).0;
    let requests = requests(&moments);
    assert!(requests.len() > 40);
    for (_, request) in requests {
        assert_eq!(request.group.unwrap().0, request.session.0 / 4);
    }
}

#[test]
fn an_environment_answers_every_turn_until_the_episode_is_over() {
    let set = [
        "world.clients.environment=true",
        "world.clients.turns={ kind = \"constant\", value = 3 }",
        "world.clients.growth_tokens={ kind = \"constant\", value = 7 }",
        "world.environment.reset={ kind = \"constant\", sec = 2 }",
        "world.environment.step={ kind = \"constant\", sec = 1 }",
        "judge_needs=\"next_state\"",
        "policy_training.gate=\"none\"",
    ];
    let (moments, core) = watch(&load(SLOTS, &set), Time::from_secs(400));
    let first: Vec<(u64, u32)> = requests(&moments)
        .iter()
        .filter(|(_, request)| request.session.0 == 0)
        .map(|(time, request)| (time.as_nanos() / 1_000_000_000, request.prompt_tokens))
        .collect();
    assert_eq!(first, [(2, 50), (13, 157), (24, 264)]);
    let done = moments.iter().filter(|(_, input, _)| {
        matches!(input, Input::EnvironmentEnded { outcome: EnvironmentOutcome::Done, .. })
    });
    assert!(done.count() > 20);
    assert!(core.ledger().trained > 0 && core.ledger().discarded_total() == 0);
}

#[test]
fn an_endpoint_serves_no_more_votes_at_once_than_its_quota() {
    let set = [
        "world.judge.quota=2",
        "world.judge.vote={ kind = \"constant\", sec = 20 }",
        "judge_concurrency=16",
        "judge_timeout_sec=1000",
        "policy_training.gate=\"none\"",
    ];
    let moments = watch(&load(SLOTS, &set), Time::from_secs(600)).0;
    let ends: Vec<u64> = moments
        .iter()
        .filter(|(_, input, _)| {
            matches!(input, Input::VoteEnded { outcome: VoteOutcome::Score(_), .. })
        })
        .map(|(time, ..)| time.as_nanos() / 1_000_000_000)
        .collect();
    let expected: Vec<u64> = (0..ends.len() as u64).map(|vote| 30 + vote / 2 * 20).collect();
    assert!(ends.len() > 50);
    assert_eq!(ends, expected);
}

#[test]
fn votes_beyond_the_quota_time_out_and_fewer_at_once_cure_it() {
    let trouble = [
        "world.judge.quota=2",
        "world.judge.vote={ kind = \"constant\", sec = 20 }",
        "world.judge.finishes_abandoned=true",
        "judge_concurrency=16",
        "judge_timeout_sec=30",
    ];
    let failed = |set: &[&str]| {
        let (_, core) = watch(&load(SLOTS, set), Time::from_secs(3000));
        let ledger = core.ledger();
        ledger.discarded_total() as f64 / ledger.admitted as f64
    };
    let mut cure = trouble;
    cure[3] = "judge_concurrency=2";
    assert!(failed(&trouble) > 0.5);
    assert!(failed(&cure) == 0.0);
}

#[test]
fn a_slot_that_takes_whole_groups_asks_for_the_next_when_the_last_turn_of_one_has_ended() {
    let set = [
        "world.clients.slots=2",
        "world.clients.whole_groups=true",
        "world.clients.output_tokens={ kind = \"uniform\", min = 10, max = 1000 }",
        "policy_training.gate=\"none\"",
        "policy_serving.sync_mode=\"in_flight\"",
        "policy_training.group_size=4",
        "policy_training.min_group_size=4",
    ];
    let (moments, core) = watch(&load(SLOTS, &set), Time::from_secs(2000));
    let mut group_of: BTreeMap<u64, u64> = BTreeMap::new();
    let mut open: BTreeMap<u64, u32> = BTreeMap::new();
    let mut begun = 0;
    for (_, input, _) in &moments {
        match input {
            Input::Request(request) => {
                let group = request.group.unwrap().0;
                begun += u32::from(!open.contains_key(&group));
                group_of.insert(request.request.0, group);
                *open.entry(group).or_default() += 1;
                assert!(open.len() <= 2, "a third group while two are generated");
            }
            Input::GenerationEnded { request, .. } => {
                let group = group_of[&request.0];
                let left = open.get_mut(&group).unwrap();
                *left -= 1;
                if *left == 0 {
                    open.remove(&group);
                }
            }
            _ => {}
        }
    }
    assert!(begun > 20 && core.ledger().trained > 60, "{begun}");
}
