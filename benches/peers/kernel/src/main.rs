//! The kernel benchmark's models on other simulators: `headway-bench-peers ENGINE MODEL EVENTS`.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

#[path = "../../../kernel_models.rs"]
mod kernel_models;

use kernel_models::{Kind, Later, Model};
use nexosim::model::{Context, Model as NexosimModel, schedulable};
use nexosim::simulation::{Mailbox, SimInit};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};
use simcore::{Event, EventHandler, Simulation, SimulationContext};

#[derive(Clone, Serialize)]
struct Due(u32);

/// One component, which sends its events to itself.
struct Component {
    model: Model,
    context: SimulationContext,
}

struct Simcore<'a>(&'a SimulationContext);

impl Later for Simcore<'_> {
    fn later(&mut self, nanos: u64, event: u32) {
        self.0.emit_self(Due(event), nanos as f64 * 1e-9);
    }
}

impl EventHandler for Component {
    fn on(&mut self, event: Event) {
        if let Some(&Due(event)) = event.data.downcast_ref::<Due>() {
            self.model.on(event, &mut Simcore(&self.context));
        }
    }
}

fn simcore(model: Model) -> u64 {
    let mut simulation = Simulation::new(1);
    let context = simulation.create_context("model");
    let component = Rc::new(RefCell::new(Component { model, context }));
    simulation.add_handler("model", component.clone());
    {
        let Component { model, context } = &mut *component.borrow_mut();
        model.start(&mut Simcore(context));
    }
    simulation.step_until_no_events();
    let served = component.borrow().model.served();
    served
}

/// One model, which schedules its own input.
#[derive(Default, Serialize, Deserialize)]
struct Nexosim {
    #[serde(skip)]
    model: Model,
}

struct Scheduled<'a>(&'a Context<Nexosim>);

impl Later for Scheduled<'_> {
    fn later(&mut self, nanos: u64, event: u32) {
        // It takes nothing for the present instant.
        let span = Duration::from_nanos(nanos.max(1));
        self.0.schedule_event(span, schedulable!(Nexosim::due), event).unwrap();
    }
}

#[NexosimModel]
impl Nexosim {
    #[nexosim(init)]
    async fn init(&mut self, context: &Context<Self>) {
        self.model.start(&mut Scheduled(context));
    }

    #[nexosim(schedulable)]
    async fn due(&mut self, event: u32, context: &Context<Self>) {
        self.model.on(event, &mut Scheduled(context));
    }
}

fn nexosim(model: Model) {
    let simulation = SimInit::with_num_threads(1)
        .add_model(Nexosim { model }, Mailbox::new(), "model")
        .init(MonotonicTime::EPOCH);
    simulation.unwrap().run().unwrap();
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [engine, kind, events] = &words[..] else { panic!("ENGINE MODEL EVENTS") };
    let kind = if kind == "queue" { Kind::Queue } else { Kind::Network };
    let events: u64 = events.parse().unwrap();
    let model = Model::new(kind, events);
    match engine.as_str() {
        "simcore" => println!("{{\"events\": {events}, \"served\": {}}}", simcore(model)),
        _ => {
            nexosim(model);
            println!("{{\"events\": {events}}}");
        }
    }
}
