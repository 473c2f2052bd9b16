//! Which gate wins a tournament, workload by workload, and why.

use super::{Answer, UNCALIBRATED, joined, sentence, with_interval};
use crate::report::number;
use crate::stats::Estimate;
use crate::tournament::entrant::ENTRANTS;
use crate::tournament::page::{Field, SIDE_BY_SIDE};
use crate::tournament::results::{TournamentResults, Workload};
use crate::tournament::row::{AGE, BIASED, LENGTH, RATES};

const IDLE: &str = "trainer_idle_share";

/// The answer of a tournament.
#[must_use]
pub fn of_tournament(results: &TournamentResults) -> Answer {
    let workloads = &results.meta.workloads;
    let all: Vec<Contest<'_>> = workloads.iter().map(|world| Contest::of(results, world)).collect();
    let mut because = Vec::new();
    for contest in &all {
        let lines = contest.because();
        if all.len() == 1 {
            because.extend(lines.iter().map(|line| sentence(line)));
            continue;
        }
        let even = contest.even().map(|even| format!("{even}."));
        let name = &contest.workload.name;
        because.extend(even.into_iter().chain(lines).map(|line| format!("{name}: {line}")));
    }
    let chosen = if let [one] = &all[..] { one.best } else { None };
    Answer {
        question: format!(
            "Which gate trains the most within a p99 staleness of {SIDE_BY_SIDE}, and why?"
        ),
        answer: answer(&all),
        is_known: all.iter().any(Contest::is_decided),
        because,
        but: but(results),
        chosen,
    }
}

/// The row that wins each workload, in their order; `None`: none is within the limit.
pub(crate) fn winners(results: &TournamentResults) -> Vec<Option<usize>> {
    results.meta.workloads.iter().map(|workload| Contest::of(results, workload).best).collect()
}

fn answer(all: &[Contest<'_>]) -> String {
    let [one] = all else {
        let gate =
            |contest: &Contest<'_>| Some(contest.field.text(contest.best?, "gate").to_owned());
        let mut gates: Vec<Option<String>> = all.iter().map(gate).collect();
        gates.dedup();
        let lead = match &gates[..] {
            [None] => return "None of those that played.".into(),
            [Some(gate)] => format!("{gate}, in every workload."),
            _ => "It depends on the workload.".to_owned(),
        };
        let each =
            all.iter().map(|contest| format!("{}: {}", contest.workload.name, contest.short()));
        return format!("{lead} {}.", each.collect::<Vec<_>>().join("; "));
    };
    one.best.map_or_else(
        || "None of those that played.".to_owned(),
        |best| format!("Take {}.", one.words(best)),
    )
}

/// What is to be known before anybody relies on it.
fn but(results: &TournamentResults) -> Vec<String> {
    let meta = &results.meta;
    let mut counts: Vec<u32> = meta.workloads.iter().map(|world| world.replications).collect();
    counts.dedup();
    let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
    let mut but = vec![
        format!(
            "Sought is the highest mean of the rows whose p99 of head staleness is at most {SIDE_BY_SIDE} \
             and whose trained samples are as long as the workload's, within {}%. What staleness costs in \
             learning no tournament can say: take the limit from your own runs. The tables have others.",
            number::text(BIASED * 100.0)
        ),
        format!(
            "Intervals are of 90%, over {} replications; rows whose intervals overlap are not told apart. \
             They hold nothing of what is unknown about the numbers of the workloads.",
            joined(&counts)
        ),
    ];
    let table = &results.table;
    let not_run = (0..table.rows.len()).filter(|&row| table.text(row, "status") != "ok").count();
    if not_run > 0 {
        but.push(format!(
            "{not_run} of {} rows could not run, or not to their end: a table says why.",
            table.rows.len()
        ));
    }
    if meta.workloads.iter().any(|world| world.drift.as_deref() == Some("uncalibrated")) {
        but.push(UNCALIBRATED.into());
    }
    for Workload { name, about, .. } in &meta.workloads {
        let assumed = about.as_ref().and_then(|about| about.assumptions());
        but.extend(assumed.map(|assumed| format!("{name}: {assumed}")));
    }
    but
}

/// What one workload comes to.
struct Contest<'a> {
    workload: &'a Workload,
    /// Rows without length bias.
    field: Field<'a>,
    /// Those of them within the limit.
    within: Vec<usize>,
    /// The fastest of these.
    best: Option<usize>,
    /// Other gates with a row that is as fast, as far as the intervals tell.
    even: Vec<String>,
    /// All rows, those with length bias included.
    all: Field<'a>,
}

