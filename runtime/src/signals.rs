//! SIGTERM and SIGINT end a run in order.

use std::io;
use std::time::Duration;

use headway_shared::time::Span;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinError, JoinHandle};

use crate::driver::{DriverError, DriverHandle, Status};

/// How long to wait between two looks at whether a run is over by itself.
const LOOK: Duration = Duration::from_millis(50);

/// The signals that end a run, caught from when this is made.
#[derive(Debug)]
pub struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    /// Catches them from now on.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn catch() -> io::Result<Self> {
        let (term, int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self { term, int })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }

    /// Waits for a signal, or until the run is as `enough` says, cannot go on, or has ended.
    pub async fn until_told(
        &mut self,
        driver: &DriverHandle,
        mut enough: impl FnMut(&Status) -> bool,
    ) {
        let status = driver.watched();
        let mut over = || {
            let status = status.borrow();
            status.error.is_some() || enough(&status)
        };
        // Who waits for a change is woken with every request, and takes the place of what that needs.
        let told = async {
            while status.has_changed().is_ok() && !over() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            () = self.next() => {}
            () = told => {}
        }
    }

    /// Ends the run within this time; a signal ends it at once, also in order.
    ///
    /// # Errors
    /// The driver's task panicked; inside: why the run failed.
    pub async fn end(
        mut self,
        driver: DriverHandle,
        mut run: JoinHandle<Result<(), DriverError>>,
        within: Span,
    ) -> Result<Result<(), DriverError>, JoinError> {
        driver.shut_down(within).await;
        loop {
            tokio::select! {
                ended = &mut run => return ended,
                () = self.next() => driver.shut_down(Span::ZERO).await,
            }
        }
    }
}
