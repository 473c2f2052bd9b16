"""The policy in Headway's process beside `transformers` and PyTorch: the same weights, batch and lengths, one thread.

    policy.py POLICY_SPEED OUT.csv

POLICY_SPEED is the built example `policy_speed` of the crate `headway-runtime`. The two take turns, and the best of each
counts. Before anything is timed, the log-probabilities that Headway recorded are compared with those of `transformers`.
"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

ROUNDS = 3
TIMES = 5
CLIP = 0.2


def load(shape: dict, weights: pathlib.Path) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=shape["vocab"],
        hidden_size=shape["hidden"],
        intermediate_size=shape["mlp"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        num_key_value_heads=shape["kv_heads"],
        head_dim=shape["head_size"],
        max_position_embeddings=shape["positions"],
        rms_norm_eps=shape["norm_eps"],
        rope_parameters={"rope_type": "default", "rope_theta": shape["rope_theta"]},
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    config._attn_implementation = "sdpa"
    model = LlamaForCausalLM(config)
    model.load_state_dict(load_file(weights), strict=True)
    return model.eval()


def best(work) -> float:
    work()
    times = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def prompts(case: dict) -> torch.Tensor:
    rows = range(case["batch"])
    return torch.tensor([[(row * 31 + at * 17) % case["shape"]["vocab"] for at in range(case["prompt"])] for row in rows])


def generate(model: LlamaForCausalLM, case: dict) -> torch.Tensor:
    with torch.no_grad():
        return model.generate(
            prompts(case),
            attention_mask=torch.ones(case["batch"], case["prompt"], dtype=torch.long),
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            max_new_tokens=case["new_tokens"],
        )


def logs(model: LlamaForCausalLM, tokens: torch.Tensor, prompt: int) -> torch.Tensor:
    """Log-probabilities of what follows the prompt."""
    scores = model(tokens, use_cache=False).logits[:, :-1]
    chosen = scores.gather(-1, tokens[:, 1:, None]).squeeze(-1) - scores.logsumexp(-1)
    return chosen[:, prompt - 1 :]


def step(model: LlamaForCausalLM, optimizer, case: dict, tokens: torch.Tensor, rollout: torch.Tensor) -> None:
    """A GRPO step: clipped ratios, gradients clipped to norm 1, AdamW; in passes of 64 sequences, as Headway's."""
    optimizer.zero_grad()
    sign = torch.tensor([-1.0, 1.0]).repeat((case["batch"] + 1) // 2)[: case["batch"], None]
    for at in range(0, case["batch"], 64):
        rows = slice(at, at + 64)
        ratio = (logs(model, tokens[rows], case["prompt"]) - rollout[rows]).exp()
        clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
        loss = -torch.minimum(ratio * sign[rows], clipped * sign[rows]).mean(1).sum() / case["batch"]
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def measure(binary: str, case: dict, folder: pathlib.Path) -> dict[tuple[str, str], float]:
    torch.set_num_threads(1)
    file, weights = folder / "case.json", folder / "model.safetensors"
    file.write_text(json.dumps(case))
    times: dict[tuple[str, str], float] = {}

    def add(what: str, whose: str, seconds: float) -> None:
        times[what, whose] = min(seconds, times.get((what, whose), seconds))

    for _ in range(ROUNDS):
        output = subprocess.run([binary, file, weights], check=True, capture_output=True, text=True).stdout
        ours = json.loads(output)
        model = load(case["shape"], weights)
        with torch.no_grad():
            told = logs(model, torch.tensor([ours["prompt"] + ours["ids"]]), len(ours["prompt"]))[0]
        apart = (told - torch.tensor(ours["logprobs"])).abs().max().item()
        if apart > 1e-4:
            sys.exit(f"{case['name']}: log-probabilities are {apart:.1e} apart: it is not the same model")
        add("generation", "headway", ours["generate_sec"])
        add("train step", "headway", ours["step_sec"])
        add("generation", "transformers", best(lambda: generate(model, case)))
        tokens = generate(model, case)
        with torch.no_grad():
            rollout = logs(model, tokens, case["prompt"])
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
        add("train step", "pytorch", best(lambda: step(model, optimizer, case, tokens, rollout)))
    return times


def main() -> None:
    binary, out = sys.argv[1:]
    cases = json.loads((pathlib.Path(__file__).parent / "policy.json").read_text())
    rows = []
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            times = measure(binary, case, pathlib.Path(folder))
        for (what, whose), seconds in sorted(times.items()):
            tokens = case["batch"] * (case["new_tokens"] if what == "generation" else case["prompt"] + case["new_tokens"])
            ours = times[what, "headway"]
            rows.append([case["name"], what, whose, f"{seconds * 1e3:.1f}", f"{tokens / seconds:.0f}", f"{seconds / ours:.2f}"])
    with open(out, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["model", "what", "whose", "milliseconds", "tokens_per_sec", "headway_is_faster_by"])
        table.writerows(rows)


if __name__ == "__main__":
    main()
