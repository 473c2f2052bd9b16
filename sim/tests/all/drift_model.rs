//! The drift model against closed forms, and against drawing every token.

use headway_shared::config::Correction;
use headway_shared::digest::Digest;
use headway_shared::input::Segment;
use headway_shared::ratio::{Ends, Loss, Member, Token, abs_diff, spread};
use headway_shared::version::RolloutVersion;
use headway_sim::drift::{
    Ages, Batch, Course, Fault, Lesson, Log, Model, Population, Sequence, Steps, Stretch, Tokens,
    draw, gradient_kept,
};
use headway_sim::kernel::math::normal_quantile;
use headway_sim::kernel::random::{Component, Key, Stream};
use headway_sim::stats::{mean, variance};

fn stream(entity: u64) -> Stream {
    Key::new(7, Digest::of(b"drift"), 0).stream(Component::Token, entity)
}

fn law(sigma0: f64, a: f64, p: f64) -> Stretch {
    let tokens = Tokens { entropy: 0.5, tail: 1.0, tail_fade: 0.0 };
    Stretch { from_step: 0, sigma0, a, p, kept: 1.0, tokens }
}

fn model(law: Stretch, tail: f64, sampled_tokens: u32) -> Model {
    Model {
        calibrated_from: None,
        stretches: vec![Stretch { tokens: Tokens { tail, ..law.tokens }, ..law }],
        shifted_share: 0.0,
        padded_share: 0.0,
        sampled_tokens,
        step_spread: 0.0,
        step_correlation: 0.0,
        growth: None,
    }
}

fn segment(version: u32, tokens: u32) -> Segment {
    Segment { version: RolloutVersion::new(version), tokens }
}

fn ages(learner: u32, deploy: u32, within: f64) -> Ages<'static> {
    let (course, moves) = (Course::STEADY, Steps::ALIKE);
    Ages { learner, deploy: Some(deploy), within, course, moves, lesson: Lesson::default() }
}

/// The sequences of `count` samples with these segments.
fn sequences(model: &Model, segments: &[Segment], ages: &Ages<'_>, count: u64) -> Vec<Sequence> {
    let one = |entity| {
        let mut out = Sequence::default();
        draw(model, &model.stretches[0], segments, ages, stream(entity), &mut out);
        out
    };
    (0..count).map(one).collect()
}

fn tokens(sequences: &[Sequence]) -> Vec<Vec<Token>> {
    sequences.iter().map(|sequence| sequence.tokens.clone()).collect()
}

fn logs(sequences: &[Sequence], ends: Ends) -> Vec<f64> {
    sequences.iter().flat_map(|s| &s.tokens).map(|token| ends.log_ratio(token)).collect()
}

fn population(sequences: &[Sequence], ends: Ends) -> Population {
    let mut population = Population::default();
    for sequence in sequences {
        for (token, &weight) in sequence.tokens.iter().zip(&sequence.weights) {
            population.add(Log::new(ends.log_ratio(token)), weight);
        }
    }
    population
}

