//! What one run gives to the results of its sweep.

use headway_shared::digest::Digest;
use headway_shared::metrics::{METRICS, Summary};
use serde::{Deserialize, Serialize};

use super::trouble::{Caught, Trouble, wrong_with};
use crate::drift::{self, Drift};
use crate::report::tables::Replicated;
use crate::run::{Course, Ended, RunFailure, RunResult};

/// Everything that the results of a sweep take from one of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// What it gave; `None`: it panicked.
    pub(super) run: Option<Replicated>,
    /// Its train steps, where its warm-up was over.
    pub(super) course: Option<Course>,
    /// What is wrong with it, and whether it is no result.
    pub(super) wrong: Option<(String, bool)>,
}

/// The same as bytes: numbers of floats to the bit.
#[derive(Serialize, Deserialize)]
struct Stored {
    run: Option<StoredRun>,
    course: Option<Course>,
    wrong: Option<(String, bool)>,
}

#[derive(Serialize, Deserialize)]
struct StoredRun {
    summary: Summary,
    /// The values of [`drift::METRICS`], where there are any.
    ratios: Vec<Option<f64>>,
    drift: Option<Drift>,
    digest: Digest,
    /// Its place in [`Ended::WORDS`].
    ended: u8,
}

impl Contribution {
    /// What came of a run.
    ///
    /// # Errors
    /// Its record could not be written.
    pub(super) fn of(run: Caught) -> std::io::Result<Self> {
        let result = match run {
            Ok(Ok(result)) => result,
            Ok(Err(RunFailure::Core { result, .. })) => *result,
            Ok(Err(RunFailure::Record(error))) => return Err(error),
            Err(message) => {
                let what = format!("panicked, which is a bug of Headway: {message}");
                return Ok(Self { run: None, course: None, wrong: Some((what, true)) });
            }
        };
        let wrong = wrong_with(&result);
        let RunResult { summary, digest, ended, course, warm, drift, .. } = result;
        let run = Replicated { summary, drift, digest, ended: ended.word() };
        Ok(Self { run: Some(run), course: warm.then_some(course), wrong })
    }

    /// What is wrong with it, as of this run.
    pub(super) fn trouble(&self, point: usize, replication: u32) -> Option<Trouble> {
        let (what, fatal) = self.wrong.clone()?;
        Some(Trouble { point, replication, what, fatal })
    }

    /// It as bytes, for a build with the same metrics.
    ///
    /// # Errors
    /// None that is known: it is what the encoder reports.
    pub fn to_bytes(&self) -> postcard::Result<Vec<u8>> {
        let run = self.run.as_ref().map(|run| {
            let Replicated { summary, drift, digest, ended } = run.clone();
            let ratios = summary.values().skip(METRICS.len()).map(|(_, value)| value).collect();
            let place = Ended::WORDS.iter().position(|word| *word == ended);
            let ended = place.map_or(u8::MAX, |place| place as u8);
            StoredRun { ratios, summary, drift, digest, ended }
        });
        let Self { course, wrong, .. } = self.clone();
        postcard::to_stdvec(&Stored { run, course, wrong })
    }

    /// It from its bytes; `None`: they are no contribution of a build with these metrics.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (Stored { run, course, wrong }, rest) = postcard::take_from_bytes(bytes).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let run = match run {
            Some(StoredRun { summary, ratios, drift, digest, ended }) => {
                let ended = *Ended::WORDS.get(usize::from(ended))?;
                let known = summary.values().count() == METRICS.len()
                    && (ratios.is_empty() || ratios.len() == drift::METRICS.len());
                if !known {
                    return None;
                }
                let summary = summary.with(drift::METRICS.iter().zip(ratios));
                Some(Replicated { summary, drift, digest, ended })
            }
            None => None,
        };
        Some(Self { run, course, wrong })
    }
}
