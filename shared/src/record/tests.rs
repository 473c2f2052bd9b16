use proptest::prelude::*;

use super::*;
use crate::action::Action;
use crate::config::Config;
use crate::core::Scheduler;
use crate::digest::Digest;
use crate::id::{RequestId, SessionId, VoteId};
use crate::input::{
    Finish, Input, Operator, Request, Segment, Segments, TurnType, VoteOutcome, WeightsEvent,
};
use crate::time::Time;
use crate::version::RolloutVersion;

fn header() -> Header {
    Header::new("openclaw", Digest::of(b"scenario"), 7, 3, &Config::default())
}

fn request(id: u64) -> Input {
    Input::Request(Request {
        request: RequestId(id),
        session: SessionId(id / 2),
        group: None,
        turn: TurnType::Main,
        prompt_tokens: 100,
        streamed: true,
        last: false,
    })
}

fn inputs() -> Vec<(Time, Input, Vec<Action>)> {
    let segments: Segments = (1..9)
        .map(|version| Segment { version: RolloutVersion::new(version), tokens: 500 })
        .collect();
    let ended = Input::GenerationEnded {
        request: RequestId(1),
        attempt: 1,
        finish: Finish::Stop,
        first_token: Some(Time::from_secs(2)),
        segments,
    };
    let vote = Input::VoteEnded {
        vote: VoteId(u64::MAX),
        outcome: VoteOutcome::Score(-1_000_000),
        tokens: 12,
        judge_version: 0,
    };
    let weights = Input::Weights {
        publication: crate::id::PublicationId(4),
        event: WeightsEvent::LoadFailed { replica: crate::id::ReplicaId(1), intact: true },
    };
    let reconfigure = Input::Operator(Operator::Reconfigure(Box::default()));
    let hold = Action::Hold { request: RequestId(1) };
    vec![
        (Time::from_secs(1), request(1), vec![hold]),
        (Time::from_secs(1), request(2), vec![hold, hold]),
        (Time::from_secs(30), ended, vec![]),
        (Time::from_nanos(u64::MAX), vote, vec![]),
        (Time::MAX, weights, vec![]),
        (Time::MAX, reconfigure, vec![]),
        (Time::MAX, Input::Tick, vec![]),
    ]
}

fn record() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &header()).unwrap();
    for (index, (at, input, actions)) in inputs().iter().enumerate() {
        writer.input(*at, input, actions).unwrap();
        if index == 2 {
            writer.snapshot(&Scheduler::new(Config::default())).unwrap();
        }
    }
    writer.finish().unwrap();
    bytes
}

/// Every entry, and the error that ended them, if one did.
fn read(bytes: &[u8]) -> Result<(Vec<Entry>, Option<RecordError>), RecordError> {
    let mut entries = Vec::new();
    for entry in Reader::open(bytes)? {
        match entry {
            Ok(entry) => entries.push(entry),
            Err(error) => return Ok((entries, Some(error))),
        }
    }
    Ok((entries, None))
}

#[test]
fn a_record_gives_back_what_was_written() {
    let bytes = record();
    assert_eq!(Reader::open(&bytes[..]).unwrap().header(), &header());
    let (entries, error) = read(&bytes).unwrap();
    assert!(error.is_none());
    let mut decisions = Decisions::default();
    let mut written = inputs().into_iter();
    let (mut snapshots, mut ends) = (0, 0);
    for entry in entries {
        match entry {
            Entry::Input { at, input, actions } => {
                let (time, expected, caused) = written.next().unwrap();
                assert_eq!((at, input), (time, expected));
                assert_eq!(actions, decisions.add(time, &caused));
            }
            Entry::Snapshot(state) => {
                snapshots += 1;
                assert!(crate::snapshot::from_bytes(&state).is_ok());
            }
            Entry::End(end) => {
                ends += 1;
                assert_eq!(end, decisions);
            }
        }
    }
    assert_eq!((written.next(), snapshots, ends), (None, 1, 1));
}

