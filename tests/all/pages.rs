//! Pages that are printed from the tables in the code, below an introduction written by hand.

use headway_shared::config::keys;
use headway_shared::metrics;

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
    check("docs/metrics.md", &metrics::markdown(METRICS));
}
