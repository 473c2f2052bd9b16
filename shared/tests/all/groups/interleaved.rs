//! Three prompts whose members come in turns, and places for two of them.

use headway_shared::action::Refusal;
use headway_shared::config::OverLimit;
use headway_shared::id::RequestId;

use super::super::harness::{Bench, Decision, GOOD, ZERO};

fn two_of_eight(over_limit: OverLimit) -> Bench {
    Bench::new(|c| {
        c.policy_training.group_size = 8;
        c.policy_training.min_group_size = 8;
        c.policy_training.batch_size = 2;
        c.policy_training.max_head_off_policyness = 0;
        c.policy_serving.over_limit = over_limit;
    })
}

/// Member by member, one of each prompt.
fn ask(bench: &mut Bench, prompts: &[u64]) -> Vec<(u64, RequestId)> {
    let members = (0..8).flat_map(|member| prompts.iter().map(move |&prompt| (member, prompt)));
    let members: Vec<(u64, u64)> = members.collect();
    members
        .into_iter()
        .map(|(member, prompt)| (prompt, bench.request_in(100 * prompt + member, prompt)))
        .collect()
}

fn train(bench: &mut Bench, asked: &[(u64, RequestId)], prompts: [u64; 2]) {
    for &(prompt, request) in asked.iter().rev().filter(|(prompt, _)| prompts.contains(prompt)) {
        bench.finish(request);
        let score = if request.0 % 3 == 0 { ZERO } else { GOOD };
        bench.vote(bench.sample_of(request), score);
        assert!(prompt < 100);
    }
    assert_eq!(bench.batch().len(), 16);
    bench.end_step(true);
    bench.publish();
}

#[test]
fn the_third_prompt_is_refused_until_the_first_two_are_trained() {
    let mut bench = two_of_eight(OverLimit::Refuse);
    let asked = ask(&mut bench, &[1, 2, 3]);
    for &(prompt, request) in &asked {
        match prompt {
            3 => bench.refused(request, Refusal::Stale),
            _ => assert!(matches!(bench.decision(request), Decision::Started { .. })),
        }
    }
    train(&mut bench, &asked, [1, 2]);
    let asked = ask(&mut bench, &[3, 4]);
    train(&mut bench, &asked, [3, 4]);
    assert_eq!((bench.trained.len(), bench.worst_staleness()), (32, 0));
}

#[test]
fn the_third_prompt_is_held_until_the_first_two_are_trained_and_then_starts_whole() {
    let mut bench = two_of_eight(OverLimit::Hold);
    let mut asked = ask(&mut bench, &[1, 2, 3]);
    assert_eq!(bench.core.gauges().held, 8);
    train(&mut bench, &asked, [1, 2]);
    assert_eq!((bench.core.gauges().held, bench.core.gauges().running), (0, 8));
    asked.extend(ask(&mut bench, &[4]));
    train(&mut bench, &asked, [3, 4]);
    assert_eq!((bench.trained.len(), bench.worst_staleness()), (32, 0));
}