#[test]
fn a_time_that_goes_back_counts_as_the_latest() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &header()).unwrap();
    writer.input(Time::from_secs(5), &Input::Tick, &[]).unwrap();
    writer.input(Time::from_secs(3), &Input::Tick, &[]).unwrap();
    writer.finish().unwrap();
    let (entries, _) = read(&bytes).unwrap();
    let times = entries.iter().filter_map(|entry| match entry {
        Entry::Input { at, .. } => Some(*at),
        _ => None,
    });
    assert_eq!(times.collect::<Vec<_>>(), [Time::from_secs(5), Time::from_secs(5)]);
}

#[test]
fn a_record_that_is_cut_anywhere_says_at_which_entry() {
    let bytes = record();
    let whole = read(&bytes).unwrap().0;
    let mut last = 0;
    for length in 0..bytes.len() {
        match read(&bytes[..length]) {
            Err(RecordError::NotARecord) => assert!(length < 8),
            Err(RecordError::DamagedHeader) => assert!(length >= 8),
            Ok((entries, Some(RecordError::Truncated { entry }))) => {
                assert_eq!(entries, whole[..entries.len()], "what is whole is given");
                assert_eq!(entry, entries.len() as u64);
                assert!(entry >= last);
                last = entry;
            }
            other => panic!("cut at {length}: {other:?}"),
        }
    }
    assert_eq!(last as usize, whole.len() - 1);
}

#[test]
fn a_changed_byte_is_found_at_its_entry() {
    let bytes = record();
    let whole = read(&bytes).unwrap().0;
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        match read(&changed) {
            Err(RecordError::NotARecord) => assert!(place < 8),
            Err(RecordError::OtherFormat { .. }) => assert!((8..10).contains(&place)),
            Err(RecordError::DamagedHeader) => assert!(place >= 10),
            Ok((
                entries,
                Some(RecordError::Corrupt { entry } | RecordError::Truncated { entry }),
            )) => {
                assert_eq!(entries, whole[..entries.len()]);
                assert_eq!(entry, entries.len() as u64);
            }
            other => panic!("changed at {place}: {other:?}"),
        }
    }
}

#[test]
fn a_lost_entry_is_found() {
    let mut bytes = Vec::new();
    let mut ends = Vec::new();
    for count in 0..3 {
        bytes.clear();
        let mut writer = Writer::new(&mut bytes, &header()).unwrap();
        for id in 0..count {
            writer.input(Time::from_secs(1), &request(id), &[]).unwrap();
        }
        drop(writer);
        ends.push(bytes.len());
    }
    bytes.drain(ends[0]..ends[1]);
    let (entries, error) = read(&bytes).unwrap();
    assert_eq!(entries, []);
    assert!(matches!(error, Some(RecordError::Corrupt { entry: 0 })));
}

#[test]
fn a_length_of_gigabytes_is_refused_or_ends_with_the_file() {
    let header_only = {
        let mut bytes = Vec::new();
        drop(Writer::new(&mut bytes, &header()).unwrap());
        bytes
    };
    for (kind, expected) in [(1, "the record is damaged at entry 0"), (2, "cut short at entry 0")] {
        let mut bytes = header_only.clone();
        bytes.push(kind);
        bytes.extend_from_slice(&u32::MAX.to_le_bytes());
        bytes.extend_from_slice(&[0; 100]);
        let (_, error) = read(&bytes).unwrap();
        assert!(error.unwrap().to_string().contains(expected));
    }
}

#[test]
fn a_record_of_another_format_or_configuration_is_named_as_such() {
    let mut bytes = record();
    bytes[8] = 9;
    let error = Reader::open(&bytes[..]).unwrap_err();
    assert_eq!(error.to_string(), "the record has format 9; this build reads format 1");
    let error = Reader::open(&b"SQLite format 3\0"[..]).unwrap_err();
    assert!(matches!(error, RecordError::NotARecord));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
        let mut behind_header = record();
        let end = behind_header.len() - 100;
        behind_header.truncate(end);
        behind_header.extend_from_slice(&bytes);
        let _ = read(&behind_header);
    }

    #[test]
    fn a_record_with_several_changed_bytes_is_never_read_as_another(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1..=u8::MAX), 1..5),
    ) {
        let (bytes, mut changed) = (record(), record());
        for (place, flip) in changes {
            let place = place.index(changed.len());
            changed[place] ^= flip;
        }
        if changed != bytes {
            prop_assert!(!matches!(read(&changed), Ok((_, None))));
        }
    }
}
