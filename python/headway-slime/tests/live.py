"""A slime job without GPUs: what train.py and its processes do around the rollout function, in their order.

`live.py FOLDER ROLLOUTS` starts from the newest checkpoint in FOLDER and says each thing that it does on a line;
after each it waits for a line, so that the test that runs it can kill it there. A checkpoint is what it has trained.
"""

import json
import sys
from argparse import Namespace
from pathlib import Path

from headway_slime import DataSource, generate_rollout, measure

from tests.test_rollout import arguments


def step(what: str, **said: object) -> None:
    print(json.dumps({"did": what, **said}), flush=True)
    if not sys.stdin.readline():
        sys.exit("nobody is there any more")


def save(args: Namespace, rollout_id: int, trained: list[int]) -> None:
    """Megatron's checkpoint, then the weights for the engines, the index last."""
    folder = Path(args.save)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{rollout_id}.json").write_text(json.dumps(trained))
    (folder / "latest_checkpointed_iteration.txt").write_text(str(rollout_id))
    step("checkpoint", rollout=rollout_id)
    weights = Path(args.save_hf.format(rollout_id=rollout_id))
    weights.mkdir(parents=True, exist_ok=True)
    (weights / "model.safetensors").write_bytes(b"weights")
    (weights / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model.safetensors"}}')
    step("weights", rollout=rollout_id)


def main(folder: str, rollouts: int) -> None:
    args = arguments(Path(folder), n_samples_per_prompt=1, global_batch_size=2)
    source = DataSource(args)
    latest = Path(args.save) / "latest_checkpointed_iteration.txt"
    start, trained = 0, []
    if latest.exists():
        newest = int(latest.read_text())
        start, trained = newest + 1, json.loads((Path(args.save) / f"{newest}.json").read_text())
    for rollout_id in range(start, rollouts):
        output = generate_rollout(args, rollout_id, source, evaluation=False)
        samples = [sample for group in output.samples for sample in group]
        step("pulled", rollout=rollout_id, metrics=output.metrics, samples=[vars(sample) | {"status": sample.status.value} for sample in samples])
        measure(
            args,
            rollout_id,
            {
                "log_probs": [[value - 0.125 for value in sample.rollout_log_probs or []] for sample in samples],
                "rollout_log_probs": [sample.rollout_log_probs for sample in samples],
                "loss_masks": [sample.loss_mask for sample in samples],
            },
        )
        trained += [sample.metadata["headway_id"] for sample in samples]
        step("trained", rollout=rollout_id)
        save(args, rollout_id, trained)
        source.save(rollout_id)
        step("saved", rollout=rollout_id)
    print(json.dumps({"did": "all", "trained": trained}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
