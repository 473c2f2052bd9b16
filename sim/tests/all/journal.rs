//! What a sweep keeps of its runs while it is at work.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Mutex;

use headway_sim::report::results::Kind;
use headway_sim::sweep::journal::{Asked, Header, Journal, JournalError, Writer};
use headway_sim::sweep::shard::Shard;
use headway_sim::sweep::{Contribution, Plan, over};

use crate::all::world_support::{SLOTS, Silent, load};

/// What gives a scenario ratios.
const DRIFT: &str = "
[world.drift]
sigma0 = 0.031
a = 0.00001
p = 1
token_entropy = 0.5
";

fn plan(scenario: &str) -> Plan {
    let scenario = load(scenario, &["scenario.steps=4"]);
    let over = ["max_head_off_policyness=0,2".to_owned()];
    let axes = over::parse(&over, headway_shared::config::Table::EMPTY, &[]).unwrap();
    Plan::new(Kind::Sweep, &scenario, &axes, 0..3).unwrap()
}

fn ran(plan: &Plan, shard: Shard) -> Vec<(usize, Contribution)> {
    let runs: Vec<usize> = shard.runs(plan.runs()).collect();
    let done = plan.run_some(&runs, 2, &|_, _| Ok(()), &Silent).unwrap();
    runs.into_iter().zip(done).collect()
}

/// The bytes of a file with these runs, and where each of its parts ends.
fn written(header: &Header, runs: &[(usize, Contribution)], path: &Path) -> (Vec<u8>, Vec<usize>) {
    let length = || fs::metadata(path).unwrap().len() as usize;
    let writer = Writer::new(File::create(path).unwrap(), header).unwrap();
    let mut ends = vec![length()];
    for (run, contribution) in runs {
        writer.add(*run, contribution).unwrap();
        ends.push(length());
    }
    writer.finish().unwrap();
    (fs::read(path).unwrap(), ends)
}

#[test]
fn what_was_kept_is_what_was_run_to_the_last_bit() {
    let plan = plan(&format!("{SLOTS}{DRIFT}"));
    let runs = ran(&plan, Shard::WHOLE);
    for (_, contribution) in &runs {
        let bytes = contribution.to_bytes().unwrap();
        assert_eq!(Contribution::from_bytes(&bytes).as_ref(), Some(contribution));
        assert_eq!(Contribution::from_bytes(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Contribution::from_bytes(&[&bytes[..], &[0]].concat()), None);
    }
    let again = |(_, run): &(usize, Contribution)| {
        Contribution::from_bytes(&run.to_bytes().unwrap()).unwrap()
    };
    let kept = plan.outline().collect(runs.iter().map(again));
    let whole = plan.run(2, None::<std::io::Empty>, &Silent).unwrap();
    assert!(whole.results.ratios.is_some(), "the scenario has ratios");
    assert!(!whole.results.series.rows.is_empty(), "it has a series");
    assert_eq!(kept.results, whole.results);
    assert_eq!(kept.trouble, whole.trouble);
}

#[test]
fn each_run_is_kept_when_it_ends_and_a_run_that_cannot_be_kept_ends_the_sweep() {
    let plan = plan(SLOTS);
    let asked = Mutex::new(Vec::new());
    let keep = |run: usize, _: &Contribution| {
        let mut asked = asked.lock().unwrap();
        asked.push(run);
        if asked.len() == 3 { Err(std::io::Error::other("the disk is full")) } else { Ok(()) }
    };
    let error = plan.run_some(&[4, 1, 0, 5, 2], 1, &keep, &Silent).unwrap_err();
    assert!(error.to_string().ends_with("the disk is full"), "{error}");
    assert_eq!(asked.into_inner().unwrap().len(), 3, "what cannot be kept is not run");
}

#[test]
fn a_file_that_was_cut_is_whole_up_to_the_run_before() {
    let dir = tempfile::tempdir().unwrap();
    let (plan, shard) = (plan(SLOTS), "2/2".parse().unwrap());
    let runs = ran(&plan, shard);
    let header = Header::new(plan.outline(), shard, Asked::default());
    let (bytes, ends) = written(&header, &runs, &dir.path().join("file"));
    let whole = Journal::parse(&bytes).unwrap();
    assert_eq!((whole.whole, &whole.damage), (bytes.len(), &None));
    assert_eq!(whole.runs.clone().into_iter().collect::<Vec<_>>(), runs);
    assert_eq!(whole.missing().count(), 0);
    for cut in 0..bytes.len() {
        let read = Journal::parse(&bytes[..cut]);
        let Some(kept) = ends.iter().filter(|end| **end <= cut).count().checked_sub(1) else {
            assert!(matches!(read, Err(JournalError::NoJournal | JournalError::Torn(_))), "{cut}");
            continue;
        };
        let read = read.unwrap();
        assert_eq!((read.whole, read.runs.len()), (ends[kept], kept), "{cut}");
        let torn = (ends[kept] < cut).then_some(JournalError::Torn(cut));
        assert_eq!(read.damage, torn, "{cut}");
        assert_eq!(read.missing().count(), runs.len() - kept);
    }
}

#[test]
fn a_changed_byte_is_noticed_wherever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(SLOTS);
    let runs = ran(&plan, Shard::WHOLE);
    let header = Header::new(plan.outline(), Shard::WHOLE, Asked::default());
    let (bytes, ends) = written(&header, &runs, &dir.path().join("file"));
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        // In the header nothing can be trusted; behind it, what is in front of the place can.
        let Ok(read) = Journal::parse(&changed) else {
            assert!(place < ends[0], "{place}");
            continue;
        };
        let kept = ends.iter().filter(|end| **end <= place).count() - 1;
        assert_eq!((read.whole, read.runs.len()), (ends[kept], kept), "{place}");
        assert!(read.damage.is_some(), "{place}");
        assert!(read.runs.iter().all(|(run, kept)| runs[*run] == (*run, kept.clone())));
    }
}

#[test]
fn a_file_of_another_build_or_with_a_foreign_run_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(SLOTS);
    let runs = ran(&plan, "1/2".parse().unwrap());
    let mut header = Header::new(plan.outline(), "2/2".parse().unwrap(), Asked::default());
    let (bytes, ends) = written(&header, &runs, &dir.path().join("file"));
    let read = Journal::parse(&bytes).unwrap();
    let what = "it has a run that is not of its shard";
    assert_eq!(read.damage, Some(JournalError::Damaged { at: ends[0], what }));

    header.shard = "1/2".parse().unwrap();
    let twice: Vec<_> = runs.iter().chain(&runs[..1]).cloned().collect();
    let (bytes, ends) = written(&header, &twice, &dir.path().join("file"));
    let read = Journal::parse(&bytes).unwrap();
    let what = "it has this run twice";
    assert_eq!(read.damage, Some(JournalError::Damaged { at: ends[runs.len()], what }));
    assert_eq!(read.runs.len(), runs.len());

    header.build.decision_version += 1;
    let (bytes, _) = written(&header, &[], &dir.path().join("file"));
    let error = Journal::parse(&bytes).unwrap_err();
    assert_eq!(error, JournalError::OtherBuild { by: header.build });
    let other_format = [b"HWYRUNS2\n", &bytes[9..]].concat();
    assert_eq!(Journal::parse(&other_format), Err(JournalError::OtherFormat('2')));
}
