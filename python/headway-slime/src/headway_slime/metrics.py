"""What only slime's training processes know, for Headway's adaptive bound."""

from __future__ import annotations

import json
import logging
import os
import uuid
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_log = logging.getLogger("headway_slime")

#: The metric's name, at slime and at Headway.
DIFFERENCE = "train_rollout_logprob_abs_diff"


def folder(args: Namespace) -> Path:
    """Where the training processes leave what they measured."""
    return Path(args.save) / "headway"


def measure(args: Namespace, rollout_id: int, rollout_data: Mapping[str, Any]) -> None:
    """slime's `--rollout-data-postprocess-path`: leaves this process's part of the step's metrics for the report.

    The metric is the mean over samples of mean(abs(log_prob - rollout_log_prob)) over their trained tokens, where
    log_prob is what slime computed anew before the step. Where slime does not (it reuses the first forward pass of
    the training), or has only parts of a sample (context parallelism), nothing is left.
    """
    total, count = 0.0, 0
    parts = (rollout_data.get(key) for key in ("log_probs", "rollout_log_probs", "loss_masks"))
    lists = [part for part in parts if part is not None]
    if len(lists) < 3:
        return
    for computed, sampled, mask in zip(*(map(_values, part) for part in lists)):
        if not len(computed) == len(sampled) == len(mask):
            _log.info("%s is not measured: a process has only part of a sample", DIFFERENCE)
            return
        trained = [abs(new - old) for new, old, weight in zip(computed, sampled, mask) if weight]
        if trained:
            total += sum(trained) / len(trained)
            count += 1
    if count == 0:
        return
    place = folder(args)
    place.mkdir(parents=True, exist_ok=True)
    name = f"measured-{rollout_id}-{uuid.uuid4().hex}"
    draft = place / f"{name}.new"
    draft.write_text(json.dumps({"sum": total, "samples": count}), encoding="utf-8")
    os.replace(draft, place / f"{name}.json")


def measured(args: Namespace, rollout_id: int) -> dict[str, float]:
    """What all processes measured in the step of a rollout."""
    total, count = 0.0, 0
    for path in sorted(folder(args).glob(f"measured-{rollout_id}-*.json")):
        part = json.loads(path.read_text(encoding="utf-8"))
        total += part["sum"]
        count += part["samples"]
    # NaN would be no JSON; an empty report is what a run without this metric has.
    return {DIFFERENCE: total / count} if count and total == total and total != float("inf") else {}


def forget(args: Namespace, rollout_id: int) -> None:
    """Removes what was measured in the step of a rollout: it was reported, or begins anew."""
    for path in folder(args).glob(f"measured-{rollout_id}-*"):
        path.unlink(missing_ok=True)


def _values(part: Any) -> list[float]:
    return list(part.tolist() if hasattr(part, "tolist") else part)
