"""Headway's gateway beside `sglang-router` and a LiteLLM proxy, in front of one engine that answers at once.

    gateway.py HEADWAY OUT.csv

HEADWAY is the release build; `sglang_router`, `litellm[proxy]` and `tokenizers` are in this Python, `wrk` and `nginx` on
the machine. The engine is nginx with answers that stand in its configuration: SGLang's `/generate` for Headway, which
asks for token ids and log-probabilities and records them, and chat completions for the two others, which pass text on.
"""

import contextlib
import csv
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CLIENTS = (1, 64, 1000)
SECONDS = 8
TOKENS = 32
PATIENCE = 90

TEMPLATE = (
    "{%- for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}"
)

NGINX = """
worker_processes 1;
pid nginx.pid;
error_log error.log;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    default_type application/json;
    keepalive_requests 100000000;
    client_body_buffer_size 64k;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location = /generate {{ default_type text/event-stream; return 200 '{generate}'; }}
        location = /v1/chat/completions {{ return 200 '{chat}'; }}
        location = /v1/models {{ return 200 '{{"object": "list", "data": [{{"id": "policy", "object": "model"}}]}}'; }}
        location = /get_weight_version {{ return 200 '{{"weight_version": "headway-0"}}'; }}
        location / {{ return 200 '{{"model_path": "{model}", "tokenizer_path": "{model}", "served_model_name": "policy"}}'; }}
    }}
}}
"""

CONFIG = """
[policy_serving]
engine = "sglang"
port = {port}
[reward_judging]
rule = "exact"
judge_needs = "turn"
judge_concurrency = 64
[policy_training]
engine = "megatron"
batch_size = 100000
max_head_off_policyness = 100
[queue]
max_size = 20000000
"""

LITELLM = """
model_list:
  - model_name: policy
    litellm_params: {{model: openai/policy, api_base: "http://127.0.0.1:{engine}/v1", api_key: none}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_model(folder: pathlib.Path) -> None:
    """A byte-level BPE of 4096 tokens, trained on the documentation, and a ChatML template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096,
        special_tokens=["<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train([str(page) for page in sorted((ROOT / "docs").glob("*.md"))], trainer)
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"eos_token": "<|im_end|>", "bos_token": None, "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def answers() -> tuple[str, str]:
    entries = [[-0.5, 64 + place, None] for place in range(TOKENS)]
    meta = {
        "finish_reason": {"type": "stop"},
        "completion_tokens": TOKENS,
        "weight_version": "headway-0",
        "output_token_logprobs": entries,
    }
    piece = json.dumps({"text": "", "meta_info": meta})
    chat = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "policy",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "so it is said " * 8}}
        ],
        "usage": {"prompt_tokens": 250, "completion_tokens": TOKENS, "total_tokens": 250 + TOKENS},
    }
    return f"data: {piece}\\n\\ndata: [DONE]\\n\\n", json.dumps(chat)


@contextlib.contextmanager
def running(name: str, command: list, port: int, path: str, folder: pathlib.Path, **more):
    with open(folder / f"{name}.log", "w") as log:
        process = subprocess.Popen(
            [str(part) for part in command], stdout=log, stderr=log, start_new_session=True, **more
        )
    try:
        until = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).read()
                break
            if process.poll() is not None or time.monotonic() > until:
                sys.exit(f"{name} did not start:\n{(folder / f'{name}.log').read_text()}")
            time.sleep(0.1)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def milliseconds(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text).groups()
    return float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}[unit]


def load(port: int, clients: int, seconds: int) -> dict[str, float]:
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "30s", "--latency", "-s", HERE / "turn.lua", url]
    text = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout
    latency = dict(re.findall(r"^ +(\d+)% +([\d.]+[a-z]+)", text, re.M))
    if not {"50", "99"} <= latency.keys():
        sys.exit(f"wrk says nothing of latencies:\n{text}")
    failed = sum(int(number) for number in re.findall(r"Non-2xx or 3xx responses: (\d+)", text))
    failed += sum(int(number) for line in re.findall(r"Socket errors: (.*)", text) for number in re.findall(r"\d+", line))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])
    return {"p50": milliseconds(latency["50"]), "p99": milliseconds(latency["99"]), "rate": rate, "failed": failed}


