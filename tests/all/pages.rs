//! Pages that are printed from the tables in the code, below an introduction written by hand.

use headway_shared::config::keys;
use headway_shared::metrics::{self, METRICS};
use headway_sim::drift;

use super::blessed;

const MARK: &str = "<!-- What follows is printed from the code: `make bless`. -->\n\n";

fn check(path: &str, printed: &str) {
    let text = blessed::text(path);
    let (by_hand, _) = text.split_once(MARK).unwrap_or_else(|| panic!("{path} has no {MARK}"));
    blessed::check(path, &format!("{by_hand}{MARK}{printed}"));
}

#[test]
fn the_configuration_page_lists_every_key() {
    check("docs/configuration.md", &keys::reference());
}

#[test]
fn the_metrics_page_lists_every_metric() {
    let all = metrics::markdown(METRICS);
    let ratios = metrics::markdown(drift::METRICS);
    check(
        "docs/metrics.md",
        &format!(
            "{all}\n## Importance ratios\n\nOnly of scenarios with `[world.drift]`: [drift.md](drift.md).\n\n{ratios}"
        ),
    );
}
