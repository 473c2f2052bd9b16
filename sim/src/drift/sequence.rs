//! The tokens of one sample.

use headway_shared::input::Segment;
use headway_shared::ratio::Token;

use super::learning::{Course, Lesson, Split};
use super::model::{Model, Stretch, Tokens};
use super::path::Path;
use super::steps::Steps;
use crate::kernel::math::normal_quantile;
use crate::kernel::random::Stream;

/// The policies that a train step scores a sample by, in versions, and how far apart they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ages<'a> {
    /// The learner when the step starts.
    pub learner: u32,
    /// What serving then holds; `None`: nothing does.
    pub deploy: Option<u32>,
    /// How far the step has come when the sample is used: updates before it, of one version's.
    pub within: f64,
    /// How far training had come at each version.
    pub course: &'a Course,
    /// How far each version's step moved the policy.
    pub moves: &'a Steps,
    /// Which way the sample's tokens are moved.
    pub lesson: Lesson,
}

impl Ages<'_> {
    /// How far proximal, deploy and learner are from this version, in train steps of the fitted run.
    fn steps(&self, version: u32) -> [f64; 3] {
        let from = self.course.at(version);
        let proximal = self.course.at(self.learner) - from;
        let deploy = self.deploy.map_or(proximal, |deploy| self.course.at(deploy) - from);
        [proximal, deploy, proximal + self.within * self.course.pace()]
    }

    /// The law of the steps since this version, of those of the stretch.
    pub(super) fn law(&self, stretch: &Stretch, version: u32) -> Stretch {
        let factor = self.moves.factor(version, self.learner);
        Stretch {
            a: stretch.a * factor,
            tokens: stretch.tokens.over(self.learner_steps(version)),
            ..*stretch
        }
    }

    /// How far the learner is from this version, in train steps of the fitted run.
    pub(super) fn learner_steps(&self, version: u32) -> f64 {
        self.steps(version)[2]
    }
}

/// What is wrong with the recorded log-probabilities of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Each is that of the next token, and the last is 0.
    Shifted,
    /// From this token on they are 0.
    Padded(u64),
}

/// What was drawn for one sample.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// Tokens that were drawn one by one, in order.
    pub tokens: Vec<Token>,
    /// How many tokens of the sample each stands for, itself included: exact in sum, by segment.
    pub weights: Vec<u64>,
    /// By segment, how many tokens were not drawn.
    pub undrawn: Vec<u64>,
    /// Its tokens.
    pub length: u64,
    /// Logarithm of learner/rollout of the whole sequence: the sum over all of its tokens.
    pub learner: f64,
    /// Logarithm of proximal/rollout of the whole sequence.
    pub proximal: f64,
    /// What is wrong with its labels.
    pub fault: Option<Fault>,
}

/// Sums over the tokens that are not drawn one by one.
#[derive(Default)]
struct Rest {
    means: [f64; 2],
    variances: [f64; 2],
    covariance: f64,
}

/// Draws a sample's tokens: all of them where there are at most `sampled_tokens`; else about so
/// many, spread evenly over its segments and at least one in each, and the sum of the others by the
/// normal law that a sum of many tokens has, with its exact mean and variance.
///
/// The draws depend on the stream and on the places of the tokens alone, so that the same sample
/// has the same tokens whatever its age.
pub fn draw(
    model: &Model,
    law: &Stretch,
    segments: &[Segment],
    ages: &Ages<'_>,
    mut stream: Stream,
    out: &mut Sequence,
) {
    out.tokens.clear();
    out.weights.clear();
    out.undrawn.clear();
    out.length = segments.iter().map(|segment| u64::from(segment.tokens)).sum();
    out.fault = fault(model, &mut stream, out.length);
    let rest_normals = [stream.uniform(), stream.uniform()];
    let mut rest = Rest::default();
    let (mut start, mut sums) = (0, [0.0; 2]);
    for segment in segments {
        let way = Way::new(law, segment, ages);
        let length = u64::from(segment.tokens);
        let drawn = share(model.sampled_tokens, length, out.length);
        let staleness = ages.learner.saturating_sub(segment.version.number());
        let mut held = [0.0; 2];
        for index in 0..drawn {
            let (from, to) = (index * length / drawn, (index + 1) * length / drawn);
            let place = start + from + stream.below(to - from);
            let (token, free, stopped) =
                token(&way, &mut stream, staleness, place, out.fault, out.length);
            out.tokens.push(token);
            out.weights.push(to - from);
            // Learner, proximal.
            for (at, end) in [2, 0].into_iter().enumerate() {
                sums[at] += stopped[end];
                held[at] += stopped[end] - free[end];
            }
        }
        rest.add(&way, length - drawn);
        // The others are held back as much, on average.
        let others = (length - drawn) as f64 / drawn.max(1) as f64;
        for (mean, held) in rest.means.iter_mut().zip(held) {
            *mean += held * others;
        }
        out.undrawn.push(length - drawn);
        start += length;
    }
    let [learner, proximal] = rest.draw(rest_normals.map(normal_quantile));
    let label = label_sum(law.tokens.entropy, out.fault, out.length, &mut stream);
    out.learner = sums[0] + learner + label;
    out.proximal = sums[1] + proximal + label;
}

/// Tokens of a segment that are drawn.
fn share(most: u32, length: u64, of: u64) -> u64 {
    let most = u64::from(most.max(1));
    if of <= most { length } else { length.min(1 + (most - 1) * length / of) }
}

