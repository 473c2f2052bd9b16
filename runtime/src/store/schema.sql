CREATE TABLE header (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE inputs (
    seq     INTEGER PRIMARY KEY,   -- from 0, without gaps
    time_ns INTEGER NOT NULL,      -- nanoseconds since the run's start
    wall_ms INTEGER NOT NULL,      -- milliseconds since 1970; no decision knows it
    kind    TEXT NOT NULL,         -- the input's name
    input   TEXT NOT NULL,         -- the input, JSON
    actions TEXT NOT NULL          -- digest of the actions it caused, 16 hexadecimal digits
);

CREATE TABLE sessions (
    id     INTEGER PRIMARY KEY,
    name   TEXT NOT NULL,          -- as the client calls it; a name can come again
    ended  INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX sessions_live ON sessions (name) WHERE ended = 0;

CREATE TABLE groups (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL             -- as the client calls it
);

CREATE TABLE samples (
    id         INTEGER PRIMARY KEY, -- ordinal of its admission
    request    INTEGER NOT NULL,
    session    INTEGER NOT NULL,
    "group"    INTEGER,
    admitted   INTEGER NOT NULL,    -- seq of the input that admitted it
    messages   TEXT NOT NULL,       -- the conversation before the turn, JSON
    metadata   TEXT NOT NULL,       -- what the request said about itself, JSON
    prompt     TEXT NOT NULL,       -- token ids, JSON
    tokens     TEXT,                -- generated token ids, JSON
    logprobs   TEXT,                -- one for each token, JSON
    segments   TEXT,                -- [[version, tokens], ..], JSON
    finish     TEXT,                -- stop, length or aborted
    response   TEXT,                -- the generated text
    next_state TEXT,                -- what followed the turn
    score      REAL,                -- 1 is a full reward
    masked     INTEGER,             -- 1: a place in a batch and no gradient
    fate       TEXT,                -- trained, or why it was discarded; NULL: still on its way
    step       INTEGER,             -- the step that trained it
    staleness  INTEGER,             -- of its first token when its step started, in versions
    resolved   INTEGER              -- seq of the input that resolved it
);
CREATE INDEX samples_live ON samples (id) WHERE fate IS NULL;

CREATE TABLE votes (
    id            INTEGER PRIMARY KEY,
    sample        INTEGER NOT NULL,
    started       INTEGER NOT NULL,  -- seq of the input that started it
    ended         INTEGER,           -- seq of the input that ended it
    outcome       TEXT,              -- score, invalid or failed
    score         REAL,
    tokens        INTEGER,           -- tokens that the judge read and wrote
    judge_version INTEGER
);
CREATE INDEX votes_of_sample ON votes (sample);

CREATE TABLE steps (
    id       INTEGER PRIMARY KEY,
    learner  INTEGER NOT NULL,       -- the version it started from
    samples  TEXT NOT NULL,          -- their ids in batch order, JSON
    started  INTEGER NOT NULL,       -- seq of the input that started it
    ended    INTEGER,                -- seq of the input that ended it
    ok       INTEGER                 -- 1: it made version learner + 1
);

CREATE TABLE step_metrics (
    step      INTEGER NOT NULL,
    name      TEXT NOT NULL,         -- what the trainer measured
    staleness INTEGER NOT NULL,      -- of the tokens it is about; -1: the whole step
    value     REAL,                  -- NULL: not a number
    PRIMARY KEY (step, name, staleness)
) WITHOUT ROWID;

CREATE TABLE snapshots (
    inputs INTEGER PRIMARY KEY,      -- how many inputs precede it
    core   BLOB NOT NULL,            -- the scheduler
    book   BLOB NOT NULL             -- what the driver knows of work in flight
);