impl<'a> Contest<'a> {
    fn of(results: &'a TournamentResults, workload: &'a Workload) -> Self {
        let field = Field::unbiased(results, &workload.name);
        let within = field.within(&field.rows, f64::from(SIDE_BY_SIDE));
        let best = field.fastest(&within);
        let even = best.map_or_else(Vec::new, |best| field.as_fast(&within, best));
        let even = even.into_iter().map(str::to_owned).collect();
        let all = Field::of(results, &workload.name);
        Self { workload, within, best, even, all, field }
    }

    /// Whether something wins: it has no rival, or some rival is clearly slower.
    fn is_decided(&self) -> bool {
        let alone = |best: usize| {
            let own = self.field.text(best, "gate");
            self.within.iter().all(|&row| self.field.text(row, "gate") == own)
        };
        self.best.is_some_and(|best| alone(best) || self.slower(best).is_some())
    }

    /// The winner among those of other workloads.
    fn short(&self) -> String {
        let best = |best| format!("{} ({} samples/h)", self.named(best), self.rate(best));
        self.best.map_or_else(|| "none".into(), best)
    }

    /// The winner, alone.
    fn words(&self, best: usize) -> String {
        let even = self.even().map_or_else(String::new, |even| format!("; {even}"));
        format!(
            "{}, with {} trained samples/h at a p99 of {}{even}",
            self.named(best),
            self.rate(best),
            self.age(best)
        )
    }

    /// Who is as fast.
    fn even(&self) -> Option<String> {
        let even = &self.even;
        let words = || format!("as fast, as far as the intervals tell: {}", joined(even));
        (!even.is_empty()).then(words)
    }

    fn because(&self) -> Vec<String> {
        let Some(best) = self.best else { return vec![self.nothing()] };
        let lines = [
            self.slower(best).map(|row| self.beaten(best, row)),
            self.modes(best),
            Some(self.limit(best)),
            self.biased(best),
        ];
        lines.into_iter().flatten().collect()
    }

    /// Why nothing wins.
    fn nothing(&self) -> String {
        let ages = self.field.rows.iter().filter_map(|&row| self.field.value(row, AGE));
        let least = ages.reduce(f64::min);
        match least {
            Some(least) => format!(
                "without length bias the least p99 is {}, above the limit of {SIDE_BY_SIDE}.",
                number::short(Some(least))
            ),
            None => "nothing trained samples that are as long as the workload's.".into(),
        }
    }

    /// The fastest row within the limit of a gate that is clearly slower.
    fn slower(&self, best: usize) -> Option<usize> {
        let own = self.field.text(best, "gate");
        let is_slower = |row: &usize| {
            let gate = self.field.text(*row, "gate");
            gate != own && !self.even.iter().any(|even| even == gate)
        };
        let rows: Vec<usize> = self.within.iter().copied().filter(is_slower).collect();
        self.field.fastest(&rows)
    }

    /// The winner beside the best that is clearly slower.
    fn beaten(&self, best: usize, row: usize) -> String {
        let idle = |row: usize| number::percent(self.field.value(row, IDLE));
        let gate = self.field.text(row, "gate");
        let waits = ENTRANTS.iter().any(|known| known.name == gate && !known.trains_on);
        let waits = if waits { ", since it waits while weights are published" } else { "" };
        format!(
            "it beats {}, the best gate that is clearly slower, with {} samples/h, {} less: the trainer of \
             that is idle for {} of the time{waits}, that of the winner for {}.",
            self.named(row),
            self.rate(row),
            self.less(best, row),
            idle(row),
            idle(best)
        )
    }