def commits(folder: pathlib.Path) -> list[float]:
    """Milliseconds of a small append that waits for the disk, as a commit of the record does."""
    times = []
    with open(folder / "disk", "wb") as file:
        for _ in range(200):
            begin = time.perf_counter()
            file.write(b"x" * 8192)
            file.flush()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - begin) * 1e3)
    return sorted(times)


def systems(headway: str, engine: int, folder: pathlib.Path):
    port = free_port()
    yield "engine alone", engine, contextlib.nullcontext()
    for durability in ("process", "power"):
        (folder / "config.toml").write_text(CONFIG.format(port=port))
        settings = {
            "api": {"base_url": f"http://127.0.0.1:{engine}/v1", "api_key_env": "HEADWAY_BENCH_KEY"},
            "judge": {"model": "none"},
        }
        (folder / "settings.json").write_text(json.dumps(settings))
        record = folder / f"{durability}.db"
        command = [headway, "run", "--config", "config.toml", "--settings", "settings.json", "--record", record]
        command += ["--durability", durability, "--log", "error", "--shutdown-timeout-sec", "5"]
        env = {**os.environ, "HEADWAY_TRAINER_TOKEN": "none"}
        env.pop("HEADWAY_API_KEY", None)
        name = f"headway, {durability} durability"
        yield name, port, running(f"headway-{durability}", command, port, "/readyz", folder, cwd=folder, env=env)
        record.unlink(missing_ok=True)
    router = [sys.executable, "-m", "sglang_router.launch_router", "--worker-urls", f"http://127.0.0.1:{engine}"]
    router += ["--host", "127.0.0.1", "--port", port, "--policy", "round_robin", "--log-level", "error"]
    yield "sglang-router", port, running("sglang-router", router, port, "/health", folder)
    (folder / "litellm.yaml").write_text(LITELLM.format(engine=engine))
    proxy = [pathlib.Path(sys.executable).parent / "litellm", "--config", folder / "litellm.yaml"]
    proxy += ["--host", "127.0.0.1", "--port", port, "--telemetry", "False"]
    env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    env["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"
    yield "litellm", port, running("litellm", proxy, port, "/health/liveliness", folder, env=env)


def main() -> None:
    headway, out = sys.argv[1:]
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_model(folder / "model")
        engine = free_port()
        generate, chat = answers()
        config = NGINX.format(port=engine, generate=generate, chat=chat, model=folder / "model")
        (folder / "nginx.conf").write_text(config)
        nginx = ["nginx", "-p", folder, "-c", "nginx.conf", "-g", "daemon off;"]
        with running("engine", nginx, engine, "/health", folder):
            alone = {}
            for name, port, started in systems(os.path.abspath(headway), engine, folder):
                with started:
                    for clients in CLIENTS:
                        load(port, clients, 2)
                        seen = load(port, clients, SECONDS)
                        alone.setdefault(clients, seen)
                        times = [seen[key] - less[key] for less in ({"p50": 0.0, "p99": 0.0}, alone[clients]) for key in ("p50", "p99")]
                        # Where nothing was answered, there is no latency.
                        told = [f"{time:.3f}" if seen["rate"] > 0 else "" for time in times]
                        rows.append([name, clients, f"{seen['rate']:.0f}", *told, seen["failed"]])
                        print(*rows[-1], sep="\t", file=sys.stderr, flush=True)
        waits = commits(folder)
    rows.append(["a commit of this disk", "", "", f"{statistics.median(waits):.3f}", f"{waits[197]:.3f}", "", "", ""])
    with open(out, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["system", "clients", "requests_per_sec", "p50_ms", "p99_ms", "added_p50_ms", "added_p99_ms", "failed"])
        table.writerows(rows)


if __name__ == "__main__":
    main()
