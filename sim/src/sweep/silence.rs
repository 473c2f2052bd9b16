//! Why a run trained nothing: silence is the trouble that users understand last.

use headway_shared::metrics::Summary;

use crate::report::number;

/// Why a run trained nothing, by what became of what was asked for; `None` where it trained.
pub(super) fn why(summary: &Summary) -> Option<String> {
    if summary.get("trained_samples_per_hour")? > 0.0 {
        return None;
    }
    let share = |name: &str| summary.get(name).filter(|share| *share > 0.0);
    let mut causes = Vec::new();
    if let Some(refused) = share("refused_share") {
        causes.push(format!(
            "{} of the requests were refused{}",
            number::percent(Some(refused)),
            most(summary, "refused_")
        ));
    }
    if let Some(discarded) = share("discarded_share") {
        causes.push(format!(
            "{} of the samples were discarded{}",
            number::percent(Some(discarded)),
            most(summary, "discarded_")
        ));
    }
    if let Some(equal) = share("filtered_group_share") {
        causes.push(format!(
            "{} of the groups had equal scores (filter = \"zero_variance\")",
            number::percent(Some(equal))
        ));
    }
    if let Some(failed) = share("failed_vote_share") {
        causes.push(format!("{} of the votes failed", number::percent(Some(failed))));
    }
    if let Some(failed) = share("failed_publications_per_hour") {
        causes.push(format!("{} publications an hour failed", number::short(Some(failed))));
    }
    if causes.is_empty() {
        causes.push("no request came that could be trained on".to_owned());
    }
    Some(format!("trained nothing: {}", causes.join(", ")))
}

/// The most frequent reason among the metrics `{prefix}REASON_share`.
fn most(summary: &Summary, prefix: &str) -> String {
    let reasons = summary.values().filter_map(|(metric, value)| {
        let reason = metric.name.strip_prefix(prefix)?.strip_suffix("_share")?;
        Some((reason, value.filter(|value| *value > 0.0)?))
    });
    // The first of those that are equally frequent.
    let first = reasons.reduce(|most, other| if other.1 > most.1 { other } else { most });
    first.map_or_else(String::new, |(reason, _)| format!(" (most of them: {reason})"))
}
