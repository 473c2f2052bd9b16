"""The whole loop with vLLM itself: vLLM serves a checkpoint, Headway trains it with libtorch, vLLM loads
what was trained; then vLLM judges.

    target/vllm/bin/python tests/vllm/loop.py target/debug/headway

It ends with 0 where all of this holds. Otherwise it says what did not, and keeps the logs and the record.
HEADWAY_TEST_VLLM_STEPS is the number of train steps.
"""

import concurrent.futures
import contextlib
import csv
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import statistics
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
from transformers.utils import logging

HEADWAY = pathlib.Path(sys.argv[1]).resolve()
STEPS = int(os.environ.get("HEADWAY_TEST_VLLM_STEPS", "40"))
PATIENCE = 600
LENGTH = 2048
# Whoever waits for the next step is many: a batch, and half as many again.
CLIENTS = 24
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# The further a turn's text can be read, the better: a policy of random weights writes broken UTF-8 soon.
RULE = """clamp(length(capture(answer, '^[ -~]*')) / 8, 0, 1)"""
# Most turns are short; some are so long that several versions are published meanwhile.
SHORT, LONG = 8, 150


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
        max_position_embeddings=LENGTH,
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
        "--dtype", "float32", "--max-model-len", str(LENGTH), "--enforce-eager",
        "--enable-scale-out", "--logprobs-mode", "processed_logprobs",
    ]
    return process(
        arguments, log, VLLM_CPU_KVCACHE_SPACE="1", VLLM_SERVER_DEV_MODE="1", HF_HUB_OFFLINE="1",
        VLLM_NO_USAGE_STATS="1",
    )


def headway(folder, engine, port, steps, more):
    settings = {
        "serving": {"engine_urls": [engine], "max_model_len": LENGTH},
        "api": {"base_url": f"{engine}/v1", "api_key_env": "JUDGE_KEY"},
        "training": {"learning_rate": 4e-3},
        "judge": {"model": "policy", "max_tokens": 1200, "temperature": 1.0, "score": "json"},
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
{more.get("policy_training", "batch_size = 16")}
max_head_off_policyness = 2
"""
    )
    arguments = [
        str(HEADWAY), "run", "--config", "config.toml", "--settings", "settings.json",
        "--record", "run.db", "--steps", str(steps), "--out", "out",
    ]
    # vLLM and the trainer share the cores: threads that wait for each other would stand in the way.
    return process(
        ["env", "-C", str(folder), *arguments], folder / "headway.log", JUDGE_KEY="none",
        OMP_NUM_THREADS="1",
    )


def ask(url, number):
    body = {
        "messages": [{"role": "user", "content": f"go on {number % 4}"}],
        "max_tokens": SHORT if number % 16 else LONG,
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
        time.sleep(0.5 if error.code in (429, 503) else 1)
    except OSError:
        time.sleep(0.2)
    return None


def keep(folder):
    """Keeps what was published; Headway removes what is not among the newest three."""
    for place in (folder / "run.db.weights").glob("version-*"):
        kept = folder / "kept" / place.name
        if "." in place.name or kept.exists():
            continue
        try:
            shutil.copytree(place, kept, copy_function=os.link)
        except (OSError, shutil.Error):
            shutil.rmtree(kept, ignore_errors=True)


def play(run, url, folder):
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
            keep(folder)
            time.sleep(0.05)
        for task in waiting:
            task.result()
    return {versions for versions in seen if versions}


def parts(versions):
    """The versions of a turn: `0:3,1:5` has 3 tokens of version 0, then 5 of version 1."""
    return [int(part.split(":")[0]) for part in versions.split(",")]


def column(folder, name):
    with open(folder / "out" / "steps.csv") as table:
        return [float(row[name]) for row in csv.DictReader(table) if row.get(name)]


def check(what, holds, shown=""):
    print(f"{'ok ' if holds else 'NOT'} {what} {shown}", flush=True)
    if not holds:
        check.failed = True


check.failed = False


def scored(model, ids):
    """The log-probabilities of a text's tokens, its first aside, as transformers computes them."""
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1].log_softmax(-1)
    return [float(row[id]) for row, id in zip(logits, ids[1:])]


