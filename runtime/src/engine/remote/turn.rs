//! One attempt at a turn.

use headway_shared::id::RequestId;
use headway_shared::input::Finish;
use tokio::sync::mpsc;

use super::calls::CallError;
use super::{Piece, Protocol, Reader};
use crate::clock::Clock;
use crate::engine::{EngineEvent, Generate};

/// Why an attempt has no end.
const SHORT: &str = "the stream ended before the turn";

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// As the server says.
    Ended(Finish),
    /// What the server said cannot be believed, or it refused.
    Failed(String),
    /// The server broke off; perhaps it is gone.
    Severed(String),
}

/// What the server knows an attempt by. SGLang aborts every request whose name begins with the
/// given one, so that no name is the beginning of another.
pub(super) fn rid(request: RequestId, attempt: u32) -> String {
    format!("headway-{}-{attempt}.", request.0)
}

/// Generates until the turn ends, and sends its tokens.
pub(super) async fn generate<P: Protocol>(
    server: &P,
    mut reader: P::Reader,
    events: &mpsc::Sender<EngineEvent>,
    clock: Clock,
    generate: &Generate,
) -> Outcome {
    if generate.resume.len() >= generate.sampling.max_tokens as usize {
        return Outcome::Ended(Finish::Length);
    }
    let rid = rid(generate.request, generate.attempt);
    let mut response = match server.generate(generate, &rid).await {
        Ok(response) => response,
        Err(error @ CallError::Unreachable { .. }) => return Outcome::Severed(error.to_string()),
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let mut ids: Vec<u32> = generate.resume.iter().map(|token| token.id).collect();
    let mut stopped = false;
    loop {
        let bytes = match response.chunk().await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Outcome::Severed(SHORT.to_owned()),
            Err(error) => return Outcome::Severed(error.to_string()),
        };
        let pieces = match reader.push(&bytes) {
            Ok(pieces) => pieces,
            Err(broken) => return Outcome::Failed(broken),
        };
        let over = pieces.iter().any(|piece| piece.finish.is_some());
        for mut piece in pieces {
            if stopped {
                match piece.finish {
                    Some(_) => return Outcome::Ended(Finish::Stop),
                    None => continue,
                }
            }
            let at = piece.at.unwrap_or_else(|| clock.now());
            stopped = cut(&mut piece, &mut ids, generate);
            let tokens = piece.tokens.into_iter();
            let tokens: Vec<_> =
                tokens.map(|token| (generate.request, generate.attempt, token)).collect();
            if !tokens.is_empty() {
                let _ = events.send(EngineEvent::Tokens { at, tokens }).await;
            }
            if stopped && !over {
                // The server knows such sequences as texts at most.
                let _ = server.abort(&rid).await;
            }
            if stopped && !P::CONFIRMS {
                return Outcome::Ended(Finish::Stop);
            }
            if let Some(finish) = piece.finish {
                let finish = if stopped { Finish::Stop } else { finish };
                return Outcome::Ended(finish);
            }
        }
    }
}

/// Cuts a piece behind a sequence of ids that ends the turn; whether there was one.
fn cut(piece: &mut Piece, ids: &mut Vec<u32>, generate: &Generate) -> bool {
    for place in 0..piece.tokens.len() {
        ids.push(piece.tokens[place].id);
        if generate.sampling.stop.iter().any(|stop| ids.ends_with(stop)) {
            piece.tokens.truncate(place + 1);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_an_attempt_begins_with_another() {
        let names: Vec<String> = [(1, 1), (1, 10), (1, 101), (10, 1), (11, 1), (110, 1)]
            .into_iter()
            .map(|(request, attempt)| rid(RequestId(request), attempt))
            .collect();
        for (place, name) in names.iter().enumerate() {
            let hit = names.iter().filter(|other| other.starts_with(name.as_str())).count();
            assert_eq!(hit, 1, "{name} at {place}");
        }
    }
}
