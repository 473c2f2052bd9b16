//! A sample is a whole session: its turns are trained as they were sampled.

use headway_runtime::shared::action::Discard;
use headway_runtime::shared::input::Operator;
use headway_runtime::tokenizer::{Bytes, Message, Tokenizer};
use headway_runtime::trainer::TrainSample;
use serde_json::{Value, json};

use crate::all::checks::nothing_is_wrong;
use crate::all::engine::logprob;
use crate::all::live::{Live, Setup, query};

/// Trajectories in batches of one, judged by the answer that a request names.
pub(super) const TRAJECTORIES: &str = "
    [policy_serving]
    sync_mode = \"in_flight\"
    aborted = \"resume\"
    [policy_training]
    sample_unit = \"session\"
    batch_size = 1
    max_head_off_policyness = 4
";

/// An agent's side of a session.
#[derive(Clone)]
pub(super) struct Agent {
    pub(super) session: String,
    pub(super) messages: Vec<Value>,
    pub(super) group: Option<&'static str>,
}

impl Agent {
    pub(super) fn new(session: &str) -> Self {
        Self { session: session.to_owned(), messages: Vec::new(), group: None }
    }

    /// The request of the next turn.
    pub(super) fn asks(&mut self, text: &str, done: bool) -> Value {
        self.messages.push(json!({"role": "user", "content": text}));
        let first = self.messages.len() == 1;
        json!({
            // Said once, at the beginning of the session.
            "metadata": first.then(|| json!({"answer": "42"})),
            "messages": self.messages,
            "session_id": self.session,
            "turn_type": "main",
            "session_done": done,
            "group_id": self.group,
        })
    }

    /// What the policy answered.
    pub(super) fn hears(&mut self, answer: &Value) {
        self.messages.push(answer["choices"][0]["message"].clone());
    }

    async fn turn(&mut self, live: &Live, text: &str, done: bool) -> Value {
        let body = self.asks(text, done);
        let answer = live.answer(&body).await;
        self.hears(&answer);
        answer
    }

    /// The whole conversation as ids.
    fn ids(&self) -> Vec<u32> {
        let text = |message: &Value, key: &str| message[key].as_str().unwrap().to_owned();
        let messages: Vec<Message> = self
            .messages
            .iter()
            .map(|m| Message { role: text(m, "role"), content: text(m, "content") })
            .collect();
        let mut ids = Bytes.prompt(&messages).unwrap();
        ids.pop();
        ids
    }
}

/// What carries loss, as text.
fn trained(sample: &TrainSample) -> String {
    let pairs = sample.tokens.iter().zip(&sample.loss_mask);
    let ids: Vec<u32> = pairs.filter(|(_, mask)| **mask).map(|(&id, _)| id).collect();
    let ends = |id: u32| if id == Bytes::END { "|".to_owned() } else { Bytes.decode(&[id]) };
    ids.into_iter().map(ends).collect()
}

