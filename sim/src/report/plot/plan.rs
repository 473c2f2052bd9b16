//! The pictures of a plan.

use super::PlotError;
use super::axis::Axis;
use super::curve::highest;
use super::page::{self, Head, Key, Picture};
use super::panel::{Panel, Point};
use super::theme::{Marker, SERIES, Style, px};
use super::throughput::IDLE;
use crate::plan::results::PlanResults;
use crate::scenario::Layout;

/// More splits than this have no room for their names.
const MOST: usize = 16;

const RATE: &str = "effective_samples_per_hour";
const STALENESS: &str = "staleness_head_mean";

/// Throughput against staleness: every point, the front joined and named.
pub(super) fn front(plan: &PlanResults) -> Result<Picture, PlotError> {
    let points = &plan.points;
    let rows: Vec<usize> = (0..points.rows.len()).collect();
    let at = |row: usize| Some((points.value(row, STALENESS)?, points.value(row, RATE)?));
    // A wide interval may leave the picture; no point does.
    let top =
        |column: &str| rows.iter().filter_map(|&row| points.value(row, column)).fold(0.0, f64::max);
    let mut front: Vec<usize> = rows.iter().copied().filter(|&row| plan.is(row, "front")).collect();
    front.sort_by(|&one, &other| {
        let age = |row: usize| points.value(row, STALENESS).unwrap_or(0.0);
        age(one).total_cmp(&age(other))
    });
    let line = Style { marker: Marker::None, ..SERIES[0] };
    let mut legend = vec![Key::Line(line, "front".into())];
    let styles = Layout::ALL
        .iter()
        .zip(SERIES)
        .filter(|(layout, _)| rows.iter().any(|&row| points.text(row, "layout") == layout.word()));
    let styles: Vec<(&Layout, Style)> = styles.collect();
    legend.extend(styles.iter().map(|(layout, style)| {
        Key::Line(Style { width: 0, ..*style }, layout.word().replace('_', "-"))
    }));
    let head = Head {
        name: "front",
        title: "Throughput against staleness",
        subtitle: &subtitle(plan, "GPUs of serving + trainer at the front"),
        legend: &legend,
        height: 640,
        narrow: 420,
    };
    let x = Axis::from_zero("mean head staleness, learner versions", top(STALENESS) * 1.05, 10);
    let y = Axis::from_zero("effective samples/h", top(RATE) * 1.1, 8);
    page::draw(&head, |area| {
        let panel = Panel::on(area, &x, &y)?;
        let path: Vec<(f64, f64)> = front.iter().filter_map(|&row| at(row)).collect();
        panel.trace(&path, line)?;
        for (layout, style) in &styles {
            for &row in rows.iter().filter(|&&row| points.text(row, "layout") == layout.word()) {
                let Some((age, rate)) = at(row) else { continue };
                let half = |name: &str| points.value(row, &format!("{name}_hw")).unwrap_or(0.0);
                let strong = plan.is(row, "front") || plan.is(row, "chosen");
                let halves = (half(STALENESS), half(RATE));
                panel.spot((age, rate), halves, *style, strong)?;
                panel.tell_spot((age, rate), halves, style.color, &name(plan, row))?;
            }
        }
        // The chosen one first: it keeps its name where there is no room for all.
        let mut named = front.clone();
        named.sort_by_key(|&row| !plan.is(row, "chosen"));
        let names = named.into_iter().filter_map(|row| Some((at(row)?, name(plan, row))));
        panel.names(&names.collect::<Vec<_>>())
    })
}

/// What a point is called.
fn name(plan: &PlanResults, row: usize) -> String {
    let split = plan.points.text(row, "split");
    let tried = plan.tried(row);
    let chosen = if plan.is(row, "chosen") { "take " } else { "" };
    if tried.is_empty() { format!("{chosen}{split}") } else { format!("{chosen}{split}, {tried}") }
}

