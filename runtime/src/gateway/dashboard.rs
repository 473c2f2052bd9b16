//! `/dashboard`: a page that shows a run as it goes on. Off unless it is wished for.
//!
//! The page itself says nothing of the run, and is there for everybody. What it shows comes as
//! server-sent events and needs the operator's token, which the page sends as a header: it stands
//! in no address and no cookie. While nobody looks, nothing is computed but how many requests were
//! refused in the last minutes.

mod refusals;
mod snapshot;

use std::convert::Infallible;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::error::ApiError;
use super::{Gate, PATIENCE, sse};
use crate::driver::Status;
use refusals::Refusals;

/// A stream gets a snapshot so often.
const EVERY: Duration = Duration::from_secs(1);
/// So many pages may look at once.
const MOST_STREAMS: usize = 8;

/// The dashboard of a run.
#[derive(Clone, Debug)]
pub struct Dashboard {
    /// The run's record: what was before the process began.
    record: PathBuf,
    streams: Arc<Semaphore>,
    refusals: Refusals,
}

impl Dashboard {
    /// The dashboard of a run with this record.
    #[must_use]
    pub fn new(record: PathBuf) -> Self {
        let streams = Arc::new(Semaphore::new(MOST_STREAMS));
        Self { record, streams, refusals: Refusals::new() }
    }

    /// Counts what is refused, in a task of its own, until the run is over.
    pub(super) fn follow(&self, status: watch::Receiver<Status>) {
        self.refusals.note(&status.borrow());
        tokio::spawn(self.refusals.clone().follow(status));
    }
}

/// Nothing but what this gateway serves is loaded or asked, and no other page shows this one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers: [(HeaderName, &'static str); 5] = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

/// `GET /dashboard`
pub(super) async fn page() -> Response {
    file("text/html; charset=utf-8", include_str!("dashboard/page.html"))
}

/// `GET /dashboard/style.css`
pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("dashboard/style.css"))
}

/// `GET /dashboard/script.js`
pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("dashboard/script.js"))
}

/// `GET /dashboard/events`
pub(super) async fn events(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    gate.admit_operator(&headers)?;
    let dashboard = gate.options.dashboard.as_ref().ok_or_else(ApiError::unknown_path)?;
    let place = dashboard.streams.clone().try_acquire_owned();
    let place = place.map_err(|_| ApiError::too_many_streams())?;
    let (events, receiver) = mpsc::channel(1);
    let dashboard = dashboard.clone();
    tokio::spawn(feed(gate, dashboard, events, place));
    Ok(sse::respond(Events(receiver)))
}

struct Events(mpsc::Receiver<Bytes>);

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|event| event.map(Ok))
    }
}

/// Sends what was, then what is, until the reader leaves or the run is over. A snapshot is made when
/// there is room for it: who reads slowly sees fewer, and none is old.
async fn feed(
    gate: Arc<Gate>,
    dashboard: Dashboard,
    events: mpsc::Sender<Bytes>,
    _place: OwnedSemaphorePermit,
) {
    let Dashboard { record, refusals, .. } = dashboard;
    let past = tokio::task::spawn_blocking(move || snapshot::history(&record)).await;
    let (history, mut seen) = past.unwrap_or_else(|_| (json!({"steps": []}), None));
    if events.send(sse::event("history", &history)).await.is_err() {
        return;
    }
    loop {
        let Ok(room) = events.reserve().await else { return };
        let event = match tokio::time::timeout(PATIENCE, gate.driver.look()).await {
            Ok(Some(look)) => {
                let status = gate.driver.status();
                sse::event("snapshot", &snapshot::of(&status, &look, &refusals, &mut seen))
            }
            Ok(None) => {
                room.send(sse::event("ended", &json!({"error": gate.driver.status().error})));
                return;
            }
            Err(_) => sse::event("silent", &json!({"reason": "the driver does not answer"})),
        };
        room.send(event);
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = events.closed() => return,
        }
    }
}
