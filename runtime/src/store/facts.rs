//! What a core that handles the inputs says of samples, votes and steps, beside the tables.

use std::collections::BTreeMap;

use headway_shared::action::Action;
use headway_shared::check::Finding;
use headway_shared::core::{Fate, Sample, Scheduler};
use headway_shared::id::{SampleId, StepId, VoteId};
use headway_shared::input::{Input, VoteOutcome};
use rusqlite::{Connection, Row};

use super::StoreError;
use super::read::{tokens_of, unsigned};
use super::write::json_of;

/// What became of a sample.
#[derive(Clone, Debug)]
struct End {
    seq: u64,
    fate: &'static str,
    step: Option<StepId>,
    sample: Sample,
}

/// A sample.
#[derive(Clone, Debug, Default)]
struct Life {
    admitted: Option<u64>,
    end: Option<End>,
}

/// A vote.
#[derive(Clone, Copy, Debug)]
struct Ballot {
    sample: SampleId,
    started: u64,
    ended: Option<(u64, VoteOutcome)>,
}

/// A train step.
#[derive(Clone, Debug)]
struct Training {
    learner: u32,
    samples: Vec<SampleId>,
    started: u64,
    ended: Option<(u64, bool)>,
}

/// Follows a core from input to input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The first input that was seen.
    from: u64,
    samples: BTreeMap<SampleId, Life>,
    votes: BTreeMap<VoteId, Ballot>,
    steps: BTreeMap<StepId, Training>,
}

/// What is seen in a row.
type Found = Vec<Finding>;

impl Facts {
    /// Nothing is said of what was before input `from`.
    pub(crate) fn from(from: u64) -> Self {
        Self { from, ..Self::default() }
    }

    /// The core has handled input `seq`, which caused these actions.
    pub(crate) fn observe(
        &mut self,
        seq: u64,
        input: &Input,
        actions: &[Action],
        scheduler: &Scheduler,
    ) {
        // An older checkpoint voids the step that was training.
        if matches!(input, Input::Restored { .. }) {
            for step in self.steps.values_mut() {
                step.ended.get_or_insert((seq, false));
            }
        }
        for action in actions {
            match *action {
                Action::StartGeneration { sample: Some(id), .. } => {
                    self.samples.entry(id).or_default().admitted.get_or_insert(seq);
                }
                Action::StartVote { vote, sample } => {
                    self.votes.insert(vote, Ballot { sample, started: seq, ended: None });
                }
                Action::StartStep { step, learner, .. } => {
                    let samples = scheduler.batch().map(|sample| sample.id).collect();
                    let learner = learner.number();
                    self.steps
                        .insert(step, Training { learner, samples, started: seq, ended: None });
                }
                // One that took too long has failed, whatever is said of it later.
                Action::CancelStep { step } => {
                    if let Some(step) = self.steps.get_mut(&step) {
                        step.ended.get_or_insert((seq, false));
                    }
                }
                _ => {}
            }
        }
        let mut trained_by = None;
        match *input {
            Input::VoteEnded { vote, outcome, .. } => {
                if let Some(vote) = self.votes.get_mut(&vote) {
                    vote.ended.get_or_insert((seq, outcome));
                }
            }
            Input::StepEnded { step, ok } => {
                trained_by = Some(step);
                if let Some(step) = self.steps.get_mut(&step) {
                    step.ended.get_or_insert((seq, ok));
                }
            }
            _ => {}
        }
        for resolved in scheduler.resolved() {
            let (fate, step) = match resolved.fate {
                Fate::Trained => ("trained", trained_by),
                Fate::Discarded(reason) => (reason.name(), None),
            };
            let sample = resolved.sample.clone();
            let end = Some(End { seq, fate, step, sample });
            self.samples.entry(resolved.sample.id).or_default().end = end;
        }
    }

    /// Where the tables say otherwise. What they say of inputs before the first that was seen is
    /// not looked at.
    pub(crate) fn compare(
        &self,
        connection: &Connection,
        scheduler: &Scheduler,
    ) -> Result<Found, StoreError> {
        let mut found = self.compare_samples(connection)?;
        found.extend(self.compare_tokens(connection, scheduler)?);
        found.extend(self.compare_votes(connection)?);
        found.extend(self.compare_steps(connection)?);
        Ok(found)
    }

