-- The turns of samples that are trajectories (sample_unit = "session"). A sample that is one turn
-- has none: its own row says it all.
CREATE TABLE turns (
    sample     INTEGER NOT NULL,
    turn       INTEGER NOT NULL,    -- from 0, in the order in which they ended
    sequence   INTEGER NOT NULL,    -- which token sequence of its sample it goes on with, from 0
    request    INTEGER NOT NULL,
    ended      INTEGER NOT NULL,    -- seq of the input that ended it
    prompt     TEXT NOT NULL,       -- token ids that it adds to the sequence before its own, JSON
    tokens     TEXT NOT NULL,       -- generated token ids, JSON
    logprobs   TEXT NOT NULL,       -- one for each token, JSON
    segments   TEXT NOT NULL,       -- [[version, tokens], ..], JSON
    finish     TEXT NOT NULL,       -- stop, length or aborted
    response   TEXT NOT NULL,       -- the generated text
    next_state TEXT,                -- what followed the turn
    PRIMARY KEY (sample, turn)
);

-- Every turn that was generated for a sample, whatever a sample is.
CREATE VIEW generated AS
    SELECT id AS sample, 0 AS turn, 0 AS sequence, prompt, tokens, logprobs, segments, finish,
           response, next_state
    FROM samples WHERE tokens IS NOT NULL
    UNION ALL
    SELECT sample, turn, sequence, prompt, tokens, logprobs, segments, finish, response, next_state
    FROM turns;

-- Where another decision version took the record over from that of the header, or of the row before.
CREATE TABLE epochs (
    from_input       INTEGER PRIMARY KEY,  -- seq of the first input that it decided
    decision_version INTEGER NOT NULL,
    handled_again    INTEGER NOT NULL      -- inputs before that it handled again, to know the state
);
