"""What schemathesis must be told of the gateway."""

import schemathesis


@schemathesis.serializer("application/toml")
def toml(ctx, value):
    """A body of TOML is sent as it is."""
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook
def map_body(ctx, body):
    """Whole numbers are written whole: JSON Schema takes 1.0 for an integer, and the gateway does not.

    And a trainer that waits for a step would wait for real.
    """
    if not isinstance(body, dict):
        return body
    for name, value in body.items():
        if isinstance(value, float) and value.is_integer():
            body[name] = int(value)
    wait = body.get("wait_sec")
    if isinstance(wait, (int, float)) and 0 < wait <= 60:
        body["wait_sec"] = 0
    return body


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """A turn that trains has the temperature of the run, which no schema can say."""
    temperature = case.body.get("temperature") if isinstance(case.body, dict) else None
    if isinstance(temperature, (int, float)) and 0 <= temperature <= 2:
        case.body["temperature"] = 1
