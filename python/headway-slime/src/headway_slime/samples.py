"""Headway's samples as slime's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headway_slime.client import TrainSample, TrainTask

if TYPE_CHECKING:
    from slime.utils.types import Sample


def groups(task: TrainTask) -> list[list[Sample]]:
    """The batch as slime has it: the rollouts of one prompt together, in the order of their first ones.

    A sample without a group is one of its own.
    """
    members: dict[tuple[bool, int], list[TrainSample]] = {}
    for sample in task.samples:
        key = (False, sample.id) if sample.group is None else (True, sample.group)
        members.setdefault(key, []).append(sample)
    index = 0
    found = []
    for number, group in enumerate(members.values()):
        found.append([_sample(sample, index + place, number) for place, sample in enumerate(group)])
        index += len(group)
    return found


def _sample(sample: TrainSample, index: int, group: int) -> Sample:
    from slime.utils.types import Sample

    # The response begins at the first token of the policy; a sample without any has an empty gradient.
    start = next((place for place, trained in enumerate(sample.loss_mask) if trained), len(sample.tokens) - 1)
    return Sample(
        index=index,
        group_index=group,
        # Each is a rollout of its own, so that slime averages over samples.
        rollout_id=index,
        tokens=list(sample.tokens),
        response_length=len(sample.tokens) - start,
        loss_mask=sample.loss_mask[start:],
        # Where nothing was sampled there is nothing to compare; the mask hides the number.
        rollout_log_probs=[float(value) for value in sample.rollout_log_probs[start:]],
        weight_versions=[str(version) for version in _spans(_trained(sample))],
        reward=sample.reward,
        remove_sample=sample.masked,
        status=Sample.Status.COMPLETED,
        metadata={"headway_id": sample.id},
    )


def staleness(task: TrainTask) -> dict[str, float]:
    """Versions between the tokens' and the step's: over the trained tokens, and of the oldest one."""
    ages = [task.version - version for sample in task.samples for version in _trained(sample)]
    if not ages:
        return {}
    return {"headway/staleness_mean": sum(ages) / len(ages), "headway/staleness_max": float(max(ages))}


def _trained(sample: TrainSample) -> list[int]:
    return [version for version, trained in zip(sample.versions, sample.loss_mask) if trained]


def _spans(versions: Iterable[int]) -> list[int]:
    """The versions, each once for its run of tokens."""
    found: list[int] = []
    for version in versions:
        if not found or found[-1] != version:
            found.append(version)
    return found