def scored_by_vllm(engine, ids):
    body = {"model": "policy", "prompt": ids, "max_tokens": 1, "prompt_logprobs": 0}
    answer, _ = get(f"{engine}/v1/completions", body)
    places = answer["choices"][0]["prompt_logprobs"][1:]
    return [place[str(id)]["logprob"] for place, id in zip(places, ids[1:])]


def furthest(some, others):
    return max(abs(one - other) for one, other in zip(some, others, strict=True))


def stamps(folder, first):
    """Each token's log-probability is that of the version it is stamped with, as transformers computes it from
    what was published: of the turns whose versions were all kept."""
    models, worst, tokens, mixed = {}, 0.0, 0, 0
    places = {int(at.name.removeprefix("version-")): at for at in (folder / "kept").iterdir()}
    places[0] = first
    with contextlib.closing(sqlite3.connect(folder / "run.db")) as record:
        query = "SELECT prompt, tokens, logprobs, segments FROM samples WHERE tokens IS NOT NULL"
        turns = [[json.loads(text) for text in row] for row in record.execute(query)]
    whole = sum(len(ids) for _, ids, _, _ in turns)
    for prompt, ids, logprobs, segments in turns:
        if not places.keys() >= {version for version, _ in segments}:
            continue
        begin = 0
        for version, count in segments:
            if version not in models:
                models[version] = AutoModelForCausalLM.from_pretrained(places[version])
            true = scored(models[version], prompt + ids)[len(prompt) - 1 :]
            end = begin + count
            worst = max(worst, furthest(true[begin:end], logprobs[begin:end]))
            begin = end
        tokens += len(ids)
        mixed += len(segments) > 1
    shown = f"{tokens} of {whole} tokens, {mixed} turns of several versions: within {worst:.1e}"
    check("each token's log-probability is its version's", tokens > whole / 2 and worst < 1e-3, shown)


def weights(folder, first, engine):
    """What was published is a checkpoint that transformers loads, and is what vLLM holds."""
    label = get(f"{engine}/weight_info")[0]["weight_version"]
    version = int(label.removeprefix("headway-"))
    place = folder / "run.db.weights" / f"version-{version:010}"
    tokenizer = AutoTokenizer.from_pretrained(place)
    tokenizer.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False)
    ids = tokenizer("to be or not to be, that is the question").input_ids
    served = scored_by_vllm(engine, ids)
    models = (AutoModelForCausalLM.from_pretrained(at, dtype=torch.float32) for at in (place, first))
    now, begun = (furthest(served, scored(model, ids)) for model in models)
    check("transformers loads what was published, and vLLM holds it", now < 1e-3, f"{label}: {now:.1e}")
    check("it is not what the run began with", begun > 0.1, f"{begun:.2f}")


def improves(rewards):
    """The last third against the first, and whether their difference is beyond noise."""
    third = len(rewards) // 3
    sides = rewards[:third], rewards[-third:]
    before, after = map(statistics.fmean, sides)
    noise = (sum(statistics.variance(side) for side in sides) / third) ** 0.5
    shown = f"{before:.3f} -> {after:.3f}, standard error {noise:.3f}, {len(rewards)} steps"
    check("the policy improves", after - before > max(0.05, 4 * noise), shown)


