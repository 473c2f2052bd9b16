//! Plots of a result, each as SVG and PNG from the same drawing.

mod axis;
mod bound;
mod canvas;
mod curve;
mod figure;
mod fit;
mod histogram;
mod learning;
mod page;
mod panel;
mod parts;
mod plan;
mod published;
mod queues;
mod ratios;
mod refusals;
mod staleness;
mod theme;
mod throughput;
mod tournament;
mod tune;
mod validation;

use std::convert::Infallible;

use plotters::drawing::DrawingAreaErrorKind;

pub use figure::{Figure, FigurePanel, Narrow, Value};
pub use learning::{Learned, draw_learning};
pub use page::Picture;
pub use published::draw_published;
pub use validation::draw_validation;

use super::results::{Kind, Results};
use crate::plan::results::PlanResults;
use crate::tournament::results::TournamentResults;
use crate::tune::results::TuneResults;
pub(crate) use canvas::svg::escape;
use curve::Curve;

/// Why a picture could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The layout left no room.
    #[error("a plot could not be laid out: {0}")]
    Layout(String),
    /// The PNG could not be written.
    #[error("a PNG could not be written: {0}")]
    Png(#[from] png::EncodingError),
}

impl From<DrawingAreaErrorKind<Infallible>> for PlotError {
    fn from(error: DrawingAreaErrorKind<Infallible>) -> Self {
        Self::Layout(error.to_string())
    }
}

type Drawn = Result<(), PlotError>;

/// Draws every plot of a result: over the swept key for a sweep (one set for each combination of
/// the other keys), over time for a single run.
///
/// # Errors
/// A picture could not be laid out or encoded.
pub fn draw(results: &Results) -> Result<Vec<Picture>, PlotError> {
    let mut pictures = Vec::new();
    for curve in Curve::all(results) {
        if results.meta.kind == Kind::Sweep {
            pictures.push(staleness::draw(&curve)?);
            pictures.push(throughput::draw(&curve)?);
            pictures.push(refusals::draw(&curve)?);
            pictures.extend(ratios::quantiles(&curve)?);
            pictures.extend(ratios::effective(&curve)?);
        } else {
            pictures.extend(queues::draw(&curve)?);
            pictures.extend(bound::draw(&curve)?);
            pictures.extend(ratios::by_staleness(&curve)?);
        }
        pictures.push(parts::draw(&curve)?);
        pictures.push(histogram::draw(&curve)?);
    }
    Ok(pictures)
}

/// Draws the plots of a plan: throughput against staleness, and idle shares by split.
///
/// # Errors
/// A picture could not be laid out or encoded.
pub fn draw_plan(plan: &PlanResults) -> Result<Vec<Picture>, PlotError> {
    Ok(vec![plan::front(plan)?, plan::idle(plan)?])
}

/// Draws the plot of a tuning: what is maximised against staleness.
///
/// # Errors
/// The picture could not be laid out or encoded.
pub fn draw_tune(tune: &TuneResults) -> Result<Vec<Picture>, PlotError> {
    Ok(vec![tune::front(tune)?])
}

/// Draws the plots of a tournament: for each workload the front of throughput against staleness, by
/// sync mode, and every gate beside it.
///
/// # Errors
/// A picture could not be laid out or encoded.
pub fn draw_tournament(results: &TournamentResults) -> Result<Vec<Picture>, PlotError> {
    let mut pictures = Vec::new();
    for workload in &results.meta.workloads {
        pictures.push(tournament::front(results, workload)?);
        pictures.push(tournament::gates(results, workload)?);
    }
    Ok(pictures)
}

#[cfg(test)]
mod tests;
