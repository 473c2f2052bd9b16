//! What a user of the replica model sees: who leaves when, with which segments.

use headway_shared::config::KvOnSync;
use headway_shared::id::SessionId;
use headway_shared::time::{Span, Time};
use headway_shared::version::DeployVersion;
use headway_sim::world::replica::{DecodeLaw, Ended, Outcome, Replica, ReplicaSpec, Turn};

/// A token takes 1 s alone, 2 s in a batch of 2, and so on: processor sharing.
fn sharing() -> ReplicaSpec {
    ReplicaSpec::new(DecodeLaw::linear(0.0, 1.0).unwrap())
}

/// A token takes 1 s in any batch.
fn level() -> ReplicaSpec {
    ReplicaSpec::new(DecodeLaw::linear(1.0, 0.0).unwrap())
}

fn replica(spec: ReplicaSpec) -> Replica {
    Replica::new(spec, DeployVersion::new(1))
}

fn turn(handle: u64, prompt_tokens: u32, tokens: u32) -> Turn {
    Turn { handle, session: None, prompt_tokens, tokens }
}

fn secs(secs: u64) -> Time {
    Time::from_secs(secs)
}

/// Runs the replica until nothing is left to do, or `until`; the ends with their times in ms.
fn run(replica: &mut Replica, until: Time) -> Vec<(u64, Ended)> {
    let mut ends = Vec::new();
    let mut now = Time::ZERO;
    loop {
        while let Some(ended) = replica.poll_ended() {
            ends.push((now.as_nanos() / 1_000_000, ended));
        }
        match replica.poll_wake() {
            Some(wake) if wake.at <= until => {
                now = wake.at;
                replica.wake(now, wake.epoch);
            }
            _ => return ends,
        }
    }
}

fn times(ends: &[(u64, Ended)]) -> Vec<(u64, u64)> {
    ends.iter().map(|(at, ended)| (ended.handle, *at)).collect()
}

fn segments(ended: &Ended) -> Vec<(u32, u32)> {
    ended.segments.iter().map(|segment| (segment.version.number(), segment.tokens)).collect()
}

#[test]
fn a_batch_shares_the_hardware_and_speeds_up_when_one_leaves() {
    let mut replica = replica(sharing());
    replica.submit(Time::ZERO, turn(1, 0, 10));
    replica.submit(Time::ZERO, turn(2, 0, 30));
    // Together until both have 10 tokens, at 20 s; then 20 more alone.
    assert_eq!(times(&run(&mut replica, Time::MAX)), [(1, 20_000), (2, 40_000)]);
}

#[test]
fn one_that_joins_later_slows_those_that_run() {
    let mut replica = replica(sharing());
    replica.submit(Time::ZERO, turn(1, 0, 10));
    let first = replica.poll_wake().unwrap();
    replica.submit(secs(5), turn(2, 0, 10));
    assert_eq!(replica.poll_wake(), None, "the earlier wake is left to come");
    replica.wake(first.at, first.epoch);
    assert_eq!(replica.poll_ended(), None);
    // 5 tokens alone; 5 more at half speed; the other then has 5 to go, alone.
    assert_eq!(times(&run(&mut replica, Time::MAX)), [(1, 15_000), (2, 20_000)]);
}

#[test]
fn a_wake_of_an_older_epoch_does_nothing() {
    let mut replica = replica(sharing());
    replica.submit(Time::ZERO, turn(1, 0, 10));
    let ticket = replica.submit(Time::ZERO, turn(2, 0, 10));
    let slow = replica.poll_wake().unwrap();
    assert!(replica.abort(secs(1), ticket));
    let fast = replica.poll_wake().unwrap();
    assert!(fast.at < slow.at);
    replica.wake(fast.at, fast.epoch);
    let ends = std::iter::from_fn(|| replica.poll_ended()).count();
    replica.wake(slow.at, slow.epoch);
    assert_eq!((ends, replica.poll_ended(), replica.poll_wake()), (2, None, None));
}

#[test]
fn a_full_batch_lets_the_others_wait_in_their_order() {
    let mut replica = replica(ReplicaSpec { max_batch: 1, ..level() });
    for handle in 1..=3 {
        replica.submit(Time::ZERO, turn(handle, 0, 10));
    }
    assert_eq!((replica.started(), replica.waiting()), (1, 2));
    let ends = run(&mut replica, Time::MAX);
    assert_eq!(times(&ends), [(1, 10_000), (2, 20_000), (3, 30_000)]);
    assert_eq!(ends[2].1.first_token, Some(secs(20)));
}

