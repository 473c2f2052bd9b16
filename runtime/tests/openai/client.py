"""One conversation of OpenAI's official client with the gateway: `client.py CASE BASE_URL`.

The Rust test starts the gateway, and says which case; what is wrong here ends the program with a traceback.
"""

import json
import sys

import openai

HELLO = [{"role": "user", "content": "hello"}]


def chat(client):
    """Whole answers: text, usage, log-probabilities, extensions, several at once."""
    answer = client.chat.completions.create(
        model="policy",
        messages=[*HELLO, {"role": "user", "content": [{"type": "text", "text": "say:one"}]}],
        logprobs=True,
        seed=7,
        temperature=1.0,
        max_completion_tokens=100,
        extra_headers={"X-Session-Id": "a", "X-Turn-Type": "main"},
        extra_body={"metadata": {"answer": "one"}, "return_token_ids": True},
    )
    (choice,) = answer.choices
    assert choice.message.content == "one", choice
    assert choice.finish_reason == "stop", choice
    assert [len(choice.logprobs.content), answer.usage.completion_tokens] == [4, 4], answer
    assert all(token.logprob < 0 for token in choice.logprobs.content), choice
    # What OpenAI's own API does not have, the client hands through.
    assert answer.session_id == "a", answer
    assert answer.policy_versions == [[[0, 4]]], answer
    assert choice.token_ids == [111, 110, 101, 256], choice

    answer = client.chat.completions.create(model="policy", messages=HELLO, n=3, stop="l")
    assert [choice.index for choice in answer.choices] == [0, 1, 2], answer
    assert {choice.message.content for choice in answer.choices} == {"he"}, answer

    raw = client.chat.completions.with_raw_response.create(model="policy", messages=HELLO)
    assert raw.headers["x-policy-versions"] == "0:6", raw.headers
    assert raw.parse().choices[0].message.content == "hello"
    assert [model.id for model in client.models.list()] == ["policy"]


def stream(client):
    """Streamed answers, one of which is left early."""
    request = {"model": "policy", "messages": HELLO, "stream": True}
    chunks = list(
        client.chat.completions.create(**request, logprobs=True, stream_options={"include_usage": True})
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "hello", chunks
    finish = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert finish.count("stop") == 1 and finish[-1] == "stop", finish
    assert chunks[-1].usage.completion_tokens == 6, chunks[-1]

    long = [{"role": "user", "content": "long:100"}]
    with client.chat.completions.create(**{**request, "messages": long}) as events:
        assert next(iter(events)).choices[0].delta.role == "assistant"


def tools(client):
    """A call of a tool, its result, and what the policy makes of it; whole and streamed."""
    function = {"name": "weather", "description": "Of a town.", "parameters": {"type": "object", "properties": {}}}
    conversation = [{"role": "user", "content": 'text I look.\ncall weather {"town": "Zürich"}\ncall weather {}'}]
    request = {"model": "policy", "messages": conversation, "tools": [{"type": "function", "function": function}]}
    (choice,) = client.chat.completions.create(**request, logprobs=True).choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I look."), choice
    calls = choice.message.tool_calls
    assert [(call.type, call.function.name) for call in calls] == [("function", "weather")] * 2, calls
    assert [json.loads(call.function.arguments) for call in calls] == [{"town": "Zürich"}, {}], calls
    assert len({call.id for call in calls}) == 2, calls

    with client.chat.completions.stream(**request) as events:
        list(events)
        streamed = events.get_final_completion().choices[0]
    assert (streamed.finish_reason, streamed.message.content) == ("tool_calls", "I look."), streamed
    assert [call.function.arguments for call in streamed.message.tool_calls] == [
        call.function.arguments for call in calls
    ], streamed

    conversation.append(choice.message)
    conversation.extend({"role": "tool", "tool_call_id": call.id, "content": "text rain"} for call in calls)
    (choice,) = client.chat.completions.create(**request).choices
    assert (choice.finish_reason, choice.message.content, choice.message.tool_calls) == ("stop", "rain", None), choice


def errors(client):
    """Errors are the client's own exceptions, with the message that helps."""
    cases = [
        ({"messages": []}, "messages must be a non-empty list"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 0.5}, "top_p"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "chat template does not render them"),
        ({"tool_choice": "required"}, "tool_choice"),
    ]
    for wrong, said in cases:
        try:
            client.chat.completions.create(**{"model": "policy", "messages": HELLO, **wrong})
        except openai.BadRequestError as error:
            assert error.status_code == 400 and said in error.message, error
            assert error.type == "invalid_request_error", error.body
        else:
            raise AssertionError(f"{wrong} was accepted")
    try:
        client.with_options(api_key="another").models.list()
    except openai.AuthenticationError as error:
        assert "invalid api key" in error.message, error
    else:
        raise AssertionError("another key was accepted")
    try:
        client.chat.completions.create(model="policy", messages=[{"role": "user", "content": "fail"}])
    except openai.InternalServerError as error:
        assert error.code == "generation_failed", error.body
    else:
        raise AssertionError("a failed generation was answered")


def refused(client):
    """Inside a sync window: a 503 whose Retry-After the client sees."""
    try:
        client.chat.completions.create(model="policy", messages=HELLO)
    except openai.InternalServerError as error:
        assert error.status_code == 503, error
        assert error.code == "weight_sync", error.body
        assert 1 <= int(error.response.headers["retry-after"]) <= 60
    else:
        raise AssertionError("served inside the window")


def retries(client):
    """The client's own retries outlast a sync window."""
    answer = client.with_options(max_retries=5).chat.completions.create(
        model="policy", messages=HELLO, extra_headers={"X-Turn-Type": "main"}
    )
    assert answer.choices[0].message.content == "hello", answer


if __name__ == "__main__":
    case, base_url = sys.argv[1:]
    globals()[case](openai.OpenAI(base_url=base_url, api_key="key", max_retries=0, timeout=60))
