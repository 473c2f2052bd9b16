"""slime's rollout function and data source, on Headway's trainer API.

slime's `train.py` does, for each rollout k: `generate(k)`, train, save the checkpoint of k and its weights for the
engines, then tell the data source that k is saved. So

- `generate_rollout(k)` is called when the step of k-1 is done and saved, or slime starts again from there;
- `DataSource.save(k)` is called when the step of k is done and its weights are written: that is when it is reported;
- a process that was killed starts again with the rollout after the newest whole checkpoint.

The ledger beside the checkpoints says which task belongs to which rollout, so that each of these is told from the
others after a crash: nothing is lost, and nothing trained twice.
"""

from __future__ import annotations

import json
import logging
import os
import time
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway_slime import metrics, samples
from headway_slime.client import Client, Conflict, HeadwayError, OtherVersion, SaveTask, TrainTask
from headway_slime.heartbeat import Heartbeat
from headway_slime.ledger import Entry, Ledger

if TYPE_CHECKING:
    from slime.rollout.base_types import RolloutFnTrainOutput
    from slime.utils.types import Sample

_log = logging.getLogger("headway_slime")


class WrongArguments(HeadwayError):
    """slime's arguments do not fit; the message says which ones do."""


class OutOfStep(HeadwayError):
    """slime's parameters are not those that Headway counts on; the message says from which checkpoint to start."""


def generate_rollout(
    args: Namespace, rollout_id: int, data_source: Any, evaluation: bool = False
) -> RolloutFnTrainOutput:
    """slime's `--rollout-function-path`: waits for the batch that Headway has scheduled."""
    from slime.rollout.base_types import RolloutFnTrainOutput

    if evaluation:
        raise WrongArguments("Headway schedules training: leave out --eval-interval, or set --eval-function-path")
    began = time.monotonic()
    task = _rollouts(args).batch(rollout_id)
    said: dict[str, float] = {"headway/version": float(task.version), **samples.staleness(task)}
    if task.deploy_version is not None:
        said["headway/publish_lag"] = float(task.version - task.deploy_version)
    said["headway/wait_sec"] = time.monotonic() - began
    return RolloutFnTrainOutput(samples=samples.groups(task), metrics=said)


class DataSource:
    """slime's `--data-source-path`: prompts come from agents at Headway's gateway, so that there are none here."""

    def __init__(self, args: Namespace) -> None:
        self._args = args
        _rollouts(args)

    def get_samples(self, num_samples: int) -> list[list[Sample]]:
        """Headway's clients bring the prompts."""
        raise WrongArguments("prompts come from Headway: set --rollout-function-path headway_slime.generate_rollout")

    def add_samples(self, samples: list[list[Sample]]) -> None:
        """Nothing is given back: Headway keeps what is not trained."""
        raise WrongArguments("Headway keeps what is not trained: nothing can be added here")

    def save(self, rollout_id: int) -> None:
        """The step of a rollout is done, and its checkpoint and weights are written: it is reported."""
        _rollouts(self._args).saved(rollout_id)

    def load(self, rollout_id: int | None = None) -> None:
        """The ledger is read when the first batch is asked for."""

    def __len__(self) -> int:
        return 0


