//! The two models of the kernel benchmark. Every engine runs this same code; only how an event
//! comes to be due differs.
//!
//! Draws come from a table, so that what is measured is the event loop and no logarithm.

/// Draws in the table.
const DRAWS: usize = 1 << 16;
const SERVERS: u32 = 64;
const CUSTOMERS: u32 = 1024;
/// Mean time between two visits of a customer, in mean services: the servers are busy 73% of the
/// time.
const THINK: u64 = 20;

/// Makes events due.
pub(crate) trait Later {
    /// `event` is due after so many nanoseconds.
    fn later(&mut self, nanos: u64, event: u32);
}

/// Which model.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// One server, Poisson arrivals, busy 80% of the time: M/M/1.
    Queue,
    /// A closed network: 1,024 customers think, then queue at one of 64 servers.
    Network,
}

/// A model, and how many events it still takes: it makes nothing due after the last.
#[derive(Debug)]
pub(crate) struct Model {
    kind: Kind,
    left: u64,
    /// Exponential, mean one second, in nanoseconds.
    draws: Vec<u64>,
    next: usize,
    waiting: Vec<u32>,
    served: u64,
}

impl Default for Model {
    fn default() -> Self {
        Self::new(Kind::Queue, 0)
    }
}

impl Model {
    pub(crate) fn new(kind: Kind, events: u64) -> Self {
        let quantile = |cell: usize| {
            let share = (cell as f64 + 0.5) / DRAWS as f64;
            (-libm::log(share) * 1e9) as u64
        };
        let mut draws: Vec<u64> = (0..DRAWS).map(quantile).collect();
        let mut word = 1_u64;
        for last in (1..DRAWS).rev() {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            draws.swap(last, (word >> 33) as usize % (last + 1));
        }
        Self { kind, left: events, draws, next: 0, waiting: vec![0; SERVERS as usize], served: 0 }
    }

    /// Services that have ended.
    pub(crate) fn served(&self) -> u64 {
        self.served
    }

    fn draw(&mut self) -> u64 {
        self.next = (self.next + 1) % DRAWS;
        self.draws[self.next]
    }

    /// Makes the first events due.
    pub(crate) fn start(&mut self, engine: &mut impl Later) {
        match self.kind {
            Kind::Queue => engine.later(0, SERVERS),
            Kind::Network => {
                for customer in 0..CUSTOMERS {
                    let think = THINK * self.draw();
                    engine.later(think, SERVERS + customer);
                }
            }
        }
    }

    /// An event: below the number of servers, a service ends there; else someone comes.
    pub(crate) fn on(&mut self, event: u32, engine: &mut impl Later) {
        let Some(left) = self.left.checked_sub(1) else { return };
        self.left = left;
        match self.kind {
            Kind::Queue if event == SERVERS => {
                let gap = self.draw() * 5 / 4;
                engine.later(gap, SERVERS);
                self.come(0, engine);
            }
            Kind::Queue => self.serve(event, engine),
            Kind::Network if event >= SERVERS => {
                let server = self.draw() as u32 % SERVERS;
                self.come(server, engine);
            }
            Kind::Network => {
                self.serve(event, engine);
                let think = THINK * self.draw();
                engine.later(think, SERVERS);
            }
        }
    }

    fn come(&mut self, server: u32, engine: &mut impl Later) {
        self.waiting[server as usize] += 1;
        if self.waiting[server as usize] == 1 {
            let service = self.draw();
            engine.later(service, server);
        }
    }

    fn serve(&mut self, server: u32, engine: &mut impl Later) {
        self.served += 1;
        self.waiting[server as usize] -= 1;
        if self.waiting[server as usize] > 0 {
            let service = self.draw();
            engine.later(service, server);
        }
    }
}
