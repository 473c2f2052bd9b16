//! A request, asked of the driver.

use std::sync::Arc;

use headway_shared::digest::mix;
use headway_shared::id::RequestId;
use headway_shared::input::TurnType;
use tokio::sync::mpsc;

use super::Gate;
use super::error::ApiError;
use super::request::TurnRequest;
use crate::driver::{Answer, Arrival, DriverHandle, TurnEvent};
use crate::engine::{Sampling, Token};
use crate::store::Question;

/// A request that was asked of the driver.
pub(super) struct Asked {
    /// The first of its numbers.
    pub(super) id: RequestId,
    pub(super) session: String,
    /// The prompt's length in tokens.
    pub(super) prompt: usize,
    pub(super) choices: Vec<Choice>,
}

/// One of `n` answers: a turn of its own.
pub(super) struct Choice {
    pub(super) events: mpsc::UnboundedReceiver<TurnEvent>,
    pub(super) leave: Leave,
}

/// Tells the driver that the client has gone, unless it was answered before.
pub(super) struct Leave {
    driver: DriverHandle,
    request: RequestId,
    answered: bool,
}

impl Leave {
    /// Nothing is left to be told.
    pub(super) fn answered(&mut self) {
        self.answered = true;
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        if !self.answered {
            self.driver.leave(self.request);
        }
    }
}

impl Choice {
    /// The whole answer.
    pub(super) async fn answer(mut self) -> Result<Answer, ApiError> {
        loop {
            let event = self.events.recv().await;
            if !matches!(event, Some(TurnEvent::Tokens(_))) {
                self.leave.answered();
            }
            match event {
                Some(TurnEvent::Tokens(_)) => {}
                Some(event) => return ended(event),
                None => return Err(ApiError::ending()),
            }
        }
    }

    /// The first that is known of a streamed answer. A refusal is still an error of its own.
    pub(super) async fn first(&mut self) -> Result<TurnEvent, ApiError> {
        match self.events.recv().await.ok_or_else(ApiError::ending)? {
            tokens @ TurnEvent::Tokens(_) => Ok(tokens),
            last => {
                self.leave.answered();
                ended(last).map(TurnEvent::Ended)
            }
        }
    }
}

/// The first token of what [`Choice::first`] gave.
pub(super) fn first_token(event: &TurnEvent) -> Option<Token> {
    match event {
        TurnEvent::Tokens(tokens) => tokens.first().copied(),
        TurnEvent::Ended(answer) => answer.tokens.first().copied(),
        _ => None,
    }
}

/// What a last event means.
pub(super) fn ended(event: TurnEvent) -> Result<Answer, ApiError> {
    match event {
        TurnEvent::Ended(answer) if answer.reply == headway_shared::action::Reply::Failed => {
            Err(ApiError::failed())
        }
        TurnEvent::Ended(answer) => Ok(answer),
        TurnEvent::Refused { reason, retry_after } => Err(ApiError::refused(reason, retry_after)),
        TurnEvent::Unrecorded | TurnEvent::Tokens(_) => Err(ApiError::unrecorded()),
    }
}

/// Asks for all choices. The first is a turn of the request's session; the others, which no turn
/// can follow, have sessions of their own.
pub(super) async fn ask(gate: &Gate, request: &TurnRequest) -> Result<Asked, ApiError> {
    let id = gate.driver.next_request();
    let place = &request.place;
    let temperature = temperature(gate, request)?;
    let session = place.session.clone().unwrap_or_else(|| format!("auto-{}", id.0));
    let prompt: Arc<[u32]> = request.conversation.prompt(&*gate.tokenizer)?.into();
    let prompt_tokens = prompt.len();
    let (messages, metadata) = (request.conversation.messages(), request.metadata.clone());
    let question = Arc::new(Question { messages, metadata, prompt });
    let group = match &place.group {
        None if request.n > 1 => Some(format!("auto-{}", id.0)),
        group => group.clone(),
    };
    // Nobody can go on with a session that has no name and does not train.
    let passing = place.session.is_none() && place.turn == TurnType::Side;
    let mut choices = Vec::new();
    for index in 0..request.n {
        let number = if index == 0 { id } else { gate.driver.next_request() };
        let (events, receiver) = mpsc::unbounded_channel();
        let leave = Leave { driver: gate.driver.clone(), request: number, answered: false };
        choices.push(Choice { events: receiver, leave });
        let first = index == 0;
        let arrival = Arrival {
            request: number,
            session: Some(if first { session.clone() } else { format!("{session}#{index}") }),
            group: group.clone(),
            turn: place.turn,
            last: place.last || passing || !first,
            streamed: request.stream,
            question: question.clone(),
            next_state: request.next_state.as_deref().filter(|_| first).map(Arc::from),
            sampling: sampling(gate, request, temperature, number, index),
            events,
        };
        gate.driver.ask(arrival).await;
    }
    Ok(Asked { id, session, prompt: prompt_tokens, choices })
}

/// What the request is sampled with. Of a turn that trains that is the run's: at another one its recorded
/// log-probabilities would be of another distribution than those of the trainer.
fn temperature(gate: &Gate, request: &TurnRequest) -> Result<f32, ApiError> {
    let own = gate.options.temperature as f32;
    match request.temperature {
        Some(other) if other != own && request.place.turn == TurnType::Main => {
            Err(ApiError::bad_request(&format!(
                "a turn that trains is sampled at temperature {own}, which `training.temperature` of the \
                 settings says: leave temperature out, or send the turn as a side turn"
            )))
        }
        given => Ok(given.unwrap_or(own)),
    }
}

fn sampling(
    gate: &Gate,
    request: &TurnRequest,
    temperature: f32,
    number: RequestId,
    index: u32,
) -> Sampling {
    let most = gate.options.max_tokens;
    let seed = request.seed.unwrap_or_else(|| mix(number.0));
    let stops = request.stop.iter().map(|text| gate.tokenizer.encode(text));
    let end = std::iter::once(vec![gate.tokenizer.end_of_turn()]);
    Sampling {
        max_tokens: request.max_tokens.map_or(most, |tokens| tokens.min(most)),
        temperature,
        seed: seed.wrapping_add(u64::from(index)),
        stop: end.chain(stops).collect(),
        stop_texts: request.stop.as_slice().into(),
    }
}
