"""One conversation of Anthropic's official client with the gateway: `client.py CASE BASE_URL`.

The Rust test starts the gateway, and says which case; what is wrong here ends the program with a traceback.
"""

import sys

import anthropic

HELLO = [{"role": "user", "content": "hello"}]
REQUEST = {"model": "policy", "max_tokens": 100, "messages": HELLO}
MAIN = {"X-Session-Id": "a", "X-Turn-Type": "main"}
WEATHER = {
    "name": "weather",
    "description": "The weather of a town.",
    "input_schema": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
}


def messages(client):
    """Whole answers: blocks, the system's words, usage, headers, why they ended."""
    raw = client.messages.with_raw_response.create(
        model="policy",
        max_tokens=100,
        system=[{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
        messages=[{"role": "user", "content": [{"type": "text", "text": "say:"}, {"type": "text", "text": "one"}]}],
        metadata={"user_id": "me", "answer": "one"},
        extra_headers=MAIN,
        extra_body={"seed": 7, "temperature": 1.0},
    )
    answer = raw.parse()
    assert [(block.type, block.text) for block in answer.content] == [("text", "one")], answer
    assert (answer.stop_reason, answer.stop_sequence) == ("end_turn", None), answer
    assert answer.usage.output_tokens == 4 and answer.role == "assistant", answer
    assert [raw.headers["x-policy-versions"], raw.headers["x-sample-id"]] == ["0:4", "0"], raw.headers
    # What Anthropic's own API does not have, the client hands through.
    assert [answer.session_id, answer.policy_versions, answer.sample_id] == ["a", [[0, 4]], 0], answer

    answer = client.messages.create(**{**REQUEST, "stop_sequences": ["zz", "l"]})
    assert (answer.content[0].text, answer.stop_reason, answer.stop_sequence) == ("he", "stop_sequence", "l"), answer
    answer = client.messages.create(**{**REQUEST, "max_tokens": 2})
    assert (answer.content[0].text, answer.stop_reason) == ("he", "max_tokens"), answer
    # As Bytes writes it: what opens and closes each message is a token, and so is what opens the answer.
    assert client.messages.count_tokens(model="policy", messages=HELLO).input_tokens == 8
    assert client.messages.count_tokens(model="policy", messages=HELLO, system="be").input_tokens == 12


def stream(client):
    """Streamed answers, one of which is left early."""
    events = list(client.messages.create(**REQUEST, stream=True))
    kinds = [event.type for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"], kinds
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"], kinds
    assert set(kinds[2:-3]) == {"content_block_delta"}, kinds
    assert "".join(event.delta.text for event in events[2:-3]) == "hello", events
    assert events[-2].usage.output_tokens == 6 and events[-2].policy_versions == [[0, 6]], events[-2]

    with client.messages.stream(**{**REQUEST, "stop_sequences": ["o"]}) as whole:
        assert "".join(whole.text_stream) == "hell"
        message = whole.get_final_message()
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "o"), message
    assert message.usage.output_tokens == 5, message

    long = [{"role": "user", "content": "long:100"}]
    with client.messages.create(**{**REQUEST, "messages": long}, stream=True) as events:
        assert next(iter(events)).type == "message_start"


def errors(client):
    """Errors are the client's own exceptions, with the message that helps."""
    cases = [
        ({"messages": []}, "messages must be a non-empty list"),
        ({"messages": [*HELLO, {"role": "assistant", "content": "{"}]}, "messages must end with"),
        ({"messages": [{"role": "system", "content": "x"}]}, "the role user or assistant"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "text and tool_result"),
        ({"system": [{"type": "image"}]}, "of type text"),
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"extra_body": {"top_p": 0.5}}, "top_p"),
        ({"extra_body": {"top_k": 5}}, "top_k"),
        ({"stop_sequences": [""]}, "stop_sequences"),
        ({"tools": [WEATHER]}, "chat template does not render them"),
        ({"tools": [WEATHER], "tool_choice": {"type": "any"}}, "tool_choice"),
    ]
    for wrong, said in cases:
        try:
            client.messages.create(**{**REQUEST, **wrong})
        except anthropic.BadRequestError as error:
            assert error.status_code == 400 and said in error.message, error
            assert error.body["type"] == "error", error.body
            assert error.body["error"]["type"] == "invalid_request_error", error.body
        else:
            raise AssertionError(f"{wrong} was accepted")
    others = [
        (client.with_options(api_key="another"), "invalid api key"),
        (anthropic.Anthropic(base_url=client.base_url, auth_token="another", max_retries=0), "invalid api key"),
    ]
    for other, said in others:
        try:
            other.messages.create(**REQUEST)
        except anthropic.AuthenticationError as error:
            assert said in error.message and error.body["error"]["type"] == "authentication_error", error.body
        else:
            raise AssertionError("another key was accepted")
    bearer = anthropic.Anthropic(base_url=client.base_url, auth_token="key", max_retries=0)
    assert bearer.messages.create(**REQUEST).content[0].text == "hello"
    try:
        client.messages.create(**{**REQUEST, "messages": [{"role": "user", "content": "fail"}]})
    except anthropic.InternalServerError as error:
        assert error.body["error"]["type"] == "api_error" and error.status_code == 500, error.body
    else:
        raise AssertionError("a failed generation was answered")