def learn(folder, model, engine):
    port = free_port()
    more = {
        "policy_serving": 'sync_mode = "in_flight"',
        "reward_judging": f'rule = "{RULE}"',
    }
    begun = time.monotonic()
    with headway(folder, engine, port, STEPS, more) as run:
        turns = play(run, f"http://127.0.0.1:{port}", folder)
        code = run.wait()
    print((folder / "headway.log").read_text()[-1500:])
    check("the run ends in order", code == 0, f"{code} after {time.monotonic() - begun:.0f} s")
    improves(column(folder, "reward_mean"))
    gap = column(folder, "logprob_abs_diff")
    # The first step has no drift in it: only what two engines compute differently.
    shown = f"{gap[0]:.1e}; with staleness at most {max(gap):.3f}"
    check("log-probabilities of vLLM and the trainer agree", gap[0] < 1e-4, shown)
    seen = {version for turn in turns for version in parts(turn)}
    check("turns were made with the versions that were trained", len(seen) > STEPS // 2, len(seen))
    mixed = sorted(turn for turn in turns if "," in turn)
    check("some turns have tokens of several versions", mixed, f"{len(mixed)} kinds, {mixed[:4]}")
    replays(folder)
    weights(folder, model, engine)
    stamps(folder, model)


def replays(folder):
    replayed = subprocess.run([HEADWAY, "replay", folder / "run.db"], capture_output=True)
    check("the record replays", replayed.returncode == 0, replayed.stderr.decode()[-300:])


def sync(folder, model, engine):
    """The other ways to bring weights to vLLM. Where turns keep what they have cached, log-probabilities behind
    a load are those of no version alone: the stamps cannot be checked by them."""
    port = free_port()
    mode = folder.name
    kv = "kv_on_sync = 'keep'" if mode == "pause_keep" else ""
    more = {
        "policy_serving": f"sync_mode = '{mode}'\n{kv}",
        "reward_judging": f'rule = "{RULE}"',
    }
    with headway(folder, engine, port, 8, more) as run:
        turns = play(run, f"http://127.0.0.1:{port}", folder)
        code = run.wait()
    seen = {version for turn in turns for version in parts(turn)}
    shown = f"{code}; versions {sorted(seen)}"
    check(f"a run with {mode} ends in order and publishes", code == 0 and len(seen) > 4, shown)
    replays(folder)
    if not kv:
        stamps(folder, model)


def judge(folder, _, engine):
    """vLLM as the endpoint that judges, with a structured answer: a model of random weights writes JSON for
    no other reason. Most of its numbers are not between -1 and 1, and are no scores."""
    port = free_port()
    more = {
        "reward_judging": "judge_timeout_sec = 120\njudge_concurrency = 16",
        "policy_training": "batch_size = 4",
    }
    with headway(folder, engine, port, 1, more) as run:
        play(run, f"http://127.0.0.1:{port}", folder)
        code = run.wait()
    print((folder / "headway.log").read_text()[-1500:])
    check("a run that vLLM judges ends in order", code == 0, code)
    with contextlib.closing(sqlite3.connect(folder / "run.db")) as record:
        votes = dict(record.execute("SELECT outcome, count(*) FROM votes GROUP BY outcome"))
        scores = [row[0] for row in record.execute("SELECT score FROM votes WHERE outcome = 'score'")]
    trained = len(column(folder, "reward_mean")) == 1
    possible = trained and len(scores) >= 4 and all(-1 <= score <= 1 for score in scores)
    check("its structured answers are scores", possible, f"{votes}: {sorted(set(scores))}")


def begin_again(engine, model):
    """vLLM holds what it was started with, and says so."""
    body = {"method": "reload_weights", "kwargs": {"weights_path": str(model)}}
    get(f"{engine}/collective_rpc", body)
    get(f"{engine}/reset_prefix_cache", {})
    get(f"{engine}/update_weight_version", {"new_version": "default"})


def main():
    # Whoever ends this ends what it has begun.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    root = pathlib.Path(tempfile.mkdtemp(prefix="headway-vllm-"))
    print(f"logs and records: {root}", flush=True)
    model, log, port = root / "model", root / "vllm.log", free_port()
    checkpoint(model)
    engine = f"http://127.0.0.1:{port}"
    with vllm(model, port, log) as server:

        def up():
            if server.poll() is not None:
                sys.exit(log.read_text()[-3000:])
            get(f"{engine}/v1/models")
            return True

        until("vLLM", up)
        steps = [("learn", learn), ("judge", judge)]
        steps[1:1] = [(mode, sync) for mode in ("pause_drain", "pause_abort", "pause_keep")]
        for name, part in steps:
            print(f"-- {name}", flush=True)
            (root / name).mkdir()
            begin_again(engine, model)
            part(root / name, model, engine)
    if check.failed:
        sys.exit(1)
    shutil.rmtree(root)


main()
