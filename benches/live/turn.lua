-- A turn of a conversation: about a thousand characters, answered in 32 tokens. Proxies ignore the headers.
local said = string.rep("The value of the key is told by the tool, and the tool is asked first. ", 14)
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer none"
wrk.headers["X-Turn-Type"] = "main"
wrk.headers["X-Session-Done"] = "1"
wrk.body = '{"model": "policy", "max_tokens": 32, "messages": [{"role": "user", "content": "' .. said .. '"}]}'
