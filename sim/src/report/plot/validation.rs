//! Predicted intervals and measured points, run by run.

use std::collections::BTreeSet;

use super::axis::{Axis, cut};
use super::page::{self, Head, Key, Picture};
use super::panel::{Area, Panel, Point};
use super::theme::{BAND, REFERENCE, SERIES, Style};
use super::{Drawn, PlotError};
use crate::report::number;
use crate::validate::{Row, Validation};

/// More runs than this are numbered: their names have no room.
const NAMED: usize = 10;

/// Letters for which a subtitle has room.
const LETTERS: usize = 130;

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
    let order = Order::of(validation);
    let pictures = PICTURES.iter().map(|shown| picture(validation, &order, shown));
    Ok(pictures.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn picture(
    validation: &Validation,
    order: &Order,
    (name, title, metrics): &Shown,
) -> Result<Option<Picture>, PlotError> {
    let panels: Vec<(Vec<Option<&Row>>, &str)> = metrics
        .iter()
        .map(|(metric, label)| (rows(validation, &order.runs, metric), *label))
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
        subtitle: &subtitle(validation, order),
        legend: &legend,
        height: 130 + 250 * panels.len() as i32,
        narrow: 250 * panels.len() as i32,
    };
    page::draw(&head, |area| {
        for (place, (rows, label)) in area.split_evenly((panels.len(), 1)).iter().zip(&panels) {
            panel(place, order, rows, label)?;
        }
        Ok(())
    })
    .map(Some)
}

/// One metric over the runs.
fn panel(area: &Area<'_>, order: &Order, rows: &[Option<&Row>], label: &str) -> Drawn {
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
    // Room for the names of groups.
    let panel = Panel::titled(area, "", &order.axis, &y)?;
    order.mark(&panel, &y)?;
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

/// The rows of a metric, by place.
fn rows<'v>(validation: &'v Validation, order: &[usize], metric: &str) -> Vec<Option<&'v Row>> {
    let row = |run: &usize| {
        validation.rows.iter().find(|row| row.run == *run && row.figure().name == metric)
    };
    order.iter().map(row).collect()
}

/// Runs from left to right.
struct Order {
    /// The runs, by place.
    runs: Vec<usize>,
    /// The axis below them.
    axis: Axis,
    /// Neighbours that differ in the key of the axis alone, as (first place, places, what they have in
    /// common); empty where there is one group.
    groups: Vec<(usize, usize, String)>,
    /// The keys that tell the groups apart.
    by: Vec<String>,
}

/// A key whose values are numbers, and more than one: η before all others.
fn numeric(validation: &Validation) -> Option<usize> {
    let is = |key: &usize| {
        let values = validation.runs.iter().map(|run| &run.settings[*key]);
        let mut values: Vec<&String> = values.collect();
        values.sort_unstable();
        values.dedup();
        values.len() > 1 && values.iter().all(|value| number::parse(value).is_some())
    };
    let bound = validation.keys.iter().position(|key| key == BOUND).filter(is);
    bound.or_else(|| (0..validation.keys.len()).find(is))
}

/// The places of the keys, but for `axis`, in which runs differ, without those that follow the ones before
/// them, as the parameters of one law do.
fn telling(settings: &[&[String]], axis: usize) -> Vec<usize> {
    let groups = |keys: &[usize]| {
        let of = |run: &&[String]| keys.iter().map(|&key| run[key].clone()).collect::<Vec<_>>();
        settings.iter().map(of).collect::<BTreeSet<_>>().len()
    };
    let keys = settings.first().map_or(0, |run| run.len());
    (0..keys).filter(|&key| key != axis).fold(Vec::new(), |by, key| {
        let more = [by.as_slice(), &[key]].concat();
        if groups(&more) > groups(&by) { more } else { by }
    })
}

/// What runs have in common, by the values of these keys.
fn name(settings: &[String], by: &[usize]) -> String {
    let values = by.iter().map(|&key| settings[key].as_str()).filter(|value| !value.is_empty());
    let name = values.collect::<Vec<_>>().join(" ");
    if name.is_empty() { "as the scenario".to_owned() } else { name }
}

