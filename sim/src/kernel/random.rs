//! Random streams: what an entity draws depends on who it is, never on when it draws.
//!
//! The key of a stream is (seed, scenario, replication), its number is (component, entity). Two
//! policies at one seed therefore see the same lengths and times (common random numbers), in
//! whatever order they meet them.
//!
//! All samplers are our own, on `libm`: published ones change their values between versions and
//! cargo features, and std's differ between platforms.

use headway_shared::digest::Digest;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::chacha::{BLOCK, first_block};
use super::math;

/// What a stream is for. The number of a component is part of every result: add new ones at the
/// end, never reorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Component {
    /// The arrival process, and what is drawn once for a run.
    Arrival = 0,
    /// A session or slot: its number of turns, its think and tool times.
    Session = 1,
    /// A request: the lengths of its prompt and of its turn.
    Request = 2,
    /// A client's retries.
    Client = 3,
    /// A step of an environment.
    Environment = 4,
    /// A vote of a judge.
    Judge = 5,
    /// A train step.
    Step = 7,
    /// A publication of weights.
    Weights = 8,
    /// A fault.
    Fault = 9,
    /// A prompt: how hard it is, for all members of its group.
    Prompt = 10,
    /// The tokens of a sample: how likely they were, and how far their log-ratios are.
    Token = 11,
    /// The largest ratio among the tokens of one staleness that were not drawn one by one.
    Extreme = 12,
    /// A resample of what was measured.
    Resample = 13,
    /// A fitted number of a scenario that is not exactly known.
    Parameter = 14,
    /// A train step: how far its tokens' log-ratios are beside those of other steps.
    StepDrift = 15,
}

/// The key of every stream of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of one replication of a scenario.
    #[must_use]
    pub fn new(seed: u64, scenario: Digest, replication: u32) -> Self {
        let words = [seed, scenario.value(), u64::from(replication), 0];
        let mut key = [0; 32];
        for (bytes, word) in key.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Self(key)
    }

    /// The stream of an entity (its ordinal, below 2^56), from its start. It costs nothing before its
    /// first draw.
    #[must_use]
    pub fn stream(&self, component: Component, entity: u64) -> Stream {
        let number = (component as u64) << 56 | entity & (u64::MAX >> 8);
        Stream { key: *self, number, block: [0; BLOCK], next: NOT_BEGUN, rest: None }
    }
}

/// The random numbers of one entity, in the order in which it draws them: those of
/// [`ChaCha8Rng`] for its key and its number.
#[derive(Clone, Debug)]
pub struct Stream {
    key: Key,
    number: u64,
    /// Its first numbers, once one was drawn.
    block: [u64; BLOCK],
    /// The place in `block` of the number that is drawn next; beyond its end after the last.
    next: usize,
    /// What comes after them, which most entities never ask for.
    rest: Option<ChaCha8Rng>,
}

/// The place of the next number while the block has not been made.
const NOT_BEGUN: usize = usize::MAX;

impl Stream {
    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        if self.next == NOT_BEGUN {
            (self.block, self.next) = (first_block(&self.key.0, self.number), 0);
        }
        match self.block.get(self.next) {
            Some(&bits) => {
                self.next += 1;
                bits
            }
            None => self.further(),
        }
    }

    fn further(&mut self) -> u64 {
        let rest = self.rest.get_or_insert_with(|| {
            let mut rest = ChaCha8Rng::from_seed(self.key.0);
            rest.set_stream(self.number);
            // In words of 32 bits.
            rest.set_word_pos(2 * BLOCK as u128);
            rest
        });
        rest.next_u64()
    }

    /// Uniform in the open interval (0, 1): one of the 2^52 midpoints (k + 1/2) / 2^52, so neither
    /// end is ever drawn and 1 - u is as likely as u. One draw.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        midpoint(self.bits())
    }

    /// A whole number below `bound` (0 for a bound of 0), by Lemire's multiplication without
    /// rejection: biased by at most bound / 2^64. One draw.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether an event of this probability happens. One draw.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Exponential with mean 1, by inversion. One draw.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.uniform())
    }

    /// Standard normal, by inversion. One draw.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        math::normal_quantile(self.uniform())
    }

    /// Gamma with this shape (above 0) and scale 1: Marsaglia and Tsang, "A simple method for
    /// generating gamma variables", 2000. About 2.1 draws; below shape 1 one more, by their
    /// boost `gamma(shape + 1) * u^(1 / shape)`.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let boost = libm::pow(self.uniform(), 1.0 / shape);
            return self.gamma(shape + 1.0) * boost;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let root = 1.0 + c * x;
            if root <= 0.0 {
                continue;
            }
            let v = root * root * root;
            if libm::log(self.uniform()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return d * v;
            }
        }
    }
}

/// The midpoint of the cell of (0, 1) that the upper 52 bits name; exact in 53 bits.
#[inline]
fn midpoint(bits: u64) -> f64 {
    const CELL: f64 = 1.0 / (1_u64 << 52) as f64;
    ((bits >> 12) as f64 + 0.5) * CELL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_other_entities_components_and_replications_differ() {
        let scenario = Digest::of(b"scenario");
        let first = Key::new(1, scenario, 0).stream(Component::Request, 0).bits();
        let others = [
            Key::new(2, scenario, 0).stream(Component::Request, 0).bits(),
            Key::new(1, Digest::of(b"other"), 0).stream(Component::Request, 0).bits(),
            Key::new(1, scenario, 1).stream(Component::Request, 0).bits(),
            Key::new(1, scenario, 0).stream(Component::Session, 0).bits(),
            Key::new(1, scenario, 0).stream(Component::Request, 1).bits(),
        ];
        assert!(!others.contains(&first));
        assert_eq!(first, Key::new(1, scenario, 0).stream(Component::Request, 0).bits());
    }

    #[test]
    fn a_stream_goes_on_as_the_library_does() {
        let key = Key::new(7, Digest::new(), 3);
        let mut stream = key.stream(Component::Token, 5);
        let mut library = ChaCha8Rng::from_seed(key.0);
        library.set_stream((Component::Token as u64) << 56 | 5);
        for _ in 0..1_000 {
            assert_eq!(stream.bits(), library.next_u64());
        }
    }

    #[test]
    fn uniform_reaches_neither_end() {
        assert!(midpoint(0) > 0.0);
        assert!(midpoint(u64::MAX) < 1.0);
        assert_eq!(1.0 - midpoint(u64::MAX), midpoint(0));
    }
}
