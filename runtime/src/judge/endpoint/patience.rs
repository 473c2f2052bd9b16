//! An endpoint that limits its rate says when it may be asked again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Response;
use reqwest::header::RETRY_AFTER;
use tokio::time::Instant;

/// The first wait where the endpoint names none; doubled each time.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(60);

/// When the endpoint may be asked again: what one vote is told holds for all.
#[derive(Clone, Debug, Default)]
pub(super) struct Patience(Arc<Mutex<Option<Instant>>>);

impl Patience {
    /// Waits until the endpoint may be asked.
    pub(super) async fn wait(&self) {
        loop {
            let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match until {
                Some(until) if until > Instant::now() => tokio::time::sleep_until(until).await,
                _ => return,
            }
        }
    }

    /// The endpoint said no for now: 429, or 503 with a time. False: it said something else.
    pub(super) fn heed(&self, response: &Response, tries: u32) -> bool {
        let named = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let named = named.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        let limited = match response.status().as_u16() {
            429 => true,
            503 => named.is_some(),
            _ => false,
        };
        if limited {
            let wait = named.unwrap_or(FIRST * 2_u32.saturating_pow(tries.min(6))).min(LONGEST);
            let mut until = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let begins = until.is_none_or(|until| until <= Instant::now());
            if begins {
                let seconds = wait.as_secs();
                tracing::info!(
                    target: "headway",
                    "the judge's endpoint limits its rate: it is asked again in {seconds} s"
                );
            }
            *until = (*until).max(Some(Instant::now() + wait));
        }
        limited
    }
}
