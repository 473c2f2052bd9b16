//! Looking back into a recorded run: its state at an instant, a sample, a request.

use std::path::Path;

use headway_shared::core::State;
use headway_shared::describe;
use headway_shared::id::{RequestId, SampleId};
use headway_shared::record::DECISION_VERSION;
use headway_shared::replay::{Journey, LifeOf, WhyOf, Witness, travel};
use headway_shared::source::RunSource;
use headway_shared::time::{Span, Time};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::options::Form;
use crate::{source, terminal};

/// What is asked about a run.
pub(crate) struct Questions {
    pub(crate) until: Option<Span>,
    pub(crate) state: bool,
    pub(crate) explain: Option<u64>,
    pub(crate) why: Option<u64>,
}

/// Answers questions about a run; exit code 1 where it was decided otherwise than it says.
pub(crate) fn answer(record: &Path, questions: &Questions, form: Form) -> Result<(), Failure> {
    let run = source::open_any(record)?;
    let until = questions.until.map(|until| Time::ZERO + until);
    let mut life = questions.explain.map(|sample| LifeOf::new(SampleId(sample)));
    let mut why = questions.why.map(|request| WhyOf::new(RequestId(request)));
    let mut witnesses: Vec<&mut dyn Witness> = Vec::new();
    witnesses.extend(life.iter_mut().map(|life| life as &mut dyn Witness));
    witnesses.extend(why.iter_mut().map(|why| why as &mut dyn Witness));
    let journey = travel(run.as_ref(), until, &mut witnesses)
        .map_err(|error| source::wrong(record, &error))?;
    unknown(record, &journey, life.as_ref(), why.as_ref())?;

    let state = journey.core.state();
    let text = match form {
        Form::Table => text(&run.name(), &journey, questions, &state, life, why),
        Form::Json => {
            let document = document(&run.name(), &journey, questions, &state, life, why);
            format!("{document:#}\n")
        }
    };
    terminal::data(&text)?;
    if let Some(until) = until.filter(|until| !journey.more && journey.end < *until) {
        let end = journey.end;
        terminal::note(&format!("note: the record ends at {end}, before {until}: this is its end"));
    }
    differs(run.as_ref(), &journey)
}

/// What was asked about must be there.
fn unknown(
    record: &Path,
    journey: &Journey,
    life: Option<&LifeOf>,
    why: Option<&WhyOf>,
) -> Result<(), Failure> {
    let (path, end) = (record.display(), journey.end);
    if let Some(life) = life.filter(|life| life.sample().is_none()) {
        let help = match life.admitted() {
            0 => "no sample was admitted until then".to_owned(),
            count => format!("its samples until then are 0 to {}", count - 1),
        };
        let what = "there is no such sample in what is kept of the run";
        return Err(Failure::input(format!("{path}: {what} until {end}\nhelp: {help}")));
    }
    if let Some(why) = why.filter(|why| !why.is_known()) {
        let help = match why.latest() {
            None => "no request had come until then".to_owned(),
            Some(latest) => format!("the newest one until then is {latest}"),
        };
        let what = "there is no such request in what is kept of the run";
        return Err(Failure::input(format!("{path}: {what} until {end}\nhelp: {help}")));
    }
    Ok(())
}

fn text(
    name: &str,
    journey: &Journey,
    questions: &Questions,
    state: &State,
    life: Option<LifeOf>,
    why: Option<WhyOf>,
) -> String {
    let Journey { inputs, end, .. } = journey;
    let mut text = format!("{name}: {inputs} inputs until {end}\n");
    if questions.state {
        text += &describe::state(state, "  ");
    }
    text += &life.and_then(|life| life.text()).unwrap_or_default();
    text += &why.and_then(|why| why.text()).unwrap_or_default();
    text
}

fn document(
    name: &str,
    journey: &Journey,
    questions: &Questions,
    state: &State,
    life: Option<LifeOf>,
    why: Option<WhyOf>,
) -> Value {
    let mut document = json!({
        "kind": "replay",
        "record": name,
        "inputs": journey.inputs,
        "time_sec": journey.end.as_secs_f64(),
        "differs_from_input": journey.differs.map(|(input, _)| input),
    });
    let parts = [
        ("state", questions.state.then(|| serde_json::to_value(state).unwrap_or_default())),
        ("sample", life.map(|life| life.json())),
        ("request", why.map(|why| why.json())),
    ];
    for (name, part) in parts {
        if let Some(part) = part {
            document[name] = part;
        }
    }
    document
}

/// Says whether what was shown is what was decided then.
fn differs(run: &dyn RunSource, journey: &Journey) -> Result<(), Failure> {
    let found = run.decision_version();
    let differs = journey.differs.map(|(input, at)| format!("first at input {input}, {at}"));
    if found != DECISION_VERSION {
        let differs = differs.map_or_else(
            || "and it decides the same up to here".to_owned(),
            |differs| format!("and it decides otherwise, {differs}"),
        );
        terminal::note(&format!(
            "warning: decision version {found} decided this run; what is shown is what this build, \
             which decides as version {DECISION_VERSION}, does on the same inputs, {differs}"
        ));
        return Ok(());
    }
    match differs {
        None => Ok(()),
        Some(differs) => {
            let what = "the core decides otherwise than the record says";
            Err(Failure::broken(format!("{what}, {differs}; what is shown is what it does now")))
        }
    }
}

/// Reads a time: seconds, or a number with its unit.
pub(crate) fn time(text: &str) -> Result<Span, String> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return Err(help()),
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * unit);
    seconds.and_then(Span::from_secs_f64).ok_or_else(help)
}

fn help() -> String {
    "write seconds since the run's start, or 90s, 5m, 1.5h, 2d".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_have_a_unit() {
        for (text, seconds) in
            [("90", 90), ("90s", 90), ("5m", 300), ("1.5h", 5400), ("2d", 172_800), ("0", 0)]
        {
            assert_eq!(time(text), Ok(Span::from_secs(seconds)), "{text}");
        }
        assert_eq!(time("250ms"), Ok(Span::from_millis(250)));
        for text in ["", "s", "5x", "-1", "1e", "nan", "5 m"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