    fn compare_samples(&self, connection: &Connection) -> Result<Found, StoreError> {
        let sql = "SELECT id, admitted, fate, step, staleness, score, masked, resolved \
                   FROM samples ORDER BY id";
        let mut seen = Vec::new();
        let mut found = Vec::new();
        each(connection, sql, |row| {
            let id = SampleId(unsigned(row, 0)?);
            let admitted = unsigned(row, 1)?;
            let life = self.samples.get(&id);
            seen.push(id);
            if admitted >= self.from {
                let expected = life.and_then(|life| life.admitted);
                check(&mut found, Some(admitted), expected == Some(admitted), || match expected {
                    None => format!("sample {} is in the table, and was not admitted", id.0),
                    Some(seq) => format!("sample {} was admitted by input {seq}", id.0),
                });
            }
            let end = life.and_then(|life| life.end.as_ref());
            let fate: Option<String> = row.get(2)?;
            let resolved = row.get::<_, Option<i64>>(7)?.map(i64::cast_unsigned);
            let Some(end) = end else {
                // Resolved before the first input that was seen.
                let known = resolved.is_none_or(|seq| seq >= self.from);
                check(&mut found, resolved, !known || fate.is_none(), || {
                    let fate = fate.as_deref().unwrap_or_default();
                    format!("sample {} is `{fate}` in the table, and still on its way", id.0)
                });
                return Ok(());
            };
            let score = row.get::<_, Option<f64>>(5)?;
            let millionths = score.map(|score| (score * 1e6).round() as i64);
            let trained = end.step.is_some();
            let same = fate.as_deref() == Some(end.fate)
                && row.get::<_, Option<i64>>(3)?.map(i64::cast_unsigned) == end.step.map(|s| s.0)
                && row.get::<_, Option<u32>>(4)? == trained.then(|| end.sample.staleness_head())
                && millionths == Some(end.sample.score.into())
                && row.get::<_, Option<bool>>(6)? == Some(end.sample.masked)
                && resolved == Some(end.seq);
            check(&mut found, Some(end.seq), same, || {
                let says = fate.as_deref().unwrap_or("on its way");
                format!(
                    "sample {} is resolved as `{}` with score {} by this input, and the table has \
                     `{says}` with score {} by input {}",
                    id.0,
                    end.fate,
                    f64::from(end.sample.score) / 1e6,
                    score.map_or_else(|| "none".to_owned(), |score| score.to_string()),
                    resolved.map_or_else(|| "none".to_owned(), |seq| seq.to_string()),
                )
            });
            Ok(())
        })?;
        for (id, life) in self.samples.iter().filter(|(id, _)| seen.binary_search(id).is_err()) {
            let what = format!("sample {} was admitted, and is not in the table", id.0);
            found.push(Finding { input: life.admitted, what });
        }
        Ok(found)
    }

    /// Every generated turn has its tokens, and together they are what the core was told.
    fn compare_tokens(
        &self,
        connection: &Connection,
        scheduler: &Scheduler,
    ) -> Result<Found, StoreError> {
        let (mut found, mut sums) = lengths(connection)?;
        let ended = self.samples.iter().filter_map(|(&id, life)| Some((id, life.end.as_ref()?)));
        let ended = ended.map(|(id, end)| (id, &end.sample, Some(end.seq)));
        let alive = self
            .samples
            .iter()
            .filter_map(|(&id, life)| Some((id, scheduler.sample(id)?, life.admitted)));
        for (id, sample, seq) in ended.chain(alive) {
            let sum = sums.remove(&id.0).unwrap_or_default();
            // What was generated and could not be used was not counted.
            let counted = sample.turns > 0;
            let same = (u64::from(sample.turns), u64::from(sample.tokens), sample.version_sum);
            check(&mut found, seq, !counted || sum.broken || sum.totals() == same, || {
                format!(
                    "sample {} has {} turns and {} tokens, whose versions add up to {}; the table \
                     has {} turns and {} tokens, and {}",
                    id.0, same.0, same.1, same.2, sum.turns, sum.tokens, sum.versions
                )
            });
        }
        Ok(found)
    }

    fn compare_votes(&self, connection: &Connection) -> Result<Found, StoreError> {
        let sql = "SELECT id, sample, started, ended, outcome, score FROM votes ORDER BY id";
        let (mut found, mut seen) = (Vec::new(), Vec::new());
        each(connection, sql, |row| {
            let id = VoteId(unsigned(row, 0)?);
            let started = unsigned(row, 2)?;
            seen.push(id);
            let Some(vote) = self.votes.get(&id) else {
                check(&mut found, Some(started), started < self.from, || {
                    format!("vote {} is in the table, and was not started", id.0)
                });
                return Ok(());
            };
            let outcome: Option<String> = row.get(4)?;
            let (name, score) = match vote.ended.map(|(_, outcome)| outcome) {
                None => (None, None),
                Some(VoteOutcome::Score(score)) => (Some("score"), Some(i64::from(score))),
                Some(VoteOutcome::Invalid) => (Some("invalid"), None),
                Some(VoteOutcome::Failed) => (Some("failed"), None),
            };
            let same = unsigned(row, 1)? == vote.sample.0
                && started == vote.started
                && row.get::<_, Option<i64>>(3)?.map(i64::cast_unsigned)
                    == vote.ended.map(|(seq, _)| seq)
                && outcome.as_deref() == name
                && row.get::<_, Option<f64>>(5)?.map(|s| (s * 1e6).round() as i64) == score;
            check(
                &mut found,
                vote.ended.map_or(Some(vote.started), |(seq, _)| Some(seq)),
                same,
                || {
                    let (name, says) =
                        (name.unwrap_or("open"), outcome.as_deref().unwrap_or("open"));
                    format!("vote {} is {name} by this input, and {says} in the table", id.0)
                },
            );
            Ok(())
        })?;
        for (id, vote) in self.votes.iter().filter(|(id, _)| seen.binary_search(id).is_err()) {
            let what = format!("vote {} was started, and is not in the table", id.0);
            found.push(Finding { input: Some(vote.started), what });
        }
        Ok(found)
    }

