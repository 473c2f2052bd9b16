"""The rollout function and the data source, as slime's train.py calls them; slime's own types are stubs."""

import json
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path
from typing import Any

from headway_slime import HeadwayError, OutOfStep, WrongArguments, measure
from headway_slime.metrics import measured
from headway_slime.rollout import Rollouts, _check
from headway_slime.samples import groups, staleness
from headway_slime.client import TrainTask, _task
from tests.gateway import Answer, Gateway, error, task


def arguments(folder: Path, **changes: Any) -> Namespace:
    """What slime makes of the command line in the README."""
    known: dict[str, Any] = {
        "debug_train_only": True,
        "save": str(folder / "checkpoints"),
        "save_interval": 1,
        "save_hf": str(folder / "hf" / "{rollout_id}"),
        "rollout_global_dataset": True,
        "data_source_path": "headway_slime.DataSource",
        "async_save": False,
        "use_critic": False,
        "rollout_batch_size": 2,
        "n_samples_per_prompt": 2,
        "global_batch_size": 4,
    }
    return Namespace(**{**known, **changes})


class RolloutTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.args = arguments(self.folder)

    def gateway(self, **answers: list[Answer]) -> Gateway:
        gateway = Gateway(**{"report": [(200, {"counted": True, "version": 1})], **answers})
        self.addCleanup(gateway.close)
        return gateway

    def job(self, gateway: Gateway) -> Rollouts:
        """A slime process."""
        return Rollouts(self.args, {"HEADWAY_URL": gateway.url, "HEADWAY_TRAINER_TOKEN": "t"})

    def write_weights(self, rollout_id: int, *, whole: bool = True) -> str:
        place = Path(self.args.save_hf.format(rollout_id=rollout_id))
        place.mkdir(parents=True, exist_ok=True)
        name = "model-00001-of-00001.safetensors"
        if whole:
            (place / name).write_bytes(b"weights")
        index = {"metadata": {}, "weight_map": {"a": name, "b": name}}
        (place / "model.safetensors.index.json").write_text(json.dumps(index))
        return str(place)

    def test_a_step_is_reported_with_its_weights_when_it_is_saved(self) -> None:
        gateway = self.gateway(pull=[(200, task(0)), (200, task(1, "b1"))])
        job = self.job(gateway)
        self.assertEqual(job.batch(0).batch, "b0")
        self.assertEqual(gateway.bodies("report"), [], "not before it is trained")
        place = self.write_weights(0)
        measure(self.args, 0, {"log_probs": [[-1.0]], "rollout_log_probs": [[-1.5]], "loss_masks": [[1]]})
        job.saved(0)
        (report,) = gateway.bodies("report")
        self.assertEqual(report["weights"], place)
        self.assertEqual((report["version"], report["batch"], report["lease"], report["ok"]), (0, "b0", "train-0", True))
        self.assertEqual(report["metrics"], {"train_rollout_logprob_abs_diff": 0.5})
        self.assertEqual(job.batch(1).batch, "b1")
        self.assertEqual([pull["version"] for pull in gateway.bodies("pull")], [0, 1])
        self.assertEqual(len(gateway.bodies("report")), 1)

    def test_a_job_killed_while_it_trains_asks_for_the_same_version_again(self) -> None:
        gateway = self.gateway(pull=[(200, task(0))])
        self.job(gateway).batch(0)
        self.assertEqual(self.job(gateway).batch(0).batch, "b0")
        self.assertEqual([pull["version"] for pull in gateway.bodies("pull")], [0, 0])
        self.assertEqual(gateway.bodies("report"), [])

    def test_a_job_killed_after_saving_reports_before_it_asks_for_more(self) -> None:
        gateway = self.gateway(pull=[(200, task(0)), (200, task(1, "b1"))])
        self.job(gateway).batch(0)
        self.write_weights(0)
        self.job(gateway).batch(1)
        self.assertEqual([path for path, _ in gateway.asked], ["pull", "report", "pull"])

    def test_a_report_whose_answer_was_lost_is_made_again_and_counts_once(self) -> None:
        gateway = self.gateway(pull=[(200, task(0)), (200, task(1, "b1"))], report=[(200, {"counted": False})])
        self.job(gateway).batch(0)
        self.write_weights(0)
        job = self.job(gateway)
        job.saved(0)
        job.saved(0)
        job.batch(1)
        self.assertEqual(len(gateway.bodies("report")), 1)

    def test_train_async_and_torn_weights_are_told_from_a_step_that_is_done(self) -> None:
        gateway = self.gateway(pull=[(200, task(0))])
        job = self.job(gateway)
        job.batch(0)
        with self.assertRaisesRegex(OutOfStep, "train.py, not train_async.py"):
            job.batch(1)
        self.write_weights(0, whole=False)
        with self.assertRaisesRegex(OutOfStep, "convert the checkpoint"):
            job.batch(1)
        self.assertEqual(gateway.bodies("report"), [])

    def test_a_job_that_starts_from_an_older_checkpoint_is_told_which_one_counts(self) -> None:
        gateway = self.gateway(pull=[(200, task(0)), (200, task(1, "b1"))])
        job = self.job(gateway)
        for rollout_id in (0, 1):
            job.batch(rollout_id)
            self.write_weights(rollout_id)
            job.saved(rollout_id)
        for rollout_id in (0, 1, 3):
            with self.assertRaisesRegex(OutOfStep, "the checkpoint of rollout 1"):
                self.job(gateway).batch(rollout_id)

    def test_a_step_that_does_not_count_ends_the_job_and_the_checkpoint_before_it_goes_on(self) -> None:
        gateway = self.gateway(pull=[(200, task(0)), (200, task(0, "other"))], report=[error(409, "other_batch", "gone")])
        job = self.job(gateway)
        job.batch(0)
        self.write_weights(0)
        with self.assertRaisesRegex(OutOfStep, "gone.*ckpt-step"):
            job.saved(0)
        self.assertEqual(self.job(gateway).batch(0).batch, "other")

    def test_parameters_of_another_version_are_named(self) -> None:
        gateway = self.gateway(pull=[error(409, "other_version", "load that version (version 4 is in /w)")])
        with self.assertRaisesRegex(OutOfStep, "/w"):
            self.job(gateway).batch(0)

    def test_weights_that_are_asked_for_are_those_of_the_last_step(self) -> None:
        save = {"task": "save", "version": 1, "lease": "save-1", "lease_sec": 600.0}
        gateway = self.gateway(
            pull=[(200, task(0)), (204, None), (200, save), (200, {**save, "version": 9}), (200, task(1, "b1"))],
            weights=[(200, {"published": True})],
        )
        job = self.job(gateway)
        job.batch(0)
        place = self.write_weights(0)
        job.saved(0)
        with self.assertLogs("headway_slime", "ERROR"):
            job.batch(1)
        self.assertEqual(gateway.bodies("weights"), [{"version": 1, "path": place}, {"version": 9}])

    def test_a_job_may_begin_with_the_weights_of_a_later_version(self) -> None:
        self.args.headway_version = 12
        gateway = self.gateway(pull=[(200, task(12))])
        self.job(gateway).batch(0)
        self.assertEqual(gateway.bodies("pull")[0]["version"], 12)

    def test_a_batch_that_slime_would_cut_or_split_otherwise_is_refused(self) -> None:
        gateway = self.gateway(pull=[(200, task(0))])
        self.args.rollout_batch_size = 3
        with self.assertRaisesRegex(WrongArguments, "4 samples.*wants 6"):
            self.job(gateway).batch(0)
        self.args.rollout_batch_size, self.args.global_batch_size = 2, 2
        with self.assertRaisesRegex(WrongArguments, "--num-steps-per-rollout 1"):
            self.job(gateway).batch(0)

    def test_arguments_that_do_not_fit_are_all_named_at_once(self) -> None:
        _check(self.args)
        wrong = {
            "debug_train_only": False,
            "save": None,
            "save_interval": 5,
            "save_hf": "relative/{rollout_id}",
            "rollout_global_dataset": False,
            "data_source_path": "slime.rollout.data_source.RolloutDataSourceWithBuffer",
            "async_save": True,
            "use_critic": True,
            "global_batch_size": None,
        }
        with self.assertRaises(WrongArguments) as raised:
            _check(arguments(self.folder, **wrong))
        self.assertEqual(str(raised.exception).count("\n- "), len(wrong))
        for key, value in {**wrong, "save_hf": "/always/the/same"}.items():
            with self.subTest(key=key), self.assertRaises(WrongArguments):
                _check(arguments(self.folder, **{key: value}))
        with self.assertRaisesRegex(WrongArguments, "HEADWAY_TRAINER_TOKEN"):
            Rollouts(self.args, {})

    def test_a_damaged_ledger_is_an_error_and_nothing_is_trained(self) -> None:
        gateway = self.gateway(pull=[(200, task(0))])
        self.job(gateway).batch(0)
        ledger = Path(self.args.save) / "headway.json"
        text = ledger.read_text()
        for damaged in ["", text[:-3], "[]", "{}", text.replace("false", "7"), text.replace('"version": 0', '"version": "0"')]:
            ledger.write_text(damaged)
            with self.subTest(damaged=damaged), self.assertRaisesRegex(HeadwayError, "headway.json"):
                self.job(gateway).batch(1)
        self.assertEqual(len(gateway.asked), 1)


