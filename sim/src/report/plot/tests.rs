use headway_shared::core::STALENESS_PARTS;
use headway_shared::digest::mix;
use headway_shared::metrics::{METRICS, Row};

use super::*;
use crate::drift;
use crate::report::csv::Csv;
use crate::report::number;
use crate::report::results::Meta;

/// A number from 0 to 1 that depends on `seed` alone.
fn noise(seed: u64) -> f64 {
    (mix(seed) >> 11) as f64 / (1_u64 << 53) as f64
}

fn meta(kind: Kind, keys: &[&str]) -> Meta {
    Meta {
        kind,
        version: "0.0.0".into(),
        scenario: "synthetic".into(),
        title: "Made up".into(),
        scenario_digest: String::new(),
        seed: 1,
        replications: 8,
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        drift: None,
        config: None,
        about: None,
        plots: Vec::new(),
    }
}

/// A point of a made-up sweep: its metrics with half-widths.
fn metrics(eta: f64) -> Vec<(String, f64, f64)> {
    let mut metrics: Vec<(String, f64, f64)> = [
        ("staleness_head_mean", 0.62 * eta + 0.1, 0.1),
        ("staleness_head_p50", (0.6 * eta).floor(), 0.0),
        ("staleness_head_p99", 1.3 * eta + 1.0, 0.4),
        ("staleness_head_max", 1.9 * eta + 2.0, 1.2),
        ("trained_samples_per_hour", 900.0 * eta / (1.0 + eta) + 310.0, 24.0),
        ("serving_idle_share", 0.6 / (1.0 + eta), 0.02),
        ("judge_idle_share", 0.3 / (1.0 + 2.0 * eta) + 0.04, 0.01),
        ("trainer_idle_share", 0.85 - 0.2 * eta / (1.0 + eta), 0.02),
        ("refused_stale_share", 0.5 / (1.0 + eta), 0.02),
        ("refused_queue_full_share", 0.01 * eta, 0.004),
        ("refused_other_429_share", 0.0, 0.0),
        ("refused_503_share", 0.06, 0.006),
    ]
    .map(|(name, mean, half)| (name.to_owned(), mean, half))
    .to_vec();
    for (part, name) in (1_u32..).zip(STALENESS_PARTS) {
        metrics.push((format!("staleness_part_{name}"), 0.62 * eta * f64::from(part) / 28.0, 0.0));
    }
    metrics
}