/// How the tokens of one segment were moved.
struct Way {
    tokens: Tokens,
    /// What their scales are divided by.
    norm: f64,
    /// The mean fourth power of a scale.
    scale_fourth: f64,
    path: Path,
    split: Split,
    /// To proximal, deploy and learner, in train steps of the fitted run.
    steps: [f64; 3],
    /// Where clipping holds a token.
    until: [f64; 2],
    /// How far one of scale 1 is beyond, when it is held: half of what a step moves it, on average.
    beyond: f64,
}

impl Way {
    fn new(stretch: &Stretch, segment: &Segment, ages: &Ages<'_>) -> Self {
        let version = segment.version.number();
        let steps = ages.steps(version);
        let [proximal, deploy, learner] = steps;
        let law = ages.law(stretch, version);
        let scale_fourth = law.tokens.scale_fourth();
        let split = ages.lesson.split(&law, scale_fourth, learner);
        let path = Path::new(&split.law, proximal, deploy, learner);
        let (until, beyond) = (ages.lesson.until, 0.5 * libm::sqrt(law.moved(1.0)));
        let (tokens, norm) = (law.tokens, law.tokens.norm());
        Self { tokens, norm, scale_fourth, path, split, steps, until, beyond }
    }

    /// The logarithm of a token of this scale, where clipping holds it.
    fn hold(&self, log: f64, scale: f64) -> f64 {
        let [down, up] = self.until;
        log.min(up + self.beyond * scale).max(down - self.beyond * scale)
    }

    /// The scale of a token with this 1 - probability.
    fn scale(&self, unlikely: f64) -> f64 {
        self.tokens.raw_scale(unlikely) / self.norm
    }

    /// The logarithms of a token of this scale.
    fn logs(&self, scale: f64, normal: impl FnMut(usize) -> f64) -> [f64; 3] {
        let mut logs = self.path.logs(scale, normal);
        if self.split.square > 0.0 {
            for (log, steps) in logs.iter_mut().zip(self.steps) {
                *log += self.split.moves(scale, steps);
            }
        }
        logs
    }
}

fn fault(model: &Model, stream: &mut Stream, length: u64) -> Option<Fault> {
    let (chance, place) = (stream.uniform(), stream.below(length));
    if chance < model.shifted_share {
        Some(Fault::Shifted)
    } else if chance < model.shifted_share + model.padded_share {
        Some(Fault::Padded(place))
    } else {
        None
    }
}

/// One token, and its log-ratios without what is wrong with its label: those that nothing holds back, and
/// as far as clipping lets them.
fn token(
    way: &Way,
    stream: &mut Stream,
    staleness: u32,
    place: u64,
    fault: Option<Fault>,
    length: u64,
) -> (Token, [f64; 3], [f64; 3]) {
    let entropy = way.tokens.entropy;
    let surprise = entropy * stream.exponential();
    let next = stream.uniform();
    let uniforms = [0; 4].map(|_| stream.uniform());
    let scale = way.scale(-libm::expm1(-surprise));
    let free = way.logs(scale, |at| normal_quantile(uniforms[at]));
    let stopped = free.map(|log| way.hold(log, scale));
    let rollout = -surprise;
    let recorded = match fault {
        None => rollout,
        Some(Fault::Shifted) if place + 1 == length => 0.0,
        Some(Fault::Shifted) => entropy * libm::log(next),
        Some(Fault::Padded(from)) if place >= from => 0.0,
        Some(Fault::Padded(_)) => rollout,
    };
    let [proximal, deploy, learner] = stopped.map(|log| rollout + log);
    (Token { staleness, learner, proximal, deploy, rollout: recorded }, free, stopped)
}

/// What wrong labels add to the log-ratio of the sequence. Shifted ones cancel each other but for
/// the first token's; padded ones leave the log-probabilities of the tokens that they cover.
fn label_sum(entropy: f64, fault: Option<Fault>, length: u64, stream: &mut Stream) -> f64 {
    match fault {
        None => 0.0,
        Some(Fault::Shifted) => -entropy * stream.exponential(),
        Some(Fault::Padded(from)) => -entropy * stream.gamma((length - from) as f64),
    }
}

impl Rest {
    /// Adds `count` tokens of one segment. Over all scales `c` (mean of c² is 1), a log-ratio
    /// `c x - c² v / 2` with x of variance v has the mean -v/2, and the variance v plus v²/4 times
    /// the variance of c². A lesson adds its mean; what scales do to it is small beside that.
    fn add(&mut self, way: &Way, count: u64) {
        let count = count as f64;
        let (path, scale_fourth) = (&way.path, way.scale_fourth);
        let [proximal, _, learner] = path.variances;
        let spread = 0.25 * (scale_fourth - 1.0);
        for (mean, steps) in self.means.iter_mut().zip([way.steps[2], way.steps[0]]) {
            let square = scale_fourth * way.split.square * steps * steps;
            *mean += count * (way.split.per_step * steps - 0.5 * square);
        }
        for (at, variance) in [learner, proximal].into_iter().enumerate() {
            self.means[at] -= count * 0.5 * variance;
            self.variances[at] += count * (variance + spread * variance * variance);
        }
        self.covariance += count * (path.covariance + spread * learner * proximal);
    }

    /// The sums of learner and proximal by rollout.
    fn draw(&self, normals: [f64; 2]) -> [f64; 2] {
        let [learner, proximal] = self.variances;
        if learner <= 0.0 && proximal <= 0.0 {
            return self.means;
        }
        let first = libm::sqrt(proximal);
        let along = if first > 0.0 { self.covariance / first } else { 0.0 };
        let across = libm::sqrt((learner - along * along).max(0.0));
        [
            self.means[0] + along * normals[0] + across * normals[1],
            self.means[1] + first * normals[0],
        ]
    }
}
