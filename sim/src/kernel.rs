//! The kernel: events in order of time, and random numbers that do not depend on that order.
//!
//! ```
//! use headway_shared::time::Time;
//! use headway_sim::kernel::EventQueue;
//!
//! let mut queue = EventQueue::new();
//! queue.push(Time::from_secs(2), 0, "later");
//! queue.push(Time::from_secs(1), 1, "second of its instant");
//! queue.push(Time::from_secs(1), 0, "first of its instant");
//! assert_eq!(queue.pop(), Some((Time::from_secs(1), "first of its instant")));
//! ```

mod chacha;
pub mod math;
mod queue;
pub mod random;
pub mod sampler;

pub use queue::EventQueue;
