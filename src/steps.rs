//! The table of a live run's train steps, and its plots.

use std::fs;
use std::io;
use std::path::Path;

use headway_sim::report::csv::Csv;
use headway_sim::report::plot::Learned;
#[cfg(feature = "live")]
pub(crate) use table::write;

use crate::failure::Failure;

/// Tables of steps are called `steps.csv`, or `steps-KIND-seed-N.csv` where there are several.
const NAME: &str = "steps";

/// The tables of steps in a folder, by kind; `None`: there is none.
pub(crate) fn read(folder: &Path) -> Result<Option<Vec<Learned>>, Failure> {
    let unreadable = |error: &io::Error| Failure::unreadable(folder, error);
    let mut names = Vec::new();
    let entries = match fs::read_dir(folder) {
        // What there could be else is looked for next.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries.map_err(|error| unreadable(&error))?,
    };
    for entry in entries {
        let name = entry.map_err(|error| unreadable(&error))?.file_name();
        names.extend(name.into_string().ok().filter(|name| kind(name).is_some()));
    }
    names.sort();
    let mut kinds: Vec<Learned> = Vec::new();
    for name in &names {
        let path = folder.join(name);
        let bytes = fs::read(&path).map_err(|error| Failure::unreadable(&path, &error))?;
        let csv = Csv::parse(&bytes).map_err(|error| {
            let help = "name a folder that `headway run` wrote";
            Failure::input(format!("{}: {error}\nhelp: {help}", path.display()))
        })?;
        let kind = kind(name).unwrap_or_default();
        match kinds.iter_mut().find(|other| other.name == kind) {
            Some(other) => other.runs.push(csv),
            None => kinds.push(Learned { name: kind, runs: vec![csv] }),
        }
    }
    Ok((!kinds.is_empty()).then_some(kinds))
}

/// What kind of run a table is of; `None`: it is no table of steps.
fn kind(name: &str) -> Option<String> {
    let rest = name.strip_prefix(NAME)?.strip_suffix(".csv")?;
    if rest.is_empty() {
        return Some(String::new());
    }
    let kind = rest.strip_prefix('-')?;
    let kind = kind.rsplit_once("-seed-").map_or(kind, |(kind, _)| kind);
    Some(kind.replace('-', " "))
}

#[cfg(feature = "live")]
mod table {
    use std::collections::BTreeSet;
    use std::path::Path;

    use headway_runtime::store::{self, StepRow};
    use headway_sim::report::csv::Csv;
    use headway_sim::report::folder::Folder;
    use headway_sim::report::html;
    use headway_sim::report::number;
    use headway_sim::report::plot::{Learned, draw_learning};

    use crate::failure::Failure;
    use crate::{outcome, page};

    /// Column, and the trainer's metric in it.
    const METRICS: [(&str, &str); 13] = [
        ("loss", "loss"),
        ("grad_norm", "grad_norm"),
        ("trained_tokens", "trained_tokens"),
        ("clipped_fraction", "clipped_fraction"),
        ("ratio_p50", "learner_rollout_p50"),
        ("ratio_p99", "learner_rollout_p99"),
        ("ratio_max", "learner_rollout_max"),
        ("log_ratio_square", "learner_rollout_log_square"),
        ("kl_k1", "learner_rollout_kl_k1"),
        ("kl_k3", "learner_rollout_kl_k3"),
        ("ess_token", "learner_rollout_ess_token"),
        ("ess_sequence", "learner_rollout_ess_sequence"),
        ("logprob_abs_diff", "train_rollout_logprob_abs_diff"),
    ];

    /// Writes the page of a record, its steps and their plots; says in words where.
    pub(crate) fn write(record: &Path, out: &Path) -> Result<String, Failure> {
        let csv = table(&store::steps(record).map_err(Failure::broken)?);
        let bytes = csv.to_bytes().map_err(Failure::broken)?;
        let learned = Learned { name: String::new(), runs: vec![csv] };
        let picture = draw_learning(std::slice::from_ref(&learned)).map_err(Failure::broken)?;
        let pictures = [picture];
        let page = page::of_record(record, learned.runs.first(), &pictures)?;
        let unwritable = |error| Failure::unwritable(out, &error);
        let mut folder = Folder::open(out).map_err(unwritable)?;
        folder.write(html::FILE, page.as_bytes()).map_err(unwritable)?;
        folder.write("steps.csv", &bytes).map_err(unwritable)?;
        outcome::stage(&mut folder, &pictures[0]).map_err(unwritable)?;
        outcome::commit(folder, out)
    }

    fn table(steps: &[StepRow]) -> Csv {
        let turns: BTreeSet<&String> = steps.iter().flat_map(|step| step.scores.keys()).collect();
        let mut header: Vec<String> =
            ["step", "time_sec", "samples", "reward_mean"].map(str::to_owned).to_vec();
        header.extend(turns.iter().map(|turn| format!("reward_turn_{turn}")));
        header.extend(["staleness_mean", "staleness_p95", "staleness_max"].map(str::to_owned));
        header.extend(METRICS.map(|(column, _)| column.to_owned()));
        header.extend(["refused_429", "refused_503"].map(str::to_owned));
        let mut csv = Csv::new(header);
        for step in steps {
            let metric = |name: &str| number::cell(step.metrics.get(name).copied());
            let mut row = vec![
                step.step.to_string(),
                number::text(step.at.as_secs_f64()),
                step.samples.to_string(),
                metric("reward_mean"),
            ];
            row.extend(turns.iter().map(|turn| number::cell(step.scores.get(*turn).copied())));
            row.extend(staleness(&step.staleness).map(number::cell));
            row.extend(METRICS.map(|(_, name)| metric(name)));
            row.extend([step.too_many.to_string(), step.unavailable.to_string()]);
            csv.rows.push(row);
        }
        csv
    }

    /// Mean, 95th percentile (the value that at most 5% are above) and maximum of sorted values.
    fn staleness(sorted: &[u32]) -> [Option<f64>; 3] {
        let Some(&last) = sorted.last() else { return [None; 3] };
        let sum: f64 = sorted.iter().map(|&value| f64::from(value)).sum();
        let place = (sorted.len() * 95).div_ceil(100).max(1) - 1;
        [Some(sum / sorted.len() as f64), Some(f64::from(sorted[place])), Some(f64::from(last))]
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_row_has_what_was_measured_and_what_was_not_is_empty() {
            let mut step = StepRow { step: 3, samples: 2, too_many: 5, ..StepRow::default() };
            step.metrics.insert("reward_mean".to_owned(), 0.5);
            step.scores.insert("1".to_owned(), 0.75);
            step.staleness = (0..=19).collect();
            let csv = table(&[step]);
            let cell = |column: &str| csv.text(0, column);
            assert_eq!(
                (cell("step"), cell("reward_mean"), cell("reward_turn_1")),
                ("3", "0.5", "0.75")
            );
            assert_eq!((cell("staleness_mean"), cell("staleness_p95")), ("9.5", "18"));
            assert_eq!((cell("staleness_max"), cell("ratio_p99")), ("19", ""));
            assert_eq!((cell("refused_429"), cell("refused_503")), ("5", "0"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_told_apart_by_their_names() {
        assert_eq!(kind("steps.csv").as_deref(), Some(""));
        assert_eq!(kind("steps-eta-8-seed-3.csv").as_deref(), Some("eta 8"));
        assert_eq!(kind("steps-long.csv").as_deref(), Some("long"));
        assert_eq!(kind("series.csv"), None);
        assert_eq!(kind("stepsize.csv"), None);
    }
}
