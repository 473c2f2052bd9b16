//! Queues whose answers are known, through the kernel and through the replica model.
//!
//! Each mean is compared with its formula twice: within 1%, and within three standard errors,
//! which batch means estimate.

use std::collections::VecDeque;

use headway_shared::digest::Digest;
use headway_shared::time::{Span, Time};
use headway_shared::version::DeployVersion;
use headway_sim::kernel::EventQueue;
use headway_sim::kernel::random::{Component, Key, Stream};
use headway_sim::kernel::sampler::Distribution;
use headway_sim::stats::{mean, variance};
use headway_sim::world::replica::{DecodeLaw, Replica, ReplicaSpec, Turn};

const BATCHES: usize = 50;

fn agrees(what: &str, batches: &[f64], theory: f64) {
    let found = mean(batches).unwrap();
    let error = (variance(batches).unwrap() / batches.len() as f64).sqrt();
    let off = (found - theory).abs();
    assert!(off < 0.01 * theory, "{what}: {found}, theory {theory}: more than 1% off");
    assert!(off < 3.0 * error, "{what}: {found}, theory {theory}, standard error {error}");
    assert!(error < 0.01 * theory, "{what}: a standard error of {error} proves nothing");
}

/// The means of equal runs of values.
fn batch_means(values: &[f64]) -> Vec<f64> {
    values.chunks_exact(values.len() / BATCHES).map(|batch| mean(batch).unwrap()).collect()
}

fn streams(seed: u64) -> (Stream, Stream) {
    let key = Key::new(seed, Digest::of(b"theory"), 0);
    (key.stream(Component::Arrival, 0), key.stream(Component::Request, 0))
}

fn span(secs: f64) -> Span {
    Span::from_secs_f64(secs).unwrap()
}

/// An M/M/c queue with service rate 1: per batch, the mean number in the system and the mean wait
/// before service.
fn mmc(seed: u64, servers: usize, arrivals_per_sec: f64, customers: usize) -> [Vec<f64>; 2] {
    #[derive(Clone, Copy)]
    enum Event {
        Arrival,
        Departure,
    }
    let (mut arrivals, mut services) = streams(seed);
    let mut queue = EventQueue::new();
    let (mut waiting, mut busy) = (VecDeque::new(), 0);
    let (mut waits, mut numbers) = (Vec::with_capacity(customers), Vec::new());
    let (mut area, mut started, mut last) = (0.0, Time::ZERO, Time::ZERO);
    queue.push(Time::ZERO, 1, Event::Arrival);
    while waits.len() < customers {
        let Some((now, event)) = queue.pop() else { break };
        area += (waiting.len() + busy) as f64 * now.since(last).as_secs_f64();
        last = now;
        match event {
            Event::Arrival => {
                waiting.push_back(now);
                let next = span(arrivals.exponential() / arrivals_per_sec);
                queue.push(now + next, 1, Event::Arrival);
            }
            Event::Departure => busy -= 1,
        }
        if busy < servers
            && let Some(arrived) = waiting.pop_front()
        {
            busy += 1;
            waits.push(now.since(arrived).as_secs_f64());
            queue.push(now + span(services.exponential()), 0, Event::Departure);
            if waits.len().is_multiple_of(customers / BATCHES) {
                numbers.push(area / now.since(started).as_secs_f64());
                (area, started) = (0.0, now);
            }
        }
    }
    [numbers, batch_means(&waits)]
}

/// The probability that a customer of M/M/c waits: Erlang's C formula, by his recurrence for B.
fn erlang_c(servers: u32, load: f64) -> f64 {
    let mut blocked = 1.0;
    for server in 1..=servers {
        blocked = load * blocked / (f64::from(server) + load * blocked);
    }
    let busy = load / f64::from(servers);
    blocked / (1.0 - busy * (1.0 - blocked))
}

#[test]
fn one_server_has_the_number_and_wait_of_mm1() {
    let rho = 0.5;
    let [number, wait] = mmc(1, 1, rho, 2_000_000);
    agrees("number in M/M/1", &number, rho / (1.0 - rho));
    agrees("wait in M/M/1", &wait, rho / (1.0 - rho));
}

