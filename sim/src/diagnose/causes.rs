//! The four causes of ratios that are far from 1, in the order in which they are cheapest to check.

use headway_shared::config::Config;

use super::evidence::Evidence;
use super::ratios::Ratios;
use super::spread::{Floor, Spread};
use super::waits::parts;
use super::{Finding, MOST, Named, Setting, percent, seconds, word};
use crate::report::number::{ratio, short};

/// The causes that there are.
pub(super) fn find(evidence: &Evidence, spread: &Spread) -> Vec<Finding> {
    let Some(ratios) = &evidence.ratios else { return Vec::new() };
    // Ratios of wrong labels say nothing of policies: nothing else can be read from them.
    if spread.may_be_labels()
        && let Some(mean) = spread.mean.filter(super::Mean::is_off)
    {
        return vec![labels(evidence, spread, ratios, &mean)];
    }
    let mut findings = Vec::new();
    let grown = spread.is_wide() && spread.grown() >= MOST;
    let within = spread.within.is_some_and(|within| within >= MOST);
    if grown && !within {
        findings.push(age(evidence, spread, ratios));
    }
    let continued = spread.is_of_continued();
    if continued || (grown && within) {
        findings.push(mixing(evidence, spread, ratios, grown && within));
    }
    if spread.has_defect() && !continued {
        findings.push(numerics(evidence, spread, ratios));
    }
    findings
}

fn age(evidence: &Evidence, spread: &Spread, ratios: &Ratios) -> Finding {
    let mut said = vec![wide(spread, ratios), grown(spread, ratios)];
    let head = |name: &str| short(evidence.get(&format!("staleness_head_{name}")));
    said.push(format!(
        "samples are {} versions old on average, p99 {}, at most {}; {} are above what the bound \
         promises",
        head("mean"),
        head("p99"),
        head("max"),
        percent(evidence.count("staleness_above_bound_share")),
    ));
    said.push(format!(
        "between generation and training pass {} on average, 95% within {}",
        seconds(evidence.count("age_seconds_mean")),
        seconds(evidence.count("age_seconds_p95")),
    ));
    let largest = parts(evidence).into_iter().find(|part| part.versions.is_some());
    let name = largest.as_ref().map_or("", |part| part.name);
    if let Some(part) = &largest {
        said.push(format!(
            "most versions pass in the part `{}`: {} of {}{}",
            part.name,
            short(part.versions),
            head("mean"),
            part.seconds.map_or_else(String::new, |took| format!(", in {}", seconds(took))),
        ));
    }
    let config = evidence.config.as_ref();
    let mut settings = bounds(config);
    settings.extend(of_part(name, config));
    Finding { named: Named::Age, evidence: said, settings }
}

/// The bounds on age, which help wherever it comes from.
pub(super) fn bounds(config: Option<&Config>) -> Vec<Setting> {
    let filter = |config: &Config| {
        let steps = config.policy_training.stale_filter_steps;
        steps.map_or_else(|| "none".to_owned(), |steps| steps.to_string())
    };
    let eta = |config: &Config| config.policy_training.max_head_off_policyness.to_string();
    vec![
        Setting::of(
            config,
            "policy_training.max_head_off_policyness",
            eta,
            "smaller: 2, or what `headway sweep` shows to suffice",
        ),
        Setting::of(
            config,
            "policy_training.stale_filter_steps",
            filter,
            "smaller: the largest age that may still be trained, not below the bound",
        ),
    ]
}

