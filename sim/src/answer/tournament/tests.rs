use super::*;
use crate::report::csv::Csv;
use crate::tournament::results::TournamentMeta;

/// Gate, knob, sync mode, samples an hour with their half-width, p99 and length ratio.
type Played = (&'static str, &'static str, &'static str, f64, f64, f64, f64);

fn played(workloads: &[(&str, &[Played])]) -> TournamentResults {
    let workload = |(name, _): &(&str, &[Played])| Workload {
        name: (*name).into(),
        title: String::new(),
        scenario_digest: String::new(),
        seed: 1,
        replications: 4,
        drift: Some("uncalibrated".into()),
        about: None,
    };
    let lead = ["workload", "gate", "knob", "sync_mode", "status"];
    let values = [RATES[0], "trained_samples_per_hour_hw", AGE, LENGTH, IDLE];
    let mut table = Csv::new(lead.into_iter().chain(values));
    let mut gates: Vec<String> = Vec::new();
    for (world, rows) in workloads {
        for &(gate, knob, mode, rate, half, age, length) in *rows {
            if !gates.iter().any(|known| known == gate) {
                gates.push(gate.into());
            }
            let lead = [*world, gate, knob, mode, "ok"].map(str::to_owned);
            let values = [rate, half, age, length, 0.25].map(number::text);
            table.rows.push(lead.into_iter().chain(values).collect());
        }
    }
    let meta = TournamentMeta {
        kind: "tournament".into(),
        version: String::new(),
        workloads: workloads.iter().map(workload).collect(),
        gates,
        sync_modes: vec!["in_flight".into(), "rolling".into()],
        command: String::new(),
    };
    TournamentResults { meta, table }
}

const HEADWAY: Played =
    ("headway", "max_head_off_policyness=2", "in_flight", 1000.0, 20.0, 3.0, 1.0);
const SYNC: Played = ("sync", "", "in_flight", 600.0, 20.0, 0.0, 1.0);

#[test]
fn the_winner_is_named_with_what_it_beats_and_what_the_limit_costs() {
    let rolling = ("headway", "max_head_off_policyness=2", "rolling", 700.0, 20.0, 3.0, 1.0);
    let older = ("headway", "max_head_off_policyness=8", "in_flight", 1200.0, 20.0, 9.0, 1.0);
    let short = ("prime_rl", "max_off_policy_steps=4", "in_flight", 1300.0, 20.0, 4.0, 0.7);
    let found = of_tournament(&played(&[("mild", &[SYNC, rolling, HEADWAY, older, short])]));
    assert!(found.is_known);
    assert_eq!(
        found.answer,
        "Take headway η=2 under in_flight, with 1,000 ±20 trained samples/h at a p99 of 3."
    );
    assert_eq!(found.chosen, Some(2));
    let all = found.because.join("\n");
    for said in [
        "It beats sync under in_flight, the best gate that is clearly slower, with 600 ±20 samples/h, \
         40.0% less: the trainer of that is idle for 25.0% of the time, since it waits",
        "Under rolling the same setting trains 30.0% less",
        "The limit binds: headway η=8 under in_flight has 1,200 ±20 samples/h, 20.0% more, at a p99 of 9",
        "Within the limit prime_rl max_off_policy_steps=4 under in_flight has 1,300 ±20 samples/h, from \
         samples of 0.7 times the mean length",
    ] {
        assert!(all.contains(said), "{said}\n\nis not in\n\n{all}");
    }
    assert!(found.but.iter().any(|line| line.contains("uncalibrated")), "{:?}", found.but);
}

#[test]
fn gates_whose_intervals_overlap_are_not_told_apart() {
    let areal = ("areal", "max_head_off_policyness=2", "in_flight", 990.0, 20.0, 3.0, 1.0);
    let tied = of_tournament(&played(&[("mild", &[areal, HEADWAY])]));
    assert!(!tied.is_known, "{}", tied.answer);
    assert!(
        tied.answer.ends_with("as fast, as far as the intervals tell: areal."),
        "{}",
        tied.answer
    );
    let decided = of_tournament(&played(&[("mild", &[areal, HEADWAY, SYNC])]));
    assert!(decided.is_known && decided.because[0].starts_with("It beats sync"), "{decided:?}");
}

#[test]
fn each_workload_has_a_winner_of_its_own() {
    let only = ("sync", "", "in_flight", 600.0, 20.0, 0.0, 1.0);
    let results = played(&[("mild", &[SYNC, HEADWAY]), ("heavy", &[only])]);
    let found = of_tournament(&results);
    assert!(found.answer.starts_with("It depends on the workload. mild: headway η=2"), "{found:?}");
    assert!(found.answer.contains("heavy: sync under in_flight"), "{found:?}");
    assert!(found.because.iter().any(|line| line.starts_with("mild: it beats sync")), "{found:?}");
    assert_eq!((found.chosen, winners(&results)), (None, vec![Some(1), Some(2)]));
}

#[test]
fn where_nothing_keeps_the_limit_without_bias_nothing_wins() {
    let old = ("headway", "max_head_off_policyness=8", "in_flight", 1200.0, 20.0, 9.0, 1.0);
    let short = ("prime_rl", "", "in_flight", 1300.0, 20.0, 4.0, 0.7);
    let found = of_tournament(&played(&[("mild", &[old, short])]));
    assert!(!found.is_known && found.answer == "None of those that played.");
    assert_eq!(found.because, ["Without length bias the least p99 is 9, above the limit of 4."]);
}