fn versions(sample: &TrainSample) -> Vec<u32> {
    let pairs = sample.versions.iter().zip(&sample.loss_mask);
    pairs.filter(|(_, mask)| **mask).map(|(version, _)| version.number()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_three_turns_is_one_sample_with_only_its_generated_tokens_trained() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(TRAJECTORIES).start(dir.path()).await;
    let mut agent = Agent::new("a");
    let ids = [
        agent.turn(&live, "one", false).await["sample_id"].clone(),
        agent.turn(&live, "two", false).await["sample_id"].clone(),
        agent.turn(&live, "say:42", true).await["sample_id"].clone(),
    ];
    assert_eq!(ids, [0, 0, 0]);
    let status = live.until(|status| status.ledger.steps == 1).await;
    assert_eq!((status.ledger.admitted, status.ledger.continued), (1, 2));
    let batch = live.trainer.batches().remove(0);
    let [sample] = &batch[..] else { panic!("{batch:?}") };
    assert_eq!(sample.tokens, agent.ids());
    assert_eq!(trained(sample), "one|two|42|");
    assert_eq!(sample.reward, 1.0, "judged by the last answer, and by what the first turn said");
    for (place, &id) in sample.tokens.iter().enumerate() {
        let expected = if sample.loss_mask[place] { logprob(id) } else { 0.0 };
        assert_eq!(sample.rollout_logprobs[place], expected);
    }
    let (ended, record) = live.end().await;
    ended.unwrap();
    let rows: String = query(
        &record,
        "SELECT group_concat(turn || ':' || sequence || ':' || response || ':' ||
                coalesce(next_state, '-')) FROM turns WHERE sample = 0",
    );
    assert_eq!(rows, "0:0:one:two,1:0:two:say:42,2:0:42:-");
    let judged: String = query(
        &record,
        "SELECT response || ' ' || json_array_length(messages) || ' ' || fate || ' ' || score
         FROM samples",
    );
    assert_eq!(judged, "42 5 trained 1.0");
    let generated: i64 = query(&record, "SELECT count(*) FROM generated WHERE sample = 0");
    assert_eq!(generated, 3);
    let open: i64 = query(&record, "SELECT count(*) FROM sessions WHERE ended = 0");
    assert_eq!(open, 0);
    nothing_is_wrong(&record);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_weights_between_turns_and_within_one_are_stamped_token_by_token() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(TRAJECTORIES).start(dir.path()).await;
    let mut agent = Agent::new("long");
    agent.turn(&live, "ab", false).await;
    let publish = async |name: &str, publications| {
        Agent::new(name).turn(&live, "x", true).await;
        live.until(|status| status.ledger.publications == publications).await;
    };
    publish("other", 1).await;
    agent.turn(&live, "cd", false).await;
    // A step starts while the third turn is in the middle of its tokens.
    live.trainer.hold(true);
    Agent::new("third").turn(&live, "x", true).await;
    live.until(|status| status.gauges.training).await;
    live.engine.hold_after(2);
    let body = agent.asks("efgh", true);
    let running = live.begin(&body);
    live.engine.wait_for_turns(1);
    live.engine.wait_until_held();
    live.trainer.hold(false);
    live.until(|status| status.ledger.publications == 2).await;
    live.engine.hold(false);
    assert_eq!(running.await.unwrap().status(), 200);
    live.until(|status| status.ledger.steps == 3).await;
    let sample = live.trainer.batches().pop().unwrap().remove(0);
    assert_eq!(trained(&sample), "ab|cd|efgh|");
    assert_eq!(versions(&sample), [0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2]);
    let (ended, record) = live.end().await;
    ended.unwrap();
    let segments: String =
        query(&record, "SELECT group_concat(segments, ' ') FROM turns WHERE sample = 0");
    assert_eq!(segments, "[[0,3]] [[1,3]] [[1,2],[2,3]]");
    let staleness: i64 = query(&record, "SELECT staleness FROM samples WHERE id = 0");
    assert_eq!(staleness, 2, "of its first token");
    nothing_is_wrong(&record);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_in_the_middle_of_a_turn_takes_its_trajectory_along() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(TRAJECTORIES).start(dir.path()).await;
    let mut agent = Agent::new("a");
    agent.turn(&live, "one", false).await;
    live.engine.hold(true);
    let asked = live.begin(&agent.clone().asks("two", false));
    live.engine.wait_for_turns(1);
    asked.abort();
    let status = live.until(|status| status.gauges.outstanding == 0).await;
    assert_eq!(status.ledger.discarded[Discard::ClientLeft.index()], 1);
    live.engine.hold(false);
    // What the session still asks is served, and not recorded.
    let answer = agent.turn(&live, "two", true).await;
    assert_eq!(answer["sample_id"], Value::Null);
    let (ended, record) = live.end().await;
    ended.unwrap();
    let turns: i64 = query(&record, "SELECT count(*) FROM turns");
    assert_eq!(turns, 1);
    nothing_is_wrong(&record);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stays_away_ends_its_session_and_what_there_is_is_judged() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{TRAJECTORIES}\n [environment_hosting]\n session_idle_sec = 0.2");
    let live = Setup::new(&text).start(dir.path()).await;
    let mut agent = Agent::new("a");
    agent.turn(&live, "one", false).await;
    agent.turn(&live, "two", false).await;
    live.until(|status| status.ledger.steps == 1).await;
    assert_eq!(trained(&live.trainer.batches()[0][0]), "one|two|");
    // Its name begins another session, and another sample.
    let answer = Agent::new("a").turn(&live, "three", true).await;
    assert_eq!(answer["sample_id"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_after_another_history_is_a_sequence_of_its_own_with_the_same_score() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(TRAJECTORIES).start(dir.path()).await;
    let mut agent = Agent::new("a");
    agent.turn(&live, "one", false).await;
    // The agent tells what the policy has said in other words.
    agent.messages[1] = json!({"role": "assistant", "content": "ONE"});
    let mut body = agent.asks("two", true);
    body["metadata"] = json!({"answer": "two"});
    live.answer(&body).await;
    live.until(|status| status.ledger.steps == 1).await;
    let batch = live.trainer.batches().remove(0);
    let parts: Vec<_> = batch.iter().map(|part| (part.id.0, trained(part), part.reward)).collect();
    assert_eq!(parts, [(0, "one|".to_owned(), 1.0), (0, "two|".to_owned(), 1.0)]);
    assert_eq!(
        Bytes.decode(&batch[1].tokens),
        "oneONEtwotwo",
        "after the prompt it was sampled by"
    );
    let (ended, record) = live.end().await;
    ended.unwrap();
    let step: String = query(&record, "SELECT samples FROM steps");
    assert_eq!(step, "[0]");
    let sequences: String = query(&record, "SELECT group_concat(sequence) FROM turns");
    assert_eq!(sequences, "0,1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_text_that_the_client_does_not_repeat_is_not_put_into_what_was_sampled() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(TRAJECTORIES).start(dir.path()).await;
    let mut agent = Agent::new("a");
    let mut body = agent.asks("one STOP two", false);
    body["stop"] = json!("STOP");
    let answer = live.answer(&body).await;
    agent.hears(&answer);
    agent.turn(&live, "end", true).await;
    live.until(|status| status.ledger.steps == 1).await;
    let batch = live.trainer.batches().remove(0);
    let parts: Vec<String> = batch.iter().map(trained).collect();
    assert_eq!(parts, ["one STOP", "end|"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_of_sessions_are_trained_together() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{TRAJECTORIES}\n group_size = 2");
    let live = Setup::new(&text).start(dir.path()).await;
    for (session, says) in [("a", "say:1"), ("b", "say:2")] {
        let mut agent = Agent::new(session);
        agent.group = Some("mine");
        agent.turn(&live, "hello", false).await;
        let mut body = agent.asks(says, true);
        body["metadata"] = json!({"answer": "1"});
        live.answer(&body).await;
    }
    live.until(|status| status.ledger.trained == 2).await;
    let batch = live.trainer.batches().remove(0);
    let found: Vec<_> = batch.iter().map(|s| (trained(s), s.reward, s.group.is_some())).collect();
    assert_eq!(found, [("hello|1|".to_owned(), 1.0, true), ("hello|2|".to_owned(), 0.0, true)]);
    let (ended, record) = live.end().await;
    ended.unwrap();
    nothing_is_wrong(&record);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_last_turn_that_is_refused_can_be_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(TRAJECTORIES).start(dir.path()).await;
    let mut agent = Agent::new("a");
    agent.turn(&live, "one", false).await;
    live.driver.operate(Operator::Pause).await.unwrap();
    let body = agent.asks("two", true);
    assert_eq!(live.ask(&body).await.status(), 503);
    live.driver.operate(Operator::Resume).await.unwrap();
    assert_eq!(live.answer(&body).await["sample_id"], 0);
    live.until(|status| status.ledger.trained == 1).await;
    assert_eq!(trained(&live.trainer.batches()[0][0]), "one|two|");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_turns_side_by_side_are_both_trained_after_their_own_prompts() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(TRAJECTORIES).start(dir.path()).await;
    let mut agent = Agent::new("a");
    agent.turn(&live, "one", false).await;
    live.engine.hold(true);
    let asked = [agent.clone().asks("two", false), agent.clone().asks("three", false)]
        .map(|body| live.begin(&body));
    live.engine.wait_for_turns(2);
    live.engine.hold(false);
    for response in asked {
        let answer: Value = response.await.unwrap().json().await.unwrap();
        assert_eq!(answer["sample_id"], 0);
    }
    agent.turn(&live, "four", true).await;
    live.until(|status| status.ledger.trained == 1).await;
    let mut parts: Vec<String> = live.trainer.batches()[0].iter().map(trained).collect();
    parts.sort();
    // The last turn has read neither: it goes on with the first.
    assert_eq!(parts.concat().matches('|').count(), 4, "{parts:?}");
    assert!(parts.iter().any(|part| part.starts_with("one|")), "{parts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_keeps_what_its_samples_are() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(TRAJECTORIES).start(dir.path()).await;
    live.end().await.0.unwrap();
    let other = Setup::new(crate::all::live::SMALL).try_start(dir.path()).await;
    let error = other.map(drop).unwrap_err().to_string();
    assert!(error.contains("keep `sample_unit = \"session\"`"), "{error}");
}