/// What shortens the part in which most versions pass.
fn of_part(part: &str, config: Option<&Config>) -> Vec<Setting> {
    let training = |get: fn(&Config) -> u32| move |config: &Config| get(config).to_string();
    let secs = |get: fn(&Config) -> f64| move |config: &Config| seconds(get(config));
    let setting = match part {
        "publish_lag" => Setting::of(
            config,
            "policy_training.publish_interval",
            training(|config| config.policy_training.publish_interval),
            "1, and a faster transfer: replicas generate with old weights until the new ones arrive",
        ),
        "generating" => Setting::of(
            config,
            "policy_serving.max_concurrent_rollouts",
            training(|config| config.policy_serving.max_concurrent_rollouts),
            "fewer at once, or more replicas: turns take too long to generate",
        ),
        "next_state" => Setting::of(
            config,
            "policy_training.park_after_sec",
            secs(|config| config.policy_training.park_after.as_secs_f64()),
            "shorter, so that a turn whose next state is late gives its place back",
        ),
        "judge_queue" => Setting::of(
            config,
            "reward_judging.judge_concurrency",
            training(|config| config.reward_judging.judge_concurrency),
            "more votes at once, as far as the endpoint serves them, or a smaller queue.rollout.max_size",
        ),
        "judging" => Setting::of(
            config,
            "reward_judging.votes",
            training(|config| config.reward_judging.votes),
            "fewer votes, a faster judge, a shorter judge_timeout_sec",
        ),
        "group_mates" => Setting::of(
            config,
            "policy_training.straggler_wait_sec",
            secs(|config| config.policy_training.straggler_wait.as_secs_f64()),
            "a limit, with min_group_size below group_size: groups wait for their slowest member",
        ),
        "output_queue" => Setting::of(
            config,
            "queue.output.max_size",
            training(|config| config.queue.output.max_size),
            "smaller, or a faster trainer: scored samples wait for it",
        ),
        _ => return Vec::new(),
    };
    vec![setting]
}

fn mixing(evidence: &Evidence, spread: &Spread, ratios: &Ratios, within: bool) -> Finding {
    let mut said = Vec::new();
    if within {
        said.push(wide(spread, ratios));
        said.push(grown(spread, ratios));
        said.push(format!(
            "of the {} versions that a token is old on average, {} passed while its own sample was \
             still being generated: the last token is {} versions old",
            short(evidence.get("staleness_token_mean")),
            percent(spread.within.unwrap_or_default()),
            short(evidence.get("staleness_tail_mean")),
        ));
    }
    if let Some((continued, begun)) = spread.continued.filter(|_| spread.is_of_continued()) {
        said.push(format!(
            "scored by the very version that generated them, tokens behind those of another version \
             have a spread of {} nats, the others of their samples {}: what was cached of the older \
             weights is in them",
            root(continued),
            root(begun),
        ));
    }
    said.push(format!(
        "{} of the trained samples have tokens of more than one version",
        percent(evidence.count("mixed_version_share")),
    ));
    if let Some(square) = ratios.deploy_rollout.square() {
        said.push(format!(
            "deploy/rollout of tokens at most one version old has a spread of {} nats",
            root(square)
        ));
    }
    let config = evidence.config.as_ref();
    let kv = Setting::of(
        config,
        "policy_serving.kv_on_sync",
        |config| word(config.policy_serving.kv_on_sync),
        "\"recompute\"",
    );
    let mode = Setting::of(
        config,
        "policy_serving.sync_mode",
        |config| word(config.policy_serving.sync_mode),
        "\"pause_drain\" or \"rolling\": turns end under the weights they began with",
    );
    let aborted = Setting::of(
        config,
        "policy_serving.aborted",
        |config| word(config.policy_serving.aborted),
        "\"restart\", which mixes nothing",
    );
    let interval = Setting::of(
        config,
        "policy_training.publish_interval",
        |config| config.policy_training.publish_interval.to_string(),
        "larger, or shorter turns: fewer publications while a turn is generated",
    );
    let settings =
        if spread.is_of_continued() { vec![kv, mode] } else { vec![mode, aborted, interval] };
    Finding { named: Named::Mixing, evidence: said, settings }
}