#[test]
fn prefill_is_one_at_a_time_and_reads_only_what_is_not_cached() {
    let spec = ReplicaSpec { prefill_tokens_per_sec: Some(10.0), cached_sessions: 4, ..level() };
    let mut replica = replica(spec);
    let session = Some(SessionId(7));
    replica.submit(Time::ZERO, Turn { session, ..turn(1, 100, 20) });
    replica.submit(Time::ZERO, turn(2, 50, 20));
    assert_eq!(times(&run(&mut replica, Time::MAX)), [(1, 30_000), (2, 35_000)]);
    // The context is the first turn's 120 tokens and 30 new ones.
    replica.submit(secs(100), Turn { session, ..turn(3, 150, 10) });
    assert_eq!(times(&run(&mut replica, Time::MAX)), [(3, 113_000)]);
    assert_eq!((replica.work().prefilled_tokens, replica.work().cached_tokens), (180, 120));
}

#[test]
fn a_swap_closes_segments_and_keeping_the_cache_costs_no_time() {
    let mut replica = replica(level());
    replica.submit(Time::ZERO, turn(1, 0, 10));
    replica.swap_weights(Time::from_nanos(3_500_000_000), DeployVersion::new(2), KvOnSync::Keep);
    let ends = run(&mut replica, Time::MAX);
    assert_eq!(times(&ends), [(1, 10_000)]);
    assert_eq!(segments(&ends[0].1), [(1, 3), (2, 7)]);
    assert_eq!(ends[0].1.first_token, Some(Time::ZERO));
}

#[test]
fn a_swap_with_recomputation_reads_the_context_again() {
    let spec = ReplicaSpec { prefill_tokens_per_sec: Some(10.0), ..level() };
    let mut replica = replica(spec);
    replica.submit(Time::ZERO, turn(1, 20, 10));
    // Prefilled at 2 s; 4 whole tokens at 6.5 s; 24 tokens are read again until 8.9 s.
    replica.swap_weights(
        Time::from_nanos(6_500_000_000),
        DeployVersion::new(2),
        KvOnSync::Recompute,
    );
    let ends = run(&mut replica, Time::MAX);
    assert_eq!(times(&ends), [(1, 14_900)]);
    assert_eq!(segments(&ends[0].1), [(1, 4), (2, 6)]);
}

#[test]
fn a_turn_without_a_whole_token_belongs_to_the_new_weights() {
    let mut replica = replica(level());
    replica.submit(Time::ZERO, turn(1, 0, 2));
    let swap = Time::from_nanos(900_000_000);
    replica.swap_weights(swap, DeployVersion::new(2), KvOnSync::Keep);
    let ends = run(&mut replica, Time::MAX);
    assert_eq!(segments(&ends[0].1), [(2, 2)]);
    assert_eq!(ends[0].1.first_token, Some(swap));
}

#[test]
fn frozen_sequences_go_on_where_they_were() {
    let mut replica = replica(level());
    replica.submit(Time::ZERO, turn(1, 0, 10));
    replica.freeze(secs(4));
    replica.submit(secs(5), turn(2, 0, 3));
    assert!(run(&mut replica, secs(1000)).is_empty());
    replica.unfreeze(secs(104));
    assert_eq!(times(&run(&mut replica, Time::MAX)), [(2, 107_000), (1, 110_000)]);
}

#[test]
fn a_slower_replica_takes_longer_from_then_on() {
    let mut replica = replica(level());
    replica.submit(Time::ZERO, turn(1, 0, 10));
    replica.set_speed(secs(5), 0.5);
    assert_eq!(times(&run(&mut replica, Time::MAX)), [(1, 15_000)]);
}

#[test]
fn an_abort_gives_what_there_is_and_only_once() {
    let mut replica = replica(level());
    let ticket = replica.submit(Time::ZERO, turn(1, 0, 10));
    assert!(replica.abort(Time::from_nanos(2_700_000_000), ticket));
    assert!(!replica.abort(secs(3), ticket));
    let ended = replica.poll_ended().unwrap();
    assert_eq!((ended.outcome, segments(&ended)), (Outcome::Aborted, vec![(1, 2)]));
    let reused = replica.submit(secs(4), turn(2, 0, 10));
    assert!(!replica.abort(secs(5), ticket), "the place is another turn's now");
    assert!(replica.abort(secs(5), reused));
}