#[test]
fn four_servers_have_the_number_and_wait_of_mmc() {
    let (servers, load) = (4, 2.8);
    let [number, wait] = mmc(2, servers as usize, load, 3_000_000);
    let theory = erlang_c(servers, load) / (f64::from(servers) - load);
    agrees("wait in M/M/4", &wait, theory);
    agrees("number in M/M/4", &number, load * (theory + 1.0));
}

/// Sojourn times in a replica where a lone sequence has 1,000 tokens/s and `b` sequences share
/// them: processor sharing. `arrivals_per_sec` turns arrive, of `length` tokens each.
fn sharing(seed: u64, arrivals_per_sec: f64, length: &Distribution, turns: usize) -> Vec<f64> {
    #[derive(Clone, Copy)]
    enum Event {
        Arrival,
        Wake { epoch: u32 },
    }
    let (mut arrivals, mut lengths) = streams(seed);
    let spec = ReplicaSpec::new(DecodeLaw::linear(0.0, 0.001).unwrap());
    let mut replica = Replica::new(spec, DeployVersion::new(0));
    let mut queue = EventQueue::new();
    let (mut arrived, mut sojourns) = (Vec::with_capacity(turns), vec![0.0; turns]);
    queue.push(Time::ZERO, 1, Event::Arrival);
    while let Some((now, event)) = queue.pop() {
        match event {
            Event::Wake { epoch } => replica.wake(now, epoch),
            Event::Arrival => {
                let handle = arrived.len() as u64;
                let tokens = length.sample(&mut lengths, handle).ceil() as u32;
                replica.submit(now, Turn { handle, session: None, prompt_tokens: 0, tokens });
                arrived.push(now);
                if arrived.len() < turns {
                    let next = span(arrivals.exponential() / arrivals_per_sec);
                    queue.push(now + next, 1, Event::Arrival);
                }
            }
        }
        while let Some(ended) = replica.poll_ended() {
            let turn = ended.handle as usize;
            sojourns[turn] = now.since(arrived[turn]).as_secs_f64();
        }
        if let Some(wake) = replica.poll_wake() {
            queue.push(wake.at, 0, Event::Wake { epoch: wake.epoch });
        }
    }
    sojourns
}

#[test]
fn a_replica_that_shares_has_the_sojourn_of_mm1_ps() {
    let (lambda, mean_tokens) = (0.5, 1_000.0);
    let length = Distribution::exponential(mean_tokens).unwrap();
    let sojourns = sharing(3, lambda, &length, 1_000_000);
    // Lengths are rounded up to whole tokens: geometric, with this mean.
    let service = 0.001 / -libm::expm1(-1.0 / mean_tokens);
    agrees("sojourn in M/M/1-PS", &batch_means(&sojourns), 1.0 / (1.0 / service - lambda));
}

#[test]
fn the_sojourn_of_sharing_depends_on_the_mean_length_only() {
    let (lambda, service) = (0.5, 1.0);
    let theory = 1.0 / (1.0 / service - lambda);
    let constant = Distribution::constant(1_000.0).unwrap();
    let sojourns = sharing(4, lambda, &constant, 500_000);
    agrees("sojourn in M/D/1-PS", &batch_means(&sojourns), theory);
    // 1 in 10 is 5,500 tokens long, the others 500.
    let mut rows = vec![500.0; 9];
    rows.push(5_500.0);
    let mixed = Distribution::empirical(rows.into()).unwrap();
    let sojourns = sharing(5, lambda, &mixed, 1_000_000);
    agrees("sojourn of mixed lengths", &batch_means(&sojourns), theory);
}

#[test]
fn a_long_turn_takes_its_length_over_the_free_share() {
    // In M/G/1-PS a turn of x seconds of service takes x / (1 - rho) on average.
    let mut rows = vec![500.0; 9];
    rows.push(5_500.0);
    let mixed = Distribution::empirical(rows.into()).unwrap();
    let sojourns = sharing(6, 0.5, &mixed, 1_000_000);
    let (_, mut lengths) = streams(6);
    let mut by_length = [Vec::new(), Vec::new()];
    for (ordinal, sojourn) in (0..).zip(&sojourns) {
        let long = mixed.sample(&mut lengths, ordinal) > 1_000.0;
        by_length[usize::from(long)].push(*sojourn);
    }
    agrees("sojourn of short turns", &batch_means(&by_length[0]), 0.5 / (1.0 - 0.5));
    agrees("sojourn of long turns", &batch_means(&by_length[1]), 5.5 / (1.0 - 0.5));
}