fn results(kind: Kind, keys: &[&str], settings: &[&[&str]]) -> Results {
    let key_names = keys.iter().map(|key| (*key).to_owned());
    let lead: Vec<String> = std::iter::once("point".to_owned()).chain(key_names).collect();
    let table = |columns: &[&str]| {
        Csv::new(lead.iter().cloned().chain(columns.iter().map(|column| (*column).to_owned())))
    };
    let names: Vec<String> =
        metrics(0.0).into_iter().flat_map(|(name, ..)| [format!("{name}_hw"), name]).collect();
    let mut points = table(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut histogram = table(&["staleness", "samples", "share"]);
    let mut series = table(&[
        "time_sec",
        "rollout_queue",
        "output_queue",
        "outstanding",
        "running",
        "votes",
        "training",
        "closed",
    ]);
    for (point, values) in settings.iter().enumerate() {
        let lead: Vec<String> =
            std::iter::once(point.to_string()).chain(values.iter().map(|v| (*v).into())).collect();
        let row = |cells: &[f64]| {
            lead.iter().cloned().chain(cells.iter().map(|cell| number::text(*cell))).collect()
        };
        let eta = values.first().and_then(|value| number::parse(value)).unwrap_or(2.0);
        let cells: Vec<f64> =
            metrics(eta).into_iter().flat_map(|(_, mean, half)| [half, mean]).collect();
        points.rows.push(row(&cells));
        let widest = (1.9 * eta + 2.0) as u32;
        for staleness in 0..=widest {
            let share =
                2.0 * f64::from(widest + 1 - staleness) / f64::from((widest + 1) * (widest + 2));
            histogram.rows.push(row(&[f64::from(staleness), (share * 1e4).round(), share]));
        }
        for at in 0..1440_u32 {
            let draw = |of: u64| noise(u64::from(at) * 16 + of);
            let wave = f64::from(at % 90) / 90.0;
            let closed = f64::from(u8::from(at % 90 < 6));
            series.rows.push(row(&[
                f64::from(at) * 60.0,
                (9.0 * wave * draw(1)).floor(),
                (16.0 * wave).floor(),
                32.0 + (14.0 * draw(2)).floor(),
                (12.0 * draw(3)).floor() * (1.0 - closed),
                4.0 - (draw(4) * 1.4).floor(),
                f64::from(u8::from(wave > 0.7)),
                closed,
            ]));
        }
    }
    let meta = meta(kind, keys);
    Results { meta, points, runs: table(&[]), histogram, series, ratios: None }
}

fn sweep() -> Results {
    let etas: &[&[&str]] = &[&["0"], &["1"], &["2"], &["4"], &["8"], &["16"]];
    results(Kind::Sweep, &["policy_training.max_head_off_policyness"], etas)
}

#[test]
fn every_picture_is_small_and_holds_no_undefined_number() {
    for result in [results(Kind::Run, &[], &[&[]]), sweep()] {
        for picture in draw(&result).expect("it can be drawn") {
            assert!(picture.svg.len() < 150_000, "{}: {}", picture.name, picture.svg.len());
            assert!(!picture.svg.contains("NaN"), "{}", picture.name);
            assert!(picture.png.starts_with(b"\x89PNG"));
        }
    }
}

#[test]
fn a_grid_has_one_set_of_pictures_for_each_value_of_its_other_key() {
    let keys = ["policy_training.max_head_off_policyness", "policy_serving.sync_mode"];
    let points: &[&[&str]] =
        &[&["0", "in_flight"], &["0", "rolling"], &["4", "in_flight"], &["4", "rolling"]];
    let pictures = draw(&results(Kind::Sweep, &keys, points)).expect("it can be drawn");
    let names: Vec<&str> = pictures.iter().map(|picture| picture.name.as_str()).collect();
    assert!(names.contains(&"staleness-sync_mode-in_flight"), "{names:?}");
    assert!(names.contains(&"staleness-sync_mode-rolling"), "{names:?}");
    assert_eq!(names.len(), 10);
}

#[test]
fn ratios_have_pictures_where_they_are_predicted_and_every_one_says_what_they_rest_on() {
    for (words, title) in [("uncalibrated", true), ("calibrated from run.db", false)] {
        let mut sweep = sweep();
        sweep.meta.drift = Some(words.into());
        let mut run = results(Kind::Run, &[], &[&[]]);
        run.meta.drift = Some(words.into());
        run.ratios = Some(Csv::new(["point", "staleness", "learner_rollout_p99"]));
        let rows = ["0", "1", "2"].map(|staleness| ["0", staleness, "1.5"].map(str::to_owned));
        run.ratios.as_mut().unwrap().rows = rows.map(Vec::from).to_vec();
        let pictures = [draw(&sweep).unwrap(), draw(&run).unwrap()].concat();
        let ratios: Vec<&Picture> = pictures
            .iter()
            .filter(|picture| ["ratios", "effective", "ratio-staleness"].contains(&&*picture.name))
            .collect();
        assert_eq!(ratios.len(), 3);
        for picture in ratios {
            let heading = picture.svg.split("<title>").nth(1).unwrap();
            let heading = heading.split("</title>").next().unwrap();
            assert_eq!(heading.contains("(uncalibrated)"), title, "{heading}");
        }
    }
    assert!(draw(&sweep()).unwrap().iter().all(|picture| picture.name != "ratios"));
}

#[test]
fn undefined_metrics_leave_gaps_and_no_error() {
    let mut sweep = sweep();
    for row in &mut sweep.points.rows {
        row[2..].iter_mut().for_each(String::clear);
    }
    sweep.histogram.rows.clear();
    sweep.series.rows.clear();
    assert!(draw(&sweep).is_ok());
    sweep.meta.kind = Kind::Run;
    let pictures = draw(&sweep).expect("it can be drawn");
    assert!(pictures.iter().all(|picture| picture.name != "queues"), "there is no series");
}

#[test]
fn what_is_plotted_is_a_metric_or_a_gauge() {
    let metrics: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
    let plotted = [&staleness::METRICS[..], &throughput::IDLE, &refusals::METRICS].concat();
    for (name, _) in plotted {
        assert!(metrics.contains(&name), "{name}");
    }
    for (name, _) in [&ratios::QUANTILES[..], &ratios::EFFECTIVE].concat() {
        assert!(drift::METRICS.iter().any(|metric| metric.name == name), "{name}");
    }
    for (name, _) in ratios::QUANTILES {
        assert!(drift::STALENESS_COLUMNS.contains(&name), "{name}");
    }
    for part in STALENESS_PARTS {
        assert!(metrics.contains(&format!("staleness_part_{part}").as_str()), "{part}");
    }
    for (name, _) in [&queues::LENGTHS[..], &queues::FLIGHT, &queues::BUSY].concat() {
        assert!(Row::COLUMNS.contains(&name), "{name}");
    }
    assert!(Row::COLUMNS.contains(&bound::COLUMN));
}