/// Throughput and idle shares by split: the splits that differ from the choice in their GPUs alone.
pub(super) fn idle(plan: &PlanResults) -> Result<Picture, PlotError> {
    let points = &plan.points;
    let rows = compared(plan);
    let names: Vec<String> = rows.iter().map(|&row| points.text(row, "split").into()).collect();
    let series = |column: &str| -> Vec<Point> {
        let half = format!("{column}_hw");
        let point = |(place, &row): (usize, &usize)| {
            (place as f64, points.value(row, column), points.value(row, &half))
        };
        rows.iter().enumerate().map(point).collect()
    };
    let rate = series(RATE);
    let has_judge = rows.iter().any(|&row| points.value(row, "judge_gpus") > Some(0.0));
    let loops: Vec<_> = IDLE
        .iter()
        .zip(&SERIES[1..])
        .filter(|((column, _), _)| has_judge || *column != "judge_idle_share")
        .collect();
    let mut legend = vec![Key::Line(SERIES[0], "effective samples/h".into())];
    legend.extend(loops.iter().map(|((_, name), style)| Key::Line(**style, (*name).into())));
    let what = match rows.first().map(|&row| plan.tried(row)).filter(|tried| !tried.is_empty()) {
        Some(tried) if is_one_kind(plan, &rows) => format!("at {tried}"),
        _ => "the fastest splits".into(),
    };
    let head = Head {
        name: "idle",
        title: "Throughput by split, and what stands idle",
        subtitle: &subtitle(plan, &what),
        legend: &legend,
        height: 760,
        narrow: 640,
    };
    let axis = Axis::places(
        if has_judge { "GPUs of serving + judge + trainer" } else { "GPUs of serving + trainer" },
        &names,
    );
    let y = Axis::from_zero("effective samples/h", highest([&rate]), 6);
    let joined = is_one_kind(plan, &rows) && rows.len() > 1;
    page::draw(&head, |area| {
        let (above, below) = area.split_vertically(px(340));
        Panel::on(&above, &axis, &y)?.curves(&[(rate.clone(), SERIES[0])], joined)?;
        let idle: Vec<_> =
            loops.iter().map(|((column, _), style)| (series(column), **style)).collect();
        Panel::on(&below, &axis, &Axis::share("idle share of time"))?.curves(&idle, joined)
    })
}

/// The points that differ from the choice in their split alone, by the trainer's GPUs; where there
/// is no other, the fastest.
fn compared(plan: &PlanResults) -> Vec<usize> {
    let points = &plan.points;
    let by_rate = plan.by_throughput();
    let chosen = by_rate.iter().copied().find(|&row| plan.is(row, "chosen"));
    let of = chosen.or(by_rate.first().copied());
    let akin: Vec<usize> = by_rate
        .iter()
        .copied()
        .filter(|&row| of.is_some_and(|of| is_akin(plan, of, row)))
        .collect();
    if akin.len() < 2 {
        return by_rate.into_iter().take(MOST / 2).collect();
    }
    let mut akin: Vec<usize> = akin.into_iter().take(MOST).collect();
    akin.sort_by(|&one, &other| {
        let place = |row: usize| {
            ["trainer_gpus", "judge_gpus"].map(|name| points.value(row, name).unwrap_or(0.0) as u64)
        };
        place(one).cmp(&place(other))
    });
    akin
}

fn is_akin(plan: &PlanResults, one: usize, other: usize) -> bool {
    let text = |row: usize, key: &str| plan.points.text(row, key).to_owned();
    let same = |key: &str| text(one, key) == text(other, key);
    same("layout") && plan.meta.keys.iter().all(|key| same(key))
}

fn is_one_kind(plan: &PlanResults, rows: &[usize]) -> bool {
    rows.iter().all(|&row| is_akin(plan, rows[0], row))
}

fn subtitle(plan: &PlanResults, what: &str) -> String {
    let meta = &plan.meta;
    format!(
        "{} on {} GPUs · {what} · {} replications, 95% intervals",
        meta.scenario, meta.gpus, meta.replications
    )
}
