//! The books of requests and samples add up, or say what does not.

use headway_shared::action::{Discard, Refusal};
use headway_shared::core::{Ledger, SampleState, Violation};

/// Ten requests, of which four became samples.
fn books() -> Ledger {
    let mut books = Ledger { offered: 10, admitted: 4, trained: 1, ..Ledger::default() };
    (books.continued, books.served_only, books.held, books.left_while_held) = (1, 1, 1, 1);
    books.refused[Refusal::Stale.index()] = 2;
    books.discarded[Discard::Late.index()] = 1;
    books.in_state[SampleState::Judging as usize] = 1;
    books.in_state[SampleState::Parked as usize] = 1;
    books
}

#[test]
fn a_request_or_a_sample_that_is_nowhere_is_found() {
    assert_eq!(books().check(), Ok(()));
    assert_eq!((books().outstanding(), books().parked()), (1, 1));
    let samples: [fn(&mut Ledger); 4] = [
        |books| books.trained = 0,
        |books| books.discarded = [0; Discard::COUNT],
        |books| books.in_state[SampleState::Judging as usize] = 0,
        |books| books.in_state[SampleState::Parked as usize] = 0,
    ];
    let requests: [fn(&mut Ledger); 6] = [
        |books| books.offered = 11,
        |books| books.continued = 0,
        |books| books.served_only = 0,
        |books| books.held = 0,
        |books| books.left_while_held = 0,
        |books| books.refused = [0; Refusal::COUNT],
    ];
    let of = |edits: &[fn(&mut Ledger)], violation| {
        for edit in edits {
            let mut books = books();
            edit(&mut books);
            assert_eq!(books.check(), Err(violation), "{books:?}");
        }
    };
    of(&samples, Violation::Samples);
    of(&requests, Violation::Requests);
}