    fn compare_steps(&self, connection: &Connection) -> Result<Found, StoreError> {
        let sql = "SELECT id, learner, samples, started, ended, ok FROM steps ORDER BY id";
        let (mut found, mut seen) = (Vec::new(), Vec::new());
        each(connection, sql, |row| {
            let id = StepId(unsigned(row, 0)?);
            let started = unsigned(row, 3)?;
            seen.push(id);
            let Some(step) = self.steps.get(&id) else {
                check(&mut found, Some(started), started < self.from, || {
                    format!("train step {} is in the table, and was not started", id.0)
                });
                return Ok(());
            };
            let samples: String = row.get(2)?;
            let began = row.get::<_, u32>(1)? == step.learner
                && started == step.started
                && samples == json_of(&step.samples)?;
            check(&mut found, Some(step.started), began, || {
                let ids: Vec<u64> = step.samples.iter().map(|sample| sample.0).collect();
                format!(
                    "train step {} begins with samples {ids:?}, and {samples} in the table",
                    id.0
                )
            });
            let ended = row.get::<_, Option<i64>>(4)?.map(i64::cast_unsigned);
            let ended = ended.zip(row.get::<_, Option<bool>>(5)?);
            let seq = step.ended.map_or(step.started, |(seq, _)| seq);
            check(&mut found, Some(seq), ended == step.ended, || {
                let say = |end: Option<(u64, bool)>| match end {
                    None => "has not ended".to_owned(),
                    Some((seq, ok)) => format!("ended by input {seq}, ok: {ok}"),
                };
                format!("train step {} {}; in the table it {}", id.0, say(step.ended), say(ended))
            });
            Ok(())
        })?;
        for (id, step) in self.steps.iter().filter(|(id, _)| seen.binary_search(id).is_err()) {
            let what = format!("train step {} was started, and is not in the table", id.0);
            found.push(Finding { input: Some(step.started), what });
        }
        Ok(found)
    }
}

/// What the turns of a sample in the tables come to.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    turns: u64,
    tokens: u64,
    versions: u64,
    /// Something was said of it already.
    broken: bool,
}

impl Sums {
    const fn totals(self) -> (u64, u64, u64) {
        (self.turns, self.tokens, self.versions)
    }
}

/// Each generated token has its log-probability and its version.
fn lengths(connection: &Connection) -> Result<(Found, BTreeMap<u64, Sums>), StoreError> {
    let view = "SELECT count(*) FROM sqlite_master WHERE name = 'generated'";
    let sql = match connection.query_row(view, [], |row| row.get::<_, u32>(0))? {
        0 => "SELECT id, 0, tokens, logprobs, segments FROM samples WHERE tokens IS NOT NULL",
        _ => "SELECT sample, turn, tokens, logprobs, segments FROM generated",
    };
    let (mut found, mut sums) = (Vec::new(), BTreeMap::<u64, Sums>::new());
    each(connection, sql, |row| {
        let (sample, turn) = (unsigned(row, 0)?, unsigned(row, 1)?);
        let sum = sums.entry(sample).or_default();
        sum.turns += 1;
        let tokens = tokens_of(row, 2);
        let whole = tokens.as_ref().is_ok_and(|tokens| {
            !tokens.is_empty() && tokens.iter().all(|token| token.logprob.is_finite())
        });
        sum.broken |= !whole;
        check(&mut found, None, whole, || {
            format!(
                "sample {sample}, turn {turn}: `tokens`, `logprobs` and `segments` are not equally \
                 many, or not what they must be"
            )
        });
        for token in tokens.unwrap_or_default() {
            sum.tokens += 1;
            sum.versions += u64::from(token.version.number());
        }
        Ok(())
    })?;
    Ok((found, sums))
}

fn check(found: &mut Found, input: Option<u64>, holds: bool, what: impl FnOnce() -> String) {
    if !holds {
        found.push(Finding { input, what: what() });
    }
}

fn each(
    connection: &Connection,
    sql: &str,
    mut see: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        see(row)?;
    }
    Ok(())
}
