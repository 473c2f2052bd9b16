"""The whole loop with vLLM itself: vLLM serves a checkpoint, Headway trains it with libtorch, vLLM loads
what was trained; then vLLM judges.

    target/vllm/bin/python tests/vllm/loop.py target/debug/headway

It ends with 0 where all of this holds, and says what did not otherwise.
"""

import concurrent.futures
import contextlib
import csv
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
from transformers import Qwen2Config, Qwen2ForCausalLM

HEADWAY = pathlib.Path(sys.argv[1]).resolve()
STEPS = int(os.environ.get("HEADWAY_TEST_VLLM_STEPS", "40"))
PATIENCE = 600
# Whoever waits for the next step is many: a batch, and half as many again.
CLIENTS = 24
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# The longer a turn's text, the better: a policy of random weights finds that by chance.
RULE = "clamp(length(answer) / 40, 0, 1)"


def checkpoint(place):
    """A Qwen2 of random weights. vLLM refuses smaller heads on a CPU."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(["to be or not to be, that is the question"] * 2, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(place)
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=320,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=512,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        pad_token_id=None,
    )
    Qwen2ForCausalLM(config).save_pretrained(place)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def get(url, body=None, headers=None, timeout=60):
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(request, timeout=timeout) as response:
        return json.loads(response.read() or "null"), dict(response.headers)


def until(what, found):
    """Waits for something, or says that it does not come."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if found():
                return
        except (OSError, urllib.error.HTTPError):
            pass
        time.sleep(0.5)
    sys.exit(f"{what}: not within {PATIENCE} s")


@contextlib.contextmanager
def process(arguments, log, **variables):
    with open(log, "w") as output:
        child = subprocess.Popen(
            arguments, stdout=output, stderr=output, env={**os.environ, **variables},
            start_new_session=True,
        )
    try:
        yield child
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGTERM)
            try:
                child.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def vllm(model, port, log):
    arguments = [
        sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", str(model),
        "--served-model-name", "policy", "--host", "127.0.0.1", "--port", str(port),
        "--dtype", "float32", "--max-model-len", "512", "--enforce-eager",
        "--enable-scale-out", "--logprobs-mode", "processed_logprobs",
    ]
    return process(
        arguments, log, VLLM_CPU_KVCACHE_SPACE="1", VLLM_SERVER_DEV_MODE="1", HF_HUB_OFFLINE="1",
        VLLM_NO_USAGE_STATS="1",
    )


def headway(folder, engine, port, steps, more):
    settings = {
        "serving": {"engine_urls": [engine], "max_model_len": 512},
        "api": {"base_url": f"{engine}/v1", "api_key_env": "JUDGE_KEY"},
        "training": {"learning_rate": 1e-3},
        "judge": {"model": "policy", "max_tokens": 400, "temperature": 1.0, "score": "json"},
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "config.toml").write_text(
        f"""
[policy_serving]
engine = "vllm"
port = {port}
{more.get("policy_serving", "")}
[reward_judging]
judge_needs = "turn"
aggregate = "mean"
{more["reward_judging"]}
[policy_training]
engine = "tch"
batch_size = 16
max_head_off_policyness = 2
{more.get("policy_training", "")}
"""
    )
    arguments = [
        str(HEADWAY), "run", "--config", "config.toml", "--settings", "settings.json",
        "--record", "run.db", "--steps", str(steps), "--out", "out",
    ]
    return process(
        ["env", "-C", str(folder), *arguments], folder / "headway.log", JUDGE_KEY="none"
    )


def ask(url, number):
    body = {
        "messages": [{"role": "user", "content": f"go on {number % 4}"}],
        "max_tokens": 8,
        "temperature": 1.0,
        "turn_type": "main",
        "session_id": f"s{number}",
        "session_done": True,
    }
    try:
        answer, headers = get(f"{url}/v1/chat/completions", body)
        return headers.get("x-policy-versions")
    except urllib.error.HTTPError as error:
        # A pause or a full gate: it is asked again.
        time.sleep(0.05 if error.code in (429, 503) else 1)
    except OSError:
        time.sleep(0.2)
    return None


