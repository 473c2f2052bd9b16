//! Predicted intervals and measured points, run by run.

use plotters::style::RGBColor;

use super::axis::Axis;
use super::page::{self, Head, Key, Picture};
use super::panel::{Area, Panel, Point};
use super::theme::{SERIES, Style};
use super::{Drawn, PlotError};
use crate::report::number;
use crate::validate::{Row, Validation};

/// More runs than this are numbered: their names have no room.
const NAMED: usize = 10;

/// The key whose values need no explanation.
const BOUND: &str = "max_head_off_policyness";

/// A picture: its files, its title, and metrics with what their axes say.
type Shown = (&'static str, &'static str, [(&'static str, &'static str); 3]);

const PICTURES: [Shown; 3] = [
    (
        "validation",
        "Predicted and measured: throughput, staleness, refusals",
        [
            ("trained_samples_per_hour", "trained samples/h"),
            ("staleness_head_mean", "mean staleness"),
            ("refused_stale_share", "refused (429, stale)"),
        ],
    ),
    (
        "validation-ratios",
        "Predicted and measured: importance ratios of trained tokens",
        [
            ("learner_rollout_step_p99", "ratio p99 of a step"),
            ("train_rollout_logprob_abs_diff", "log-prob difference"),
            ("clipped_fraction", "clipped fraction"),
        ],
    ),
    (
        "validation-idle",
        "Predicted and measured: what stands idle",
        [
            ("trainer_idle_share", "trainer idle"),
            ("serving_idle_share", "serving idle"),
            ("judge_idle_share", "judge idle"),
        ],
    ),
];

/// Draws predicted intervals and measured points over the runs; metrics that no run has are left
/// out.
///
/// # Errors
/// A picture could not be laid out or encoded.
pub fn draw_validation(validation: &Validation) -> Result<Vec<Picture>, PlotError> {
    let order = order(validation);
    let pictures = PICTURES.iter().map(|shown| picture(validation, &order, shown));
    Ok(pictures.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn picture(
    validation: &Validation,
    order: &[usize],
    (name, title, metrics): &Shown,
) -> Result<Option<Picture>, PlotError> {
    let panels: Vec<(Vec<Option<&Row>>, &str)> = metrics
        .iter()
        .map(|(metric, label)| (rows(validation, order, metric), *label))
        .filter(|(rows, _)| rows.iter().flatten().any(|row| row.measured.is_some()))
        .collect();
    if panels.is_empty() {
        return Ok(None);
    }
    let point = |style: Style| Style { width: 0, ..style };
    let legend = [
        Key::Fill(BAND, "predicted, for nine of ten runs".into()),
        Key::Line(point(SERIES[0]), "measured".into()),
        Key::Line(point(SERIES[1]), "measured, beyond the tolerance".into()),
    ];
    let head = Head {
        name,
        title,
        subtitle: &subtitle(validation),
        legend: &legend,
        height: 130 + 250 * panels.len() as i32,
    };
    let x = places(validation, order);
    page::draw(&head, |area| {
        for (place, (rows, label)) in
            area.split_evenly((panels.len(), 1)).iter().zip(&panels)
        {
            panel(place, &x, rows, label)?;
        }
        Ok(())
    })
    .map(Some)
}

/// One metric over the runs.
fn panel(area: &Area<'_>, x: &Axis, rows: &[Option<&Row>], label: &str) -> Drawn {
    let is_ratio = label.starts_with("ratio");
    let scale = |value: f64| if is_ratio { libm::log(value.max(1e-6)) } else { value };
    let interval = |row: &Row| row.prediction.and_then(|prediction| prediction.interval);
    let ends = rows.iter().flatten().flat_map(|row| {
        let interval = interval(row);
        [row.measured, interval.map(|ends| ends.0), interval.map(|ends| ends.1)]
    });
    let ends: Vec<f64> = ends.flatten().collect();
    let highest = ends.iter().copied().fold(0.0, f64::max);
    let y = match is_ratio {
        true => Axis::ratios(label, ends.iter().copied().fold(1.0, f64::min), highest),
        false => Axis::from_zero(label, highest, 5),
    };
    let panel = Panel::on(area, x, &y)?;
    for (place, row) in rows.iter().enumerate() {
        let Some((row, (low, high))) = row.and_then(|row| Some((row, interval(row)?))) else {
            continue;
        };
        let middle = row.prediction.map_or(low, |prediction| prediction.value);
        panel.range(place as f64, [low, middle, high].map(scale), BAND, SERIES[0].color)?;
    }
    let measured = |missed: bool| -> Vec<Point> {
        let of = |row: &&Row| row.is_miss() == missed;
        let value = |row: &Option<&Row>| row.filter(of)?.measured.map(scale);
        rows.iter().enumerate().map(|(place, row)| (place as f64, value(row), None)).collect()
    };
    for (missed, style) in [(false, SERIES[0]), (true, SERIES[1])] {
        panel.curves(&[(measured(missed), style)], false)?;
    }
    Ok(())
}

/// The fill of predicted intervals.
const BAND: RGBColor = RGBColor(0xb9, 0xc6, 0xde);

/// The rows of a metric, by place.
fn rows<'v>(validation: &'v Validation, order: &[usize], metric: &str) -> Vec<Option<&'v Row>> {
    let row = |run: &usize| {
        validation.rows.iter().find(|row| row.run == *run && row.figure().name == metric)
    };
    order.iter().map(row).collect()
}

/// The values of the only key in which runs differ, where they are numbers.
fn numbers(validation: &Validation) -> Option<Vec<f64>> {
    let only = validation.keys.len() == 1;
    let values = validation.runs.iter().map(|run| number::parse(run.settings.first()?));
    values.collect::<Option<Vec<f64>>>().filter(|_| only)
}

/// The runs from left to right: by the only key in which they differ, or as they were given.
fn order(validation: &Validation) -> Vec<usize> {
    let mut order: Vec<usize> = (0..validation.runs.len()).collect();
    if let Some(numbers) = numbers(validation) {
        order.sort_by(|&one, &other| numbers[one].total_cmp(&numbers[other]));
    }
    order
}

fn places(validation: &Validation, order: &[usize]) -> Axis {
    let key = validation.keys.first().map_or("", String::as_str);
    let names = |name: &dyn Fn(usize) -> String| -> Vec<String> {
        order.iter().map(|run| name(*run)).collect()
    };
    if numbers(validation).is_some() {
        let label = if key == BOUND { "staleness bound η (max_head_off_policyness)" } else { key };
        return Axis::places(label, &names(&|run| validation.runs[run].settings[0].clone()));
    }
    if order.len() > NAMED {
        let label = "run, in the order of validation.csv";
        return Axis::places(label, &names(&|run| (run + 1).to_string()));
    }
    Axis::places("run", &names(&|run| validation.runs[run].name.clone()))
}

fn subtitle(validation: &Validation) -> String {
    let Validation { scenario, replications, uncertain, .. } = validation;
    let known = match uncertain {
        0 => "no parameter uncertainty".to_owned(),
        1 => "1 fitted number drawn".to_owned(),
        more => format!("{more} fitted numbers drawn"),
    };
    format!("{scenario} · {replications} replications, {known}")
}
