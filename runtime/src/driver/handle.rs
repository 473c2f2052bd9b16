//! The driver, as others hold it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headway_shared::action::OperatorReply;
use headway_shared::id::RequestId;
use headway_shared::input::Operator;
use headway_shared::metrics::Summary;
use headway_shared::time::Span;
use tokio::sync::{mpsc, oneshot, watch};

use super::message::{Arrival, Look, Status, Wish};
use super::narrator::StepSummary;

/// Asks things of the driver. Cheap to clone. What cannot be asked because the run is over is
/// `None` or dropped.
#[derive(Clone, Debug)]
pub struct DriverHandle {
    pub(super) wishes: mpsc::Sender<Wish>,
    pub(super) leavers: mpsc::UnboundedSender<RequestId>,
    pub(super) status: watch::Receiver<Status>,
    pub(super) next_request: Arc<AtomicU64>,
}

impl DriverHandle {
    /// A number for a request, which no other has.
    #[must_use]
    pub fn next_request(&self) -> RequestId {
        RequestId(self.next_request.fetch_add(1, Ordering::Relaxed))
    }

    /// Asks for a turn; waits while the driver is behind.
    pub async fn ask(&self, arrival: Arrival) {
        let _ = self.wishes.send(Wish::Arrival(Box::new(arrival))).await;
    }

    /// The client of a request has gone.
    pub fn leave(&self, request: RequestId) {
        let _ = self.leavers.send(request);
    }

    /// A session is over; one with another name, or none, is not touched.
    pub async fn end_session(&self, name: String) {
        let _ = self.wishes.send(Wish::SessionDone(name)).await;
    }

    /// Pauses, resumes or publishes; returns when that is on disk.
    pub async fn operate(&self, operator: Operator) -> Option<OperatorReply> {
        let (asker, reply) = oneshot::channel();
        self.wishes.send(Wish::Operator(operator, asker)).await.ok()?;
        reply.await.ok()
    }

    /// The metrics of the run until now.
    pub async fn summary(&self) -> Option<Summary> {
        let (asker, reply) = oneshot::channel();
        self.wishes.send(Wish::Summary(asker)).await.ok()?;
        reply.await.ok()
    }

    /// The run as people look at it, now.
    pub async fn look(&self) -> Option<Look> {
        let (asker, reply) = oneshot::channel();
        self.wishes.send(Wish::Look(asker)).await.ok()?;
        reply.await.ok()
    }

    /// The newest train steps since the process began, oldest first.
    pub async fn steps(&self) -> Option<Vec<StepSummary>> {
        let (asker, reply) = oneshot::channel();
        self.wishes.send(Wish::Steps(asker)).await.ok()?;
        reply.await.ok()
    }

    /// How the run is.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// The same again and again; it ends with the run.
    pub(crate) fn watched(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Waits until the run is as wished, and returns how it is then; `None`: it is over.
    pub async fn until(&mut self, wished: impl FnMut(&Status) -> bool) -> Option<Status> {
        self.status.wait_for(wished).await.ok().map(|status| status.clone())
    }

    /// Ends the run: admits nothing more, lets what runs end for as long as `within`, and then
    /// aborts it. Called again, the shorter time holds.
    pub async fn shut_down(&self, within: Span) {
        let _ = self.wishes.send(Wish::Shutdown(within)).await;
    }
}