def play(run, url):
    """Asks until the run ends by itself; the versions that its turns were made with."""
    seen = set()
    numbers = iter(range(10**9))
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        def client():
            while run.poll() is None:
                seen.add(ask(url, next(numbers)))
        end = time.monotonic() + PATIENCE
        waiting = [clients.submit(client) for _ in range(CLIENTS)]
        while run.poll() is None:
            if time.monotonic() > end:
                os.killpg(run.pid, signal.SIGKILL)
            time.sleep(0.5)
        for task in waiting:
            task.result()
    return {versions for versions in seen if versions}


def column(folder, name):
    with open(folder / "out" / "steps.csv") as table:
        return [float(row[name]) for row in csv.DictReader(table) if row.get(name)]


def mean(numbers):
    return sum(numbers) / len(numbers)


def check(what, holds, shown=""):
    print(f"{'ok ' if holds else 'NOT'} {what} {shown}", flush=True)
    if not holds:
        check.failed = True


check.failed = False


def loads_in_transformers(folder, first):
    """What was written is read, tokenizer and all, and is not what it began as."""
    places = sorted((folder / "run.db.weights").glob("version-*"))
    newest = AutoModelForCausalLM.from_pretrained(places[-1], dtype=torch.float32)
    AutoTokenizer.from_pretrained(places[-1]).apply_chat_template(
        [{"role": "user", "content": "x"}], tokenize=False
    )
    begun = AutoModelForCausalLM.from_pretrained(first, dtype=torch.float32)
    moved = [not torch.equal(a, b) for a, b in zip(newest.parameters(), begun.parameters())]
    check("transformers loads what was written", all(moved), places[-1].name)


def learn(folder, model, engine):
    port = free_port()
    more = {
        "policy_serving": 'sync_mode = "in_flight"',
        "reward_judging": f'rule = "{RULE}"',
    }
    with headway(folder, engine, port, STEPS, more) as run:
        versions = play(run, f"http://127.0.0.1:{port}")
        code = run.wait()
    print((folder / "headway.log").read_text()[-1500:])
    check("the run ends in order", code == 0, code)
    rewards = column(folder, "reward_mean")
    third = len(rewards) // 3
    before, after = mean(rewards[:third]), mean(rewards[-third:])
    check("the policy improves", after > before + 0.05, f"{before:.3f} -> {after:.3f}")
    gap = column(folder, "logprob_abs_diff")
    # The first step has no drift in it: only what two engines compute differently.
    check("log-probabilities of vLLM and the trainer agree", gap[0] < 1e-4, f"{gap[0]:.2e}")
    check("turns were made with many versions", len(versions) > STEPS // 2, len(versions))
    mixed = [text for text in versions if "," in text]
    print(f"    turns of several versions: {sorted(mixed)[:5]}")
    label, _ = get(f"{engine}/weight_info")
    check("vLLM holds what was published", label["weight_version"].startswith("headway-"), label)
    replayed = subprocess.run([HEADWAY, "replay", folder / "run.db"], capture_output=True)
    check("the record replays", replayed.returncode == 0, replayed.stderr.decode()[-300:])
    loads_in_transformers(folder, model)


def judge(folder, engine):
    """vLLM as the endpoint that judges, with a structured answer."""
    port = free_port()
    more = {
        "reward_judging": "judge_timeout_sec = 120\njudge_retries = 0",
        "policy_training": "train_retries = 0",
    }
    with headway(folder, engine, port, 1, more) as run:
        play(run, f"http://127.0.0.1:{port}")
        code = run.wait()
    print((folder / "headway.log").read_text()[-1500:])
    check("a run that vLLM judges ends in order", code == 0, code)
    rewards = column(folder, "reward_mean")
    check("its structured answers are scores", all(-1 <= reward <= 1 for reward in rewards), rewards)


def main():
    with tempfile.TemporaryDirectory() as root:
        root = pathlib.Path(root)
        for name in ("model", "learn", "judge"):
            (root / name).mkdir()
        checkpoint(root / "model")
        for name, part in (("learn", lambda *all: learn(all[0], root / "model", all[1])),
                           ("judge", judge)):
            port, log = free_port(), root / f"vllm-{name}.log"
            with vllm(root / "model", port, log) as server:
                engine = f"http://127.0.0.1:{port}"
                def up():
                    if server.poll() is not None:
                        sys.exit(log.read_text()[-3000:])
                    get(f"{engine}/v1/models")
                    return True
                until("vLLM", up)
                part(root / name, engine)
    sys.exit(1 if check.failed else 0)


main()
