//! How a live run learned: reward, staleness and ratios over its train steps.

use super::PlotError;
use super::axis::Axis;
use super::curve::highest;
use super::page::{self, Head, Key, Picture};
use super::panel::{Panel, Point};
use super::theme::{Marker, SERIES, Style};
use crate::report::csv::Csv;
use crate::stats;

/// Points of a line, at most.
const POINTS: usize = 60;

/// Column, and what it is.
const PANELS: [(&str, &str); 4] = [
    ("reward_mean", "mean reward"),
    ("staleness_mean", "mean staleness, versions"),
    ("ratio_p99", "ratio learner/rollout, p99"),
    ("logprob_abs_diff", "log-prob difference"),
];

/// Runs of one kind, by the tables of their steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// What they have in common; empty where there is but one kind.
    pub name: String,
    /// The tables, one for each run.
    pub runs: Vec<Csv>,
}

/// Draws reward, staleness, ratio and log-prob difference over train steps, a line for each kind of
/// run.
///
/// # Errors
/// The picture could not be laid out or encoded.
pub fn draw_learning(kinds: &[Learned]) -> Result<Picture, PlotError> {
    let runs = || kinds.iter().flat_map(|kind| &kind.runs);
    let steps = runs().map(|run| run.rows.len()).max().unwrap_or(0);
    let stretch = steps.div_ceil(POINTS).max(1);
    let styles: Vec<Style> = SERIES
        .iter()
        .cycle()
        .map(|style| Style { marker: Marker::None, ..*style })
        .take(kinds.len())
        .collect();
    let named = kinds.iter().zip(&styles).filter(|(kind, _)| !kind.name.is_empty());
    let legend: Vec<Key> =
        named.map(|(kind, style)| Key::Line(*style, kind.name.clone())).collect();
    let most = kinds.iter().map(|kind| kind.runs.len()).max().unwrap_or(0);
    let over = match stretch {
        1 => "each step".to_owned(),
        _ => format!("means over {stretch} steps"),
    };
    let head = Head {
        name: "learning",
        title: "Learning, and how stale and how far off the policy its samples were",
        subtitle: &if most > 1 { format!("{over} and {most} runs") } else { over },
        legend: &legend,
        height: 760,
        narrow: 960,
    };
    page::draw(&head, |area| {
        for (place, (column, label)) in page::cells(area, PANELS.len(), [2, 1]).iter().zip(PANELS) {
            let lines: Vec<(Vec<Point>, Style)> = kinds
                .iter()
                .zip(&styles)
                .map(|(kind, style)| (means(kind, column, stretch), *style))
                .collect();
            let top = highest(lines.iter().map(|(points, _)| points));
            let x = Axis::until("train step", steps as f64, 5);
            let y = Axis::from_zero(label, top, 6);
            Panel::on(place, &x, &y)?.curves(&lines, true)?;
        }
        Ok(())
    })
}

/// The means of a column over stretches of steps and over runs.
fn means(kind: &Learned, column: &str, stretch: usize) -> Vec<Point> {
    let steps = kind.runs.iter().map(|run| run.rows.len()).max().unwrap_or(0);
    let starts = (0..steps).step_by(stretch);
    let point = |start: usize| {
        let end = (start + stretch).min(steps);
        let values = kind
            .runs
            .iter()
            .flat_map(|run| (start..end).filter_map(move |row| run.value(row, column)));
        let values: Vec<f64> = values.collect();
        let middle = (start + end) as f64 / 2.0;
        (middle, stats::mean(&values), None)
    };
    starts.map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rewards: &[&str]) -> Csv {
        let mut csv = Csv::new(["step", "reward_mean"]);
        let rows = rewards.iter().enumerate();
        csv.rows.extend(rows.map(|(step, reward)| vec![step.to_string(), (*reward).to_owned()]));
        csv
    }

    #[test]
    fn a_line_is_the_mean_over_stretches_and_runs() {
        let runs = vec![run(&["0", "1", "0.5"]), run(&["0", "1"])];
        let kind = Learned { name: String::new(), runs };
        let points = means(&kind, "reward_mean", 2);
        assert_eq!(points, [(1.0, Some(0.5), None), (2.5, Some(0.5), None)]);
        assert_eq!(means(&kind, "no such column", 3), [(1.5, None, None)]);
        let picture = draw_learning(&[kind]).expect("there is room");
        assert!(picture.svg.contains("<svg") && !picture.png.is_empty());
        assert!(draw_learning(&[]).is_ok());
    }
}
