//! Speed of the kernel: the event queue beside a bare binary heap, random streams, a replica.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use headway_shared::digest::{Digest, mix};
use headway_shared::time::{Span, Time};
use headway_shared::version::DeployVersion;
use headway_sim::kernel::EventQueue;
use headway_sim::kernel::random::{Component, Key};
use headway_sim::world::replica::{DecodeLaw, Replica, ReplicaSpec, Turn};

const EVENTS: u64 = 10_000;

/// The hold model: each event that is popped pushes one, at a random time after it.
fn queues(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hold");
    group.throughput(Throughput::Elements(EVENTS));
    for pending in [64, 1_024, 16_384] {
        let later = |at: u64, event: u64| at + 1 + mix(event) % 1_000_000;
        group.bench_function(format!("EventQueue/{pending}"), |bencher| {
            let mut queue = EventQueue::new();
            for event in 0..pending {
                queue.push(Time::from_nanos(later(0, event)), event as u8 % 4, [event, 0]);
            }
            let mut event = pending;
            bencher.iter(|| {
                for _ in 0..EVENTS {
                    let Some((now, popped)) = queue.pop() else { break };
                    black_box(popped);
                    event += 1;
                    let at = Time::from_nanos(later(now.as_nanos(), event));
                    queue.push(at, event as u8 % 4, [event, 0]);
                }
            });
        });
        group.bench_function(format!("BinaryHeap/{pending}"), |bencher| {
            let mut queue = BinaryHeap::new();
            for event in 0..pending {
                queue.push(Reverse((later(0, event), event, [event, 0])));
            }
            let mut event = pending;
            bencher.iter(|| {
                for _ in 0..EVENTS {
                    let Some(Reverse((now, _, popped))) = queue.pop() else { break };
                    black_box(popped);
                    event += 1;
                    queue.push(Reverse((later(now, event), event, [event, 0])));
                }
            });
        });
    }
    group.finish();
}

fn streams(criterion: &mut Criterion) {
    let key = Key::new(1, Digest::new(), 0);
    criterion.bench_function("stream/first draw", |bencher| {
        let mut entity = 0;
        bencher.iter(|| {
            entity += 1;
            key.stream(Component::Request, entity).uniform()
        });
    });
    criterion.bench_function("stream/normal", |bencher| {
        let mut stream = key.stream(Component::Request, 0);
        bencher.iter(|| stream.normal());
    });
}

/// One event is a turn that ends and one that takes its place.
fn replica(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("replica");
    group.throughput(Throughput::Elements(EVENTS));
    for batch in [16, 256] {
        group.bench_function(format!("turns/{batch}"), |bencher| {
            let turn = |handle: u64| Turn {
                handle,
                session: None,
                prompt_tokens: 100,
                tokens: 1 + (mix(handle) % 4_000) as u32,
            };
            let start = || {
                let Ok(decode) = DecodeLaw::linear(0.01, 0.000_1) else { unreachable!() };
                let mut replica = Replica::new(ReplicaSpec::new(decode), DeployVersion::new(0));
                for handle in 0..batch {
                    replica.submit(Time::ZERO, turn(handle));
                }
                replica
            };
            let run = |mut replica: Replica| {
                let (mut handle, mut ended) = (batch, 0);
                while ended < EVENTS {
                    let Some(wake) = replica.poll_wake() else { break };
                    replica.wake(wake.at, wake.epoch);
                    while replica.poll_ended().is_some() {
                        ended += 1;
                        handle += 1;
                        replica.submit(wake.at + Span::from_nanos(1), turn(handle));
                    }
                }
                replica
            };
            bencher.iter_batched(start, run, BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, queues, streams, replica);
criterion_main!(benches);
