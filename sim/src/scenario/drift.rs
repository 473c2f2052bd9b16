//! `[world.drift]` out of a scenario file.

use headway_shared::config::Reader;

use super::world::{SHARE, rest};
use crate::drift::{Growth, Model, Stretch, Tokens};

/// Standard deviations and variances beyond these are no drift that anything could be trained under.
const SIGMA: std::ops::RangeInclusive<f64> = 0.0..=10.0;
const VARIANCE: std::ops::RangeInclusive<f64> = 0.0..=100.0;
/// From a random walk to a straight line: `a |s - t|^p` is a variance for no other power.
const POWER: std::ops::RangeInclusive<f64> = 1.0..=2.0;

/// Below, every token is as good as certain; above, every word of the vocabulary as likely as another.
const ENTROPY: std::ops::RangeInclusive<f64> = 0.01..=10.0;
/// With 8, of a thousand tokens with an entropy of 1 forty make up half of the mean square.
const TAIL: std::ops::RangeInclusive<f64> = 0.0..=8.0;
/// From the same tokens in every version to none that stand out over several.
const TAIL_FADE: std::ops::RangeInclusive<f64> = 0.0..=1.0;
/// With 3, one step in 40 is a thousand times the median.
const STEP_SPREAD: std::ops::RangeInclusive<f64> = 0.0..=3.0;
/// With 0.999, a thousand steps are alike.
const STEP_CORRELATION: std::ops::RangeInclusive<f64> = 0.0..=0.999;
/// With less, nearly nothing was left to learn from.
const KEPT: std::ops::RangeInclusive<f64> = 0.01..=1.0;

/// Reads `[world.drift]`, if it is there. By `growth` the log-odds of the reward grow per version.
pub(super) fn read(world: &mut Reader<'_>, growth: f64) -> Option<Model> {
    let mut table = world.optional_table("drift")?;
    let source = table.string("calibrated_from", "");
    if table.has("calibrated_from") && source.trim().is_empty() {
        table.error(
            "calibrated_from",
            "`calibrated_from` says nothing",
            "write what the numbers were fitted to, or leave the key out: then they are marked \
             uncalibrated",
        );
    }
    for (key, example) in [("sigma0", "0.03"), ("a", "0.005"), ("p", "1.6")] {
        table.require(key, example);
    }
    let first = Stretch {
        from_step: 0,
        sigma0: table.float("sigma0", 0.0, SIGMA),
        a: table.float("a", 0.0, VARIANCE),
        p: table.float("p", 1.0, POWER),
        kept: table.float("gradient_kept", 1.0, KEPT),
        tokens: Tokens {
            entropy: table.float("token_entropy", 0.5, ENTROPY),
            tail: table.float("tail", 1.0, TAIL),
            tail_fade: table.float("tail_fade", 0.0, TAIL_FADE),
        },
    };
    let model = Model {
        calibrated_from: (!source.trim().is_empty()).then_some(source),
        stretches: stretches(&mut table, first),
        shifted_share: table.float("shifted_share", 0.0, SHARE),
        padded_share: table.float("padded_share", 0.0, SHARE),
        sampled_tokens: table.u32("sampled_tokens", 16, 1..=100_000),
        step_spread: table.float("step_spread", 0.0, STEP_SPREAD),
        step_correlation: table.float("step_correlation", 0.0, STEP_CORRELATION),
        growth: (growth > 0.0).then_some(Growth { per_step: growth }),
    };
    if model.growth.is_none() && table.has("gradient_kept") {
        table.error(
            "gradient_kept",
            "`gradient_kept` says what a correction left of a gradient, and `world.judge.positive_growth` is 0",
            "write under [world.judge] how much the log-odds of `positive_share` grow per version, or \
             leave this key out",
        );
    }
    if model.shifted_share + model.padded_share > 1.0 {
        table.error(
            "padded_share",
            "`shifted_share` and `padded_share` are more than 1 together",
            format!(
                "write {} or less: a sample has one of the two faults",
                rest("padded_share", model.shifted_share)
            ),
        );
    }
    table.finish();
    Some(model)
}

/// The stretches of training: the first, and those of `windows`, in order.
fn stretches(table: &mut Reader<'_>, first: Stretch) -> Vec<Stretch> {
    let mut stretches = vec![first];
    for mut window in table.tables("windows") {
        window.require("from_step", "200");
        let from_step = window.u32("from_step", 1, 1..=u32::MAX);
        let before = stretches.last().map_or(0, |stretch| stretch.from_step);
        if window.has("from_step") && from_step <= before {
            window.error(
                "from_step",
                format!("this window begins at step {from_step}, the one before it at {before}"),
                "write the windows in the order of training, each with a later `from_step`",
            );
        }
        stretches.push(Stretch {
            from_step,
            sigma0: window.float("sigma0", first.sigma0, SIGMA),
            a: window.float("a", first.a, VARIANCE),
            p: window.float("p", first.p, POWER),
            kept: window.float("gradient_kept", first.kept, KEPT),
            tokens: Tokens {
                entropy: window.float("token_entropy", first.tokens.entropy, ENTROPY),
                tail: window.float("tail", first.tokens.tail, TAIL),
                tail_fade: window.float("tail_fade", first.tokens.tail_fade, TAIL_FADE),
            },
        });
        window.finish();
    }
    stretches
}