fn numerics(evidence: &Evidence, spread: &Spread, ratios: &Ratios) -> Finding {
    let mut said = vec![defect(spread, ratios)];
    said.push(format!(
        "it is {} of the mean square of all tokens: it hardly depends on their age",
        percent((spread.floor / spread.all).min(1.0))
    ));
    if let Some(mean) = spread.mean {
        said.push(format!(
            "the mean ratio is {}, {} standard errors from 1, and no ratio is above {}: two honest \
             computations of one policy",
            ratio(Some(mean.ratio)),
            short(Some(mean.errors)),
            ratio(ratios.all.max),
        ));
    }
    let config = evidence.config.as_ref();
    let correction = Setting::of(
        config,
        "policy_training.correction",
        |config| word(config.policy_training.correction),
        "\"tis\" or \"icepop\", which weigh by proximal/rollout, while the precisions differ",
    );
    let precision = Setting::new(
        "the engines' precision",
        "",
        "the same for serving and training (weights, KV cache, sampling), or a higher one in serving",
    );
    Finding { named: Named::Numerics, evidence: said, settings: vec![precision, correction] }
}

fn labels(evidence: &Evidence, spread: &Spread, ratios: &Ratios, mean: &super::Mean) -> Finding {
    let mut said = vec![match spread.floor_from {
        Floor::Measured => defect(spread, ratios),
        _ => format!("learner/rollout has a spread of {} nats", root(spread.all)),
    }];
    said.push(format!(
        "the mean ratio is {} and that of its logarithm {} nats, {} standard errors from what two \
         policies can have: a token's ratio has the mean 1 whatever its age",
        ratio(Some(mean.ratio)),
        short(Some(mean.log)),
        short(Some(mean.errors)),
    ));
    let zeros = mean.off < 0.0;
    said.push(if zeros {
        "recorded log-probabilities are too high: zeros, as padding leaves them".to_owned()
    } else {
        format!(
            "recorded log-probabilities are those of other tokens; the largest ratio is {}",
            ratio(ratios.all.max)
        )
    });
    let share = evidence.count("mixed_version_share");
    if share > 0.0 {
        said.push(format!(
            "{} of the samples mix versions, which does not explain it",
            percent(share)
        ));
    }
    let padding = Setting::new(
        "padding",
        "",
        "log-probabilities of generated tokens alone, one for each: what is padded has none",
    );
    let tokens = Setting::new(
        "tokenisation",
        "",
        "train on the token ids that the engine sampled, never on text tokenised again",
    );
    let stamp = Setting::new(
        "version stamps",
        "",
        "stamped by the engine with each token, not read when the answer arrives",
    );
    let settings = if zeros { vec![padding, tokens, stamp] } else { vec![tokens, padding, stamp] };
    Finding { named: Named::Labels, evidence: said, settings }
}

fn wide(spread: &Spread, ratios: &Ratios) -> String {
    let place = if ratios.predicted.is_some() { "" } else { " over 16 steps" };
    format!(
        "learner/rollout has a spread of {} nats{place} (limit {}), a largest ratio of {}",
        root(spread.widest),
        super::WIDE,
        ratio(ratios.all.max),
    )
}

fn grown(spread: &Spread, ratios: &Ratios) -> String {
    let square = |pool: Option<(&u32, &super::Pool)>| {
        let (staleness, pool) = pool?;
        Some(format!("{} at staleness {staleness}", root(pool.square()?)))
    };
    let rows = &ratios.by_staleness;
    let ends = [square(rows.first_key_value()), square(rows.last_key_value())];
    let ends: Vec<String> = ends.into_iter().flatten().collect();
    format!(
        "it grows with staleness, {}: {} of the mean square {}",
        ends.join(", "),
        percent(spread.grown()),
        match spread.floor_from {
            Floor::Measured => "is not there at staleness 0",
            Floor::Extrapolated => "is not there at staleness 0, which is extrapolated",
            Floor::Assumed => "is above what two engines of one precision may differ by",
        },
    )
}

fn defect(spread: &Spread, ratios: &Ratios) -> String {
    let place = match spread.floor_from {
        Floor::Measured => {
            format!("at staleness 0 ({} tokens)", short(Some(ratios.same_version.tokens)))
        }
        _ => "at staleness 0 (extrapolated)".to_owned(),
    };
    format!(
        "{place}, where both policies are one, learner/rollout has a spread of {} nats; one precision \
         leaves at most {}",
        root(spread.floor),
        spread.allowed,
    )
}

/// The spread of a mean square.
fn root(square: f64) -> String {
    short(Some(libm::sqrt(square.max(0.0))))
}