class SamplesTest(unittest.TestCase):
    def task(self, **changes: Any) -> TrainTask:
        said = task(5)
        said["samples"][0].update(changes)
        found = _task(said)
        assert isinstance(found, TrainTask)
        return found

    def test_the_rollouts_of_a_prompt_stand_together(self) -> None:
        found = groups(self.task())
        ids = [[sample.metadata["headway_id"] for sample in group] for group in found]
        self.assertEqual(ids, [[10, 12], [11, 13]])
        self.assertEqual([sample.index for group in found for sample in group], [0, 1, 2, 3])
        self.assertEqual([[sample.group_index for sample in group] for group in found], [[0, 0], [1, 1]])

    def test_a_sample_without_a_group_is_its_own_even_where_numbers_agree(self) -> None:
        found = groups(self.task(group=None, id=8))
        self.assertEqual([len(group) for group in found], [1, 2, 1])

    def test_a_response_begins_with_the_first_token_of_the_policy(self) -> None:
        mixed = {"loss_mask": [0, 1, 0, 1], "rollout_log_probs": [0, -1, 0, -2], "versions": [0, 3, 9, 4], "masked": True}
        sample = groups(self.task(**mixed))[0][0]
        self.assertEqual((sample.tokens, sample.response_length), ([1, 2, 3, 4], 3))
        self.assertEqual((sample.loss_mask, sample.rollout_log_probs), ([1, 0, 1], [-1.0, 0.0, -2.0]))
        self.assertEqual((sample.weight_versions, sample.remove_sample), (["3", "4"], True))

    def test_a_sample_without_a_token_of_the_policy_has_no_gradient(self) -> None:
        sample = groups(self.task(loss_mask=[0, 0, 0, 0]))[0][0]
        self.assertEqual((sample.response_length, sample.loss_mask), (1, [0]))

    def test_staleness_is_of_trained_tokens(self) -> None:
        said = staleness(self.task(versions=[0, 0, 3, 4]))
        self.assertEqual(said, {"headway/staleness_mean": 3 / 8, "headway/staleness_max": 2.0})


class MeasureTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.args = Namespace(save=folder.name)

    def test_the_parts_of_all_processes_make_one_number(self) -> None:
        part = {"log_probs": [[-1.0, -9.0]], "rollout_log_probs": [[-1.5, 0.0]], "loss_masks": [[1, 0]]}
        measure(self.args, 3, part)
        two = {"log_probs": [[-1.0], [-2.0]], "rollout_log_probs": [[-2.0], [-2.0]], "loss_masks": [[1], [1]]}
        measure(self.args, 3, two)
        self.assertEqual(measured(self.args, 3), {"train_rollout_logprob_abs_diff": 0.5})
        self.assertEqual(measured(self.args, 4), {})

    def test_what_cannot_be_measured_is_left_out(self) -> None:
        parts: list[dict[str, Any]] = [
            {},
            {"log_probs": [[-1.0]], "rollout_log_probs": [[-1.0]]},
            {"log_probs": [[-1.0]], "rollout_log_probs": [[-1.0, -2.0]], "loss_masks": [[1, 1]]},
            {"log_probs": [[-1.0]], "rollout_log_probs": [[-1.0]], "loss_masks": [[0]]},
        ]
        for data in parts:
            measure(self.args, 0, data)
        measure(self.args, 0, {"log_probs": [[float("nan")]], "rollout_log_probs": [[0.0]], "loss_masks": [[1]]})
        self.assertEqual(measured(self.args, 0), {})


if __name__ == "__main__":
    unittest.main()