def refused(client):
    """Inside a sync window: a 503 whose Retry-After the client sees."""
    try:
        client.messages.create(**REQUEST)
    except anthropic.APIStatusError as error:
        assert error.status_code == 503, error
        assert error.body["error"]["type"] == "overloaded_error", error.body
        assert error.body["error"]["code"] == "weight_sync", error.body
        assert 1 <= int(error.response.headers["retry-after"]) <= 60
    else:
        raise AssertionError("served inside the window")


def stale(client):
    """The bound leaves no place: a 429 whose Retry-After the client sees."""
    try:
        client.messages.create(**REQUEST, extra_headers={"X-Turn-Type": "main"})
    except anthropic.RateLimitError as error:
        assert error.body["error"]["type"] == "rate_limit_error", error.body
        assert error.body["error"]["code"] == "stale", error.body
        assert 1 <= int(error.response.headers["retry-after"]) <= 60
    else:
        raise AssertionError("served above the bound")


def retries(client):
    """The client's own retries outlast a sync window."""
    answer = client.with_options(max_retries=5).messages.create(**REQUEST, extra_headers={"X-Turn-Type": "main"})
    assert answer.content[0].text == "hello", answer


def tools(client):
    """A call of a tool, its result, and what the policy makes of it; whole and streamed."""
    conversation = [{"role": "user", "content": 'text I look.\ncall weather {"town": "Zürich", "days": [1, 2]}'}]
    request = {"model": "policy", "max_tokens": 200, "tools": [WEATHER], "messages": conversation}
    answer = client.messages.create(**request, extra_headers=MAIN)
    assert answer.stop_reason == "tool_use", answer
    said, call = answer.content
    assert (said.type, said.text) == ("text", "I look."), answer
    assert (call.type, call.name, call.input) == ("tool_use", "weather", {"town": "Zürich", "days": [1, 2]}), call

    with client.messages.stream(**request) as events:
        list(events)
        streamed = events.get_final_message()
    assert [block.type for block in streamed.content] == ["text", "tool_use"], streamed
    assert streamed.content[1].input == call.input and streamed.stop_reason == "tool_use", streamed
    assert streamed.content[1].id != call.id

    conversation.append({"role": "assistant", "content": answer.content})
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "text rain"}]}
    conversation.append({"role": "user", "content": [result]})
    answer = client.messages.create(**request, extra_headers={**MAIN, "X-Session-Done": "1"})
    assert (answer.content[0].text, answer.stop_reason) == ("rain", "end_turn"), answer

    # A tool that was not offered is not called: what the policy says stays text.
    request["messages"] = [{"role": "user", "content": "call other {}"}]
    answer = client.messages.create(**request)
    assert [block.type for block in answer.content] == ["text"] and "other" in answer.content[0].text, answer
    answer = client.messages.create(**request, tool_choice={"type": "none"})
    assert answer.stop_reason == "end_turn", answer
    assert client.messages.count_tokens(model="policy", messages=HELLO, tools=[WEATHER]).input_tokens > 100


if __name__ == "__main__":
    case, base_url = sys.argv[1:]
    globals()[case](anthropic.Anthropic(base_url=base_url, api_key="key", max_retries=0, timeout=60))