impl Order {
    /// By a key whose values are numbers, in groups that have the other keys in common; as they were
    /// given, where there is no such key.
    fn of(validation: &Validation) -> Self {
        let count = validation.runs.len();
        let Some(key) = numeric(validation) else {
            let runs = 0..count;
            let (label, names): (_, Vec<String>) = match count > NAMED {
                true => (
                    "run, in the order of validation.csv",
                    runs.map(|run| (run + 1).to_string()).collect(),
                ),
                false => ("run", validation.runs.iter().map(|run| run.name.clone()).collect()),
            };
            let axis = Axis::places(label, &names);
            return Self { runs: (0..count).collect(), axis, groups: Vec::new(), by: Vec::new() };
        };
        let settings: Vec<&[String]> =
            validation.runs.iter().map(|run| run.settings.as_slice()).collect();
        let by = telling(&settings, key);
        let rest = |run: usize| name(settings[run], &by);
        let mut names: Vec<String> = Vec::new();
        (0..count).map(rest).for_each(|name| {
            if !names.contains(&name) {
                names.push(name);
            }
        });
        let group = |run: usize| names.iter().position(|name| *name == rest(run));
        let value = |run: usize| number::parse(&validation.runs[run].settings[key]).unwrap_or(0.0);
        let mut runs: Vec<usize> = (0..count).collect();
        runs.sort_by(|&one, &other| {
            group(one).cmp(&group(other)).then(value(one).total_cmp(&value(other)))
        });
        let mut groups: Vec<(usize, usize, String)> = Vec::new();
        for (place, &run) in runs.iter().enumerate() {
            let name = rest(run);
            match groups.last_mut().filter(|(.., last)| *last == name) {
                Some((_, places, _)) => *places += 1,
                None => groups.push((place, 1, name)),
            }
        }
        if groups.len() == 1 {
            groups.clear();
        }
        let by = by.iter().map(|&key| validation.keys[key].clone()).collect();
        let label = match validation.keys[key].as_str() {
            BOUND => "staleness bound η (max_head_off_policyness)",
            key => key,
        };
        let ticks: Vec<String> =
            runs.iter().map(|&run| validation.runs[run].settings[key].clone()).collect();
        Self { axis: Axis::places(label, &ticks), runs, groups, by }
    }

    /// Names the groups above a panel, and draws lines between them.
    fn mark(&self, panel: &Panel<'_>, y: &Axis) -> Drawn {
        for (first, places, name) in &self.groups {
            let end = (first + places) as f64 - 0.5;
            if end < self.axis.range.1 {
                panel.trace(&[(end, y.range.0), (end, y.range.1)], REFERENCE)?;
            }
            let room = places * panel.letters() / self.runs.len();
            panel.note((end - 0.5 * *places as f64, y.range.1), &cut(name, room))?;
        }
        Ok(())
    }
}

fn subtitle(validation: &Validation, order: &Order) -> String {
    let Validation { scenario, replications, uncertain, .. } = validation;
    let known = match uncertain {
        0 => "no parameter uncertainty".to_owned(),
        1 => "1 fitted number drawn".to_owned(),
        more => format!("{more} fitted numbers drawn"),
    };
    let groups = match order.by.as_slice() {
        _ if order.groups.is_empty() => String::new(),
        by => format!(" · by {}", by.join(", ")),
    };
    cut(&format!("{scenario} · {replications} replications, {known}{groups}"), LETTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_named_by_what_tells_them_apart() {
        let run = |mode: &str, eta: &str, median: &str, sigma: &str| {
            [mode, eta, "1000", median, sigma].map(str::to_owned).to_vec()
        };
        let runs = [
            run("in_flight", "0", "", ""),
            run("in_flight", "8", "", ""),
            run("in_flight", "0", "0.2", "0.47"),
            run("pause_drain", "0", "", ""),
        ];
        let settings: Vec<&[String]> = runs.iter().map(Vec::as_slice).collect();
        let by = telling(&settings, 1);
        assert_eq!(by, [0, 3], "what is alike, or follows another, says nothing");
        let names: Vec<String> = settings.iter().map(|run| name(run, &by)).collect();
        assert_eq!(names, ["in_flight", "in_flight", "in_flight 0.2", "pause_drain"]);
        let by = telling(&settings[..3], 1);
        let names: Vec<String> = settings[1..3].iter().map(|run| name(run, &by)).collect();
        assert_eq!(names, ["as the scenario", "0.2"]);
        assert!(telling(&settings[..2], 1).is_empty());
    }
}
