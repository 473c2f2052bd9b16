use headway_shared::config::Layers;

use super::*;
use crate::report::csv::Csv;
use crate::report::plot;
use crate::scenario::Scenario;
use crate::sweep::{Plan, Progress, over};

const SMALL: &str = r#"
    [scenario]
    name = "made-up"
    title = "<script>alert('title')</script> & \"more\""
    description = "A world </script><script>alert(1)</script> of its own"
    sources = ["Somebody <b>else</b>"]
    assumed = ["the number of slots"]
    steps = 12
    warmup_steps = 2

    [policy_training]
    batch_size = 4
    max_head_off_policyness = 2

    [reward_judging]
    judge_needs = "turn"

    [world.serving]
    decode_base_sec = 0.02

    [world.clients]
    kind = "slots"
    slots = 16
    prompt_tokens = { kind = "constant", value = 64 }
    output_tokens = { kind = "lognormal", median = 80, p99 = 400 }

    [world.judge]
    vote = { kind = "constant", sec = 1 }

    [world.trainer]
    step = { kind = "constant", sec = 6 }
"#;

struct Silent;

impl Progress for Silent {
    fn run_ended(&self) {}
}

fn played(kind: Kind, over: &[&str], jobs: usize) -> Results {
    let layers = Layers::new().toml("small.toml", SMALL);
    let (scenario, _) = Scenario::load(&layers, std::path::Path::new(".")).unwrap();
    let over: Vec<String> = over.iter().map(|over| (*over).to_owned()).collect();
    let axes = over::parse(&over, &layers.merge().unwrap().root, &scenario.cases).unwrap();
    let plan = Plan::new(kind, &scenario, &axes, 0..3).unwrap();
    plan.run(jobs, None::<Vec<u8>>, &Silent).unwrap().results
}

fn page(results: &Results) -> String {
    of_results(results, &plot::draw(results).unwrap())
}

/// What stands between two marks, each time.
fn between<'t>(text: &'t str, start: &str, end: &str) -> Vec<&'t str> {
    text.split(start).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

#[test]
fn a_page_fetches_nothing_and_is_the_same_on_any_number_of_threads() {
    let sweep = |jobs| page(&played(Kind::Sweep, &["max_head_off_policyness=0,1,4"], jobs));
    let html = sweep(1);
    assert_eq!(html, sweep(3));
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    for fetched in ["src=", "url(", "@import", "fetch(", "XMLHttpRequest", "href=\"http"] {
        assert!(!html.contains(fetched), "{fetched}");
    }
    assert!(html.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
    assert!(!html.contains("NaN"));
}

#[test]
fn what_users_write_is_text_and_never_markup() {
    for results in [played(Kind::Run, &[], 1), played(Kind::Sweep, &["batch_size=2,4"], 1)] {
        let mut results = results;
        let about = results.meta.about.as_mut().unwrap();
        about.command = "headway sweep '<img src=x onerror=alert(1)>.toml'".into();
        let html = page(&results);
        assert_eq!(html.matches("<script").count(), 1, "ours");
        assert_eq!(html.matches("</script").count(), 1, "ours");
        assert!(!html.contains("<img") && !html.contains("<b>else"));
        assert!(
            html.contains("&lt;script&gt;alert('title')&lt;/script&gt; &amp; &quot;more&quot;")
        );
    }
}

#[test]
fn the_table_and_the_plots_have_the_numbers_of_the_csv() {
    let results = played(Kind::Sweep, &["max_head_off_policyness=0,1,4"], 1);
    let html = page(&results);
    for row in 0..results.points.rows.len() {
        let raw = results.points.text(row, "staleness_head_mean");
        let value = results.points.value(row, "staleness_head_mean").unwrap();
        let half = results.points.value(row, "staleness_head_mean_hw");
        let shown = metrics::text("staleness_head_mean", Some(value), half);
        let cell = format!("data-v=\"{raw}\">");
        assert!(html.contains(&cell) || html.contains(&format!(">{raw}<")), "{raw}");
        assert!(
            html.contains(&format!("mean: {shown}; staleness bound η")) || value == 0.0,
            "{shown}"
        );
    }
}

#[test]
fn every_plot_has_a_name_values_and_a_table_of_them() {
    let results = played(Kind::Sweep, &["max_head_off_policyness=0,1,4"], 1);
    let pictures = plot::draw(&results).unwrap();
    let html = of_results(&results, &pictures);
    assert_eq!(html.matches("<figure ").count(), pictures.len());
    for figure in between(&html, "<figure ", "</figure>") {
        assert!(figure.contains("aria-label=\"Plot: ") && figure.contains("<table"));
        assert!(figure.contains("class=\"v\""), "{}", &figure[..200]);
    }
}

#[test]
fn headings_are_in_order_and_ids_are_unique() {
    let html = page(&played(Kind::Run, &[], 1));
    let mut last = 1;
    for level in between(&html, "<h", ">").iter().filter_map(|rest| rest.get(..1)?.parse().ok()) {
        let level: u32 = level;
        assert!(level <= last + 1, "h{level} below h{last}");
        last = level;
    }
    let mut ids = between(&html, " id=\"", "\"");
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    for target in between(&html, "href=\"#", "\"") {
        assert!(ids.contains(&target), "#{target}");
    }
}

#[test]
fn a_page_of_nothing_says_so() {
    let mut results = played(Kind::Sweep, &["max_head_off_policyness=0,1"], 1);
    for row in &mut results.points.rows {
        row[4..].iter_mut().for_each(String::clear);
    }
    let empty = |table: &Csv| Csv::new(&table.header);
    results.histogram = empty(&results.histogram);
    results.series = empty(&results.series);
    results.runs = empty(&results.runs);
    let html = page(&results);
    assert!(html.contains("Nothing can be concluded: no point trained anything."));
}