    /// The winner under other sync modes.
    fn modes(&self, best: usize) -> Option<String> {
        let same =
            |column: &str, row: usize| self.all.text(row, column) == self.all.text(best, column);
        let akin = |&&row: &&usize| row != best && same("gate", row) && same("knob", row);
        let others: Vec<usize> = self.all.rows.iter().filter(akin).copied().collect();
        let (low, _) = self.all.ends(best);
        let (even, slow): (Vec<usize>, Vec<usize>) =
            others.into_iter().partition(|&row| self.all.ends(row).1 >= low);
        let names: Vec<String> =
            even.iter().map(|&row| self.all.text(row, "sync_mode").to_owned()).collect();
        let worst = slow.into_iter().reduce(|worst, next| {
            if self.all.rate(Some(next)) < self.all.rate(Some(worst)) { next } else { worst }
        });
        let even = (!names.is_empty()).then(|| {
            let cost = if names.len() == 1 { "costs" } else { "cost" };
            format!("of its sync modes {} {cost} nothing that the intervals show", joined(&names))
        });
        let worst = worst.map(|row| {
            let mode = self.all.text(row, "sync_mode");
            format!("under {mode} the same setting trains {} less", self.less(best, row))
        });
        let lines: Vec<String> = even.into_iter().chain(worst).collect();
        (!lines.is_empty()).then(|| format!("{}.", lines.join("; ")))
    }

    /// Whether more staleness would buy more.
    fn limit(&self, best: usize) -> String {
        let fastest = self.field.fastest(&self.field.rows).filter(|&row| self.is_faster(row, best));
        fastest.map_or_else(
            || "the limit does not bind: no row without length bias is clearly faster.".into(),
            |row| {
                format!(
                    "the limit binds: {} has {} samples/h, {} more, at a p99 of {}.",
                    self.named(row),
                    self.rate(row),
                    self.more(best, row),
                    self.age(row)
                )
            },
        )
    }

    /// What is faster because it trains other samples.
    fn biased(&self, best: usize) -> Option<String> {
        let within = self.all.within(&self.all.rows, f64::from(SIDE_BY_SIDE));
        let row = self.all.fastest(&within).filter(|&row| self.is_faster(row, best))?;
        Some(format!(
            "within the limit {} has {} samples/h, from samples of {} times the mean length: it throws away \
             what is late, and the long answers with it.",
            self.named(row),
            self.rate(row),
            number::short(self.all.value(row, LENGTH))
        ))
    }

    fn is_faster(&self, row: usize, best: usize) -> bool {
        self.all.ends(row).0 > self.all.ends(best).1
    }

    /// `headway η=4 under in_flight`
    fn named(&self, row: usize) -> String {
        let (gate, mode) = (self.all.text(row, "gate"), self.all.text(row, "sync_mode"));
        match self.all.knob(row).as_str() {
            "-" => format!("{gate} under {mode}"),
            knob => format!("{gate} {knob} under {mode}"),
        }
    }

    fn rate(&self, row: usize) -> String {
        let mean = self.all.rate(Some(row));
        let half_width = self.all.value(row, &format!("{}_hw", RATES[0]));
        with_interval(Estimate { mean, half_width, count: self.workload.replications })
    }

    fn age(&self, row: usize) -> String {
        number::short(self.all.value(row, AGE))
    }

    fn less(&self, best: usize, row: usize) -> String {
        number::percent(Some(1.0 - self.all.rate(Some(row)) / self.all.rate(Some(best))))
    }

    fn more(&self, best: usize, row: usize) -> String {
        number::percent(Some(self.all.rate(Some(row)) / self.all.rate(Some(best)) - 1.0))
    }
}

#[cfg(test)]
mod tests;
