//! The event loop alone: the kernel's queue, and the least that a loop can do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headway_shared::time::{Span, Time};
use headway_sim::kernel::EventQueue;

use crate::kernel_models::{Later, Model};

/// Headway's kernel, with events as large as the world's.
#[derive(Default)]
struct Kernel {
    now: Time,
    queue: EventQueue<[u32; 3]>,
}

impl Later for Kernel {
    fn later(&mut self, nanos: u64, event: u32) {
        self.queue.push(self.now + Span::from_nanos(nanos), 0, [event, 0, 0]);
    }
}

pub(crate) fn kernel(model: &mut Model) {
    let mut kernel = Kernel::default();
    model.start(&mut kernel);
    while let Some((now, [event, ..])) = kernel.queue.pop() {
        kernel.now = now;
        model.on(event, &mut kernel);
    }
}

/// A binary heap of times and small numbers: ties come in no order that could be told.
#[derive(Default)]
struct Heap {
    now: u64,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Later for Heap {
    fn later(&mut self, nanos: u64, event: u32) {
        self.heap.push(Reverse((self.now + nanos, event)));
    }
}

pub(crate) fn heap(model: &mut Model) {
    let mut heap = Heap::default();
    model.start(&mut heap);
    while let Some(Reverse((now, event))) = heap.heap.pop() {
        heap.now = now;
        model.on(event, &mut heap);
    }
}