#[test]
fn what_is_due_at_an_instant_is_complete_before_an_abort_of_that_instant() {
    let mut replica = replica(level());
    let ticket = replica.submit(Time::ZERO, turn(1, 0, 10));
    assert!(!replica.abort(secs(10), ticket));
    assert_eq!(replica.poll_ended().map(|ended| ended.outcome), Some(Outcome::Complete));
}

#[test]
fn a_dead_replica_loses_everything_even_its_prefix_cache() {
    let spec = ReplicaSpec {
        prefill_tokens_per_sec: Some(10.0),
        cached_sessions: 4,
        max_batch: 1,
        ..level()
    };
    let mut replica = replica(spec);
    let session = Some(SessionId(7));
    replica.submit(Time::ZERO, Turn { session, ..turn(1, 0, 10) });
    run(&mut replica, Time::MAX);
    replica.submit(secs(20), turn(2, 0, 10));
    replica.submit(secs(20), turn(3, 0, 10));
    replica.kill(secs(25));
    let lost: Vec<_> = std::iter::from_fn(|| replica.poll_ended()).collect();
    assert!(lost.iter().all(|ended| ended.outcome == Outcome::Lost));
    assert_eq!(lost.iter().map(segments).collect::<Vec<_>>(), [vec![(1, 5)], vec![]]);
    assert_eq!(lost[1].first_token, None);
    replica.submit(secs(30), Turn { session, ..turn(4, 10, 1) });
    assert_eq!(times(&run(&mut replica, Time::MAX)), [(4, 32_000)]);
}

#[test]
fn a_full_kv_cache_preempts_the_sequence_that_started_last() {
    let spec = ReplicaSpec { kv_tokens: Some(100), ..level() };
    let mut replica = replica(spec);
    replica.submit(Time::ZERO, turn(1, 20, 60));
    replica.submit(Time::ZERO, turn(2, 20, 60));
    // 40 tokens of prompts and 2 a second: full at 30 s. The second waits until the first leaves
    // at 60 s, and then has 30 tokens to go.
    let ends = run(&mut replica, Time::MAX);
    assert_eq!(times(&ends), [(1, 60_000), (2, 90_000)]);
    assert_eq!(replica.work().preemptions, 1);
    assert_eq!(segments(&ends[1].1), [(1, 60)]);
    assert_eq!(ends[1].1.first_token, Some(Time::ZERO));
}

#[test]
fn a_lone_sequence_runs_even_beyond_the_budget() {
    let mut replica = replica(ReplicaSpec { kv_tokens: Some(10), ..level() });
    replica.submit(Time::ZERO, turn(1, 20, 60));
    assert_eq!(times(&run(&mut replica, Time::MAX)), [(1, 60_000)]);
    assert_eq!(replica.work().preemptions, 0);
}

#[test]
fn idle_contexts_give_way_before_anything_is_preempted() {
    let spec = ReplicaSpec { kv_tokens: Some(100), cached_sessions: 8, ..level() };
    let mut replica = replica(spec);
    let session = Some(SessionId(7));
    replica.submit(Time::ZERO, Turn { session, ..turn(1, 40, 10) });
    run(&mut replica, Time::MAX);
    replica.submit(secs(100), turn(2, 20, 60));
    run(&mut replica, Time::MAX);
    assert_eq!(replica.work().preemptions, 0);
    replica.submit(secs(200), Turn { session, ..turn(3, 60, 1) });
    assert_eq!(replica.work().cached_tokens, 0, "the session's context was dropped");
}

#[test]
fn progress_keeps_its_precision_in_a_batch_that_is_never_empty_for_a_year() {
    let mut replica = replica(level());
    replica.submit(Time::ZERO, turn(1, 0, u32::MAX));
    let year = Time::from_secs(365 * 86_400);
    replica.submit(year, turn(2, 0, 1_000));
    let expected = year + Span::from_secs(1_000);
    assert_eq!(replica.poll_wake().map(|wake| wake.at), Some(expected));
}