fn normal_below(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

#[track_caller]
fn near(found: f64, expected: f64, relative: f64) {
    assert!((found / expected - 1.0).abs() < relative, "{found} is not {expected}");
}

/// A normal log-ratio of variance s² whose ratio has mean 1.
#[test]
fn without_a_tail_ratios_are_lognormal_with_the_known_figures() {
    let model = model(law(0.1, 0.02, 2.0), 0.0, 64);
    let square: f64 = 0.1 * 0.1 + 0.02 * 4.0;
    let s = square.sqrt();
    let sequences = sequences(&model, &[segment(3, 64)], &ages(5, 5, 0.0), 6_000);
    let all = population(&sequences, Ends::LearnerRollout);
    assert_eq!(all.tokens(), 384_000);
    near(all.percentile(50).unwrap(), libm::exp(-square / 2.0), 0.003);
    near(all.percentile(99).unwrap(), libm::exp(s * normal_quantile(0.99) - square / 2.0), 0.01);
    near(all.kl_k1().unwrap(), square / 2.0, 0.02);
    near(all.kl_k3().unwrap(), square / 2.0, 0.02);
    near(all.log_square().unwrap(), square + square * square / 4.0, 0.02);
    near(all.effective_share().unwrap(), libm::exp(-square), 0.005);
    // The mean size of a normal of mean -s²/2; s sqrt(2/pi) to first order in s.
    let shift = s / 2.0;
    let size = s
        * (libm::sqrt(std::f64::consts::FRAC_2_PI) * libm::exp(-shift * shift / 2.0)
            + shift * (2.0 * normal_below(shift) - 1.0));
    near(all.log_abs().unwrap(), size, 0.01);
    near(all.log_abs().unwrap(), s * libm::sqrt(std::f64::consts::FRAC_2_PI), 0.03);
}

#[test]
fn the_streaming_population_is_the_reference_within_its_resolution() {
    let model = model(law(0.2, 0.05, 1.5), 1.0, 64);
    let sequences = sequences(&model, &[segment(0, 30), segment(2, 20)], &ages(4, 3, 0.0), 200);
    for ends in [Ends::LearnerRollout, Ends::LearnerDeploy, Ends::DeployRollout] {
        let exact = spread(ends, &tokens(&sequences)).unwrap();
        let found = population(&sequences, ends);
        assert_eq!(found.tokens() as usize, exact.tokens);
        near(found.log_square().unwrap(), exact.log_square, 1e-9);
        near(found.log_abs().unwrap(), exact.log_abs, 1e-9);
        near(found.kl_k1().unwrap(), exact.kl_k1, 1e-9);
        near(found.kl_k3().unwrap(), exact.kl_k3, 1e-9);
        near(found.effective_share().unwrap(), exact.ess_token, 1e-9);
        near(libm::exp(found.max_log().unwrap()), exact.max, 1e-9);
        for (percent, exact) in [(50, exact.p50), (99, exact.p99)] {
            let found = libm::log(found.percentile(percent).unwrap());
            assert!((found - libm::log(exact)).abs() <= 0.0079 * libm::log(exact).abs() + 2e-9);
        }
    }
}

#[test]
fn unlikely_tokens_make_the_tail_and_the_variance_stays() {
    for (entropy, low, high) in [(1.0, 5.0, 6.0), (0.5, 6.5, 8.0), (0.25, 8.0, 10.0)] {
        let mut model = model(law(0.02, 0.0, 1.0), 1.0, 64);
        let tokens = &mut model.stretches[0].tokens;
        tokens.entropy = entropy;
        let expected = tokens.kurtosis();
        assert!(low < expected && expected < high, "{expected}: published are 2 to 10");
        let sequences = sequences(&model, &[segment(0, 64)], &ages(0, 0, 0.0), 6_000);
        let logs = logs(&sequences, Ends::LearnerRollout);
        let center = mean(&logs).unwrap();
        let squares = variance(&logs).unwrap();
        near(squares, 0.0004, 0.03);
        let fourth: Vec<f64> =
            logs.iter().map(|log| (log - center) * (log - center)).map(|s| s * s).collect();
        near(mean(&fourth).unwrap() / (squares * squares), expected, 0.06);

        // The half of the tokens that were less likely has most of the mismatch.
        let half = libm::log(2.0) * entropy;
        let (unlikely, likely): (Vec<&Token>, Vec<&Token>) =
            sequences.iter().flat_map(|s| &s.tokens).partition(|token| -token.rollout > half);
        let size = |tokens: &[&Token]| {
            let logs: Vec<f64> =
                tokens.iter().map(|t| Ends::LearnerRollout.log_ratio(t).abs()).collect();
            mean(&logs).unwrap()
        };
        assert!(size(&unlikely) > 2.5 * size(&likely), "{entropy}");
    }
    let flat = Tokens { entropy: 0.5, tail: 0.0, tail_fade: 0.0 };
    assert_eq!((flat.kurtosis(), flat.norm()), (3.0, 1.0));
    // By hand: 3 E(q⁴)/E(q²)² = 18 (l + 1)(l + 2) / ((l + 3)(l + 4)) with l = 1/entropy = 2.
    near(Tokens { tail: 1.0, ..flat }.kurtosis(), 18.0 * 12.0 / 30.0, 1e-9);
}

/// With a fade of 1/2 what the scale adds to a kurtosis of 3 falls about as 1/k.
#[test]
fn over_several_versions_tokens_become_alike_where_each_moves_others() {
    let tokens = Tokens { entropy: 1.0, tail: 1.0, tail_fade: 0.5 };
    let model = model(Stretch { tokens, ..law(0.0, 0.0001, 1.5) }, 1.0, 64);
    let kurtosis = |age: u32| {
        let sequences = sequences(&model, &[segment(0, 64)], &ages(age, age, 0.0), 4_000);
        let logs = logs(&sequences, Ends::LearnerRollout);
        let squares = variance(&logs).unwrap();
        near(squares, 0.0001 * libm::pow(f64::from(age), 1.5), 0.03);
        let fourth: Vec<f64> = logs.iter().map(|log| libm::pow(*log, 4.0)).collect();
        mean(&fourth).unwrap() / (squares * squares)
    };
    let [one, four, sixteen] = [1, 4, 16].map(kurtosis);
    near(one, tokens.kurtosis(), 0.06);
    assert!((2.0..5.0).contains(&((one - 3.0) / (four - 3.0))), "{one} {four}");
    assert!((2.0..5.0).contains(&((four - 3.0) / (sixteen - 3.0))), "{four} {sixteen}");
    assert_eq!(tokens.over(0.5), tokens.over(1.0), "the scale of one version is the widest");
}

#[test]
fn ratios_between_any_two_policies_follow_the_same_law() {
    let (sigma0, a, p) = (0.05, 0.01, 1.6);
    let model = model(law(sigma0, a, p), 0.0, 64);
    let at = ages(7, 4, 0.5);
    let sequences = sequences(&model, &[segment(1, 64)], &at, 6_000);
    let moved = |k: f64| a * libm::pow(k, p);
    let expected = [
        (Ends::LearnerRollout, sigma0 * sigma0 + moved(6.5)),
        (Ends::LearnerDeploy, moved(3.5)),
        (Ends::DeployRollout, sigma0 * sigma0 + moved(3.0)),
        (Ends::LearnerProximal, moved(0.5)),
    ];
    for (ends, expected) in expected {
        near(variance(&logs(&sequences, ends)).unwrap(), expected, 0.02);
    }
    // What is drawn from the rollout policy has ratios of mean 1 over it.
    for ends in [Ends::LearnerRollout, Ends::DeployRollout] {
        let ratios: Vec<f64> = logs(&sequences, ends).into_iter().map(libm::exp).collect();
        near(mean(&ratios).unwrap(), 1.0, 0.01);
    }
}

#[test]
fn policies_that_are_the_same_have_a_ratio_of_exactly_one() {
    let model = model(law(0.05, 0.01, 1.6), 1.0, 16);
    let sequences = sequences(&model, &[segment(1, 16)], &ages(7, 7, 0.0), 50);
    for ends in [Ends::LearnerProximal, Ends::LearnerDeploy] {
        assert!(logs(&sequences, ends).iter().all(|&log| log == 0.0));
    }
    assert!(logs(&sequences, Ends::DeployRollout).iter().all(|&log| log != 0.0));
}

#[test]
fn each_segment_has_its_own_age_and_its_exact_number_of_tokens() {
    let model = model(law(0.0, 0.01, 2.0), 1.0, 16);
    let segments = [segment(2, 700), segment(5, 3), segment(9, 297)];
    let sequences = sequences(&model, &segments, &ages(10, 10, 0.0), 2_000);
    for sequence in &sequences {
        assert!(sequence.tokens.len() <= 16 + segments.len());
        for (age, tokens) in [(8, 700), (5, 3), (1, 297)] {
            let weights = sequence.tokens.iter().zip(&sequence.weights);
            let of_age = weights.filter(|(token, _)| token.staleness == age);
            assert_eq!(of_age.map(|(_, weight)| weight).sum::<u64>(), tokens);
        }
    }
    let mut parts = [8, 5, 1].map(|_| Vec::new());
    for token in sequences.iter().flat_map(|sequence| &sequence.tokens) {
        let place = [8, 5, 1].iter().position(|age| *age == token.staleness).unwrap();
        parts[place].push(Ends::LearnerRollout.log_ratio(token));
    }
    for (part, expected) in parts.iter().zip([0.64, 0.25, 0.01]) {
        // Variance of a mixture of scales: v + v²/4 (E c⁴ - 1).
        let expected = expected + 0.25 * expected * expected * (7.2 / 3.0 - 1.0);
        near(variance(part).unwrap(), expected, 0.1);
    }
}

/// The sum of what is not drawn is normal with the exact moments: drawing every token instead gives
/// the same.
#[test]
fn drawing_some_tokens_and_the_sum_of_the_rest_is_drawing_all() {
    let segments = [segment(0, 150), segment(3, 250)];
    let at = ages(5, 4, 0.25);
    let law = law(0.03, 0.002, 1.7);
    let some = sequences(&model(law, 1.0, 16), &segments, &at, 4_000);
    let all = sequences(&model(law, 1.0, 400), &segments, &at, 4_000);
    assert!(all[0].tokens.len() == 400 && all[0].weights.iter().all(|&weight| weight == 1));
    let each = |sequences: &[Sequence], of: fn(&Sequence) -> f64| -> Vec<f64> {
        sequences.iter().map(of).collect()
    };
    let sums: [fn(&Sequence) -> f64; 3] =
        [|s| s.learner, |s| s.proximal, |s| s.learner - s.proximal];
    for of in sums {
        let (some, all) = (each(&some, of), each(&all, of));
        let deviation = variance(&all).unwrap().sqrt();
        let difference = mean(&some).unwrap() - mean(&all).unwrap();
        assert!(difference.abs() < 4.0 * deviation / (2_000.0_f64).sqrt(), "{difference}");
        near(variance(&some).unwrap(), variance(&all).unwrap(), 0.1);
    }
    // Where all are drawn the sum is the sum.
    let sum: f64 = all[0].tokens.iter().map(|t| Ends::LearnerRollout.log_ratio(t)).sum();
    near(all[0].learner, sum, 1e-9);

    let (some, all) =
        (population(&some, Ends::LearnerRollout), population(&all, Ends::LearnerRollout));
    assert_eq!(some.tokens(), all.tokens());
    near(some.kl_k3().unwrap(), all.kl_k3().unwrap(), 0.05);
    near(some.log_abs().unwrap(), all.log_abs().unwrap(), 0.02);
    near(some.percentile(99).unwrap(), all.percentile(99).unwrap(), 0.02);
    near(some.effective_share().unwrap(), all.effective_share().unwrap(), 0.01);
}

#[test]
fn the_variance_of_a_sequence_is_the_sum_over_its_tokens() {
    let model = model(law(0.1, 0.0, 1.0), 0.0, 16);
    let sequences = sequences(&model, &[segment(0, 1_000)], &ages(0, 0, 0.0), 4_000);
    let sums: Vec<f64> = sequences.iter().map(|sequence| sequence.learner).collect();
    near(variance(&sums).unwrap(), 1_000.0 * 0.01, 0.06);
    near(mean(&sums).unwrap(), -1_000.0 * 0.005, 0.03);
}

#[test]
fn wrong_labels_show_in_the_difference_of_log_probabilities() {
    let mut model = model(law(0.03, 0.0, 1.0), 1.0, 16);
    let diff = |model: &Model| {
        let sequences = sequences(model, &[segment(0, 200)], &ages(0, 0, 0.0), 2_000);
        (abs_diff(&tokens(&sequences)), sequences)
    };
    let (right, _) = diff(&model);
    assert!(right < 0.025);
    model.shifted_share = 0.2;
    let (shifted, sequences) = diff(&model);
    // Two tokens of one policy differ by the entropy on average (0.5 nats).
    let faulty = sequences.iter().filter(|sequence| sequence.fault == Some(Fault::Shifted));
    let share = faulty.count() as f64 / 2_000.0;
    near(share, 0.2, 0.15);
    near(shifted, (1.0 - share) * right + share * 0.5, 0.04);
    // Over the sequence shifted labels cancel each other, but for the first.
    let largest = sequences.iter().map(|sequence| sequence.learner.abs()).fold(0.0, f64::max);
    assert!(largest < 10.0, "{largest}");

    (model.shifted_share, model.padded_share) = (0.0, 0.2);
    let (padded, sequences) = diff(&model);
    // On average half of the sample has no log-probabilities, each of which is 0.5 nats.
    near(padded, 0.2 * 0.5 * 0.5 + 0.9 * right, 0.1);
    assert!(sequences.iter().any(|sequence| sequence.learner < -50.0));
}

#[test]
fn a_sample_has_the_same_tokens_whatever_its_age() {
    let model = model(law(0.1, 0.01, 1.5), 1.0, 16);
    let mut out = [Sequence::default(), Sequence::default()];
    for (out, (version, learner)) in out.iter_mut().zip([(4, 9), (2, 9)]) {
        let at = ages(learner, learner, 0.0);
        draw(&model, &model.stretches[0], &[segment(version, 500)], &at, stream(3), out);
    }
    let [young, old] = out;
    for (young, old) in young.tokens.iter().zip(&old.tokens) {
        assert_eq!(young.rollout, old.rollout);
        assert_ne!(young.learner, old.learner);
    }
    // Ratios grow with age token by token: one that is far out stays on its side.
    let of = |sequence: &Sequence| logs(std::slice::from_ref(sequence), Ends::LearnerRollout);
    let agree = of(&young).iter().zip(of(&old)).filter(|(a, b)| (**a > 0.0) == (*b > 0.0)).count();
    assert!(agree > 8, "{agree} of 16");
}

#[test]
fn a_train_step_belongs_to_the_stretch_that_it_starts_in() {
    let mut model = model(law(0.1, 0.01, 1.5), 1.0, 16);
    model.stretches.push(Stretch { from_step: 200, ..law(0.1, 0.00001, 1.5) });
    let at = |progress| model.stretch(progress).map(|(place, _)| place);
    assert_eq!([at(0.0), at(199.9), at(200.0), at(1e4)], [Some(0), Some(0), Some(1), Some(1)]);
    assert_eq!(model.calibration(), "uncalibrated");
    model.calibrated_from = Some("run.db".into());
    assert_eq!(model.calibration(), "calibrated from run.db");
}

/// Samples of one token, half of them good.
fn taught(
    model: &Model,
    lesson: f64,
    course: &Course,
    [rollout, learner]: [u32; 2],
) -> [Vec<f64>; 2] {
    let of = |good: bool| {
        let per_step = if good { lesson } else { -lesson };
        let lesson = Lesson { per_step, square: per_step * per_step, ..Lesson::default() };
        let moves = Steps::ALIKE;
        let ages = Ages { learner, deploy: None, within: 0.0, course, moves, lesson };
        logs(&sequences(model, &[segment(rollout, 1)], &ages, 100_000), Ends::LearnerRollout)
    };
    [of(true), of(false)]
}

#[test]
fn good_answers_become_more_likely_and_all_move_as_far_as_before() {
    for tail in [0.0, 1.0] {
        let model = model(law(0.0, 0.004, 1.5), tail, 16);
        let [good, bad] = taught(&model, 0.01, Course::STEADY, [3, 7]);
        let apart = mean(&good).unwrap() - mean(&bad).unwrap();
        near(apart, 2.0 * 4.0 * 0.01, 0.05);
        let both = [good, bad].concat();
        let mean_of =
            |of: fn(f64) -> f64| mean(&both.iter().map(|&log| of(log)).collect::<Vec<_>>());
        near(mean_of(|log| log * log).unwrap(), 0.004 * 8.0, 0.05);
        // What generated a token finds it as likely as it is.
        near(mean_of(libm::exp).unwrap(), 1.0, 0.005);
    }
}

#[test]
fn a_token_goes_no_further_than_clipping_lets_its_like() {
    let model = model(law(0.0, 0.004, 1.5), 0.0, 16);
    let drawn = |until: [f64; 2], tokens: u32, sampled_tokens: u32| {
        let lesson = Lesson { until, ..Lesson::default() };
        let ages = Ages { lesson, ..ages(8, 8, 0.0) };
        let model = Model { sampled_tokens, ..model.clone() };
        sequences(&model, &[segment(0, tokens)], &ages, 2_000)
    };
    let never = [f64::NEG_INFINITY, f64::INFINITY];
    let (low, high) = (libm::log(0.8), libm::log(1.25));
    let past = 0.5 * libm::sqrt(0.004);
    let of = |until| logs(&drawn(until, 16, 16), Ends::LearnerRollout);
    let (free, good, bad) = (of(never), of([never[0], high]), of([low, never[1]]));
    for (at, free) in free.iter().enumerate() {
        assert!((good[at] - free.min(high + past)).abs() < 1e-12);
        assert!((bad[at] - free.max(low - past)).abs() < 1e-12);
    }
    assert!(good.iter().filter(|&&log| log > high).count() > 5_000, "they count as clipped");
    // Of those that are not drawn one by one, the sum.
    let sum = |sampled: u32| {
        let sequences = drawn([never[0], high], 400, sampled);
        mean(&sequences.iter().map(|sequence| sequence.learner).collect::<Vec<_>>()).unwrap()
    };
    near(sum(16), sum(400), 0.02);
    // A turn that was aborted before its first token.
    let none = sequences(&model, &[segment(0, 0), segment(1, 5)], &ages(8, 8, 0.0), 1);
    assert!(none[0].tokens.len() == 5 && none[0].learner.is_finite(), "{none:?}");
}

#[test]
fn versions_are_as_far_apart_as_what_their_steps_were_worth() {
    let model = model(law(0.0, 0.01, 1.5), 0.0, 16);
    let mut course = Course::default();
    (0..8).for_each(|version| course.step(version, 0.5));
    let square = |course: &Course| {
        let [logs, _] = taught(&model, 0.0, course, [2, 8]);
        variance(&logs).unwrap()
    };
    near(square(&course), 0.01 * libm::pow(3.0, 1.5), 0.02);
    near(square(Course::STEADY), 0.01 * libm::pow(6.0, 1.5), 0.02);
}

#[test]
fn what_a_correction_leaves_of_a_gradient_is_that_of_the_normal_law() {
    let mut model = model(law(0.0, 0.01, 1.5), 0.0, 16);
    let later = Stretch { from_step: 50, a: 0.0001, ..model.stretches[0] };
    let never = Stretch { from_step: 900, ..later };
    model.stretches.extend([later, never]);
    let members: Vec<Member> =
        (0..8).map(|at| Member { group: 2, reward: f64::from(at % 2), masked: false }).collect();
    let batch = |version: u32| Batch {
        version,
        members: members.clone(),
        segments: vec![segment(version - 8, 100); 8],
    };
    let batches: Vec<Batch> = (10..90).map(batch).collect();
    let kept = |correction| {
        let rule = Loss { correction, low: 0.8, high: 1.25 };
        gradient_kept(&model, rule, &batches)
    };
    // What is not clipped weighs as its ratio: the normal law of the logarithm, its mean raised from -s²/2 to
    // s²/2. What is clipped has stopped half a step beyond the bound.
    let share = |a: f64| {
        let variance = a * libm::pow(8.0, 1.5);
        let below = |bound: f64, raised: f64| {
            normal_below((libm::log(bound) - raised * variance) / libm::sqrt(variance))
        };
        let beyond = libm::exp(0.5 * libm::sqrt(a));
        let left = below(1.25, 0.5) + 1.0 - below(0.8, 0.5);
        let gone = 1.25 * beyond * (1.0 - below(1.25, -0.5)) + 0.8 / beyond * below(0.8, -0.5);
        left / (left + gone)
    };
    let [first, second, third] = kept(Correction::PpoClip).try_into().unwrap();
    near(first.unwrap(), share(0.01), 0.03);
    near(second.unwrap(), share(0.0001), 0.01);
    assert_eq!(third, None);
    assert_eq!(kept(Correction::None)[0], Some(1.0));
    // What is weighed and not clipped is kept.
    near(kept(Correction::Decoupled)[0].unwrap(), 1.0, 1e-12);
}
