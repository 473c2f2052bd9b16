//! Pages that are printed from the tables in the code.

use headway_shared::config::keys;
use headway_shared::metrics;

use super::blessed;

const CONFIGURATION: &str = "\
# Configuration

<!-- Printed from `headway_shared::config::keys`. Change the table there, then run `make bless`. -->

Every key of the scheduling sections: in a scenario, in a live `config.toml`, and in `--set`. Every
key has a default; an unknown key is an error that names the nearest known one. Times are in
seconds, and may have decimals.

- `--set KEY=VALUE` takes the path of a key (`policy_training.batch_size`) or its end, where that is
  unique (`batch_size`). The last one wins.
- `--config FILE` lays a whole configuration over a scenario.
- The rules between keys are checked when a configuration is loaded. A configuration that could never
  make progress is refused with the reason; a suspicious one gets a warning.
- The live runtime does not exist yet. Keys marked *live only* are read, checked and otherwise unused;
  *a change takes effect* says what a reconfiguration of a running core does
  (`[[world.faults.at]] kind = \"reconfigure\"` in a scenario).

The keys of `[scenario]` and `[world]` are in [scenarios.md](scenarios.md); what the keys around
`max_head_off_policyness` do to staleness is in [staleness.md](staleness.md).

";

const METRICS: &str = "\
# Metrics

<!-- Printed from `headway_shared::metrics::METRICS`. Change it there, then run `make bless`. -->

The columns of `sweep.csv`, `runs.csv`, `run.csv` and `compare.csv`, in their order. In `sweep.csv`
and `run.csv` a column `NAME` holds the mean over the replications, and `NAME_hw` the half-width of
its 95% interval (Student's t); `runs.csv` has one row per replication.

- The warm-up is not in them. A share is from 0 to 1. An empty cell means that there was nothing to
  measure: no trained sample has no staleness.
- *Offered* counts requests of clients, retries included; *admitted* counts the samples that came of
  them; *trained* counts those that were used. Staleness and age are of the trained population.
- Head, tail and token-weighted staleness, publish lag and serving skew are different things:
  [staleness.md](staleness.md) tells them apart.
- The column `digest` is a digest of every decision and its time: two runs with equal digests did
  the same.

";

#[test]
fn the_configuration_page_lists_every_key() {
    blessed::check("docs/configuration.md", &(CONFIGURATION.to_owned() + &keys::reference()));
}

#[test]
fn the_metrics_page_lists_every_metric() {
    blessed::check("docs/metrics.md", &(METRICS.to_owned() + &metrics::markdown()));
}
