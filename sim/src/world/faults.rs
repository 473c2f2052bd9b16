//! What breaks, at random and at given times.

use headway_shared::input::{Input, Operator};
use headway_shared::time::{Span, Time};

use super::World;
use super::event::{Event, span};
use super::settings::{Fault, Faults as Settings};
use crate::kernel::random::Component;

/// Lives of one replica that have draws of their own; beyond, they repeat.
const LIVES: u64 = 1 << 24;

/// One replica's deaths.
#[derive(Clone, Copy, Debug, Default)]
struct Lives {
    /// Stamp of its pending death or return.
    stamp: u32,
    /// How many it has had.
    count: u64,
}

/// The faults of a run.
#[derive(Debug)]
pub(super) struct Faults {
    pub(super) settings: Settings,
    lives: Vec<Lives>,
    /// Nothing breaks any more.
    calm: bool,
}

impl Faults {
    pub(super) fn new(settings: Settings, replicas: usize) -> Self {
        Self { settings, lives: vec![Lives::default(); replicas], calm: false }
    }
}

impl Faults {
    /// Nothing breaks any more; what is broken is mended.
    pub(super) fn calm(&mut self) {
        self.settings.replica_mtbf = Span::ZERO;
        self.calm = true;
    }
}

impl World {
    /// Makes the first faults due.
    pub(super) fn start_faults(&mut self) {
        for index in 0..self.faults.settings.at.len() {
            let time: Time = self.faults.settings.at[index].time;
            // A list that fits in a file has fewer than 2^32 items.
            self.bus.at(time, Event::Scheduled { index: index as u32 });
        }
    }

    /// A replica begins to serve, with the weights that its restart leaves it.
    pub(super) fn replica_up(&mut self, replica: u32) {
        if self.serving.is_up(replica) {
            return;
        }
        let newest = self.faults.settings.restart_newest.then(|| self.weights.newest());
        self.serving.raise(&mut self.bus, replica, newest);
        let lives = &mut self.faults.lives[replica as usize];
        lives.stamp = lives.stamp.wrapping_add(1);
        let mtbf = self.faults.settings.replica_mtbf;
        if mtbf > Span::ZERO {
            let entity = u64::from(replica) * LIVES + lives.count % LIVES;
            let life = self.bus.key.stream(Component::Fault, entity).exponential();
            let life = span(mtbf.as_secs_f64() * life);
            self.bus.after(life, Event::Death { replica, stamp: lives.stamp });
        }
    }

    /// A replica dies by itself.
    pub(super) fn death(&mut self, replica: u32, stamp: u32) {
        let lives = &self.faults.lives[replica as usize];
        if lives.stamp != stamp || self.faults.calm {
            return;
        }
        let entity = u64::from(replica) * LIVES + lives.count % LIVES;
        let mut stream = self.bus.key.stream(Component::Fault, entity);
        // The first draw of a life is its length.
        stream.bits();
        let restart = span(self.faults.settings.replica_restart.sample(&mut stream, entity));
        self.replica_down(replica, Some(restart));
    }

    /// A replica is back.
    pub(super) fn restart(&mut self, replica: u32, stamp: u32) {
        if self.faults.lives[replica as usize].stamp == stamp {
            self.replica_up(replica);
        }
    }

    /// An operator does something.
    pub(crate) fn operate(&mut self, operator: Operator) {
        self.bus.tell(Input::Operator(operator));
    }

    fn replica_down(&mut self, replica: u32, lasting: Option<Span>) {
        let lives = &mut self.faults.lives[replica as usize];
        lives.stamp = lives.stamp.wrapping_add(1);
        lives.count += 1;
        let stamp = lives.stamp;
        if let Some(lasting) = lasting {
            self.bus.after(lasting, Event::Restart { replica, stamp });
        }
        self.weights.abandon(&mut self.bus, &mut self.serving, replica);
        self.serving.fell(&mut self.bus, replica);
    }

    /// A fault of the list is due.
    pub(super) fn scheduled(&mut self, index: u32) {
        if self.faults.calm {
            return;
        }
        let fault = self.faults.settings.at[index as usize].fault.clone();
        match fault {
            Fault::ReplicaDown { replica, lasting } => self.replica_down(replica, lasting),
            Fault::ReplicaUp { replica } => self.replica_up(replica),
            Fault::JudgeHang { lasting } => self.judge.hang(&self.bus, lasting),
            Fault::JudgeSlow { lasting, factor } => {
                self.judge.slow_down(&self.bus, lasting, factor);
            }
            Fault::EqualScores { lasting } => self.judge.say_the_same(&self.bus, lasting),
            Fault::TrainerPause { lasting } => self.trainer.pause(&mut self.bus, lasting),
            Fault::WeightsFail { stage, times } => self.weights.order_failure(stage, times),
            Fault::Rollback { steps } => {
                self.trainer.roll_back(&mut self.bus, steps);
                self.serving.set_training(&mut self.bus, false);
            }
            Fault::OperatorPause => self.operate(Operator::Pause),
            Fault::OperatorResume => self.operate(Operator::Resume),
            Fault::Reconfigure(config) => self.operate(Operator::Reconfigure(config)),
        }
    }
}