class Rollouts:
    """The rollouts of one slime job."""

    def __init__(self, args: Namespace, environment: Mapping[str, str]) -> None:
        _check(args)
        self._args = args
        self._ledger = Ledger(Path(args.save) / "headway.json")
        self._heartbeat: Heartbeat | None = None
        #: What the parameters are before the first rollout.
        self._first_version = int(_setting(args, environment, "headway_version", "0"))
        token = environment.get("HEADWAY_TRAINER_TOKEN", "")
        if not token:
            raise WrongArguments("HEADWAY_TRAINER_TOKEN is not set: it is the token of Headway's trainer API")
        self._client = Client(
            _setting(args, environment, "headway_url", "http://127.0.0.1:30000"),
            token,
            _setting(args, environment, "headway_trainer", "slime"),
            patience_sec=float(_setting(args, environment, "headway_patience_sec", "1800")),
        )

    def batch(self, rollout_id: int) -> TrainTask:
        """The batch of a rollout. The step of the one before is done; that it is reported is seen to."""
        version = self._version(rollout_id)
        metrics.forget(self._args, rollout_id)
        task = self._pull(version)
        self._fits(task)
        self._ledger.write(Entry(rollout_id, task.version, task.batch, task.lease, reported=False))
        self._hold(task)
        _log.info("rollout %d is batch %s, from version %d", rollout_id, task.batch, task.version)
        return task

    def saved(self, rollout_id: int) -> None:
        """The step of a rollout is done and saved."""
        entry = self._ledger.read()
        if entry is None or entry.rollout_id != rollout_id:
            raise OutOfStep(f"rollout {rollout_id} is saved, and the ledger has {entry}: is another job at {self._args.save}?")
        if not entry.reported:
            self._report(entry)

    def _version(self, rollout_id: int) -> int:
        """What slime's parameters are when it asks for this rollout."""
        entry = self._ledger.read()
        if entry is None:
            return self._first_version
        if entry.rollout_id == rollout_id and not entry.reported:
            # Killed before the step was saved: the same parameters, the same batch again.
            return entry.version
        if entry.rollout_id == rollout_id - 1:
            if not entry.reported:
                # Killed between saving and reporting.
                self._report(entry)
            return entry.version + 1
        done = entry.rollout_id if entry.reported else entry.rollout_id - 1
        raise OutOfStep(
            f"slime asks for rollout {rollout_id}, and Headway counts the steps up to rollout {done}: start slime "
            f"from the checkpoint of rollout {done}"
        )

    def _pull(self, version: int) -> TrainTask:
        waits = 0
        while True:
            try:
                task = self._client.pull(version)
            except OtherVersion as error:
                raise OutOfStep(str(error)) from error
            if isinstance(task, TrainTask):
                return task
            if isinstance(task, SaveTask):
                self._written(task)
                continue
            waits += 1
            if waits & (waits - 1) == 0:
                _log.info("no batch for %d minutes: Headway's /status says what it waits for", waits)

    def _written(self, task: SaveTask) -> None:
        """The weights of a version are asked for: those of the last step are where slime wrote them."""
        entry = self._ledger.read()
        made = entry is not None and entry.reported and entry.version + 1 == task.version
        path = self._weights(entry.rollout_id) if made and entry is not None else None
        if path is None:
            _log.error("Headway asks for the weights of version %d, which slime does not have", task.version)
        self._client.weights(task.version, path)

    def _report(self, entry: Entry) -> None:
        path = self._weights(entry.rollout_id)
        if path is None:
            raise OutOfStep(
                f"the step of rollout {entry.rollout_id} should be done, and {self._place(entry.rollout_id)} holds no "
                "whole weights. Run slime's train.py, not train_async.py, with --save-interval 1. If slime was killed "
                "while it wrote them, convert the checkpoint of that rollout to this directory, or start from the "
                "checkpoint before"
            )
        found = metrics.measured(self._args, entry.rollout_id)
        try:
            counted = self._client.report(entry.version, entry.batch, entry.lease, metrics=found, weights=path)
        except Conflict as error:
            raise OutOfStep(
                f"the step of rollout {entry.rollout_id} does not count: {error}. Start slime from the checkpoint "
                "before it (--ckpt-step): it is given the batch that Headway has by then"
            ) from error
        finally:
            self._let_go()
        if not counted:
            _log.info("the step of rollout %d was reported before", entry.rollout_id)
        self._ledger.write(replace(entry, reported=True))
        metrics.forget(self._args, entry.rollout_id)

    def _hold(self, task: TrainTask) -> None:
        self._let_go()
        self._heartbeat = Heartbeat(self._client, task.lease, task.lease_sec)

    def _let_go(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None

    def _place(self, rollout_id: int) -> Path:
        return Path(self._args.save_hf.format(rollout_id=rollout_id))

    def _weights(self, rollout_id: int) -> str | None:
        """The directory of a rollout's weights, if all of them are there: slime writes the index last."""
        place = self._place(rollout_id)
        try:
            index = json.loads((place / "model.safetensors.index.json").read_text(encoding="utf-8"))
            whole = all((place / name).is_file() for name in set(index["weight_map"].values()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return str(place) if whole else None

    def _fits(self, task: TrainTask) -> None:
        args = self._args
        wanted = args.rollout_batch_size * args.n_samples_per_prompt
        if len(task.samples) != wanted:
            raise WrongArguments(
                f"the batch has {len(task.samples)} samples, and --rollout-batch-size {args.rollout_batch_size} with "
                f"--n-samples-per-prompt {args.n_samples_per_prompt} wants {wanted}: make them equal, with Headway's "
                "min_batch_size = batch_size"
            )
        updates = wanted // args.global_batch_size
        if updates != task.updates:
            raise WrongArguments(
                f"Headway wants {task.updates} optimizer updates (updates_per_step), and --global-batch-size "
                f"{args.global_batch_size} makes {updates}: set --num-steps-per-rollout {task.updates}"
            )


_known: dict[str, Rollouts] = {}


def _rollouts(args: Namespace) -> Rollouts:
    """One for the rollout function and the data source, which slime keeps in one process."""
    key = str(args.save)
    if key not in _known:
        _known[key] = Rollouts(args, os.environ)
    return _known[key]


def _setting(args: Namespace, environment: Mapping[str, str], name: str, default: str) -> str:
    """From slime's --custom-config-path, or else from the environment."""
    value = getattr(args, name, None)
    return environment.get(name.upper(), default) if value is None else str(value)


def _check(args: Namespace) -> None:
    """All that would let a crash lose or double a step, or let two update the engines, is refused at once."""
    path = "headway_slime.DataSource"
    save_hf = args.save_hf or ""
    wrong = [
        (not args.debug_train_only, "--debug-train-only is missing: Headway runs the engines, not slime"),
        (not args.save, "--save DIRECTORY is missing"),
        (args.save_interval != 1, "--save-interval 1 is missing: a step that is counted must survive a crash"),
        (
            not save_hf.startswith("/") or save_hf.format(rollout_id=0) == save_hf.format(rollout_id=1),
            "--save-hf /DIRECTORY/{rollout_id} is missing: where the engines find the weights of each step",
        ),
        (not args.rollout_global_dataset, "--disable-rollout-global-dataset must go: a saved step would not be reported"),
        (args.data_source_path != path, f"--data-source-path {path} is missing: it reports what is saved"),
        (bool(args.async_save), "--async-save must go: a step would be reported before its checkpoint is whole"),
        (bool(args.use_critic), "--advantage-estimator ppo has a critic, whose steps Headway does not count"),
        (args.global_batch_size is None, "--num-steps-per-rollout or --global-batch-size is missing"),
    ]
    said = [text for is_wrong, text in wrong if is_wrong]
    if said:
        raise WrongArguments("slime's arguments do not fit Headway:\n" + "\n".join(f"- {text}" for text in said))
